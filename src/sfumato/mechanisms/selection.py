"""What the two selection rules share: calibration, scores on a grid, exact coin flips.

In:   scores (higher is better), their sensitivity, a temperature.
Out:  the abstract Selection; exact Bernoulli(exp(-gap/scale)) flips, vectorised.
Not here: the rules (permute_and_flip.py, exponential.py).
Proof: docs/proofs/permute_and_flip.md, docs/proofs/exponential.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive
from sfumato.core.events.event import SelectionEvent
from sfumato.core.guarantee import Guarantee
from sfumato.errors import DataError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.exact import Enclosure, LazyUniform, bernoulli, exp_enclosure
from sfumato.mechanisms.grid import nearest_cell, on_grid, public_grid
from sfumato.mechanisms.mechanism import NO_INFLUENCE, Mechanism, exact_array, kept

__all__ = ["Flips", "Selection", "score_gaps"]

_GUARD = 2.0**-40


def score_gaps(scores: Any, grid: float) -> np.ndarray:
    """How many cells each score lies below the best."""
    array = exact_array(scores, "scores")
    if array.ndim != 1:
        raise DataError("scores must be one-dimensional, one number per candidate. Nothing was drawn.")
    if array.dtype.kind != "f":
        cells = [nearest_cell(Fraction(score), grid) for score in array.tolist()]
        return np.array([min(max(cells) - cell, 1 << 62) for cell in cells], dtype=np.float64)
    placed = on_grid(array, grid)
    with np.errstate(over="ignore"):
        gaps = (placed.max() - placed) / grid  # differences of multiples of the grid: exact up to 2^53 cells
    # A gap of 2^62 cells is more than 2^14 scales, and never chosen. Clipping is 1-Lipschitz.
    return np.minimum(gaps, 2.0**62)


class Flips:
    """Coins that land heads with probability exp(-gap·grid/scale), exactly."""

    def __init__(self, gaps: np.ndarray, grid: float, scale: float, bits: Bits) -> None:
        self._gaps, self._step, self._bits = gaps, Fraction(grid) / Fraction(scale), bits
        self._chance = np.exp(-np.minimum(gaps * (grid / scale), 800.0))

    def __call__(self, candidates: np.ndarray) -> np.ndarray:
        """One flip for every entry of an array of candidate numbers."""
        flat = candidates.reshape(-1)
        words = self._bits.words(flat.size)
        uniform, chance = words.astype(np.float64) * 2.0**-64, self._chance[flat]
        heads = uniform < chance
        # 2^-63 covers the bits not drawn yet and the rounding of the word to a float.
        unsure = np.abs(uniform - chance) <= _GUARD * chance + 2.0**-50 * uniform + 2.0**-63
        for position in np.flatnonzero(unsure):
            heads[position] = self._exactly(int(flat[position]), int(words[position]))
        return heads.reshape(candidates.shape)

    def _exactly(self, candidate: int, word: int) -> bool:
        exponent = -int(self._gaps[candidate]) * self._step

        def probability(length: int) -> Enclosure:
            if exponent == 0:
                return Fraction(1), Fraction(1)
            return exp_enclosure(exponent, exponent, length // 3 + 12)

        return bernoulli(LazyUniform(self._bits, word, 64), probability)


@dataclass(frozen=True)
class Selection(Mechanism):
    """Chooses a candidate by scores; `scale` = 2·sensitivity/ε. Abstract."""

    rule: ClassVar[Literal["permute-and-flip", "exponential"]]

    scale: float
    sensitivity: float = math.nan
    adjacency: Adjacency | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        positive(self.scale, "scale")
        positive(self.sensitivity, "sensitivity", NO_INFLUENCE)
        self.event()

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, sensitivity: float, adjacency: Adjacency, *, random_state: int | None = None
    ) -> Self:
        """The sharpest choice whose pure ε keeps `guarantee`, the cost of rounding the scores included."""
        eps = largest_pure_epsilon(guarantee)
        sensitivity = positive(sensitivity, "sensitivity", NO_INFLUENCE)
        scale = 2 * sensitivity / eps
        for _ in range(4):
            scale = 2 * (sensitivity + public_grid(scale, sensitivity, 1.0)) / eps * (1 + 1e-13)
        return kept(cls(scale, sensitivity, adjacency, random_state), guarantee)

    @property
    def grid(self) -> float:
        return public_grid(self.scale, self.sensitivity, 1.0)

    def event(self) -> SelectionEvent:
        return SelectionEvent(
            self.rule,
            self.sensitivity,
            self.scale,
            self.grid,
            adjacency=self.adjacency,  # type: ignore[arg-type]  # the event refuses None with the way out
        )

    def __call__(self, values: Any) -> int:
        return int(self.sample(values, 1)[0])
