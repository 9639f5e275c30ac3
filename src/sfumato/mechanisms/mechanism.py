"""What every mechanism is.

In:   a scale and a sensitivity, or a wanted Guarantee.
Out:  `event()`, `guarantee()`, `error()`, `__call__(values)`; for audits also `sample` and `log_likelihood`.
Not here: any particular law. A mechanism is four things: the final class, its Event, its proof note `proof` in
docs/proofs/, and its row in tests/laws/; discovery fails if one is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np

from sfumato.core.events.event import Event
from sfumato.core.guarantee import Guarantee
from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.bits import Bits

__all__ = ["NO_INFLUENCE", "Mechanism", "codes_array", "exact_array", "finite_array", "kept", "unreachable"]

NO_INFLUENCE = "What nobody influences needs no noise. "


class Mechanism(ABC):
    """A random act with a promise. Abstract; final classes live one to a file.

    `random_state` makes experiments repeatable and the output unfit for publication: whoever knows the seed can
    subtract the noise.
    """

    proof: ClassVar[str]
    random_state: int | None = None

    @abstractmethod
    def event(self) -> Event:
        """The record of one use, for the ledger and the certificate."""

    def guarantee(self) -> Guarantee:
        """What one use promises, rounding to the grid included."""
        return self.event().guarantee()

    @abstractmethod
    def error(self) -> float:
        """Expected squared error of one published number (for choices: see the class)."""

    @abstractmethod
    def __call__(self, values: Any) -> Any:
        """The published version of `values`."""

    @abstractmethod
    def sample(self, value: Any, trials: int) -> np.ndarray:
        """`trials` independent uses on the same value, stacked along the first axis; for audits."""

    @abstractmethod
    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        """Log density of stacked outputs given the value, up to a constant that does not depend on the value."""

    @property
    def publishable(self) -> bool:
        return not isinstance(self.random_state, int | np.integer)  # the key of a run is a secret, a seed is not

    def _bits(self) -> Bits:
        return Bits(self.random_state)


def finite_array(values: Any, name: str = "values") -> np.ndarray:
    """`values` as a non-empty float64 array without NaN or infinity."""
    array = None
    with suppress(TypeError, ValueError):
        try:
            array = np.asarray(values, dtype=np.float64)
        except OverflowError:  # a whole number beyond all floats
            array = np.array(np.inf)
    if array is None:  # raised here, so that not even its context holds numpy's error, which quotes the value
        raise DataError(f"{name} must be numbers in a regular array. Nothing was drawn and nothing was spent.")
    if array.size == 0:
        raise DataError(f"{name} is empty. Nothing was drawn and nothing was spent.")
    if not np.isfinite(array).all():
        raise DataError(
            f"{name} contains NaN or infinity. Clip to public bounds and give missing values a place first "
            "(Schema does both). Nothing was drawn and nothing was spent."
        )
    return array


def codes_array(values: Any, regular: str, whole: str) -> np.ndarray:
    """`values` as a non-empty array of whole numbers; the words are those of the refusals."""
    codes = None
    with suppress(ValueError):
        codes = np.asarray(values)
    if codes is None:  # raised here, so that its context holds no error that quotes a value
        raise DataError(f"{regular} must form a regular array. Nothing was drawn.")
    if codes.size == 0 or not np.issubdtype(codes.dtype, np.integer):
        raise DataError(f"{whole}. Nothing was drawn.")
    return codes


def exact_array(values: Any, name: str = "values") -> np.ndarray:
    """`values` without any rounding: float64, 64-bit whole numbers, or Fractions for what no float holds.

    Floats have 53 bits. Two whole numbers one apart can be 2^11 apart as floats, which no sensitivity covers.

    >>> int(exact_array([2**60 + 1])[0]) - 2**60, exact_array([2**60 + 1, 0.5])[0] - 2**60
    (1, Fraction(1, 1))
    """
    finite = finite_array(values, name)
    array = np.asarray(values)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return array
    listed = array.dtype.kind in "fiu" and not hasattr(values, "dtype")  # numpy makes floats of mixed lists
    if listed and finite.ndim:
        array = np.array(values, dtype=object)
        listed = not set(map(type, array.flat)) <= {float, np.float64, np.float32, np.float16}
    wide = listed or array.dtype.kind == "O" or array.dtype.itemsize > 8
    if not wide or array.dtype.kind not in "Ofiu":
        return finite
    return _fractions(array).reshape(finite.shape)


def _fractions(array: np.ndarray) -> np.ndarray:
    exact = np.empty(array.size, dtype=object)
    exact[:] = [_fraction(value) for value in array.reshape(-1)]
    return exact


def _fraction(value: Any) -> Fraction:
    if isinstance(value, Decimal) and value.adjusted() < -2000:
        return Fraction(0)  # less than half a cell of the finest grid, and long to write out
    if isinstance(value, Decimal | Fraction):
        return Fraction(value)
    if isinstance(value, np.integer | int | np.bool_):
        return Fraction(int(value))
    return Fraction(*value.as_integer_ratio()) if isinstance(value, np.floating) else Fraction(float(value))


M = TypeVar("M", bound=Mechanism)


def kept(mechanism: M, wanted: Guarantee) -> M:
    """The mechanism, if it keeps what was wanted; at extreme scales the grid can be too coarse for it."""
    if mechanism.guarantee().implies(wanted) is not True:
        raise unreachable(wanted, type(mechanism).__name__, "Say how many numbers one unit can change (dimension=…).")
    return mechanism


def unreachable(guarantee: Guarantee, mechanism: str, instead: str) -> PrivacyParameterError:
    """The error for a guarantee that a mechanism cannot give."""
    return PrivacyParameterError(
        f"{mechanism} cannot be calibrated to {guarantee.describe()}. {instead} Nothing was drawn or spent."
    )
