"""How strong a ridge a noisy regression wants, or that it wants no coefficients at all: by published numbers alone.

In:   noisy sums of products and the deviation of their noise; the variance of the targets and the number of records.
Out:  coefficients; zeros where no strength promises a gain beyond doubt.
Not here: the release (learn/linear.py), the solution of a given strength (mechanisms/noisy_sums.py).
Proof: docs/proofs/sufficient_statistics.md, "How much to trust the products"

With b = (S + ν)⁻¹c for noisy S and c, the fall of the training error is estimated without bias by Stein's identity:

    gain(ν) = 2b·c - b·Sb - 2σ² tr A - σ²(tr A |b|² + b·Ab),   A = (S + ν)⁻¹,

and its noise for a given b has the deviation σ√(4|b|² + |b|⁴). Of that fall, 2v tr AS is what the coefficients learn of
these records alone, for residuals of variance v (Mallows 1973); without it, gain(ν) is the fall of the error on as many
fresh records, and chance in the records adds 2√(v·b·Sb) to its deviation. The strength with the largest gain less half
a deviation is taken if at some strength the gain exceeds 2.5 deviations of the noise and one of the records together;
otherwise the features are left alone.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh

__all__ = ["chosen_ridge"]

#: Deviations that are taken off every gain when strengths are compared.
_CAUTION = 0.5
#: Deviations, of the noise and of chance in the records, whose joint length one gain must exceed.
_PROOF, _PROOF_OF_RECORDS = 2.5, 1.0
_STRENGTHS = 100


def chosen_ridge(
    gram: np.ndarray, product: np.ndarray, deviation: float, variance: float = 0.0, records: float = math.inf
) -> tuple[np.ndarray, float]:
    """The coefficients and their strength; zeros and infinity if nothing can be said of any.

    `variance` is that of the targets, 0 where only these records matter.

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
    if not strengths.size:
        return np.zeros_like(product), math.inf
    inverse = 1 / (values + strengths[:, None])
    weights = along * inverse
    squares, trace = (weights * weights).sum(axis=1), inverse.sum(axis=1)
    explained = (weights * weights) @ values
    gains = 2 * weights @ along - explained
    gains -= deviation**2 * (2 * trace + trace * squares + (weights * weights * inverse).sum(axis=1))
    noise = deviation * np.sqrt(4 * squares + squares * squares)
    left = max(0.0, variance - max(0.0, float((gains - noise).max())) / records)
    gains -= 2 * left * (inverse @ np.maximum(values, 0.0))
    chance = 2 * np.sqrt(left * np.maximum(explained, 0.0))
    cautious = gains - _CAUTION * np.hypot(noise, chance)
    best = int(np.argmax(cautious))
    proved = (gains > np.hypot(_PROOF * noise, _PROOF_OF_RECORDS * chance)).any()
    if not proved or cautious[best] <= 0:
        return np.zeros_like(product), math.inf
    return vectors @ weights[best], float(strengths[best])
