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
from sfumato.ledger.balance import Charge, fits, total
from sfumato.ledger.windows import raised_window

__all__ = ["grant_command", "raised", "settle_command"]


def raised(charges: Sequence[Charge], granted: Guarantee) -> Guarantee | None:
    """The least grant like `granted` that holds all charges; None where no finite one does.

    >>> raised([PureDP(0.5), PureDP(0.75)], PureDP(1.0))
    PureDP(adjacency=None, eps=1.25)
    """
    found = None if None in charges else total(charges, granted)
    if isinstance(granted, Pufferfish) and found is not None:
        found = raised_window(found, granted)
    if isinstance(granted, ApproxDP) and isinstance(found, PureDP | ApproxDP) and math.isfinite(found.eps):
        delta = found.delta_ if isinstance(found, ApproxDP) else 0.0
        found = ApproxDP(max(found.eps, granted.eps), max(delta, granted.delta_))
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
