"""The public description of a table: its columns, what may stand in them, and the norm of a record.

In:   column names and Domains, from Python or from TOML.
Out:  Schema; `encode`: a private table as a matrix inside a public box or ball; TOML text.
Not here: one column on its own (core/domain.py), reading and giving back tables (core/tables.py).

The encoding uses nothing but the schema: no mean, no maximum, no list of observed categories.

    norm = 1.0              # optional: every record has L2 norm at most this

    [columns.age]
    kind = "interval"
    low = 0
    high = 110
    null = 0                # optional: where missing values go
    edges = [0, 18, 65, 110]  # optional: bins for whoever counts

    [columns.admitted]
    kind = "interval"
    low = 2020-01-01        # days; low = 08:00:00 makes it times of day
    high = 2020-12-31

    [columns.sex]
    kind = "categories"
    values = ["f", "m"]
    unknown = "f"           # optional: where unlisted values go
    fold = true             # optional: capital letters and blanks make no difference

    [[impossible]]          # optional, as often as needed: what cannot occur together
    sex = ["m"]
    age = [0, 5]            # of an interval: from, to
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.card import Card, Shown
from sfumato.core.calendar import shown
from sfumato.core.calendar_columns import calendar_cell
from sfumato.core.domain import Categories, Domain, Interval, checked_number, checked_text
from sfumato.core.tables import Extra, as_arrow, nearest
from sfumato.core.whole_file import write_whole_file
from sfumato.errors import SchemaError

__all__ = ["Schema"]

_KINDS: dict[str, type[Any]] = {domain.kind: domain for domain in (Interval, Categories)}
# Outside this range the squares of the entries overflow or lose digits, and no float could confirm the norm.
_SMALLEST_NORM, _LARGEST_NORM = 1e-100, 1e100


@final
@dataclass(frozen=True, eq=False, repr=False)
class Schema(Shown):
    """Columns in order, each with its Domain; with `norm`, a bound on the L2 norm of every encoded record.

    `impossible` lists combinations that everybody knows cannot occur, each a mapping from two or three columns to
    categories, or to the two ends of a range of numbers: synthetic rows keep away from them.

    Equal when columns, order, domains, norm and what is impossible are equal.

    >>> schema = Schema({"age": Interval(0, 100), "sex": Categories(["f", "m"])})
    >>> schema.encode({"age": [25, 200], "sex": ["m", "f"]})
    array([[0.25, 0.  , 1.  ],
           [1.  , 1.  , 0.  ]])
    """

    columns: Mapping[str, Domain]
    norm: float | None = None
    impossible: Sequence[Mapping[str, Sequence[Any]]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(_checked_columns(self.columns)))
        object.__setattr__(self, "impossible", _checked_impossible(self.impossible, self.columns))
        if self.norm is not None:
            object.__setattr__(self, "norm", _checked_norm(self.norm))

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        norm = "" if self.norm is None else f", norm={self.norm!r}"
        never = f", impossible={[dict(entry) for entry in self.impossible]!r}" if self.impossible else ""
        return f"Schema({dict(self.columns)!r}{norm}{never})"

    def _card(self) -> Card:
        rows = [[name, domain.kind, *_words(domain)] for name, domain in self.columns.items()]
        head = ["column", "kind", "may hold", "absent or unlisted cells"]
        return Card("Schema", head=head, rows=rows, kind="public facts, never learned from data")

    def __reduce__(self) -> tuple[type[Schema], tuple[Any, ...]]:
        # A mapping proxy cannot be pickled.
        return Schema, (dict(self.columns), self.norm, [dict(entry) for entry in self.impossible])

    @property
    def _key(self) -> tuple[Any, ...]:
        return tuple(self.columns.items()), self.norm, tuple(tuple(entry.items()) for entry in self.impossible)

    @cached_property
    def slices(self) -> Mapping[str, slice]:
        """For each column, where it stands in the encoding."""
        ends = list(itertools.accumulate((domain.features for domain in self.columns.values()), initial=0))
        return MappingProxyType({name: slice(*ends[at : at + 2]) for at, name in enumerate(self.columns)})

    @property
    def width(self) -> int:
        """Number of columns of the encoding."""
        return sum(domain.features for domain in self.columns.values())

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A label for each column of the encoding, such as "age" and "sex=f"; positions are in `slices`."""
        return tuple(label for name, domain in self.columns.items() for label in domain.feature_names(name))

    def select(self, names: Iterable[str]) -> Schema:
        """The named columns only, in the order named; the norm stays."""
        return self._of({name: self.columns[name] for name in self._known(names)})

    def without(self, names: Iterable[str]) -> Schema:
        """Every column but the named ones; the norm stays."""
        dropped = self._known(names)
        return self._of({name: domain for name, domain in self.columns.items() if name not in dropped})

    def _of(self, columns: dict[str, Domain]) -> Schema:
        return Schema(columns, self.norm, [entry for entry in self.impossible if entry.keys() <= columns.keys()])

    def _known(self, names: Iterable[str]) -> list[str]:
        listed = [names] if isinstance(names, str) else list(names)
        for name, times in Counter(listed).items():
            if name not in self.columns:
                raise SchemaError(f"No column {name!r} is declared{nearest(str(name), self.columns)}.")
            if times > 1:
                raise SchemaError(f"Column {name!r} is named more than once.")
        return listed

    def encode(self, table: Any, *, extra: Extra = "refuse") -> NDArray[np.float64]:
        """A private table as a C-contiguous matrix of shape (rows, width), inside a box or ball known in advance.

        Intervals are clipped and scaled to [0, 1], categories are one-hot. With `norm=r` each row is divided by
        the square root of the number of columns, the largest norm a row of the box can have, and multiplied by r:
        whatever the data, `np.linalg.norm(row) <= r`, also in floating point.

        >>> Schema({"age": Interval(0, 100), "dose": Interval(0, 5)}, norm=2.0).encode({"age": [50], "dose": [0]})
        array([[0.70710678, 0. ]])
        """
        arrow = as_arrow(table, self, extra=extra)
        encoded, scale = np.zeros((arrow.num_rows, self.width)), self._scale
        # Whole columns at a time: blocks of rows that fit the cache were slower, Arrow's cost per call outweighs it.
        for name, domain in self.columns.items():
            domain.fill(encoded[:, self.slices[name]], arrow.column(name), name, scale)
        return encoded

    @property
    def _scale(self) -> float:
        """The largest entry of an encoded row."""
        if self.norm is None:
            return 1.0
        # At most `count` entries of a row are not zero. Scaling, rounding each product, summing their squares and
        # the root together err by less than (count + 8) units in the last place: give that much away beforehand.
        count = len(self.columns)
        return self.norm / math.sqrt(count) * (1.0 - (count + 8) * math.ulp(1.0))

    @staticmethod
    def from_toml(source: str | os.PathLike[str]) -> Schema:
        """The schema written in TOML text; a Path is read as a file, a str is always the text itself.

        >>> Schema.from_toml('columns.age = {kind = "interval", low = 0, high = 110}').columns["age"]
        Interval(low=0.0, high=110.0, null=None)
        """
        if isinstance(source, os.PathLike):
            return Schema.read(source)
        if not isinstance(source, str):
            raise SchemaError(f"Schema.from_toml needs TOML text or a Path, not a {type(source).__name__}.")
        return _parsed(source)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Schema:
        """The schema in a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise SchemaError(f"{os.fspath(path)}: there is no such schema file. Nothing was spent.") from None
        except (OSError, ValueError) as error:
            raise SchemaError(f"{os.fspath(path)}: the schema file cannot be read as UTF-8 text ({error}).") from error
        try:
            return _parsed(text)
        except SchemaError as error:
            raise SchemaError(f"{os.fspath(path)}: {error}") from error

    def to_toml(self) -> str:
        """TOML text from which `from_toml` makes an equal schema.

        >>> print(Schema({"age": Interval(0, 110)}).to_toml())
        [columns.age]
        kind = "interval"
        low = 0
        high = 110
        """
        head = [] if self.norm is None else [f"norm = {_toml_value(self.norm)}\n"]
        never = ["\n".join(["[[impossible]]", *_toml_lines(entry)]) + "\n" for entry in self.impossible]
        return "\n".join(head + [_toml_table(name, domain) for name, domain in self.columns.items()] + never)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the TOML file in one step: a reader finds the old file or the new one, never half of it."""
        target = Path(path)
        if not target.name:
            raise SchemaError(f"{os.fspath(path)!r} is not the name of a file.")
        try:
            write_whole_file(target, self.to_toml())
        except (OSError, ValueError) as error:
            raise SchemaError(f"{target}: the schema cannot be written ({error}).") from error


def _words(domain: Domain) -> tuple[str, str]:
    if isinstance(domain, Interval):
        return f"{shown(domain.low, domain.calendar)} to {shown(domain.high, domain.calendar)}", domain.places()
    values = domain.values if isinstance(domain, Categories) else ()
    return ", ".join(map(str, values[:8])) + (f", … ({len(values)})" if len(values) > 8 else ""), domain.places()


def _checked_columns(columns: Any) -> dict[str, Domain]:
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError("Schema: columns must be a mapping from at least one name to its Domain.")
    for name, domain in columns.items():
        if not isinstance(name, str):
            raise SchemaError(f"Schema: a column name must be a string, not {type(name).__name__}.")
        if not isinstance(domain, Domain):
            raise SchemaError(f"Schema: column {name!r} needs an Interval or Categories, not {type(domain).__name__}.")
        if isinstance(domain, Interval) and domain.share is not None:
            raise SchemaError(
                f"Schema: column {name!r} has no public bounds, and only studies can buy them. Give Interval(low, "
                "high) from general knowledge. Nothing was spent."
            )
    return {checked_text(name, "Schema: column name"): domain for name, domain in columns.items()}


def _checked_impossible(entries: Any, columns: Mapping[str, Domain]) -> tuple[Mapping[str, tuple[Any, ...]], ...]:
    if isinstance(entries, (str, bytes, Mapping)) or not isinstance(entries, Iterable):
        raise SchemaError("Schema: impossible must be a list of mappings from columns to values.")
    return tuple(_checked_combination(entry, columns) for entry in entries)


def _checked_combination(entry: Any, columns: Mapping[str, Domain]) -> Mapping[str, tuple[Any, ...]]:
    if not isinstance(entry, Mapping) or not 2 <= len(entry) <= 3:
        raise SchemaError("Schema: impossible combines two or three columns, such as {sex: [m], age: [0, 5]}.")
    checked: dict[str, tuple[Any, ...]] = {}
    for name, values in entry.items():
        domain = columns.get(name)
        if domain is None:
            raise SchemaError(f"Schema: impossible names {name!r}, which is no column{nearest(str(name), columns)}.")
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise SchemaError(f"Schema: impossible needs a list of values for {name}.")
        checked[name] = _impossible_values(name, domain, tuple(values))
    return MappingProxyType(checked)


def _impossible_values(name: str, domain: Domain, listed: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(domain, Interval):
        numbers = [_calendar_number(end, domain.calendar) for end in listed]
        ends = tuple(checked_number(end, f"Schema: impossible {name}") for end in numbers)
        if len(ends) != 2 or not domain.low <= ends[0] <= ends[1] <= domain.high:
            raise SchemaError(f"Schema: impossible needs the two ends of a range inside {name}'s interval.")
        return ends
    if isinstance(domain, Categories) and listed and all(value in domain.values for value in listed):
        return listed
    raise SchemaError(f"Schema: impossible names a value of {name} that is not among its categories.")


def _checked_norm(norm: Any) -> float:
    checked = checked_number(norm, "Schema: norm")
    if not _SMALLEST_NORM <= checked <= _LARGEST_NORM:
        raise SchemaError(f"Schema: norm must lie between {_SMALLEST_NORM} and {_LARGEST_NORM}.")
    return checked


def _parsed(text: str) -> Schema:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # ValueError and not only TOMLDecodeError: an integer of 5000 digits raises the former.
        hint = "" if "\n" in text or not text.endswith(".toml") else " To read a file call Schema.read(path)."
        raise SchemaError(f"The schema is not valid TOML: {error}.{hint}") from error
    _refuse_unknown(document, ("columns", "norm", "impossible"), "the top level")
    columns = document.get("columns", {})
    if not isinstance(columns, dict):
        raise SchemaError("columns must be a table: write [columns.NAME] for each column.")
    domains = {name: _parsed_domain(name, entry) for name, entry in columns.items()}
    return Schema(domains, document.get("norm"), document.get("impossible", ()))


def _parsed_kind(entry: dict[str, Any], where: str) -> type[Any]:
    kind = entry.get("kind")
    domain = _KINDS.get(kind) if isinstance(kind, str) else None
    if domain is None:
        given = f"kind {kind!r} is not known{nearest(str(kind), _KINDS)}" if "kind" in entry else "kind is missing"
        raise SchemaError(
            f"{where}: {given}. Write kind = {' or '.join(map(_toml_text, _KINDS))}; days and times are intervals "
            "whose ends are written so: low = 2020-01-01, low = 06:30:00."
        )
    return domain


def _refuse_open(name: str, entry: dict[str, Any], where: str) -> None:
    open_keys = [key for key, value in entry.items() if isinstance(value, str) and value.startswith("FILL IN")]
    if open_keys:
        raise SchemaError(
            f"{where}: {' and '.join(open_keys)} of the column {name!r} still say FILL IN. Write public facts about "
            "the column there, never its smallest or largest value. Nothing was spent."
        )


def _refuse_missing(entry: dict[str, Any], known: list[dataclasses.Field[Any]], where: str) -> None:
    for part in known:
        if part.default is dataclasses.MISSING and part.name not in entry:
            raise SchemaError(f"{where}: {part.name} is missing. Add a line {part.name} = …")


def _parsed_domain(name: str, entry: Any) -> Domain:
    where = f"columns.{_toml_key(name)}"
    if not isinstance(entry, dict):
        raise SchemaError(f'{where} must be a table with a kind, such as kind = "interval".')
    domain = _parsed_kind(entry, where)
    _refuse_open(name, entry, where)
    known = [part for part in dataclasses.fields(domain) if part.init]
    _refuse_unknown(entry, ("kind", *(part.name for part in known)), where)
    _refuse_missing(entry, known, where)
    given = {key: value for key, value in entry.items() if key != "kind"}
    try:
        return domain(**_as_numbers(given))
    except SchemaError as error:
        raise SchemaError(f"{where}: {error}") from error


def _as_numbers(entry: dict[str, Any]) -> dict[str, Any]:
    """Days and times of day of an interval as the numbers they stand for; `low` says which of the two they are."""
    unit = {date: "date", time: "time"}.get(type(entry.get("low")))
    if unit is None:
        return entry
    given = {"calendar": unit, **entry}
    return {key: _calendar_number(value, unit) for key, value in given.items()}


def _calendar_number(value: Any, unit: str) -> Any:
    if isinstance(value, list):
        return [_calendar_number(one, unit) for one in value]
    return calendar_cell(value, unit) if isinstance(value, date | time) else value


def _refuse_unknown(entry: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in entry:
        if key not in known:
            listed = ", ".join(known)
            raise SchemaError(
                f"{where}: the key {key!r} is not known{nearest(key, known)}. Remove it, or use one of {listed}."
            )


def _toml_table(name: str, domain: Domain) -> str:
    lines = [f"[columns.{_toml_key(name)}]", f"kind = {_toml_text(domain.kind)}"]
    for part in dataclasses.fields(_KINDS[domain.kind]):
        value = getattr(domain, part.name)
        if part.init and value != part.default:
            lines.append(f"{part.name} = {_toml_value(value)}")
    return "\n".join(lines) + "\n"


def _toml_lines(entry: Mapping[str, Sequence[Any]]) -> list[str]:
    return [f"{_toml_key(name)} = {_toml_value(values)}" for name, values in entry.items()]


def _toml_value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    # A bound of 110 is written as 110, the way a person would; below 2**53 it reads back as the same float.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return repr(int(value))
    return repr(value)


def _toml_key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else _toml_text(name)


def _toml_text(text: str) -> str:
    """A basic string, valid as a key too."""
    return '"' + "".join(map(_toml_character, text)) + '"'


def _toml_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    # Control characters may not stand in TOML; the C1 ones and line separators may, but editors break lines at them.
    if ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 or character in "\u2028\u2029":
        return f"\\u{ord(character):04x}"
    return character
