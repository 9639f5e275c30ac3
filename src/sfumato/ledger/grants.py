"""How much must be granted for a cost, and what to do where a grant does not hold it.

In:   what is counted in an account, what is asked for beside it.
Out:  the least grant of the same kind, or of another, that holds both; ways out in sentences.
Not here: whether it fits (ledger/balance.py), commands (ledger/commands.py), whether a person agrees (run/accounts.py).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from pathlib import Path

from sfumato.core import REPLACE_ONE, Adjacency, ApproxDP, GaussianDP, Guarantee, Pufferfish, PureDP, compose
from sfumato.errors import LedgerError
from sfumato.ledger.balance import GRANTABLE, Charge, Cost, fits, recharged, total
from sfumato.ledger.commands import grant_command, raise_command, show_command
from sfumato.ledger.windows import check_one_class, raised_window

__all__ = ["class_way_out", "held_by", "more_way_out", "raised", "unknown_text", "window_grant"]

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


def held_by(acts: Sequence[Sequence[Cost]], charges: Sequence[Charge], old: Guarantee, wanted: Guarantee) -> Guarantee:
    """`wanted`, or the least grant of its kind that holds what is counted under the old one; `old` where none does."""
    wanted = wanted.under(old.adjacency)
    weighed = recharged(acts, charges, old, wanted)
    return wanted if fits(weighed, wanted) else raised(weighed, wanted) or old


def more_way_out(
    dataset: str, acts: Sequence[Sequence[Cost]], charges: Sequence[Charge], granted: Guarantee, ledger: Path
) -> str:
    """What to do where a cost does not fit: `acts` and `charges` are all that is counted, and the cost."""
    assert granted.adjacency is not None
    enough = raised(charges, granted)
    if enough is not None:
        return f"Lower ε, drop a publication, or raise the grant with `{_raise(dataset, enough, granted, ledger)}`."
    # Never out of a class of dependences: what was promised to families would no longer be counted for them.
    others = () if isinstance(granted, Pufferfish) else (ApproxDP(_epsilon(granted), 1e-6), GaussianDP(0.01))
    for other in others:
        wanted = other.under(granted.adjacency)
        enough = raised(recharged(acts, charges, granted, wanted), wanted)
        if enough is not None and fits(recharged(acts, charges, granted, enough), enough):
            return (
                "No grant of this kind holds it. Ask for less, or grant in another currency, which weighs anew what is "
                f"counted already: `{grant_command(dataset, enough, ledger)}`."
            )
    return "No grant holds it. Ask for something with a finite cost."


def _raise(dataset: str, enough: Guarantee, granted: Guarantee, ledger: Path) -> str:
    assert granted.adjacency is not None
    same = isinstance(enough, type(granted)) and getattr(enough, "dependence", 0) == getattr(granted, "dependence", 0)
    if not same:  # a pure budget that needs a δ
        return grant_command(dataset, enough, ledger, granted.adjacency)
    return raise_command(dataset, enough, ledger, granted.adjacency.unit)


def _epsilon(granted: Guarantee) -> float:
    return granted.eps if isinstance(granted, PureDP | ApproxDP) else 0.01


def _first(items: Sequence[Cost]) -> Guarantee:
    """What a first grant for this cost may be; without a cost ε = 1, as an example."""
    cost = compose(items) if items else PureDP(1.0)
    if isinstance(cost, GRANTABLE) and not (isinstance(cost, Pufferfish) and cost.dependence.single):
        return cost
    epsilon = cost.epsilon(1e-6)
    return ApproxDP(epsilon * _UP, 1e-6, adjacency=cost.adjacency) if math.isfinite(epsilon) else PureDP(1.0)


def unknown_text(
    dataset: str, unit: str, accounts: Sequence[tuple[str, str]], items: Sequence[Cost], ledger: Path
) -> str:
    """That nothing was granted: the nearest account there is, and a first grant, for this cost where there is one."""
    units = [granted for name, granted in accounts if name == dataset]
    close = difflib.get_close_matches(str(dataset), [name for name, _ in accounts], n=1)
    hint = f" Did you mean {close[0]!r}? `{show_command(close[0], ledger)}`" if close else ""
    if units:
        hint = f" It has a grant for the unit {', '.join(units)}: `{show_command(dataset, ledger)}`."
    total = _first(items)
    who = total.adjacency or Adjacency(unit, REPLACE_ONE.relation)
    command = grant_command(str(dataset), total, ledger, who)
    return (
        f"Nothing was ever granted for {dataset!r} (unit: {unit}) in {ledger.name}.{hint} Nothing was run and nothing "
        f"was spent. Grant a budget first{'' if items else ', for example'}: `{command}`."
    )


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
            "nothing was spent. Publish to fewer observers or in fewer steps."
        )
    return found
