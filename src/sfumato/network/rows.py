"""Several rows of one person: which are kept, and in which order they count.

In:   a table's Layout, the column that says whose a row is, a key.
Out:  SQL for the kept rows with their `rank` within the person.
Not here: what one cell is (network/cells.py), what a number is then about (network/meaning.py), where the key is
          stored (run/row_key.py).

A person's rows are ordered by HMAC-SHA256(key, person ‖ content ‖ copy number), every field with its length in front;
no word of a study enters. `content` is the text of all plain columns in the order of their names; equal rows of one
person are numbered, so a position in a file never counts. The order looks at this person's rows alone: replacing a
person re-selects nobody else's rows, and at most N rows of hers are used whatever the key is. Privacy therefore does
not rest on the key. That the kept rows are a fair sample does: under a random key they are a uniform draw without
replacement.

Only people with more rows than are kept are hashed (two SHA-256 a row, by the engine); the others cost a count. The
engine holds the text of all of them at once, so where they have many rows these are dealt out by whose they are
(network/dealing.py) and done share by share: time grows with the rows, and what is held at once does not.
Proof: docs/proofs/rows_per_person.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sfumato.lang.spec import ROW
from sfumato.network.dealing import dealt, travels
from sfumato.network.expression import sql_name
from sfumato.network.tables import NUMBERS, TEXT, TableLayout, TableRoom, number_text, plain_type, text_as_number

__all__ = ["PUBLIC_KEY", "RANK", "kept_rows"]

#: The key of an evaluation without a ledger. It is no secret and need not be one.
PUBLIC_KEY = hashlib.sha256(b"sfumato rows per person").digest()

#: The column that orders the kept rows of one person: 1, 2, …
RANK = "$rank"

_BLOCK = 64  # of SHA-256, in bytes
#: About so many rows are put in order at once: of ten columns in less than a gigabyte.
_AT_ONCE = 1_000_000


def kept_rows(
    room: TableRoom,
    layout: TableLayout,
    person: str,
    key: bytes,
    ordered: bool = True,
    only: Collection[str] | None = None,
) -> str:
    """SQL for the kept rows with their rank; rows of nobody are left out, and so are columns that are not in `only`.

    Where rows share a cell, the one of lowest rank counts; without `ordered` nobody asks for a rank. Which rows are
    kept does not hang on the columns that are left out (network/parts.py).
    """
    table = room.names[layout.table]
    if layout.public:
        return f"(SELECT *, 1 AS {sql_name(RANK)} FROM {table})"
    limit = layout.row_limit
    if not ordered or person == ROW:  # of a row without an identifier there is one
        return f"(SELECT *, 1 AS {sql_name(RANK)} FROM {table} WHERE {sql_name(person)} IS NOT NULL)"
    # Rows of one person in a table of several identities may share a cell, so they are put in order as well.
    alone = limit.maximum if limit is not None and len(layout.identities) == 1 else 1
    names = _choosing(room, layout, only)
    kept = f"{table}_kept{_called(only)}"
    if not room.has(kept):
        _Keeping(room, layout, person, key, alone, names, _unread(room, layout, only)).fill(kept)
    who, columns = _text(person), ", ".join(map(sql_name, names))
    return (
        f"(SELECT {columns}, 1 AS {sql_name(RANK)} FROM {table} WHERE {who} IS NOT NULL AND {who} NOT IN "
        f"(SELECT {who} FROM {kept}) UNION ALL SELECT {columns}, {sql_name(RANK)} FROM {kept})"
    )


def _choosing(room: TableRoom, layout: TableLayout, only: Collection[str] | None) -> list[str]:
    every = room.plain_columns(layout.table)
    return every if only is None else [name for name in every if name in only]


def _unread(room: TableRoom, layout: TableLayout, only: Collection[str] | None) -> list[str]:
    """Columns of several values, which choose as absent cells do: one whose cells all are absent has no type."""
    return [name for name in room.plain_columns(layout.table, nested=True) if only is None or name in only]


def _called(only: Collection[str] | None) -> str:
    """What rows that these columns choose are called, beside those that other columns choose."""
    return "" if only is None else hashlib.sha256(repr(sorted(only)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Keeping:
    """The rows of people with more than `alone` of them: ranked, and cut at the limit."""

    room: TableRoom
    layout: TableLayout
    person: str
    key: bytes
    alone: int
    names: Sequence[str]
    unread: Sequence[str]

    def fill(self, kept: str) -> None:
        """Into a new table of ours; no more is held at once than one share needs."""
        into = f"CREATE TEMP TABLE {kept} AS"
        for source in self._sources(f"{kept}_crowd"):
            self.room.run(f"{into} {self._ordered(source)}")
            into = f"INSERT INTO {kept}"

    def _sources(self, crowd: str) -> Iterator[str]:
        """The table itself, or the rows of people who have many, in shares."""
        room, table, who = self.room, self.room.names[self.layout.table], f"hash({_text(self.person)})"
        ((rows,),) = room.run(f"SELECT count(*) FROM {table}")
        if rows <= _AT_ONCE:
            yield table
            return
        # Who shares a number with somebody else is counted by name once more, share by share.
        room.run(
            f"CREATE TEMP TABLE {crowd} AS SELECT {who} AS number, count(*) AS rows FROM {table} WHERE "
            f"{sql_name(self.person)} IS NOT NULL GROUP BY 1 HAVING count(*) > {self.alone}"
        )
        ((many,),) = room.run(f"SELECT coalesce(sum(rows), 0) FROM {crowd}")
        columns = ", ".join(map(sql_name, self._read))
        theirs = f"SELECT {columns} FROM {table} WHERE {who} IN (SELECT number FROM {crowd})"
        yield from self._shares(theirs, who, -(-int(many) // _AT_ONCE))
        room.run(f"DROP TABLE {crowd}")

    def _shares(self, theirs: str, who: str, count: int) -> Iterator[str]:
        """A table of ours for each share of the people: everybody in one of them, with all rows."""
        if count <= 1:
            yield f"({theirs})"
        elif travels(self.room, theirs):
            for share in dealt(self.room, theirs, f"{who} % {count}", count):
                with self.room.held("share", share):
                    yield "share"
        else:
            yield from (f"({theirs} AND {who} % {count} = {place})" for place in range(count))

    @property
    def _read(self) -> list[str]:
        """The columns that say who comes first: those that choose, and the one that `first` or `last` asks for."""
        limit = self.layout.row_limit
        first = [] if limit is None or limit.column is None else [limit.column]
        return list(dict.fromkeys([*self.names, self.person, *first]))

    def _ordered(self, source: str) -> str:
        """SQL for the rows of `source` that are kept, by names and rank."""
        who, rank, limit = _text(self.person), sql_name(RANK), self.layout.row_limit
        names = sorted(self.names)
        alike = dict(zip(names, _alike(self.room, self.layout.table, names), strict=True))
        alike |= dict.fromkeys(self.unread, "NULL::VARCHAR")
        # Of decimals 0 and -0 are equal, and NaN is absent, as in files of which some hold whole numbers.
        decimals = self.room.decimals(self.layout.table)
        fields = {name: alike[name] if name in decimals or name in self.unread else _text(name) for name in alike}
        counted = f"SELECT {who} FROM {source} WHERE {who} IS NOT NULL"
        crowded = f"{counted} GROUP BY 1 HAVING count(*) > {self.alone}"
        # Equal rows are met once, with their number: cheaper than numbering them one by one.
        cells = ", ".join(f"any_value({sql_name(name)}) AS {sql_name(name)}" for name in self.names)
        # A file may have columns "copy" or "code".
        message, copies, copy, shown, before = map(sql_name, ("$message", "$copies", "$copy", "$shown", "$before"))
        content, hashed_content = (
            " || ".join(map(_piece, [who, *(one[name] for name in sorted(one))])) for one in (fields, alike)
        )
        chosen = f"{content} AS {message}, any_value({hashed_content}) AS {shown}, count(*) AS {copies}, {cells}"
        rows = f"SELECT {chosen} FROM {source} WHERE {who} IN ({crowded}) GROUP BY 1"
        # What is written in several ways, 7 in one file and 7.0 in another, is numbered through.
        above = f"PARTITION BY {shown} ORDER BY {message} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        through = f"SELECT *, coalesce(sum({copies}) OVER ({above}), 0)::BIGINT AS {before} FROM ({rows})"
        each = f"SELECT *, unnest(range({before} + 1, {before} + {copies} + 1)) AS {copy} FROM ({through})"
        numbered = f"{shown} || {_piece(f'{copy}::VARCHAR')}"
        hashed = f"SELECT * EXCLUDE ({shown}), {_hmac(self.key, numbered)} AS {sql_name('$code')} FROM ({each})"
        order = ", ".join([*_order(self.room, self.layout), sql_name("$code"), message])
        ranked = f"SELECT *, row_number() OVER (PARTITION BY {who} ORDER BY {order}) AS {rank} FROM ({hashed})"
        most = f" WHERE {rank} <= {limit.maximum}" if limit is not None else ""
        return f"SELECT {', '.join(map(sql_name, self.names))}, {rank} FROM ({ranked}){most}"


def _text(column: str) -> str:
    return f"{sql_name(column)}::VARCHAR"


def _alike(room: TableRoom, table: str, names: list[str]) -> list[str]:
    """Each column as it is hashed: a number by its value, a moment to the microsecond, whatever type the column has.

    In pandas, and in files it writes, one person's absent cell or word changes the type of a column, and so the text of
    everybody's cells: 7 becomes 7.0. It must not change which of their rows are kept. Nor must the place where they
    lie: a truth value is true in Parquet, True in a CSV file of pandas and 1 in SQLite. What is no number is absent.
    """
    found = []
    for name, kind in room.types(table, names).items():
        text, plain = _text(name), plain_type(kind)
        if plain in NUMBERS:
            found.append(_number(f"{sql_name(name)}::DOUBLE"))
        elif plain in ("VARCHAR", TEXT):
            number = text_as_number(text)
            found.append(f"CASE WHEN {number} IS NULL THEN {_moment(text)} ELSE {_number(number)} END")
        else:
            found.append(text)
    return found


def _moment(text: str) -> str:
    """SQL for a text, a moment or a time of day as the engine writes it: 08:30:00.5 of 08:30:00.500000."""
    clock = f"CASE WHEN {text} LIKE '__:__%' THEN TRY_CAST({text} AS TIME)::VARCHAR END"
    return f"coalesce(TRY_CAST({text} AS TIMESTAMP)::VARCHAR, {clock}, {text})"


def _number(number: str) -> str:
    return f"nullif({number_text(number)}, 'nan')"


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


def _order(room: TableRoom, layout: TableLayout) -> list[str]:
    """The order first(column) or last(column) asks for: numbers as numbers, other text as text, absent cells last."""
    limit = layout.row_limit
    if limit is None or limit.column is None:
        return []
    (kind,) = room.types(layout.table, [limit.column]).values()
    cell, way = sql_name(limit.column), "ASC" if limit.keep == "first" else "DESC"
    if plain_type(kind) not in ("VARCHAR", "ENUM", TEXT):
        shown = f"nullif({cell}, 'nan')" if plain_type(kind) in ("FLOAT", "DOUBLE") else cell
        return [f"{shown} {way} NULLS LAST"]
    text = f"{cell}::VARCHAR"
    number = f"nullif(TRY_CAST({text} AS DOUBLE), 'nan')"
    # Numbers are written in several ways; of larger ones their digits tell which comes first.
    other = f"CASE WHEN {number} IS NULL OR abs({number}) >= {2**53} THEN {_moment(text)} END"
    return [f"{number} {way} NULLS LAST", f"{other} {way} NULLS LAST"]
