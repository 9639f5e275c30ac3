"""A starter study from a table's column names and types: what a person has to fill in is marked and refused until then.

In:   column names, kinds ("number", "category", "time", "other", "unknown"), a file name. Never a value.
Out:  the text of a study; of a schema for whole-table release.
Not here: reading a table's header (run/new_command.py).

Every placeholder is a term fill_in(…) where a number or a list belongs, so `sfumato check` reports each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sfumato.lang.term import Compound, show
from sfumato.lang.vocabulary import DECLARATIONS, DISTRIBUTIONS, FUNCTIONS, METRICS, PUBLICATION_FORMS

__all__ = ["StarterColumn", "starter_schema", "starter_study"]

_TAKEN = {name.split("/")[0] for name in (*DECLARATIONS, *DISTRIBUTIONS, *FUNCTIONS, *METRICS, *PUBLICATION_FORMS)}
_TAKEN |= {"person", "people", "openness", "public", "domain", "fill_in", "is", "mod", "not", "findall", "true", "fail"}
_TAKEN |= {"append", "member", "memberchk", "length", "reverse", "last", "nth0", "nth1", "sort", "between", "false"}
_TAKEN |= {"var", "nonvar", "atom", "number", "integer", "ground", "sum_list", "max_list", "min_list", "p"}
_IDENTITIES = ("id", "identifier", "uid", "uuid", "key", "person", "patient", "subject", "participant", "name")


@dataclass(frozen=True)
class StarterColumn:
    """A column as its header describes it. `type` is only shown; `kind` decides which lines are written."""

    name: str
    kind: str
    type: str = ""


def starter_study(table: str, file: str, columns: Sequence[StarterColumn]) -> str:
    """The text of a study about one table.

    >>> text = starter_study("patients", "patients.parquet", [StarterColumn("id", "category", "string"),
    ...                                                        StarterColumn("age", "number", "int64")])
    >>> print([line for line in text.splitlines() if line.startswith("range")][0].split("%")[0].strip())
    range(age(P), fill_in(lowest), fill_in(highest)).
    """
    identity = _identity(columns)
    used = [c for c in columns if c is not identity and c.kind in ("number", "category", "unknown")]
    left = [column for column in columns if column is not identity and column not in used]
    names = _functors([column.name for column in used])
    source = show(Compound(table))
    lines = [
        f"% A study of {_plain(file)}, begun from its column names and types. No value was read.",
        "% Replace every fill_in(…). Until then `sfumato check` names each of them and nothing can be planned.",
        "",
        "% --- where the data are",
        f"source({source}, {show(Compound(file))}).",
        _identity_line(source, identity),
    ]
    lines += [
        _remarked(f"column({source}, {show(Compound(column.name))}, {names[column.name]}(P)).", column.type)
        for column in used
    ]
    lines += [f"% left out: {_plain(column.name)} ({_plain(column.type)})" for column in left]
    lines += [
        f"rows_per_person({source}, 1).   % of several rows of one person one is kept, drawn fairly",
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
        f"# The schema of {_plain(file)}, begun from its column names and types. No value was read.",
        "# Replace every FILL IN by a public fact; until then `sfumato release` refuses this file.",
    ]
    identity = _identity(columns)
    if identity is not None:
        lines += ["", f"# {_plain(identity.name)} says who a row is about: leave that column out of a published table."]
    for column in (column for column in columns if column is not identity):
        lines += [
            "",
            f"[columns.{json.dumps(column.name, ensure_ascii=False)}]   # {_plain(column.type) or 'type unknown'}",
        ]
        if column.kind == "category":
            lines += ['kind = "categories"', 'values = "FILL IN, for example [\\"a\\", \\"b\\"]"']
        else:
            lines += ['kind = "interval"', 'low = "FILL IN"', 'high = "FILL IN"']
    return "\n".join(lines) + "\n"


def _identity(columns: Iterable[StarterColumn]) -> StarterColumn | None:
    """The column that seems to say who a row is about, by its name alone."""
    listed = list(columns)
    for wanted in _IDENTITIES:
        for column in listed:
            parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", column.name)]
            if parts and (parts == [wanted] or (wanted in ("id", "uid", "uuid") and parts[-1] == wanted)):
                return column
    return None


def _identity_line(source: str, identity: StarterColumn | None) -> str:
    if identity is None:
        return f"column({source}, fill_in('the column that says who a row is about'), person(P))."
    guess = "guessed from its name: who a row is about"
    return _remarked(f"column({source}, {show(Compound(identity.name))}, person(P)).", guess)


def _range_line(column: StarterColumn, functor: str) -> str:
    if column.kind == "category":
        return _remarked(f"range({functor}(P), fill_in(categories)).", f"{column.type}; for example [a, b, c]")
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


def _functors(names: Sequence[str]) -> Mapping[str, str]:
    """A predicate for every column: small first letter, words joined, unlike any word of the language."""
    found: dict[str, str] = {}
    for name in names:
        words = re.findall(r"[A-Za-z0-9]+", name) or ["column"]
        joined = words[0][:1].lower() + words[0][1:] + "".join(word[:1].upper() + word[1:] for word in words[1:])
        functor = joined if joined[0].isalpha() else f"column{joined}"
        functor = f"{functor}Value" if functor in _TAKEN else functor
        taken, number = set(found.values()), 2
        while functor in taken:
            functor, number = f"{functor.rstrip('0123456789')}{number}", number + 1
        found[name] = functor
    return found


def _remarked(line: str, remark: str) -> str:
    return f"{line:<60}% {_plain(remark)}" if remark else line


def _plain(text: str) -> str:
    """Printable on one line: a column name may hold anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:120]
