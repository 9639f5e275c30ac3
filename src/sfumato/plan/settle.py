"""One dataset's requests settled with one kind of noise: cuts, shares, draws, predictions, promises.

In:   requests of one dataset, the network, a kind of noise.
Out:  Settled, or a PlanError that says which line asks for too much.
Not here: choosing between kinds of noise and other strategies (plan/make.py).
Proof: docs/proofs/cut_placement.md, docs/proofs/allocation.md, docs/proofs/aggregates.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sfumato.core import Guarantee, compose
from sfumato.errors import PlanError, PrivacyParameterError
from sfumato.lang.spec import EVERYONE
from sfumato.lang.term import show
from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import Bounds
from sfumato.network.network import Network, Node
from sfumato.plan.allocation import Budget, Shares, split_budget
from sfumato.plan.difficulty import difficulties_of, floors_of, individuals, limits_of
from sfumato.plan.draw import events_of, refinements
from sfumato.plan.draw_law import NoiseName, draw_law
from sfumato.plan.individual_part import AnyDraw, IndividualPart, SamplePart, Simulated, choose_part, put_together
from sfumato.plan.laws.law import DrawLaw
from sfumato.plan.plan import Considered, Planned, Promise
from sfumato.plan.planned_line import planned_line
from sfumato.plan.readers import read_as_one
from sfumato.plan.request import Request, asked_of, sample_answers, shared_template, template_of
from sfumato.plan.sharing import Sharing, needs_rows
from sfumato.plan.template import Template
from sfumato.plan.together import Bundle, bundles_of
from sfumato.plan.wishes import allowed_of, check_random_answer, wished_of
from sfumato.questions.question import Question

__all__ = ["Settled", "Settling"]

#: Sums are exact whole numbers of a grid of 2^-52; turning them into floats and centring them moves neighbours by less.
ARITHMETIC = 1 + 2.0**-20
#: Squares of errors and their ratios must stay within a float.
_LARGEST = 1e100
#: What rounding up the cost of several sums together may add to their price.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Settled:
    """What the draws of one dataset are, and what everybody will see of them; `noise` is None where kinds are mixed."""

    noise: NoiseName | None
    draws: tuple[AnyDraw, ...]
    planned: tuple[Planned, ...]
    promises: tuple[Promise, ...]
    loss: float
    #: The kind of noise of each observer.
    noises: Mapping[str, NoiseName]


@dataclass(frozen=True)
class Settling:
    """The work on one dataset with one kind of noise."""

    network: Network
    dataset: str
    requests: tuple[Request, ...]
    noise: NoiseName
    size: float
    sizes: Mapping[str, float]
    #: By what budgets of μ², and the squares of those of ε, are multiplied, for observers who have to share them.
    scales: Mapping[str, float] = field(default_factory=dict)
    #: One individual's part by group, what is seen of it and what is known; the same for every kind of noise.
    templates: dict[tuple[int, tuple[str, ...], tuple[str, ...]], Template | None] = field(
        default_factory=dict, repr=False, compare=False
    )
    #: How several institutions draw the noise; None for one party that sees all rows.
    sharing: Sharing | None = None
    _reads: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    simulated: Simulated = field(default_factory=Simulated, init=False, repr=False, compare=False)

    @property
    def law(self) -> DrawLaw:
        """Of all draws made here."""
        return draw_law(self.noise)

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
    def readers(self) -> dict[str, str]:
        """Of every observer the one whose shares it has."""
        return read_as_one(self.network, self.requests)

    @cached_property
    def asked(self) -> dict[str, tuple[Request, ...]]:
        """What every reader asks for, each publication once."""
        found: dict[str, dict[str, Request]] = {}
        for request in self.requests:
            found.setdefault(self.readers[request.observer], {}).setdefault(request.name, request)
        return {reader: tuple(own.values()) for reader, own in found.items()}

    @cached_property
    def budgets(self) -> list[Budget]:
        totals = {observer: self.total_of(observer, guarantee) for observer, guarantee in self.guarantees.items()}
        budgets = [Budget(frozenset({observer}), total) for observer, total in totals.items()]
        # What everyone sees, each observer sees as well, and it counts against each observer's own promise.
        if EVERYONE in totals:
            named = [observer for observer in totals if observer != EVERYONE]
            budgets += [Budget(frozenset({observer, EVERYONE}), totals[observer]) for observer in named]
        groups = self.groups_of_observers
        return budgets + [Budget(group, max(totals[o] for o in group if o != EVERYONE)) for group in groups]

    def total_of(self, observer: str, guarantee: Guarantee) -> float:
        """What an observer's requirement comes to, in the currency of the noise."""
        try:
            scale = self.scales.get(observer, 1.0)
            return self.law.whole(guarantee) * scale ** (1 / self.law.degree)
        except PrivacyParameterError as error:
            raise PlanError(
                f"The requirement towards {observer} cannot be kept by {self.noise} noise: {error}"
            ) from error

    @cached_property
    def groups_of_observers(self) -> list[frozenset[str]]:
        present = set(self.guarantees)
        found = [frozenset(collusion.observers) & present for collusion in self.network.spec.collusions]
        public = present & {EVERYONE}
        return list(dict.fromkeys(group | public for group in found if len(group) > 1))

    @cached_property
    def aggregates(self) -> dict[str, AggregateNode]:
        return {node.name: node for node in self.network.aggregates if node.dataset == self.dataset}

    @cached_property
    def questions(self) -> dict[str, Question]:
        return {name: asked_of(self.aggregates[name]) for name in sorted(self._needed_sums())}

    @cached_property
    def bundles(self) -> dict[str, Bundle]:
        """The sums that are priced together, because no individual is part of all of them at once."""
        if self.network.spec.centres:
            return {}
        seen: dict[str, set[str]] = {}
        for request in self.requests:
            for name in self.reads_of(request) if request.of_sums else ():
                seen.setdefault(name, set()).add(request.observer)
        observers = {name: frozenset(own) for name, own in seen.items()}
        relation = self.network.spec.dataset(self.dataset).adjacency.relation
        nodes = [self.aggregates[name] for name in self.questions if name in observers]
        groups = [group for group in self.network.groups if group.dataset == self.dataset]
        return bundles_of(nodes, groups, self.questions, observers, self.noise, relation == "replace-one")

    def block_of(self, name: str) -> tuple[str, float]:
        """The block of the budget a sum belongs to, and how much more the block costs than the sum alone."""
        bundle = self.bundles.get(name)
        return (name, 1.0) if bundle is None else (bundle.name, bundle.price)

    def _needed_sums(self) -> set[str]:
        needed: set[str] = set()
        for request in self.requests:
            if request.of_sums:
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
        return self.sizes[name] if name in self.sizes else self.size * self.assumed_share(name)

    def assumed_share(self, name: str) -> float:
        """Contributions a person is taken to make."""
        return self.aggregates[name].assumed_share

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
        """For every reader its cut in every group of individuals."""
        found: dict[str, list[IndividualPart]] = {}
        for reader, own in self.asked.items():
            asked = [request for request in own if request.of_individuals]
            if not asked:
                continue
            self._check_replaced(asked[0])
            if self.sharing is not None:
                raise needs_rows(asked[0])
            for index, group in enumerate(self.network.groups):
                if group.dataset == self.dataset:
                    parts = [*self._numbers(index, asked), *self._answers(index, asked)]
                    if parts:
                        found.setdefault(reader, []).append(put_together(parts, self.noise))
        return found

    def _weights(self, requests: Sequence[Request]) -> dict[str, float]:
        return {
            name: request.weight / len(request.nodes) / self.unit_of(name) ** 2
            for request in requests
            for name in request.nodes
        }

    def _numbers(self, index: int, asked: Sequence[Request]) -> list[IndividualPart]:
        """The numbers an observer sees of the individuals of one group."""
        own = [request for request in asked if not request.sampled]
        weights = self._weights(own)
        observer = asked[0].observer
        template = self._template(index, weights, observer)
        if template is None:
            return []
        budget = self.total_of(observer, self.guarantees[observer])
        here = {name: weight for name, weight in weights.items() if name in template.order}
        wished, allowed = wished_of(own), allowed_of(own)
        try:
            return [choose_part(index, template, here, budget, self.noise, wished & allowed or allowed)]
        except PlanError:
            if not wished:
                raise
        return [choose_part(index, template, here, budget, self.noise, allowed)]

    def _answers(self, index: int, asked: Sequence[Request]) -> list[IndividualPart]:
        """The random answers an observer sees of the individuals of one group: one of each variable, under whatever
        names it is shown."""
        parts: dict[str, IndividualPart] = {}
        group = self.network.groups[index]
        weights: dict[str, float] = {}
        for request in asked:
            for name in request.nodes if request.sampled else ():
                node = group.node(name)
                if node is None:
                    continue
                check_random_answer(request, name)
                weights[name] = weights.get(name, 0.0) + request.weight
                if not self.law.pure:
                    raise PlanError(f"{request.position}{name} is a random answer, whose cost is counted as a pure ε.")
                template, candidate = sample_answers(self.network, group, node)
                own = (
                    "no noise is needed beyond its own"
                    if candidate.own_loss == 0
                    else f"its own ε is {candidate.own_loss:.4g}"
                ) + candidate.rounding
                considered = (Considered("random answer", candidate.error(1.0), f"chosen; {own}", (name,)),)
                parts[name] = SamplePart(index, template, {name: weights[name]}, considered, candidate)
        return list(parts.values())

    def _check_replaced(self, request: Request) -> None:
        if request.adjacency.relation != "replace-one":
            raise PlanError(
                f"{request.position}{request.name} shows one value per {request.adjacency.unit}, and so who is in the "
                "data: under add/remove nobody may learn that. Publish an aggregate, or leave adjacency(…, "
                "add_remove) out. Nothing was planned and nothing was spent."
            )

    def reads_of(self, request: Request) -> dict[str, float]:
        key = request.observer, request.name
        if key not in self._reads:
            self._reads[key] = self._find_reads(request)
        return self._reads[key]

    def _find_reads(self, request: Request) -> dict[str, float]:
        """For every sum behind a request what it adds, per unit of variance, to its mean relative squared error.

        The mean over its numbers: a publication counts once, however many numbers it shows.
        """
        found: dict[str, float] = {}
        pure, numbers = self.law.pure, self.numbers_of(request)
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

    def numbers_of(self, request: Request) -> int:
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

    # ── the result ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _shares(self) -> Shares:
        """Of every observer, by block: what its reader was given, of what it asks for itself."""
        difficulties = difficulties_of(self)
        if not difficulties:
            return {}
        budgets = [Budget(frozenset(map(self.readers.__getitem__, one.observers)), one.total) for one in self.budgets]
        limits, floors = limits_of(self), floors_of(self, difficulties)
        found = split_budget(difficulties, budgets, self.law.degree, limits, floors)
        return {
            observer: self._own(observer, found[reader]) for observer, reader in self.readers.items() if reader in found
        }

    def _own(self, observer: str, shares: dict[str, float]) -> dict[str, float]:
        """Of a reader's shares those of what this observer asks for."""
        mine = [request for request in self.requests if request.observer == observer]
        if any(request.of_individuals for request in mine):  # then all who read as one ask for the same
            return shares
        blocks = {self.block_of(name)[0] for request in mine if request.of_sums for name in self.reads_of(request)}
        return {block: share for block, share in shares.items() if block in blocks}

    def settle(self) -> Settled:
        shares = self._shares()
        draws = (*self._sum_draws(shares), *self._individual_draws(shares))
        planned = tuple(planned_line(self, request, draws) for request in self.requests)
        promises = self._promises(draws)
        loss = math.fsum(one.weight * self.loss_of(one) for one in planned)
        return Settled(self.noise, draws, planned, promises, loss, dict.fromkeys(self.guarantees, self.noise))

    def _sum_draws(self, shares: Mapping[str, Mapping[str, float]]) -> Iterable[AnyDraw]:
        adjacency = self.network.spec.dataset(self.dataset).adjacency
        for name, question in self.questions.items():
            block, price = self.block_of(name)
            # Rounded down: what the sums of a block cost together is computed again from their draws.
            own = {
                o: blocks[block] / price * (1 - _ROUNDING * (price != 1))
                for o, blocks in shares.items()
                if block in blocks
            }
            if own and not question.is_public:
                sensitivity = self.law.sensitivity(question.moves()) * ARITHMETIC
                size = question.drawn_size(self.law.pure)
                facts = name, self.noise, sensitivity, size, own, adjacency, self.dataset
                found = refinements(*facts, sharing=self.sharing)
                bundle = self.bundles.get(name)
                apart = bundle.apart(name, ARITHMETIC) if bundle is not None else None
                yield from (replace(draw, apart=apart) for draw in found)

    def _individual_draws(self, shares: Mapping[str, Mapping[str, float]]) -> Iterable[AnyDraw]:
        adjacency = self.network.spec.dataset(self.dataset).adjacency
        together: dict[tuple[object, ...], tuple[IndividualPart, dict[str, float]]] = {}
        for observer, reader in self.readers.items():
            parts = self.individual_parts.get(reader, ())
            if not any(part.template.private for part in parts):
                continue  # nobody can change what is shown
            share = shares[observer][individuals(parts, reader)]
            for part in parts:
                together.setdefault(part.key(reader), (part, {}))[1][observer] = share
        for part, own in together.values():
            yield from part.draws(own, adjacency, self.dataset)

    def _promises(self, draws: Sequence[AnyDraw]) -> tuple[Promise, ...]:
        promises = []
        for observer, asked in self.guarantees.items():
            name = next(show(r.requirement.name) for r in self.requests if r.observer == observer)
            promises.append(self._promise((observer,), name, asked, draws))
        for group in self.groups_of_observers:
            loosest = max(group - {EVERYONE}, key=lambda observer: self.total_of(observer, self.guarantees[observer]))
            name = f"collude: no more than {loosest} alone"
            promises.append(self._promise(tuple(sorted(group)), name, self.guarantees[loosest], draws))
        return tuple(promises)

    def _template(self, index: int, seen: Mapping[str, float], observer: str) -> Template | None:
        group = self.network.groups[index]
        # Who sees y and knows x has another template than who sees y and x.
        key = (index, tuple(seen), tuple(sorted(group.known_to(observer))))
        if key not in self.templates:
            self.templates[key] = template_of(self.network, group, seen, observer)
        return self.templates[key]

    def _costs(self, observers: tuple[str, ...], draws: Sequence[AnyDraw]) -> list[Guarantee]:
        """What the draws cost that these observers see: of the individuals of each group, or of all."""
        mine = [draw for draw in draws if set(draw.observers) & {*observers, EVERYONE}]
        kept = []
        for group in sorted({draw.group for draw in draws} - {None}, key=str) or [None]:
            seen = [draw for draw in mine if draw.group in (None, group)]
            kept += [self.law.composed(compose(events_of(seen)))] if seen else []
        return kept

    def _promise(self, observers: tuple[str, ...], name: str, asked: Guarantee, draws: Sequence[AnyDraw]) -> Promise:
        """The promise, re-derived from the draws alone: the planner does not trust itself."""
        kept = self._costs(observers, draws)
        for cost in kept:
            if cost.implies(asked) is not True:
                raise PlanError(
                    f"The plan for {' and '.join(observers)} costs {cost.describe()}, more than {asked.describe()}. "
                    "This is a mistake of the planner; nothing was spent."
                )
        worst = max(kept, key=lambda cost: cost.epsilon(1e-6), default=asked)
        return Promise(observers, self.dataset, name, asked, worst)
