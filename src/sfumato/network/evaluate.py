"""Every variable's value for every individual: one query per group, whatever the number of rows.

In:   a Network, the tables it names.
Out:  Values: columns per individual, the shared variables, the aggregates in exact whole numbers.
Not here: reading one cell (network/cells.py), publishing anything.

Everything in Values is private. Nothing here fails because of what a cell holds: all rules are total functions of one
person's rows, and no message quotes a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.domain import Categories
from sfumato.core.text import AnyText
from sfumato.lang.spec import Dataset
from sfumato.network.aggregate import AggregateNode
from sfumato.network.cells import asserted, cell_of, final_value, flag, merged, placed, single, where
from sfumato.network.columns import wanted_tables
from sfumato.network.condition import Member, Present
from sfumato.network.crowd import crowd_of
from sfumato.network.expected import expected_entries, expected_total
from sfumato.network.expression import Expression, sql_level, sql_name
from sfumato.network.facts import Key, KnownColumn, TableFacts, absent_word, known_of
from sfumato.network.homes import everybody, homes_of
from sfumato.network.known import check_number
from sfumato.network.network import Group, Network, Node, first_of_each, layers_of
from sfumato.network.parts import RowShare, chosen_by, row_shares
from sfumato.network.peers import add_peers
from sfumato.network.rows import PUBLIC_KEY, kept_rows
from sfumato.network.scalars import add_scalars, literal, plain_value, rests_on_aggregate
from sfumato.network.structure import fed_datasets, identity_of, individuals_of, key_query
from sfumato.network.tables import TableLayout, TableRoom, layout_of, naming_columns
from sfumato.network.told import tell_curator
from sfumato.network.totals import number_of, totals
from sfumato.network.values import GROUP, ID, Values
from sfumato.network.whole import whole_nodes
from sfumato.questions.sums import Sums

__all__ = ["GROUP", "ID", "Values", "evaluate", "streams"]

#: What sums are taken over: the values of one group, in the engine.
_EVALUATED = "evaluated"


def streams(network: Network, sums_only: bool) -> bool:
    """Whether sums are added up as rows flow by; then the curator is told afterwards: most was seen on the way."""
    return sums_only and not network.spec.correlations


def evaluate(
    network: Network,
    tables: Mapping[str, Any],
    row_keys: Mapping[str, bytes] | None = None,
    *,
    sums_only: bool = False,
    tell: bool = True,
) -> Values:
    """Forward inference over `tables` (table name -> path, Arrow table or data frame).

    `row_keys` (dataset -> key) decide which rows of people with many rows are kept; never made from data. With
    `sums_only` nobody's values are handed back, and none are held: `individuals` and `rows` are empty. Without `tell`
    whoever asks tells the curator.
    """
    spec, keys, streamed = network.spec, row_keys or {}, streams(network, sums_only)
    listed: set[str] = set()
    fed = fed_datasets(spec)
    with TableRoom(tables, wanted_tables(network, fed), spec.numbered_tables, naming_columns(spec)) as room:
        add_peers(room, spec, keys)
        if tell and not streamed:
            tell_curator(room, network)
        shared = _early(network, room, fed)
        individuals: dict[str, pa.Table] = {}
        rows: dict[str, pa.Table] = {}
        parts: dict[str, list[Sums]] = {}
        for dataset in fed:
            whole = _People(network, room, dataset, shared, keys.get(dataset.name, PUBLIC_KEY))
            if streamed:
                listed |= whole.add_up(parts)
            else:
                whole.fill(individuals, rows, parts)
        found = {node.name: node.question.total(parts.get(node.name, [])) for node in network.aggregates}
        shared |= _late(network, room, shared, found)
        whole = whole_nodes(network, room)
        if tell and streamed:
            tell_curator(room, network, listed)
    plain = {name: plain_value(value) for name, value in shared.items()}
    return Values(individuals, rows, plain, found, whole, frozenset(listed))


def _early(network: Network, room: TableRoom, fed: Sequence[Dataset]) -> dict[str, Any]:
    """What belongs to nobody and waits for no sum, and the variables of people the study itself names."""
    names = {dataset.name for dataset in fed}
    nodes = [node for node in network.shared if not rests_on_aggregate(network, node)]
    nodes += [node for group in network.groups if group.dataset not in names for node in group.nodes]
    found: dict[str, Any] = {}
    add_scalars(room, network.spec, individuals_of(network.spec), nodes, found)
    return found


def _late(network: Network, room: TableRoom, shared: Mapping[str, Any], found: Mapping[str, Sums]) -> dict[str, Any]:
    """What belongs to nobody and is computed from aggregates."""
    nodes = [node for node in network.shared if rests_on_aggregate(network, node)]
    known = {**shared, **{node.name: number_of(node, found[node.name]) for node in network.aggregates}}
    add_scalars(room, network.spec, individuals_of(network.spec), nodes, known)
    return {node.name: known[node.name] for node in nodes}


def _members(aggregates: Iterable[AggregateNode]) -> dict[str, Member]:
    """The parts of conditions that have columns of their own, by their keys."""
    found = {member.key: member for node in aggregates for member in node.condition.members()}
    return dict(sorted(found.items()))


class _People:
    """The individuals of one dataset: their cells joined, their groups told apart, their expressions computed."""

    def __init__(
        self, network: Network, room: TableRoom, dataset: Dataset, shared: Mapping[str, Any], row_key: bytes
    ) -> None:
        self.network, self.room, self.dataset, self.shared, self.row_key = network, room, dataset, shared, row_key
        self.spec = network.spec
        self.people = individuals_of(self.spec)
        self.groups = [group for group in network.groups if group.dataset == dataset.name]
        self.aggregates = [node for node in network.aggregates if node.dataset == dataset.name]
        self.homes = homes_of(self.spec, dataset)
        self.nodes = first_of_each(self.groups)
        self.members = _members(self.aggregates)
        #: Where absent cells are skipped, a flag says for whom there is one.
        self.flags = {node.name: Present(node.name).key for node in self.nodes.values() if node.skip}
        #: Where structures differ in what is skipped, a flag says for whom all of a variable's cells are there.
        self.complete = {part.variable: part.key for node in self.aggregates for part in node.complete}
        #: The engine folds the case of names and the study does not, so columns are numbered.
        self.columns = {name: f"c{place}" for place, name in enumerate(dict.fromkeys(self._names()))}
        self._entries: dict[tuple[str, int], tuple[Expression, ...]] = {}
        #: Whose columns hold a number for everybody, and between which ends.
        self._known: dict[str, KnownColumn] = {}
        #: Nodes that read a table of which no row is left out, and those of them that hold listed words only.
        self._every: set[str] = set()
        self._listed: set[str] = set()

    def _names(self) -> list[str]:
        """Everything that has a column."""
        levels = (f"{node.name}={level}" for group in self.groups for node in group.nodes for level in node.levels)
        return [*self.nodes, *self.flags.values(), *self.complete.values(), *levels, *self.members, *self.shared]

    def fill(self, individuals: dict[str, pa.Table], rows: dict[str, pa.Table], parts: dict[str, list[Sums]]) -> None:
        """Everybody's values, and the sums over them."""
        self.room.run(f"CREATE OR REPLACE TEMP TABLE people AS {self._base()} ORDER BY id")
        tables, by_rows = [], {}
        for group in self.groups:
            table = self._held(group, None, parts)
            place = next(index for index, other in enumerate(self.network.groups) if other is group)
            tables.append(self._renamed(table).append_column(GROUP, pa.array(np.full(table.num_rows, place))))
            for row_table in _row_tables(group):
                by_rows.setdefault(row_table, []).append(self._renamed(self._held(group, row_table, parts)))
        individuals[self.dataset.name] = _stacked(tables)
        rows.update({name: _stacked(found) for name, found in by_rows.items()})
        self.room.run("DROP TABLE people")
        check_number(self.spec, self.dataset.name, individuals[self.dataset.name].num_rows)

    def add_up(self, parts: dict[str, list[Sums]]) -> set[str]:
        """The sums alone; of which nodes every cell was met on the way and is a listed word.

        Rows flow through the engine; only what a join needs is put aside, on disk if it is much.
        """
        kind = "TABLE" if self._is_joined() else "VIEW"
        self.room.run(f"CREATE OR REPLACE TEMP {kind} people AS {self._base()}")
        for group in self.groups:
            for row_table in (None, *_row_tables(group)):
                self._streamed(group, row_table, parts)
        self.room.run(f"DROP {kind} people")
        return self._listed if self._of_group(self.groups[-1]) == "TRUE" else set()

    def _held(self, group: Group, row_table: str | None, parts: dict[str, list[Sums]]) -> pa.Table:
        with self._evaluated(group, row_table, {}) as query:
            table = self.room.arrow(query)
        with self.room.held(_EVALUATED, table):
            self._aggregate(group, table, row_table, parts, {})
        return table

    def _streamed(self, group: Group, row_table: str | None, parts: dict[str, list[Sums]]) -> None:
        if any(node.question.expected for node in self._asked(group, row_table)):
            self._held(group, row_table, parts)  # expectations are computed here and not by the engine
            return
        words = {node.name: word for node in self._cells(group) if (word := absent_word(node)) is not None}
        keys = {name: Key(f"k{place}", word) for place, (name, word) in enumerate(words.items())}
        with self._evaluated(group, row_table, keys) as query:
            self.room.run(f"CREATE OR REPLACE TEMP VIEW {_EVALUATED} AS {query}")
            self._aggregate(group, None, row_table, parts, keys)
            self.room.run(f"DROP VIEW {_EVALUATED}")

    def _is_joined(self) -> bool:
        tables = [table for table in self.room.names if table != self.homes[0].table]
        others = any(layout_of(self.spec, t).identity(identity_of(self.dataset)) is not None for t in tables)
        return others or any(group.key is not None for group in self.groups)

    def _base(self) -> str:
        """SQL for one row per individual: identifier, group, cells, flags."""
        first, *others = self.homes
        tables = dict.fromkeys([first.table, *(column.table for column in self.spec.columns)])
        layouts = [layout_of(self.spec, table) for table in tables if table in self.room.names]
        layouts = [layout for layout in layouts if layout.identity(identity_of(self.dataset)) is not None]
        pieces = [everybody(self.room, self.homes, identity_of(self.dataset))] if others else []
        for layout in layouts:
            pieces += self._pieces(layout, home=not others and layout.table == first.table)
        self.room.check_same_identities(layouts, identity_of(self.dataset))
        query = f"SELECT * FROM ({pieces[0]}) AS p0"
        for number, piece in enumerate(pieces[1:], start=1):
            query += f" LEFT JOIN ({piece}) AS p{number} USING (id)"
        keyed = any(group.key is not None for group in self.groups)
        keys = f"LEFT JOIN ({key_query(self.room, self.spec, self.dataset)}) AS k USING (id)" if keyed else ""
        return f"SELECT b.*, {'k.key' if keyed else 'NULL::VARCHAR'} AS grouping FROM ({query}) AS b {keys}"

    def _pieces(self, layout: TableLayout, home: bool) -> list[str]:
        """What each column of a table says of those whom it names: a public table may name individuals by several."""
        first, *others = layout.naming(identity_of(self.dataset))
        pieces = self._named_by(layout, first.name, home)
        return pieces + [piece for one in others for piece in self._named_by(layout, one.name, False, only_told=True)]

    def _named_by(self, layout: TableLayout, person: str, home: bool, only_told: bool = False) -> list[str]:
        """The cells of each part of a person by themselves; whom relations name is said once.

        With `only_told` nothing is given where the column tells nothing of those it names.
        """
        own = [node for node in self._sourced(layout.table) if cell_of(self.spec, node, self.people).person == person]
        members = {key: one for key, one in self.members.items() if (one.table, one.person) == (layout.table, person)}
        if only_told and not own and not members:
            return []
        first, *others = row_shares(self.network, layout.table, own)
        return [
            self._piece(layout, person, home, first, members),
            *(self._piece(layout, person, False, one, {}) for one in others),
        ]

    def _piece(
        self, layout: TableLayout, person: str, home: bool, share: RowShare, members: Mapping[str, Member]
    ) -> str:
        kinds = self.room.types(layout.table, layout.columns)
        self.room.check_identities(layout)
        shown = partial(self._shown, share, members, kinds)

        def filled(node: Node, column: str, kind: str, test: str) -> str:
            return single(node, column, kind, test, self._absent(node, kind) if test == "TRUE" else "NULL")

        who, table = sql_name(person), self.room.names[layout.table]
        crowd = crowd_of(self.room, layout, person)
        everybody = home and crowd.table is None
        alone = f"SELECT {who}::VARCHAR AS id{shown(filled if everybody else single, asserted)} FROM {table}"
        self._every |= {node.name for node in share.nodes if everybody and not crowd.nobodys}
        if crowd.table is None:  # everybody has one row: nothing to group
            return f"{alone} WHERE {who} IS NOT NULL" if crowd.nobodys else alone
        kept = kept_rows(self.room, layout, person, self.row_key, _is_ordered(layout, share), share.only)
        together = shown(lambda node, column, kind, test: merged(node, layout, column, kind, test), flag)
        query = f"SELECT {who}::VARCHAR AS id{together} FROM {kept} WHERE {who} IS NOT NULL"
        if crowd.table == "":
            return f"{query} GROUP BY 1"
        return (
            f"{alone} WHERE {who} IS NOT NULL AND {who}::VARCHAR NOT IN (SELECT who FROM {crowd.table}) "
            f"UNION ALL {query} AND {who}::VARCHAR IN (SELECT who FROM {crowd.table}) GROUP BY 1"
        )

    def _shown(
        self,
        share: RowShare,
        members: Mapping[str, Member],
        kinds: Mapping[str, str],
        value: Callable[[Node, str, str, str], str],
        test: Callable[[Member, Mapping[str, str]], str],
    ) -> str:
        """SQL for the cells of a table and for the flags it gives, each after a comma."""
        found = []
        for node in share.nodes:
            cell = cell_of(self.spec, node, self.people)
            read = value(node, cell.column, kinds[cell.column], where(cell.matches))
            found.append(f", {read} AS {self.columns[node.name]}")
        found += [f", {test(member, kinds)} AS {self.columns[key]}" for key, member in members.items()]
        return "".join(found)

    def _absent(self, node: Node, kind: str) -> str:
        """What stands for an absent cell where there is nobody without a row; then everybody has a number."""
        known = known_of(node, kind)
        if known is None:
            return "NULL"
        self._known[node.name] = known
        return literal(node.missing)

    def _sourced(self, table: str) -> list[Node]:
        found = [node for node in self.nodes.values() if node.source is not None and node.source.table == table]
        return [node for node in found if node.row_table is None]

    def _of_group(self, group: Group) -> str:
        if group.key is not None:
            return f"grouping = {sql_level(group.key)}"
        keys = ", ".join(sql_level(other.key) for other in self.groups if other.key is not None)
        return f"(grouping IS NULL OR grouping NOT IN ({keys}))" if keys else "TRUE"

    @contextmanager
    def _evaluated(self, group: Group, row_table: str | None, keys: Mapping[str, Key]) -> Iterator[str]:
        """SQL for the group's individuals (or their rows in one table) with every node computed, while it is needed.

        `keys` are columns beside these, of the words as they are where some are absent.
        """
        nodes = [node for node in group.nodes if node.row_table in (None, row_table)]
        layers = [f"({self._given(group, row_table, keys)})"]
        for layer in layers_of(nodes):
            layers.append(self._next(layers[-1], layer, len(layers)))
        own = [node for node in nodes if node.row_table == row_table]
        skipped = (self.flags[node.name] for node in nodes if node.skip)
        beside = (*self.members, *skipped, *self._conditioned(group, row_table))
        out = ["id", *chain(*map(self._outputs, own)), *map(self.columns.__getitem__, beside)]
        out += [*(key.column for key in keys.values()), *self._completed(group, nodes)]
        try:
            yield f"SELECT {', '.join(dict.fromkeys(out))} FROM {layers[-1]}"
        finally:
            for place in range(len(layers)):
                self.room.connection.unregister(f"layer{place}")

    def _given(self, group: Group, row_table: str | None, keys: Mapping[str, Key]) -> str:
        """SQL for what nodes are computed from: cells, flags and what belongs to nobody."""
        cells = [part for node in self._cells(group) for part in self._final(node, self.columns[node.name])]
        cells += [f"{self.columns[name]} AS {key.column}" for name, key in keys.items()]
        flags = [f"coalesce({self.columns[key]}, FALSE) AS {self.columns[key]}" for key in self.members]
        fixed = [f"{literal(value)} AS {self.columns[name]}" for name, value in self.shared.items()]
        query = f"SELECT {', '.join(['id', *cells, *flags, *fixed])} FROM people WHERE {self._of_group(group)}"
        if row_table is None:
            return query
        return f"SELECT * FROM ({query}) JOIN ({self._row_cells(group, row_table)}) USING (id)"

    def _next(self, before: str, nodes: Sequence[Node], place: int) -> str:
        """What stands after a layer of computed nodes: a query, or a table where the engine lacks a function."""
        parts = {column: part for node in nodes for column, part in self._computed(node)}
        written = [f"{literal(n.missing)} AS {self.columns[n.name]}" for n in nodes if not self._computed(n)]
        written += [f"{part.to_sql(self.columns)} AS {column}" for column, part in parts.items() if part.in_sql]
        query = f"SELECT {', '.join(['*', *written])} FROM {before}"
        others = {column: part for column, part in parts.items() if not part.in_sql}
        if not others:
            return f"({query})"
        self.room.connection.register(f"layer{place}", self._appended(self.room.arrow(query), others))
        return f"layer{place}"

    def _appended(self, table: pa.Table, parts: Mapping[str, Expression]) -> pa.Table:
        for column, part in parts.items():
            values = {name: table[self.columns[name]].to_numpy() for name in part.references()}
            found = np.broadcast_to(np.asarray(part.evaluate(values), dtype=np.float64), (table.num_rows,))
            table = table.append_column(column, pa.array(found))
        return table

    def _final(self, node: Node, cell: str) -> list[str]:
        """SQL for a placed cell's value, and for whether there is one where that matters."""
        there = [f"({cell}) IS NOT NULL AS {self.columns[self.flags[node.name]]}"] if node.skip else []
        value = cell if node.name in self._known else final_value(node, cell)
        return [f"{value} AS {self.columns[node.name]}", *there]

    def _completed(self, group: Group, nodes: Sequence[Node]) -> list[str]:
        """SQL for whether all cells behind a variable of the group are there."""
        own, found = {node.name for node in nodes}, []
        for name, key in self.complete.items():
            if name in own:
                there = [self.columns[self.flags[cell]] for cell in sorted(group.skipped(name))]
                found.append(f"({' AND '.join(there) or 'TRUE'}) AS {self.columns[key]}")
        return found

    def _conditioned(self, group: Group, row_table: str | None) -> list[str]:
        """What aggregates over rows need of the person, and what those over random variables are computed from."""
        chosen = self._asked(group, row_table)
        expected = [part for a in chosen if a.question.expected for part in self.entries(a, group)]
        needed = {name for part in expected for name in part.references()}
        if row_table is not None:
            needed.update(*(aggregate.parents for aggregate in chosen))
        numbers = {node.name for node in group.nodes if node.has_value}
        return sorted(needed & (numbers | self.shared.keys()))

    def entries(self, aggregate: AggregateNode, group: Group) -> tuple[Expression, ...]:
        """What an individual of the group is expected to add to each entry of an aggregate over random variables."""
        key = aggregate.name, id(group)
        if key not in self._entries:
            self._entries[key] = expected_entries(aggregate, group.inference(self.network.shared))
        return self._entries[key]

    def _cells(self, group: Group, row_table: str | None = None) -> list[Node]:
        return [node for node in group.nodes if node.source is not None and node.row_table in (None, row_table)]

    def _row_cells(self, group: Group, row_table: str) -> str:
        layout = layout_of(self.spec, row_table)
        identity = layout.identity(identity_of(self.dataset))
        assert identity is not None
        kinds = self.room.types(row_table, layout.columns)
        chosen = []
        for node in group.nodes:
            if node.row_table == row_table and node.source is not None:
                name, kind = node.source.name, kinds[node.source.name]
                chosen += self._final(node, placed(node, name, kind, self._absent(node, kind)))
        # Rows of everybody are chosen by the same columns, whatever their structure.
        every = [node for node in self.nodes.values() if node.row_table == row_table and node.source is not None]
        only = chosen_by(self.network, row_table, every)
        return (
            f"SELECT {sql_name(identity.name)}::VARCHAR AS id, {', '.join(chosen)} "
            f"FROM {kept_rows(self.room, layout, identity.name, self.row_key, only=only)}"
        )

    def _computed(self, node: Node) -> list[tuple[str, Expression]]:
        """The columns of a computed node."""
        parts = [
            (self.columns[f"{node.name}={level}"], chance)
            for level, chance in zip(node.levels, node.probabilities, strict=False)
        ]
        if node.expression is not None:
            parts.append((self.columns[node.name], node.expression))
        return parts

    def _outputs(self, node: Node) -> list[str]:
        probable = [self.columns[f"{node.name}={level}"] for level in node.levels] if node.probabilities else []
        alone = [self.columns[node.name]] if node.has_value else []
        return probable + alone

    def _asked(self, group: Group, row_table: str | None) -> list[AggregateNode]:
        present = {node.name for node in group.nodes}
        # An aggregate over a variable that this structure does not have counts none of its individuals.
        return [n for n in self.aggregates if n.row_table == row_table and set(n.parents) <= present]

    def _aggregate(
        self,
        group: Group,
        table: pa.Table | None,
        row_table: str | None,
        parts: dict[str, list[Sums]],
        keys: Mapping[str, Key],
    ) -> None:
        chosen = self._asked(group, row_table)
        certain = [node for node in chosen if not node.question.expected]
        cells = [node.name for node in self._cells(group, row_table)]
        facts = TableFacts({name: self._known[name] for name in cells if name in self._known}, keys)
        for node, value in zip(certain, totals(self.room, _EVALUATED, certain, self.columns, facts), strict=True):
            parts.setdefault(node.name, []).append(value)
        self._listed |= self._all_listed(facts.filled, row_table)
        for node in chosen:
            if node.question.expected and table is not None:
                value = expected_total(node, self.entries(node, group), table, self.columns)
                parts.setdefault(node.name, []).append(value)

    def _all_listed(self, filled: set[str], row_table: str | None) -> set[str]:
        """Of which nodes every cell is a listed word, where sums over everybody met none without."""
        own = filled & self._every if row_table is None else set()
        return {name for name in own if not _collects(self.nodes[name])}

    def _renamed(self, table: pa.Table) -> pa.Table:
        back = {column: name for name, column in self.columns.items()}
        hidden = {*self.members, *self.flags.values(), *self.complete.values()}
        kept = [c for c in table.column_names if c == "id" or back[c] not in hidden]
        return table.select(kept).rename_columns([ID if c == "id" else back[c] for c in kept])


def _is_ordered(layout: TableLayout, share: RowShare) -> bool:
    """Whether rows have an order: every row takes part in a mean, in any order; of categories there is no mean."""
    return not layout.each_person or any(isinstance(node.domain, Categories | AnyText) for node in share.nodes)


def _collects(node: Node) -> bool:
    """Whether words that are not listed become one that is."""
    return isinstance(node.domain, Categories) and node.domain.unknown is not None


def _row_tables(group: Group) -> list[str]:
    return sorted({node.row_table for node in group.nodes if node.row_table})


def _stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """The groups' tables one under the other, in the order of the identifiers; missing nodes are null."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive").sort_by(ID)
