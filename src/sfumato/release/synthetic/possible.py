"""Rows are kept from what cannot occur where a bin is impossible only in part: its numbers are drawn again.

In:   rows as they were drawn, their levels, a schema's impossible combinations.
Out:  the same rows; a number that nothing beside it allows lies elsewhere in its bin, so every count stays as it was.
Not here: bins that are impossible as a whole (release/synthetic/zeros.py). All of this is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.domain import Categories
from sfumato.core.schema import Schema
from sfumato.release.synthetic.levels import Levels

__all__ = ["kept_possible"]

Codes = NDArray[np.int32]
Numbers = NDArray[np.float64]
Truths = NDArray[np.bool_]
Entry = Mapping[str, tuple[Any, ...]]
#: How often numbers are drawn again: the type of a column may round one back to the end of a range.
_TIMES = 4


def kept_possible(
    made: pa.Table, codes: Codes, schema: Schema, levels: Sequence[Levels], generator: np.random.Generator
) -> tuple[pa.Table, Codes]:
    """The rows without impossible combinations, and their levels.

    Where no number of its bin would do, another row takes the place of the whole row.
    """
    if not schema.impossible:
        return made, codes
    wrong = np.flatnonzero(_hit(schema, levels, made, codes).any(axis=0))
    for _ in range(_TIMES):
        if not len(wrong):
            return made, codes
        mended = _drawn_again(made.take(pa.array(wrong)), codes[wrong], schema, levels, generator)
        places = np.arange(made.num_rows)
        places[wrong] = made.num_rows + np.arange(len(wrong))
        made = pa.concat_tables([made, mended]).take(pa.array(places))
        wrong = wrong[_hit(schema, levels, mended, codes[wrong]).any(axis=0)]
    right = np.setdiff1d(np.arange(made.num_rows), wrong)
    places = np.arange(made.num_rows)
    if len(right):  # else the schema, with these bins, leaves nothing
        places[wrong] = generator.choice(right, len(wrong))
    return made.take(pa.array(places)), codes[places]


def _hit(schema: Schema, levels: Sequence[Levels], made: pa.Table, codes: Codes, without: str | None = None) -> Truths:
    """For every combination which rows have it, whatever they have in the column `without`."""
    parts: list[Truths] = []
    for entry in schema.impossible:
        hit = np.ones(made.num_rows, dtype=bool)
        for at, column in enumerate(levels):
            if column.name in entry and column.name != without:
                hit &= _has(column, made[column.name], codes[:, at], entry[column.name])
        parts.append(hit)
    return np.array(parts)


def _has(column: Levels, values: pa.ChunkedArray, codes: Codes, named: Sequence[Any]) -> Truths:
    if isinstance(column.domain, Categories):
        return np.isin(codes, [column.domain.values.index(value) for value in named])
    numbers = column.place(values)
    if pa.types.is_decimal(values.type):  # 63.3 is read as 63.300000000000004
        numbers = np.round(numbers, values.type.scale)
    return (numbers >= named[0]) & (numbers <= named[1])


def _drawn_again(
    made: pa.Table, codes: Codes, schema: Schema, levels: Sequence[Levels], generator: np.random.Generator
) -> pa.Table:
    """One column after the other: a number of each row that may stand beside what the row has in the others."""
    for at, column in enumerate(levels):
        if not column.ranges:
            continue
        named = [place for place, entry in enumerate(schema.impossible) if column.name in entry]
        beside = _hit(schema, levels, made, codes, without=column.name)[named] & (codes[:, at] < column.listed)
        ranges = [column.span(*schema.impossible[place][column.name]) for place in named]
        numbers = np.array(column.place(made[column.name]))
        _move(numbers, column, codes[:, at], beside, ranges, generator)
        written = column.written(numbers, np.isnan(numbers))
        if written.type == made[column.name].type:  # else a number of another row does not fit the column's own
            made = made.set_column(made.schema.get_field_index(column.name), column.name, written)
    return made


def _move(
    numbers: Numbers,
    column: Levels,
    codes: Codes,
    beside: Truths,
    ranges: Sequence[tuple[float, float]],
    generator: np.random.Generator,
) -> None:
    """Numbers of one column drawn again outside the ranges that something rules out beside them."""
    kinds, kind = np.unique(np.vstack([codes, beside]), axis=1, return_inverse=True)
    for number, (code, *never) in enumerate(kinds.T.tolist()):
        if not any(never):
            continue
        rows = np.flatnonzero(kind.ravel() == number)
        pieces = _left(column, code, [pair for pair, here in zip(ranges, never, strict=True) if here])
        if pieces:
            numbers[rows] = _among(column, pieces, len(rows), generator)


def _left(column: Levels, code: int, ranges: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """What is left of a bin without these ranges."""
    low, beyond = column.spans()[code : code + 2].tolist()
    left = []
    for first, after in sorted(ranges):
        if first > low:
            left.append((low, min(first, beyond)))
        low = max(low, after)
    left.append((low, beyond))
    return [(first, after) for first, after in left if first < after]


def _among(column: Levels, pieces: Sequence[tuple[float, float]], rows: int, generator: np.random.Generator) -> Numbers:
    """Numbers of these pieces, as many of each as the shape inside the bin says."""
    ends = np.array(pieces)
    assert column.inside is not None
    held = np.diff(np.interp(ends, column.inside.places, column.inside.below)).ravel()
    widths = np.diff(ends).ravel()
    shares = held / held.sum() if held.sum() > 1e-9 else widths / widths.sum()
    chosen = generator.choice(len(ends), rows, p=shares)
    return column.drawn(ends[chosen, 0], ends[chosen, 1], generator)
