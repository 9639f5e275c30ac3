"""Columns as levels: numbers between public edges, categories by their list, absence where it is declared.

In:   a schema, public edges, the type of a column in its file.
Out:  Levels: codes from values and values from codes.
Not here: counting (release/synthetic/counts.py). Edges are public; no private value decides any.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.schema import Schema
from sfumato.core.tables import nearest
from sfumato.errors import SchemaError

__all__ = ["DEFAULT_BINS", "MOST_LEVELS", "Levels", "levels_of"]

#: Into how many equal parts an interval is cut when no edges are given.
DEFAULT_BINS = 16
#: Tables of counts grow with the product of levels; beyond this a column needs a coarser public list.
MOST_LEVELS = 4096


@dataclass(frozen=True)
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

    @cached_property
    def listed(self) -> int:
        """How many levels stand for values."""
        return len(self.domain.values) if isinstance(self.domain, Categories) else len(self.edges) - 1

    @property
    def size(self) -> int:
        return self.listed + self.absent

    @property
    def names(self) -> tuple[str, ...]:
        """What each level is called: the category, or the ends of the bin."""
        if isinstance(self.domain, Categories):
            listed = tuple(str(value) for value in self.domain.values)
        else:
            listed = tuple(f"{low:g} to {high:g}" for low, high in itertools.pairwise(self.edges))
        return (*listed, "missing") if self.absent else listed

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
        return np.clip(np.searchsorted(self.edges, placed, side="right") - 1, 0, self.listed - 1).astype(np.int32)

    def values(self, codes: NDArray[np.int32], kind: pa.DataType, generator: np.random.Generator) -> pa.Array:
        """A value for each code, in the type the column has in its file; numbers lie inside their bin."""
        absent = codes >= self.listed
        held = np.where(absent, 0, codes)
        if isinstance(self.domain, Categories):
            values = pa.array(list(self.domain.values)).take(pa.array(held))
            return _masked(values, absent)
        numbers = self._numbers(held, pa.types.is_integer(kind), generator)
        array = pa.array(numbers, mask=absent)
        return array.cast(kind) if pa.types.is_integer(kind) else array

    def _numbers(self, codes: NDArray[np.int32], whole: bool, generator: np.random.Generator) -> NDArray[np.float64]:
        low, high = np.array(self.edges[:-1])[codes], np.array(self.edges[1:])[codes]
        share = generator.random(len(codes))
        if not whole:
            return low + share * (high - low)
        # Whole numbers of the half-open bin; the last bin holds its upper end too, as clipping puts values there.
        first = np.ceil(low)
        last = np.where(codes == self.listed - 1, np.floor(high), np.ceil(high) - 1)
        return first + np.floor(share * np.maximum(last - first + 1, 1))


def _masked(values: pa.Array, absent: NDArray[np.bool_]) -> pa.Array:
    if not absent.any():
        return values
    return pc.call_function("if_else", [pa.array(absent), pa.scalar(None, values.type), values])


def levels_of(schema: Schema, edges: Mapping[str, Sequence[float]], absent: Collection[str]) -> tuple[Levels, ...]:
    """The levels of every column, all of them public."""
    for given in (*edges, *absent):
        if given not in schema.columns:
            raise SchemaError(f"The schema has no column {given!r}{nearest(given, schema.columns)}. Nothing was spent.")
    return tuple(
        _checked(Levels(name, domain, _edges(name, domain, edges.get(name)), name in absent))
        for name, domain in schema.columns.items()
    )


def _edges(name: str, domain: Domain, given: Sequence[float] | None) -> tuple[float, ...]:
    if not isinstance(domain, Interval):
        if given is not None:
            raise SchemaError(f"{name} has listed categories, not edges. Nothing was spent.")
        return ()
    if given is None:
        return tuple(float(edge) for edge in np.linspace(domain.low, domain.high, DEFAULT_BINS + 1))
    edges = tuple(float(edge) for edge in given)
    rising = len(edges) >= 2 and all(first < second for first, second in itertools.pairwise(edges))
    if not rising or not np.isfinite(edges).all() or edges[:1] + edges[-1:] != (domain.low, domain.high):
        raise SchemaError(
            f"The edges of {name} must rise from {domain.low:g} to {domain.high:g}, the ends of its interval. "
            "Nothing was spent."
        )
    return edges


def _checked(levels: Levels) -> Levels:
    if levels.size > MOST_LEVELS:
        raise SchemaError(
            f"{levels.name} has {levels.size} levels, and a table of counts over them would be noise: list at most "
            f"{MOST_LEVELS}, the others as one called other. Nothing was spent."
        )
    return levels
