"""A starter study from a table's column names and types: what a person has to fill in is marked and refused until then.

In:   column names, kinds ("number", "category", "time", "other", "unknown"), a file name. Never a value.
Out:  the text of a study; of a schema for whole-table release.
Not here: reading a table's header (cli/new.py).

Every placeholder is a term fill_in(…) where a number or a list belongs, so `sfumato check` reports each of them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.lang.proposals import could_be_person, proposed_range
from sfumato.lang.reader import read
from sfumato.lang.term import Compound, show
from sfumato.lang.vocabulary import DECLARATIONS, DISTRIBUTIONS, FUNCTIONS, METRICS, PUBLICATION_FORMS

__all__ = ["StarterColumn", "functors", "starter_schema", "starter_study"]

_TAKEN = {name.split("/")[0] for name in (*DECLARATIONS, *DISTRIBUTIONS, *FUNCTIONS, *METRICS, *PUBLICATION_FORMS)}
_TAKEN |= {"person", "people", "openness", "public", "domain", "fill_in", "is", "mod", "not", "findall", "true", "fail"}
_TAKEN |= {"append", "member", "memberchk", "length", "reverse", "last", "nth0", "nth1", "sort", "between", "false"}
_TAKEN |= {"var", "nonvar", "atom", "number", "integer", "ground", "sum_list", "max_list", "min_list", "p"}


@dataclass(frozen=True)
class StarterColumn:
    """A column as its header describes it. `type` is only shown; `kind` decides which lines are written."""

    name: str
    kind: str
    type: str = ""


def starter_study(
    table: str, file: str, columns: Sequence[StarterColumn], person: str | None = None, each_row: bool = False
) -> str:
    """The text of a study about one table; `person` names the column that says who a row is about.

    Without it a name that says so is taken, if there is one; `each_row` says that every row is another person.

    >>> text = starter_study("patients", "patients.parquet", [StarterColumn("id", "category", "string"),
    ...                                                        StarterColumn("dose", "number", "int64")])
    >>> print([line for line in text.splitlines() if "dose:" in line][0].split("%")[0].strip())
    dose: fill_in(lowest)..fill_in(highest)
    """
    identity = None if each_row else _identity(columns, person)
    others = [column for column in columns if column is not identity]
    used = [column for column in others if _is_usable(column)]
    names = functors([column.name for column in used])
    source, guessed = show(Compound(table)), person is None and identity is not None
    lines = [
        *_opening_lines(file, columns, guessed),
        *_table_lines(source, file, _who(identity, each_row), used, names),
        *_left_out_lines(others),
        _rows_line(source, each_row),
        *_missing_lines(names[column.name] for column in used),
        *_promise_lines(),
    ]
    for column in used:
        lines += _publication_lines(column, names[column.name])
    return "\n".join(lines) + "\n"


def starter_schema(file: str, columns: Sequence[StarterColumn]) -> str:
    """The TOML schema of the same table for `sfumato release`, its bounds left as words that are refused."""
    lines = [
        f"# The schema of {_plain(file)}, begun from its column {_known(columns)}. No value was read.",
        "# Replace every FILL IN by a public fact; until then `sfumato release` refuses this file.",
        "# Where cells may be absent, write what stands for them: null = a number of the range, or a category listed.",
        "# unknown = a category listed stands for every category that is not. Without these lines you say: there are",
        "# none.",
        *(["# " + line for line in _UNTYPED] if _untyped(columns) else []),
    ]
    identity = _identity(columns)
    if identity is not None:
        lines += [
            "",
            f"# {_plain(identity.name)} seems to say who a row is about. It is not declared here.",
            "# `sfumato synthesize` takes it with --people, and then protects persons and not rows.",
            "# `sfumato release` refuses a file with a column that is not declared:",
            "# remove it from the file first. Only if it identifies nobody, declare it like the others.",
        ]
    for column in (column for column in columns if column is not identity):
        lines += [
            "",
            f"[columns.{json.dumps(column.name, ensure_ascii=False)}]   # {_plain(column.type) or 'type unknown'}",
        ]
        lines += _schema_lines(column)
    return "\n".join(lines) + "\n"


def _schema_lines(column: StarterColumn) -> list[str]:
    """What a column's type lets one begin with."""
    if column.type == "bool":
        return ['kind = "categories"', "values = [false, true]", "# null = false   # for absent cells"]
    numbers = ['kind = "interval"', 'low = "FILL IN"', 'high = "FILL IN"', "# null = 0   # for absent cells"]
    if _is_day(column):
        day = 'low = "FILL IN"    # a day, such as 2020-01-01'
        return [numbers[0], day, numbers[2], "# null = 2020-01-01   # for absent cells"]
    if column.kind == "category":
        words = ['kind = "categories"', 'values = "FILL IN, for example [\\"a\\", \\"b\\"]"']
        return [
            *words,
            '# null = "a"      # for absent cells',
            '# unknown = "b"   # for categories that are not listed',
        ]
    if column.kind == "unknown":
        return ['# of categories: kind = "categories" and values = ["a", "b"] instead of the three lines', *numbers]
    return numbers


#: A CSV file has no types: telling them would need its rows.
_UNTYPED = (
    "Types are not known: CSV and SQLite files do not have them, and no row was looked at. Every column is proposed as",
    "a number; of categories write a list instead, and a histogram instead of a mean.",
)


def _untyped(columns: Iterable[StarterColumn]) -> bool:
    return any(column.kind == "unknown" for column in columns)


def _known(columns: Iterable[StarterColumn]) -> str:
    return "names alone" if _untyped(columns) else "names and types"


def _identity(columns: Sequence[StarterColumn], person: str | None = None) -> StarterColumn | None:
    """The column that says who a row is about: the one that was named, or the first whose name could mean it."""
    could = [person] if person is not None else could_be_person(column.name for column in columns)
    return next((column for column in columns if column.name in could[:1]), None)


def _who(identity: StarterColumn | None, each_row: bool) -> str:
    if each_row:
        return "person(P)"
    if identity is None:
        return "person(P) = fill_in('the column that says who a row is about')"
    return f"person(P) = {show(Compound(identity.name))}"


def _opening_lines(file: str, columns: Sequence[StarterColumn], guessed: bool) -> list[str]:
    return [
        f"% A study of {_plain(file)}, begun from its column {_known(columns)}. No value was read.",
        "% Replace every fill_in(…). Until then `sfumato check` names each of them and nothing can be planned.",
        *(["% " + line for line in _UNTYPED] if _untyped(columns) else []),
        "",
        "% --- where the data are, who a row is about, and what everybody may know about each column",
        "% Ranges are public facts. Take them from the meaning of the column, never from its values: the largest value",
        "% in the table belongs to somebody. What lies outside is clipped.",
        *(["% Who a row is about was guessed from a column's name."] if guessed else []),
    ]


def _table_lines(
    source: str, file: str, who: str, used: Sequence[StarterColumn], names: Mapping[str, str]
) -> list[str]:
    """The short form of a table, one line a column."""
    if not used:
        return [f"% {_plain(file)} has no column that a study could use."]
    found = [f"table({source}, {show(Compound(file))}, {who}, ["]
    for place, column in enumerate(used):
        word, shown = names[column.name], show(Compound(column.name))
        domain, remark = _domain(column)
        named = shown if shown == word else f"{word} = {shown}"
        found.append(_remarked(f"    {named}: {domain}{',' if place < len(used) - 1 else ''}", remark))
    return [*found, "])."]


def _left_out_lines(columns: Iterable[StarterColumn]) -> list[str]:
    left = [column for column in columns if not _is_usable(column)]
    return [f"% left out: {_plain(column.name)} ({_plain(column.type)})" for column in left]


def _rows_line(source: str, each_row: bool) -> str:
    if each_row:
        return "% Every row is another person, by your word."
    return f"rows_per_person({source}, 1).   % of several rows of one person one is kept, drawn fairly"


def _missing_lines(words: Iterable[str]) -> list[str]:
    return [
        "",
        "% --- who has no value is left out (skip); you may write a value that stands for it instead, or never if it",
        "% is certain that everybody has one",
        *(f"missing({word}(P), skip)." for word in words),
    ]


def _is_usable(column: StarterColumn) -> bool:
    """Whether a study can ask about it: numbers, categories, days and times of day."""
    return column.kind in ("number", "category", "unknown") or _is_day(column) or _is_time_of_day(column)


def _is_day(column: StarterColumn) -> bool:
    return column.kind == "time" and column.type.startswith(("date", "timestamp"))


def _is_time_of_day(column: StarterColumn) -> bool:
    return column.kind == "time" and column.type.startswith(("time32", "time64"))


def _domain(column: StarterColumn) -> tuple[str, str]:
    """What may stand in a column, as far as its name and type say, and a remark."""
    if column.kind == "category":
        return "fill_in(categories)", f"{column.type}; for example [a, b, c], or fold([a, b, c]) whatever the case"
    if _is_day(column):
        return "fill_in(first_day)..fill_in(last_day)", f"{column.type}; a day is written date(2020, 1, 31)"
    if _is_time_of_day(column):
        return "time(0, 0)..time(23, 59, 59)", f"{column.type}; the whole day, which everybody knows"
    proposed = proposed_range(column.name, column.type)
    if proposed is not None:
        low, high = proposed
        return f"{low}..{high}", "proposed from its name and type: correct it"
    hint = column.type if column.kind == "number" else "a number from … to …; for categories a list: [a, b, c]"
    return "fill_in(lowest)..fill_in(highest)", hint


def _promise_lines() -> list[str]:
    return [
        "",
        "% --- who is protected, from whom, how much",
        "dataset(people, domain(P, person(P))).",
        "% adjacency(people, add_remove).   % if it must stay hidden who is in the table, and how many",
        "% dp(0.5, 0.000001): odds about one person hardly change by more than e^0.5 = 1.65; explain says how often",
        "privacy_requirement(openness(public), people, dp(fill_in(epsilon), fill_in(delta))).",
        "",
        "% --- what is published. Take out what nobody needs: all lines share one budget.",
    ]


def _publication_lines(column: StarterColumn, functor: str) -> list[str]:
    capital = functor[0].upper() + functor[1:]
    if column.kind == "category":
        return [
            f"histogram(countsOf{capital}, {functor}(P), person(P)).",
            f"publish({functor}Counts, countsOf{capital}, openness(public)).",
        ]
    return [
        f"mean(meanOf{capital}, {functor}(P), person(P)).",
        f"publish({functor}Mean, meanOf{capital}, openness(public)).",
    ]


def functors(names: Sequence[str]) -> Mapping[str, str]:
    """A predicate for every column: its letters kept, the first one small, words joined, no word of the language."""
    found: dict[str, str] = {}
    for name in names:
        words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", name)) or ["column"]
        if not _readable("".join(words)):  # letters of a script the language does not read without quotes
            words = re.findall(r"[A-Za-z0-9]+", name) or ["column"]
        joined = words[0][:1].lower() + words[0][1:] + "".join(word[:1].upper() + word[1:] for word in words[1:])
        functor = joined if joined[0].isalpha() else f"column{joined}"
        functor = f"{functor}Value" if functor in _TAKEN else functor
        taken, number = set(found.values()), 2
        while functor in taken:
            functor, number = f"{functor.rstrip('0123456789')}{number}", number + 1
        found[name] = functor
    return found


def _readable(word: str) -> bool:
    functor = f"x{word}{word.lower()}"
    clauses, _ = read(f"{word[:1].lower()}{word[1:]}x({functor}).") if word[0].isalpha() else read(f"x({functor}).")
    return len(clauses) == 1 and isinstance(clauses[0].head.arguments[0], Compound)


def _remarked(line: str, remark: str) -> str:
    return f"{line:<59} % {_plain(remark)}" if remark else line


def _plain(text: str) -> str:
    """Printable on one line: a column name may hold anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:120]
