"""How far noise in a published table can move a machine that is trained on it: an explicit bound.

In:   the published noise law, the strength of regularisation, the public length of rows, the loss.
Out:  MachineBound: how far the coefficients move at most on average, and with a stated confidence.
Not here: training (release/svm.py, scikit-learn), learners that correct for the noise (release/aware_*.py).
Proof: docs/proofs/table_release.md, "How far noise moves a machine"
Reference: in place of Farokhi 2020, Props 2.3 and 2.11, whose constants cannot be computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.core.checks import positive
from sfumato.errors import InputError
from sfumato.release.noise import TableNoise

__all__ = ["MachineBound", "machine_bound"]

#: Loss at margin 0 and largest curvature; slopes are at most 1. Huber's half width is 1/2.
_LOSSES = {"logistic": (math.log(2), 0.25), "huber": (1.0, 1.0)}


@dataclass(frozen=True)
class MachineBound:
    """‖ŵ - w‖ ≤ `factor`·(mean length of the noise in a row); ŵ is trained on noisy rows, w on true ones."""

    factor: float
    expected: float
    longest: float
    within: float
    failure: float

    def __str__(self) -> str:
        return (
            f"Coefficients trained on this table are within {self.within:.3g} of those of the true rows with "
            f"{100 * (1 - self.failure):g} % confidence (on average within {self.expected:.3g}); the true ones are no "
            f"longer than {self.longest:.3g}."
            + (" That says nothing: they may differ by their whole length." if self.within >= self.longest else "")
        )


def machine_bound(
    noise: TableNoise | Any,
    *,
    regularization: float,
    norm: float,
    records: int,
    loss: Literal["logistic", "huber"] = "huber",
    failure: float = 0.05,
) -> MachineBound:
    """For mean loss(y·⟨w, x⟩) + ½·regularization·‖w‖² over `records` rows of length at most `norm`; no free offset.

    `noise` is the law of a released table, or a covariance in the rows' own units.

    >>> bound = machine_bound(np.eye(3) * 1e-6, regularization=0.1, norm=1.0, records=1000)
    >>> round(bound.expected, 3) < round(bound.within, 3) < bound.longest
    True
    """
    strength, norm, records_ = positive(regularization, "regularization"), positive(norm, "norm"), int(records)
    if loss not in _LOSSES or not 0 < failure < 1 or records_ < 1:
        raise InputError("loss must be 'logistic' or 'huber', failure lie in (0, 1), records be at least 1.")
    covariance = noise.covariance if isinstance(noise, TableNoise) else np.asarray(noise, dtype=float)
    if isinstance(noise, TableNoise) and noise.clipped:
        raise InputError("The table was clipped after the noise was added: the noise is no longer that of its law.")
    at_zero, curvature = _LOSSES[loss]
    longest = min(norm / strength, math.sqrt(2 * at_zero / strength))
    factor = (1 + curvature * longest * norm) / strength
    length = math.sqrt(float(np.trace(np.atleast_2d(covariance))))
    within = factor * length * (1 + 1 / math.sqrt(records_ * failure))
    return MachineBound(factor, factor * length, longest, within, failure)
