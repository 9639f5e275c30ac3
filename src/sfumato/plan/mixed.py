"""One dataset whose requirements pay for tables, models or channels beside statistics: portions, strategies, promises.

In:   the dataset's requests, registered strategies, how statistics are settled.
Out:  Mixed: draws, acts, what everybody sees of them, promises derived again from draws and acts, curves.
Not here: the portions themselves (plan/portions.py), statistics (plan/settle.py), concrete strategies (run/publish.py).
Proof: docs/proofs/portions.md
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

from sfumato.core import ApproxDP, Guarantee, Pufferfish, PureDP, compose
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import PlanError
from sfumato.lang.spec import EVERYONE
from sfumato.lang.term import show
from sfumato.network.network import Network
from sfumato.plan.act import Act
from sfumato.plan.curves import act_curve, relative_losses, statistic_curve
from sfumato.plan.individual_part import AnyDraw
from sfumato.plan.plan import Curve, Plan, Planned, Promise
from sfumato.plan.portions import (
    SPENT,
    STATISTICS,
    Portions,
    add_up,
    as_point,
    collude,
    even_floors,
    portion_of,
    split_portions,
)
from sfumato.plan.readers import read_as_one
from sfumato.plan.request import Request
from sfumato.plan.settle import Settled
from sfumato.plan.strategy import Choice, Strategy, choose
from sfumato.plan.wanted import Wanted, wanted_of
from sfumato.questions.registry import kind_called

__all__ = ["Mixed", "Mixing"]

#: How often wider portions are tried, what part of ε is aimed at, from what part on it is enough, and how far it goes.
_STEPS, _AIM, _ENOUGH, _WIDEST = 5, 0.992, 0.985, Fraction(2**16)

Point = PureDP | ApproxDP
Key = tuple[str, str]


@dataclass(frozen=True)
class Mixed:
    """What one dataset's draws and acts are, and what everybody will see of them."""

    planned: tuple[Planned, ...]
    draws: tuple[AnyDraw, ...]
    promises: tuple[Promise, ...]
    acts: tuple[Act, ...]
    #: The loss of each publication relative to its scale, in the order of `planned`.
    relative: tuple[float, ...]
    #: Losses at other ε. A plan tries many ways, and to predict these of all takes longer than to choose among them.
    told_curves: Callable[[], tuple[Curve, ...]] = field(compare=False, repr=False)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """What each publication would lose at other ε; made when it is asked for, of the way that is kept."""
        return self.told_curves()

    @cached_property
    def loss(self) -> float:
        """Weighted mean squared errors relative to their scale: what plans are compared by."""
        return math.fsum(self.losses)

    @cached_property
    def losses(self) -> tuple[float, ...]:
        """The same, publication by publication."""
        return tuple(one.weight * loss for one, loss in zip(self.planned, self.relative, strict=True))


@dataclass(frozen=True)
class Mixing:
    """The work on one dataset. `statistics` settles requests for statistics, `strategies` answer the others."""

    network: Network
    dataset: str
    requests: tuple[Request, ...]
    strategies: Sequence[Strategy]
    size: float
    sizes: Mapping[str, float]
    statistics: Callable[[tuple[Request, ...]], Settled]
    #: Portions of each reader that were found before, and by what the ε of each reader's is multiplied.
    found: Portions | None = None
    factors: Mapping[str, Fraction] = field(default_factory=dict)

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def readers(self) -> dict[str, str]:
        """Of every observer the one that stands for all who see the same acts."""
        return read_as_one(self.network, self.requests)

    @cached_property
    def shown(self) -> dict[Key, tuple[Request, ...]]:
        """(reader, name) of every act, and who asks for it."""
        found: dict[Key, tuple[Request, ...]] = {}
        for request in self.requests:
            if request.is_act:
                key = self._key(request)
                found[key] = (*found.get(key, ()), request)
        return found

    def _key(self, request: Request) -> Key:
        return self.readers[request.observer], request.name

    @cached_property
    def wanted(self) -> dict[Key, Wanted]:
        return {key: wanted_of(requests[0], self.network) for key, requests in self.shown.items()}

    @cached_property
    def numbers(self) -> tuple[Request, ...]:
        """The requests for statistics."""
        return tuple(request for request in self.requests if not request.is_act)

    @cached_property
    def requirements(self) -> dict[str, Request]:
        """A request of every observer; all of them under one requirement."""
        found: dict[str, Request] = {}
        for request in self.requests:
            known = found.setdefault(request.observer, request)
            if known.requirement != request.requirement:
                raise PlanError(
                    f"{request.position}{request.observer} has two requirements on {self.dataset} and sees what both "
                    "publish. Put all of it under one requirement. Nothing was spent."
                )
        if EVERYONE in found and len(found) > 1:
            raise PlanError(
                f"{found[EVERYONE].position}What everyone sees of {self.dataset} counts against every other observer's "
                "promise. Beside tables, models and channels, name the observer, as in openness(public), and say who "
                "colludes. Nothing was spent."
            )
        return found

    @cached_property
    def points(self) -> dict[str, Point]:
        return {
            observer: as_point(request.requirement.guarantee, f"{request.position}{request.name}")
            for observer, request in self.requirements.items()
        }

    @cached_property
    def groups(self) -> list[frozenset[str]]:
        """Observers who collude, where one of them sees something else than statistics."""
        acting = {reader for reader, _ in self.wanted}
        present = set(self.requirements)
        found = [frozenset(collusion.observers) & present for collusion in self.network.spec.collusions]
        acted = [group for group in found if len(group) > 1 and acting & {self.readers[one] for one in group}]
        return list(dict.fromkeys(acted))

    @cached_property
    def _promised(self) -> list[tuple[str, ...]]:
        """Every observer, and those who collude as far as they see anything: of no smaller part of them is asked."""
        present = self.requirements.keys()
        groups = [tuple(sorted(one.observers & present)) for one in self.network.spec.collusions]
        own: list[tuple[str, ...]] = [(observer,) for observer in present]
        return list(dict.fromkeys([*own, *(group for group in groups if len(group) > 1)]))

    def loosest(self, group: frozenset[str]) -> str:
        """The member whose own requirement is the group's."""

        def strength(observer: str) -> tuple[float, float]:
            epsilon, delta = self.points[observer].stated
            return (gaussian_mu(epsilon, delta) if delta > 0 else epsilon, epsilon)

        together = all(isinstance(self.points[observer], ApproxDP) for observer in group)
        return max(sorted(group), key=strength if together else lambda observer: (self.points[observer].eps, 0.0))

    # ── portions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def portions(self) -> Portions:
        """By plain addition."""
        return self._split() if self.found is None else self.found

    def _split(self) -> Portions:
        losses: dict[str, dict[str, float]] = {}
        for (reader, name), wanted in self.wanted.items():
            whole = choose(wanted, self.strategies, self.points[reader], self.size)
            losses.setdefault(reader, {})[name] = wanted.request.weight * whole.prediction.loss
        for reader, loss in self._losses_of_statistics().items():
            if reader in losses:
                losses[reader][STATISTICS] = loss
        portions = {reader: split_portions(own, self._floors(reader)) for reader, own in losses.items()}
        groups = [(frozenset(map(self.readers.__getitem__, group)), self.loosest(group)) for group in self.groups]
        for members, _ in groups:
            for reader in sorted(members - portions.keys()):
                portions[reader] = {STATISTICS: SPENT}
        for members, loosest in groups:
            portions = collude(portions, self.points, members, loosest)
        return portions

    def _floors(self, reader: str) -> dict[str, Fraction]:
        """What each of a reader's publications gets at least: public weights alone decide."""
        acts = {name: wanted.request.weight for (whose, name), wanted in self.wanted.items() if whose == reader}
        numbers = {one.name: one.weight for one in self.numbers if self.readers[one.observer] == reader}
        return even_floors(acts, list(numbers.values()))

    def _losses_of_statistics(self) -> dict[str, float]:
        """Of each reader, weighted, were the whole budget for statistics."""
        if not self.numbers:
            return {}
        whole = self.statistics(self.numbers)
        found: dict[str, dict[str, float]] = {}
        for planned, loss in zip(whole.planned, relative_losses(self._settling(), whole.planned), strict=True):
            own = found.setdefault(self.readers[planned.observer], {})
            own[planned.name] = max(own.get(planned.name, 0.0), planned.weight * loss)
        return {reader: math.fsum(own.values()) for reader, own in found.items()}

    def _settling(self) -> tuple[Network, str, tuple[Request, ...], float, Mapping[str, float]]:
        return (self.network, self.dataset, self.numbers, self.size, self.sizes)

    def share(self, reader: str, name: str) -> Point:
        wider = self.factors.get(reader, Fraction(1))
        return portion_of(self.points[reader], self.portions[reader][name], wider)

    def _reduced(self, request: Request) -> Request:
        """The same request with what its statistics may cost in place of the whole requirement."""
        if self.readers[request.observer] not in self.portions:
            return request
        own = self.share(self.readers[request.observer], STATISTICS)
        return dataclasses.replace(request, requirement=dataclasses.replace(request.requirement, guarantee=own))

    # ── the result ───────────────────────────────────────────────────────────────────────────────────────────────────

    def settle(self) -> Mixed:
        """At portions that add up; then at wider ones, as long as all together keeps every promise.

        Plain addition is the most that acts can cost together, and Gaussian acts cost less: what is left is given to
        all of a reader's publications alike. A few steps find out how far that goes, by the exact composition.
        """
        best = at = self._settled()
        factors = dict.fromkeys(self.portions, Fraction(1))
        for _ in range(_STEPS):
            used = self._used(at)
            wider = {observer: _wider(factor, used[observer]) for observer, factor in factors.items()}
            if wider == factors:
                break
            factors = wider
            at = dataclasses.replace(self, found=self.portions, factors=factors)._settled()
            if at.loss <= best.loss and self._is_kept(at):
                best = at
        return best

    def _is_kept(self, mixed: Mixed) -> bool:
        """Whether every promise follows from the exact composition, with room for whoever composes on a grid."""
        kept = all(promise.kept.implies(promise.asked) is True for promise in mixed.promises)
        return kept and all(part <= SPENT for part in self._used(mixed).values())

    def _used(self, mixed: Mixed) -> dict[str, float]:
        """For every reader the part of its ε, or of that of a group it is part of, that is really used."""
        found = dict.fromkeys(self.portions, 0.0)
        groups = {tuple(sorted(group)): self.loosest(group) for group in self.groups}
        for promise in mixed.promises:
            whose = groups.get(promise.observers, promise.observers[0])
            epsilon, delta = self.points[whose].stated
            part = promise.kept.epsilon(delta) / epsilon
            readers = {self.readers[observer] for observer in promise.observers}
            found |= {reader: max(found[reader], part) for reader in readers if reader in found}
        return found

    def _settled(self) -> Mixed:
        choices = {
            key: choose(wanted, self.strategies, self.share(*key), self.size) for key, wanted in self.wanted.items()
        }
        acts = {key: self._act(key, choice) for key, choice in choices.items()}
        numbers = self.statistics(tuple(map(self._reduced, self.numbers))) if self.numbers else None
        draws = numbers.draws if numbers is not None else ()
        planned, relative = self._seen(choices, numbers)
        shown = Plan("", "", planned, draws, (), acts=tuple(acts.values()))
        curves = partial(self._curves, choices, numbers, relative)
        return Mixed(planned, draws, self._promises(shown, numbers), shown.acts, relative, curves)

    def _act(self, key: Key, choice: Choice) -> Act:
        act = choice.strategy.settle(self.wanted[key], self.share(*key), self.size)
        act = dataclasses.replace(act, observers=tuple(request.observer for request in self.shown[key]))
        if act.events and compose(act.events).implies(act.guarantee) is not True:
            raise PlanError(
                f"{act.name}: the events of {act.strategy} do not keep {act.guarantee.describe()}. This is a mistake "
                "of the strategy; nothing was spent."
            )
        return act

    def _seen(
        self, choices: Mapping[Key, Choice], numbers: Settled | None
    ) -> tuple[tuple[Planned, ...], tuple[float, ...]]:
        """What is planned and what it loses, in the order of the requests."""
        known = {(p.observer, p.name): p for p in numbers.planned} if numbers is not None else {}
        losses = relative_losses(self._settling(), tuple(known.values())) if numbers is not None else []
        by_key = dict(zip(known, losses, strict=True))
        planned, relative = [], []
        for request in self.requests:
            asked = (request.observer, request.name)
            if asked in known:
                planned.append(known[asked])
                relative.append(by_key[asked])
            else:
                key = self._key(request)
                wanted = dataclasses.replace(self.wanted[key], request=request)
                planned.append(_planned(wanted, choices[key], self.share(*key), self.factors.get(key[0], 1) > 1))
                relative.append(choices[key].prediction.loss)
        return tuple(planned), tuple(relative)

    def _curves(
        self, choices: Mapping[Key, Choice], numbers: Settled | None, relative: Sequence[float]
    ) -> tuple[Curve, ...]:
        """In the order of the requests."""
        known = {(p.observer, p.name): p for p in numbers.planned} if numbers is not None else {}
        curves = []
        for request, loss in zip(self.requests, relative, strict=True):
            asked, whole = (request.observer, request.name), request.requirement.guarantee
            if asked in known and numbers is not None:
                curves.append(statistic_curve(known[asked], loss, whole, numbers.noises[request.observer]))
            else:
                key = self._key(request)
                wanted = dataclasses.replace(self.wanted[key], request=request)
                point = self.points[request.observer]
                curves.append(act_curve(wanted, choices[key].strategy, self.share(*key), point, self.size))
        return tuple(curves)

    # ── promises ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _promises(self, shown: Plan, numbers: Settled | None) -> tuple[Promise, ...]:
        """Every promise derived again: by composing draws and acts, and portions that are not widened as fractions."""
        known = {promise.observers: promise for promise in (() if numbers is None else numbers.promises)}
        acting = [observer for observer in self.requirements if self.readers[observer] in self.portions]
        known |= {(observer,): self._own_promise(shown, observer) for observer in acting}
        known |= {tuple(sorted(group)): self._common_promise(shown, group) for group in self.groups}
        return tuple(known[observers] for observers in self._promised)

    def _own_promise(self, shown: Plan, observer: str) -> Promise:
        asked = self.requirements[observer].requirement
        return self._promise(shown, (observer,), show(asked.name), asked.guarantee, observer)

    def _common_promise(self, shown: Plan, group: frozenset[str]) -> Promise:
        loosest = self.loosest(group)
        asked = self.requirements[loosest].requirement.guarantee
        return self._promise(shown, tuple(sorted(group)), f"collude: no more than {loosest} alone", asked, loosest)

    def _promise(self, shown: Plan, observers: tuple[str, ...], name: str, asked: Guarantee, whose: str) -> Promise:
        kept = compose(shown.events(self.dataset, observers))
        within = add_up(self._parts(shown, observers), self.points[whose])
        if not self.factors and (not within or kept.implies(asked) is not True):
            raise PlanError(
                f"The plan for {' and '.join(observers)} costs {kept.describe()}, more than {asked.describe()}. "
                "This is a mistake of the planner; nothing was spent."
            )
        return Promise(observers, self.dataset, name, asked, kept)

    def _parts(self, shown: Plan, observers: tuple[str, ...]) -> list[Point]:
        """What acts and statistics were given; statistics of several observers count once, at the most of each."""
        parts = [as_point(act.guarantee) for act in shown.acts_of(self.dataset, observers)]
        readers = dict.fromkeys(self.readers[observer] for observer in observers)
        numbers = [self.share(one, STATISTICS) for one in readers if STATISTICS in self.portions.get(one, {})]
        drawn = bool(shown.draw_events(self.dataset, observers))
        if drawn and numbers:
            epsilon, delta = (max(found) for found in zip(*(point.stated for point in numbers), strict=True))
            parts.append(ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon))
        return parts


def _wider(factor: Fraction, used: float) -> Fraction:
    """The factor that is expected to use all; the same where that is so already, or nothing is known."""
    if _ENOUGH <= used <= SPENT or not 0 < used < math.inf:
        return factor
    return min(max(factor * Fraction(_AIM / used), Fraction(1)), _WIDEST)


def _as_pure(request: Request) -> str:
    """What a promise that is a curve is replaced by beside acts: there it buys far less than noise on sums does."""
    asked = request.requirement.guarantee
    if isinstance(asked, PureDP | ApproxDP | Pufferfish):
        return ""
    pure = as_point(asked).describe()
    return (
        f"; beside acts that are no noise on sums {asked.describe()} is kept by the {pure} that implies it, for "
        f"everything that {request.observer} sees; sums alone would have all of it"
    )


def _planned(wanted: Wanted, choice: Choice, share: Point, wider: bool) -> Planned:
    request = wanted.request
    columns = wanted.columns if wanted.target in (None, *wanted.columns) else (*wanted.columns, str(wanted.target))
    note = f"; {choice.prediction.note}" if choice.prediction.note else ""
    note += _as_pure(request)
    return Planned(
        request.name,
        show(request.requirement.name),
        request.observer,
        f"{choice.strategy.name} ({wanted.kind})",
        columns,
        choice.prediction.seen,
        choice.considered,
        request.weight,
        f"within its portion {share.describe()}{' (all of them composed exactly)' if wider else ''} of the requirement "
        f"{choice.reason}{note}",
        request.position.strip(),
        listed=kind_called(wanted.kind).identified,
    )
