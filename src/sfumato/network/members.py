"""Who belongs together, by public tables: groups that a study says depend on each other, held against its own word.

In:   a Spec with correlated/3, its public tables.
Out:  nothing, or a refusal that says how many belong together.
Not here: what follows for the noise (core/dependence.py). No private table is opened here.

Such a table says who may depend on whom and nothing else, so it does not tell individuals apart: no plan grows with the
number of households.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sfumato.lang.reader import goals
from sfumato.lang.spec import Column, Relation, Spec
from sfumato.lang.term import Term, indicator, show, variables, walk
from sfumato.network.expression import sql_name
from sfumato.network.refusal import refusal
from sfumato.network.tables import TableRoom, layout_of, name_text

__all__ = ["check_members", "largest_group", "membership_tables"]


def membership_tables(spec: Spec) -> frozenset[str]:
    """Public tables that nothing but correlated/3 reads."""
    named = {indicator(one.goal) for one in spec.correlations if one.goal is not None}
    named = (named | {one.relation for one in spec.peers}) - _asked(spec)
    used = {one.table for one in spec.relations if indicator(one.atom) not in named}
    found = {one.table for one in spec.relations} - used
    return frozenset(table for table in found & spec.public_tables if not layout_of(spec, table).values)


def _asked(spec: Spec) -> set[str]:
    """What is read by anything but the lines that say who belongs together."""
    clauses = (clause for clause in spec.clauses if clause.head.functor not in ("relation", "correlated"))
    terms = (term for clause in clauses for term in (clause.head, clause.body) if term is not None)
    return {indicator(part) for term in terms for part in walk(term)}


def check_members(room: TableRoom, spec: Spec) -> None:
    """No public table shows a larger group than the study says there is."""
    for one in spec.correlations:
        for relation in spec.relations if one.kind == "group" and one.goal is not None else ():
            if one.goal is not None and indicator(relation.atom) == indicator(one.goal):
                shown, said = largest_group(_pairs(room, spec, relation), _is_network(spec, relation)), int(one.bound)
                if shown > said:
                    raise refusal(
                        one.position,
                        f"{relation.table} is public and shows {shown} who belong together, more than at_most({said}).",
                        f"Write at_most({shown}), or correct the table.",
                    )


def _is_network(spec: Spec, relation: Relation) -> bool:
    """Whether both ends are individuals: then groups are what is connected."""
    layout = layout_of(spec, relation.table)
    return sum(_is_individual(spec, layout.bound(variable.name)) for variable in variables(relation.atom)) > 1


def _individuals(spec: Spec) -> list[Term]:
    """What says of somebody that they are an individual of a dataset."""
    return [goal for dataset in spec.datasets for goal in goals(dataset.goal)]


def _is_individual(spec: Spec, column: Column | None) -> bool:
    return column is not None and indicator(column.atom) in {indicator(goal) for goal in _individuals(spec)}


def _pairs(room: TableRoom, spec: Spec, relation: Relation) -> Iterable[tuple[str, str]]:
    layout = layout_of(spec, relation.table)
    columns = [layout.bound(variable.name) for variable in variables(relation.atom)]
    if len(columns) != 2 or None in columns:
        raise refusal(
            relation.position,
            f"{relation.atom} must relate two identities of {relation.table}.",
            f"Declare column({relation.table}, Name, kind(X)) for both of its variables.",
        )
    if not any(_is_individual(spec, column) for column in columns):
        raise refusal(
            relation.position,
            f"{relation.atom} must say who belongs together, and no column of {relation.table} that it names does.",
            f"Declare column({relation.table}, Name, {show(_individuals(spec)[0])}).",
        )
    names = [column.name for column in columns if column is not None]
    kinds = room.types(relation.table, names)
    first, second = (name_text(kinds[name], sql_name(name)) for name in names)
    found = room.run(
        f"SELECT DISTINCT {first} AS a, {second} AS b FROM {room.names[relation.table]} "
        "WHERE a IS NOT NULL AND b IS NOT NULL"
    )
    return [(str(one), str(other)) for one, other in found]


def largest_group(pairs: Iterable[tuple[str, str]], network: bool) -> int:
    """How many individuals belong together at most: members of one group, or what hangs together in a network.

    >>> largest_group([("ann", "h1"), ("bob", "h1"), ("cem", "h2")], network=False)
    2
    >>> largest_group([("ann", "bob"), ("bob", "cem"), ("dee", "eli")], network=True)
    3
    """
    above: dict[tuple[str, str], tuple[str, str]] = {}

    def top(name: tuple[str, str]) -> tuple[str, str]:
        above.setdefault(name, name)
        while above[name] != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    # Who is in two groups joins them: groups are independent only where they share nobody.
    for one, other in pairs:
        above[top(("person", one))] = top(("person" if network else "group", other))
    sizes = Counter(top(name) for name in list(above) if name[0] == "person")
    return max(sizes.values(), default=0)
