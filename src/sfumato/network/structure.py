"""Who is alike in public: individuals grouped by what public tables say about them.

In:   public tables, the dataset's identity.
Out:  the public facts about nobody in particular, and one Class of individuals per distinct set of public facts.
Not here: grounding (network/build.py). No private table is opened here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sfumato.lang.spec import Dataset, Spec
from sfumato.lang.term import Compound, Term, Variable, indicator, substitute, variables
from sfumato.network.cells import among
from sfumato.network.constants import PublicCells
from sfumato.network.convert import level_of
from sfumato.network.expression import sql_level, sql_name
from sfumato.network.members import asked_things, membership_tables
from sfumato.network.refusal import refusal
from sfumato.network.tables import TableLayout, TableRoom, layout_of

__all__ = ["Alike", "alike", "fed_datasets", "identity_of", "individuals_of", "key_query", "public_facts"]

#: More structures than this and a plan would grow with the number of people.
MOST_STRUCTURES = 256


@dataclass(frozen=True, slots=True)
class Alike:
    """Individuals with one set of public facts; in `facts` the individual is the dataset's variable."""

    key: str | None
    facts: tuple[Term, ...]


def identity_of(dataset: Dataset) -> str:
    """The predicate that says who is an individual, such as patient/1."""
    goal = dataset.goal
    if isinstance(goal, Compound) and goal.arguments == (Variable(dataset.variable),):
        return indicator(goal)
    raise refusal(
        dataset.position,
        f"The dataset {dataset.name} ranges over {goal}, which is not one predicate of {dataset.variable} alone.",
        f"Write domain({dataset.variable}, patient({dataset.variable})) and put conditions into the aggregates.",
    )


def individuals_of(spec: Spec) -> frozenset[str]:
    """The predicates that say who is an individual."""
    return frozenset(identity_of(dataset) for dataset in spec.datasets)


def fed_datasets(spec: Spec) -> list[Dataset]:
    """The datasets whose individuals are rows of a table."""
    return [dataset for dataset in spec.datasets if identity_of(dataset) in spec.table_predicates]


def public_facts(room: TableRoom, spec: Spec, people: frozenset[str]) -> tuple[Term, ...]:
    """What the public tables assert about things that are no individuals."""
    cells = PublicCells(spec, room)
    facts: dict[Term, None] = {}
    members, asked = membership_tables(spec), asked_things(spec)
    for table in sorted(spec.public_tables & {source.table for source in (*spec.sources, *spec.columns)}):
        layout = layout_of(spec, table)
        personal = {name for name, column in layout.identities if indicator(column.atom) in people}
        for atom in _asserted(spec, layout):
            if table in members and indicator(atom) not in asked:  # a thousand homes that nothing asks for
                continue
            if not personal & {variable.name for variable in variables(atom)}:
                facts.update(dict.fromkeys(_rows(room, cells, layout, atom)))
    return tuple(facts)


def alike(room: TableRoom, spec: Spec, dataset: Dataset) -> tuple[Alike, ...]:
    """The distinct public structures of a dataset's individuals; first the one of those no public table mentions."""
    found = [Alike(None, ())]
    layouts = _personal_layouts(spec, dataset)
    if not layouts:
        return tuple(found)
    query, cells = key_query(room, spec, dataset), PublicCells(spec, room)
    rows = room.run(f"SELECT key, min(id) FROM ({query}) GROUP BY key ORDER BY key LIMIT {MOST_STRUCTURES + 1}")
    if len(rows) > MOST_STRUCTURES:
        raise refusal(
            dataset.position,
            f"Public tables tell the individuals of {dataset.name} apart into more than {MOST_STRUCTURES} structures.",
            "Range the structure over the declared domain instead of over the rows, or make the table private.",
        )
    for key, example in rows:
        facts: dict[Term, None] = {}
        for layout, person in layouts:
            for atom in _asserted(spec, layout):
                if Variable(person) in variables(atom) and len(variables(atom)) > 1:
                    given = _rows(room, cells, layout, atom, {person: example})
                    facts.update((substitute(fact, {person: Variable(dataset.variable)}), None) for fact in given)
        found.append(Alike(key, tuple(facts)))
    return tuple(found)


def key_query(room: TableRoom, spec: Spec, dataset: Dataset) -> str:
    """SQL for (id, key): the sorted list of what public tables assert about an individual, as text."""
    parts = []
    for number, (layout, person) in enumerate(_personal_layouts(spec, dataset)):
        column = layout.bound(person)
        assert column is not None
        for place, atom in enumerate(_asserted(spec, layout)):
            others = [v.name for v in variables(atom) if v.name != person]
            if Variable(person) not in variables(atom) or not others:
                continue
            cells = ", ".join(_other(layout, person, name) for name in others)
            present = _present(room, spec, layout, (person, *others))
            parts.append(
                f"SELECT {sql_name(column.name)}::VARCHAR AS id, to_json([{sql_level(f'{number}.{place}')}, {cells}])"
                f"::VARCHAR AS fact FROM {room.names[layout.table]} WHERE {present}"
            )
    everything = " UNION ALL ".join(parts)
    return f"SELECT id, list_sort(list(DISTINCT fact))::VARCHAR AS key FROM ({everything}) GROUP BY id"


def _other(layout: TableLayout, person: str, name: str) -> str:
    """SQL for what a row says beside its individual; where that is the individual again, nothing stands there."""
    who, other = (f"{sql_name(_bound(layout, one))}::VARCHAR" for one in (person, name))
    return f"nullif({other}, {who})" if _alike_named(layout, person, name) else other


def _alike_named(layout: TableLayout, person: str, name: str) -> bool:
    """Whether two variables name individuals of one kind, who may be the same."""
    kinds = [column and indicator(column.atom) for column in map(layout.bound, (person, name))]
    return kinds[0] == kinds[1]


def has_structure(spec: Spec, dataset: Dataset) -> bool:
    """Whether public tables say anything about single individuals."""
    return bool(_personal_layouts(spec, dataset))


def _personal_layouts(spec: Spec, dataset: Dataset) -> list[tuple[TableLayout, str]]:
    """The public tables that relate individuals to other things, with the variable of the individual."""
    predicate, found = identity_of(dataset), []
    for table in sorted(spec.public_tables - membership_tables(spec)):
        layout = layout_of(spec, table)
        for name, column in layout.identities:
            related = any(Variable(name) in variables(r.atom) and len(variables(r.atom)) > 1 for r in layout.relations)
            if indicator(column.atom) == predicate and related:
                found.append((layout, name))
    return found


def _asserted(spec: Spec, layout: TableLayout) -> list[Compound]:
    """What a row says; an identity column whose predicate the study itself defines says nothing new."""
    fed = spec.table_predicates
    named = [column.atom for _, column in layout.identities if indicator(column.atom) in fed]
    return named + [relation.atom for relation in layout.relations]


def _bound(layout: TableLayout, variable: str) -> str:
    column = layout.bound(variable)
    if column is None:
        relation = next(r for r in layout.relations if Variable(variable) in variables(r.atom))
        raise refusal(
            relation.position,
            f"No identity column of {layout.table} binds {variable} of {relation.atom}.",
            f"Declare column({layout.table}, Name, kind({variable})).",
        )
    return column.name


def _present(room: TableRoom, spec: Spec, layout: TableLayout, names: Sequence[str]) -> str:
    """SQL for the rows that say something of these variables: cells that are there, and listed where it lists."""
    tests = []
    for name in names:
        column = layout.bound(name)
        assert column is not None
        listed = spec.listings.get(indicator(column.atom))
        levels = None if listed is None else [level_of(term, column.position) for term in listed]
        tests.append(among(column.name, levels, room.types(layout.table, [column.name])[column.name]))
    return " AND ".join(tests) or "TRUE"


def _rows(
    room: TableRoom,
    cells: PublicCells,
    layout: TableLayout,
    atom: Compound,
    only: Mapping[str, str] = MappingProxyType({}),
) -> list[Term]:
    """What the rows of a public table say by one atom; the individual of `only` stays a variable, wherever it is."""
    names = [variable.name for variable in variables(atom)]
    bound = {name: _bound(layout, name) for name in names}
    room.types(layout.table, list(bound.values()))
    shown = [name for name in names if name not in only]
    parts = [_cell(sql_name(bound[name])) for name in shown]
    where = _present(room, cells.spec, layout, names)
    where += "".join(f" AND {sql_name(bound[name])}::VARCHAR = {sql_level(value)}" for name, value in only.items())
    rows = f"SELECT DISTINCT {', '.join(part for three in parts for part in three) or '1'}"
    found = room.run(f"{rows} FROM {room.names[layout.table]} WHERE {where} ORDER BY ALL NULLS LAST")
    columns = []
    for number, name in enumerate(shown):
        told = [(row[3 * number + 2], row[3 * number]) for row in found]
        terms = cells.terms(told, layout.table, bound[name], _place_of(atom, name))
        again = {text: Variable(person) for person, text in only.items() if _alike_named(layout, person, name)}
        columns.append([again.get(text, term) for (text, _), term in zip(told, terms, strict=True)])
    if not shown:
        return [atom] if found else []
    return [substitute(atom, dict(zip(shown, row, strict=True))) for row in zip(*columns, strict=True)]


def _cell(column: str) -> tuple[str, str, str]:
    """SQL for the number of a cell, by which rows are put in order, the cell and its text."""
    return f"TRY_CAST({column}::VARCHAR AS DOUBLE)", column, f"{column}::VARCHAR"


def _place_of(atom: Compound, name: str) -> tuple[str, int]:
    return indicator(atom), atom.arguments.index(Variable(name))
