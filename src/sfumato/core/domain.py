"""What may stand in a column, said in public: an interval of numbers or a list of categories.

    Domain (abstract)
    ├── Interval    numbers between two public bounds
    └── Categories  one of a public list of strings, integers or booleans

In:   public bounds and lists, written down by a person who did not look at the data.
Out:  `place`: every value of a private column put inside the domain. Only a column's type can be refused.
Not here: several columns together and their encoding as one matrix (core/schema.py), reading tables (core/tables.py),
one Python object (core/cell.py), types (core/cell_types.py), how the curator is told of a cell (core/curator.py).

A value outside an interval is clipped in silence: to count or to show how many would publish a private number. No cell
makes a column fail, because a failure would tell of it: a cell that nothing was declared for has a fixed place, and the
curator alone is told, by an UndeclaredCellWarning that names the column. A typed column is judged by its type; a list
of Python objects has none but those of its cells, so it is read cell by cell.
"""

from __future__ import annotations

import itertools
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.calendar import shown
from sfumato.core.calendar_columns import calendar_cell, calendar_numbers, holds_calendar
from sfumato.core.cell import number_of, text_of
from sfumato.core.cell_types import (
    ARROW_TYPES,
    HOLDS,
    HOLDS_NATIVE,
    as_numbers,
    chunked,
    column_at_once,
    comparable,
    fits_type,
    holds_native_numbers,
    holds_numbers,
    integer_of,
    truth_of,
    wrong_type,
)
from sfumato.core.curator import tell_missing, tell_unfolded, tell_unlisted
from sfumato.core.folding import folded, folded_column, two_alike
from sfumato.core.tables import as_column, plain_type, untyped_cells
from sfumato.errors import SchemaError

__all__ = ["Categories", "Domain", "Interval", "Scalar", "checked_number", "checked_text"]

Scalar = str | int | bool


class Domain(ABC):
    """The public description of one column. Final classes: Interval, Categories."""

    __slots__ = ()

    kind: ClassVar[str]

    @property
    @abstractmethod
    def features(self) -> int:
        """How many numbers encode one value."""

    @abstractmethod
    def feature_names(self, name: str) -> tuple[str, ...]:
        """A label for each of these numbers when the column is called `name`."""

    @abstractmethod
    def accepts(self, kind: pa.DataType) -> bool:
        """Whether columns of this Arrow type can be placed."""

    @abstractmethod
    def check_type(self, kind: pa.DataType, name: str) -> None:
        """Refuse a column by its type, which its file or its maker says, never by its cells."""

    @abstractmethod
    def read(self, column: Any, name: str) -> pa.ChunkedArray:
        """A column as Arrow data of a type that can be placed; Python objects are read one by one."""

    @abstractmethod
    def place(self, column: Any, name: str) -> NDArray[Any]:
        """Every value of a private column put inside the domain. `name` is used in refusals and warnings."""

    @abstractmethod
    def places(self) -> str:
        """Where cells go that are missing or not listed, in words; public."""

    @abstractmethod
    def fill(self, target: NDArray[np.float64], column: Any, name: str, scale: float) -> None:
        """Write the encoding, entries in [0, scale], into `target`, which holds zeros of shape (rows, features)."""


@final
@dataclass(frozen=True, slots=True)
class Interval(Domain):
    """Numbers from `low` to `high`. Values outside, ±inf too, are clipped; missing values and NaN become `null`.

    `null=None` is your word that there are none. One that is there all the same is put at the middle of the interval,
    and an UndeclaredCellWarning tells you so. `edges` are public ends of bins for whoever counts (synthetic rows): they
    rise from `low` to `high`; one that stands twice is a bin of its own for exactly that value.

    >>> Interval(0, 110, null=0).place(np.array([34.0, 250.0, np.nan]), "age")
    array([ 34., 110.,   0.])
    """

    kind: ClassVar[str] = "interval"
    #: Where no bounds are public numbers are still moved to ±2^31.
    WIDEST: ClassVar[float] = 2.0**31

    low: float
    high: float
    null: float | None = field(default=None, kw_only=True)
    edges: tuple[float, ...] | None = field(default=None, kw_only=True, repr=False)
    #: The part of a budget that bounds are bought with, where none are public.
    share: float | None = field(default=None, kw_only=True, repr=False)
    #: "date" or "time": numbers stand for days since 1970-01-01 or seconds since midnight, and such cells are read.
    calendar: str = field(default="", kw_only=True, repr=False)

    @classmethod
    def private(cls, share: float, *, null: float | None = None) -> Interval:
        """For studies: no bounds are public, and whoever asks for a mean or a sum buys them with a part of its budget.

        >>> Interval.private(0.1).share
        0.1
        """
        return cls(-cls.WIDEST, cls.WIDEST, null=null, share=share)

    def __post_init__(self) -> None:
        if self.share is not None and not 0 < checked_number(self.share, "Interval: share") < 1:
            raise SchemaError(f"Interval.private: the share of a budget lies between 0 and 1, not {self.share!r}.")
        if self.calendar not in ("", "date", "time"):
            raise SchemaError('Interval: calendar is "date" or "time", or left out.')
        for end in ("low", "high"):
            object.__setattr__(self, end, checked_number(getattr(self, end), f"Interval: {end}"))
        if not self.low < self.high:
            raise SchemaError(f"Interval: low must be below high, and {self.low!r} is not below {self.high!r}.")
        if not math.isfinite(self.width):
            raise SchemaError(f"Interval: the width from {self.low!r} to {self.high!r} is too large for a float.")
        if self.null is not None:
            object.__setattr__(self, "null", checked_number(self.null, "Interval: null"))
            if not self.low <= self.null <= self.high:
                raise SchemaError(
                    f"Interval: null={self.null!r} lies outside [{self.low!r}, {self.high!r}]. null= is what an "
                    "absent cell counts as. A code that stands for absent cells, such as -99, is made absent before: "
                    "frame[…].replace(-99, float('nan'))."
                )
        if self.edges is not None:
            object.__setattr__(self, "edges", _checked_edges(self.edges, self.low, self.high))

    @property
    def width(self) -> float:
        """high - low: how far one value can move."""
        return self.high - self.low

    @property
    def features(self) -> int:
        """One number."""
        return 1

    def feature_names(self, name: str) -> tuple[str, ...]:
        """The column's own name."""
        return (name,)

    def accepts(self, kind: pa.DataType) -> bool:
        """Integers, floating-point numbers, decimals, truth values; and the type of a column without any value."""
        plain = plain_type(kind)
        return pa.types.is_null(kind) or holds_numbers(plain) or holds_calendar(plain, self.calendar)

    def check_type(self, kind: pa.DataType, name: str) -> None:
        """DataError unless the type holds numbers."""
        if not self.accepts(kind):
            raise wrong_type(kind, name, f"an interval needs {f'{self.calendar}s' if self.calendar else 'numbers'}")

    def read(self, column: Any, name: str) -> pa.ChunkedArray:
        """Numbers as they are; Python objects as the numbers they hold or spell."""
        cells = untyped_cells(column, name)
        if cells is None:
            return calendar_numbers(_typed(self, column, name), self.calendar)
        if self.calendar:
            return chunked([calendar_cell(cell, self.calendar) for cell in cells], pa.float64())
        quick = column_at_once(cells, name, holds_native_numbers)
        return quick if quick is not None else chunked([number_of(cell) for cell in cells], pa.float64())

    def place(self, column: Any, name: str) -> NDArray[np.float64]:
        """The values in their own unit, clipped, missing ones put at `null`, or else at the middle."""
        values = as_numbers(self.read(column, name))
        missing = np.isnan(values)
        placed = np.clip(values, self.low, self.high)
        if missing.any():
            placed[missing] = self.middle if self.null is None else self.null
            if self.null is None:
                within = f"a number in [{self.low}, {self.high}]"
                if self.calendar:
                    within = " to ".join(shown(end, self.calendar) for end in (self.low, self.high))
                tell_missing(name, "the middle of its interval", f"null = … ({within})")
        return placed

    @property
    def middle(self) -> float:
        """Where a missing value goes when nothing was declared."""
        return min(self.low + self.width / 2, self.high)

    def places(self) -> str:
        """A sentence part about missing cells."""
        if self.null is None:
            middle = shown(self.middle, self.calendar)
            return f"none was declared to be missing; such a cell counts as {middle}, the middle"
        return f"a missing cell counts as {shown(self.null, self.calendar)}"

    def fill(self, target: NDArray[np.float64], column: Any, name: str, scale: float) -> None:
        """(value - low) / width: rounding is monotone, so the quotient never leaves [0, 1]."""
        placed = self.place(column, name)
        placed -= self.low
        placed /= self.width
        np.multiply(placed, scale, out=target[:, 0])


@final
@dataclass(frozen=True, slots=True)
class Categories(Domain):
    """One of the listed values: all strings, all integers or all booleans, in the order given.

    `unknown` and `null` are members of the list that receive unlisted and missing values. None is your word that there
    are none. One that is there all the same counts as the first of the list, and an UndeclaredCellWarning tells you so.
    Booleans and integers are different: True is not 1. With `fold` capital letters, blanks at the ends of a word and
    how many stand inside it make no difference ("Yes ", "YES" and "yes" are one word); what is published are the words
    as listed.

    >>> Categories(["f", "m"], unknown="m").place(np.array(["m", "x", "f"]), "sex")
    array([1, 1, 0])
    >>> Categories(["no", "yes"], fold=True).place(np.array(["Yes ", "NO", "yes"]), "smoker")
    array([1, 0, 1])
    """

    kind: ClassVar[str] = "categories"

    values: tuple[Scalar, ...]
    unknown: Scalar | None = field(default=None, kw_only=True)
    null: Scalar | None = field(default=None, kw_only=True)
    fold: bool = field(default=False, kw_only=True)
    # Takes part in equality, because to Python (True, False) == (1, 0).
    scalar: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = _checked_values(self.values)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "scalar", type(values[0]).__name__)
        for role in ("unknown", "null"):
            object.__setattr__(self, role, self._member(getattr(self, role), role))
        _check_fold(self.fold, values)

    def _member(self, value: Any, role: str) -> Scalar | None:
        if value is None:
            return None
        member = _checked_scalar(value)
        if type(member) is not type(self.values[0]) or member not in self.values:
            raise SchemaError(f"Categories: {role}={member!r} is not one of the values {_shown(self.values)}.")
        return member

    @property
    def features(self) -> int:
        """One number per category."""
        return len(self.values)

    def feature_names(self, name: str) -> tuple[str, ...]:
        """name=value for each category."""
        return tuple(f"{name}={value}" for value in self.values)

    def accepts(self, kind: pa.DataType) -> bool:
        """The type of the listed values; and the type of a column without any value."""
        return pa.types.is_null(kind) or HOLDS[self.scalar](plain_type(kind))

    def check_type(self, kind: pa.DataType, name: str) -> None:
        """DataError unless the type is that of the listed values."""
        if not self.accepts(kind):
            raise wrong_type(kind, name, f"its categories are of type {self.scalar}")

    def read(self, column: Any, name: str) -> pa.ChunkedArray:
        """Values as they are; Python objects as what they hold or spell of the categories' type.

        A column of booleans fits the words "false" and "true" too: so a study lists them.

        >>> Categories(["false", "true"]).read(np.array([True, False]), "smoker").to_pylist()
        ['true', 'false']
        """
        cells = untyped_cells(column, name)
        if cells is None:
            found = as_column(column, name)
            if pa.types.is_boolean(found.type) and set(self.values) <= {"false", "true"}:
                return found.cast(pa.string())
            return _typed(self, found, name)
        quick = column_at_once(cells, name, HOLDS_NATIVE[self.scalar])
        if quick is not None:
            return quick
        if self.scalar == "str":
            return chunked([text_of(cell) for cell in cells], pa.string())
        if self.scalar == "bool":
            return chunked([truth_of(cell) for cell in cells], pa.bool_())
        # A number that no int64 holds stands as one that is not listed either.
        unlisted = next(number for number in range(len(self.values) + 1) if number not in self.values)
        return chunked([integer_of(cell, unlisted) for cell in cells], pa.int64())

    def place(self, column: Any, name: str) -> NDArray[np.int64]:
        """The position of each value in `values`; of the first where nothing was declared."""
        arrow = self.read(column, name)
        if pa.types.is_null(arrow.type):
            arrow = arrow.cast(ARROW_TYPES[self.scalar])
        arrow = folded_column(arrow) if self.fold else comparable(arrow)
        codes = self._codes(arrow)
        missing = arrow.is_null(nan_is_null=True).to_numpy()
        unlisted = (codes < 0) & ~missing
        codes[missing] = self._position(self.null)
        codes[unlisted] = self._position(self.unknown)
        if self.null is None and missing.any():
            tell_missing(name, f"its first category, {self.values[0]!r}", self._way("null"))
        if self.unknown is None and unlisted.any():
            tell_unlisted(name, f"its first category, {self.values[0]!r}", self._way("unknown"))
        if unlisted.any():
            self._tell_unfolded(arrow, unlisted, name)
        return codes

    def _tell_unfolded(self, arrow: pa.ChunkedArray, unlisted: NDArray[np.bool_], name: str) -> None:
        """Tell of cells that folding would find in the list; nothing to tell where the list itself would collide."""
        words = [value for value in self.values if isinstance(value, str)]
        if self.fold or not words or two_alike(words):
            return
        others = folded_column(pa.chunked_array([arrow.filter(pa.array(unlisted)).unique()]))
        if not {folded(word) for word in words}.isdisjoint(others.to_pylist()):
            tell_unfolded(name)

    def _position(self, member: Scalar | None) -> int:
        return 0 if member is None else self.values.index(member)

    def places(self) -> str:
        """A sentence part about missing and unlisted cells."""
        first = f"{self.values[0]}, the first"
        missing = f"{first} (none was declared)" if self.null is None else f"{self.null}"
        unlisted = f"{first} (none was declared)" if self.unknown is None else f"{self.unknown}"
        case = "capital letters and blanks make no difference; " if self.fold else ""
        return f"{case}a missing cell counts as {missing}, an unlisted one as {unlisted}"

    def _codes(self, arrow: pa.ChunkedArray) -> NDArray[np.int64]:
        """Positions in `values`, -1 for whatever is not listed."""
        # A category the column's type cannot express (300 in an int8 column) cannot occur in it either.
        values = [folded(str(value)) for value in self.values] if self.fold else self.values
        expressed = [(code, value) for code, value in enumerate(values) if fits_type(value, arrow.type)]
        # Arrow refuses 2**54 as a float although it is one, so the integers are converted here.
        convert = float if pa.types.is_floating(arrow.type) else _unchanged
        listed = pa.array([convert(value) for _, value in expressed], type=arrow.type)
        from pyarrow import compute as pc

        options = pc.SetLookupOptions(value_set=listed, skip_nulls=True)
        found = pc.call_function("index_in", [arrow], options).fill_null(-1).to_numpy()
        # Position -1 is the last entry, so "not found" maps to the -1 appended there.
        return np.array([code for code, _ in expressed] + [-1], dtype=np.int64)[found]

    def _way(self, role: str) -> str:
        return f"{role} = … (one of {_shown(self.values)})"

    def fill(self, target: NDArray[np.float64], column: Any, name: str, scale: float) -> None:
        """One-hot: `scale` at the category's position, zero elsewhere."""
        codes = self.place(column, name)
        target[np.arange(len(codes)), codes] = scale


def checked_number(value: Any, what: str) -> float:
    """A finite float, or a SchemaError that starts with `what`; booleans are not numbers here.

    >>> checked_number(3, "norm")
    3.0
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise SchemaError(f"{what} must be a number, not {type(value).__name__}.")
    with suppress(OverflowError):
        if math.isfinite(value):
            return float(value)
    raise SchemaError(f"{what} must be a finite number.")


def _checked_edges(edges: Any, low: float, high: float) -> tuple[float, ...]:
    if isinstance(edges, (str, bytes, Set)) or not isinstance(edges, Iterable):
        raise SchemaError("Interval: edges must be a list of numbers.")
    checked = tuple(checked_number(edge, "Interval: edges") for edge in edges)
    pairs = list(itertools.pairwise(checked))
    twice = [first for first, second in pairs if first == second]
    if (checked[:1], checked[-1:]) != ((low,), (high,)) or any(first > second for first, second in pairs):
        raise SchemaError(f"Interval: edges must rise from {low:g} to {high:g}, the ends of the interval.")
    if len(twice) > len(set(twice)):
        raise SchemaError("Interval: an edge may stand twice (a bin for that value alone), not more often.")
    return checked


def checked_text(value: str, what: str) -> str:
    """Text that can be written as UTF-8; a lone surrogate cannot be stored in TOML or Arrow.

    >>> checked_text("âge", "column name")
    'âge'
    """
    with suppress(UnicodeEncodeError):
        value.encode("utf-8")
        return str.__str__(value)
    raise SchemaError(f"{what}: {value!r} holds half of a character (a lone surrogate). Leave it out.")


def _checked_values(values: Any) -> tuple[Scalar, ...]:
    if isinstance(values, (str, bytes, Set)) or not isinstance(values, Iterable):
        raise SchemaError(f"Categories: values must be an ordered list, not a {type(values).__name__}.")
    checked = tuple(_checked_scalar(value) for value in values)
    if not checked:
        raise SchemaError("Categories: at least one value is needed.")
    if len({type(value) for value in checked}) > 1:
        raise SchemaError("Categories: values must be all strings, all integers or all booleans, not a mixture.")
    seen: set[Scalar] = set()
    for value in checked:
        if value in seen:
            raise SchemaError(f"Categories: {value!r} is listed more than once.")
        seen.add(value)
    return checked


def _check_fold(fold: Any, values: tuple[Scalar, ...]) -> None:
    if not isinstance(fold, bool):
        raise SchemaError(f"Categories: fold is True or False, not {type(fold).__name__}.")
    if not fold:
        return
    words = [value for value in values if isinstance(value, str)]
    if not words:
        raise SchemaError("Categories: fold is for words; numbers and truth values have no case. Leave fold out.")
    alike = two_alike(words)
    if alike:
        raise SchemaError(f"Categories: {alike[0]!r} and {alike[1]!r} are one word when folded. List one of them.")


def _checked_scalar(value: Any) -> Scalar:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise SchemaError("Categories: an integer must fit in 64 bits; write larger ones as strings.")
        return int(value)
    if isinstance(value, str):
        return checked_text(value, "Categories")
    raise SchemaError(f"Categories: a value must be a string, an integer or a boolean, not {type(value).__name__}.")


def _shown(values: tuple[Scalar, ...]) -> str:
    shown = ", ".join(repr(value) for value in values[:8])
    return f"{shown}, …" if len(values) > 8 else shown


def _typed(domain: Domain, column: Any, name: str) -> pa.ChunkedArray:
    arrow = as_column(column, name)
    domain.check_type(arrow.type, name)
    return arrow


def _unchanged(value: Scalar) -> Scalar:
    return value
