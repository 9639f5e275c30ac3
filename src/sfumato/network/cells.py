"""Where a variable's value stands in a table, and how it is read: placed into its public range, in SQL.

In:   a node with a column, the layout of its table.
Out:  Cell, and SQL that places a raw cell: clipped, unlisted categories and absent cells replaced.
Not here: joining cells of many tables (network/evaluate.py).

Rules, all of which look at one person's rows only: text of a CSV file that is no number is an absent cell where a
number is declared, but for true (1) and false (0); a number outside its range is clipped; a word 7.0 is 7, and a day at
midnight is that day, as programs write them for other cells' sake; words of a folded list are compared without capital
letters and blanks (core/folding.py); a category that is not listed takes the declared `unknown`, else the missing
value; an absent cell takes the missing value; where several rows of a person give one cell, the first in the order of
network/rows.py counts, or the mean of all with each_person.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sfumato.core.cell import DAY, name_of
from sfumato.core.domain import Categories, Interval
from sfumato.core.folding import folded
from sfumato.core.text import AnyText
from sfumato.errors import SchemaError
from sfumato.lang.spec import Spec
from sfumato.lang.term import Variable, indicator, match
from sfumato.network.condition import Member
from sfumato.network.convert import level_of
from sfumato.network.expression import Level, sql_level, sql_name
from sfumato.network.folding import sql_listed, sql_words
from sfumato.network.functions import sql_number
from sfumato.network.network import Node
from sfumato.network.plain import WRITTEN
from sfumato.network.refusal import refusal
from sfumato.network.rows import RANK
from sfumato.network.tables import (
    FLOATS,
    NUMBERS,
    TEXT,
    TableLayout,
    decimal_name,
    layout_of,
    number_text,
    plain_type,
    text_as_number,
    text_name,
)

__all__ = [
    "Cell",
    "among",
    "asserted",
    "cell_of",
    "equals",
    "final_value",
    "flag",
    "merged",
    "named_so",
    "placed",
    "single",
    "text_as_truth",
    "where",
    "word_as_listed",
]

_NUMBERS = NUMBERS | {"NULL", TEXT}
_WORDS = frozenset(("VARCHAR", "ENUM", "NULL", "BOOLEAN", TEXT))
#: Types of text, which may have been written by a program that looked at all cells.
_TEXTS = frozenset(("VARCHAR", TEXT))
#: Words that programs write in several ways: whole numbers (7.0), days (with a midnight) and moments.
_WRITTEN_OTHERWISE = re.compile(f"-?[0-9]+|{DAY.pattern}")
#: What days and times are read from; text is read as ISO 8601 writes them.
_MOMENTS = frozenset(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"))
_MOMENTS |= {"VARCHAR", "NULL", TEXT}
#: What a column of booleans holds as words, however a file of text writes them.
_BOOLEANS = frozenset(("false", "true"))
#: What is cut off at the ends of a word for a truth value.
_BLANKS = "' ' || chr(9) || chr(10) || chr(13) || chr(160)"
#: Whole numbers beyond this are compared as text: as floats some of them are equal.
_EXACT = 2**53
#: Types of whole numbers that are compared as such.
_WHOLE = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"))


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a table, the column that says whose row it is, and what other identity columns must be."""

    table: str
    column: str
    person: str | None
    matches: tuple[tuple[str, Level], ...]


def cell_of(spec: Spec, node: Node, people: Collection[str]) -> Cell:
    """Which cells hold the node's value: every variable of its column's atom is found in an identity column."""
    assert node.source is not None
    layout = layout_of(spec, node.source.table)
    person, matches = None, []
    for name, term in (match(node.source.atom, node.atom) or {}).items():
        column = layout.bound(name)
        if column is None:
            raise refusal(
                node.source.position,
                f"No identity column of {layout.table} says which {name} a cell of {node.source.name} belongs to.",
                f"Declare column({layout.table}, Name, kind({name})).",
            )
        if isinstance(term, Variable) and indicator(column.atom) in people:
            person = column.name
        else:
            matches.append((column.name, level_of(term, node.position)))
    return Cell(layout.table, node.source.name, person, tuple(matches))


def where(matches: Sequence[tuple[str, Level]]) -> str:
    """SQL for the rows with these values in these identity columns."""
    return " AND ".join(equals(column, level) for column, level in matches) or "TRUE"


def equals(column: str, level: Level) -> str:
    """SQL that compares any cell with a constant, as text or as a number where its text is one: it cannot fail."""
    text = f"{sql_name(column)}::VARCHAR"
    if isinstance(level, str):
        if DAY.fullmatch(level):  # which somebody else's hour gives a midnight in files of text
            return f"{text_name(text)} = {sql_level(str(name_of(level)))}"
        return f"{text} = {sql_level(level)}"
    if isinstance(level, bool):
        return f"coalesce(TRY_CAST({text} AS BOOLEAN) = {sql_level(level)}, FALSE)"
    if abs(level) > _EXACT and isinstance(level, int):
        return f"{text} = {sql_level(str(level))}"
    return f"coalesce(TRY_CAST({text} AS DOUBLE) = {sql_number(float(level))}, FALSE)"


def named_so(column: str, name: str) -> tuple[str, ...]:
    """SQL tests of a cell that names somebody, against a text; of decimals and of their text 3 and 3.0 are one name."""
    as_name = f"{text_name(f'{sql_name(column)}::VARCHAR')} = {sql_level(str(name_of(name)))}"
    try:
        number = float(name)
    except ValueError:
        return (equals(column, name),)
    kinds = ", ".join(f"'{kind}'" for kind in sorted(FLOATS))
    as_number = f"(typeof({sql_name(column)}) IN ({kinds}) AND {equals(column, number)})"
    return (equals(column, name), as_number, as_name) if math.isfinite(number) else (equals(column, name),)


def placed(node: Node, column: str, kind: str, absent: str = "NULL") -> str:
    """SQL for a raw cell put into its domain: a number, a listed word, the position of a listed number; or NULL.

    `absent` is what stands for a cell without a number between two ends; other cells stay NULL.
    """
    raw = sql_name(column)
    if isinstance(node.domain, Categories):
        return _placed_category(node, node.domain, raw, kind)
    if isinstance(node.domain, AnyText):
        return _group_name(raw, kind)
    number = _number_of(node, column, kind)
    if not isinstance(node.domain, Interval):
        return f"(CASE WHEN isnan({number}) THEN NULL ELSE {number} END)"
    return _clipped(node.domain, raw, number, kind, absent)


def _clipped(domain: Interval, raw: str, number: str, kind: str, absent: str) -> str:
    """SQL for a number between the ends of a range. Almost all cells are inside, so that is asked first."""
    low, high = sql_number(domain.low), sql_number(domain.high)
    if domain.calendar or plain_type(kind) not in _WHOLE or not -_EXACT < domain.low <= domain.high < _EXACT:
        # NULL and NaN are not inside, and NaN is larger than everything.
        beyond = f"WHEN {number} < {low} THEN {low} WHEN {number} > {high} AND NOT isnan({number}) THEN {high}"
        return f"(CASE WHEN {number} BETWEEN {low} AND {high} THEN {number} {beyond} ELSE {absent} END)"
    # Whole numbers are compared as they are: between whole ends lie those that lie between the ends.
    first, last = math.ceil(domain.low), math.floor(domain.high)
    beyond = f"WHEN {raw} < {first} THEN {low} WHEN {raw} > {last} THEN {high}"
    return f"(CASE WHEN {raw} BETWEEN {first} AND {last} THEN {number} {beyond} ELSE {absent} END)"


def _group_name(raw: str, kind: str) -> str:
    """SQL for the text of a cell that names a group: that of a number is the same whatever type its column has.

    Names are published, so it would be seen that one absent cell made decimals of a column of whole numbers. Those
    beyond 2⁵³ have the text of the decimal that they would become.
    """
    plain = plain_type(kind)
    if plain in FLOATS:
        return decimal_name(raw)
    if plain == "DECIMAL":  # as many digits as the longest cell of somebody has
        return f"regexp_replace(regexp_replace({raw}::VARCHAR, '([.][0-9]*?)0+$', '\\1'), '[.]$', '')"
    if kind == WRITTEN:
        return number_text(f"TRY_CAST({raw} AS DOUBLE)")
    if plain in _TEXTS:
        return text_name(raw)
    return number_text(f"{raw}::DOUBLE") if plain in NUMBERS - {"BOOLEAN"} else f"{raw}::VARCHAR"


def word_as_listed(text: str, domain: Categories) -> str:
    """SQL for the listed word that a cell of text means, else for the cell; of a list of 7 and 7.0 the one it spells.

    >>> word_as_listed("a", Categories(["7", "7.0"]))
    'a'
    """
    words = {str(name_of(word)): word for word in map(str, domain.values)}
    if len(set(map(folded, words)) if domain.fold else words) < len(domain.values):
        return text
    if not any(_WRITTEN_OTHERWISE.fullmatch(alone.strip()) for alone in words):
        return text  # no cell is written otherwise for the sake of a word such as these
    others = [f"WHEN {sql_level(alone)} THEN {sql_level(word)}" for alone, word in words.items() if alone != word]
    meant = f"CASE {text_name(text)} {' '.join(others)} ELSE {text_name(text)} END" if others else text_name(text)
    listed = ", ".join(map(sql_level, words.values()))
    return f"(CASE WHEN {text} IN ({listed}) THEN {text} ELSE {meant} END)"  # most cells are spelled as listed


def _number_of(node: Node, column: str, kind: str) -> str:
    """SQL for the number a cell stands for: days since 1970-01-01, seconds since midnight, or itself."""
    raw, unit = sql_name(column), node.domain.calendar if isinstance(node.domain, Interval) else ""
    if not unit:
        _check_type(node, column, kind, _NUMBERS, "numbers")
        return _as_number(raw, kind)
    _check_type(node, column, kind, _MOMENTS | ({"TIME"} if unit == "time" else {"DATE"}), f"{unit}s")
    if plain_type(kind) in (TEXT, "VARCHAR", "NULL"):
        read = ("TIMESTAMP", "DATE") if unit == "date" else ("TIME", "TIMESTAMP")
        moment = f"coalesce({', '.join(f'epoch(TRY_CAST({raw}::VARCHAR AS {one}))' for one in read)})"
    else:
        moment = f"epoch({raw})"
    # An infinite date has no epoch and is an absent cell.
    return f"floor({moment} / 86400.0)" if unit == "date" else f"({moment} - 86400.0 * floor({moment} / 86400.0))"


def _as_number(raw: str, kind: str) -> str:
    if plain_type(kind) == TEXT:
        return text_as_number(raw)
    return f"TRY_CAST({raw} AS DOUBLE)"


def text_as_truth(text: str) -> str:
    """SQL for text that may be a truth value, in every way in which a column of them is read: true, T, yes, y, 1."""
    return f"TRY_CAST(trim({text}, {_BLANKS}) AS BOOLEAN)"


def merged(node: Node, layout: TableLayout, column: str, kind: str, chosen: str) -> str:
    """SQL for one value out of all kept rows of a person that satisfy `chosen`; NULL when there is none."""
    value, only = placed(node, column, kind), "" if chosen == "TRUE" else f" FILTER (WHERE {chosen})"
    if layout.public:
        return f"min({value}){only}"
    if layout.each_person and not isinstance(node.domain, Categories | AnyText):
        inside = f"avg({value}){only}"
        if isinstance(node.domain, Interval):  # rounding may carry a mean out of the range
            inside = f"least(greatest({inside}, {sql_number(node.domain.low)}), {sql_number(node.domain.high)})"
        return f"(CASE WHEN count({value}){only} > 0 THEN {inside} END)"  # absent cells take no part in a mean
    return f"arg_min_null({value}, {sql_name(RANK)}){only}"


def single(node: Node, column: str, kind: str, chosen: str, absent: str = "NULL") -> str:
    """SQL for what `merged` gives where a person has one row, without grouping."""
    value = placed(node, column, kind, absent)
    return value if chosen == "TRUE" else f"(CASE WHEN {chosen} THEN {value} END)"


def final_value(node: Node, column: str) -> str:
    """SQL for the value of a placed cell: absent ones replaced, positions of categories turned into levels."""
    if isinstance(node.domain, AnyText):  # who has none is in no group
        return column if node.missing is None else f"coalesce({column}, {sql_level(str(node.missing))})"
    if not isinstance(node.domain, Categories):
        absent = "'nan'::DOUBLE" if node.missing is None else sql_number(float(node.missing))
        return f"coalesce({column}, {absent})"
    if node.domain.scalar == "str":
        word = node.missing if node.missing in node.domain.values else node.domain.values[0]
        return f"coalesce({column}, {sql_level(word)}::{_words_of(node.domain)})"  # type: ignore[arg-type]
    levels = node.domain.values
    first = levels.index(node.missing) if node.missing in levels else 0  # type: ignore[arg-type]
    listed = ", ".join(sql_level(level) for level in levels)
    return f"([{listed}])[coalesce({column}, {first}) + 1]"


def flag(member: Member, kinds: Mapping[str, str]) -> str:
    """SQL that is true for a person with such a row; a row without a cell it is about asserts nothing."""
    return f"bool_or({asserted(member, kinds)})"


def asserted(member: Member, kinds: Mapping[str, str]) -> str:
    """SQL that is true of such a row."""
    return " AND ".join(
        [where(member.matches), *(among(column, levels, kinds[column]) for column, levels in member.among)]
    )


def among(column: str, levels: Sequence[Level] | None, kind: str) -> str:
    """SQL that is true where a cell holds one of these levels, or anything at all where there are none."""
    cell = sql_name(column)
    if levels is None:
        number = plain_type(kind) in ("FLOAT", "DOUBLE")
        return f"({cell} IS NOT NULL{f' AND NOT isnan({cell})' if number else ''})"
    words = [level for level in levels if isinstance(level, str) and not DAY.fullmatch(level)]
    tests = [f"{cell}::VARCHAR IN ({', '.join(map(sql_level, words))})"] if words else []
    tests += [equals(column, level) for level in levels if level not in words]
    return f"coalesce({' OR '.join(tests)}, FALSE)"


def _placed_category(node: Node, domain: Categories, raw: str, kind: str) -> str:
    truths = set(domain.values) <= _BOOLEANS
    # Words that are no truth values would all be unlisted in a column of truth values.
    words = _WORDS if truths else _WORDS - {"BOOLEAN"}
    need = ("truth values" if truths else "words") if domain.scalar == "str" else "whole numbers"
    _check_type(node, raw, kind, words if domain.scalar == "str" else _NUMBERS, need)
    if domain.scalar == "str":
        return _placed_word(domain, raw, _compared_word(domain, raw, kind, truths))
    compared = _as_number(raw, kind)
    unlisted = "NULL" if domain.unknown is None else str(domain.values.index(domain.unknown))
    cases = " ".join(f"WHEN {sql_number(float(level))} THEN {place}" for place, level in enumerate(domain.values))
    # NaN is absent, as in files of which some hold whole numbers (network/agreed.py).
    absent = f"{raw} IS NULL{f' OR isnan({raw})' if plain_type(kind) in FLOATS else ''}"
    return f"(CASE WHEN {absent} THEN NULL ELSE CASE {compared} {cases} ELSE {unlisted} END END)"


def _compared_word(domain: Categories, raw: str, kind: str, truths: bool) -> str:
    """SQL for the text of a cell that is compared with the listed words."""
    compared = f"{raw}::VARCHAR"
    if plain_type(kind) in _TEXTS:
        compared = text_name(compared) if truths else word_as_listed(compared, domain)
    if truths:  # 1 and 0 too, as SQLite writes them
        compared = f"coalesce({text_as_truth(compared)}::VARCHAR, lower(trim({compared}, {_BLANKS})))"
    return compared


def _placed_word(domain: Categories, raw: str, compared: str) -> str:
    """A word as one of the listed words: looked up at once, whatever their number, and ordered by their places."""
    word = f"TRY_CAST({compared} AS {_words_of(domain)})"
    if domain.fold:
        word = sql_listed(compared, [str(value) for value in domain.values])
    if domain.unknown is None:
        return word
    other = f"{sql_level(domain.unknown)}::{_words_of(domain)}"
    return f"(CASE WHEN {raw} IS NULL THEN NULL ELSE coalesce({word}, {other}) END)"


def _words_of(domain: Categories) -> str:
    return sql_words(map(str, domain.values))


#: How the engine's types of days and times of day begin.
_CALENDAR = ("DATE", "TIME")
_AS_DAYS = "Dates('2020-01-01', '2024-12-31') or Times(…) in Python, date(2020, 1, 1) and the like in the language"


def _check_type(node: Node, column: str, kind: str, family: Collection[str], need: str) -> None:
    plain = plain_type(kind)
    if plain not in family:
        table = node.source.table if node.source else ""
        raise SchemaError(
            f"{node.name}: the column {column} of {table} holds {_kind_told(plain)}, and the study declares {need}. "
            f"{_other_type(node, column, plain)} Nothing was spent."
        )


def _kind_told(plain: str) -> str:
    """The engine's type as a reader of tables calls it."""
    if plain.startswith(_CALENDAR):
        return "days or times"
    if plain in _WORDS - {"BOOLEAN"}:
        return "text"
    if plain in ("FLOAT", "DOUBLE", "DECIMAL"):
        return "decimal numbers"
    if plain == "BOOLEAN":
        return "truth values"
    return "whole numbers" if plain in NUMBERS else f"cells of type {plain.split('(', maxsplit=1)[0]}"


def _other_type(node: Node, column: str, plain: str) -> str:
    """What to do about a column of another type: its type is public, its cells are not looked at."""
    domain = node.domain
    if isinstance(domain, Interval) and not domain.calendar and plain.startswith(_CALENDAR):
        return f"Declare days or times: {_AS_DAYS}."
    if isinstance(domain, Interval) and not domain.calendar and plain in _WORDS:
        return (
            "Make numbers of it, of which what cannot be read is absent: pd.to_numeric(frame[…], errors='coerce') in "
            f"pandas, TRY_CAST({sql_name(column)} AS DOUBLE) in DuckDB; or declare a list of categories, or "
            f"where they are days or times, {_AS_DAYS}."
        )
    if isinstance(domain, Categories) and plain == "BOOLEAN":
        return "Declare truth values: bool in Python, boolean in the language; or convert the column to text."
    if isinstance(domain, Categories) and plain in NUMBERS:
        listed = "[0, 1]" if set(domain.values) <= _BOOLEANS else "[1, 2, 3]"
        return f"List whole numbers, such as {listed}, or convert the column to text."
    return "Convert the column, or declare another range."
