"""What a published value will be used for: transformations, and where they break.

In:   a name ("identity", "log", "inverse", "tan", "sqrt", "power:-2", …), a function, or a Use; a public interval.
Out:  Use; its singular points inside the interval; values moved away from them.
Not here: what a use costs under a channel (tailored_design.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.core.tables import nearest
from sfumato.errors import InputError, SchemaError, SfumatoError

__all__ = ["Use", "as_use", "as_uses", "checked_uses"]

Function = Callable[[np.ndarray], Any]
_GRID = 4097


def _nowhere(_low: float, _high: float) -> Sequence[float]:
    return ()


@dataclass(frozen=True)
class Use:
    """A transformation of a published value. `weight` says how much its error counts beside that of other uses.

    `inverse` is there where the function can be undone beyond the domain; `least` is where its own domain begins;
    `poles(low, high)` are the points in between where it has no value.

    >>> as_use("power:-1")(np.array([0.5, 4.0]))
    array([2.  , 0.25])
    """

    name: str
    function: Function = field(repr=False)
    inverse: Function | None = field(default=None, repr=False)
    least: float = field(default=-math.inf, repr=False)
    open_end: bool = field(default=False, repr=False)
    poles: Callable[[float, float], Sequence[float]] = field(default=_nowhere, repr=False)
    weight: float = 1.0

    def __call__(self, values: Any) -> np.ndarray:
        array = np.asarray(values, dtype=float)
        with np.errstate(all="ignore"):
            try:
                result = np.asarray(self.function(array), dtype=float)
            except SfumatoError:
                raise
            except (TypeError, ValueError):  # a function of one number
                result = np.array([self._one(item) for item in array.ravel().tolist()]).reshape(array.shape)
        if result.shape != array.shape:
            raise InputError(f"The use {self.name!r} must give one number for each number.")
        return result

    def _one(self, item: float) -> float:
        try:
            return float(self.function(item))  # type: ignore[arg-type]  # a function of one number
        except (ArithmeticError, ValueError):  # no value there
            return math.nan

    def breaks(self, low: float, high: float) -> tuple[float, ...]:
        """Points of [low, high] where the use is singular or has no value, the lower end of its own domain first."""
        found = []
        if low < self.least or (self.open_end and low == self.least):
            found.append(max(low, self.least) if self.open_end else low)
        found += self.poles(low, high)
        return tuple(found)

    def moved(self, values: np.ndarray, low: float, high: float, guard: float) -> np.ndarray:
        """The values, those nearer than `guard` to a break put at that distance from it."""
        moved = np.asarray(values, dtype=float)
        if low < self.least or (self.open_end and low == self.least):
            moved = np.maximum(moved, self.least + (guard if self.open_end else 0.0))
        for pole in self.poles(low, high):
            near = np.abs(moved - pole) < guard
            moved = np.where(near, np.where(moved < pole, pole - guard, pole + guard), moved)
        return moved


def _zero(low: float, high: float) -> Sequence[float]:
    return (0.0,) if low <= 0 <= high else ()


def _tangent_poles(low: float, high: float) -> Sequence[float]:
    first, last = math.ceil(low / math.pi - 0.5), math.floor(high / math.pi - 0.5)
    return [(turn + 0.5) * math.pi for turn in range(first, last + 1)]


def _power(exponent: float, name: str) -> Use:
    whole = float(exponent).is_integer()
    odd = whole and int(exponent) % 2 == 1

    def power(values: np.ndarray) -> np.ndarray:
        return values**exponent

    def root(values: np.ndarray) -> np.ndarray:
        return np.sign(values) * np.abs(values) ** (1 / exponent)

    poles = _zero if exponent < 0 and whole else _nowhere
    least = -math.inf if whole else 0.0
    return Use(name, power, root if odd else None, least, exponent < 0 and not whole, poles)


_NAMED: dict[str, Use] = {
    "identity": Use("identity", lambda x: x, lambda u: u),
    "log": Use("log", np.log, np.exp, 0.0, True),
    "inverse": Use("inverse", lambda x: 1 / x, lambda u: 1 / u, poles=_zero),
    "tan": Use("tan", np.tan, np.arctan, poles=_tangent_poles),
    "sqrt": Use("sqrt", np.sqrt, None, 0.0),
    "square": Use("square", np.square),
    "exp": Use("exp", np.exp),
}


def as_use(given: Any) -> Use:
    """A Use from its name, a function, a Use, or a pair of one of these and a weight."""
    if isinstance(given, tuple | list) and len(given) == 2:
        inner = as_use(given[0])
        weight = given[1]
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise InputError(f"The weight of the use {inner.name!r} must be a number greater than 0.")
        return replace(inner, weight=float(weight))
    if isinstance(given, Use):
        return given
    if isinstance(given, str):
        return _by_name(given)
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        return Use(name, given, poles=_found_poles(given, name))
    raise InputError(f"A use is a name, a function or a pair (use, weight), not a {type(given).__name__}.")


@lru_cache(maxsize=256)  # the same name is the same use
def _by_name(name: str) -> Use:
    if name in _NAMED:
        return _NAMED[name]
    if name.startswith("power:"):
        try:
            exponent = float(name.removeprefix("power:"))
        except ValueError:
            exponent = math.nan
        if math.isfinite(exponent) and exponent != 0:
            return _power(exponent, name)
    raise InputError(
        f"There is no use {name!r}{nearest(name, _NAMED)}: take one of {', '.join(_NAMED)}, power:p, or a function."
    )


def as_uses(given: Any) -> tuple[Use, ...]:
    """One or several uses, each with a name of its own."""
    if isinstance(given, str) or callable(given):
        given = [given]
    uses = tuple(as_use(item) for item in given)
    if not uses:
        raise InputError("Say what the value will be used for, for instance uses=['identity'].")
    if len({use.name for use in uses}) < len(uses):
        raise InputError("Two uses have the same name: leave one out, or wrap a function as Use(name, function).")
    return uses


def checked_uses(uses: tuple[Use, ...], low: float, high: float, guard: float | None) -> None:
    """Refuses a use that breaks inside [low, high] unless a guard distance was given."""
    for use in uses:
        points = use.breaks(low, high)
        if points and guard is None:
            raise SchemaError(
                f"The use {use.name!r} is singular inside the domain [{low:g}, {high:g}], at {points[0]:.6g}. Narrow "
                "the domain, or give guard=… (values nearer than that are treated as lying there). Nothing was "
                "drawn or spent."
            )


def _found_poles(function: Function, name: str) -> Callable[[float, float], Sequence[float]]:
    """Poles of an unknown function: where it is not finite on a fine grid, or grows without end between two points."""
    bare = Use(name, function)

    def poles(low: float, high: float) -> Sequence[float]:
        grid = np.linspace(low, high, _GRID)
        values = bare(grid)
        broken = ~np.isfinite(values)
        if broken.any():
            return [float(point) for point in grid[broken]]
        size = float(np.abs(values).max()) + 1e-300
        jumps = np.argsort(-np.abs(np.diff(values)))[:4]
        ends = [_followed(bare, float(grid[at]), float(grid[at + 1])) for at in jumps]
        return sorted({place for place, reached in ends if not reached < 1e6 * size})[:1]

    return poles


def _followed(use: Use, left: float, right: float) -> tuple[float, float]:
    """Into the half with the larger jump, until floats end: where that leads, and how large the values become."""
    largest = 0.0
    for _ in range(60):
        middle = (left + right) / 2
        values = use(np.array([left, middle, right]))
        if not np.isfinite(values).all():
            return middle, math.inf
        largest = max(largest, float(np.abs(values).max()))
        if abs(values[1] - values[0]) > abs(values[2] - values[1]):
            right = middle
        else:
            left = middle
    return (left + right) / 2, largest
