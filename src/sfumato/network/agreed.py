"""One schema for the files of one table, some of which were given another type by a cell of theirs.

In:   the schemas of files that are parts of one table.
Out:  Agreed: the types by which all of them are read; None where they are no one table.
Not here: reading them (network/plain.py, network/stores/far_files.py, run/partition.py).

pandas writes a column of whole numbers as decimals where one cell is absent, and a column without any value as one
without a type. What a column is comes from the study, so such files are read alike: by the type that the others have,
or, where whole numbers meet decimals, as numbers in either way. So are lists of words, of which one more may need a
larger place in its file, words that another version of a program writes otherwise, decimals of fixed digits, of which
one cell may need more than others, and moments, of which one cell may need smaller units, and a column without any has
none. Words beside numbers are another table.
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
    #: Those of them that are moments, in other units in some file; microseconds in `schema`.
    moments: frozenset[str] = frozenset()


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
    schema = pa.schema(list(zip(names, found, strict=True)))
    differing = {name: kinds for name, kinds in zip(names, columns, strict=True) if len(kinds) > 1}
    numbers = filter(lambda name: schema.field(name).type == pa.float64(), differing)
    timed = filter(lambda name: sum(map(pa.types.is_timestamp, differing[name])) > 1, differing)
    return Agreed(schema, frozenset(numbers), frozenset(differing), frozenset(timed))


def first_other(schemas: Sequence[pa.Schema]) -> int:
    """The place of the first file that makes no one table with those before it, where there is one."""
    return next(place for place in range(1, len(schemas)) if agreed(schemas[: place + 1]) is None)


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Of one column."""
    if len(kinds) == 1:
        return kinds[0]
    stated = [kind for kind in kinds if not pa.types.is_null(kind)]
    if all(map(_is_plain_number, stated)):
        return pa.float64()
    plain = list(dict.fromkeys(kind.value_type if pa.types.is_dictionary(kind) else kind for kind in stated))
    if len(plain) == 1:
        return stated[0] if len(stated) == 1 else plain[0]
    return _of_one_sort(plain)


def _of_one_sort(plain: Sequence[pa.DataType]) -> pa.DataType | None:
    """What holds texts, decimals or moments of all these types; None where they are not of one sort."""
    if all(map(_is_text, plain)):
        return pa.large_string()
    if all(map(pa.types.is_decimal, plain)):
        return _wide_enough(plain)
    zones = {kind.tz if pa.types.is_timestamp(kind) else kind for kind in plain}
    return pa.timestamp("us", plain[0].tz) if len(zones) == 1 else None


def _is_plain_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def _wide_enough(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Decimals that hold all digits before and behind the point of each of these; None where there are none."""
    behind = max(kind.scale for kind in kinds)
    digits = behind + max(kind.precision - kind.scale for kind in kinds)
    if digits > 76:
        return None
    return pa.decimal128(digits, behind) if digits <= 38 else pa.decimal256(digits, behind)


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
