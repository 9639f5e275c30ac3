"""The steps of a study beside its account: what was released, what the next one costs and whether it fits.

In:   a study file with steps, the folder of its tables, a ledger.
Out:  StepState of each step; what a grant for the whole history must be.
Not here: running a step (run/study_file.py), the words on a terminal (cli/steps.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.core import ApproxDP, GaussianDP, Guarantee, Pufferfish, PureDP
from sfumato.core.events.event import Event, Repeated
from sfumato.errors import LedgerError, SfumatoError, StudyError
from sfumato.lang import load
from sfumato.lang.spec import Spec
from sfumato.lang.term import show
from sfumato.ledger.balance import charge
from sfumato.ledger.grants import window_grant
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Balance
from sfumato.plan.plan import Plan
from sfumato.run.accounts import needed, sources_of
from sfumato.run.charges import charges_of
from sfumato.run.history import Released, publishing_steps, released_steps
from sfumato.run.study import tables_in
from sfumato.run.study_file import plan_study

__all__ = ["StepState", "StudyAccounts", "account_of", "history_needs", "standings"]

#: What is granted beyond the sum, so that rounding never refuses the last step.
_UP = 1 + 1e-9


@dataclass(frozen=True)
class StepState:
    """One step: what it does, its releases; of one to come its plan, and why it does not fit or cannot be planned."""

    number: int
    actions: tuple[str, ...]
    released: tuple[Released, ...] = ()
    plan: Plan | None = None
    refusal: str = ""
    skipped: bool = False  # it publishes, was not released, and a later step was: it never will be


@dataclass(frozen=True)
class StudyAccounts:
    """The accounts of a study's data by dataset, and where each of them stands."""

    ledger: Ledger
    owners: Mapping[str, tuple[tuple[str, str], ...]]

    @property
    def balances(self) -> tuple[Balance, ...]:
        known = dict.fromkeys(owner for owners in self.owners.values() for owner in owners)
        return tuple(self.ledger.balance(name, unit) for name, unit in known)

    def released(self, study: str) -> list[Released]:
        """The steps of the study that these accounts paid for."""
        names = dict.fromkeys(name for own in self.owners.values() for name, _ in own)
        return [one for name in names for one in released_steps(self.ledger, name, study)]


def history_needs(plans: Sequence[Plan]) -> dict[str, Guarantee]:
    """For every dataset what must be granted for all these steps: a sum in a currency that adds over time."""
    found: dict[str, Guarantee] = {}
    for dataset in dict.fromkeys(name for plan in plans for name in plan.datasets):
        own = [plan for plan in plans if dataset in plan.datasets]
        found[dataset] = _total(own, dataset)
    return found


def _total(plans: Sequence[Plan], dataset: str) -> Guarantee:
    costs = [plan.row_cost(dataset) for plan in plans]
    adjacency = costs[0].adjacency
    windows = _windows(plans, dataset)
    if windows is not None:
        return windows
    pure = math.fsum(cost.epsilon(0.0) for cost in costs)
    if math.isfinite(pure):
        return PureDP(pure * _UP, adjacency=adjacency)
    gaussian = _total_mu([charge(events, GaussianDP(1.0)) for events in _all_events(plans, dataset)])
    if gaussian is not None:
        return GaussianDP(gaussian * _UP, adjacency=adjacency)
    points = [_point(plan, cost, dataset) for plan, cost in zip(plans, costs, strict=True)]
    epsilon, delta = map(math.fsum, zip(*points, strict=True))
    return ApproxDP(epsilon * _UP, delta * _UP, adjacency=adjacency)


def _windows(plans: Sequence[Plan], dataset: str) -> Guarantee | None:
    """What a history needs whose promises speak of people that depend on each other; None where none does."""
    cost = plans[0].row_cost(dataset)
    asked = [promise.under(cost.adjacency) for plan in plans for promise in _promises(plan, dataset)]
    if not any(isinstance(one, Pufferfish) for one in asked):
        return None
    return needed(cost, asked) if len(plans) == 1 else window_grant(asked, _all_events(plans, dataset))


def _promises(plan: Plan, dataset: str) -> list[Guarantee]:
    return [one.asked for one in plan.promises if one.dataset == dataset]


def _all_events(plans: Sequence[Plan], dataset: str) -> list[list[Event | Repeated | Guarantee]]:
    return [list(plan.events(dataset)) for plan in plans]


def _total_mu(amounts: Sequence[Guarantee | None]) -> float | None:
    normal = [amount.mu for amount in amounts if isinstance(amount, GaussianDP)]
    return math.sqrt(math.fsum(mu**2 for mu in normal)) if len(normal) == len(amounts) else None


def _point(plan: Plan, cost: Guarantee, dataset: str) -> tuple[float, float]:
    return needed(cost, [one for one in _promises(plan, dataset) if isinstance(one, ApproxDP)]).stated


def account_of(plan: Plan, data: Path, ledger: Ledger) -> StudyAccounts:
    """The accounts of the data that a plan reads; tables are hashed to know them, and nothing of them is kept."""
    assert plan.network is not None  # it was planned just now
    sources = sources_of(plan.network, tables_in(plan, data))
    return StudyAccounts(ledger, {dataset: tuple(ledger.owners(own)) for dataset, own in sources.items()})


def standings(
    study: Path, data: Path, ledger: Path | None, sizes: Mapping[str, float]
) -> tuple[tuple[StepState, ...], StudyAccounts | None, dict[str, Guarantee]]:
    """Every step in order, the account if there is one yet, and what the whole history needs."""
    spec = load(study)
    if not spec.steps:
        raise StudyError(f"{study.name} has no steps. Write step(N, publish(Name)). Nothing was read.", ())
    plans, refusals = _planned(study, data, sizes, publishing_steps(spec))
    account = _account(plans, data, ledger)
    done = account.released(spec.name) if account else []
    latest = max((one.step for one in done), default=0)
    found = []
    for number in sorted({step.number for step in spec.steps}):
        to_come = plans.get(number) if number > latest else None
        refusal = refusals.get(number, "") or (_refusal(to_come, account) if to_come and account else "")
        found.append(_state(spec, number, done, to_come, refusal))
    return tuple(found), account, history_needs(list(plans.values()))


def _account(plans: Mapping[int, Plan], data: Path, ledger: Path | None) -> StudyAccounts | None:
    book = Ledger(ledger, create=False) if ledger is not None and ledger.is_file() else None
    return account_of(next(iter(plans.values())), data, book) if book is not None and plans else None


def _planned(
    study: Path, data: Path, sizes: Mapping[str, float], numbers: Iterable[int]
) -> tuple[dict[int, Plan], dict[int, str]]:
    """The plans of the steps, and of those that have none why not."""
    plans: dict[int, Plan] = {}
    refusals: dict[int, str] = {}
    for number in numbers:
        try:
            plans[number] = plan_study(study, data, sizes, number)
        except SfumatoError as error:
            refusals[number] = str(error)
    return plans, refusals


def _state(spec: Spec, number: int, done: Sequence[Released], to_come: Plan | None, refusal: str) -> StepState:
    actions = tuple(show(step.action) for step in spec.steps if step.number == number)
    mine = tuple(one for one in done if one.step == number)
    later = any(one.step > number for one in done)
    skipped = number in publishing_steps(spec) and not mine and later
    return StepState(number, actions, mine, to_come, refusal, skipped)


def _refusal(plan: Plan, account: StudyAccounts) -> str:
    """Why a step does not fit into what is left; empty where it does, or where nothing was granted yet."""
    for dataset in plan.datasets:
        for name, costs, point in charges_of(plan, dataset, account.owners[dataset]):
            try:
                account.ledger.check(name, costs, purpose=f"step {plan.extras['step']}", promised=point)
            except LedgerError as error:
                return str(error)
    return ""
