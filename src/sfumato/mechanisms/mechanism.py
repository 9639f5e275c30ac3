"""What every mechanism is.

In:   a scale and a sensitivity, or a wanted Guarantee.
Out:  `event()`, `guarantee()`, `error()`, `__call__(values)`; for audits also `sample` and `log_likelihood`.
Not here: any particular law. A mechanism is four things: the final class, its Event, its proof note `proof` in
docs/proofs/, and its row in tests/laws/; discovery fails if one is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import numpy as np

from sfumato.core.event import Event
from sfumato.core.guarantee import Guarantee
from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.bits import Bits

__all__ = ["NO_INFLUENCE", "Mechanism", "finite_array", "kept", "unreachable"]

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
        array = np.asarray(values, dtype=np.float64)
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


M = TypeVar("M", bound=Mechanism)


def kept(mechanism: M, wanted: Guarantee) -> M:
    """The mechanism, if it keeps what was wanted; at extreme scales the grid can be too coarse for it."""
    if mechanism.guarantee().implies(wanted) is not True:
        raise unreachable(wanted, type(mechanism).__name__, "Say how many numbers one unit can change (dimension=…).")
    return mechanism


def unreachable(guarantee: Guarantee, mechanism: str, instead: str) -> PrivacyParameterError:
    return PrivacyParameterError(
        f"{mechanism} cannot be calibrated to {guarantee.describe()}. {instead} Nothing was drawn or spent."
    )
