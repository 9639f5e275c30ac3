"""Choose a candidate with probability ∝ exp(score/scale).

In:   scores of bounded sensitivity, higher is better.
Out:  the number of the chosen candidate; SelectionEvent for the ledger.
Not here: the flips (selection.py).
Proof: docs/proofs/exponential.md
Reference: McSherry & Talwar 2007, Thm 6. PermuteAndFlip is never worse at the same ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.mechanisms.selection import Flips, Selection, score_gaps

__all__ = ["Exponential"]


@dataclass(frozen=True)
class Exponential(Selection):
    """Selects among candidates by scores; `scale` = 2·sensitivity/ε.

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> choose = Exponential.for_guarantee(PureDP(8.0), 1.0, REPLACE_ONE)
    >>> choose([0.0, 100.0, 3.0])
    1
    """

    proof: ClassVar[str] = "exponential"
    rule: ClassVar[Literal["permute-and-flip", "exponential"]] = "exponential"

    def error(self) -> float:
        """Squared expected score loss with two candidates at the worst gap; k candidates lose at most ln(k) scales."""
        gaps = np.linspace(0, 10, 2001)
        return float((self.scale * (gaps / (1 + np.exp(gaps))).max()) ** 2)

    def sample(self, value: Any, trials: int) -> np.ndarray:
        """Propose uniformly and accept with probability exp(-gap/scale): exact, at most k proposals expected."""
        bits = self._bits()
        gaps = score_gaps(value, self.grid)
        flips = Flips(gaps, self.grid, self.scale, bits)
        chosen = np.full(trials, -1, dtype=np.int64)
        waiting = np.arange(trials)
        while waiting.size:
            proposals = bits.below(gaps.size, waiting.size)
            heads = flips(proposals)
            chosen[waiting[heads]] = proposals[heads]
            waiting = waiting[~heads]
        return chosen

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        logits = -score_gaps(value, self.grid) * (self.grid / self.scale)
        return (logits - np.log(np.exp(logits).sum()))[outputs]
