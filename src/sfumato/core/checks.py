"""The few checks every privacy parameter passes, so that messages read alike.

In:   a number and its name.
Out:  the number as a float, or PrivacyParameterError.
"""

from __future__ import annotations

import math
from numbers import Real

from sfumato.errors import PrivacyParameterError

__all__ = ["at_least_zero", "is_one_line", "moderate", "number", "positive", "probability", "round_down", "round_up"]


def is_one_line(text: str) -> bool:
    """Whether a text can name something in a ledger: one line of printable letters without outer blanks.

    >>> is_one_line("my people"), is_one_line("people "), is_one_line("")
    (True, False, False)
    """
    return bool(text) and text.strip() == text and text.isprintable()


def number(value: object, name: str) -> float:
    """`value` as a finite float."""
    if type(value) is float and math.isfinite(value):  # nearly always: asking for Real takes ten times as long
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise PrivacyParameterError(f"{name} must be a number, not {type(value).__name__}. Nothing was spent.")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise PrivacyParameterError(f"{name} must be finite, not {result}. Nothing was spent.")
    return result


def positive(value: object, name: str, hint: str = "") -> float:
    """A number greater than 0, or an error that names it."""
    result = number(value, name)
    if result <= 0:
        raise PrivacyParameterError(f"{name} must be greater than 0, not {result}. {hint}Nothing was spent.")
    return result


def moderate(value: object, name: str) -> float:
    """A number from 1e-100 to 1e100: its square and its inverse are numbers still."""
    result = positive(value, name)
    if not 1e-100 <= result <= 1e100:
        raise PrivacyParameterError(f"{name} must lie between 1e-100 and 1e100, not {result:g}. Nothing was spent.")
    return result


def at_least_zero(value: object, name: str) -> float:
    """A number of at least 0, or an error that names it."""
    result = number(value, name)
    if result < 0:
        raise PrivacyParameterError(f"{name} must be at least 0, not {result}. Nothing was spent.")
    return result


def probability(value: object, name: str = "delta") -> float:
    """A probability in [0, 1)."""
    result = number(value, name)
    if not 0 <= result < 1:
        raise PrivacyParameterError(f"{name} must lie in [0, 1), not {result}. Nothing was spent.")
    return result


def round_up(value: float, relative: float = 1e-12) -> float:
    """A slightly larger number: floating-point error in a privacy number must never favour us."""
    return math.nextafter(value * (1 + relative), math.inf) if math.isfinite(value) and value > 0 else value


def round_down(value: float, relative: float = 1e-12) -> float:
    """A little below a positive number: for what may not be larger than it is."""
    return math.nextafter(value * (1 - relative), 0.0) if math.isfinite(value) and value > 0 else value
