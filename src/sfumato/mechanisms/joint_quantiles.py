"""Several quantiles of one variable, chosen together: the exponential mechanism over all ways to place them.

In:   numbers, the wanted quantiles, a public range, how many rows one individual may have.
Out:  one number for each quantile, non-decreasing, from a public grid; QuantilesEvent for the ledger.
Not here: the grid and its weights (quantile_grid.py), the exact draw (joint_paths.py).
Proof: docs/proofs/quantiles.md
Reference: Gillenwater, Joseph & Kulesza 2021, Thm 3.1, for replacing one row; adding and removing, ties and several
rows: the proof note.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import number, positive
from sfumato.core.events.quantiles import QuantilesEvent, checked_quantiles, gaps_of, quantiles_sensitivity
from sfumato.core.guarantee import Guarantee
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.joint_paths import JointPaths
from sfumato.mechanisms.mechanism import Mechanism, finite_array, kept
from sfumato.mechanisms.quantile_grid import QuantileGrid

__all__ = ["JointQuantiles", "rank_variances"]

#: A sharper choice would change nothing that can be seen, and its logarithms would lose their digits.
_SHARPEST = 1 / 64
_LONGEST_SCALE = 64.0


@dataclass(frozen=True)
class JointQuantiles(Mechanism):
    """Places for `quantiles` of at most `rows` rows an individual, within [low, high].

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> draw = JointQuantiles.for_guarantee(PureDP(2.0), 1, REPLACE_ONE, quantiles=(0.25, 0.5), low=0.0, high=10.0)
    >>> found = draw(np.linspace(0, 10, 2001))
    >>> bool(abs(found - [2.5, 5.0]).max() < 0.5)
    True
    """

    proof: ClassVar[str] = "quantiles"

    scale: float
    quantiles: tuple[float, ...] = (0.5,)
    low: float = 0.0
    high: float = 1.0
    rows: int = 1
    adjacency: Adjacency | None = None
    step: float | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        positive(self.scale, "scale")
        self.event()
        number(self.low, "low")
        number(self.high, "high")
        QuantileGrid.between(self.low, self.high, self.step)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        rows: float,
        adjacency: Adjacency,
        *,
        quantiles: tuple[float, ...] = (0.5,),
        low: float = 0.0,
        high: float = 1.0,
        step: float | None = None,
        random_state: int | None = None,
    ) -> JointQuantiles:
        """The sharpest choice whose pure ε keeps `guarantee` when one individual has at most `rows` rows."""
        most = positive(rows, "rows (the most rows of one individual)")
        if not most.is_integer():
            raise PrivacyParameterError("rows must be a whole number. Nothing was spent.")
        eps = largest_pure_epsilon(guarantee)
        relation = adjacency.relation if isinstance(adjacency, Adjacency) else "replace-one"
        move = quantiles_sensitivity(checked_quantiles(quantiles), int(most), relation)
        scale = max(float(2 * move / Fraction(eps)) * (1 + 1e-13), _SHARPEST)
        made = cls(scale, tuple(quantiles), low, high, int(most), adjacency, step, random_state)
        return kept(made, guarantee)

    def event(self) -> QuantilesEvent:
        return QuantilesEvent(
            self.quantiles,
            self.rows,
            self.scale,
            adjacency=self.adjacency,  # type: ignore[arg-type]  # the event refuses None with the way out
        )

    @cached_property
    def grid(self) -> QuantileGrid:
        """The public places."""
        return QuantileGrid.between(self.low, self.high, self.step)

    def error(self) -> float:
        """Mean squared distance in ranks of one quantile, where many rows are spread as the weights of the grid are."""
        return float(np.mean(rank_variances(len(self.quantiles), self.scale)))

    def __call__(self, values: Any) -> np.ndarray:
        return self.choose(finite_array(values).ravel())

    def choose(self, values: np.ndarray) -> np.ndarray:
        """The quantiles of finite numbers; of no numbers at all a draw from the public weights."""
        return self.grid.value_at(self.choose_cells(self.grid.cells_of(values)))

    def choose_cells(self, cells: np.ndarray) -> np.ndarray:
        """The same among the places of the grid, of rows that lie at places."""
        (points,) = self._path_through(cells).draw(1, self._bits())
        return self.grid.cells_at(points)

    def sample(self, value: Any, trials: int) -> np.ndarray:
        """Points within the weights of the grid: what is drawn before it is read as a number."""
        return self._paths(finite_array(value).ravel()).draw(trials, self._bits())

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        return self._paths(finite_array(value).ravel()).log_likelihood(outputs)

    def _paths(self, values: np.ndarray) -> JointPaths:
        return self._path_through(self.grid.cells_of(values))

    def _path_through(self, cells: np.ndarray) -> JointPaths:
        points = self.grid.points_of(cells)
        return JointPaths(points, self.grid.total, gaps_of(self.quantiles), self.scale)


@lru_cache(maxsize=256)
def rank_variances(count: int, scale: float) -> np.ndarray:
    """Variance of the rank of each of `count` quantiles, where all stretches between rows are alike.

    The rank is a sum of `j` steps of law ∝ exp(-|d|/scale), given that all count + 1 steps end where they should.

    >>> rank_variances(1, 4.0).round(2).tolist()  # P(d) ∝ exp(-2|d|/scale)
    [7.84]
    """
    if scale > _LONGEST_SCALE:
        return rank_variances(count, _LONGEST_SCALE) * (scale / _LONGEST_SCALE) ** 2
    size = 1 << int(np.ceil(np.log2(80 * max(scale, 1.0) * np.sqrt(count + 1) + 64)))
    ranks = np.fft.fftfreq(size, 1 / size)
    step = np.fft.rfft(np.exp(-np.abs(ranks) / scale))
    step /= step[0].real
    found = []
    for before in range(1, count + 1):
        ways = [np.maximum(np.fft.irfft(step**steps, size), 0.0) for steps in (before, count + 1 - before)]
        law = ways[0] * ways[1]
        found.append(float((law * ranks**2).sum() / law.sum()))
    return np.array(found)
