"""Choose the best candidate privately: visit in random order, take one with probability exp(-gap/scale).

In:   scores of bounded sensitivity, higher is better.
Out:  the number of the chosen candidate; SelectionEvent for the ledger.
Not here: the flips (selection.py).
Proof: docs/proofs/permute_and_flip.md
Reference: McKenna & Sheldon 2020: never worse than the exponential mechanism at the same ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.mechanisms.selection import Flips, Selection, score_gaps

__all__ = ["PermuteAndFlip"]


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Selects among candidates by scores; `scale` = 2·sensitivity/ε.

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> choose = PermuteAndFlip.for_guarantee(PureDP(8.0), 1.0, REPLACE_ONE)
    >>> choose([0.0, 100.0, 3.0])
    1
    """

    proof: ClassVar[str] = "permute_and_flip"
    rule: ClassVar[Literal["permute-and-flip", "exponential"]] = "permute-and-flip"

    def error(self) -> float:
        """Squared expected score loss with two candidates at the worst gap; k candidates lose at most ln(k) scales."""
        return (self.scale * math.exp(-1) / 2) ** 2

    def sample(self, value: Any, trials: int) -> np.ndarray:
        bits = self._bits()
        gaps = score_gaps(value, self.grid)
        order = _random_orders(gaps.size, trials, bits)
        heads = Flips(gaps, self.grid, self.scale, bits)(order)
        # The best candidate always lands heads, so there is a first one in every row.
        return order[np.arange(trials), heads.argmax(axis=1)]

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        """By the equivalent form: the largest of score + exponential noise of this scale (Ding et al. 2021)."""
        gaps = score_gaps(value, self.grid) * (self.grid / self.scale)

        def density(x: float) -> np.ndarray:
            below = -np.expm1(-np.maximum(x + gaps[None, :] - gaps[:, None], 0.0))
            np.fill_diagonal(below, 1.0)
            return np.exp(-x) * below.prod(axis=1)

        from scipy.integrate import quad_vec  # slow to load, needed for predictions only

        chance = quad_vec(density, 0.0, float(gaps.max()) + 50.0, epsabs=1e-12, points=np.unique(gaps))[0]
        return np.log(np.maximum(chance, 1e-300))[outputs]


def _random_orders(size: int, trials: int, bits: Any) -> np.ndarray:
    """Uniform permutations, one a row: ranks of random words, drawn again in the rows where two are equal."""
    words = bits.words(trials * size).reshape(trials, size)
    while True:
        ordered = np.sort(words, axis=1)
        ties = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not ties.size:
            return words.argsort(axis=1)
        words[ties] = bits.words(ties.size * size).reshape(ties.size, size)
