"""What one observer sees of a plan's draws: values, each with its own standard error and 95 % interval.

In:   a Plan, its network evaluated, the draws.
Out:  tables: of aggregates one row per number, of individuals one row each.
Not here: charging and writing (run/study.py), the errors of a number (questions/intervals.py), rows
(run/view_rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.calendar import told
from sfumato.errors import InputError, PlanError
from sfumato.lang.term import show
from sfumato.network.aggregate import AggregateNode, tables_together
from sfumato.network.bounds import Bounds
from sfumato.network.evaluate import ID, Values
from sfumato.network.network import Network
from sfumato.plan.cuts import is_cut
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.draw import Draw, law_of
from sfumato.plan.individual_part import AnyDraw
from sfumato.plan.linear.individual import LinearDraw
from sfumato.plan.plan import Plan, Planned
from sfumato.plan.request import Request, asked_of, shared_template, template_of
from sfumato.plan.template import Template
from sfumato.questions.consistency import nonnegative_figures
from sfumato.questions.intervals import Figure, NoiseLaw, figure_of
from sfumato.questions.question import Question
from sfumato.run.study_files import Published
from sfumato.run.view_rows import RowFigures, linear_rows, template_rows

__all__ = ["COLUMNS", "Draws", "View", "tidy_rows", "tidy_table", "whole_numbers"]

#: Of every table of aggregates; the variables of cells and groups stand before the value.
COLUMNS = ("node", "part", "value", "standard_error", "low", "high")
#: Bounds of what is not noisy any more: published sums are read as they are.
_ANYTHING = Bounds.unbounded("a published sum")


def tidy_rows(
    name: str, parts: Iterable[str], labels: Iterable[Mapping[str, Any]], figures: Iterable[Figure], unit: str = ""
) -> list[dict[str, Any]]:
    """One line a published number of a node; where it stands for a day or a time of day, these beside it."""
    found = []
    for part, label, figure in zip(parts, labels, figures, strict=True):
        numbers = (figure.value, figure.standard_error, figure.low, figure.high)
        days = told(figure.value, figure.low, figure.high, unit)
        found.append({"node": name, "part": part, **label, **days, **dict(zip(COLUMNS[2:], numbers, strict=True))})
    return found


def tidy_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """One column a variable, between the name and the number."""
    by = dict.fromkeys(column for row in rows for column in row if column not in COLUMNS)
    return pa.table({column: [row.get(column) for row in rows] for column in (*COLUMNS[:2], *by, *COLUMNS[2:])})


def whole_numbers(table: pa.Table) -> pa.Table:
    """A table of aggregates with every number rounded, the ends of intervals outwards.

    >>> row = {"node": "m", "part": "", "value": 2.4, "standard_error": 1.0, "low": 0.4, "high": 4.4}
    >>> whole_numbers(tidy_table([row])).to_pylist()[0]["value"], whole_numbers(tidy_table([row]))["high"][0].as_py()
    (2, 5)
    """
    rounded = {"value": np.rint, "low": np.floor, "high": np.ceil}
    for name, way in rounded.items():
        numbers = way(table[name].to_numpy())
        kind = pa.int64() if np.all(np.abs(numbers) < 2.0**62) else pa.float64()
        table = table.set_column(table.column_names.index(name), name, pa.array(numbers.tolist()).cast(kind))
    errors = np.sqrt(table["standard_error"].to_numpy() ** 2 + 1 / 12)
    return table.set_column(table.column_names.index("standard_error"), "standard_error", pa.array(errors))


@dataclass
class Draws:
    """Every act of the plan, done once: observers who share a draw are shown the same noise."""

    random_state: int | None
    done: dict[AnyDraw, np.ndarray] = field(default_factory=dict)
    #: Numbers that nobody can move, where they were added up elsewhere.
    public: dict[str, np.ndarray] = field(default_factory=dict)

    def __call__(self, draw: AnyDraw, exact: np.ndarray) -> np.ndarray:
        if draw not in self.done:
            seed = None if self.random_state is None else self.random_state + len(self.done)
            self.done[draw] = draw.drawn(exact, seed) if isinstance(draw, Draw) else draw.mechanism(seed)(exact)
        return self.done[draw]

    def combined(self, draws: Sequence[Draw | LinearDraw], exact: np.ndarray) -> np.ndarray:
        """Versions of one node put together by precision."""
        weights = [1 / draw.variance for draw in draws]
        total = np.zeros(np.shape(exact))
        for weight, draw in zip(weights, draws, strict=True):
            total += weight * self(draw, exact)
        return total / math.fsum(weights)


@dataclass(frozen=True)
class _Noisy:
    """An aggregate as an observer has it: the drawn numbers, the law of the noise in each, how they are read."""

    question: Question
    numbers: np.ndarray
    law: NoiseLaw
    count: float | None
    pure: bool

    def figures(self) -> tuple[Figure, ...]:
        return self.question.figures(self.numbers, self.law, self.count, self.pure)

    @property
    def read(self) -> np.ndarray:
        """The drawn numbers that a formula reads of it."""
        return self.numbers[: self.question.reads]

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of it but its range."""
        return self.law.deviation > 0 and self.question.is_open(self.numbers, self.law)

    def first(self, rows: np.ndarray) -> np.ndarray:
        """The first published number for each row of such numbers."""
        return self.question.number(rows, self.count, self.pure, self.is_open)


@dataclass(frozen=True)
class View:
    """What one observer sees: the network evaluated with this observer's draws in place of what they cover."""

    plan: Plan
    network: Network
    values: Values
    drawn: Draws
    observer: str

    def published(self, planned: Planned, request: Request) -> Published:
        table = self._individuals(planned) if request.of_individuals else self._aggregates(planned)
        return Published(planned.name, planned.observer, request.level, table)

    def _mine(self, group: int | None) -> list[AnyDraw]:
        return [draw for draw in self.plan.draws if draw.group == group and self.observer in draw.observers]

    def _draws(self, node: str, group: int | None) -> list[Draw]:
        return [draw for draw in self._mine(group) if isinstance(draw, Draw) and draw.node == node]

    def _linear_draws(self, group: int) -> list[LinearDraw]:
        return [draw for draw in self._mine(group) if isinstance(draw, LinearDraw)]

    def _sample_draws(self, group: int) -> list[SampleDraw]:
        return [draw for draw in self._mine(group) if isinstance(draw, SampleDraw)]

    # ── aggregates ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _aggregates(self, planned: Planned) -> pa.Table:
        sums = {node.name: node for node in self.network.aggregates}
        rows: list[dict[str, Any]] = []
        names = list(dict.fromkeys(seen.node for seen in planned.seen))
        consistent = self._consistent([sums[name] for name in names if name in sums])
        for name in names:
            node = sums.get(name)
            if node is None:
                rows += tidy_rows(name, ("",), ({},), (self._shared(name),), "")
                continue
            figures, question = consistent.get(name) or self._noisy(node).figures(), node.question
            if any(one.publication == planned.name for one in self.network.spec.nonnegative):
                figures = nonnegative_figures(figures, question.tables())
            rows += tidy_rows(name, question.parts(), question.labels(), figures, question.calendar)
        return tidy_table(rows)

    def _consistent(self, nodes: Sequence[AggregateNode]) -> dict[str, tuple[Figure, ...]]:
        """Tables of the same rows, made consistent with each other: post-processing."""
        own = {node.name: node for node in nodes}
        found: dict[str, tuple[Figure, ...]] = {}
        for family in tables_together(nodes):
            noisy = {name: self._noisy(own[name]) for name, _ in family.members}
            numbers = {name: one.numbers for name, one in noisy.items()}
            laws = {name: one.law for name, one in noisy.items()}
            found |= family.figures(numbers, laws, next(iter(noisy.values())).count)
        return found

    def _noisy(self, node: AggregateNode) -> _Noisy:
        question, sums = asked_of(node), self.values.aggregates[node.name]
        draws = self._draws(node.name, None)
        if not draws:
            if not question.is_public:
                raise InputError(f"{node.name} was planned without noise and is not public. Nothing was published.")
            numbers = self.drawn.public.get(node.name, question.encode(sums))
            return _Noisy(question, numbers, NoiseLaw(), float(sums.count), False)
        pure = draws[0].pure
        noisy = self.drawn.combined(draws, question.encode(sums, pure))
        # The number of contributions is used exactly only where everybody knows it.
        count = float(sums.count) if question.has_public_count else None
        return _Noisy(question, noisy, law_of(draws), count, pure)

    def _shared(self, name: str) -> Figure:
        """Something computed from published aggregates and public facts: post-processing, its error included."""
        sums = {node.name: node for node in self.network.aggregates}
        template = shared_template(self.network, [name], dict.fromkeys(sums, _ANYTHING))
        read = {node: self._noisy(sums[node]) for node in template.inputs if node in sums}
        facts = {node: np.ravel(self.values.column(node))[:1] for node in template.inputs if node not in sums}
        drawn, laws = _side_by_side(read.values())

        def computed(rows: np.ndarray) -> np.ndarray:
            inputs, start = dict(facts), 0
            for node, one in read.items():
                inputs[node] = one.first(rows[:, start : start + one.read.size])
                start += one.read.size
            with np.errstate(all="ignore"):
                return np.broadcast_to(template.evaluate(inputs)[name], (len(rows),)).astype(np.float64)

        found = figure_of(computed, drawn, laws)
        if all(law.deviation == 0 for law in laws):
            return found
        return _within_reach(found, _reach(template, name, read, facts), any(one.is_open for one in read.values()))

    # ── individuals ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _individuals(self, planned: Planned) -> pa.Table:
        names = list(dict.fromkeys(seen.node for seen in planned.seen))
        dataset = self._dataset(planned)
        table = self.values.individuals[dataset]
        guesses = {seen.node: (seen.standard_error, seen.half_width) for seen in planned.seen}
        columns: dict[str, np.ndarray] = {}
        for index, rows in self._groups(dataset):
            for name, shown in self._shown(index, rows, names, table, guesses).items():
                kind = object if shown.dtype.kind in "OUS" else np.float64
                empty = None if kind is object else np.nan
                columns.setdefault(name, np.full(table.num_rows, empty, dtype=kind))[rows] = shown
        return pa.table({ID: table[ID], **columns}).sort_by(ID)

    def _dataset(self, planned: Planned) -> str:
        """Whose individuals a publication shows; who they are must be public."""
        spec = self.network.spec
        found = next(r.dataset for r in spec.requirements if show(r.name) == planned.requirement)
        if spec.dataset(found).adjacency.relation != "replace-one":
            raise PlanError(f"{planned.name} would show who is in {found}, which is protected. Nothing was published.")
        return found

    def _shown(
        self,
        index: int,
        rows: np.ndarray,
        names: Sequence[str],
        table: pa.Table,
        guesses: Mapping[str, tuple[float, float]],
    ) -> dict[str, np.ndarray]:
        """What the individuals of one group show of the named nodes, numbers with their errors beside them."""
        sampled = [draw for draw in self._sample_draws(index) if draw.node in names]
        shown = {draw.node: self._answered(draw, rows, table) for draw in sampled}
        numbers = [name for name in names if name not in shown]
        group = self.network.groups[index]
        template = template_of(self.network, group, numbers, self.observer) if numbers else None
        if template is None or not rows.size:
            return shown
        for name, figures in self._numbers(template, index, rows, numbers, table, guesses).items():
            shown |= figures.columns(name)
        return shown

    def _numbers(
        self,
        template: Template,
        index: int,
        rows: np.ndarray,
        names: Sequence[str],
        table: pa.Table,
        guesses: Mapping[str, tuple[float, float]],
    ) -> dict[str, RowFigures]:
        linear = self._linear_draws(index)
        self._check_noise(template, index, [name for name in names if name in template.order], linear)
        if template.observed:  # the observer puts in what it knows (run/own.py); here is only what has noise
            names = [name for name in template.order if self._draws(name, index)]
        if linear:
            found = self._linear_rows(linear, rows, table)
        else:
            inputs = {node: self._column(node, rows, table) for node in template.inputs}
            found = self._noisy_rows(template, inputs, index, rows.size, names, guesses)
        return {name: found[name] for name in names if name in found}

    def _linear_rows(self, draws: Sequence[LinearDraw], rows: np.ndarray, table: pa.Table) -> dict[str, RowFigures]:
        candidate = draws[0].candidate
        inputs = {node: self._column(node, rows, table) for node in candidate.inputs}
        return linear_rows(candidate, self.drawn.combined(draws, candidate.apply(inputs)), draws)

    def _check_noise(self, template: Template, index: int, names: Sequence[str], linear: Sequence[LinearDraw]) -> None:
        """A second time, beside plan/derive.py: no value that private data reaches is shown without noise."""
        cut = [name for name in template.order if self._draws(name, index)]
        fine = not template.observed if linear else is_cut(cut, template.parents, template.hidden, names)
        if not fine:
            raise PlanError(
                f"{', '.join(names)} would be shown without noise: the plan draws nothing between it and private data. "
                "Make the plan again with make_plan. Nothing was published."
            )

    def _column(self, node: str, rows: np.ndarray, table: pa.Table) -> np.ndarray:
        return self.values.column(node)[rows] if node in table.column_names else self.values.column(node)

    def _answered(self, draw: SampleDraw, rows: np.ndarray, table: pa.Table) -> np.ndarray:
        """One random answer per individual."""
        values = {name: self._column(name, rows, table) for name in draw.candidate.inputs}
        states = draw.candidate.rows(values, rows.size)
        answers = np.array(draw.candidate.answers, dtype=object)
        return answers[self.drawn(draw, states)] if rows.size else answers[:0]

    def _groups(self, dataset: str) -> list[tuple[int, np.ndarray]]:
        """The places of each public group's individuals in the dataset's table."""
        membership = self.values.membership(dataset)
        own = [index for index, group in enumerate(self.network.groups) if group.dataset == dataset]
        return [(index, np.flatnonzero(membership == index)) for index in own]

    def _noisy_rows(
        self,
        template: Template,
        inputs: Mapping[str, Any],
        group: int,
        size: int,
        names: Sequence[str],
        guesses: Mapping[str, tuple[float, float]],
    ) -> dict[str, RowFigures]:
        """The template in topological order; a node of the cut is drawn, clipped to its bounds, and only then read."""
        read: dict[str, np.ndarray] = {}
        free: dict[str, np.ndarray] = {}
        laws: dict[str, NoiseLaw] = {}
        for name in template.order:
            value = inputs[name] if name not in template.formulas else template.formulas[name].evaluate(read)
            draws = self._draws(name, group)
            if draws:
                exact = np.broadcast_to(np.asarray(value, dtype=np.float64), (size,))
                free[name], laws[name] = self.drawn.combined(draws, exact), law_of(draws)
                value = np.clip(free[name], template.bounds[name].low, template.bounds[name].high)
            read[name] = np.asarray(value)
        shown = [name for name in names if name in template.order]
        values = {name: np.broadcast_to(read[name], (size,)) for name in shown}
        return template_rows(template, values, free, laws, inputs, guesses)


def _side_by_side(read: Iterable[_Noisy]) -> tuple[np.ndarray, list[NoiseLaw]]:
    """All noisy numbers in a row, each with the law of its noise."""
    parts = list(read)
    drawn = np.concatenate([one.read for one in parts] or [np.zeros(0)])
    return drawn, [one.law for one in parts for _ in range(one.read.size)]


def _within_reach(found: Figure, reach: Bounds, is_open: bool) -> Figure:
    """The figure as it was found, where its formula has an end and every part of it is known to have one."""
    if reach.bounded and not is_open:
        return found
    # A denominator may be 0, or a mean be anything in its range: what is known is where the parts may be.
    low, high = (reach.low, reach.high) if reach.bounded else (-math.inf, math.inf)
    return Figure(found.value, (high - low) / 2, min(low, found.value), max(high, found.value))


def _reach(template: Template, name: str, read: Mapping[str, _Noisy], facts: Mapping[str, np.ndarray]) -> Bounds:
    """Where the formula may be while every sum is in its own interval: by interval arithmetic."""
    known: dict[str, Bounds] = {}
    for node in template.order:
        if node in template.formulas:
            known[node] = template.formulas[node].interval(known)
        elif node in read:
            figure = read[node].figures()[0]
            known[node] = Bounds(figure.low, figure.high)
        else:
            fact = facts[node]
            number = fact.size and fact.dtype.kind in "ifub"
            known[node] = Bounds.point(float(fact[0])) if number else template.bounds[node]
    return known[name]
