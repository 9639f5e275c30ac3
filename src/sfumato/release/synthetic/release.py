"""Synthetic rows: select, measure, generate.

In:   a public schema, (ε, δ), a table of one row a person.
Out:  SyntheticTable: invented rows of the same columns, the noisy tables they were made from, the certificate.
Not here: the noise (release/synthetic/measure.py), files and ledgers (run/).
Proof: docs/proofs/synthetic.md

What touches data is one pass that counts pairs, then Gaussian noise on some of the counts and on scores that say which.
Everything after it is post-processing: the fit, the rows, the words.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato.card import Card, Shown
from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.certificate import Certificate
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ApproxDP, Guarantee
from sfumato.core.schema import Schema
from sfumato.core.tables import as_arrow, like, nearest
from sfumato.errors import DataError, PrivacyParameterError, SchemaError
from sfumato.release.synthetic.counts import PairCounts, pairs_within
from sfumato.release.synthetic.junction_tree import CountTable, Fitted, Scope
from sfumato.release.synthetic.levels import Levels, levels_of
from sfumato.release.synthetic.measure import Measurer
from sfumato.release.synthetic.selection import Choice, chosen_pairs, split_by_cells
from sfumato.release.synthetic.start import StartModel, noisy_total, start_scopes

__all__ = ["Measured", "SyntheticRelease", "SyntheticTable"]

#: A pair with more cells than this is never counted.
_MOST_CELLS = 1 << 16
#: Rows of a model that are counted to see which pairs it misses.
_MODEL_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class Measured:
    """One noisy table of counts, as it was drawn; answers with intervals can be read off it."""

    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    counts: np.ndarray
    standard_error: float


@dataclass(frozen=True, eq=False)
class SyntheticTable(Shown):
    """Invented rows and the public facts about them. No row stands for a person."""

    table: Any
    measured: tuple[Measured, ...]
    guarantee: Guarantee
    certificate: Certificate
    plan: str
    predicted_variation: float
    notes: tuple[str, ...] = ()

    def _card(self) -> Card:
        rows = [[", ".join(one.columns), one.counts.size, one.standard_error] for one in self.measured]
        facts = {"promise": str(self.guarantee), "made by": self.plan}
        head = ["measured together", "cells", "standard error"]
        return Card("Invented rows", facts, head, rows, [*self.notes, "No row stands for a person."])

    def __str__(self) -> str:
        return "\n".join([f"Guarantee: {self.guarantee}", f"Plan: {self.plan}", *self.notes])


@dataclass(frozen=True)
class _Round:
    """Shares of μ² for scores and for tables, and what may be chosen."""

    scores: float
    tables: float
    choice: Choice


#: Spent before anything is decided; the rest follows from what it shows.
_START = 0.4


@final
@dataclass(frozen=True)
class SyntheticRelease:
    """Publishes invented rows whose one- and two-way tables, and whose link to the label, are near the real ones.

    `label` is the column that others will want to predict. `edges` gives public bin edges of interval columns (16 equal
    parts otherwise); `absent` names columns whose missing values are a level of their own; `workload` lists pairs of
    columns that are measured in any case. `rows` is how many rows are made; the default is the (noisy, if presence is
    protected) number of people.

    >>> from sfumato.core import Categories, Interval
    >>> schema = Schema({"age": Interval(0, 100), "ill": Categories(["no", "yes"])})
    >>> generator = np.random.default_rng(0)
    >>> age = generator.uniform(0, 100, 5000)
    >>> ill = np.where(generator.random(5000) < age / 100, "yes", "no")
    >>> out = SyntheticRelease(schema, epsilon=1.0, delta=1e-6, label="ill").release({"age": age, "ill": ill})
    >>> len(out.table["age"]), str(out.guarantee)
    (5000, '(1, 1e-06)-DP, under replacing one record')
    """

    schema: Schema
    epsilon: float
    delta: float
    label: str | None = None
    workload: Sequence[Sequence[str]] | None = None
    adjacency: Adjacency = REPLACE_ONE
    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    absent: Sequence[str] = ()
    rows: int | None = None
    random_state: int | None = None

    def release(self, table: Any) -> SyntheticTable:
        """Invented rows from `table`, in the same kind of container."""
        self._wanted()
        arrow = as_arrow(table, self.schema)
        if arrow.num_rows == 0:
            raise DataError("The table has no rows. Nothing was drawn and nothing was spent.")
        counted = self.empty_counts()
        counted.add(self.codes(arrow))
        kinds = {name: arrow.schema.field(name).type for name in arrow.column_names}
        made, facts = self.from_counts(counted, kinds)
        return SyntheticTable(like(table, made), **facts)

    def facts(self) -> dict[str, Any]:
        """Everything that decides what is made, as plain values."""
        return {
            "schema": self.schema.to_toml(),
            "promise": [self.epsilon, self.delta, self.adjacency.to_dict()],
            "label": self.label,
            "workload": [list(names) for names in self.workload or ()],
            "edges": {name: [float(edge) for edge in ends] for name, ends in self.edges.items()},
            "absent": sorted(self.absent),
            "rows": self.rows,
        }

    def empty_counts(self) -> PairCounts:
        """Counts of no rows; parts of a table are added to it, anywhere and in any order."""
        self._wanted()
        self._label_place()
        sizes = [column.size for column in self._levels()]
        return PairCounts.empty(sizes, pairs_within(sizes, _MOST_CELLS))

    def codes(self, part: pa.Table) -> list[np.ndarray]:
        """The level of every cell of a part of the table, column by column: private."""
        return [column.codes(part[column.name]) for column in self._levels()]

    def from_counts(self, counted: PairCounts, kinds: Mapping[str, pa.DataType]) -> tuple[pa.Table, dict[str, Any]]:
        """Noise, model and rows; `counted` is read by the noise alone."""
        wanted, levels = self._wanted(), self._levels()
        measurer = Measurer(counted, self.adjacency, self._total(), self.random_state)
        maker = _Maker(measurer, [column.size for column in levels], self._label_place(), self._workload(counted))
        fitted, plan, predicted = maker.fitted(counted.rows if measurer.replaces else None)
        seed = secrets.randbits(64) if self.random_state is None else self.random_state + 1_000_003
        rows = self.rows or round(fitted.total)
        made = _decoded(levels, fitted.rows(rows, np.random.default_rng(seed)), kinds, seed)
        notes = _notes(predicted)
        certificate = Certificate.issue(
            subject=f"synthetic rows of {len(levels)} columns",
            events=measurer.events,
            proofs=["synthetic", "gaussian"],
            plan={"release": "synthetic", **self.facts(), "plan": plan, "row_seed": seed},
            notes=notes,
            guarantee=wanted,
            publishable=self.random_state is None,
        )
        measured = tuple(
            Measured(
                tuple(levels[column].name for column in one.scope),
                tuple(levels[column].names for column in one.scope),
                one.counts,
                one.deviation,
            )
            for one in maker.measured
        )
        facts = {
            "measured": measured,
            "guarantee": certificate.guarantee,
            "certificate": certificate,
            "plan": plan,
            "predicted_variation": predicted,
            "notes": notes,
        }
        return made, facts

    def _wanted(self) -> ApproxDP:
        if not self.delta > 0:
            raise PrivacyParameterError(
                "Synthetic rows are made with Gaussian noise, which needs a δ above 0, such as 1e-6. Nothing was spent."
            )
        return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)

    def _total(self) -> float:
        return (gaussian_mu(self.epsilon, self.delta) * (1 - 1e-7)) ** 2

    def _levels(self) -> tuple[Levels, ...]:
        return levels_of(self.schema, self.edges, self.absent)

    def _label_place(self) -> int | None:
        return None if self.label is None else self._place(self.label)

    def _place(self, name: str) -> int:
        names = list(self.schema.columns)
        if name not in names:
            raise SchemaError(f"{name!r} is not a column of the schema{nearest(name, names)}. Nothing was spent.")
        return names.index(name)

    def _workload(self, counted: PairCounts) -> list[Scope]:
        scopes = [tuple(sorted(self._place(name) for name in names)) for names in self.workload or ()]
        for scope in scopes:
            if len(set(scope)) != 2 or scope not in counted.tables:
                raise SchemaError(
                    f"workload lists pairs of different columns with at most {_MOST_CELLS} cells. Nothing was spent."
                )
        return scopes


@dataclass(eq=False)
class _Maker:
    """The walk from the first look to the last fit. Reads nothing private but through the measurer."""

    measurer: Measurer
    sizes: list[int]
    label: int | None
    workload: list[Scope]
    measured: list[CountTable] = field(default_factory=list)

    def fitted(self, public_rows: int | None) -> tuple[Fitted, str, float]:
        scopes = start_scopes(len(self.sizes), self.label)
        self._measure(scopes, _START)
        total = public_rows if public_rows is not None else noisy_total(self.measured)
        start = StartModel.of(self.measured, self.label, float(total))
        again, rounds, plan = self._rounds(start)
        if again:
            self._measure(scopes, again)
        model: Fitted | None = None
        for number, one in enumerate(rounds):
            model = self._round(one, start, model, total, last=number == len(rounds) - 1)
        if model is None:
            model = Fitted.to(self.sizes, self.measured, float(total))
        pairs = [table for table in self.measured if len(table.scope) == 2]
        drowned = [start.drowned(table.scope, table.deviation) for table in pairs]
        predicted = [start.predicted_variation(table.scope, table.deviation) for table in pairs]
        known = bool(pairs) and not np.mean(drowned) > 0.5
        return model, plan, float(np.mean(predicted)) if known else 1.0

    def _rounds(self, start: StartModel) -> tuple[float, list[_Round], str]:
        """How the rest is spent: on the first tables again, on a tree of pairs, or on two rounds of them."""
        left, columns = 1 - _START, [column for column in range(len(self.sizes)) if column != self.label]
        pairs = pairs_within([self.sizes[column] for column in columns], _MOST_CELLS)
        candidates = [(columns[first], columns[second]) for first, second in pairs]
        if not candidates:
            return left, [], "columns beside the label"
        each = self.measurer.deviation(0.35 / max(1, len(columns) - 1))
        predicted = float(np.mean([start.predicted_variation(scope, each) for scope in candidates]))
        tree = Choice(max(1, len(columns) - 1), 150_000, forest=True)
        if predicted > 0.10 and not self.workload:
            return left, [], "columns beside the label"
        if predicted > 0.05 or len(self.sizes) > 40:
            return left - 0.40, [_Round(0.05, 0.35, tree)], "columns beside the label, then a tree of pairs"
        more = Choice(len(columns), 600_000 if predicted < 0.01 else 150_000, forest=False)
        rounds = [_Round(0.05, 0.25, tree), _Round(0.05, 0.25, more)]
        return 0.0, rounds, "columns beside the label, a tree of pairs, then the pairs it misses"

    def _round(self, one: _Round, start: StartModel, model: Fitted | None, total: int, *, last: bool) -> Fitted | None:
        expected = self._expected(start, model)
        scores, error = self.measurer.scores(expected, one.scores)
        held = list(dict.fromkeys(table.scope for table in self.measured))
        forced = [scope for scope in self.workload if scope not in held]
        noise = self.measurer.deviation(one.tables / one.choice.most)
        chosen = chosen_pairs(scores, expected, error, noise, self.sizes, [*held, *forced], one.choice)
        tables = [*forced, *chosen] or held  # nothing stands out: the tables there are, once more
        self._measure(tables, one.tables)
        steps = 200 if last else 80
        return Fitted.to(
            self.sizes, self.measured, float(total), steps=steps, start=model.potentials if model else None
        )

    def _measure(self, scopes: Sequence[Scope], share: float) -> None:
        for scope, part in split_by_cells(scopes, self.sizes, share).items():
            self.measured.append(self.measurer.table(scope, part))

    def _expected(self, start: StartModel, model: Fitted | None) -> dict[Scope, np.ndarray]:
        scopes = [scope for scope in self.measurer.exact.tables if len(scope) == 2 and self.label not in scope]
        if model is None:
            return {scope: start.expected(scope) for scope in scopes}
        rows = min(4 * round(model.total), _MODEL_ROWS)
        # A stream of its own: what these rows are decides nothing but which tables are asked for.
        generator = np.random.default_rng(len(self.measured))
        counted = PairCounts.empty(self.sizes, scopes)
        counted.add(list(model.rows(rows, generator).T))
        return {scope: counted[scope] * (model.total / rows) for scope in scopes}


def _decoded(levels: Sequence[Levels], codes: np.ndarray, kinds: Mapping[str, pa.DataType], seed: int) -> pa.Table:
    generator = np.random.default_rng([seed, 1])
    order = generator.permutation(len(codes))
    columns = {
        column.name: column.values(codes[order, at], kinds[column.name], generator) for at, column in enumerate(levels)
    }
    return pa.table(columns)


def _notes(predicted: float) -> tuple[str, ...]:
    rows = "Rows are invented: no row stands for a person, and no interval can be read off the rows alone."
    error = f"Measured pairs of columns are expected to be off by about {predicted:.3f} in total variation."
    if predicted >= 1:
        error = "The noise is as large as the counts: these rows are close to uniform; next to nothing was measured."
    return rows, error
