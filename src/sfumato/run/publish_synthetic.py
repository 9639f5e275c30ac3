"""Strategies for synthetic([…]) and synthetic([…], for(Label)): invented rows made from noisy tables of counts.

In:   what is wanted, (ε, δ) of one individual.
Out:  rows in the columns' own types, the noisy counts behind them, a page that compares the two.
Not here: what is measured and how rows are made (release/synthetic/), how a requirement is split (plan/portions.py).
Proof: docs/proofs/synthetic.md, docs/proofs/portions.md

The three ways are the plans of release/synthetic/plans.py; each predicts the total variation it is expected to reach,
from public sizes alone, and the planner takes the least. Which tables are measured depends on what was drawn before,
and who sees the certificate need not be who sees the rows: an act's events are one for each part of its plan, functions
of the plan alone, and what was drawn is held against them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final

import pyarrow as pa

from sfumato.core import Guarantee, Interval, Schema
from sfumato.core.calendar_columns import calendar_kind, calendar_values
from sfumato.core.events.event import Event
from sfumato.errors import PlanError, SfumatoError, UnprovedError
from sfumato.mechanisms.elsewhere import Elsewhere
from sfumato.plan.act import Act
from sfumato.plan.cell_rules import own_names
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.kinds.synthetic import SyntheticKind
from sfumato.release.synthetic import SyntheticRelease
from sfumato.release.synthetic.levels import LARGEST_WHOLE
from sfumato.release.synthetic.page import marginals_page
from sfumato.release.synthetic.plans import Forecast
from sfumato.release.synthetic.result import DECIMALS, INVENTED, SyntheticTable, measured_table
from sfumato.run.publish_base import Performed, Publisher, point_of

__all__ = ["Pairs", "Rounds", "Tree", "synthetic_forecasts"]

_NORMAL_95 = 1.959963984540054
#: For the plan's column of seconds alone, measured on one core.
_PAIRS_PER_SECOND, _FIT_SECONDS = 1e8, {"pairs": 0.3, "tree": 0.5, "rounds": 3.0}


def synthetic_forecasts(wanted: Wanted, guarantee: Guarantee, size: float) -> tuple[Forecast, ...]:
    """What synthetic rows of these columns are expected to reach: for the planner, and beside noised tables."""
    return _release(wanted.schema, wanted.target, wanted.rows, guarantee).expected(max(size * wanted.rows, 1.0))


def _release(schema: Schema, label: str | None, rows: int, guarantee: Guarantee) -> SyntheticRelease:
    epsilon, delta = point_of(guarantee)
    adjacency = guarantee.adjacency
    assert adjacency is not None
    people = {"people": PEOPLE, "rows_per_person": rows} if rows > 1 else {}
    return SyntheticRelease(schema, epsilon, delta, label=label, adjacency=adjacency, **people)


#: The column that says whose a row is, where there are several of one individual.
PEOPLE = "id"


class SyntheticPublisher(Publisher):
    """One of the plans. Abstract."""

    kind: ClassVar[str] = SyntheticKind.functor
    words: ClassVar[str] = (
        "a table of invented rows with {columns}: no row stands for anybody. All that they take from the data are "
        "counts with noise, which are published beside them"
    )

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        if not point_of(guarantee)[1]:
            return "synthetic rows are made with Gaussian noise, which needs a δ, and none is promised"
        try:
            found = synthetic_forecasts(wanted, guarantee, 1000.0)
        except SfumatoError as error:
            raise PlanError(f"{wanted.request.position}{wanted.name}: {error}") from error
        if all(one.plan.name != self.name for one in found):
            return "there are too few columns, or too many, for it"
        return None

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        found = {one.plan.name: one for one in synthetic_forecasts(wanted, guarantee, size)}
        own = found[self.name]
        rows = max(size * wanted.rows, 1.0)
        seen = [self._seen(name, own) for name in wanted.columns]
        note = (
            f"Expected of the rows: {own}. They are invented, good for tables of one or two columns and for models, "
            "and no value in them has an interval."
        )
        seen[0] = dataclasses.replace(seen[0], note=note)
        columns = len(wanted.columns)
        seconds = rows * columns**2 / 2 / _PAIRS_PER_SECOND + _FIT_SECONDS[self.name]
        loss = own.two_way**2 if own.known else 1.0 + own.two_way  # nothing can be known, but some ways lose less
        return Prediction(loss, tuple(seen), seconds, 8 * rows * columns, str(own))

    @staticmethod
    def _seen(name: str, forecast: Forecast) -> Seen:
        """Of a column: the share of any of its levels, by the noise of the tables it is measured in."""
        error = forecast.one_way if forecast.known else 1.0
        return Seen(name, error**2, min(1.0, _NORMAL_95 * error), basis="shares")

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        return self.act(self, wanted, guarantee, {})

    def events_of(self, act: Act) -> tuple[Event, ...]:
        release = self._settled(act)
        (own,) = release.expected(1.0)  # what each part is given does not depend on the number of rows
        return tuple(release.planned_events(own.plan).values())

    def _settled(self, act: Act) -> SyntheticRelease:
        """By the act's own words, following this plan."""
        schema = Schema.from_toml(act.parameters["schema"]).select(act.parameters["columns"])
        release = _release(schema, act.parameters["target"], act.parameters["rows"], act.guarantee)
        return dataclasses.replace(release.with_planned_edges(), plan=self.name)

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        release = dataclasses.replace(self._settled(act), random_state=random_state)
        schema, rows = release.schema, act.parameters["rows"]
        held = _with_days(table.select(list(schema.columns)), schema)
        held = _as_agreed(held, schema, everywhere=isinstance(random_state, Elsewhere))
        if rows > 1:
            held = held.append_column(PEOPLE, pa.array([str(one) for one in identifiers]))
        made = release.release(held)
        planned = release.planned_events(made.forecast.plan)
        _check_drawn(act, made, planned)
        names = own_names(list(schema.columns), act.parameters.get("cells", {}), (PEOPLE,))
        measured = [
            dataclasses.replace(one, columns=tuple(names.get(name, name) for name in one.columns))
            for one in made.measured
        ]
        # A study has no word for whole numbers, so nobody is told to say it.
        notes = [one for one in made.notes if not one.startswith(DECIMALS)]
        page = marginals_page(f"{act.name}: measured and generated counts", measured, notes)
        return Performed(
            made.table.rename_columns([names.get(name, name) for name in made.table.column_names]),
            {"marginals.html": page},
            tuple(planned.values()),
            ("synthetic", "gaussian"),
            (INVENTED,),
            tables={"measured": measured_table(measured)},
        )


def _with_days(table: pa.Table, schema: Schema) -> pa.Table:
    """Days and times of day, numbers within a study, as such: so they come out."""
    for at, (name, domain) in enumerate(schema.columns.items()):
        if isinstance(domain, Interval) and domain.calendar:
            numbers = table[name].cast(pa.float64()).combine_chunks()
            days = calendar_values(numbers, domain.calendar, calendar_kind(domain.calendar))
            table = table.set_column(at, name, days)
    return table


def _as_agreed(table: pa.Table, schema: Schema, *, everywhere: bool) -> pa.Table:
    """Over centres what is asked follows from the schema alone: the type of one centre's file is nobody else's.

    Numbers beyond 2^53 are decimal ones, rounded as everywhere in a study: of whole ones each must be exact.
    """
    for at, (name, domain) in enumerate(schema.columns.items()):
        if not isinstance(domain, Interval) or domain.calendar:
            continue
        if everywhere or max(-domain.low, domain.high) >= LARGEST_WHOLE:
            table = table.set_column(at, name, table[name].cast(pa.float64(), safe=False))
    return table


def _check_drawn(act: Act, made: SyntheticTable, planned: Mapping[str, Event]) -> None:
    """Each part drew no more than its event says; the event itself is a function of the plan."""
    within = made.stages.keys() <= planned.keys() and all(
        spent <= planned[stage].mu ** 2  # type: ignore[attr-defined]
        for stage, spent in made.stages.items()
    )
    if not within:
        raise UnprovedError(f"{act.name}: what was drawn is not what was planned. Nothing was published.")


@final
class Pairs(SyntheticPublisher):
    """Every column beside the label, or alone; columns independent given it."""

    name: ClassVar[str] = "pairs"
    summed: ClassVar[bool] = True


@final
class Tree(SyntheticPublisher):
    """The same, and a tree of pairs among the other columns."""

    name: ClassVar[str] = "tree"


@final
class Rounds(SyntheticPublisher):
    """The same, a tree, and the pairs that are still missed."""

    name: ClassVar[str] = "rounds"
