"""What a plan costs which accounts: set aside before anything is drawn, all or nothing.

In:   a plan, the sources of its data, a ledger.
Out:  reservations.
Not here: whose account data has (run/accounts.py), what a ledger counts (ledger/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.core import Pufferfish
from sfumato.core.adjacency import Adjacency
from sfumato.ledger.balance import amount_text
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation
from sfumato.ledger.windows import check_one_class
from sfumato.plan.plan import Plan
from sfumato.plan.whole import asked_together
from sfumato.run.accounts import Grant, first_grant, needed, renamed
from sfumato.run.history import purpose_of

if TYPE_CHECKING:
    from sfumato.core.compose import Repeated
    from sfumato.core.events.event import Event
    from sfumato.core.guarantee import Guarantee

__all__ = ["charges_of", "check_balance", "check_granted", "need_of", "reserve_plan"]


def check_balance(plan: Plan, ledger: Ledger, sources: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse what the accounts of this data cannot pay before it is evaluated; the reservation decides for good."""
    for dataset in plan.datasets:
        for name, costs, point in charges_of(plan, dataset, ledger.owners(sources[dataset])):
            ledger.check(name, costs, purpose=purpose_of(plan), promised=point)


def check_granted(plan: Plan, ledger: Ledger, sources: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse what nobody granted anything for, with the command that does, before anything is evaluated."""
    for dataset in plan.datasets:
        first_grant(ledger, dataset, need_of(plan, dataset), sources[dataset], False, _why(plan, dataset))


def need_of(plan: Plan, dataset: str) -> Guarantee:
    """What a first grant must be for a plan."""
    promises = [promise.asked for promise in plan.promises if promise.dataset == dataset]
    return needed(plan.row_cost(dataset), promises, asked_together(plan, dataset))


def _why(plan: Plan, dataset: str) -> str:
    """Why that is the amount of no promise, where there are several."""
    promises = list(dict.fromkeys(amount_text(one) for one in asked_together(plan, dataset)))
    if len(asked_together(plan, dataset)) < 2:
        return ""
    return (
        "That is for all readers together, as if they showed each other what they see; the promises to each are "
        f"{' and '.join(promises)}."
    )


def charges_of(
    plan: Plan, dataset: str, owners: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, list[Event | Repeated | Guarantee], Guarantee | None]]:
    """Account, cost and the point to charge, for each account that a dataset's individuals have."""
    promises = [promise.asked for promise in plan.promises if promise.dataset == dataset]
    cost = plan.row_cost(dataset)
    assert cost.adjacency is not None
    for name, unit in owners:
        who = Adjacency(unit, cost.adjacency.relation)
        costs = [renamed(event, who) for event in plan.events(dataset)]
        yield name, costs, _stated(promises)


def _stated(promises: Sequence[Guarantee]) -> Guarantee | None:
    """The point to charge: the only promise. Of several the one that states the dataset's class of dependences.

    A promise that the costs of all observers together do not keep is no point (ledger/balance.py), but has a class.
    """
    depending = [one for one in promises if isinstance(one, Pufferfish)]
    check_one_class(depending)
    if len(promises) == 1:
        return promises[0]
    return depending[0] if depending else None


def reserve_plan(
    plan: Plan,
    ledger: Ledger,
    sources: Mapping[str, tuple[str, ...]],
    grant: Grant,
    made: list[Reservation],
    key: str | None = None,
    needs: Mapping[str, Guarantee] | None = None,
) -> None:
    """The cost of every dataset set aside in the accounts of its data, all or none; `made` tells which.

    `needs` says what a first grant is for, by dataset, where it is more than this plan (all steps of a history).
    """
    try:
        for dataset in plan.datasets:
            _reserve(plan, dataset, ledger, sources[dataset], grant, made, key, (needs or {}).get(dataset))
    except BaseException:
        while made:
            ledger.release(made.pop())
        raise


def _reserve(
    plan: Plan,
    dataset: str,
    ledger: Ledger,
    own: tuple[str, ...],
    grant: Grant,
    made: list[Reservation],
    key: str | None,
    need: Guarantee | None,
) -> None:
    cost = plan.row_cost(dataset)
    assert cost.adjacency is not None
    why = "" if need is not None else _why(plan, dataset)
    first_grant(ledger, dataset, need or need_of(plan, dataset), own, grant, why)
    owners = ledger.owners(own) or [(dataset, cost.adjacency.unit)]
    for name, costs, point in charges_of(plan, dataset, owners):
        made.append(ledger.reserve(name, costs, purpose=purpose_of(plan), promised=point, sources=own, key=key))
