"""An account of people who depend on each other: what a whole window costs, against what is left of ε for it.

In:   a Pufferfish grant, costs stated for one unit.
Out:  the grant and the costs as plain (ε, δ) of the window; whether another promise is about the same dependences.
Not here: how charges add up (ledger/balance.py).
Proof: docs/proofs/pufferfish.md

The flat ε is paid once, by the first grant; afterwards costs of windows add like those of any larger unit. So an
account keeps the class of dependences it was opened with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sfumato.core import ApproxDP, Guarantee, Pufferfish, PureDP, together
from sfumato.errors import LedgerError

__all__ = [
    "check_one_class",
    "check_same_class",
    "check_sealed",
    "counted_in",
    "raised_window",
    "rests_on_a_known_law",
    "window_cost",
]


#: e to this power is a number still. Of a larger ε a chain leaves each unit no δ.
_LARGEST = 700.0


def counted_in(grant: Guarantee) -> Guarantee:
    """What charges are counted against: the grant itself, or (ε-e, δ) for a window.

    >>> from sfumato.core import Groups
    >>> counted_in(Pufferfish(1.0, 1e-6, Groups(4)))
    ApproxDP(adjacency=None, eps=1.0, delta_=1e-06)
    """
    if not isinstance(grant, Pufferfish):
        return grant
    if grant.delta_ > 0:
        return ApproxDP(grant.left, grant.delta_, adjacency=grant.adjacency)
    return PureDP(grant.left, adjacency=grant.adjacency)


def window_cost(cost: Guarantee, grant: Pufferfish) -> Guarantee | None:
    """What a cost for one unit comes to when all units of the grant's window change; None where no amount is known."""
    moved = together(cost, grant.units)
    if moved is not None or grant.dependence.single or grant.left >= _LARGEST:
        return moved
    units = int(grant.units)
    each = grant.for_one()
    delta = each.stated[1]
    epsilon = cost.epsilon(delta)
    if not 0 < epsilon < math.inf:
        return None
    steps = math.fsum(math.exp(epsilon * place) for place in range(units)) * (1 + 1e-9)
    return ApproxDP(epsilon * units, delta * steps, adjacency=cost.adjacency) if delta * steps < 1 else None


def raised_window(found: Guarantee, grant: Pufferfish) -> Pufferfish:
    """A grant like `grant` whose window has room for `found`."""
    # As charges are compared: a δ of the grant makes no ε of theirs smaller.
    pair = isinstance(found, PureDP | ApproxDP)
    epsilon, delta = found.stated if pair else (found.epsilon(grant.delta_), grant.delta_)
    epsilon = max(epsilon + grant.dependence.flat, grant.eps) * (1 + 1e-12)
    delta = max(delta, grant.delta_)
    return Pufferfish(epsilon, delta, grant.dependence, adjacency=grant.adjacency)


def rests_on_a_known_law(stated: Guarantee | None) -> bool:
    """Whether a grant or a promise is about one release alone."""
    return isinstance(stated, Pufferfish) and stated.dependence.single


def check_sealed(dataset: str, sealed: bool, grant: Guarantee, promised: Guarantee | None, counted: int) -> None:
    """Promises that rest on a known law do not add up: nothing comes before or after such a release.

    `sealed`: one was made, whatever the grant says today.
    """
    if counted and (sealed or rests_on_a_known_law(grant) or rests_on_a_known_law(promised)):
        raise LedgerError(
            f"{dataset} is sealed: its promise rests on a known joint law, and what two such releases tell together "
            "has no bound. Nothing was run and nothing was spent. Use what was published, or other data."
        )


def check_same_class(
    dataset: str, grant: Guarantee, promised: Guarantee | None, way_out: Callable[[Pufferfish], str]
) -> None:
    """A promise about other dependences than those the account was opened for has a budget of its own."""
    if not isinstance(promised, Pufferfish):
        return
    if not isinstance(grant, Pufferfish):
        raise LedgerError(
            f"{dataset} is accounted for single units; this promise is for {promised.dependence.words}, and a sum for "
            f"single units does not bound what it tells. Nothing was run and nothing was spent. {way_out(promised)}"
        )
    if grant.dependence.laws != promised.dependence.laws:
        raise LedgerError(
            f"{dataset} is accounted for {grant.dependence.words}; this promise is for {promised.dependence.words}. "
            "What was published before was weighed for the first. Nothing was run and nothing was spent. State the "
            f"same in correlated(…). {way_out(promised)}"
        )


def check_one_class(promises: Sequence[Pufferfish]) -> None:
    """Promises that are made together are about the same dependences: an account has one class."""
    for one in promises[1:]:
        if one.dependence.laws != promises[0].dependence.laws:
            raise LedgerError(
                f"One dataset is promised for {promises[0].dependence.words} and for {one.dependence.words}: an "
                "account has one class of dependences. Nothing was run and nothing was spent. State the same for all "
                "observers and steps, or publish under the other from data of its own."
            )
