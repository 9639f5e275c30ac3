"""What else stands in a table that says who owns what: it is read for that alone.

In:   clauses, owners, declarations before the tables of owners are set aside.
Out:  a problem where the study asks for something that only such a table says.
Not here: who owns what (lang/owners.py).

How many things one owner has is read from such a table and nothing else: its columns and relations are no structure of
the network, so what they say would be missing without a word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sfumato.lang.declare import Declared
from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause
from sfumato.lang.spec import Column, Relation
from sfumato.lang.term import Compound, indicator, show, walk
from sfumato.lang.vocabulary import STATIC
from sfumato.lang.whose import Owner

__all__ = ["lost_with_owners"]


def lost_with_owners(
    clauses: Sequence[Clause], lines: Collection[Clause], owners: Sequence[Owner], declared: Declared
) -> Iterator[Problem]:
    """Every place that asks for what a table of owners says beside who owns what."""
    lost = _lost(clauses, owners, declared)
    told: set[str] = set()
    for clause in clauses:
        if indicator(clause.head) in STATIC or clause in lines:
            continue
        for part in (part for term in (clause.head, clause.body) if term is not None for part in walk(term)):
            name = indicator(part)
            if name in lost and name not in told and isinstance(part, Compound):
                told.add(name)
                yield _problem(clause, part, lost[name], owners)


def _lost(clauses: Sequence[Clause], owners: Sequence[Owner], declared: Declared) -> dict[str, Column | Relation]:
    """What the tables of owners say by their other columns and by relations, by its predicate."""
    tables = {owner.table for owner in owners}
    naming = {(owner.table, name) for owner in owners for name in (owner.column, owner.thing)}
    elsewhere = {indicator(one.atom) for one in declared.columns if one.table not in tables}
    defined = {indicator(clause.head) for clause in clauses}
    relations = [one for one in declared.relations if one.table in tables]
    found: dict[str, Column | Relation] = {indicator(one.atom): one for one in relations}
    for one in declared.columns:
        name = indicator(one.atom)
        if one.table in tables and (one.table, one.name) not in naming and not {name} & (elsewhere | defined):
            found.setdefault(name, one)
    return found


def _problem(clause: Clause, part: Compound, one: Column | Relation, owners: Sequence[Owner]) -> Problem:
    owner, own = next(each for each in owners if each.table == one.table), f"{one.table}_too"
    first, *rest = (one.table, own) if isinstance(one, Relation) else (f"{one.table}, {one.name}", f"{own}, {one.name}")
    kind = "relation" if isinstance(one, Relation) else "column"
    said = f"{kind}({first}, {show(one.atom)})"
    return Problem(
        "error",
        "owners",
        f"{show(part)} asks for what {one.table} says, and {one.table} is read for who owns what alone (by instance_rv "
        f"lines of {owner.dataset}): its other columns and relations say nothing to the rest of the study",
        clause.at(part),
        clause.text,
        way_out=f"Declare the same file once more under another name: source({own}, 'file'), public({own}), the "
        f"identity columns that are asked for, {kind}({rest[0]}, {show(one.atom)}). Take {said} out; if instance_rv "
        "needs it, give what is asked for here another name instead.",
    )
