"""One dataset's requests settled with one kind of noise: cuts, shares, draws, predictions, promises.

In:   requests of one dataset, the network, a kind of noise.
Out:  Settled, or a PlanError that says which line asks for too much.
Not here: choosing between kinds of noise and other strategies (plan/make.py).
Proof: docs/proofs/cut_placement.md, docs/proofs/allocation.md, docs/proofs/aggregates.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sfumato.core import ApproxDP, Guarantee, PureDP, compose
from sfumato.errors import PlanError, PrivacyParameterError
from sfumato.lang.spec import EVERYONE
from sfumato.lang.term import show
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.gaussian import largest_mu
from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import Bounds
from sfumato.network.network import Network, Node
from sfumato.plan.allocation import Budget, split_budget
from sfumato.plan.draw import Noise, refinements, sensitivity_of
from sfumato.plan.individual_part import (
    AnyDraw,
    IndividualPart,
    SamplePart,
    Simulated,
    choose_part,
    finite_difficulty,
    put_together,
)
from sfumato.plan.plan import Considered, Planned, Promise
from sfumato.plan.predict import Predicting, seen_of_one, variance_of
from sfumato.plan.request import Request, asked_of, sample_answers, shared_template, template_of
from sfumato.plan.sharing import Sharing, because, needs_rows
from sfumato.plan.template import Template
from sfumato.plan.wishes import allowed_of, check_central, check_random_answer, said_of_wishes, wished_of
from sfumato.questions.question import Question

__all__ = ["Settled", "Settling"]

#: Sums are exact whole numbers of a grid of 2^-52; turning them into floats and centring them moves neighbours by less.
ARITHMETIC = 1 + 2.0**-20
#: Squares of errors and their ratios must stay within a float.
#: What is said of a publication that needs no noise.
_EXACT, _PUBLIC = "exact: nobody can change it", "its value is public"
_LARGEST = 1e100
_INDIVIDUALS = "individuals "
#: How much noisier than in an even split a publication may become for the sake of the others.
FAIR = 1.2


@dataclass(frozen=True)
class Settled:
    """What the draws of one dataset are, and what everybody will see of them."""

    noise: Noise | Literal["side by side"]
    draws: tuple[AnyDraw, ...]
    planned: tuple[Planned, ...]
    promises: tuple[Promise, ...]
    loss: float
    #: The kind of noise of each observer.
    noises: Mapping[str, Noise]


@dataclass(frozen=True)
class Settling:
    """The work on one dataset with one kind of noise."""

    network: Network
    dataset: str
    requests: tuple[Request, ...]
    noise: Noise
    size: float
    sizes: Mapping[str, float]
    #: By what budgets of μ², and the squares of those of ε, are multiplied, for observers who have to share them.
    scales: Mapping[str, float] = field(default_factory=dict)
    #: One individual's part by group and what is seen of it; the same for every kind of noise.
    templates: dict[tuple[int, tuple[str, ...]], Template | None] = field(
        default_factory=dict, repr=False, compare=False
    )
    #: How several institutions draw the noise; None for one party that sees all rows.
    sharing: Sharing | None = None
    _reads: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _simulated: Simulated = field(default_factory=Simulated, init=False, repr=False, compare=False)

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def guarantees(self) -> dict[str, Guarantee]:
        """One requirement per observer."""
        found: dict[str, tuple[str, Guarantee]] = {}
        for request in self.requests:
            name = show(request.requirement.name)
            known = found.setdefault(request.observer, (name, request.requirement.guarantee))
            if known[0] != name:
                raise PlanError(
                    f"{request.position}{request.observer} has two requirements on {self.dataset}, {known[0]} and "
                    f"{name}, and sees what both publish. Put all of it under one requirement. Nothing was spent."
                )
        return {observer: guarantee for observer, (_, guarantee) in found.items()}

    @cached_property
    def budgets(self) -> list[Budget]:
        totals = {observer: self._total(observer, guarantee) for observer, guarantee in self.guarantees.items()}
        budgets = [Budget(frozenset({observer}), total) for observer, total in totals.items()]
        # What everyone sees, each observer sees as well, and it counts against each observer's own promise.
        if EVERYONE in totals:
            named = [observer for observer in totals if observer != EVERYONE]
            budgets += [Budget(frozenset({observer, EVERYONE}), totals[observer]) for observer in named]
        groups = self.groups_of_observers
        return budgets + [Budget(group, max(totals[o] for o in group if o != EVERYONE)) for group in groups]

    def _total(self, observer: str, guarantee: Guarantee) -> float:
        try:
            scale = self.scales.get(observer, 1.0)
            if self.noise == "gaussian":
                return largest_mu(guarantee) ** 2 * scale
            # A δ would allow a hair more than ε; whoever checks a sum of Laplace acts should only have to add.
            stated = isinstance(guarantee, PureDP | ApproxDP)
            return (guarantee.eps if stated else largest_pure_epsilon(guarantee)) * math.sqrt(scale)
        except PrivacyParameterError as error:
            raise PlanError(
                f"The requirement towards {observer} cannot be kept by {self.noise} noise: {error}"
            ) from error

    @cached_property
    def groups_of_observers(self) -> list[frozenset[str]]:
        present = set(self.guarantees)
        found = [frozenset(collusion.observers) & present for collusion in self.network.spec.collusions]
        public = present & {EVERYONE}
        return [group | public for group in found if len(group) > 1]

    @cached_property
    def aggregates(self) -> dict[str, AggregateNode]:
        return {node.name: node for node in self.network.aggregates if node.dataset == self.dataset}

    @cached_property
    def questions(self) -> dict[str, Question]:
        return {name: asked_of(self.aggregates[name]) for name in sorted(self._needed_sums())}

    def _needed_sums(self) -> set[str]:
        needed: set[str] = set()
        for request in self.requests:
            if request.level == "aggregate":
                for name in request.nodes:
                    needed |= self.sums_behind(name, request)
        return needed

    def sums_behind(self, name: str, request: Request) -> set[str]:
        """The aggregates a node of nobody is computed from."""
        shared = {node.name: node for node in self.network.shared}
        others = {node.name: node.dataset for node in self.network.aggregates if node.dataset != self.dataset}
        found, waiting, met = set(), [name], set()
        while waiting:
            current = waiting.pop()
            if current in self.aggregates:
                found.add(current)
            elif current in others:
                raise PlanError(
                    f"{request.position}{request.name} rests on {current}, which is about individuals of "
                    f"{others[current]}: a requirement on {self.dataset} does not protect them. Publish it under a "
                    f"requirement on {others[current]}. Nothing was planned and nothing was spent."
                )
            elif current in shared and current not in met:
                met.add(current)
                self._check_owned(shared[current], request)
                waiting += shared[current].inputs
        return found

    def _check_owned(self, node: Node, request: Request) -> None:
        if node.source is not None and not node.public:
            raise PlanError(
                f"{request.position}{request.name} shows {node.name}, a cell of the private table {node.source.table} "
                f"that belongs to no individual of {self.dataset}: no noise protects it. Declare "
                f"public({node.source.table}), or derive it from individuals by an aggregate. Nothing was spent."
            )

    def count_of(self, name: str) -> float:
        """How many contributions an aggregate is expected to have: given, or assumed; for predictions only."""
        node = self.aggregates[name]
        return self.sizes.get(name, self.size if node.question.everybody else self.size / 2)

    def unit_of(self, name: str) -> float:
        """The scale on which errors of a node are compared with those of others: the width of what it can be.

        A histogram's cells and a count are compared with the number of individuals, a sum with the width of the sum.
        """
        unit = self._unit(name)
        if unit < 1 / _LARGEST:
            raise PlanError(
                f"{name} is the same number whatever the data are, by the declared ranges and formulas: there is "
                "nothing to publish. Correct its formula, or take the publication out. Nothing was planned and nothing "
                "was spent."
            )
        if _LARGEST < unit < math.inf:  # what has no bound at all is refused by name
            raise PlanError(
                f"{name} may be as large as {unit:.3g} by the declared ranges, and nothing beyond {_LARGEST:g} is "
                "planned. Declare narrower ranges, or keep what it is computed from small with clip(X, Low, High). "
                "Nothing was planned and nothing was spent."
            )
        return unit

    def _unit(self, name: str) -> float:
        if name in self.aggregates:
            return self.aggregates[name].question.scale(self.count_of(name), self.size)
        widths = [node.bounds.width for node in self.network.variants(name)]
        finite = [width for width in widths if math.isfinite(width) and width > 0]
        return max(finite, default=1.0)

    # ── difficulty ───────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def individual_parts(self) -> dict[str, list[IndividualPart]]:
        """For every observer its cut in every group of individuals."""
        found: dict[str, list[IndividualPart]] = {}
        for observer in self.guarantees:
            asked = [r for r in self.requests if r.observer == observer and r.level == "individual"]
            if not asked:
                continue
            self._check_replaced(asked[0])
            if self.sharing is not None:
                raise needs_rows(asked[0])
            for index, group in enumerate(self.network.groups):
                if group.dataset == self.dataset:
                    parts = [*self._numbers(index, asked), *self._answers(index, asked)]
                    if parts:
                        found.setdefault(observer, []).append(put_together(parts, self.noise))
        return found

    def _numbers(self, index: int, asked: Sequence[Request]) -> list[IndividualPart]:
        """The numbers an observer sees of the individuals of one group."""
        own = [request for request in asked if not request.sampled]
        weights = {
            name: request.weight / len(request.nodes) / self.unit_of(name) ** 2
            for request in own
            for name in request.nodes
        }
        key = (index, tuple(weights))
        if key not in self.templates:
            self.templates[key] = template_of(self.network, self.network.groups[index], weights)
        template = self.templates[key]
        if template is None:
            return []
        observer = asked[0].observer
        budget = self._total(observer, self.guarantees[observer])
        here = {name: weight for name, weight in weights.items() if name in template.order}
        wished, allowed = wished_of(own), allowed_of(own)
        try:
            return [choose_part(index, template, here, budget, self.noise, wished & allowed or allowed)]
        except PlanError:
            if not wished:
                raise
        return [choose_part(index, template, here, budget, self.noise, allowed)]

    def _answers(self, index: int, asked: Sequence[Request]) -> list[IndividualPart]:
        """The random answers an observer sees of the individuals of one group."""
        parts: list[IndividualPart] = []
        group = self.network.groups[index]
        for request in asked:
            for name in request.nodes if request.sampled else ():
                node = group.node(name)
                if node is None:
                    continue
                check_random_answer(request, name)
                if self.noise != "laplace":
                    raise PlanError(f"{request.position}{name} is a random answer, whose cost is counted as a pure ε.")
                template, candidate = sample_answers(self.network, group, node)
                own = (
                    "no noise is needed beyond its own"
                    if candidate.own_loss == 0
                    else f"its own ε is {candidate.own_loss:.4g}"
                ) + candidate.rounding
                considered = (Considered("random answer", candidate.error(1.0), f"chosen; {own}", (name,)),)
                parts.append(SamplePart(index, template, {name: request.weight}, considered, candidate))
        return parts

    def _check_replaced(self, request: Request) -> None:
        if request.adjacency.relation != "replace-one":
            raise PlanError(
                f"{request.position}{request.name} shows one value per {request.adjacency.unit}, and so who is in the "
                "data: under add/remove nobody may learn that. Publish an aggregate, or leave adjacency(…, "
                "add_remove) out. Nothing was planned and nothing was spent."
            )

    def _reads_of(self, request: Request) -> dict[str, float]:
        key = request.observer, request.name
        if key not in self._reads:
            self._reads[key] = self._find_reads(request)
        return self._reads[key]

    def _find_reads(self, request: Request) -> dict[str, float]:
        """For every sum behind a request what it adds, per unit of variance, to its mean relative squared error.

        The mean over its numbers: a publication counts once, however many numbers it shows.
        """
        found: dict[str, float] = {}
        pure, numbers = self.noise == "laplace", self._numbers_of(request)
        for name in request.nodes:
            squared = self.unit_of(name) ** 2 * numbers
            if name in self.aggregates:
                influence = self.questions[name].influence(self.count_of(name), pure)
                found[name] = found.get(name, 0.0) + influence / squared
                continue
            slopes = self.template_above(name).squared_slopes([name])
            for behind in self.sums_behind(name, request):
                slope = slopes.get(behind, {}).get(name, 0.0)
                slope = slope if math.isfinite(slope) else 1.0
                influence = max(slope, 1e-9) * self.questions[behind].influence(self.count_of(behind), pure)
                found[behind] = found.get(behind, 0.0) + influence / squared
        return found

    def _numbers_of(self, request: Request) -> int:
        return sum(self.questions[name].size if name in self.questions else 1 for name in request.nodes)

    def loss_of(self, planned: Planned) -> float:
        """Mean squared error of a publication's numbers relative to their scale."""
        numbers = sum(one.size for one in planned.seen)
        return math.fsum(one.error / self.unit_of(one.node) ** 2 for one in planned.seen) / max(numbers, 1)

    def template_above(self, name: str) -> Template:
        sums = {other: self._sum_bounds(other) for other in self.aggregates}
        return shared_template(self.network, [name], sums)

    def _sum_bounds(self, name: str) -> Bounds:
        return Bounds(
            *self.aggregates[name].question.bounds(self.count_of(name)), self.aggregates[name].unbounded or None
        )

    def _difficulties(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {observer: {} for observer in self.guarantees}
        for request in self.requests:
            if request.level != "aggregate":
                continue
            for name, influence in self._reads_of(request).items():
                question = self.questions[name]
                if question.is_public:
                    continue
                moves = sensitivity_of(self.noise, question.moves())
                each = moves**2 if self.noise == "gaussian" else 2 * moves**2
                own = found[request.observer]
                own[name] = own.get(name, 0.0) + request.weight * influence * each
        for observer, parts in self.individual_parts.items():
            if any(part.template.private for part in parts):
                found[observer][_individuals(parts, observer)] = max(map(finite_difficulty, parts))
        return {observer: blocks for observer, blocks in found.items() if blocks}

    def _limits(self) -> dict[str, dict[str, float]]:
        """The relative squared error of no answer at all: that of the middle of the range, 1/12 for every number."""
        found: dict[str, dict[str, float]] = {observer: {} for observer in self.guarantees}
        for request in self.requests:
            own = found[request.observer]
            if request.level == "aggregate":
                for name in self._reads_of(request):
                    part = self.questions[name].size / self._numbers_of(request) if name in request.nodes else 1.0
                    own[name] = own.get(name, 0.0) + request.weight * part / 12
        for observer, parts in self.individual_parts.items():
            weight = max(math.fsum(w * self.unit_of(n) ** 2 for n, w in part.weights.items()) for part in parts)
            found[observer][_individuals(parts, observer)] = weight / 12
        return found

    def _floors(self, difficulties: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """What each block gets at least, as a part of the budget: no publication becomes more than 1.2 times as noisy
        as in an even split, in which publications of larger weight have the larger part."""
        power = 1 if self.noise == "gaussian" else 2
        least = FAIR ** (-2 / power)
        found: dict[str, dict[str, float]] = {}
        for observer, blocks in difficulties.items():
            behind = self._blocks_by_publication(observer, blocks)
            parts = {name: weight ** (1 / (power + 1)) for name, (weight, _) in behind.items()}
            own = found.setdefault(observer, dict.fromkeys(blocks, 0.0))
            for name, (_, needed) in behind.items():
                roots = {block: blocks[block] ** (1 / (power + 1)) for block in needed}
                share = least * parts[name] / math.fsum(parts.values())
                for block, root in roots.items():
                    own[block] = max(own[block], share * root / math.fsum(roots.values()))
        return found

    def _blocks_by_publication(self, observer: str, blocks: Mapping[str, float]) -> dict[str, tuple[float, list[str]]]:
        found: dict[str, tuple[float, list[str]]] = {}
        for request in self.requests:
            if request.observer != observer:
                continue
            if request.level == "aggregate":
                needed = [name for name in self._reads_of(request) if name in blocks]
            else:
                needed = [name for name in blocks if name.startswith(_INDIVIDUALS)]
            if needed:
                found[request.name] = (request.weight, needed)
        return found

    # ── the result ───────────────────────────────────────────────────────────────────────────────────────────────────

    def settle(self) -> Settled:
        difficulties = self._difficulties()
        currency = "mu²" if self.noise == "gaussian" else "epsilon"
        limits, floors = (self._limits(), self._floors(difficulties)) if difficulties else ({}, {})
        shares = split_budget(difficulties, self.budgets, currency, limits, floors) if difficulties else {}
        draws = (*self._sum_draws(shares), *self._individual_draws(shares))
        planned = tuple(self._planned(request, draws) for request in self.requests)
        promises = self._promises(draws)
        loss = math.fsum(one.weight * self.loss_of(one) for one in planned)
        return Settled(self.noise, draws, planned, promises, loss, dict.fromkeys(self.guarantees, self.noise))

    def _sum_draws(self, shares: Mapping[str, Mapping[str, float]]) -> Iterable[AnyDraw]:
        adjacency = self.network.spec.dataset(self.dataset).adjacency
        for name, question in self.questions.items():
            own = {observer: blocks[name] for observer, blocks in shares.items() if name in blocks}
            if own:
                sensitivity = sensitivity_of(self.noise, question.moves()) * ARITHMETIC
                size = question.drawn_size(self.noise == "laplace")
                facts = name, self.noise, sensitivity, size, own, adjacency, self.dataset
                yield from refinements(*facts, sharing=self.sharing)

    def _individual_draws(self, shares: Mapping[str, Mapping[str, float]]) -> Iterable[AnyDraw]:
        adjacency = self.network.spec.dataset(self.dataset).adjacency
        together: dict[tuple[object, ...], tuple[IndividualPart, dict[str, float]]] = {}
        for observer, parts in self.individual_parts.items():
            if not any(part.template.private for part in parts):
                continue  # nobody can change what is shown
            share = shares[observer][_individuals(parts, observer)]
            for part in parts:
                together.setdefault(part.key(observer), (part, {}))[1][observer] = share
        for part, own in together.values():
            yield from part.draws(own, adjacency, self.dataset)

    def _promises(self, draws: Sequence[AnyDraw]) -> tuple[Promise, ...]:
        promises = []
        for observer, asked in self.guarantees.items():
            name = next(show(r.requirement.name) for r in self.requests if r.observer == observer)
            promises.append(self._promise((observer,), name, asked, draws))
        for group in self.groups_of_observers:
            loosest = max(group - {EVERYONE}, key=lambda observer: self._total(observer, self.guarantees[observer]))
            name = f"collude: no more than {loosest} alone"
            promises.append(self._promise(tuple(sorted(group)), name, self.guarantees[loosest], draws))
        return tuple(promises)

    def _promise(self, observers: tuple[str, ...], name: str, asked: Guarantee, draws: Sequence[AnyDraw]) -> Promise:
        """The promise, re-derived from the draws alone: the planner does not trust itself."""
        kept = []
        groups = {draw.group for draw in draws if draw.group is not None} or {None}
        for group in sorted(groups, key=str):
            seen = [d for d in draws if set(d.observers) & {*observers, EVERYONE} and d.group in (None, group)]
            if seen:
                cost = compose([draw.event() for draw in seen])
                # A sum of ε decides at once; the exact profile of many Laplace acts would take a second to compute.
                pure = self.noise == "laplace"
                kept.append(PureDP(cost.epsilon(0.0), adjacency=cost.adjacency) if pure else cost)
        for cost in kept:
            if cost.implies(asked) is not True:
                raise PlanError(
                    f"The plan for {' and '.join(observers)} costs {cost.describe()}, more than {asked.describe()}. "
                    "This is a mistake of the planner; nothing was spent."
                )
        worst = max(kept, key=lambda cost: cost.epsilon(1e-6), default=asked)
        return Promise(observers, self.dataset, name, asked, worst)

    # ── predictions ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _planned(self, request: Request, draws: Sequence[AnyDraw]) -> Planned:
        mine = [draw for draw in draws if request.observer in draw.observers]
        make = self._planned_individual if request.level == "individual" else self._planned_sums
        return make(request, mine)

    def _planned_individual(self, request: Request, draws: Sequence[AnyDraw]) -> Planned:
        parts = [p for p in self.individual_parts[request.observer] if set(request.nodes) & set(p.weights)]
        seen = []
        for part in parts:
            summaries = self._simulated.of(request.observer, part, draws)
            note = self._structure(part) if len(parts) > 1 else ""
            names = [name for name in request.nodes if name in part.weights]
            seen += [seen_of_one(part, name, summaries[name], draws, note) for name in names]
        first = parts[0]
        budget = self._total(request.observer, self.guarantees[request.observer])
        reason = (
            f"of the ways simulated at the whole budget ({'μ²' if self.noise == 'gaussian' else 'ε'} = {budget:.4g}) "
            "this one has the least weighted error"
        )
        asked = [r for r in self.requests if r.observer == request.observer and r.level == "individual"]
        reason += said_of_wishes(asked, {part.strategy for part in parts})
        changing = any(part.template.private for part in parts)
        return Planned(
            request.name,
            show(request.requirement.name),
            request.observer,
            f"{first.strategy} ({self.noise})" if changing else _EXACT,
            first.cut if changing else (),
            tuple(seen),
            first.alternatives if changing else (),
            request.weight,
            reason if changing else _PUBLIC,
            request.position.strip(),
            listed=True,
        )

    def _structure(self, part: IndividualPart) -> str:
        facts = self.network.groups[part.group].structure
        return (
            f"For individuals with {', '.join(map(show, facts))}."
            if facts
            else "For individuals of no listed structure."
        )

    def _planned_sums(self, request: Request, draws: Sequence[AnyDraw]) -> Planned:
        seen = [Predicting(self, request, tuple(draws)).seen(name) for name in request.nodes]
        behind = sorted({other for name in request.nodes for other in self.sums_behind(name, request)})
        drawn = tuple(name for name in behind if not self.questions[name].is_public)
        if drawn and self.sharing is None:
            check_central(request)
        way = self.sharing.words if self.sharing is not None else "central noise"
        others = [Considered(way, math.fsum(one.error for one in seen), because("chosen", self.sharing), drawn)]
        local = self._local_error(request, draws)
        if local is not None:
            others.append(
                Considered("local noise", local, "every individual's own value gets noise before it is summed")
            )
        strategy = f"{way} ({self.noise})" if drawn else _EXACT
        reason = because("one act on the sum needs less noise than one on every individual", self.sharing)
        return Planned(
            request.name,
            show(request.requirement.name),
            request.observer,
            strategy,
            drawn,
            tuple(seen),
            tuple(others),
            request.weight,
            reason if drawn else _PUBLIC,
            request.position.strip(),
        )

    def _local_error(self, request: Request, draws: Sequence[AnyDraw]) -> float | None:
        """Noise of the same share on every individual's own contribution: n times the variance of one."""
        total = 0.0
        for name in request.nodes:
            if name not in self.aggregates or self.questions[name].is_public:
                return None
            question, count = self.questions[name], self.count_of(name)
            total += question.error(variance_of(name, draws) * count, count, self.noise == "laplace")
        return total


def _individuals(parts: Sequence[IndividualPart], observer: str) -> str:
    """The name of the block that stands for one value per individual; equal for observers who can share draws."""
    return _INDIVIDUALS + repr(sorted((part.key(observer) for part in parts), key=repr))
