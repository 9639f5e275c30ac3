"""The rows of a table as one number that no format, order or name changes: what a copy has in common with its original.

In:   a table as a run reads it (network/tables.py): CSV, Parquet, a database, a frame.
Out:  a text that two tables share if they hold the same bag of rows, whatever their columns are called.
Not here: which account has it (run/accounts.py); the ledger keeps it as a keyed hash (ledger/records.py).

A cell is what its text says: a number where it is one (1, 1.0, "1"; a fraction to seven digits) or a truth value (true,
t, yes, y are 1), otherwise its letters without case and without blanks around them, however Unicode composes them; a
moment at midnight is its day, and one without a zone is universal time wherever it is read; an absent cell is nothing,
and so is NA, null or none, as programs write one. Columns that number the rows from 0 or 1 are left out: copies are
written with and without them. A row is the sum of its cells' hashes, the table the sum of its rows' hashes, modulo 2^64
and in two lanes. So rows and columns may stand in any order, columns may be renamed, and one pass in batches suffices.
Private, and not made to withstand search: it stays in memory.
Who changes a cell or a row, or drops a column, makes another table; no fingerprint sees that in general, so a first
grant stays a person's decision. So does who writes the cells otherwise: a file in another encoding, whose letters are
read as others, or days as 03.02.2024, which may be of March as well as of February.

Of more than 130,000 rows every column is looked at by itself, by the engine: how many numbers it holds and what they
add up to (eight digits, which no order of adding changes; fractions as 32 bits hold them), and each of its texts once,
with how often it occurs. That is one pass at the engine's own pace. Tables that differ in single cells then share it,
which costs nobody anything: both pay from one account.

Ledgers keep what they were told. What older versions took for the same data is told beside (`fingerprints`), so that
data with an account keeps it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.core.bag_of_rows import absent, bag_text, lanes_of, numbers_hashed, words_hashed
from sfumato.network.cells import text_as_truth
from sfumato.network.expression import sql_name
from sfumato.network.tables import NUMBERS, TableRoom, plain_type, text_as_number

__all__ = ["fingerprint", "fingerprints"]

_NAME = "given"
_MIDNIGHT = " 00:00:00"
#: How a text begins that may be a moment.
_MOMENT = "____-__-__%:__%"
_DAY = 86_400_000_000
#: How an absent cell is written where it is not left empty; without case.
_ABSENT = ("na", "n/a", "nan", "nat", "null", "none", "<na>")
#: Rows above which columns are looked at instead of cells.
_MANY = 1 << 17


class _TextReading(NamedTuple):
    """How cells of text are understood: SQL for the number that one is, and for its letters where it is none."""

    number: Callable[[str], str]
    letters: Callable[[str], str]


#: A column of truth values is written t and f by PostgreSQL, true and false by others; one text has several Unicodes.
_NOW = _TextReading(
    lambda text: f"coalesce(TRY_CAST({text} AS DOUBLE), {text_as_truth(text)}::DOUBLE)",
    lambda text: f"nfc_normalize(lower(nfc_normalize({text})))",  # İ is one letter below, I with a dot is two
)
#: As ledgers of earlier versions hold it: only the words true and false were numbers.
_BEFORE = _TextReading(text_as_number, lambda text: f"lower({text})")


def fingerprint(table: Any) -> str:
    """The same for two tables with the same rows, in whatever format and order.

    >>> one, other = {"id": [7, 9], "sex": ["f", "m"]}, {"gender": ["M", "F"], "who": [9.0, 7.0]}
    >>> fingerprint(one) == fingerprint(other), fingerprint(one) == fingerprint({"id": [7, 9], "sex": ["m", "f"]})
    (True, False)
    >>> fingerprint(one) == fingerprint({**one, "Unnamed: 0": [0, 1]})
    True
    """
    return fingerprints(table)[0]


def fingerprints(table: Any) -> tuple[str, ...]:
    """The fingerprint of a table, and that of an older version where it is another."""
    with TableRoom({_NAME: table}, [_NAME]) as room:
        kinds = room.types(_NAME, room.plain_columns(_NAME))
        found = _by_all_readings(room, kinds)
        if _other_zone(room, [name for name, kind in kinds.items() if plain_type(kind) not in NUMBERS]):
            found += _by_all_readings(room, kinds)
        return tuple(dict.fromkeys(found))


def _by_all_readings(room: TableRoom, kinds: Mapping[str, str]) -> tuple[str, ...]:
    number = room.run(f"SELECT count(*) FROM {room.names[_NAME]}")[0][0]
    numbers = all(plain_type(kind) in NUMBERS for kind in kinds.values())
    readings = (_NOW,) if numbers else (_NOW, _BEFORE)
    if number > _MANY:
        return _by_columns(room, kinds, readings)
    return tuple(_by_rows(room, kinds, number, reading) for reading in readings)


def _other_zone(room: TableRoom, columns: Sequence[str]) -> bool:
    """Whether earlier versions took moments of this table for others: where they do not say so, for this machine's own.

    From then on the room does so, too.
    """
    moments = " OR ".join(f"{sql_name(name)}::VARCHAR LIKE '%{_MOMENT}'" for name in columns)
    if not moments or not room.run("SELECT 1 FROM duckdb_settings() WHERE name = 'TimeZone'"):
        return False
    if not room.run(f"SELECT 1 FROM {room.names[_NAME]} WHERE {moments} LIMIT 1"):
        return False
    room.run("RESET TimeZone")
    return room.run("SELECT current_setting('TimeZone')")[0][0] not in ("UTC", "Etc/UTC")


def _by_rows(room: TableRoom, kinds: Mapping[str, str], number: int, reading: _TextReading) -> str:
    columns = _without_numbering(room, kinds, number, reading)
    shown = [part for place, name in enumerate(columns) for part in _shown(place, name, kinds[name], reading)]
    rows, lanes = 0, np.zeros(2, dtype=np.uint64)
    for batch in room.batches(f"SELECT {', '.join(shown)} FROM {room.names[_NAME]}") if shown else ():
        found = _rows(batch, len(columns))
        rows += len(found)
        lanes += lanes_of(found)
    return bag_text(rows, lanes)


def _without_numbering(room: TableRoom, kinds: Mapping[str, str], rows: int, reading: _TextReading) -> list[str]:
    """The columns but those in which every number from 0 or from 1 on stands once, as copies are numbered."""
    numbers = {name: _plain(_shown(0, name, kind, reading)[0]) for name, kind in kinds.items()}
    facts = [f"[count(DISTINCT {one})::DOUBLE, min({one}), max({one})]" for one in numbers.values()]
    found = room.run(f"SELECT {', '.join(facts)} FROM {room.names[_NAME]}")[0] if facts and rows else ()
    counted = ([rows, 0, rows - 1], [rows, 1, rows])
    return [name for name, fact in zip(numbers, found, strict=False) if list(fact) not in counted] or list(numbers)


def _plain(shown: str) -> str:
    """The SQL without the name that it has in a query."""
    return shown.rsplit(" AS ", 1)[0]


def _by_columns(room: TableRoom, kinds: Mapping[str, str], readings: Sequence[_TextReading]) -> tuple[str, ...]:
    """The same for two large tables whose columns hold the same numbers and texts, in whatever order."""
    numbers = {name: _as_double(name, kind) for name, kind in kinds.items() if plain_type(kind) in NUMBERS}
    (rows, *added) = _added(room, list(numbers.values()))
    summed = [_of_numbers(room, number, sums, rows) for number, sums in zip(numbers.values(), added, strict=True)]
    texts = [_of_texts(room, name, kind, rows, readings) for name, kind in kinds.items() if name not in numbers]
    found = [[*summed, *(one[place] for one in texts)] for place in range(len(readings))]
    whole = [hashlib.sha256("\n".join(sorted(filter(None, one))).encode()).hexdigest() for one in found]
    return tuple(dict.fromkeys(f"{rows} {one[:32]}" for one in whole))


def _of_numbers(room: TableRoom, number: str, sums: Sequence[Any], rows: int) -> str:
    """The summary of a column of numbers."""
    if sums[2] is not None and math.isnan(sums[2]):  # few columns hold NaN; leaving it out costs as much again
        sums = _added(room, [f"nullif({number}, 'nan'::DOUBLE)"])[1]
    count, total, size = sums
    return "" if _numbers_rows(rows, count, total, size) else _summary(count, total, size, 0)


def _as_double(name: str, kind: str) -> str:
    """SQL for a number to be added up. A fraction counts by the 32 bits that it may have been: a copy of 0.1 in so many
    is 0.1 as text and 0.10000000149 in a database."""
    cell = f"{sql_name(name)}::DOUBLE"
    if plain_type(kind) not in ("DOUBLE", "DECIMAL"):
        return cell
    return f"(CASE WHEN {cell} = trunc({cell}) THEN {cell} ELSE {cell}::FLOAT::DOUBLE END)"


def _added(room: TableRoom, numbers: Sequence[str]) -> list[Any]:
    """How many rows there are, and of every column how many numbers, their sum and the sum of their sizes."""
    sums = [f"[count({number})::DOUBLE, sum({number}), sum(abs({number}))]" for number in numbers]
    return list(room.run(f"SELECT {', '.join(['count(*)', *sums])} FROM {room.names[_NAME]}")[0])


def _of_texts(room: TableRoom, name: str, kind: str, rows: int, readings: Sequence[_TextReading]) -> list[str]:
    """The summary of a column of texts by each reading: every text that occurs is read once."""
    shown = [part for place, one in enumerate(readings) for part in _shown(place, "cell", kind, one)]
    each = f"SELECT {sql_name(name)} AS cell, count(*) AS n FROM {room.names[_NAME]} GROUP BY 1"
    tallies = [_Tally() for _ in readings]
    for batch in room.batches(f"SELECT {', '.join(shown)}, n FROM ({each})"):
        for place, tally in enumerate(tallies):
            tally.add(batch.column(f"n{place}"), batch.column(f"s{place}"), batch.column("n").to_numpy())
    return [tally.summary(rows) for tally in tallies]


class _Tally:
    """What the texts of one column add up to."""

    def __init__(self) -> None:
        self._counts, self._letters = 0, 0
        self._sums: list[float] = []
        self._sizes: list[float] = []

    def add(self, numbers: pa.Array, texts: pa.Array, times: NDArray[np.int64]) -> None:
        values = np.array(pc.fill_null(numbers, np.nan), dtype=np.float64)
        known = ~np.isnan(values)
        parts = known & (values != np.trunc(values))  # as `_as_double` takes them
        values[parts] = values[parts].astype(np.float32)
        self._counts += int(times[known].sum())
        self._sums.append(math.fsum(values[known] * times[known]))
        self._sizes.append(math.fsum(np.abs(values[known]) * times[known]))
        self._letters += int((words_hashed(texts) * times.astype(np.uint64)).sum(dtype=np.uint64))

    def summary(self, rows: int) -> str:
        total, size = math.fsum(self._sums), math.fsum(self._sizes)
        if not self._letters and _numbers_rows(rows, self._counts, total, size):
            return ""
        return _summary(float(self._counts), total, size, self._letters % 2**64)


def _numbers_rows(rows: int, count: float, total: float | None, size: float | None) -> bool:
    """Whether a column adds up as the numbers of the rows do, from 0 or from 1 on."""
    sums = (rows * (rows - 1) / 2, rows * (rows + 1) / 2)
    return count == rows and total == size and any(math.isclose(size or 0.0, one, rel_tol=1e-12) for one in sums)


def _summary(count: float, total: float | None, size: float | None, letters: int) -> str:
    """A column in a few numbers; what cancels is compared with what it is made of. An empty column is none."""
    if not count and not letters:
        return ""
    scale = size or 0.0
    share = (total or 0.0) / scale if scale and math.isfinite(scale) else 0.0
    return f"{count:.0f} {scale:.7e} {round(share, 7) + 0.0:.7f} {letters:016x}"


def _shown(place: int, name: str, kind: str, reading: _TextReading) -> tuple[str, str]:
    """SQL for a cell as a number, and as text where it is none."""
    cell, plain = sql_name(name), plain_type(kind)
    if plain in NUMBERS:
        return f"TRY_CAST({cell} AS DOUBLE) AS n{place}", f"NULL::VARCHAR AS s{place}"
    text = f"trim({cell}::VARCHAR)"
    number = reading.number(text)
    # A moment or a time of day is one however its zone and its fractions of a second are written; days stay days.
    moment = f"CASE WHEN {text} LIKE '{_MOMENT}' THEN epoch_us(TRY_CAST({text} AS TIMESTAMPTZ)) END"
    clock = f"CASE WHEN {text} LIKE '__:__%' THEN 't' || epoch_us(TRY_CAST({text} AS TIME)) END"
    day = f"CASE WHEN ({moment}) % {_DAY} = 0 THEN make_timestamp({moment})::DATE::VARCHAR ELSE ({moment})::VARCHAR END"
    said = (
        f"CASE WHEN suffix({text}, '{_MIDNIGHT}') THEN left({text}, 10) "
        f"WHEN lower({text}) NOT IN ({', '.join(map(repr, _ABSENT))}) "
        f"THEN coalesce({day}, {clock}, {reading.letters(text)}) END"
    )
    return f"{number} AS n{place}", f"CASE WHEN {number} IS NULL THEN {said} END AS s{place}"


def _rows(batch: pa.RecordBatch, columns: int) -> NDArray[np.uint64]:
    found = np.zeros(batch.num_rows, dtype=np.uint64)
    for place in range(columns):
        found += _numbers(batch.column(f"n{place}")) + words_hashed(batch.column(f"s{place}"))
    return found


def _numbers(column: pa.Array) -> NDArray[np.uint64]:
    filled = pc.fill_null(column.cast(pa.float64()), absent(pa.float64(), np.array([np.nan]).tobytes()))
    values = np.frombuffer(filled.buffers()[1] or b"", np.float64)[filled.offset :][: len(filled)]
    return numbers_hashed(values)
