"""One schema for the files of one table, some of which were given another type by a cell of theirs.

In:   the schemas of files that are parts of one table.
Out:  Agreed: the types by which all of them are read; None where they are no one table.
Not here: reading them (network/plain.py, network/stores/far_files.py, run/partition.py).

pandas writes a column of whole numbers as decimals where one cell is absent, and a column without any value as one
without a type. What a column is comes from the study, so such files are read alike: by the type that the others have,
or, where whole numbers meet decimals, as numbers in either way. So are lists of words, of which one more may need a
larger place in its file, and decimals of fixed digits, of which one cell may need more than others: their texts are the
same. Words beside numbers are another table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

__all__ = ["Agreed", "agreed", "decimal_words", "first_other"]


@dataclass(frozen=True)
class Agreed:
    """`numbers` are the columns that are whole numbers in one file and decimals, or without a type, in another.

    In `schema` they are decimals of 64 bits.
    """

    schema: pa.Schema
    numbers: frozenset[str] = frozenset()
    #: The columns that have another type in some file; none where all files have these types.
    differing: frozenset[str] = frozenset()


def agreed(schemas: Sequence[pa.Schema]) -> Agreed | None:
    """The types by which files of these schemas are one table.

    >>> files = [pa.schema({"age": kind, "word": pa.string()}) for kind in (pa.int64(), pa.float64(), pa.null())]
    >>> agreed(files).schema.types, agreed(files[:1]).numbers
    ([DataType(double), DataType(string)], frozenset())
    >>> agreed([pa.schema({"age": pa.int64()}), pa.schema({"age": pa.string()})]) is None
    True
    """
    first = schemas[0].remove_metadata()
    if any(one.names != first.names for one in schemas):
        return None
    if all(one.types == first.types for one in schemas):
        return Agreed(first)
    return _of_several_types(schemas)


def _of_several_types(schemas: Sequence[pa.Schema]) -> Agreed | None:
    """The types by which files with the same columns are read alike, where one can be found for each column."""
    names = schemas[0].names
    columns = [list(dict.fromkeys(kinds)) for kinds in zip(*(one.types for one in schemas), strict=True)]
    found = [_common(kinds) for kinds in columns]
    if None in found:
        return None
    differing = frozenset(name for name, kinds in zip(names, columns, strict=True) if len(kinds) > 1)
    schema = pa.schema(list(zip(names, found, strict=True)))
    numbers = frozenset(name for name, kind in zip(names, found, strict=True) if kind == pa.float64()) & differing
    return Agreed(schema, numbers, differing)


def first_other(schemas: Sequence[pa.Schema]) -> int:
    """The place of the first file that makes no one table with those before it, where there is one."""
    return next(place for place in range(1, len(schemas)) if agreed(schemas[: place + 1]) is None)


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Of one column."""
    if len(kinds) == 1:
        return kinds[0]
    stated = [kind for kind in kinds if not pa.types.is_null(kind)]
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in stated):
        return pa.float64()
    plain = list(dict.fromkeys(kind.value_type if pa.types.is_dictionary(kind) else kind for kind in stated))
    if all(map(pa.types.is_decimal128, plain)) and len({kind.scale for kind in plain}) == 1:
        return max(plain, key=lambda kind: kind.precision)
    return stated[0] if len(stated) == 1 else plain[0] if len(plain) == 1 else None


def decimal_words(column: pa.Array) -> pa.Array:
    """Decimals as text, whole ones without point and exponent up to 10¹⁶; of 32 bits as the same number in 64.

    >>> decimal_words(pa.array([1e10, 0.5, float("nan"), None])).to_pylist()
    ['10000000000', '0.5', None, None]
    """
    import pyarrow.compute as pc  # a tenth of a second, and most files are alike

    wide, none = column.cast(pa.float64()), pa.scalar(None, pa.float64())
    wide = pc.call_function("if_else", [column.is_null(nan_is_null=True), none, wide])
    near = pc.call_function("less", [pc.call_function("abs", [wide]), pa.scalar(1e16)])
    short = pc.call_function("and", [near, pc.call_function("equal", [wide, pc.call_function("trunc", [wide])])])
    whole = pc.call_function("if_else", [short, wide, none]).cast(pa.int64())
    return pc.call_function("coalesce", [whole.cast(pa.string()), wide.cast(pa.string())])
