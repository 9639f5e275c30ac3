"""One digest for records: of a certificate, and of the plan that it names.

In:   a record of plain values.
Out:  its canonical text and the SHA-256 of that text.
Not here: the verifier, which writes the text by itself (evidence/verify.py); digests of files (run/manifest.py).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from sfumato.errors import InputError

__all__ = ["canonical", "digest_of", "plain", "plan_digest", "plan_record"]

_WORDS = re.compile(r"\\*-?infinity")  # what infinity is written as, and what a text like it is written as


def digest_of(record: Any) -> str:
    """SHA-256, in hex, of the record's canonical text.

    >>> digest_of({"b": 1, "a": math.inf}) == digest_of({"a": "infinity", "b": 1})
    True
    """
    return hashlib.sha256(canonical(record).encode()).hexdigest()


def plan_digest(plan: Any) -> str:
    """SHA-256 of a plan's record, which may hold texts of a user's: "infinity" is a name there, and no number.

    >>> plan_digest({"observer": "infinity"}) == plan_digest({"observer": math.inf})
    False
    """
    return digest_of(plan_record(plan))


def plan_record(value: Any) -> Any:
    """A plan in plain values of which no two different plans have the same: texts like infinity's begin with a \\."""
    match value:
        case str():
            return f"\\{value}" if _WORDS.fullmatch(value) else value
        case Mapping():
            return {key: plan_record(item) for key, item in value.items()}
        case list() | tuple():
            return [plan_record(item) for item in value]
    return plain(value)


def canonical(record: Any, indent: int | None = None) -> str:
    """One text for one record: keys sorted, infinity as the word "infinity"."""
    between = (",", ": ") if indent else (",", ":")
    return json.dumps(
        plain(record), sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent, separators=between
    )


def plain(value: Any) -> Any:
    """`value` as JSON knows it; refuses what has no plain form, so that a digest never depends on `repr`."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return _plain_float(value)
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise InputError("The keys of a plan must be strings.")
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    raise InputError(f"A plan holds plain values only, not a {type(value).__name__}.")


def _plain_float(value: float) -> float | str:
    if math.isnan(value):
        raise InputError("NaN has no place in a certificate.")
    return value if math.isfinite(value) else ("infinity" if value > 0 else "-infinity")
