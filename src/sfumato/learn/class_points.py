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

from sfumato.learn.basins import Basins, follow

__all__ = ["class_points", "nearest_labels"]


def class_points(
    frequencies: np.ndarray, weights: np.ndarray, starts: np.ndarray, radius: float, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` points, none within `radius` of a higher one, and the position of each one's class.

    >>> hill = np.array([[1.0, 0.0], [-1.0, 0.0]])  # cos x for one class, -cos x for the other
    >>> points, labels = class_points(np.array([[1.0]]), hill, np.array([[-1.0], [0.5], [3.2]]), 0.5, most=9)
    >>> sorted(zip(points.round(1).ravel().tolist(), labels.tolist()))
    [(-1.0, 0), (0.0, 0), (3.1, 1)]
    """
    reached = [follow(Basins(frequencies, one), starts) for one in weights]
    # Hills of noise outside of the box are nobody's: rows are clipped to it.
    places = np.clip(np.concatenate(reached).astype(np.float64), starts.min(axis=0), starts.max(axis=0))
    scores = _scores(frequencies, weights, places)
    order = np.argsort(-scores.max(axis=1), kind="stable")
    kept = _apart(places[order], radius, most)
    return places[order][kept], scores[order][kept].argmax(axis=1)


def _scores(frequencies: np.ndarray, weights: np.ndarray, places: np.ndarray) -> np.ndarray:
    phases = places @ frequencies
    return np.hstack([np.cos(phases), np.sin(phases)]) @ weights.T / math.sqrt(frequencies.shape[1])


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
