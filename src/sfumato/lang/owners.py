"""Things that belong to several people: a visit has a patient and a doctor.

In:   declarations, and instance_rv lines that reach from an owner to cells of a thing by a relation.
Out:  a dataset of the things, who owns them by which public table, requirements that name the owners they protect.
Not here: how many things one owner has (network/owners.py), private ownership (release/owned.py).

`instance_rv(patients, P, cost(V)) :- seen(V, P, D).` says that cost(V) of every visit of P changes when P is replaced.
Proof: docs/proofs/owners.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product

from sfumato.core import Adjacency
from sfumato.lang.bindings import naming
from sfumato.lang.declare import Declared
from sfumato.lang.owners_tables import lost_with_owners
from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause, goals
from sfumato.lang.spec import Column, Dataset, Relation
from sfumato.lang.term import Compound, Position, Term, Variable, indicator, match, show, variables
from sfumato.lang.vocabulary import random_predicates
from sfumato.lang.whose import Owner

__all__ = ["owned"]

#: The columns of a table that name a variable.
_Columns = Callable[[str, Term], list[Column]]


@dataclass(frozen=True)
class _Reach:
    """One such line: the owner's dataset, the cell, and the columns that say whose a thing is."""

    dataset: Dataset
    cell: Compound
    relation: Relation
    owner: Column
    thing: Column


def owned(clauses: Sequence[Clause], declared: Declared) -> tuple[tuple[Clause, ...], tuple[Owner, ...], list[Problem]]:
    """The clauses without such lines, the owners, and what is wrong; `declared` gets the things' own dataset."""
    known = {dataset.name: dataset for dataset in declared.datasets}
    lines = [clause for clause in clauses if _is_reach(clause, known)]
    if not lines:
        return tuple(clauses), (), list(_same_without_owners(clauses, declared, ()))
    return _with_owners(clauses, lines, known, declared)


def _with_owners(
    clauses: Sequence[Clause], lines: Sequence[Clause], known: dict[str, Dataset], declared: Declared
) -> tuple[tuple[Clause, ...], tuple[Owner, ...], list[Problem]]:
    reaches, problems = _reaches(lines, known, declared, clauses)
    names = {reach.dataset.name for _, reach in reaches}
    problems += [*_private(reaches, declared), *_uncounted(clauses, lines, names), *_things_apart(reaches, declared)]
    owners = [_owner(reach, declared) for _, reach in reaches]
    problems += [] if problems else _changed_otherwise(reaches, declared)
    problems += _same_without_owners(clauses, declared, names)
    if owners:  # also where something is wrong: what is said of the rest of the study then is of use
        others = list(lost_with_owners(clauses, lines, owners, declared))
        _move(declared, owners, keep_tables=bool(others))
        problems += others
    problems += [] if problems else _unpromised(declared, owners, lines[0])
    rest = [clause for clause in clauses if clause not in lines and not _is_instance_of(clause, names)]
    return tuple(rest), tuple(dict.fromkeys(owners)), problems


def _is_reach(clause: Clause, known: dict[str, Dataset]) -> bool:
    """An instance_rv line whose variable is about something else than the instance's own individual."""
    if indicator(clause.head) != "instance_rv/3" or clause.body is None:
        return False
    dataset, instance, cell = clause.head.arguments
    if not isinstance(cell, Compound):
        return False
    whose, what = set(variables(instance)), set(variables(cell))
    return show(dataset) in known and len(whose) == 1 and len(what) == 1 and not whose & what


def _is_instance_of(clause: Clause, names: Iterable[str]) -> bool:
    said = indicator(clause.head) in ("dataset_instance/2", "instance_rv/3")
    return said and show(clause.head.arguments[0]) in names


def _reaches(
    lines: Sequence[Clause], known: dict[str, Dataset], declared: Declared, clauses: Sequence[Clause]
) -> tuple[list[tuple[Clause, _Reach]], list[Problem]]:
    columns = partial(naming, declared.columns, random=random_predicates(clauses))
    said = {indicator(clause.head) for clause in clauses} | {indicator(column.atom) for column in declared.columns}
    reaches: list[tuple[Clause, _Reach]] = []
    problems: list[Problem] = []
    for clause in lines:
        whose = known[show(clause.head.arguments[0])]
        ways = {goal: _ways(clause, goal, whose, declared.relations, columns) for goal in goals(clause.body)}
        found, partly = _whole(ways, said), next(filter(any, ways.values()), [])
        # Where it is refused, what is said of the rest of the study is of use all the same.
        reaches += [(clause, reach) for reach in chain(*(found or partly))]
        problems += [] if found else [_unknown(clause, whose, bool(partly))]
    return reaches, problems


def _whole(ways: Mapping[Term, list[list[_Reach]]], said: Collection[str]) -> list[list[_Reach]]:
    """Those of a goal that holds by relations alone, each of which names both; nothing where there is no such goal."""
    whole = (way for goal, way in ways.items() if way and all(way) and indicator(goal) not in said)
    return next(whole, [])


def _columns(columns: _Columns, relation: Relation, bound: dict[str, Term], term: Term) -> list[Column]:
    """The columns of the relation's table that name what the goal calls `term`."""
    called = [Variable(name) for name, one in bound.items() if one == term]
    return [found for variable in called for found in columns(relation.table, variable)]


def _ways(
    clause: Clause, goal: Term, whose: Dataset, relations: Sequence[Relation], columns: _Columns
) -> list[list[_Reach]]:
    """Of each relation that may hold for the goal, the columns that name both: all of them count together."""
    _, instance, cell = clause.head.arguments
    assert isinstance(cell, Compound)
    (owner,), (thing,) = variables(instance), variables(cell)
    # A column that names P as something else than the dataset does counts other things than its individuals.
    kinds = {indicator(one) for one in goals(whose.goal)}
    found = []
    for relation in (one for one in relations if _may_hold(one.atom, goal)):
        named = partial(_columns, columns, relation, match(relation.atom, goal) or {})
        owners = [one for one in named(owner) if indicator(one.atom) in kinds]
        found.append([_Reach(whose, cell, relation, one, other) for one, other in product(owners, named(thing))])
    return found


def _may_hold(atom: Compound, goal: Term) -> bool:
    """Whether a row of the relation may be what the goal asks for: no two of their words differ."""
    if not isinstance(goal, Compound) or indicator(atom) != indicator(goal):
        return False
    pairs = zip(atom.arguments, goal.arguments, strict=True)
    return not any(_is_word(one) and _is_word(other) and one != other for one, other in pairs)


def _is_word(term: Term) -> bool:
    return isinstance(term, Compound) and not term.arguments


def _unknown(clause: Clause, whose: Dataset, partly: bool) -> Problem:
    _, instance, cell = clause.head.arguments
    (owner,), (thing,) = variables(instance), variables(cell)
    said = f"names both of them, {show(owner)} as {show(whose.goal)}"
    message = f"nothing says which {show(thing)} belong to {show(owner)} of {whose.name}: "
    message += (
        f"beside a relation whose table {said}, the same predicate has clauses, facts, columns or relations that do not"
        if partly
        else f"no goal is a relation whose table {said}"
    )
    return Problem(
        "error",
        "owners",
        message,
        clause.position,
        clause.text,
        way_out="Declare relation(Table, seen(V, P, D)) with an identity column for each, such as column(Table, who, "
        f"{show(goals(whose.goal)[0])}), and name it here. Every line that says seen must be such a relation: write "
        "what clauses and facts say as rows of a table.",
    )


def _uncounted(clauses: Sequence[Clause], lines: Sequence[Clause], names: Collection[str]) -> Iterator[Problem]:
    """Other lines that give owners something: what they give is in no count."""
    for clause in clauses:
        if indicator(clause.head) != "instance_rv/3" or clause in lines:
            continue
        whose = clause.head.arguments[0]
        if isinstance(whose, Variable) or show(whose) in names:
            yield Problem(
                "error",
                "owners",
                f"{show(clause.head.arguments[2])} may belong to owners of things, and not by a public table of who "
                "owns what: it would be in no count of what one owner has",
                clause.position,
                clause.text,
                way_out="Name one thing by one variable and the owner by another, with a relation of a public table "
                "that names both: instance_rv(patients, P, cost(V)) :- seen(V, P). What is the owner's own, and no "
                "thing's, needs another study, whose promise comes on top.",
            )


def _things_apart(reaches: Sequence[tuple[Clause, _Reach]], declared: Declared) -> Iterator[Problem]:
    """Promises of owners are planned on one dataset, which holds whole things of one kind."""
    names = {reach.dataset.name for _, reach in reaches}
    kinds = dict.fromkeys(indicator(reach.thing.atom) for _, reach in reaches)
    for clause, reach in {indicator(reach.thing.atom): (clause, reach) for clause, reach in reversed(reaches)}.values():
        wrong = _several_kinds(kinds) if len(kinds) > 1 else _no_whole_things(reach, names, declared)
        if wrong:
            message, way_out = wrong
            yield Problem("error", "owners", message, clause.position, clause.text, way_out=way_out)
            return


def _several_kinds(kinds: Iterable[str]) -> tuple[str, str]:
    """A requirement is planned on one dataset; what owners have of another kind would be promised nothing."""
    return (
        f"the things of owners are of several kinds ({', '.join(kinds)}), and the promises to owners are kept for one "
        "kind alone",
        "Keep the instance_rv lines, the relations and the publications of one kind. What is published of another kind "
        "takes another study; promises of two studies to the same owners add up, so write a smaller one in each.",
    )


def _no_whole_things(reach: _Reach, names: Collection[str], declared: Declared) -> tuple[str, str] | None:
    kind = indicator(reach.thing.atom)
    family = [one for one in declared.datasets if kind in map(indicator, goals(one.goal))]
    called = " and ".join(one.name for one in family)
    (thing,) = variables(reach.thing.atom)
    if any(one.name in names for one in family):
        return (
            f"the things that owners have are individuals of {called}, who are owners themselves",
            "Give owners and things a dataset and a kind of their own, or leave out the instance_rv lines that reach "
            "from one individual to another.",
        )
    if len(family) > 1 or any(len(goals(one.goal)) > 1 for one in family):
        return (
            f"{called} hold parts of the things of {reach.dataset.name}, and a promise to owners is about whole things",
            f"Declare one dataset of whole things, dataset(things, domain({show(thing)}, {show(reach.thing.atom)})), "
            "or none, instead of these with their instance_rv lines, and publish under the requirements on the owners. "
            "What is promised about parts of things needs another study.",
        )
    return None


def _private(reaches: Sequence[tuple[Clause, _Reach]], declared: Declared) -> Iterator[Problem]:
    for clause, reach in reaches:
        if reach.relation.table not in declared.public_tables:
            yield Problem(
                "error",
                "private-owners",
                f"who owns what ({show(reach.relation.atom)}) is private. Cutting the rows of one owner and then of "
                "the other does not bound the second: one patient more can move a doctor's rows from 2 to 100",
                clause.position,
                clause.text,
                way_out=f"Declare public({reach.relation.table}), if who visited whom may be known; otherwise publish "
                "a total by sfumato.release.OwnedTotal, which bounds both owners by a flow.",
            )


def _changed_otherwise(reaches: Sequence[tuple[Clause, _Reach]], declared: Declared) -> Iterator[Problem]:
    """What one thing may cost is planned for the change of its dataset: each owner's must consist of such changes."""
    told: set[str] = set()
    for clause, reach in reaches:
        own, things = reach.dataset, _things(reach, declared)
        if own.adjacency.relation == things.adjacency.relation or own.name in told:
            continue
        told.add(own.name)
        (thing,) = variables(reach.thing.atom)
        whole = things.name if things in declared.datasets else "things"
        made = "" if things in declared.datasets else f"dataset(things, domain({thing.name}, {show(things.goal)})). "
        words = own.adjacency.relation.replace("-", "_")
        yield Problem(
            "error",
            "owners",
            f"the promise to {own.name} is under {own.adjacency}, and what is published of their things is counted "
            f"under {things.adjacency}",
            clause.position,
            clause.text,
            way_out=f"Say the same of the things and of all their owners: {made}adjacency({whole}, {words}). Or write "
            f"adjacency({own.name}, {things.adjacency.relation.replace('-', '_')}), if that is the change to promise.",
        )


def _owner(reach: _Reach, declared: Declared) -> Owner:
    whole = _things(reach, declared)
    return Owner(
        reach.dataset.name,
        reach.dataset.adjacency.unit,
        whole.name,
        reach.relation.table,
        reach.owner.name,
        reach.thing.name,
        reach.cell,
        reach.dataset.position,
    )


def _things(reach: _Reach, declared: Declared) -> Dataset:
    """The dataset of the things: declared, or named after what they are."""
    goal = reach.thing.atom
    for dataset in declared.datasets:
        if indicator(dataset.goal) == indicator(goal):
            return dataset
    (variable,) = variables(goal)
    taken = any(one.name == goal.functor for one in declared.datasets)
    name = f"all_{goal.functor}" if taken else goal.functor
    return Dataset(name, variable.name, goal, Adjacency(goal.functor, "replace-one"), reach.dataset.position)


def _dataset_of_things(declared: Declared, owner: Owner) -> Dataset:
    column = next(c for c in declared.columns if c.table == owner.table and c.name == owner.thing)
    (variable,) = variables(column.atom)
    unit = column.atom.functor
    return Dataset(owner.whole, variable.name, column.atom, Adjacency(unit, "replace-one"), owner.position)


def _keep_things(declared: Declared, owner: Owner, owners: set[str]) -> Dataset:
    """The dataset of the things, made where there is none; those of their owners go."""
    kept = {dataset.name: dataset for dataset in declared.datasets if dataset.name not in owners}
    if owner.whole not in kept:
        made = _dataset_of_things(declared, owner)
        kept[made.name] = made
    declared.datasets = list(kept.values())
    return kept[owner.whole]


def _same_without_owners(clauses: Sequence[Clause], declared: Declared, names: Collection[str]) -> Iterator[Problem]:
    """same_person/2 about somebody who owns nothing: it counts the things of one person together."""
    others = {name for pair in declared.same_people for name in pair if name not in names}
    for clause in clauses:
        own = dict.fromkeys(show(one) for one in clause.head.arguments if show(one) in others)
        if indicator(clause.head) == "same_person/2" and own:
            yield Problem(
                "error",
                "owners",
                f"{show(clause.head)} counts together what one person owns in two ways, and nobody of "
                f"{' and '.join(own)} owns things by an instance_rv line",
                clause.position,
                clause.text,
                way_out="Name two datasets of owners, as of patients and doctors who have the same visits: "
                "instance_rv(patients, P, cost(V)) :- seen(V, P, D). Or take the line out.",
            )


def _move(declared: Declared, owners: Sequence[Owner], keep_tables: bool = False) -> None:
    """Requirements of owners become requirements on their things; the table of owners is no structure of the "
    "network."""
    names = {owner.dataset for owner in owners}
    tables = {owner.table for owner in owners}
    things, *_ = [_keep_things(declared, owner, names) for owner in owners]
    for what in () if keep_tables else ("columns", "relations"):
        setattr(declared, what, [one for one in getattr(declared, what) if one.table not in tables])
    declared.requirements = [
        replace(one, dataset=things.name, owner=one.dataset) if one.dataset in names else one
        for one in declared.requirements
    ]


def _unpromised(declared: Declared, owners: Sequence[Owner], clause: Clause) -> Iterator[Problem]:
    """Whoever sees something of the things is promised for all their owners."""
    names = dict.fromkeys(owner.dataset for owner in owners)
    asked = {(one.observer, one.owner) for one in declared.requirements if one.owner is not None}
    for observer in dict.fromkeys(observer for observer, _ in asked):
        for name in names:
            if (observer, name) not in asked:
                yield Problem(
                    "error",
                    "owners",
                    f"{observer} is promised nothing about {name}, who own the same things",
                    clause.position or Position("study", 1, 1),
                    clause.text,
                    way_out=f"Write privacy_requirement(Name({observer}), {name}, Metric).",
                )
