"""People whose variables hold other people's cells: `findall(cost(Q), friend(P, Q), L)` over a public relation.

In:   a Spec, its public tables.
Out:  the same study with one column more, computed beside the cells, and promises for as many rows as hold one person.
Not here: why that is enough (docs/proofs/pufferfish.md), other dependence (lang/correlated.py).

A sum or mean over peers is computed from the tables before anything else and counts as a cell of the person it is
computed for. Replacing one person then changes that person's row and the rows of all who have them as a peer, which the
public relation bounds: what is kept for so many rows is kept for the person.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.core import ApproxDP, Guarantee, Interval, Pufferfish, PureDP, Reach
from sfumato.lang.reader import Clause, goals
from sfumato.lang.shares import share_of
from sfumato.lang.spec import Column, Dataset, Missing, Peer, PrivacyRequirement, Range, Relation, Spec
from sfumato.lang.term import Compound, ListTerm, Term, Variable, indicator, show, walk
from sfumato.network.expression import sql_name
from sfumato.network.refusal import refusal
from sfumato.network.rows import PUBLIC_KEY, RANK, kept_rows
from sfumato.network.tables import TEXT, TableRoom, layout_of, plain_type, text_as_number

__all__ = ["add_peers", "peer_tables", "with_peers"]

#: Cells of peers are summed in whole numbers of this part of their range: no order of rows can show in a last digit.
_STEPS = 1 << 40


@dataclass(frozen=True)
class _Found:
    """One clause that asks for peers: whose, which cell of theirs, by which relation, summed up how."""

    clause: Clause
    dataset: Dataset
    cell: Column
    relation: str
    mean: bool


def with_peers(spec: Spec, room: TableRoom) -> Spec:
    """The study with every sum over peers as a column of its own; the study itself where there is none."""
    found = [one for clause in spec.clauses if (one := _found(spec, clause)) is not None]
    if not found:
        return spec
    _check_others(spec, found[0])
    peers = tuple(_peer(spec, room, one, place) for place, one in enumerate(found))
    clauses = list(spec.clauses)
    columns, ranges, missing = list(spec.columns), list(spec.ranges), list(spec.missing)
    for one, peer in zip(found, peers, strict=True):
        place = clauses.index(one.clause)
        clauses[place] = _rewritten(one, peer)
        clauses.append(Clause(Compound("random", (peer.atom,)), one.dataset.goal, one.clause.position, one.clause.text))
        columns.append(Column(peer.table, peer.column, peer.atom, one.clause.position))
        ranges.append(Range(peer.atom, Interval(peer.low, peer.high), one.clause.position))
        missing.append(Missing(peer.atom, 0.0, position=one.clause.position))
    rows = {one.dataset.name: _most_rows(spec, room, one.dataset, peers) for one in found}
    return dataclasses.replace(
        spec,
        clauses=tuple(clauses),
        columns=tuple(columns),
        ranges=tuple(ranges),
        missing=tuple(missing),
        peers=peers,
        derived={},
        requirements=tuple(
            dataclasses.replace(one, guarantee=_for_rows(spec, one.dataset, _stated(one), rows[one.dataset]))
            if one.dataset in rows
            else one
            for one in spec.requirements
        ),
    )


def _check_others(spec: Spec, one: _Found) -> None:
    """What would hand one individual's data to another, or would have to know all of them in one place, is refused."""
    exact = next((c for c in spec.clauses if c.head.functor in ("personal_rv", "observe", "reveal")), None)
    if exact is not None:
        raise refusal(
            exact.position,
            f"{exact.head.functor} gives somebody a variable exactly, and where individuals hold each other's data "
            "that may be somebody else's.",
            "Take the line out, or write the sum over others as a column of the table.",
        )
    if spec.divisions:
        raise refusal(
            one.clause.position,
            "Individuals of one part hold data of another, and each part has a promise of its own.",
            "Make one promise about whole individuals.",
        )
    if spec.centres:
        raise refusal(
            one.clause.position,
            "A sum over others cannot be taken where institutions keep their own rows.",
            "Put the sum into each institution's table.",
        )


def _found(spec: Spec, clause: Clause) -> _Found | None:
    """depends(v(P), L, … sum(L) …) :- findall(x(Q), r(P, Q), L), x a cell and r a public relation of individuals."""
    if indicator(clause.head) != "depends/3" or clause.body is None:
        return None
    match clause.head.arguments, [goal for goal in goals(clause.body) if indicator(goal) == "findall/3"]:
        case (Compound() as child, parents, law), [
            Compound(arguments=(Compound() as what, Compound() as goal, Variable() as collected))
        ] if collected == parents and _reads_others(child, what, goal):
            return _of_peers(spec, clause, what, indicator(goal), _functions_of(collected, law))
    return None


def _of_peers(spec: Spec, clause: Clause, what: Compound, relation: str, used: set[str]) -> _Found | None:
    """The same, the clause having that shape, `used` being the functions of what was found."""
    if not spec.table_predicates.get(relation, ("", False))[1]:
        return None
    dataset = _between_individuals(spec, relation)
    cell = spec.column_of(what)
    if dataset is None or cell is None or cell.table in spec.public_tables:
        return None
    _check_relation(spec, clause, relation)
    _check_only_summed(clause, what)
    if used not in ({"sum"}, {"mean"}):
        raise refusal(
            clause.position,
            f"{show(clause.head.arguments[0])} holds other individuals' {show(what)}, and only their sum or mean can "
            "be taken.",
            "Write sum(L) or mean(L), and compute the rest from it.",
        )
    return _Found(clause, dataset, cell, relation, used == {"mean"})


def _check_only_summed(clause: Clause, what: Compound) -> None:
    """The list itself is never made: no other goal can ask how long it is, or what is in it."""
    collected = clause.head.arguments[1]
    others = (goal for goal in goals(clause.body) if indicator(goal) != "findall/3")
    asking = next((goal for goal in others if collected in walk(goal)), None)
    if asking is not None:
        raise refusal(
            clause.position,
            f"{show(clause.head.arguments[0])} holds other individuals' {show(what)}, of which only the sum or mean is "
            f"taken: {show(asking)} asks for the list itself.",
            f"Take it out. mean({show(collected)}) is the sum by their number; how many each individual has is public "
            "and can be a column of a public table.",
        )


def _reads_others(child: Compound, what: Compound, goal: Compound) -> bool:
    """v(P), x(Q) and r(P, Q)."""
    return len(goal.arguments) == 2 and child.arguments == goal.arguments[:1] and what.arguments == goal.arguments[1:]


def _functions_of(variable: Variable, term: Term) -> set[str]:
    parts = (part for part in walk(term) if isinstance(part, Compound))
    return {part.functor for part in parts if variable in part.arguments}


def _relations(spec: Spec, relation: str) -> list[Relation]:
    """All that feed a relation: several tables, or one by several pairs of its columns."""
    return [one for one in spec.relations if indicator(one.atom) == relation]


def _between_individuals(spec: Spec, relation: str) -> Dataset | None:
    """The dataset whose individuals a relation has at both ends."""
    return next((known for one in _relations(spec, relation) if (known := _dataset_between(spec, one))), None)


def _dataset_between(spec: Spec, one: Relation) -> Dataset | None:
    match one.atom:
        case Compound(arguments=(Variable() as first, Variable() as second)):
            ends = map(layout_of(spec, one.table).bound, (first.name, second.name))
            kinds = {indicator(column.atom) if column is not None else "" for column in ends}
            return next((one for one in spec.datasets if kinds == {indicator(one.goal)}), None)
    return None


def _check_relation(spec: Spec, clause: Clause, relation: str) -> None:
    """Peers are looked up in tables: what else says who they are would be left out."""
    other = next((one for one in _relations(spec, relation) if _dataset_between(spec, one) is None), None)
    if other is not None:
        raise refusal(
            other.position,
            f"{show(clause.head.arguments[0])} sums over {relation}, and {other.atom} of {other.table} does not relate "
            "two individuals of one dataset.",
            f"Declare both of its variables as individuals, column({other.table}, Name, person(P)) and the like, or "
            "give this relation another name.",
        )
    written = next((one for one in spec.clauses if indicator(one.head) == relation), None)
    if written is not None:
        raise refusal(
            written.position,
            f"{relation} is fed by a table and by clauses of the study, and a sum over peers reads tables alone.",
            f"Write the pairs of the clause into a public table, with a line relation(Table, {written.head}) of its "
            "own: all tables of a relation are read together. Then take the clause out, or give its head another name.",
        )


def _ends(spec: Spec, relation: str) -> list[tuple[str, str, str]]:
    """The tables of a relation, each with the columns of who and of the peer."""
    found = []
    for one in _relations(spec, relation):
        layout = layout_of(spec, one.table)
        first, second = (layout.bound(end.name) for end in one.atom.arguments if isinstance(end, Variable))
        assert first is not None
        assert second is not None
        found.append((one.table, first.name, second.name))
    return found


def _pairs(room: TableRoom, spec: Spec, relation: str) -> str:
    """SQL for (who, peer), each once, whichever tables and columns say so."""
    return " UNION ".join(
        f"SELECT DISTINCT {sql_name(who)}::VARCHAR AS who, {sql_name(peer)}::VARCHAR AS peer FROM {room.names[table]} "
        f"WHERE {sql_name(who)} IS NOT NULL AND {sql_name(peer)} IS NOT NULL"
        for table, who, peer in dict.fromkeys(_ends(spec, relation))
    )


def _peer(spec: Spec, room: TableRoom, one: _Found, place: int) -> Peer:
    domain, whose = _numbers_of(spec, one), _whose(spec, one)
    if one.dataset.adjacency.relation != "replace-one":
        raise refusal(
            one.clause.position,
            "Under add_remove nobody may know who is there, and sums over peers would tell.",
            f"Leave adjacency({one.dataset.name}, add_remove) out.",
        )
    ((most,),) = room.run(
        f"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM ({_pairs(room, spec, one.relation)}) GROUP BY who)"
    )
    times = 1 if one.mean else max(int(most), 1)
    name = f"{'mean' if one.mean else 'sum'} of {one.cell.atom.functor} over {one.relation.rpartition('/')[0]}"
    atom = Compound(name, (Variable(one.dataset.variable),))
    low, high = min(0.0, times * domain.low), max(0.0, times * domain.high)
    return Peer(one.cell.table, f"${place} {name}", atom, one.cell, whose.name, one.relation, one.mean, low, high)


def _numbers_of(spec: Spec, one: _Found) -> Interval:
    """The range of the cell that is summed, of which every peer has one number."""
    domain, said = spec.domain_of(one.cell.atom), spec.missing_of(one.cell.atom)
    if not isinstance(domain, Interval) or domain.calendar:
        raise refusal(
            one.clause.position,
            f"A sum over peers needs numbers, and {show(one.cell.atom)} has no range of numbers.",
            f"Declare range({show(one.cell.atom)}, Low, High).",
        )
    if said is not None and said.rule == "skip":
        # Left out could be the peer or the one who sums: the study must say a number instead.
        where = "beside" if said.of_table else "in place of"
        raise refusal(
            one.clause.position,
            f"A sum over peers takes a number of each, and absent cells of {show(one.cell.atom)} are skipped.",
            f"Say what stands for an absent cell, missing({show(one.cell.atom)}, Value) with a number from "
            f"{domain.low:g} to {domain.high:g}, {where} the line that skips it.",
        )
    return domain


def _whose(spec: Spec, one: _Found) -> Column:
    """The column that says whose a summed cell is, in a table with one row of each individual."""
    layout = layout_of(spec, one.cell.table)
    whose = layout.identity(indicator(one.dataset.goal))
    if whose is None:
        raise refusal(
            one.clause.position,
            f"No column of {one.cell.table} says whose a row is.",
            f"Declare column({one.cell.table}, Name, {show(one.dataset.goal)}).",
        )
    if layout.row_limit is None or layout.row_limit.maximum > 1:
        raise refusal(
            one.clause.position,
            f"A sum over peers takes one cell of each, and {one.cell.table} may have several rows of one individual.",
            f"Declare rows_per_person({one.cell.table}, 1), or with first(Column) or last(Column) which row counts.",
        )
    return whose


def _rewritten(one: _Found, peer: Peer) -> Clause:
    """The clause with the new column in place of the list."""
    child, collected, law = one.clause.head.arguments
    assert isinstance(child, Compound)
    person = child.arguments[0]
    atom = Compound(peer.atom.functor, (person,), one.clause.position)
    head = Compound("depends", (child, ListTerm((atom,)), _replaced(law, collected, atom)), one.clause.position)
    rest = [goal for goal in goals(one.clause.body) if indicator(goal) != "findall/3"]
    body: Term = Compound(one.dataset.goal.functor, (person,))  # type: ignore[union-attr]  # identity_of says so
    for goal in rest:
        body = Compound(",", (body, goal))
    return Clause(head, body, one.clause.position, one.clause.text)


def _replaced(term: Term, collected: Term, atom: Compound) -> Term:
    if isinstance(term, Compound) and term.arguments == (collected,):
        return atom
    if isinstance(term, Compound):
        return Compound(term.functor, tuple(_replaced(part, collected, atom) for part in term.arguments), term.position)
    return term


def _most_rows(spec: Spec, room: TableRoom, dataset: Dataset, peers: Sequence[Peer]) -> int:
    """In how many rows one individual's data are at most: their own, and those of all who have them as a peer."""
    pairs = " UNION ".join(f"({_pairs(room, spec, name)})" for name in dict.fromkeys(one.relation for one in peers))
    ((most,),) = room.run(
        f"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM ({pairs}) WHERE who <> peer GROUP BY peer)"
    )
    return int(most) + 1


def _stated(one: PrivacyRequirement) -> Guarantee:
    """A promise, or its share of one step; of (ε, δ) that is (ε/T, δ/T), for what is promised for rows has no μ."""
    if isinstance(one.whole, ApproxDP) and one.shares:
        return share_of(one.whole, one.shares, numbers=False)
    return one.guarantee


def _for_rows(spec: Spec, dataset: str, guarantee: Guarantee, rows: int) -> Guarantee:
    match guarantee:
        case PureDP(eps=eps):
            return Pufferfish(eps, 0.0, Reach(rows), adjacency=guarantee.adjacency)
        case ApproxDP(eps=eps, delta_=delta):
            return Pufferfish(eps, delta, Reach(rows), adjacency=guarantee.adjacency)
    raise refusal(
        spec.dataset(dataset).position,
        f"In {dataset} individuals hold each other's data, and the promise {guarantee.describe()} is none for that.",
        "State dp(Epsilon) or dp(Epsilon, Delta).",
    )


def peer_tables(spec: Spec) -> frozenset[str]:
    """The tables that say who is whose peer."""
    return frozenset(table for one in spec.peers for table, _, _ in _ends(spec, one.relation))


def add_peers(room: TableRoom, spec: Spec, row_keys: Mapping[str, bytes]) -> None:
    """Compute the columns, each beside the cells of its table, of which only the kept rows are left.

    So a peer's cell is the one that counts for the peer: which row is kept is decided once, before anything is added.
    """
    for place, one in enumerate(spec.peers):
        layout = layout_of(spec, one.table)
        kept = kept_rows(room, layout, one.whose, row_keys.get(_dataset_of(spec, one), PUBLIC_KEY))
        person, cell = sql_name(one.whose), sql_name(one.cell.name)
        domain = spec.domain_of(one.cell.atom)
        assert isinstance(domain, Interval)
        kind = room.types(one.table, [one.cell.name])[one.cell.name]
        number = text_as_number(cell) if plain_type(kind) == TEXT else f"{cell}::DOUBLE"
        number = f"nullif({number}, 'nan'::DOUBLE)"  # NaN is an absent cell
        inside = f"least(greatest(coalesce({number}, {_absent(spec, one, domain)}), {domain.low}), {domain.high})"
        step = (domain.high - domain.low) / _STEPS
        whole = f"CAST(round(({inside} - {domain.low}) / {step!r}) AS HUGEINT)"
        cells = f"SELECT {person}::VARCHAR AS peer, min({whole}) AS x FROM {kept} GROUP BY 1"
        summed = f"sum(c.x)::DOUBLE * {step!r} + count(*) * {domain.low}"
        sums = (
            f"SELECT w.who, {f'({summed}) / count(*)' if one.mean else summed} AS s FROM "
            f"({_pairs(room, spec, one.relation)}) AS w JOIN ({cells}) AS c USING (peer) GROUP BY 1"
        )
        own = f"p{place}_{room.names[one.table]}"
        room.run(
            f"CREATE TEMP VIEW {own} AS SELECT v.* EXCLUDE ({sql_name(RANK)}), "
            f"coalesce(s.s, 0.0) AS {sql_name(one.column)} FROM {kept} AS v "
            f"LEFT JOIN ({sums}) AS s ON v.{person}::VARCHAR = s.who"
        )
        room.names[one.table] = own


def _dataset_of(spec: Spec, one: Peer) -> str:
    layout = layout_of(spec, one.table)
    owners = ((dataset.name, layout.identity(indicator(dataset.goal))) for dataset in spec.datasets)
    return next(name for name, column in owners if column is not None and column.name == one.whose)


def _absent(spec: Spec, one: Peer, domain: Interval) -> float:
    """What stands for an absent cell of a peer: what stands for it where the peer's own row is read (nodes.py)."""
    said = spec.missing_of(one.cell.atom)
    if said is not None and said.rule == "value" and isinstance(said.value, int | float):
        return float(said.value)
    return domain.low + domain.width / 2 if domain.null is None else float(domain.null)
