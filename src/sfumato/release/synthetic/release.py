"""Synthetic rows: select, measure, generate.

In:   a public schema, (ε, δ), a table of one row a person, or of at most N rows each.
Out:  SyntheticTable: invented rows of the same columns, the noisy tables they were made from, the certificate.
Not here: the noise (release/synthetic/measure.py), what is measured (release/synthetic/walk.py), files, ledgers (run/).
Proof: docs/proofs/synthetic.md

What touches data is a pass that counts pairs (and one before it where edges are bought), then Gaussian noise on some of
the counts and on scores that say which. Everything after it is post-processing: the fit, the rows, the words.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.certificate import Certificate
from sfumato.core.events.event import Event
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ApproxDP
from sfumato.core.kept_rows import kept_rows
from sfumato.core.schema import Schema
from sfumato.core.tables import as_arrow, at_rest, like, nearest
from sfumato.errors import DataError, PrivacyParameterError, SchemaError
from sfumato.mechanisms.elsewhere import Elsewhere
from sfumato.release.synthetic.bought import FEWEST_BINS, MORE_BINS, fine_levels, leaves_few, with_bought_edges
from sfumato.release.synthetic.counts import MOST_CELLS, PairCounts, pairs_within
from sfumato.release.synthetic.given import people_of, stated_kinds, without_people
from sfumato.release.synthetic.junction_tree import Fitted, Scope
from sfumato.release.synthetic.levels import Levels, levels_of, needs_edges, perhaps_whole
from sfumato.release.synthetic.measure import Measurer
from sfumato.release.synthetic.plans import Forecast, RowPlan, best_plan, forecasts
from sfumato.release.synthetic.possible import kept_possible
from sfumato.release.synthetic.result import DECIMALS, INVENTED, Measured, SyntheticTable
from sfumato.release.synthetic.start import is_told
from sfumato.release.synthetic.walk import Walk
from sfumato.release.synthetic.wishes import (
    as_whole,
    check_lists,
    check_numbers,
    check_people,
    check_plan,
    check_promise,
    check_workload,
)
from sfumato.release.synthetic.zeros import impossible_cells, refuse_contradictions

__all__ = ["Counting", "FirstLook", "SyntheticRelease"]

#: Of μ², for edges that nobody has given: a little for each column, at most this for all.
_EDGES_EACH, _EDGES_MOST = 0.02, 0.10
#: Of noise that drowns everything no more rows are made, whatever number of them it tells: no memory would hold them.
_MOST_OF_NOISE = 1_000_000
#: Rows of a table in memory that are coded at a time.
_BATCH_ROWS = 1 << 18

Codes = NDArray[np.int32]
#: Applies a counting function to every part of a table and adds up what it gives: here, over a file, on workers.
Gather = Callable[["Counting"], PairCounts]


@dataclass(frozen=True, eq=False)
class Counting:
    """Counts one part of a table; plain enough to be sent to a worker."""

    levels: tuple[Levels, ...]
    pairs: tuple[Scope, ...]

    def __call__(self, part: pa.Table) -> PairCounts:
        counted = self.empty()
        for start in range(0, part.num_rows, _BATCH_ROWS):
            here = part.slice(start, _BATCH_ROWS)
            counted.add([column.codes(here[column.name]) for column in self.levels])
        return counted

    def empty(self) -> PairCounts:
        return PairCounts.empty([column.size for column in self.levels], self.pairs)


@dataclass(frozen=True, eq=False)
class FirstLook:
    """The first pass over a table, private: all pairs, or the fine counts of numbers whose edges are still open."""

    levels: tuple[Levels, ...]
    counted: PairCounts = field(repr=False)
    open: tuple[str, ...]


@final
@dataclass(frozen=True)
class SyntheticRelease:
    """Publishes invented rows whose one- and two-way tables, and whose link to the label, are near the real ones.

    `label` is the column that others will want to predict. `edges` gives public bin edges of interval columns, beside
    those of the schema; where nobody gives any, a small part of the promise buys some (`buy_edges=False`: equal parts).
    `absent` names columns whose missing values are a level of their own, `whole` those whose numbers are whole ones
    though their type does not say so (pandas and numpy choose it by the cells, CSV has none); `workload` lists pairs
    of columns that are measured in any case. `people` names a column that says whose a row is, `rows_per_person` how
    many rows of one person count; the promise is then for the person. `plan` is pairs, tree or rounds; by default the
    one of least expected error. `rows` is how many rows are made; the default is as many as there are (by noisy
    counts, if that number is protected). `edges_share` is the part of the promise that is kept for edges, needed or
    not.

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
    edges: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    absent: Sequence[str] = ()
    people: str | None = None
    rows_per_person: int = 1
    plan: str | None = None
    buy_edges: bool = True
    rows: int | None = None
    random_state: int | Elsewhere | None = None
    edges_share: float | None = None
    whole: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("rows", "rows_per_person", "random_state"):
            object.__setattr__(self, name, as_whole(getattr(self, name)))

    def release(self, table: Any) -> SyntheticTable:
        """Invented rows from `table`, in the same kind of container."""
        self.check()
        if self.people is not None and not isinstance(table, pa.RecordBatch):
            table = at_rest(table)  # whose a row is and what it holds are two looks at it
        arrow = self.kept(table)
        kinds = stated_kinds(table, arrow, self.schema)

        def gather(counting: Counting) -> PairCounts:
            return counting(arrow)

        made, facts = self.publish(self.look(gather, kinds), gather)
        facts["notes"] += self.notes_on_types(kinds)
        return SyntheticTable(like(without_people(table, self.people), made), **facts)

    def facts(self) -> dict[str, Any]:
        """Everything that decides what is made, as plain values."""
        return {
            "schema": self.schema.to_toml(),
            "promise": [self.epsilon, self.delta, self.unit.to_dict()],
            "label": self.label,
            "workload": [list(names) for names in self.workload or ()],
            "edges": {name: [_plain(edge) for edge in ends] for name, ends in self.edges.items()},
            "absent": sorted(self.absent),
            "whole": sorted(self.whole),
            "people": self.people,
            "rows_per_person": self.rows_per_person,
            "wished": self.plan,
            "buy_edges": self.buy_edges,
            "rows": self.rows,
            "edges_share": self.edges_share,
        }

    @property
    def unit(self) -> Adjacency:
        """Who is protected: a record, or the person whose records they are."""
        if self.people is None or self.adjacency.unit != REPLACE_ONE.unit:
            return self.adjacency
        return dataclasses.replace(self.adjacency, unit="person")

    @cached_property
    def promise(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta, adjacency=self.unit)

    def check(self, kinds: Mapping[str, pa.DataType] | None = None) -> tuple[Levels, ...]:
        """Refuse what could not be done, before anything is read; the levels of all columns."""
        if not self.delta > 0:
            raise PrivacyParameterError(
                "Synthetic rows are made with Gaussian noise, which needs a δ above 0, such as 1e-6. Nothing was spent."
            )
        _ = self.promise
        check_promise(self.epsilon, self.delta)
        check_numbers(self.rows, self.rows_per_person, self.edges_share, self.random_state)
        check_lists(self.workload, self.absent, self.edges, self.whole)
        check_people(self.people, self.rows_per_person, self.schema)
        levels = levels_of(self.schema, self.edges, self.absent, kinds, self.whole)
        if kinds is not None and self._open(levels) and not self._edges_share(self._open(levels)) > 0:
            raise PrivacyParameterError(
                "edges_share=0 leaves nothing to buy edges with: give edges, or buy_edges=False. Nothing was spent."
            )
        check_plan(self.plan, [column.size for column in levels], self._label_place())
        self._check_together(levels)
        refuse_contradictions(self.schema, levels)
        return levels

    def _check_together(self, levels: Sequence[Levels]) -> None:
        """Refuse what no memory holds together."""
        never = [tuple(sorted(map(self._place, entry))) for entry in self.schema.impossible]
        check_workload(self._workload(), [column.size for column in levels], self._label_place(), never)

    def _fits(self, levels: Sequence[Levels]) -> bool:
        with suppress(SchemaError):
            self._check_together(levels)
            return True
        return False

    def expected(self, rows: float, kinds: Mapping[str, pa.DataType] | None = None) -> tuple[Forecast, ...]:
        """What each plan is expected to reach for a table of `rows` rows: before anything is read or spent."""
        levels = self.check(kinds)
        measurer = self._measurer(PairCounts.empty([], []))
        still_open = self._open(levels)
        share = self._edges_share(still_open)
        found = forecasts(
            [column.size for column in levels], self._label_place(), rows, lambda s: measurer.deviation(s * (1 - share))
        )
        each = measurer.deviation(share / len(still_open)) if still_open else 0.0
        fine = (fine_levels(column) for column in levels if column.name in still_open)
        few = sum(leaves_few(column, rows, each) for column in fine)
        return tuple(dataclasses.replace(one, few=few) for one in found if self.plan in (None, one.plan.name))

    def notes_on_types(self, kinds: Mapping[str, pa.DataType] | None = None) -> tuple[str, ...]:
        """What to know of numbers whose type says nothing: by schema and stated types alone."""
        names = perhaps_whole(self.check(kinds))
        if not names:
            return ()
        return (
            f"{DECIMALS}, since no type in the table says otherwise: {', '.join(names)}. Where these are "
            "whole numbers, means and quantiles of the rows are up to half a unit too high: name them in whole=[…], at "
            "the command line --whole COLUMN.",
        )

    def planned_events(self, plan: RowPlan, kinds: Mapping[str, pa.DataType] | None = None) -> dict[str, Event]:
        """What following `plan` costs, part by part, before anything is drawn: nothing of the data is in it."""
        measurer = self._measurer(PairCounts.empty([], []))
        shares = plan.stages(self._edges_share(self._open(self.check(kinds))))
        return {stage: measurer.stage_event(share) for stage, share in shares.items()}

    def look(self, gather: Gather, kinds: Mapping[str, pa.DataType]) -> FirstLook:
        """The first pass: private, and drawn from by `publish` alone."""
        levels = self.check(kinds)
        still_open = self._open(levels)
        if still_open:
            fine = tuple(fine_levels(column) for column in levels if column.name in still_open)
            return FirstLook(levels, gather(Counting(fine, ())), still_open)
        return FirstLook(levels, gather(self._counting(levels)), ())

    def publish(self, look: FirstLook, gather: Gather) -> tuple[pa.Table, dict[str, Any]]:
        """Noise, model and rows. Where edges were open they are bought first, and the table is counted again."""
        public_rows = self.public_rows(look)
        measurer = self._measurer(look.counted)
        share = self._edges_share(look.open)
        levels, part, few = look.levels, 1 - share, ()
        if look.open:
            measurer.stage = "edges"
            levels = _with_edges(levels, look.open, measurer, share, self._fits)
            few = _few_bins(look.levels, levels, look.open)
            measurer.exact = gather(self._counting(levels))
        sizes = [column.size for column in levels]
        forecast = None
        if public_rows is not None:
            known = forecasts(sizes, self._label_place(), public_rows, lambda share: measurer.deviation(share * part))
            forecast = best_plan(known, self.plan)
        walk = Walk(measurer, sizes, self._label_place(), self._workload(), impossible_cells(self.schema, levels), part)
        fitted, forecast = walk.fitted(public_rows, forecast, self.plan)
        return self._made(measurer, walk, fitted, forecast, levels, few)

    def _made(
        self,
        measurer: Measurer,
        walk: Walk,
        fitted: Fitted,
        forecast: Forecast,
        levels: Sequence[Levels],
        few: Sequence[str],
    ) -> tuple[pa.Table, dict[str, Any]]:
        seed = self._row_seed()
        rows = self._row_count(fitted.total, told=forecast.known and is_told(fitted.total, walk.measured))
        made, codes = self._decoded(levels, fitted.rows(rows, np.random.default_rng(seed)), seed)
        notes = _notes(forecast, few)
        certificate = Certificate.issue(
            subject=f"synthetic rows of {len(levels)} columns",
            events=measurer.events,
            proofs=["synthetic", "gaussian"],
            plan={"release": "synthetic", **self.facts(), "plan": forecast.plan.words, "row_seed": seed},
            notes=notes,
            guarantee=self.promise,
            publishable=not isinstance(self.random_state, int),
        )
        measured = _measured(walk, levels, codes, fitted.total / rows)
        facts = {
            "measured": measured,
            "guarantee": certificate.guarantee,
            "certificate": certificate,
            "forecast": forecast,
            "stages": dict(measurer.stages),
            "notes": notes,
        }
        return made, facts

    def _row_count(self, total: float, *, told: bool) -> int:
        """As many rows as are asked for, or as were measured; of a number that is next to noise not too many."""
        if self.rows is not None:
            return self.rows
        found = max(1, round(total))
        return min(found, _MOST_OF_NOISE) if self._hides_rows and not told else found

    def _decoded(self, levels: Sequence[Levels], codes: Codes, seed: int) -> tuple[pa.Table, Codes]:
        """Rows in another order, with a value for each level; and their levels."""
        generator = np.random.default_rng([seed, 1])
        order = generator.permutation(len(codes))
        counts = [np.bincount(codes[:, at], minlength=column.size).astype(float) for at, column in enumerate(levels)]
        shaped = [column.shaped(held) for column, held in zip(levels, counts, strict=True)]
        codes = codes[order]
        made = {column.name: column.values(codes[:, at], generator) for at, column in enumerate(shaped)}
        return kept_possible(pa.table(made), codes, self.schema, shaped, generator)

    def _row_seed(self) -> int:
        """Rows are drawn from what was published: who has that and the seed has the rows."""
        if isinstance(self.random_state, Elsewhere):
            return self.random_state.seed
        return secrets.randbits(64) if self.random_state is None else abs(self.random_state + 1_000_003)

    def kept(self, table: Any) -> pa.Table:
        """The declared columns; of several rows of one person those that count."""
        arrow = as_arrow(without_people(table, self.people), self.schema)
        if self.people is None:
            return arrow
        whose = people_of(table, self.people)
        levels = levels_of(self.schema, self.edges, self.absent)
        contents = np.stack([column.place(arrow[column.name]) for column in levels], axis=1)
        kept, _ = kept_rows(whose, contents, self.rows_per_person)
        return arrow.take(pa.array(kept))

    @property
    def _hides_rows(self) -> bool:
        return self.unit.relation != "replace-one" or self.people is not None

    def public_rows(self, look: FirstLook) -> int | None:
        """The number of rows, where everybody may know it: one row a unit, and nobody's presence protected."""
        if self._hides_rows:
            return None
        if isinstance(self.random_state, Elsewhere):
            return self.random_state.records
        if look.counted.rows == 0:
            raise DataError("The table has no rows. Nothing was drawn and nothing was spent.")
        return look.counted.rows

    def _measurer(self, counted: PairCounts) -> Measurer:
        total = (gaussian_mu(self.epsilon, self.delta) * (1 - 1e-7)) ** 2
        return Measurer(counted, self.unit, total, self.rows_per_person, self.random_state)

    def _counting(self, levels: tuple[Levels, ...]) -> Counting:
        label = self._label_place()
        sizes = [column.size for column in levels]
        return Counting(levels, tuple(pairs_within(sizes, () if label is None else (label,), self._workload())))

    def _open(self, levels: Sequence[Levels]) -> tuple[str, ...]:
        return tuple(column.name for column in levels if self.buy_edges and needs_edges(column, self.edges))

    def _edges_share(self, still_open: Sequence[str]) -> float:
        return min(_EDGES_EACH * len(still_open), _EDGES_MOST) if self.edges_share is None else self.edges_share

    def with_planned_edges(self) -> Self:
        """The same, with what edges cost by the schema alone: what a column's type makes needless stays unspent."""
        return dataclasses.replace(self, edges_share=self._edges_share(self._open(self.check())))

    def _label_place(self) -> int | None:
        """None where there is nothing beside the label."""
        place = None if self.label is None else self._place(self.label)
        return place if len(self.schema.columns) > 1 else None

    def _place(self, name: str) -> int:
        names = list(self.schema.columns)
        if name not in names:
            raise SchemaError(f"{name!r} is not a column of the schema{nearest(name, names)}. Nothing was spent.")
        return names.index(name)

    def _workload(self) -> list[Scope]:
        return [tuple(sorted(self._place(name) for name in names)) for names in self.workload or ()]


def _measured(walk: Walk, levels: Sequence[Levels], codes: Codes, weight: float) -> tuple[Measured, ...]:
    """What was measured, beside how often each cell occurs in the rows, each of which counts as `weight`."""
    counted = PairCounts.empty(walk.sizes, [one.scope for one in walk.measured if len(one.scope) == 2])
    counted.add(list(codes.T))
    return tuple(
        Measured(
            tuple(levels[column].name for column in one.scope),
            tuple(levels[column].names for column in one.scope),
            one.counts,
            one.deviation,
            counted[one.scope] * weight,
        )
        for one in walk.measured
    )


def _with_edges(
    levels: tuple[Levels, ...],
    still_open: Sequence[str],
    measurer: Measurer,
    share: float,
    fits: Callable[[Sequence[Levels]], bool],
) -> tuple[Levels, ...]:
    """The levels with edges that are bought; where more bins than even ones do not fit together, no more than these."""
    fine = [fine_levels(column) for column in levels if column.name in still_open]
    tables = measurer.tables({(at,): share / len(fine) for at in range(len(fine))})
    bought = list(zip(fine, tables, strict=True))

    def within(most: Mapping[str, int]) -> tuple[Levels, ...]:
        found = {
            column.name: with_bought_edges(column, drawn.counts, drawn.deviation, most[column.name])
            for column, drawn in bought
        }
        return tuple(found.get(column.name, column) for column in levels)

    made = within({column.name: _most_bins(column.name, levels, still_open) for column in fine})
    return made if fits(made) else within({column.name: column.listed for column in levels})


def _most_bins(name: str, levels: Sequence[Levels], still_open: Sequence[str]) -> int:
    """How many bins may be bought, so that every pair that is counted with even bins is counted with these too."""
    (own,) = (column for column in levels if column.name == name)
    most = own.listed + MORE_BINS
    for other in levels:
        size = other.size + (MORE_BINS if other.name in still_open else 0)
        if other is not own and own.size * other.size <= MOST_CELLS:
            most = min(most, max(own.listed, MOST_CELLS // size - own.absent))
    return most


def _plain(edge: Any) -> Any:
    return edge.isoformat() if hasattr(edge, "isoformat") else edge if isinstance(edge, str) else float(edge)


def _few_bins(open_levels: Sequence[Levels], levels: Sequence[Levels], still_open: Sequence[str]) -> tuple[str, ...]:
    """Columns of which noise left fewer bins than any column gets that can be told apart, with their numbers."""
    return tuple(
        f"{made.name} ({made.listed})"
        for before, made in zip(open_levels, levels, strict=True)
        if made.name in still_open and made.listed < min(FEWEST_BINS, fine_levels(before).listed)
    )


def _notes(forecast: Forecast, few: Sequence[str]) -> tuple[str, ...]:
    if not forecast.known:
        return (
            INVENTED,
            "The noise is as large as the counts: these rows are close to uniform; next to nothing could be measured. "
            "A larger ε, more rows or fewer levels would change that.",
        )
    expected = f"Expected of these rows: {forecast}."
    if not few:
        return INVENTED, expected
    return (
        INVENTED,
        f"{expected} That is about bins alone, and of these numbers noise left few: {', '.join(few)}. How they lie "
        "within a bin, and so their mean and spread, is hardly better than a guess. A larger ε, or public edges where "
        "most of them lie, would change that.",
    )
