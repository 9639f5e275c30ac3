"""Several rows of one person: which are kept, in which order they count, and what a number then is about.

In:   a table's Layout, the column that says whose a row is, a key.
Out:  SQL for the kept rows with their `rank` within the person; the sentence that says what a mean is the mean of.
Not here: what one cell is (network/cells.py), where the key is stored (run/row_key.py).

A person's rows are ordered by HMAC-SHA256(key, person ‖ content ‖ copy number), every field with its length in front;
no word of a study enters. `content` is the text of all plain columns in the order of their names; equal rows of one
person are numbered, so a position in a file never counts. The order looks at this person's rows alone: replacing a
person re-selects nobody else's rows, and at most N rows of hers are used whatever the key is. Privacy therefore does
not rest on the key. That the kept rows are a fair sample does: under a random key they are a uniform draw without
replacement.

Only people with more rows than are kept are hashed (two SHA-256 a row, by the engine); the others cost a count.
Proof: docs/proofs/rows_per_person.md
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sfumato.network.expression import sql_name
from sfumato.network.tables import TEXT, Layout, TableRoom, plain_type

if TYPE_CHECKING:
    from sfumato.lang.spec import Missing
    from sfumato.network.aggregate import AggregateNode
    from sfumato.network.expression import Level
    from sfumato.network.network import Network, Node

__all__ = ["PUBLIC_KEY", "RANK", "absent_of", "kept_rows", "mean_of", "rule_of"]

#: The key of an evaluation without a ledger. It is no secret and need not be one.
PUBLIC_KEY = hashlib.sha256(b"sfumato rows per person").digest()

#: The column that orders the kept rows of one person: 1, 2, …
RANK = "$rank"

_BLOCK = 64  # of SHA-256, in bytes


def kept_rows(room: TableRoom, layout: Layout, person: str, key: bytes, ordered: bool = True) -> str:
    """SQL for the kept rows with their rank; rows of nobody are left out.

    Where rows share a cell, the one of lowest rank counts; without `ordered` nobody asks for a rank.
    """
    table = room.names[layout.table]
    if layout.public:
        return f"(SELECT *, 1 AS {sql_name(RANK)} FROM {table})"
    limit = layout.row_limit
    if not ordered:
        return f"(SELECT *, 1 AS {sql_name(RANK)} FROM {table} WHERE {sql_name(person)} IS NOT NULL)"
    # Rows of one person in a table of several identities may share a cell, so they are put in order as well.
    alone = limit.maximum if limit is not None and len(layout.identities) == 1 else 1
    kept = f"{table}_kept"
    if not room.has(kept):
        room.run(f"CREATE TEMP TABLE {kept} AS {_ordered(room, layout, person, key, alone)}")
    who, columns = _text(person), ", ".join(sql_name(name) for name in room.plain_columns(layout.table))
    return (
        f"(SELECT {columns}, 1 AS {sql_name(RANK)} FROM {table} WHERE {who} IS NOT NULL AND {who} NOT IN "
        f"(SELECT {who} FROM {kept}) UNION ALL SELECT {columns}, {sql_name(RANK)} FROM {kept})"
    )


def _ordered(room: TableRoom, layout: Layout, person: str, key: bytes, alone: int) -> str:
    """SQL for the rows of people with more than `alone` rows, ranked, cut at the limit."""
    table, who, rank, limit = room.names[layout.table], _text(person), sql_name(RANK), layout.row_limit
    names = room.plain_columns(layout.table)
    fields = [who, *(_text(name) for name in sorted(names))]
    crowded = f"SELECT {who} FROM {table} WHERE {who} IS NOT NULL GROUP BY 1 HAVING count(*) > {alone}"
    # Equal rows are met once, with their number: cheaper than numbering them one by one.
    cells = ", ".join(f"any_value({sql_name(name)}) AS {sql_name(name)}" for name in names)
    message, copies, copy = (sql_name(name) for name in ("$message", "$copies", "$copy"))  # a file may have "copy"
    content = " || ".join(map(_piece, fields))
    chosen = f"{content} AS {message}, count(*) AS {copies}, {cells}"
    rows = f"SELECT {chosen} FROM {table} WHERE {who} IN ({crowded}) GROUP BY 1"
    each = f"SELECT *, unnest(range(1, {copies} + 1)) AS {copy} FROM ({rows})"
    numbered = f"{message} || {_piece(f'{copy}::VARCHAR')}"
    hashed = f"SELECT * EXCLUDE ({message}), {_hmac(key, numbered)} AS {sql_name('$code')} FROM ({each})"
    order = ", ".join([*_order(room, layout), sql_name("$code")])
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {who} ORDER BY {order}) AS {rank} FROM ({hashed})"
    return f"SELECT * FROM ({ranked})" + (f" WHERE {rank} <= {limit.maximum}" if limit is not None else "")


def _text(column: str) -> str:
    return f"{sql_name(column)}::VARCHAR"


def _piece(text: str) -> str:
    """A field with its length in front; an absent one is a sign no field begins with."""
    return f"coalesce(strlen({text})::VARCHAR || ':' || {text}, '-')"


def _hmac(key: bytes, message: str) -> str:
    """SQL for HMAC-SHA256 (RFC 2104) of a text, in hexadecimal digits."""
    block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inner, outer = (_blob(bytes(byte ^ mask for byte in block)) for mask in (0x36, 0x5C))
    return f"sha256({outer} || unhex(sha256({inner} || encode({message}))))"


def _blob(content: bytes) -> str:
    return f"unhex('{content.hex()}')"


def _order(room: TableRoom, layout: Layout) -> list[str]:
    """The order first(column) or last(column) asks for: numbers as numbers, other text as text, absent cells last."""
    limit = layout.row_limit
    if limit is None or limit.column is None:
        return []
    (kind,) = room.types(layout.table, [limit.column]).values()
    cell, way = sql_name(limit.column), "ASC" if limit.keep == "first" else "DESC"
    if plain_type(kind) not in ("VARCHAR", "ENUM", TEXT):
        shown = f"nullif({cell}, 'nan')" if plain_type(kind) in ("FLOAT", "DOUBLE") else cell
        return [f"{shown} {way} NULLS LAST"]
    number = f"nullif(TRY_CAST({cell}::VARCHAR AS DOUBLE), 'nan')"
    return [f"{number} {way} NULLS LAST", f"{cell}::VARCHAR {way} NULLS LAST"]


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rule_of(layout: Layout) -> str:
    """What is done with several rows of one person, as a clause without an end.

    >>> from sfumato.lang.spec import RowLimit
    >>> rule_of(Layout("visits", False, (), (), (), RowLimit("visits", 3), False))
    'of each person at most 3 rows of visits count, a fair sample of hers'
    """
    table, limit = layout.table, layout.row_limit
    if layout.each_person:
        return f"each person counts once, with the mean of all her rows of {table}"
    if limit is None:
        return f"each person counts once, with one row of {table} drawn fairly from hers"
    number = "one row" if limit.maximum == 1 else f"at most {limit.maximum} rows"
    verb = "counts" if limit.maximum == 1 else "count"
    which = {
        "sample": "drawn fairly from hers" if limit.maximum == 1 else "a fair sample of hers",
        "first": f"the first by {limit.column}",
        "last": f"the last by {limit.column}",
    }[limit.keep]
    return f"of each person {number} of {table} {verb}, {which}"


#: No study declares a limit that all rows keep, so nothing can be said about those that are left out.
_NO_INTERVAL = "No interval can be given for all rows together: one person's part in them has no limit."


def mean_of(network: Network, node: AggregateNode) -> str | None:
    """What a published number is about where people may have several rows; None where no private table feeds it.

    A number per person, one of capped rows and one of all rows differ when people with many rows differ from others;
    only the first two are published, because one person's influence on the third has no bound.
    """
    from sfumato.network.tables import layout_of  # not at the top: the words need no engine

    tables = {
        variant.source.table
        for name in _behind(network, node.parents)
        for variant in network.variants(name)
        if variant.source is not None and not variant.public
    }
    tables |= {member.table for member in node.condition.members()} - network.spec.public_tables
    rules = [rule_of(layout_of(network.spec, table)) for table in sorted(tables)]
    if not rules:
        return None
    kind = "rows, no more than the limit of each person" if node.rows > 1 else "persons, not rows"
    return f"This number and its interval are about {kind}: {'; '.join(rules)}. {_NO_INTERVAL}"


def absent_of(network: Network, node: AggregateNode) -> str | None:
    """What stands for absent or unlisted cells behind an aggregate, in one sentence."""
    words = []
    for name in sorted(_behind(network, node.parents)):
        for variant in network.variants(name)[:1]:
            if variant.source is not None and not variant.public:
                said = network.spec.missing_of(variant.atom)
                words.append(f"{name}: {_absence(variant, said)}")
    for member in sorted(node.condition.members(), key=str):
        if member.table not in network.spec.public_tables:
            words += [f"{column} of {member.table}: {_unsaid(listed)}" for column, listed in member.among]
            words += [f"{column} of {member.table}: {_unsaid(None)}" for column, _ in member.matches]
    return f"Cells that are absent or cannot be read: {'; '.join(dict.fromkeys(words))}." if words else None


def _unsaid(listed: tuple[Level, ...] | None) -> str:
    return f"a row without {'one' if listed is None else 'a listed one'} says nothing about its person"


def _absence(node: Node, said: Missing | None) -> str:
    if node.skip:
        return "the person is left out"
    if said is None or said.rule == "value":
        return f"counted as {node.missing}"
    return f"there are none by the author's word (one would count as {node.missing})"


def _behind(network: Network, names: tuple[str, ...]) -> set[str]:
    met: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in met:
            met.add(name)
            waiting += [parent for variant in network.variants(name) for parent in variant.parents]
    return met
