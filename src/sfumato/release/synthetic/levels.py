"""Columns as levels: numbers between public edges, categories by their list, absence where it is declared.

In:   a schema, edges, the type of a column in its file.
Out:  Levels: codes from values and values from codes.
Not here: counting (release/synthetic/counts.py), where a number lies inside its bin (release/synthetic/inside.py).
Edges are public, or were bought with noise (release/synthetic/bought.py); no private value decides any.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.calendar import shown
from sfumato.core.calendar_columns import calendar_cell, calendar_kind, calendar_values
from sfumato.core.cell_types import ARROW_TYPES
from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.schema import Schema
from sfumato.core.tables import nearest, plain_type
from sfumato.errors import SchemaError
from sfumato.release.synthetic.inside import Inside

__all__ = [
    "DEFAULT_BINS",
    "LARGEST_WHOLE",
    "MOST_LEVELS",
    "Levels",
    "kind_by_domain",
    "levels_of",
    "needs_edges",
    "perhaps_whole",
]

#: Into how many parts an interval is cut when no edges are given.
DEFAULT_BINS = 16
#: Whole numbers of a shorter interval are levels of their own.
_WHOLE_LEVELS = 24
#: Tables of counts grow with the product of levels; beyond this a column needs a coarser public list.
MOST_LEVELS = 4096
#: Of the ends of bins as they are called, and where two bins would be called the same.
_DIGITS = (10, 17)
#: From here on floating-point numbers leave whole ones out.
LARGEST_WHOLE = 2.0**53


@dataclass(frozen=True, eq=False)
class Levels:
    """One column's levels: the bins of an interval or the listed categories, and one more if absence is a level.

    >>> ages = Levels("age", Interval(0, 100), edges=(0.0, 50.0, 100.0))
    >>> ages.codes(pa.chunked_array([[10.0, 99.0, 50.0]])).tolist(), ages.size
    ([0, 1, 1], 2)
    """

    name: str
    domain: Domain
    edges: tuple[float, ...] = ()
    absent: bool = False  # missing values are a level of their own and come out as missing
    kind: pa.DataType = field(default_factory=pa.float64)
    #: Where numbers lie inside their bins; None before anything is known of it: evenly.
    inside: Inside | None = None
    #: Ranges that the schema rules out beside something else.
    ranges: tuple[tuple[float, float], ...] = ()

    @cached_property
    def listed(self) -> int:
        """How many levels stand for values."""
        return len(self.domain.values) if isinstance(self.domain, Categories) else len(self.edges) - 1

    @property
    def size(self) -> int:
        return self.listed + self.absent

    @property
    def calendar(self) -> str:
        """What its numbers stand for: "date", "time", or nothing but themselves."""
        return self.domain.calendar if isinstance(self.domain, Interval) else ""

    @property
    def whole(self) -> bool:
        """Whether its numbers are whole ones; days and seconds are."""
        return pa.types.is_integer(self.kind) or bool(self.calendar)

    @property
    def names(self) -> tuple[str, ...]:
        """What each level is called: the category, the ends of the bin, the first and last whole number in it."""
        listed = self._listed_names(_DIGITS[0])
        if len(set(listed)) < len(listed):
            listed = self._listed_names(_DIGITS[1])
        if not self.absent:
            return listed
        absent = "missing"
        while absent in listed:
            absent += " (no cell)"
        return (*listed, absent)

    def _listed_names(self, digits: int) -> tuple[str, ...]:
        if isinstance(self.domain, Categories):
            return tuple(str(value) for value in self.domain.values)
        bins = list(itertools.pairwise(self.edges))
        if not self.whole:
            return tuple(_between(*pair, digits) for pair in bins)
        return tuple(
            _between(first, beyond - 1, digits, self.calendar)
            if first < beyond
            else _between(*pair, digits)  # no whole number lies there
            for pair, (first, beyond) in zip(bins, itertools.pairwise(self.ends()), strict=True)
        )

    def codes(self, column: pa.ChunkedArray) -> NDArray[np.int32]:
        """The level of each value; what is outside, missing or unlisted goes where the schema says."""
        if not self.absent:
            return self._listed_codes(column)
        missing = column.is_null(nan_is_null=True).to_numpy().astype(bool)
        codes = np.full(len(column), self.listed, np.int32)
        if not missing.all():
            codes[~missing] = self._listed_codes(column.filter(pc.call_function("invert", [pa.array(missing)])))
        return codes

    def _listed_codes(self, column: pa.ChunkedArray) -> NDArray[np.int32]:
        placed = self.domain.place(column, self.name)
        if isinstance(self.domain, Categories):
            return placed.astype(np.int32)
        edges = np.array(self.edges)
        found = np.clip(np.searchsorted(edges, placed, side="right") - 1, 0, self.listed - 1)
        # An edge that stands twice is a bin for exactly that value: it begins one place before.
        alone = (found > 0) & (edges[found] == placed) & (edges[found - 1] == placed)
        return (found - alone).astype(np.int32)

    def place(self, column: pa.ChunkedArray) -> NDArray[np.float64]:
        """Each value as a number, for telling rows apart: the place in the list, the number itself, NaN if absent."""
        if not self.absent:
            return np.array(self.domain.place(column, self.name), np.float64)
        missing = column.is_null(nan_is_null=True).to_numpy().astype(bool)
        placed = np.full(len(column), np.nan)
        if not missing.all():
            held = column.filter(pc.call_function("invert", [pa.array(missing)]))
            placed[~missing] = self.domain.place(held, self.name)
        return placed

    def shaped(self, counts: NDArray[np.float64]) -> Levels:
        """The same with numbers placed smoothly inside their bins, by what is known of how many each bin holds."""
        if isinstance(self.domain, Categories) or self.inside is not None:
            return self
        return dataclasses.replace(self, inside=Inside.smooth(self.ends(), counts[: self.listed]))

    def values(self, codes: NDArray[np.int32], generator: np.random.Generator) -> pa.Array:
        """A value for each code, in the type the column has in its file; numbers lie inside their bin."""
        absent = codes >= self.listed
        held = np.where(absent, 0, codes)
        if isinstance(self.domain, Categories):
            values = pa.array(list(self.domain.values)).take(pa.array(held))
            return _as_kind(_masked(values, absent), self.kind)
        places = self.ends()
        return self.written(self.drawn(places[held], places[held + 1], generator), absent)

    def written(self, numbers: NDArray[np.float64], absent: NDArray[np.bool_] | None = None) -> pa.Array:
        """Numbers in the type of the column."""
        held = pa.array(numbers, mask=absent)
        return calendar_values(held, self.calendar, self.kind) if self.calendar else _as_kind(held, self.kind)

    def ends(self) -> NDArray[np.float64]:
        """The edges; of whole numbers those of [v, v + 1), so that a number drawn between them is rounded down.

        >>> Levels("dose", Interval(0, 10), edges=(0.0, 5.0, 5.0, 10.0), kind=pa.int64()).ends().tolist()
        [0.0, 5.0, 6.0, 11.0]
        """
        edges = np.array(self.edges)
        if not self.whole:
            return edges
        # Of an edge that stands twice the second one ends the bin for that value alone.
        ends = np.where(np.append(False, edges[1:] == edges[:-1]), np.floor(edges) + 1, np.ceil(edges))
        ends[-1] = np.floor(edges[-1]) + 1
        return ends

    def spans(self) -> NDArray[np.float64]:
        """Ends of the bins as they are told apart, each from its first value to before the next one's.

        >>> Levels("dose", Interval(0, 10), edges=(0.0, 5.0, 5.0, 10.0)).spans().tolist()
        [0.0, 5.0, 5.000000000000001, 10.000000000000002]
        """
        if self.whole:
            return self.ends()
        edges = np.array(self.edges)
        beyond = np.append(False, edges[1:] == edges[:-1])
        beyond[-1] = True
        return np.where(beyond, np.nextafter(edges, np.inf), edges)

    def span(self, low: float, high: float) -> tuple[float, float]:
        """The numbers from `low` to `high`, both included, from the first one to before the next."""
        if self.whole:
            return math.ceil(low), math.floor(high) + 1.0
        return low, math.nextafter(high, math.inf)

    @property
    def forced(self) -> tuple[float, ...]:
        """Where the column is cut if nobody says where: what is ruled out beside something has bins of its own."""
        domain = self.domain
        if not isinstance(domain, Interval):
            return ()
        if not self.whole:
            return tuple(sorted({end for pair in self.ranges for end in pair if domain.low < end < domain.high}))
        ends = {end for pair in self.ranges for end in self.span(*pair)}
        return tuple(sorted(end for end in ends if math.ceil(domain.low) < end <= math.floor(domain.high)))

    def drawn(
        self, low: NDArray[np.float64], high: NDArray[np.float64], generator: np.random.Generator
    ) -> NDArray[np.float64]:
        """A number in each [low, high) as they lie in the column; whole ones are rounded down."""
        inside = self.inside or Inside.smooth(self.ends(), np.ones(self.listed))
        numbers = inside.draw(low, high, generator)
        if not self.whole:
            return np.clip(numbers, self.edges[0], self.edges[-1])
        kept = np.iinfo(self.kind.to_pandas_dtype() if pa.types.is_integer(self.kind) else np.int64)
        low, high = max(np.ceil(self.edges[0]), float(kept.min)), min(np.floor(self.edges[-1]), float(kept.max))
        return np.clip(np.floor(numbers), low, max(low, high))


def _between(low: float, high: float, digits: int, calendar: str = "") -> str:
    first, last = (shown(end, calendar) if calendar else f"{end:.{digits}g}" for end in (low, high))
    return first if low == high else f"{first} to {last}"


def _masked(values: pa.Array, absent: NDArray[np.bool_]) -> pa.Array:
    if not absent.any():
        return values
    return pc.call_function("if_else", [pa.array(absent), pa.scalar(None, values.type), values])


def _as_kind(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """In the column's own type; where Arrow cannot write the values so, as they are: nothing fails after the noise."""
    with suppress(pa.ArrowException, TypeError, ValueError):
        if pa.types.is_decimal(kind):
            values = pc.call_function("round", [values], pc.RoundOptions(kind.scale))
        if pa.types.is_boolean(kind) and not pa.types.is_boolean(values.type):
            return pc.call_function("greater_equal", [values, pa.scalar(0.5)])
        return values.cast(kind) if not pa.types.is_null(kind) else values
    return values


def levels_of(
    schema: Schema,
    edges: Mapping[str, Sequence[Any]],
    absent: Collection[str],
    kinds: Mapping[str, pa.DataType] | None = None,
    whole: Collection[str] = (),
) -> tuple[Levels, ...]:
    """The levels of every column: by `edges`, by the schema's, one for each of a few whole numbers, or equal parts.

    `whole` are numbers of which somebody says that they are whole ones, whatever type their column has.
    """
    _check_named(schema, (*edges, *absent, *whole))
    for given in whole:
        _check_number(given, schema.columns[given])
    held = {name: plain_type(kind) for name, kind in (kinds or {}).items()}
    held |= {name: pa.int64() for name in whole if not pa.types.is_integer(held.get(name, pa.null()))}
    columns = (
        Levels(
            name,
            domain,
            absent=name in absent,
            kind=held.get(name) or _own_kind(domain),
            ranges=_ranges(schema, name),
        )
        for name, domain in schema.columns.items()
    )
    return tuple(_checked(_cut(column, edges.get(column.name))) for column in columns)


def _check_named(schema: Schema, names: Sequence[str]) -> None:
    for given in names:
        if given not in schema.columns:
            raise SchemaError(f"The schema has no column {given!r}{nearest(given, schema.columns)}. Nothing was spent.")


def _check_number(name: str, domain: Domain) -> None:
    if not isinstance(domain, Interval) or domain.calendar:
        held = "days or times, which are whole already" if isinstance(domain, Interval) else "listed categories"
        raise SchemaError(f"whole lists columns of numbers, and {name} has {held}. Nothing was spent.")
    if math.ceil(domain.low) > math.floor(domain.high):
        raise SchemaError(
            f"{name} is said to hold whole numbers, and none lies from {domain.low:g} to {domain.high:g}. Nothing was "
            "spent."
        )


def _ranges(schema: Schema, name: str) -> tuple[tuple[float, float], ...]:
    if not isinstance(schema.columns[name], Interval):
        return ()
    return tuple((entry[name][0], entry[name][1]) for entry in schema.impossible if name in entry)


def _own_kind(domain: Domain) -> pa.DataType:
    """The type of a column of which nothing but its domain is known."""
    return calendar_kind(domain.calendar) if isinstance(domain, Interval) and domain.calendar else pa.float64()


def kind_by_domain(domain: Domain) -> pa.DataType:
    """The type of what is made of a column whose type its cells may have decided: by its domain alone.

    >>> from sfumato.core.calendar_ranges import Dates
    >>> str(kind_by_domain(Interval(0, 9))), str(kind_by_domain(Dates("2020-01-01", "2020-12-31")))
    ('double', 'timestamp[us]')
    """
    if isinstance(domain, Categories):
        return ARROW_TYPES[domain.scalar]
    # Days as pandas shows them, who alone lets cells decide.
    return pa.timestamp("us") if isinstance(domain, Interval) and domain.calendar == "date" else _own_kind(domain)


def needs_edges(column: Levels, given: Collection[str]) -> bool:
    """Whether nobody has said how the column's numbers are to be cut."""
    if not isinstance(column.domain, Interval) or column.name in given or column.domain.edges is not None:
        return False
    return not (column.whole and column.domain.width < _WHOLE_LEVELS)


def perhaps_whole(columns: Sequence[Levels]) -> list[str]:
    """Numbers that come out with decimals, of an interval whose ends are whole: a guess, from public facts alone.

    >>> perhaps_whole([Levels("age", Interval(0, 110)), Levels("dose", Interval(0, 0.5))])
    ['age']
    """
    found = []
    for one in columns:
        if isinstance(one.domain, Interval) and not one.whole and pa.types.is_floating(one.kind):
            ends = (one.domain.low, one.domain.high, *(one.domain.edges or ()))
            found += [one.name] * all(end.is_integer() for end in ends)
    return found


def _cut(column: Levels, given: Sequence[Any] | None) -> Levels:
    """The column with its edges: those given, those of its domain, or such as follow from its ends."""
    name, domain = column.name, column.domain
    if not isinstance(domain, Interval):
        if given is not None:
            raise SchemaError(f"{name} has listed categories, not edges. Nothing was spent.")
        return column
    if given is None and domain.edges is None:
        return dataclasses.replace(column, edges=_default_edges(domain, column.whole, column.forced))
    try:
        listed = Interval(domain.low, domain.high, edges=_numbers(given, domain)) if given is not None else domain
    except SchemaError:
        low, high = (shown(end, domain.calendar) for end in (domain.low, domain.high))
        raise SchemaError(
            f"The edges of {name} must rise from {low} to {high}, the ends of its interval. Nothing was spent."
        ) from None
    assert listed.edges is not None
    return dataclasses.replace(column, edges=listed.edges)


def _numbers(given: Sequence[Any], domain: Interval) -> tuple[Any, ...]:
    """Edges as numbers, days and times of day too."""
    return tuple(calendar_cell(edge, domain.calendar) if domain.calendar else edge for edge in given)


def _default_edges(domain: Interval, whole: bool, forced: Sequence[float]) -> tuple[float, ...]:
    if whole and domain.width < _WHOLE_LEVELS and np.floor(domain.high) > np.ceil(domain.low):
        inner = np.arange(np.ceil(domain.low) + 1, np.floor(domain.high) + 1)
        return (domain.low, *inner.tolist(), domain.high)  # the last one may be a bin for `high` alone
    edges = {float(edge) for edge in np.linspace(domain.low, domain.high, DEFAULT_BINS + 1)}
    # A cut at the end itself is a bin for that number alone.
    return tuple(sorted([*edges.union(forced), *(edge for edge in forced if edge == domain.high)]))


def _checked(levels: Levels) -> Levels:
    if levels.size > MOST_LEVELS:
        raise SchemaError(
            f"{levels.name} has {levels.size} levels, and a table of counts over them would be noise: list at most "
            f"{MOST_LEVELS}, the others as one called other. Nothing was spent."
        )
    domain = levels.domain
    if isinstance(domain, Interval) and levels.whole and max(-domain.low, domain.high) >= LARGEST_WHOLE:
        raise SchemaError(
            f"{levels.name} holds whole numbers beyond 2^53, which cannot be told from their neighbours: subtract a "
            "public number from all of them, count in larger units, or make decimal numbers of them (float64), which "
            "are rounded. Nothing was spent."
        )
    return levels
