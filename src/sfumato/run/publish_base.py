"""What a strategy needs beside its prediction: performing an act on the individuals' columns.

In:   an Act, the columns it names (private), a seed for dry runs.
Out:  Performed: what may be published, its files, and the events that were really drawn.
Not here: concrete strategies (run/publish_tables.py and its neighbours), the order of events of a run (run/study.py).
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core import Adjacency, ApproxDP, Categories, Guarantee, Interval, PureDP
from sfumato.core.cell_types import ARROW_TYPES
from sfumato.core.events.event import Event, Repeated
from sfumato.errors import PlanError, UnprovedError
from sfumato.mechanisms.elsewhere import Elsewhere
from sfumato.plan.act import Act
from sfumato.plan.draw_law import DrawLaw, draw_law
from sfumato.plan.strategy import Strategy
from sfumato.plan.wanted import Wanted
from sfumato.run.study_files import Published

__all__ = ["Performed", "Publisher", "column_of", "law_for", "point_of", "under"]


@dataclass(frozen=True)
class Performed:
    """What an act gave. `documents` are texts by the ending of their file, such as "noise.json"; `tables` go along."""

    values: pa.Table = field(repr=False)
    documents: Mapping[str, str] = field(repr=False)
    events: tuple[Event | Repeated, ...]
    proofs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    kind: str = ""
    tables: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)

    def published(self, name: str, observer: str) -> Published:
        return Published(name, observer, self.kind, self.values, self.documents, self.tables)


class Publisher(Strategy):
    """A strategy that can also be carried out. Abstract."""

    @abstractmethod
    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        """Draw; `table` has the columns that the act's schema names, each value in its domain."""

    def begin(self, act: Act, table: pa.Table, identifiers: Sequence[Any], elsewhere: Elsewhere) -> Performed:
        """The same where several institutions draw together: raises Unanswered at the first sum that is not known."""
        if not self.summed:
            raise UnprovedError(
                f"{act.name}: {self.name} is not made from sums. Nothing was drawn and nothing was sent."
            )
        return self.perform(act, table, identifiers, elsewhere)  # type: ignore[arg-type]  # in place of a generator

    @staticmethod
    def act(
        strategy: Strategy,
        wanted: Wanted,
        guarantee: Guarantee,
        parameters: Mapping[str, Any],
    ) -> Act:
        """The act of this strategy; its parameters say which columns it reads and what they may hold."""
        request = wanted.request
        act = Act(
            request.name,
            wanted.kind,
            strategy.name,
            (request.observer,),
            request.requirement.dataset,
            guarantee,
            {**wanted.stated, **parameters},
        )
        return dataclasses.replace(act, events=strategy.events_of(act))


def under(event: Event | Repeated, adjacency: Adjacency) -> Event | Repeated:
    """The same event with the study's own unit in place of "record": one row is one individual."""
    if isinstance(event, Repeated):
        return Repeated(dataclasses.replace(event.event, adjacency=adjacency), event.count)
    return dataclasses.replace(event, adjacency=adjacency)


def point_of(guarantee: Guarantee) -> tuple[float, float]:
    """(ε, δ)."""
    if isinstance(guarantee, PureDP | ApproxDP):
        return guarantee.stated
    raise PlanError(f"{guarantee.describe()} is no (ε, δ). State dp(ε) or dp(ε, δ). Nothing was spent.")


def law_for(guarantee: Guarantee) -> DrawLaw:
    """By which law sums of an act are drawn: Gaussian where there is a δ.

    >>> law_for(ApproxDP(1.0, 1e-6)).name, law_for(PureDP(1.0)).name
    ('gaussian', 'laplace')
    """
    return draw_law("gaussian" if point_of(guarantee)[1] > 0 else "laplace")


def column_of(values: Any, domain: Interval | Categories) -> pa.Array:
    """One value of the domain for each individual: a total function, so no cell can make a run fail.

    A number that is none becomes the low end and a level that is not listed the first: the same as a missing cell.

    >>> column_of(np.array([np.nan, 7.0, -3.0]), Interval(0, 5)).to_pylist()
    [0.0, 5.0, 0.0]
    >>> column_of(np.array(["b", None, "z"], dtype=object), Categories(["a", "b"])).to_pylist()
    ['b', 'a', 'a']
    """
    array = np.asarray(values)
    if isinstance(domain, Interval):
        numbers = np.array([np.nan if one is None else one for one in array]) if array.dtype == object else array
        placed = np.nan_to_num(numbers.astype(np.float64), nan=domain.low, posinf=domain.high, neginf=domain.low)
        return pa.array(np.clip(placed, domain.low, domain.high))
    known = {_plain(value): place for place, value in enumerate(domain.values)}
    levels, inverse = np.unique(
        np.array([_plain(value) for value in array.tolist()], dtype=object), return_inverse=True
    )
    codes = np.array([known.get(level, 0) for level in levels], dtype=np.int64)[inverse.ravel()]
    return pa.array(list(domain.values), ARROW_TYPES[domain.scalar]).take(pa.array(codes))


def _plain(value: Any) -> str:
    """A level as text: 1, 1.0 and "1" are the same cell read from tables of different types."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)
