"""How strong a ridge a noisy regression wants, or that it wants no coefficients at all: by published numbers alone.

In:   noisy sums of products and the deviation of their noise.
Out:  coefficients; zeros where no strength promises a gain beyond doubt.
Not here: the release (learn/linear.py), the solution of a given strength (mechanisms/noisy_sums.py).
Proof: docs/proofs/sufficient_statistics.md, "How much to trust the products"

With b = (S + ν)⁻¹c for noisy S and c, the fall of the training error is estimated without bias by Stein's identity:

    gain(ν) = 2b·c - b·Sb - 2σ² tr A - σ²(tr A |b|² + b·Ab),   A = (S + ν)⁻¹,

and its noise for a given b has the deviation σ√(4|b|² + |b|⁴). The strength with the largest gain less one deviation is
taken if at some strength the gain exceeds 2.5 deviations; otherwise the features are left alone.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh

__all__ = ["chosen_ridge"]

#: Deviations that are taken off every gain when strengths are compared, and that one gain must exceed.
_CAUTION, _PROOF = 1.0, 2.5
_STRENGTHS = 100


def chosen_ridge(gram: np.ndarray, product: np.ndarray, deviation: float) -> tuple[np.ndarray, float]:
    """The coefficients and their strength; zeros and infinity if nothing can be said of any.

    >>> some, _ = chosen_ridge(np.diag([1000.0, 1000.0]), np.array([500.0, -500.0]), 5.0)
    >>> [round(float(weight), 2) for weight in some]
    [0.5, -0.5]
    >>> chosen_ridge(np.diag([10.0, 10.0]), np.array([5.0, -5.0]), 5.0)[1]
    inf
    """
    values, vectors = eigh(gram)
    along = vectors.T @ product
    usual = deviation * (math.sqrt(2 * len(product)) + 2.72)
    strengths = np.geomspace(deviation, 1e6 * usual, _STRENGTHS)
    strengths = strengths[values[0] + strengths >= deviation]
    inverse = 1 / (values + strengths[:, None])
    weights = along * inverse
    squares, trace = (weights * weights).sum(axis=1), inverse.sum(axis=1)
    gains = 2 * weights @ along - (weights * weights) @ values
    gains -= deviation**2 * (2 * trace + trace * squares + (weights * weights * inverse).sum(axis=1))
    doubts = deviation * np.sqrt(4 * squares + squares * squares)
    best = int(np.argmax(gains - _CAUTION * doubts)) if strengths.size else 0
    if not (gains > _PROOF * doubts).any() or gains[best] <= _CAUTION * doubts[best]:
        return np.zeros_like(product), math.inf
    return vectors @ weights[best], float(strengths[best])
