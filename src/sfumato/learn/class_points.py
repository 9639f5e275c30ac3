"""Equilibrium points of one support function for each class: they carry their labels without a vote.

In:   frequencies and one released weight vector for each class; public starting points.
Out:  class_points: where the dynamics of the classes come to rest, the highest first, each with the class that is
      highest there; nearest_labels: the labels of the nearest of them.
Not here: the release (learn/kernel_mean.py), the dynamics (learn/basins.py).

All of it is a function of what was released and of public points.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial import KDTree

__all__ = ["ClassScores", "class_points", "nearest_labels"]

_STEPS = 40
#: Lengths of the first and of the last step uphill, in units of the kernel's width.
_FIRST, _LAST = 0.5, 0.01


class ClassScores:
    """One function of x for each class: ⟨w, φ(x)⟩ or φ(x)ᵀWφ(x), with φ the paired cosines and sines of norm 1.

    >>> hill = ClassScores(np.array([[1.0]]), np.array([[1.0, 0.0]]))
    >>> hill.values(np.array([[0.0], [np.pi]])).round(3).ravel().tolist()
    [1.0, -1.0]
    >>> hill.slopes(np.array([[np.pi / 2]]), 0).round(3).tolist()
    [[-1.0]]
    """

    def __init__(self, frequencies: np.ndarray, weights: np.ndarray) -> None:
        self.frequencies, self.weights = frequencies, weights
        self.pairs = frequencies.shape[1]
        self.width = 1 / math.sqrt(max(float(np.median(frequencies**2)), 1e-12))

    def _features(self, places: np.ndarray) -> np.ndarray:
        phases = places @ self.frequencies
        return np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(self.pairs)

    def values(self, places: np.ndarray) -> np.ndarray:
        """One column for each class."""
        features = self._features(places)
        if self.weights.ndim == 2:
            return features @ self.weights.T
        return np.stack([((features @ one) * features).sum(axis=1) for one in self.weights], axis=1)

    def slopes(self, places: np.ndarray, label: int) -> np.ndarray:
        """The gradient of one class's function at each place."""
        features, weights = self._features(places), self.weights[label]
        pull = np.broadcast_to(weights, features.shape) if weights.ndim == 1 else features @ (weights + weights.T)
        cosines, sines = features[:, : self.pairs], features[:, self.pairs :]
        return (pull[:, self.pairs :] * cosines - pull[:, : self.pairs] * sines) @ self.frequencies.T

    def climb(self, starts: np.ndarray, label: int) -> np.ndarray:
        """Where steps uphill of falling length end; every row takes the same number of them."""
        places = np.array(starts, dtype=np.float64)
        for length in np.geomspace(_FIRST, _LAST, _STEPS) * self.width:
            slopes = self.slopes(places, label)
            places += length * slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300)
        return places


def class_points(scores: ClassScores, starts: np.ndarray, radius: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` points, none within `radius` of a higher one, and the position of each one's class.

    >>> scores = ClassScores(np.array([[1.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]]))  # cos x, and -cos x
    >>> points, labels = class_points(scores, np.array([[-1.0], [0.5], [3.2]]), 0.5, most=9)
    >>> sorted(zip(points.round(1).ravel().tolist(), labels.tolist()))
    [(-1.0, 0), (0.0, 0), (3.1, 1)]
    """
    reached = np.concatenate([scores.climb(starts, label) for label in range(len(scores.weights))])
    # Hills of noise outside of the box are nobody's: rows are clipped to it.
    places = np.clip(reached, starts.min(axis=0), starts.max(axis=0))
    values = scores.values(places)
    order = np.argsort(-values.max(axis=1), kind="stable")
    kept = _apart(places[order], radius, most)
    return places[order][kept], values[order][kept].argmax(axis=1)


def _apart(places: np.ndarray, radius: float, most: int) -> np.ndarray:
    """Positions of the first `most` places that no earlier kept one is within `radius` of."""
    tree, free, kept = KDTree(places), np.ones(len(places), dtype=bool), []
    for place in range(len(places)):
        if free[place]:
            kept.append(place)
            free[tree.query_ball_point(places[place], radius)] = False
        if len(kept) == most:
            break
    return np.array(kept)


def nearest_labels(
    points: np.ndarray, labels: np.ndarray, rows: np.ndarray, neighbours: int, classes: int
) -> np.ndarray:
    """For each row the label that most of its nearest points have; the nearest one's where labels tie."""
    nearest = KDTree(points).query(rows, k=min(neighbours, len(points)))[1].reshape(len(rows), -1)
    votes = np.zeros((len(rows), classes))
    for rank, column in enumerate(labels[nearest].T):
        votes[np.arange(len(rows)), column] += 1 + 1e-6 * (neighbours - rank)
    return votes.argmax(axis=1)
