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
    >>> print([line for line in text.splitlines() if line.startswith("range")][0].split("%")[0].strip())
    range(dose(P), fill_in(lowest), fill_in(highest)).
    """
    identity = None if each_row else _identity(columns, person)
    used = [c for c in columns if c is not identity and (c.kind in ("number", "category", "unknown") or _is_day(c))]
    left = [column for column in columns if column is not identity and column not in used]
    names = functors([column.name for column in used])
    source = show(Compound(table))
    lines = [
        f"% A study of {_plain(file)}, begun from its column {_known(columns)}. No value was read.",
        "% Replace every fill_in(…). Until then `sfumato check` names each of them and nothing can be planned.",
        *(["% " + line for line in _UNTYPED] if _untyped(columns) else []),
        "",
        "% --- where the data are",
        f"source({source}, {show(Compound(file))}).",
        *(_row_lines(source) if each_row else [_identity_line(source, identity, person is not None)]),
    ]
    lines += [
        _remarked(f"column({source}, {show(Compound(column.name))}, {names[column.name]}(P)).", column.type)
        for column in used
    ]
    lines += [f"% left out: {_plain(column.name)} ({_plain(column.type)})" for column in left]
    one_row = f"rows_per_person({source}, 1).   % of several rows of one person one is kept, drawn fairly"
    lines += [
        *([] if each_row else [one_row]),
        "",
        "% --- random variables, and what everybody may know about them",
        "% Ranges are public facts. Take them from the meaning of the column, never from its values: the largest value",
        "% in the table belongs to somebody. What lies outside is clipped. Who has no value is left out (skip); you",
        "% may write a value that stands for it instead, or never if it is certain that everybody has one.",
    ]
    for column in used:
        functor = names[column.name]
        lines += [f"random({functor}(P)) :- person(P).", _range_line(column, functor), f"missing({functor}(P), skip)."]
    lines += _promise_lines()
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
            f"# {_plain(identity.name)} seems to say who a row is about. It is not declared here, and",
            "# `sfumato release` refuses a file with a column that is not declared:",
            "# remove it from the file first. Only if it identifies nobody, declare it like the others.",
        ]
    for column in (column for column in columns if column is not identity):
        lines += [
            "",
            f"[columns.{json.dumps(column.name, ensure_ascii=False)}]   # {_plain(column.type) or 'type unknown'}",
        ]
        if column.kind == "category":
            lines += ['kind = "categories"', 'values = "FILL IN, for example [\\"a\\", \\"b\\"]"']
            lines += ['# null = "a"      # for absent cells', '# unknown = "b"   # for categories that are not listed']
        else:
            if column.kind == "unknown":
                lines += ['# of categories: kind = "categories" and values = ["a", "b"] instead of the three lines']
            lines += ['kind = "interval"', 'low = "FILL IN"', 'high = "FILL IN"', "# null = 0   # for absent cells"]
    return "\n".join(lines) + "\n"


#: A CSV file has no types: telling them would need its rows.
_UNTYPED = (
    "Types are not known: a CSV file does not have them, and its rows were not looked at. Every column is proposed as",
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


def _row_lines(source: str) -> list[str]:
    return [_remarked(f"each_row({source}, person(P)).", "every row is another person, by your word")]


def _identity_line(source: str, identity: StarterColumn | None, told: bool) -> str:
    if identity is None:
        return f"column({source}, fill_in('the column that says who a row is about'), person(P))."
    guess = "who a row is about" if told else "guessed from its name: who a row is about"
    return _remarked(f"column({source}, {show(Compound(identity.name))}, person(P)).", guess)


def _is_day(column: StarterColumn) -> bool:
    return column.kind == "time" and column.type.startswith(("date", "timestamp"))


def _range_line(column: StarterColumn, functor: str) -> str:
    if column.kind == "category":
        return _remarked(f"range({functor}(P), fill_in(categories)).", f"{column.type}; for example [a, b, c]")
    if _is_day(column):
        hint = f"{column.type}; a day is written date(2020, 1, 31)"
        return _remarked(f"range({functor}(P), fill_in(first_day), fill_in(last_day)).", hint)
    proposed = proposed_range(column.name, column.type)
    if proposed is not None:
        low, high = proposed
        return _remarked(f"range({functor}(P), {low}, {high}).", "proposed from its name and type: correct it")
    hint = column.type if column.kind == "number" else "a number from … to …; for categories a list: [a, b, c]"
    return _remarked(f"range({functor}(P), fill_in(lowest), fill_in(highest)).", hint)


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
    return f"{line:<60}% {_plain(remark)}" if remark else line


def _plain(text: str) -> str:
    """Printable on one line: a column name may hold anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:120]
