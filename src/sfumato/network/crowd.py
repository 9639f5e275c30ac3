"""Who has several rows in a table: those alone have to be grouped.

In:   a table's layout, the column that says whose a row is.
Out:  Crowd: the name of a table of ours with the text of their identifiers; whether some rows are nobody's.
Not here: which of their rows count (network/rows.py).

Most tables hold a row for each person, and grouping millions of people by the text of their identifier costs more than
all questions together. So every identifier is looked at once, as a number of eight bytes (itself, or a hash of its
text): numbers that occur once belong to people with one row. Numbers that occur again are looked up by the text itself,
so a hash that two people share costs time and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.lang.spec import ROW
from sfumato.network.expression import sql_name
from sfumato.network.tables import TableLayout, TableRoom, plain_type

__all__ = ["Crowd", "crowd_of"]

_WHOLE = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"))
#: Identifiers that fill their range are ticked off in a list of so many bytes a person; others are sorted.
_SPREAD = 8
#: Where more than this share of the numbers occurs again, everybody is grouped.
_CROWDED = 0.1


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who has several rows: `table` of ours names them; None if there is nobody, "" if there are many.

    `nobodys` says whether some rows have no identifier: they are nobody's and are left out.
    """

    table: str | None
    nobodys: bool


def crowd_of(room: TableRoom, layout: TableLayout, person: str) -> Crowd:
    """Who has several rows in a table, and whether some rows are nobody's."""
    alone = person == ROW or person in room.alone(layout.table)  # of a row without an identifier there is one
    found = Crowd(None, False) if alone else _looked_up(room, layout, person)
    if not found.nobodys:
        room.complete.add((layout.table, person))
    return found


def _looked_up(room: TableRoom, layout: TableLayout, person: str) -> Crowd:
    """The same by the identifiers themselves."""
    # Of a table that names people by several columns each has a crowd of its own.
    name = f"{room.names[layout.table]}_crowd{layout.columns.index(person)}"
    if room.has(name):
        return Crowd(name, True)
    (kind,) = room.types(layout.table, [person]).values()
    who, table = sql_name(person), room.names[layout.table]
    number = f"{who}::BIGINT" if plain_type(kind) in _WHOLE else f"(hash({who}::VARCHAR) >> 1)::BIGINT"
    if plain_type(kind) in _WHOLE and _all_rise(room, f"SELECT {number} AS number FROM {table}"):
        return Crowd(None, False)
    ((nobodys,),) = room.run(f"SELECT count(*) > count({who}) FROM {table}")
    again, rows = _again(room, f"SELECT {number} AS number FROM {table} WHERE {who} IS NOT NULL")
    if not again.size:
        return Crowd(None, nobodys)
    if again.size > _CROWDED * rows:
        return Crowd("", nobodys)
    with room.held("again", pa.table({"number": again})):
        room.run(
            f"CREATE TEMP TABLE {name} AS SELECT {who}::VARCHAR AS who FROM {table} WHERE {who} IS NOT NULL AND "
            f"{number} IN (SELECT number FROM again) GROUP BY 1 HAVING count(*) > 1"
        )
    return Crowd(name, nobodys)


def _all_rise(room: TableRoom, query: str) -> bool:
    """Whether every row has a number and each is above the one before, as where rows are numbered: all differ."""
    last = None
    for batch in room.batches(query):
        column = batch.column(0)
        if column.null_count:
            return False
        numbers = column.to_numpy()
        if not numbers.size:
            continue
        if (last is not None and numbers[0] <= last) or not (numbers[1:] > numbers[:-1]).all():
            return False
        last = numbers[-1]
    return True


def _again(room: TableRoom, query: str) -> tuple[NDArray[np.int64], int]:
    """The numbers that occur more than once, and how many rows there are."""
    ((rows, low, high),) = room.run(f"SELECT count(*), min(number), max(number) FROM ({query})")
    if rows > 1 and high - low < _SPREAD * rows and _all_differ(room, query, low, high):
        return np.zeros(0, dtype=np.int64), rows
    numbers = np.concatenate([np.zeros(0, dtype=np.int64), *(b.column(0).to_numpy() for b in room.batches(query))])
    numbers.sort()
    return np.unique(numbers[1:][numbers[1:] == numbers[:-1]]), numbers.size


def _all_differ(room: TableRoom, query: str, low: int, high: int) -> bool:
    """Whether no number occurs twice, by ticking them off; not so if one is outside of what a file claims."""
    seen, rows = np.zeros(high - low + 1, dtype=bool), 0
    for batch in room.batches(query):
        places = batch.column(0).to_numpy() - low
        if places.size and (places.min() < 0 or places.max() > high - low):
            return False
        seen[places] = True
        rows += places.size
    return int(np.count_nonzero(seen)) == rows
