"""Rows as one number that no order changes: what two tables or matrices with the same rows have in common.

In:   columns of numbers or texts.
Out:  a number for each cell, to be added up over a row; a text for all rows together.
Not here: which account has it (ledger/, run/accounts.py), what a cell of a file says (run/fingerprint.py).

Private, and not made to withstand search: it stays in memory, and a ledger keeps it as a keyed hash.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["absent", "bag_text", "lanes_of", "mixed", "numbers_hashed", "words_hashed"]

#: The second lane starts elsewhere.
_OTHER = np.uint64(0x9E3779B97F4A7C15)
#: Bytes of text that are hashed together: few enough for a processor's cache.
_AT_ONCE = 1 << 16


def numbers_hashed(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A number for each number; nothing for NaN. Fractions count to seven digits, whole numbers as they are."""
    with np.errstate(over="ignore", invalid="ignore"):  # a copy may hold fewer digits of a fraction, never of a count
        short = values.astype(np.float32).astype(np.float64)
    kept = np.where(values == np.trunc(values), values, short) + 0.0  # -0.0 is 0
    return np.where(np.isnan(values), np.uint64(0), mixed(kept.view(np.uint64)))


def words_hashed(column: pa.Array) -> NDArray[np.uint64] | np.uint64:
    """Every byte hashed with its place, added up and hashed; an empty text is an absent cell, as in a CSV file."""
    if column.null_count == len(column):
        return np.uint64(0)
    texts = pc.fill_null(column.cast(pa.large_string()), absent(pa.large_string(), bytes(16), b""))
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    ends = ends - ends[0]
    return np.where(np.diff(ends) > 0, mixed(_added(letters, ends)), np.uint64(0))


def _added(letters: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    """For each text the sum of its hashed bytes: some bytes at a time, since each takes some thirty meanwhile."""
    found = np.zeros(len(ends) - 1, dtype=np.uint64)
    for start in range(0, len(letters), _AT_ONCE):
        block = letters[start : start + _AT_ONCE].astype(np.uint64)
        stop = start + len(block)
        first, last = np.searchsorted(ends, start, "right") - 1, np.searchsorted(ends, stop, "left")
        inside = np.clip(ends[first : last + 1], start, stop)
        places = np.arange(start, stop) - np.repeat(ends[first:last], np.diff(inside))
        summed = np.concatenate([[np.uint64(0)], np.cumsum(mixed(block | places.astype(np.uint64) << np.uint64(8)))])
        found[first:last] += summed[inside[1:] - start] - summed[inside[:-1] - start]
    return found


def absent(kind: pa.DataType, *buffers: bytes) -> pa.Scalar:
    """What an absent cell counts as, made from its bytes: from a Python value pyarrow would import pandas first."""
    return pa.Array.from_buffers(kind, 1, [None, *map(pa.py_buffer, buffers)])[0]


def lanes_of(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Both lanes of some rows, each the sum of its cells' numbers; those of several batches are added up."""
    return np.array([mixed(rows).sum(dtype=np.uint64), mixed(rows ^ _OTHER).sum(dtype=np.uint64)])


def bag_text(rows: int, lanes: NDArray[np.uint64]) -> str:
    """All rows in one text."""
    return f"{rows} {lanes[0]:016x}{lanes[1]:016x}"


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Steele, Lea & Flood's finaliser (SplitMix64): every bit moves every other."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
