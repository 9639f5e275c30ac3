"""The order of one person's rows by Python's own hmac: shares no code with the product."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

KEY = hashlib.sha256(b"sfumato rows per person").digest()


def field(text: str | None) -> str:
    return "-" if text is None else f"{len(text.encode())}:{text}"


def text_of(value: Any) -> str | None:
    """A number by its value: 7, 7.0 and "7" are one, whatever type a column has, and so are 1, true and "True".

    What is no number (NaN) is absent. Of moments no test has any here.
    """
    if value is None:
        return None
    truths = {"true": 1, "false": 0}
    try:
        number = float(truths.get(str(value).strip(" ").lower(), value))
    except ValueError:
        return value
    if math.isnan(number):
        return None
    return repr(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def in_order(person: str, rows: Sequence[Mapping[str, Any]], key: bytes = KEY) -> list[Mapping[str, Any]]:
    """All rows of one person, first the one that is kept first; `rows` hold every column of the table."""
    copies: Counter[str] = Counter()
    coded = []
    for row in rows:
        message = field(person) + "".join(field(text_of(row[name])) for name in sorted(row))
        copies[message] += 1
        code = hmac.new(key, (message + field(str(copies[message]))).encode(), "sha256").hexdigest()
        coded.append((code, row))
    return [row for _, row in sorted(coded, key=lambda pair: pair[0])]
