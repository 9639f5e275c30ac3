"""Distances between neighbours, each with the norm it is measured in.

In:   a number.
Out:  L1 and L2, two types of float; `in_norm` refuses one where noise is measured by the other.
Not here: how far one individual moves what is drawn (questions/moves.py).

Noise measured by the Euclidean norm on a distance in the sum norm is too wide, and the other way round too narrow: a
promise that is not kept. A plain float is taken at its word.
"""

from __future__ import annotations

from numbers import Real
from typing import ClassVar, Self, final

from sfumato.errors import PrivacyParameterError

__all__ = ["L1", "L2", "Norm", "in_norm"]


class _Distance(float):
    """A number of some norm. Abstract. So many times a distance is a distance in the same norm."""

    #: The power of coordinates that adds up.
    order: ClassVar[int]

    def __mul__(self, times: float) -> Self:
        if not isinstance(times, Real):  # an array of them, say
            return NotImplemented
        return type(self)(float(self) * times)

    __rmul__ = __mul__


@final
class L1(_Distance):
    """A distance in the sum norm: what Laplace noise is measured by.

    >>> type(L1(2.0) * 1.5), 3 * L1(2.0)
    (<class 'sfumato.core.norms.L1'>, 6.0)
    """

    order = 1


@final
class L2(_Distance):
    """A distance in the Euclidean norm: what Gaussian noise is measured by."""

    order = 2


Norm = type[L1] | type[L2]


def in_norm(sensitivity: float, norm: Norm, law: str) -> float:
    """The sensitivity as a plain float; PrivacyParameterError where it says that it is of the other norm.

    >>> in_norm(L2(1.5), L2, "Gaussian noise"), in_norm(1.5, L2, "Gaussian noise")
    (1.5, 1.5)
    >>> in_norm(L1(1.5), L2, "Gaussian noise")
    Traceback (most recent call last):
    ...
    sfumato.errors.PrivacyParameterError: Gaussian noise is measured by an L2 distance, ...
    """
    if isinstance(sensitivity, L1 | L2):
        if not isinstance(sensitivity, norm):
            raise PrivacyParameterError(
                f"{law} is measured by an {norm.__name__} distance, and this sensitivity is an "
                f"{type(sensitivity).__name__} distance. Nothing was drawn and nothing was spent."
            )
        return float(sensitivity)
    return sensitivity
