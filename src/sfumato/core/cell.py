"""One cell of a column that has no type: what number or what text a Python object stands for.

In:   any object, as it may lie in a list, a dict of lists or an object column.
Out:  `number_of`: a float, NaN where there is none; `text_of`: text, None where there is none; `name_of`: the text that
      tells somebody apart.
Not here: whole columns (core/domain.py, network/plain.py), text files (network/text_files.py).

Each cell is read by itself: no object makes it fail, and none changes how another is read.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["DAY", "MOMENT", "NO_TEXT", "decoded", "is_absent", "name_of", "number_of", "text_of"]

#: Before the hexadecimal digits of bytes that are no text: no category and no number begins with it.
NO_TEXT = "\ufffd"
#: A moment, as programs write it: with as many digits behind the second as the longest of a column needs.
MOMENT = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
#: A day or a moment: of a day, programs write a midnight too where other cells have an hour.
DAY = re.compile(f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|{MOMENT}")
#: What pandas and numpy call a missing cell.
_NOTHING = ("NAType", "NaTType", "MaskedConstant")
#: A whole number as a decimal: at most 16 digits, as many as a floating-point number is exact for.
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,15})\.0")
_WORDS = {"true": 1.0, "false": 0.0}


def is_absent(cell: Any) -> bool:
    """Whether a cell is missing: None, NaN, NaT, NA or masked.

    >>> [is_absent(cell) for cell in (None, float("nan"), np.datetime64("NaT"), 0, "", [])]
    [True, True, True, False, False, False]
    """
    if cell is None or type(cell).__name__ in _NOTHING:
        return True
    if isinstance(cell, (float, Decimal, np.generic)):
        return not _equals_itself(cell)
    return False


def _equals_itself(cell: Any) -> bool:
    with suppress(Exception):  # a signalling NaN cannot be compared
        return bool(np.equal(cell, cell))
    return False


def number_of(cell: Any) -> float:
    """The number a cell holds or spells, or NaN; too large a number is infinite.

    >>> [number_of(cell) for cell in (3, "2.5", True, "false", -(10**400), "old", None, {})]
    [3.0, 2.5, 1.0, 0.0, -inf, nan, nan, nan]
    """
    if isinstance(cell, (str, bytes)):
        return _spelled(cell)
    if is_absent(cell) or not isinstance(cell, (numbers.Real, np.bool_, Decimal)):
        return math.nan
    return _nearest_float(cell)


def _nearest_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except Exception:
        return math.nan


def text_of(cell: Any) -> str | None:
    """A cell as text; None for what is missing or has no text.

    >>> [text_of(cell) for cell in ("m", 3, 2.5, True, None, float("nan"), b"x", {}, 2**70)]
    ['m', '3', '2.5', 'true', None, None, 'x', None, '1180591620717411303424']
    """
    if isinstance(cell, np.generic):
        with suppress(Exception):
            cell = cell.item()
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, (bytes, str)):
        return decoded(cell if isinstance(cell, bytes) else cell.encode("utf-8", "surrogatepass"))
    if is_absent(cell) or isinstance(cell, (Mapping, Sequence, set, frozenset)):
        return None
    with suppress(Exception):  # an object's own word for itself is no reason to fail
        if bool(np.equal(cell, cell)):  # NaN and NaT are not
            return decoded(str(cell).encode("utf-8", "surrogatepass"))
    return None


def name_of(cell: Any) -> str | None:
    """The text by which somebody or a group is told apart; a whole number is 7, as 7 and as 7.0.

    One absent cell makes decimals of a column of whole numbers, in pandas and numpy, and in CSV files the text 7.0; one
    hour gives every day a midnight there; one word makes objects of a column of moments: nobody else's name may change.
    A moment is written as the engine writes those of a typed column, one at midnight as its day.

    >>> [name_of(cell) for cell in (7, 7.0, np.float64(7), 2.5, "7.0", "07.0", None, float("inf"))]
    ['7', '7', '7', '2.5', '7', '07.0', None, 'inf']
    >>> name_of(datetime(2020, 1, 1, 9, 30, 0, 500_000)), name_of("2020-01-01 00:00:00.000")
    ('2020-01-01 09:30:00.5', '2020-01-01')
    """
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer() and abs(float(cell)) < 2**53:
        return str(int(cell))
    text = text_of(cell)
    if text is None:
        return None
    if isinstance(cell, datetime):
        text = _universal(cell)
    elif _DECIMAL.fullmatch(text):
        return text[:-2]
    return _shortest(text) if re.fullmatch(MOMENT, text) else text


def _universal(cell: datetime) -> str:
    """In universal time where it says which time it is."""
    with suppress(Exception):  # the first and last day have no other time
        cell = cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
    return str(cell)


def _shortest(moment: str) -> str:
    """Without the zeros that end a fraction of a second, and without a midnight."""
    kept = moment.rstrip("0").rstrip(".") if "." in moment else moment
    return kept.removesuffix(" 00:00:00")


def decoded(content: bytes) -> str:
    """UTF-8 as text; other bytes as their hexadecimal digits behind NO_TEXT.

    >>> decoded(b"x"), decoded(b"\\xff")
    ('x', '\ufffdFF')
    """
    with suppress(UnicodeDecodeError):
        return content.decode()
    return NO_TEXT + content.hex().upper()


def _spelled(cell: str | bytes) -> float:
    with suppress(ValueError):
        return float(cell)
    text = text_of(cell) or ""
    return _WORDS.get(text.strip().lower(), math.nan)
