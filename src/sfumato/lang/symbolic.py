"""Facts that stand for data nobody looked at: one symbolic individual, symbolic rows of public tables.

In:   a Spec.
Out:  logical facts for `Spec.ground`, enough to check a study.
Not here: the rows of public tables themselves, which a plan reads (network/).
"""

from __future__ import annotations

import itertools

from sfumato.lang.reader import goals
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, Term, indicator, is_ground, substitute, variables

__all__ = ["symbolic_facts"]


def symbolic_facts(spec: Spec) -> tuple[Term, ...]:
    """One symbolic individual for each dataset fed by a table, symbolic rows for each public table."""
    fed = spec.table_predicates
    facts: list[Term] = []
    for dataset in spec.datasets:
        person = {dataset.variable: spec.symbolic(dataset.name)}
        for goal in goals(dataset.goal):
            rest = {v.name: Compound(f"${v.name}_1") for v in variables(goal)}
            facts += [substitute(goal, {**rest, **person})] if indicator(goal) in fed else []
    for one in (*spec.columns, *spec.relations):
        if one.table in spec.public_tables and indicator(one.atom) in fed:
            facts += _symbolic_rows(spec, one.table, one.atom)
    return tuple(dict.fromkeys(facts))


def _symbolic_rows(spec: Spec, table: str, atom: Compound) -> list[Term]:
    """The atom with what its variables may be: the study's own constants, or a symbol named by the identity column.

    A name by predicate and not by variable lets the rows of several tables join.
    """
    introduced = {
        part.name: column.atom
        for column in spec.columns
        if column.table == table and len(column.atom.arguments) == 1
        for part in variables(column.atom)
    }
    names = [variable.name for variable in variables(atom)]
    choices = [_constants(spec, introduced.get(name), name) for name in names]
    combined = itertools.islice(itertools.product(*choices), 500)
    return [substitute(atom, dict(zip(names, values, strict=True))) for values in combined]


def _constants(spec: Spec, identity: Compound | None, name: str) -> list[Term]:
    listed = [
        clause.head.arguments[0]
        for clause in spec.clauses
        if identity is not None and indicator(clause.head) == indicator(identity) and is_ground(clause.head)
    ]
    return listed or [Compound(f"${identity.functor if identity else name}_1")]
