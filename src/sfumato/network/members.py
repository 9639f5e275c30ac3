"""Who belongs together, by public tables: groups that a study says depend on each other, held against its own word.

In:   a Spec with correlated/3, its public tables.
Out:  nothing, or a refusal that says how many belong together.
Not here: what follows for the noise (core/dependence.py). No private table is opened here.

Such a table says who may depend on whom and nothing else, so it does not tell individuals apart: no plan grows with the
number of households.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sfumato.lang.reader import goals
from sfumato.lang.spec import Correlated, Relation, Spec
from sfumato.lang.term import Term, indicator, variables, walk
from sfumato.network.expression import sql_name
from sfumato.network.refusal import check_fed_by_tables, refusal
from sfumato.network.tables import TableRoom, layout_of, name_text, name_writing

__all__ = ["asked_things", "check_members", "largest_group", "membership_tables"]


def membership_tables(spec: Spec) -> frozenset[str]:
    """Public tables whose relations nothing but correlated/3 reads; the things they name may be asked for all the same.

    See `asked_things`.
    """
    named = {indicator(one.goal) for one in spec.correlations if one.goal is not None}
    named = (named | {one.relation for one in spec.peers}) - _asked(spec)
    used = {one.table for one in spec.relations if indicator(one.atom) not in named}
    found = {one.table for one in spec.relations} - used
    return frozenset(table for table in found & spec.public_tables if not layout_of(spec, table).values)


def asked_things(spec: Spec) -> set[str]:
    """Of things that identity columns name, such as home/1, those that any line but the columns' own asks for."""
    return _asked(spec, "column")


def _asked(spec: Spec, *but: str) -> set[str]:
    """What is read by anything but the lines that say who belongs together."""
    without = ("relation", "correlated", *but)
    clauses = (clause for clause in spec.clauses if clause.head.functor not in without)
    terms = (term for clause in clauses for term in (clause.head, clause.body) if term is not None)
    return {indicator(part) for term in terms for part in walk(term)}


def check_members(room: TableRoom, spec: Spec) -> None:
    """No public tables show a larger group than the study says there is, whichever of them show a part of it."""
    for one in spec.correlations:
        if one.kind == "group" and one.goal is not None:
            _check_group(room, spec, one, one.goal)


def _check_group(room: TableRoom, spec: Spec, one: Correlated, goal: Term) -> None:
    check_fed_by_tables(spec, indicator(goal), one.position)
    relations = [each for each in spec.relations if indicator(each.atom) == indicator(goal)]
    people = {indicator(each) for each in goals(spec.dataset(one.dataset).goal)}
    ends = [_ends(spec, relation, people) for relation in relations]
    _check_names(room, ends, one)
    pairs = {pair for own in ends for pair in _pairs(room, own)}
    shown, said = largest_group(pairs, any(own.network for own in ends)), int(one.bound)
    if shown > said:
        raise refusal(
            one.position,
            f"{_public(ends)} {shown} who belong together, more than at_most({said}).",
            f"Write at_most({shown}), or correct the table.",
        )


def _public(ends: Sequence[_Ends]) -> str:
    """That these tables show something to everybody."""
    tables = list(dict.fromkeys(own.table for own in ends))
    return f"{' and '.join(tables)} {'is public and shows' if len(tables) == 1 else 'are public and show'}"


@dataclass(frozen=True)
class _Ends:
    """The columns of a relation: who, and of which group or with whom; `network` where both ends are individuals."""

    table: str
    who: str
    where: str
    network: bool


def _ends(spec: Spec, relation: Relation, people: Collection[str]) -> _Ends:
    """The individual's column first, wherever the relation has it: groups are counted by who is in them."""
    layout = layout_of(spec, relation.table)
    columns = [found for each in variables(relation.atom) if (found := layout.bound(each.name)) is not None]
    if len(columns) != 2:
        raise refusal(
            relation.position,
            f"{relation.atom} must relate two identities of {relation.table}.",
            f"Declare column({relation.table}, Name, kind(X)) for both of its variables.",
        )
    first, second = sorted(columns, key=lambda column: indicator(column.atom) not in people)
    if indicator(first.atom) not in people:
        raise refusal(
            relation.position,
            f"{relation.atom} must say who belongs together, and no column of {relation.table} that it names does.",
            f"Declare column({relation.table}, Name, {min(people).split('/')[0]}(P)) for one of its variables.",
        )
    return _Ends(relation.table, first.name, second.name, indicator(second.atom) in people)


def _check_names(room: TableRoom, ends: Sequence[_Ends], one: Correlated) -> None:
    """Who and which group are known by their names: what is written in two ways would be two."""
    first: dict[bool, tuple[str, str]] = {}
    for own in ends:
        for column, kind in room.types(own.table, [own.who, own.where]).items():
            found = name_writing(kind), f"{column} of {own.table}"
            other = first.setdefault(own.network or column == own.who, found)
            if other[0] != found[0]:
                raise refusal(
                    one.position,
                    f"{other[1]} and {found[1]} name the same things, and one of them as decimal numbers of fixed "
                    "digits: 7 and 7.00 would be two of them.",
                    "Convert both to whole numbers or to text.",
                )


def _pairs(room: TableRoom, ends: _Ends) -> Iterable[tuple[str, str]]:
    kinds = room.types(ends.table, [ends.who, ends.where])
    who, where = (name_text(kinds[name], sql_name(name)) for name in (ends.who, ends.where))
    found = room.run(
        f"SELECT DISTINCT {who} AS a, {where} AS b FROM {room.names[ends.table]} WHERE a IS NOT NULL AND b IS NOT NULL"
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
