"""Where gradient dynamics on a random-feature support function lead.

In:   frequencies and a released centre; starting points.
Out:  the points where dx/dt = ∇⟨centre, φ(x)⟩ comes to rest, merged; public starting points.
Not here: releasing the centre (learn/svdd.py), voting (learn/equilibrium.py).

Everything here is a function of its arguments: with a released centre and public starts it is post-processing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import qmc

__all__ = ["Basins", "follow", "merge", "public_starts"]

_STEPS = 40
_MOMENTUM = 0.7
_CHUNK = 4096


class Basins:
    """The support ⟨centre, φ(x)⟩ = Σ_j (a_j cos ω_j·x + b_j sin ω_j·x)/√pairs and its gradient.

    >>> hill = Basins(np.array([[1.0]]), np.array([1.0, 0.0]))
    >>> bool(abs(follow(hill, np.array([[0.5]]))[0, 0]) < 1e-2)
    True
    """

    def __init__(self, frequencies: np.ndarray, centre: np.ndarray) -> None:
        pairs = frequencies.shape[1]
        self.frequencies = frequencies
        self.cosines, self.sines = centre[:pairs] / math.sqrt(pairs), centre[pairs:] / math.sqrt(pairs)
        # Curvature is at most Σ|c_j|·‖ω_j‖²; a typical one, its root mean square, sets the step.
        sizes = np.hypot(self.cosines, self.sines) * (frequencies**2).sum(axis=0) / len(frequencies)
        self.step = 1.0 / max(float(sizes.sum()), 1e-12)

    def gradient(self, points: np.ndarray) -> np.ndarray:
        phases = points @ self.frequencies
        return (self.sines * np.cos(phases) - self.cosines * np.sin(phases)) @ self.frequencies.T


def follow(basins: Basins, points: np.ndarray) -> np.ndarray:
    """Where the dynamics lead from each point: a fixed number of steps uphill with momentum."""
    result = np.empty_like(points, dtype=np.float64)
    for start in range(0, len(points), _CHUNK):
        place = np.array(points[start : start + _CHUNK], dtype=np.float64)
        speed = np.zeros_like(place)
        for _ in range(_STEPS):
            speed = _MOMENTUM * speed + basins.step * basins.gradient(place)
            place += speed
        result[start : start + _CHUNK] = place
    return result


def merge(places: np.ndarray, radius: float) -> np.ndarray:
    """One point for each group within `radius` of its first member, in the order given.

    >>> merge(np.array([[0.0], [0.05], [1.0]]), 0.1)
    array([[0.],
           [1.]])
    """
    kept: list[np.ndarray] = []
    left = places
    while len(left):
        kept.append(left[0])
        left = left[np.linalg.norm(left - left[0], axis=1) > radius]
    return np.stack(kept)


def public_starts(count: int, columns: int, schema: Any = None) -> np.ndarray:
    """The first points of a Sobol sequence in the box [-1, 1]; with a schema, in the box its encoding fills.

    >>> public_starts(4, 2).shape
    (4, 2)
    """
    exponent = max(1, math.ceil(math.log2(count)))
    unit = qmc.Sobol(columns, scramble=False).random_base2(exponent)[:count]
    if schema is None:
        return 2 * unit - 1
    return unit * 2 - 0.3  # the encoder puts intervals on ranges of width 2 that begin between -0.6 and 0
