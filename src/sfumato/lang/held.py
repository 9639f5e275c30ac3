"""Tables that several centres hold, each its own part, read as one table.

In:   declarations, with holds(Centre, Table).
Out:  the same with one table for every such group, and `parts`: what each centre calls its part; problems.
Not here: whose rows go where (run/over_centres.py), how noise is shared (plan/sharing.py).

`holds(a, pa). holds(b, pb).` with the same columns for pa and pb means one table whose rows lie at a and at b. What is
said about one part holds for all of them, so that every centre treats its people alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.lang.problem import Problem
from sfumato.lang.spec import HeldPart
from sfumato.lang.term import Position as Place
from sfumato.lang.term import Term, Variable, indicator, show

if TYPE_CHECKING:
    from sfumato.lang.declared import Declared

__all__ = ["read_as_one"]

_Key = frozenset[tuple[str, str]]


def read_as_one(declared: Declared) -> list[Problem]:
    """Joins, in place, the tables that are parts of one."""
    problems: list[Problem] = []
    own = _of_one_centre(declared)
    groups: dict[_Key, dict[str, str]] = {}
    for table, centre in own.items():
        group = groups.setdefault(_columns(declared, table), {})
        if centre in group:
            problems.append(
                _problem(declared, table, f"{centre} holds {group[centre]} and {table}, of the same columns")
            )
        group[centre] = table
    holders = {one.centre for one in declared.holds}
    for group in groups.values():
        if public := sorted(set(group.values()) & declared.public_tables):
            problems.append(_public(declared, public))
            declared.public_tables -= set(public)  # one thing that is wrong is said once
        elif set(group) != holders:
            first = next(iter(group.values()))
            without = ", ".join(sorted(holders - set(group)))
            problems.append(_problem(declared, first, f"{without} holds no table with the columns of {first}"))
            continue
        problems += list(_join(declared, group))
    return problems


def _of_one_centre(declared: Declared) -> dict[str, str]:
    """Tables that one centre holds and not all of them; a table of all has the same name everywhere."""
    found: dict[str, set[str]] = {}
    for one in declared.holds:
        found.setdefault(one.table, set()).add(one.centre)
    known = {source.table for source in declared.sources}
    holders = {one.centre for one in declared.holds}
    return {
        table: next(iter(centres))
        for table, centres in found.items()
        if table in known and len(centres) == 1 and len(holders) > 1
    }


def _columns(declared: Declared, table: str) -> _Key:
    return frozenset((one.name, _shape(one.atom)) for one in declared.columns if one.table == table)


def _shape(atom: Term) -> str:
    """An atom whatever its variables are called."""
    arguments = getattr(atom, "arguments", ())
    return f"{indicator(atom)} {['_' if isinstance(one, Variable) else show(one) for one in arguments]}"


def _join_missing(declared: Declared, first: str, tables: set[str]) -> None:
    """What is said of absent cells of whole tables: kept of the first where every part says the same."""
    said = {one.atom_pattern.functor: one.rule for one in declared.missing if one.of_table}
    alike = tables <= said.keys() and len({said[table] for table in tables}) == 1
    dropped = tables - {first} if alike else tables
    declared.missing = [
        one for one in declared.missing if one.atom_pattern.arguments or one.atom_pattern.functor not in dropped
    ]


def _join(declared: Declared, group: dict[str, str]) -> Iterator[Problem]:
    sources = {source.table: source for source in declared.sources}
    first = min(group.values(), key=list(sources).index)
    declared.parts += [HeldPart(first, centre, sources[table]) for centre, table in group.items()]
    others = set(group.values()) - {first}
    yield from _join_rules(declared, first, group)
    _join_missing(declared, first, set(group.values()))
    for name in ("sources", "columns", "relations", "row_limits", "each_person"):
        setattr(declared, name, [one for one in getattr(declared, name) if one.table not in others])
    declared.holds = [_held(one, first) if one.table in group.values() else one for one in declared.holds]


def _join_rules(declared: Declared, first: str, group: dict[str, str]) -> Iterator[Problem]:
    rules = [one for one in (*declared.row_limits, *declared.each_person) if one.table in group.values()]
    if len(set(map(_rule, rules))) > 1:
        yield _problem(declared, first, "the parts of one table treat several rows of a person differently")
    if rules and not any(one.table == first for one in rules):
        _rename(declared, rules[0].table, first)


def _rule(rule: Any) -> tuple[Any, ...]:
    return (type(rule).__name__, getattr(rule, "maximum", 1), getattr(rule, "keep", ""), getattr(rule, "column", ""))


def _rename(declared: Declared, table: str, new: str) -> None:
    for name in ("row_limits", "each_person"):
        given: Iterable[Any] = getattr(declared, name)
        setattr(declared, name, [dataclasses.replace(one, table=new) if one.table == table else one for one in given])


def _held(one: Any, table: str) -> Any:
    return dataclasses.replace(one, table=table)


def _public(declared: Declared, tables: Sequence[str]) -> Problem:
    """What is read as one is public or private as a whole: of a public part nobody's rows are limited or accounted."""
    message = f"part of a table that centres hold is public: {' and '.join(tables)}"
    lines = " ".join(f"public({table})." for table in tables)
    way_out = (
        f"Take {lines} out, if the rows are to be protected. Of a table that everybody may see hand every centre the "
        "whole: one source(T, 'file') with public(T), and no holds line for it."
    )
    return _problem(declared, tables[0], message, way_out)


def _problem(declared: Declared, table: str, message: str, way_out: str = "") -> Problem:
    place = next((one.position for one in declared.holds if one.table == table), None) or Place("study", 1, 1)
    way_out = way_out or (
        "Give every centre one table with the same columns: source(T, 'file'), holds(Centre, T) and the same column(T, "
        "…) lines for each; or one name for all, which every centre reads in its own folder: holds(a, T). holds(b, T)."
    )
    return Problem("error", "held-apart", message, place, way_out=way_out)
