"""Gaussian noise on a linear strategy: the record that lets anybody compute its sensitivity again.

In:   for every person the widths of their coordinates and the columns of the strategy matrix B they move.
Out:  LinearGaussianEvent with its sensitivity, rounded up by a rigorous bound on floating-point error, and its μ.
Not here: choosing B (plan/linear/query.py), drawing (mechanisms/gaussian.py), the second computation in exact integers
      (evidence/losses.py).
Proof: docs/proofs/linear_placement.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.core.checks import at_least_zero, positive, round_up
from sfumato.core.events.event import Event
from sfumato.core.guarantee import GaussianDP
from sfumato.errors import PrivacyParameterError

__all__ = [
    "MOST_VERTICES_OF",
    "LinearGaussianEvent",
    "Person",
    "half_vertices",
    "linear_sensitivity",
    "person_sensitivity",
]

#: People with more coordinates than this get the safe bound: the box has 2^(coordinates-1) vertices up to sign.
MOST_VERTICES_OF = 12
#: Entries are 0 or lie between these, so that no product or square underflows or overflows.
_SMALLEST, _LARGEST = 1e-100, 1e100
_UNIT = 2.0**-53

#: How many people are alike, the widths of one's coordinates, and one column of the strategy for each coordinate.
Person = tuple[int, tuple[float, ...], tuple[tuple[float, ...], ...]]


@lru_cache(maxsize=MOST_VERTICES_OF)
def half_vertices(size: int) -> np.ndarray:
    """All sign patterns of this length up to a common sign, one a row.

    >>> half_vertices(2)
    array([[ 1.,  1.],
           [ 1., -1.]])
    """
    patterns = (np.arange(1 << (size - 1))[:, None] >> np.arange(size - 1)) & 1
    return np.hstack([np.ones((len(patterns), 1)), 1.0 - 2.0 * patterns])


def _accumulated(terms: int) -> float:
    """γ = ku/(1-ku): the relative error of k rounded operations in any order (Higham 2002, Lemma 3.1)."""
    return 1.01 * terms * _UNIT


def person_sensitivity(widths: Any, columns: Any) -> float:
    """An upper bound of max ‖Σ ±t_k b_k‖₂ over |t_k| ≤ widths: the vertices, or √Σ|b_k·b_l|w_k w_l for large families.

    The norm is convex, so its maximum over a box is at a vertex. All rounding errors are added.

    >>> person_sensitivity([1.0, 1.0], [[3.0, 0.0], [0.0, 4.0]])
    5.00000000000...
    """
    scaled = np.asarray(columns, dtype=float) * np.asarray(widths, dtype=float)[:, None]
    owned, rows = scaled.shape
    sizes = np.abs(scaled)
    if owned > MOST_VERTICES_OF:
        products = np.abs(scaled @ scaled.T) + _accumulated(rows + 2) * (sizes @ sizes.T)
        return round_up(math.sqrt(float(products.sum()) * (1 + _accumulated(owned * owned + rows + 4))), 1e-15)
    images = half_vertices(owned) @ scaled
    largest = math.sqrt(float(np.einsum("ij,ij->i", images, images).max()))
    errors = math.sqrt(float(np.square(sizes.sum(axis=0)).sum())) * _accumulated(owned + 2)
    return round_up((largest + errors) * (1 + _accumulated(rows + 4)), 1e-15)


def linear_sensitivity(people: Iterable[Person], coordinates: int) -> tuple[float, float, int]:
    """Largest L2 distance of B·x as computed between neighbours, what of it is arithmetic, and in how many rows.

    Arithmetic is twice γ‖|B|w‖ ≤ 2γ Σ w_k‖b_k‖, the error of B·x and of B·x'.

    >>> worst, arithmetic, rows = linear_sensitivity([(5, (2.0,), ((3.0, 4.0),))], 5)
    >>> round(worst, 9), arithmetic < 1e-12, rows
    (10.0, True, 2)
    """
    worst, reach, most = 0.0, 0.0, 0
    alone: dict[int, list[tuple[int, float, tuple[float, ...]]]] = {}
    for count, widths, columns in people:
        rows = len(columns[0])
        most = max(most, rows)
        if len(widths) == 1:
            alone.setdefault(rows, []).append((count, widths[0], columns[0]))
            continue
        worst = max(worst, person_sensitivity(widths, columns))
        reach += count * float(np.dot(np.linalg.norm(np.asarray(columns), axis=1), widths))
    for rows, singles in alone.items():
        norms = np.linalg.norm(np.array([column for *_, column in singles]), axis=1)
        sizes = norms * np.array([width for _, width, _ in singles])
        worst = max(worst, round_up(float(sizes.max()) * (1 + _accumulated(rows + 6)), 1e-15))
        reach += float(np.dot(sizes, [float(count) for count, *_ in singles]))
    arithmetic = 2 * _accumulated(coordinates + 2) * reach * (1 + 1e-9)
    return round_up(worst + arithmetic, 1e-15), arithmetic, most


@dataclass(frozen=True)
class LinearGaussianEvent(Event):
    """B·x rounded to `grid` plus N(0, scale²) on each number, where one person moves their own coordinates of x.

    `people` has an entry for each kind of person: how many are alike, the widths of the person's coordinates and the
    columns of B that belong to them, without the rows that are zero in all of them. People who own one coordinate each
    on the same column share an entry with the largest width. `coordinates` counts all of x; B·x is computed in floating
    point, and what that can add to the distance of neighbours is part of the sensitivity.

    >>> from sfumato.core.adjacency import REPLACE_ONE
    >>> mean = LinearGaussianEvent(((100, (1.0,), ((0.01,),)),), 100, 0.02, adjacency=REPLACE_ONE)
    >>> round(mean.mu, 9)
    0.5
    """

    proof: ClassVar[str] = "linear_placement"

    people: tuple[Person, ...]
    coordinates: int
    scale: float
    grid: float = 0.0

    def _check(self) -> None:
        object.__setattr__(self, "people", tuple(map(_person, _listed(self.people))))
        if not self.people:
            raise PrivacyParameterError("A value nobody influences needs no noise. Nothing was spent.")
        _count(self.coordinates, "coordinates")
        if self.coordinates > 1 << 40:
            raise PrivacyParameterError("More than 2^40 coordinates are not read.")
        positive(self.scale, "scale")
        at_least_zero(self.grid, "grid")

    @property
    def rule(self) -> Literal["vertices", "safe bound"]:
        """How the worst change of one person was found: exactly, or bounded for somebody with many coordinates."""
        return "safe bound" if any(len(widths) > MOST_VERTICES_OF for _, widths, _ in self.people) else "vertices"

    @cached_property
    def _bounds(self) -> tuple[float, float, int]:
        return linear_sensitivity(self.people, self.coordinates)

    @property
    def sensitivity(self) -> float:
        """Largest L2 distance of B·x as computed between neighbours."""
        return self._bounds[0]

    @property
    def arithmetic(self) -> float:
        """What floating point can add to the distance of B·x and B·x'; part of the sensitivity."""
        return self._bounds[1]

    @property
    def dimension(self) -> int:
        """How many of the published numbers one person can change."""
        return self._bounds[2]

    @property
    def mu(self) -> float:
        return round_up((self.sensitivity + self.grid * math.sqrt(self.dimension)) / self.scale, 1e-15)

    def guarantee(self) -> GaussianDP:
        return GaussianDP(self.mu, adjacency=self.adjacency)

    def to_dict(self) -> dict[str, Any]:
        people = [[count, list(widths), [list(column) for column in columns]] for count, widths, columns in self.people]
        return {**super().to_dict(), "people": people}


def _person(record: Any) -> Person:
    count, widths, columns = _listed(record)
    _count(count, "the number of people alike")
    widths, columns = _numbers(widths), tuple(map(_numbers, _listed(columns)))
    if not widths or len(widths) != len(columns) or len({len(column) for column in columns}) != 1 or not columns[0]:
        raise PrivacyParameterError("A person needs one width and one column of the same length for each coordinate.")
    if min(widths) <= 0 or not any(map(any, columns)):
        raise PrivacyParameterError("A person who moves nothing has no place in a linear event.")
    return count, widths, columns


def _listed(record: Any) -> tuple[Any, ...]:
    if not isinstance(record, list | tuple):
        raise PrivacyParameterError("The people of a linear event are lists: [count, widths, columns].")
    return tuple(record)


def _numbers(values: Iterable[Any]) -> tuple[float, ...]:
    numbers = _listed(values)
    if all(type(value) is float for value in numbers):
        sizes = [abs(value) for value in numbers if value != 0]  # NaN is not 0
        if not sizes or (min(sizes) >= _SMALLEST and max(sizes) <= _LARGEST and not any(map(math.isnan, sizes))):
            return numbers
    raise PrivacyParameterError(
        "Widths and columns of a linear event are decimals, 0 or of a size between 1e-100 and 1e100."
    )


def _count(value: Any, name: str) -> None:
    if type(value) is not int or value < 1:
        raise PrivacyParameterError(f"{name} must be a whole number of at least 1.")
