"""How much must be granted for a cost, and the command that grants it.

In:   what is counted in an account, what is asked for beside it.
Out:  the least grant of the same kind that holds both; complete commands for messages.
Not here: whether it fits (ledger/balance.py), whether a person agrees (run/accounts.py).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from sfumato.core import ZCDP, Adjacency, ApproxDP, Chains, GaussianDP, Guarantee, Pufferfish, PureDP, RenyiDP
from sfumato.errors import LedgerError
from sfumato.ledger.balance import Charge, Cost, fits, recharged, total
from sfumato.ledger.windows import check_one_class, raised_window

__all__ = ["class_way_out", "grant_command", "raised", "settle_command", "window_grant"]

#: What is granted beyond the sum, so that rounding never refuses the last release.
_UP = 1 + 1e-9


def _no_less(found: Guarantee | None, granted: ApproxDP) -> Guarantee | None:
    """ε and δ, neither below what was granted."""
    if not isinstance(found, PureDP | ApproxDP) or not math.isfinite(found.eps):
        return found
    epsilon, delta = map(max, found.stated, granted.stated)
    return ApproxDP(epsilon, delta)


def raised(charges: Sequence[Charge], granted: Guarantee) -> Guarantee | None:
    """The least grant like `granted` that holds all charges; None where no finite one does.

    >>> raised([PureDP(0.5), PureDP(0.75)], PureDP(1.0))
    PureDP(adjacency=None, eps=1.25)
    """
    found = None if None in charges else total(charges, granted)
    if isinstance(granted, Pufferfish) and found is not None:
        found = raised_window(found, granted)
    if isinstance(granted, ApproxDP):
        found = _no_less(found, granted)
    if found is None or not math.isfinite(found.epsilon(0.5)) or not fits(charges, found):
        return None
    return found.under(granted.adjacency) if granted.adjacency else found


def grant_command(dataset: str, total: Guarantee | None, ledger: Path, who: Adjacency | None = None) -> str:
    """The complete command that grants `total`; without one the amount is left open.

    >>> grant_command("people", PureDP(0.5, adjacency=Adjacency("patient", "replace-one")), Path("/data/l.db"))
    'sfumato ledger grant people --epsilon 0.5 --unit patient --relation replace-one --ledger /data/l.db'
    """
    match total:
        case ApproxDP(eps=eps, delta_=delta):
            amount = f"--epsilon {eps!r} --delta {delta!r}"
        case Pufferfish(eps=eps, delta_=delta):
            amount = f"--epsilon {eps!r} --delta {delta!r} {_depending(total)}"
        case GaussianDP(mu=mu):
            amount = f"--mu {mu!r}"
        case ZCDP(rho=rho):
            amount = f"--rho {rho!r}"
        case PureDP(eps=eps) | RenyiDP(eps=eps):
            amount = f"--epsilon {eps!r}"
        case _:
            amount = "--epsilon E"
    who = who or (total.adjacency if total else None)
    unit = f" --unit {shlex.quote(who.unit)} --relation {who.relation}" if who else ""
    return f"sfumato ledger grant {shlex.quote(dataset)} {amount}{unit} --ledger {shlex.quote(str(ledger.resolve()))}"


def class_way_out(
    dataset: str, acts: Sequence[Sequence[Cost]], asked: Pufferfish, granted: Guarantee, ledger: Path
) -> str:
    """What to do where an account was not opened for the dependences that a promise is about."""
    if asked.dependence.single:
        return (
            "A known law needs an account that was opened with it, for this release alone: use data that has no "
            "account yet, and run with --grant (from Python: grant=True)."
        )
    wanted = asked.under(granted.adjacency)
    whole = raised(recharged(acts, (), granted, wanted), wanted) or wanted
    return (
        "Grant the account for that class first, which weighs anew what is counted already: "
        f"`{grant_command(dataset, whole, ledger)}`. Or use data that has no account yet, and run with --grant."
    )


def window_grant(promises: Sequence[Guarantee], acts: Sequence[Sequence[Cost]]) -> Pufferfish:
    """The grant that holds all these reservations, made under these promises, for their one class of dependences."""
    depending = [one for one in promises if isinstance(one, Pufferfish)]
    check_one_class(depending)
    first = depending[0]
    if first.dependence.single:
        raise LedgerError(
            "A promise that rests on a known joint law is for one release to one observer, and nothing adds to it. "
            "Publish to one observer and without steps, or declare a group instead of the law. Nothing was run and "
            "nothing was spent."
        )
    epsilon = first.dependence.flat + math.fsum(one.left for one in depending) * _UP
    delta = min(math.fsum(one.delta_ for one in depending) * _UP, math.nextafter(1.0, 0.0))
    whole = Pufferfish(epsilon, delta, first.dependence, adjacency=first.adjacency)
    charges = recharged(acts, (), PureDP(1.0), whole)
    found = whole if fits(charges, whole) else raised(charges, whole)
    if found is None or not isinstance(found, Pufferfish):
        raise LedgerError(
            f"What a grant for {first.dependence.words} must be for all of this is not known. Nothing was run and "
            "nothing was spent. Grant an amount of your own with `sfumato ledger grant NAME --epsilon E --delta D "
            f"{_depending(first)}`, and run without --grant; or publish to fewer observers or in fewer steps."
        )
    return found


def _depending(total: Pufferfish) -> str:
    known = total.dependence
    if known.single:
        return "(only with a run and --grant)"
    if not isinstance(known, Chains):
        return f"--groups {known.together}"
    return f"--memory {known.memory!r}" + (f" --longest {known.longest}" if known.longest else "")


def settle_command(dataset: str, unit: str, ledger: Path) -> str:
    """The complete command that records open reservations as spent.

    >>> settle_command("people", "patient", Path("/data/l.db"))
    'sfumato ledger settle people --unit patient --ledger /data/l.db --yes'
    """
    words = ["sfumato", "ledger", "settle", dataset, "--unit", unit, "--ledger", str(ledger.resolve()), "--yes"]
    return shlex.join(words)
