"""A linear question about people's numbers, read and checked: who owns which column of A, and how far it can move.

In:   the matrix, the ranges, the owners, the weights as users write them.
Out:  Question, with equal columns told apart once and people alike counted once.
Not here: placing the noise (plan/linear/query.py). All of this is public; nothing here sees data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.core.checks import round_up
from sfumato.errors import InputError, SchemaError
from sfumato.plan.linear.working_set import Changes

__all__ = ["LinearQuestion", "read_question", "same_directions", "separation"]

_SMALLEST, _LARGEST = 1e-30, 1e30
_NOTHING = "Nothing was drawn or spent."


@dataclass(frozen=True, eq=False)
class LinearQuestion:
    """Publish matrix·x, where person p may change x_k for k in people[p] anywhere between low_k and low_k + width_k.

    `people` lists only coordinates that move something: positive width and a column that is not zero.
    """

    matrix: np.ndarray
    low: np.ndarray
    width: np.ndarray
    weights: np.ndarray
    people: tuple[tuple[int, ...], ...]

    @cached_property
    def active(self) -> np.ndarray:
        """The coordinates that move something, in order."""
        return np.sort(np.fromiter((k for person in self.people for k in person), dtype=int))

    @cached_property
    def rows(self) -> np.ndarray:
        """The outputs that depend on somebody."""
        return np.flatnonzero((self.matrix[:, self.active] != 0).any(axis=1))

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, dict[int, int]]:
        seen: dict[bytes, int] = {}
        number = {}
        for k, column in zip(self.active, np.ascontiguousarray(self.matrix[:, self.active].T), strict=True):
            number[int(k)] = seen.setdefault(column.tobytes(), len(seen))
        first = {at: k for k, at in reversed(number.items())}
        return self.matrix[:, [first[at] for at in range(len(seen))]], number

    @property
    def columns(self) -> np.ndarray:
        """The different columns of the active coordinates."""
        return self._distinct[0]

    @property
    def column_of(self) -> dict[int, int]:
        """Active coordinate -> its column among the different ones."""
        return self._distinct[1]

    @cached_property
    def kinds(self) -> tuple[tuple[int, dict[int, float]], ...]:
        """How many people are alike, and by how much one of them can move each different column.

        Of people who own one column each, the widest stands for all; two coordinates of one person on the same column
        can only do what one of their joint width can.
        """
        number = self.column_of
        counts: Counter[tuple[tuple[int, float], ...]] = Counter()
        alone: dict[int, list[float]] = {}
        for person in self.people:
            reach: dict[int, list[float]] = {}
            for k in person:
                reach.setdefault(number[k], []).append(float(self.width[k]))
            if len(reach) == 1:
                (column, widths) = next(iter(reach.items()))
                alone.setdefault(column, []).append(_sum_above(widths))
            else:
                counts[tuple(sorted((column, _sum_above(widths)) for column, widths in reach.items()))] += 1
        singles = [(len(widths), {column: max(widths)}) for column, widths in alone.items()]
        return (*singles, *((count, dict(key)) for key, count in counts.items()))

    @cached_property
    def changes(self) -> Changes:
        """What people can do to the outputs in `rows`, for the solver."""
        columns = self.columns[self.rows]
        singles = [columns[:, at] * width for _, move in self.kinds if len(move) == 1 for at, width in move.items()]
        stacked = np.column_stack(singles) if singles else np.empty((len(self.rows), 0))
        widest = [
            max(group, key=lambda at: float(np.linalg.norm(stacked[:, at]))) for group in same_directions(stacked)
        ]
        boxes = [move for _, move in self.kinds if len(move) > 1]
        return Changes(stacked[:, widest], tuple(columns[:, list(box)] * np.array(list(box.values())) for box in boxes))


def _sum_above(widths: Sequence[float]) -> float:
    return widths[0] if len(widths) == 1 else round_up(math.fsum(widths), 1e-15)


def same_directions(columns: np.ndarray) -> list[list[int]]:
    """Groups of columns that are multiples of each other to about twelve digits."""
    norms = np.linalg.norm(columns, axis=0)
    units = np.divide(columns, norms, out=np.zeros_like(columns), where=norms > 0)
    leading = np.argmax(np.abs(units) > 1e-3 / math.sqrt(max(1, len(units))), axis=0) if units.size else []
    signs = [1.0 if units[at, k] >= 0 else -1.0 for k, at in enumerate(leading)]
    groups: dict[bytes, list[int]] = {}
    for k, unit in enumerate((np.round(units * signs, 12) + 0.0).T):
        groups.setdefault(unit.tobytes(), []).append(k)
    return list(groups.values())


def read_question(matrix: Any, ranges: Any, owners: Any = None, weights: Any = None) -> LinearQuestion:
    """The checked form of what `place_noise` is given. Entries of A below 1e-30 of the largest count as 0.

    >>> asked = read_question([[1.0, 1.0, 2.0]], [1.0, 2.0, 1.0], owners=["Ann", "Ann", "Bo"])
    >>> asked.people
    ((0, 1), (2,))
    """
    array = _numbers(matrix, "The matrix A", 2)
    outputs, inputs = array.shape
    largest = np.abs(array).max()
    _sizes(largest[None], "The largest entry of A")
    array = np.where(np.abs(array) < 1e-30 * largest, 0.0, array)  # also makes one zero of 0 and -0
    low, width = _ranges(ranges, inputs)
    _sizes(width, "The width of a range")
    given = np.ones(outputs) if weights is None else _numbers(weights, "weights", 1)
    if given.shape != (outputs,) or not (given > 0).all():
        raise InputError(f"weights needs one positive number for each of the {outputs} outputs. {_NOTHING}")
    _sizes(given, "A weight")
    moving = (width > 0) & (array != 0).any(axis=0)
    people = tuple(kept for person in _owners(owners, inputs) if (kept := tuple(k for k in person if moving[k])))
    if not people:
        raise InputError("No output depends on anybody: A or every range is zero. Publish without noise.")
    return LinearQuestion(array, low, width, given, people)


def _numbers(values: Any, name: str, dimensions: int) -> np.ndarray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != dimensions or array.size == 0:
        kind = "a rectangular table" if dimensions == 2 else "a list"
        raise InputError(f"{name} must be {kind} of numbers. {_NOTHING}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} contains NaN or infinity. {_NOTHING}")
    return array


def _sizes(array: np.ndarray, name: str) -> None:
    sizes = np.abs(array[array != 0])
    if sizes.size and not (float(sizes.min()) >= _SMALLEST and float(sizes.max()) <= _LARGEST):
        raise InputError(f"{name} must be 0 or between 1e-30 and 1e30 in size. Choose another unit. {_NOTHING}")


def _ranges(ranges: Any, inputs: int) -> tuple[np.ndarray, np.ndarray]:
    try:
        array = np.array(ranges, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if array.ndim == 0:
        array = np.full(inputs, float(array))
    if not np.isfinite(array).all():
        raise SchemaError(
            "Every coordinate needs a bounded range: a width, or (low, high), of finite numbers. An unbounded value "
            f"can move the output by any amount; clip it to public bounds. {_NOTHING}"
        )
    if array.shape == (inputs,):
        array = np.column_stack([np.zeros(inputs), array])
    if array.shape != (inputs, 2):
        raise SchemaError(
            f"ranges needs one width or one (low, high) for each of the {inputs} columns of A. {_NOTHING}"
        )
    width = array[:, 1] - array[:, 0]
    if not (width >= 0).all():
        raise SchemaError(f"A range ends before it begins. {_NOTHING}")
    return array[:, 0], width


def _owners(owners: Any, inputs: int) -> list[list[int]]:
    if owners is None:
        return [[k] for k in range(inputs)]
    if isinstance(owners, Mapping):
        if set(owners) != set(range(inputs)):
            raise SchemaError(f"owners must name a person for each coordinate 0 to {inputs - 1}. {_NOTHING}")
        owners = [owners[k] for k in range(inputs)]
    try:
        named: list[Hashable] = list(owners)
        together: dict[Hashable, list[int]] = {}
        for k, person in enumerate(named):
            together.setdefault(person, []).append(k)
    except TypeError:
        raise SchemaError(f"owners must be a list of persons, one for each column of A. {_NOTHING}") from None
    if len(named) != inputs or any(map(_missing, together)):
        raise SchemaError(f"owners needs one person for each of the {inputs} columns of A. {_NOTHING}")
    return list(together.values())


def _missing(person: Hashable) -> bool:
    """Nobody known: such coordinates may belong to one and the same person."""
    return person is None or (isinstance(person, float) and math.isnan(person))


def _check_covariance(matrix: list[list[Fraction]], size: int) -> None:
    if any(len(row) != size for row in matrix) or len(matrix) != size:
        raise InputError("A covariance is square and a change has one number for each output.")
    if any(matrix[i][j] != matrix[j][i] for i in range(size) for j in range(i)):
        raise InputError("A covariance is symmetric.")


def separation(covariance: Any, change: Any) -> Fraction | float:
    """ΔᵀΣ⁻¹Δ in rational arithmetic: the μ² of seeing noise N(0, Σ) on outputs that one change moves by Δ.

    Infinite where Δ has a part in a direction without noise; a pseudo-inverse would call that 0.

    >>> separation([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    Fraction(3, 1)
    >>> separation([[1.0, 1.0], [1.0, 1.0]], [1.0, -1.0])
    inf
    """
    matrix = [[Fraction(float(cell)) for cell in row] for row in covariance]
    rest = [Fraction(float(cell)) for cell in change]
    _check_covariance(matrix, len(rest))
    total: Fraction | float = Fraction(0)
    for k in range(len(rest)):
        pivot = matrix[k][k]
        if pivot < 0 or (pivot == 0 and any(matrix[k][k:])):
            raise InputError("This is no covariance: some direction would have a negative variance.")
        if pivot == 0:
            if rest[k]:
                total = math.inf
            continue
        total += rest[k] ** 2 / pivot
        _eliminate(matrix, rest, k)
    return total


def _eliminate(matrix: list[list[Fraction]], rest: list[Fraction], k: int) -> None:
    """One step of Gaussian elimination, of the rows below the pivot k."""
    for i in range(k + 1, len(rest)):
        factor = matrix[i][k] / matrix[k][k]
        rest[i] -= factor * rest[k]
        for j in range(k + 1, len(rest)):
            matrix[i][j] -= factor * matrix[k][j]
