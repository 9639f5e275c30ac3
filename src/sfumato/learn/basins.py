"""Where gradient dynamics on a random-feature support function lead.

In:   frequencies and a released centre; starting points.
Out:  the points where dx/dt = ∇⟨centre, φ(x)⟩ comes to rest, the highest of them first, merged; public starting points.
Not here: releasing the centre (learn/svdd.py), voting (learn/equilibrium.py).

Everything here is a function of its arguments: with a released centre and public starts it is post-processing. Every
row takes the same number of steps and none is taken out of its block when it has arrived: where one row ends must not
depend on another row, not even by a rounding error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import qmc

from sfumato.learn.arrays import (
    is_device_array,
    joined,
    namespace,
    place_of_largest,
    summed,
    to_device,
    to_host,
    turned,
)

__all__ = ["Basins", "follow", "highest", "nearest_points", "public_starts"]

_STEPS = 40
_MOMENTUM = 0.7
#: Rows at a time: their phases stay in the cache.
_CHUNK = 512
#: Rows at a time on a device, whose memory they must fit.
_DEVICE_CHUNK = 1 << 18


class Basins:
    """The support ⟨centre, φ(x)⟩ = Σ_j (a_j cos ω_j·x + b_j sin ω_j·x)/√pairs, as Σ_j r_j cos(ω_j·x - α_j).

    One sine for each pair and step instead of a sine and a cosine, in single precision: 40 steps of 6,000 rows with 200
    pairs take 0.2 s instead of 2.6 s.

    >>> hill = Basins(np.array([[1.0]]), np.array([1.0, 0.0]))
    >>> bool(abs(follow(hill, np.array([[0.5]]))[0, 0]) < 1e-2)
    True
    >>> hill.heights(np.array([[0.0], [np.pi]])).round(3).tolist()
    [1.0, -1.0]
    """

    def __init__(self, frequencies: np.ndarray, centre: np.ndarray) -> None:
        pairs = frequencies.shape[1]
        cosines, sines = centre[:pairs] / math.sqrt(pairs), centre[pairs:] / math.sqrt(pairs)
        amplitudes = np.hypot(cosines, sines)
        # Curvature is at most Σ r_j·‖ω_j‖²; its mean over directions sets the step.
        curvature = float((amplitudes * (frequencies**2).sum(axis=0)).sum()) / len(frequencies)
        step = 1.0 / max(curvature, 1e-12)
        self.frequencies = frequencies.astype(np.float32)
        self.shifts = np.arctan2(sines, cosines).astype(np.float32)
        self.amplitudes = amplitudes.astype(np.float32)
        self.pull = np.ascontiguousarray((-step * amplitudes * frequencies).T.astype(np.float32))

    def heights(self, points: np.ndarray) -> np.ndarray:
        """The support at each point."""
        return np.cos(points.astype(np.float32) @ self.frequencies - self.shifts) @ self.amplitudes


def follow(basins: Basins, points: Any) -> Any:
    """Where the dynamics lead from each point: a fixed number of steps uphill with momentum.

    Points on a device are followed there, and stay there.
    """
    if is_device_array(points):
        return _follow_on_device(basins, points)
    result = np.array(points, dtype=np.float32)
    phases = np.empty((min(_CHUNK, len(result)), len(basins.shifts)), dtype=np.float32)
    for start in range(0, len(result), _CHUNK):
        place = result[start : start + _CHUNK]
        turned, speed = phases[: len(place)], np.zeros_like(place)
        for _ in range(_STEPS):
            np.matmul(place, basins.frequencies, out=turned)
            turned -= basins.shifts
            np.sin(turned, out=turned)
            speed *= _MOMENTUM
            speed += turned @ basins.pull
            place += speed
    return result


def _follow_on_device(basins: Basins, points: Any) -> Any:
    library = namespace(points)

    def there(array: np.ndarray) -> Any:
        return library.asarray(to_device(array, points), dtype=library.float32)

    frequencies, shifts, pull = there(basins.frequencies), there(basins.shifts), there(basins.pull)
    places = []
    number = int(points.shape[0])
    for start in range(0, number, _DEVICE_CHUNK):
        place = library.asarray(points[start : min(start + _DEVICE_CHUNK, number), ...], dtype=library.float32)
        speed = library.zeros_like(place)
        for _ in range(_STEPS):
            speed = _MOMENTUM * speed + library.sin(place @ frequencies - shifts) @ pull
            place = place + speed
        places.append(place)
    return joined(places)


def nearest_points(points: np.ndarray, places: Any) -> np.ndarray:
    """For each place on a device the position of the nearest of `points`, on the host."""
    library = namespace(places)
    there = to_device(points, places)
    lengths, chosen = summed(there**2, 1) / 2, []
    number = int(places.shape[0])
    for start in range(0, number, _DEVICE_CHUNK):
        part = library.asarray(places[start : min(start + _DEVICE_CHUNK, number), ...], dtype=library.float64)
        chosen.append(to_host(place_of_largest(part @ turned(there) - lengths, 1)))
    return np.concatenate(chosen)


def highest(basins: Basins, places: np.ndarray, radius: float, most: int, *, cubes: bool = False) -> np.ndarray:
    """The `most` highest of `places`, each standing for all others within `radius` of it.

    Distances are Euclidean, or with `cubes` the largest over columns, as in the thesis (eq. 5.6).

    >>> hill = Basins(np.array([[1.0]]), np.array([1.0, 0.0]))
    >>> highest(hill, np.array([[1.0], [0.05], [0.0]], dtype=np.float32), 0.1, most=5).tolist()
    [[0.0], [1.0]]
    """
    left = places[np.argsort(-basins.heights(places), kind="stable")]
    kept: list[np.ndarray] = []
    while len(left) and len(kept) < most:
        kept.append(left[0])
        apart = np.abs(left - left[0]).max(axis=1) if cubes else np.linalg.norm(left - left[0], axis=1)
        left = left[apart > radius]
    return np.stack(kept)


def public_starts(count: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The first points of a Sobol sequence in a public box.

    >>> public_starts(4, np.array([0.0, -1.0]), np.array([1.0, 1.0])).shape
    (4, 2)
    """
    exponent = max(1, math.ceil(math.log2(count)))
    unit = qmc.Sobol(len(low), scramble=False).random_base2(exponent)[:count]
    return low + unit * (high - low)
