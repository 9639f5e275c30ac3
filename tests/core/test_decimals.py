"""A decimal is the number that it spells, whatever digits its type has room for."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from sfumato import Interval


def spelled(source: random.Random) -> tuple[list[Decimal | None], int]:
    """Cells, and how many digits the longest has behind the point."""
    scale = source.randint(0, 6)
    top = 10 ** source.choice((3, 6, 14, 15, 16, 25))
    return [None, *(Decimal(source.randint(-top, top)).scaleb(-scale) for _ in range(40))], scale


@pytest.mark.parametrize("seed", range(40))
def test_a_decimal_is_the_nearest_number_by_whatever_type_it_is_read(seed):
    """0.3 was 0.30000000000000004 in a column with one digit and 0.3 in one where another cell had two."""
    source = random.Random(seed)
    cells, scale = spelled(source)
    domain = Interval(-1e30, 1e30, null=7)
    expected = [7.0 if cell is None else float(cell) for cell in cells]
    for more in (0, 1, 5):
        for kind in (pa.decimal128(38, scale + more), pa.decimal256(60, scale + more)):
            assert domain.place(pa.chunked_array([pa.array(cells, kind)]), "a").tolist() == expected
    longest = max(len(cell.as_tuple().digits) for cell in cells if cell is not None)
    for precision in (max(longest, scale), max(longest, scale) + 1):
        column = pa.chunked_array([pa.array(cells, pa.decimal128(precision, scale))])
        assert domain.place(column, "a").tolist() == expected
