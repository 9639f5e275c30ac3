"""Any falling convex loss, given by its slopes: the conditions of the privacy theorems are checked on the numbers used.

In:   knots and slopes there, or a slope as a function.
Out:  ConvexLoss, a loss whose slope is linear between knots, for PrivateSVC(loss=…).
Not here: the named losses (learn/losses.py), privacy (learn/calibration.py).
Proof: docs/proofs/objective_perturbation.md

A function's bounds cannot be proved by trying values. A slope that is linear between knots can be checked completely:
it lies in [-1, 0] and rises if it does so at the knots, and its steepest piece is the largest curvature. So the loss
that is used is the interpolated one, and everything proved is about it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.learn.arrays import is_device_array, to_device, to_host
from sfumato.learn.losses import Loss

__all__ = ["ConvexLoss"]

_LEAST_KNOTS, _MOST_KNOTS = 2, 10_000
_FLATTEST = 1e-6


@dataclass(frozen=True)
class ConvexLoss(Loss):
    """The loss with these `slopes` at these `knots`, linear between and constant beyond; 0 from the last knot on.

    Knots rise; slopes rise from at least -1 to exactly 0. A hinge rounded over [0.5, 1.5]:

    >>> ConvexLoss((0.5, 1.5), (-1.0, 0.0)).value(np.array([0.0, 1.0, 2.0])).tolist()
    [1.0, 0.125, 0.0]
    """

    knots: tuple[float, ...]
    slopes: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("knots", "slopes"):
            object.__setattr__(self, name, _numbers(getattr(self, name), name))
        if len(self.knots) != len(self.slopes):
            raise InputError("There must be one slope for each knot. Nothing was spent.")
        if not all(below < above for below, above in itertools.pairwise(self.knots)):
            raise InputError("knots must rise. Nothing was spent.")
        if not (np.diff(self.slopes) >= 0).all():
            raise InputError("slopes must not fall from knot to knot: the loss would not be convex. Nothing was spent.")
        if self.slopes[0] < -1 or self.slopes[-1] != 0:
            raise InputError(
                "slopes must begin at -1 or above and end at 0: the loss falls by at most 1 for each unit of margin, "
                "which is what noise is measured by, and never below 0. Divide by the largest slope. Nothing was spent."
            )
        if self.slopes[0] == 0:
            raise InputError("A loss whose slopes are all 0 has nothing to learn from. Nothing was spent.")
        if not _FLATTEST <= self.largest_curvature <= 1 / _FLATTEST:
            raise InputError(
                f"The steepest piece of the slope must rise by {_FLATTEST:g} to {1 / _FLATTEST:g} for each unit of "
                "margin: noise drowns a flatter loss, and a steeper one cannot be solved. Nothing was spent."
            )

    @classmethod
    def from_slope(cls, slope: Callable[[np.ndarray], Any], low: float, high: float, knots: int = 400) -> ConvexLoss:
        """The loss with this slope on [low, high], read at evenly spaced knots; the last slope is set to 0.

        >>> smooth = ConvexLoss.from_slope(lambda z: -1 / (1 + np.exp(z)), -10, 20)
        >>> round(smooth.largest_curvature, 2)
        0.25
        """
        places = np.linspace(low, high, knots)
        found = np.array(slope(places), dtype=np.float64)
        if found.shape != places.shape:
            raise InputError("slope must give one number for each margin. Nothing was spent.")
        found[-1] = 0.0
        return cls(tuple(places.tolist()), tuple(found.tolist()))

    @property
    def largest_curvature(self) -> float:
        with np.errstate(all="ignore"):  # numbers at the end of the floats, which are refused
            return float((np.diff(self.slopes) / np.diff(self.knots)).max()) * (1 + 1e-12)

    def value(self, margins: np.ndarray) -> np.ndarray:
        knots, slopes = np.array(self.knots), np.array(self.slopes)
        margins = np.asarray(margins, dtype=np.float64)
        areas = -(slopes[1:] + slopes[:-1]) / 2 * np.diff(knots)
        heights = np.append(np.cumsum(areas[::-1])[::-1], 0.0)
        piece = np.clip(np.searchsorted(knots, margins, side="right") - 1, 0, len(knots) - 2)
        inside = np.clip(margins, knots[piece], knots[piece + 1])
        mean = (np.interp(inside, knots, slopes) + slopes[piece + 1]) / 2
        return heights[piece + 1] - mean * (knots[piece + 1] - inside) + slopes[0] * np.minimum(margins - knots[0], 0.0)

    def slope(self, margins: Any) -> Any:
        found = np.interp(to_host(margins), self.knots, self.slopes)
        return to_device(found, margins) if is_device_array(margins) else found

    def curvature(self, margins: Any) -> Any:
        there = to_host(margins)
        steepness = np.concatenate([[0.0], np.diff(self.slopes) / np.diff(self.knots), [0.0]])
        found = steepness[np.searchsorted(self.knots, there, side="right")]
        return to_device(found, margins) if is_device_array(margins) else found


def _numbers(values: Any, name: str) -> tuple[float, ...]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim != 1 or not _LEAST_KNOTS <= array.size <= _MOST_KNOTS or not np.isfinite(array).all():
        raise InputError(f"{name} must be {_LEAST_KNOTS} to {_MOST_KNOTS} finite numbers. Nothing was spent.")
    return tuple(array.tolist())
