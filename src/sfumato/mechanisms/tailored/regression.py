"""A channel for regression: one that shows every direction in which the features vary.

In:   a public interval, ε, several uses (the features), the public number of records.
Out:  the channel, of several designs, from which a regression on these features is least uncertain.
Not here: one design (tailored_design.py), the regression (channel_estimate.py).

The least squared error makes a channel show what varies most: at small ε two outputs, so one direction, and the
coefficients of the others cannot be known from any number of records. The designs tried besides are the same on
decorrelated features, and mixtures in which a record is sent, by a coin that is part of the channel, through a channel
made for one direction or for another. A mixture of ε-private channels with outputs of their own is ε-private; its
weights are certified again.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from sfumato.core.domain import Interval
from sfumato.mechanisms.channel_estimate import bin_points
from sfumato.mechanisms.tailored.choice import grids_for
from sfumato.mechanisms.tailored.design import ChannelTable, DesignWish
from sfumato.mechanisms.tailored.grid import Binning
from sfumato.mechanisms.tailored.noise import TailoredNoise
from sfumato.mechanisms.tailored.repair import private_weights
from sfumato.mechanisms.tailored.uses import Use, as_uses

__all__ = ["decorrelated", "tailor_for_regression", "uncertainty"]

#: Directions of less than this share of the largest variance count as not there.
_FLAT = 1e-6
#: Variance of the target over that of one direction of its signal, a round guess; it only ranks designs.
_TARGET_OVER_SIGNAL = 4.0
#: From here on every design shows all directions, and fine bins matter instead.
_LARGE_EPSILON = 8.0
_FINE_BINS = 100


def tailor_for_regression(
    domain: Interval, epsilon: float, uses: Any, *, records: int, bins: int = 40
) -> TailoredNoise:
    """The channel with the least uncertain regression on `uses` for about this many records.

    >>> channel = tailor_for_regression(Interval(0.01, 1), 0.5, ["identity", "log"], records=10_000, bins=10)
    >>> print(channel.guarantee())
    0.5-DP, under replacing one record
    >>> plain = TailoredNoise(Interval(0.01, 1), 0.5, uses=["identity", "log"], bins=10, bias="none")
    >>> uncertainty(channel, channel.uses, 10_000) < uncertainty(plain, channel.uses, 10_000)
    True
    """
    listed = as_uses(uses)
    if epsilon >= _LARGE_EPSILON:
        bins = max(bins, _FINE_BINS)
    grids = grids_for(domain, listed, bins)
    simple = [TailoredNoise(domain, epsilon, uses=listed, bias="none", binning=grid, bins=bins) for grid in grids]
    candidates = list(simple)
    if len(listed) > 1 and epsilon < _LARGE_EPSILON:
        candidates += _richer(domain, epsilon, listed, grids, bins)
    return min(candidates, key=lambda channel: uncertainty(channel, listed, records))


def _richer(
    domain: Interval, epsilon: float, uses: tuple[Use, ...], grids: list[Binning], bins: int
) -> list[TailoredNoise]:
    apart = decorrelated(domain, uses)
    found = []
    for grid, targets in product(grids[:: max(1, len(grids) - 1)], (uses, apart)):
        found.append(TailoredNoise(domain, epsilon, uses=targets, bias="soft", binning=grid, bins=bins))
        single = [TailoredNoise(domain, epsilon, uses=(use,), bias="none", binning=grid, bins=bins) for use in targets]
        if len(single) > 1:
            found.append(_mixture(single, uses))
    return found


def uncertainty(channel: TailoredNoise, uses: tuple[Use, ...], records: int) -> float:
    """About the excess error of a regression on these features, in units of the signal's variance.

    The Bayes risk if all standardised features matter alike: a direction that is never seen costs its share of the
    variance, one that is seen the variance with which its coefficient can be known.
    """
    points, prior = bin_points(channel, uses), channel.table.prior
    points = points - prior @ points.mean(axis=1)
    covariance = np.einsum("x,xpi,xpj->ij", prior, points, points) / points.shape[1]
    centred = points.mean(axis=1)
    joint = prior[:, None] * channel.probabilities
    outputs = joint.sum(axis=0)
    decoded = (joint / outputs).T @ centred
    root, shares = _whitening(covariance)
    shown = root @ ((decoded * outputs[:, None]).T @ decoded) @ root.T
    return float(np.trace(np.linalg.inv(np.diag(1 / shares) + records / _TARGET_OVER_SIGNAL * shown)))


def decorrelated(domain: Interval, uses: tuple[Use, ...]) -> tuple[Use, ...]:
    """Combinations of the uses that are uncorrelated and of variance 1 for a value spread evenly over the domain."""
    points = np.linspace(domain.low, domain.high, 20_001)
    points = (points[1:] + points[:-1]) / 2
    values = np.column_stack([use(points) for use in uses])
    centre = values.mean(axis=0)
    root, _ = _whitening(np.cov(values.T).reshape(len(uses), len(uses)))

    def combination(weights: np.ndarray) -> Any:
        def combined(x: np.ndarray) -> np.ndarray:
            parts = [weight * (use(x) - middle) for weight, use, middle in zip(weights, uses, centre, strict=True)]
            return np.sum(parts, axis=0)

        return combined

    return tuple(Use(f"direction {number}", combination(weights)) for number, weights in enumerate(root, start=1))


def _whitening(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal directions of the standardised features, as rows that give variance 1, and their shares of it.

    Directions that hardly vary are left out.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    sizes, directions = np.linalg.eigh(covariance / np.outer(scale, scale))
    alive = sizes > _FLAT * sizes[-1]
    rows = (directions[:, alive] / np.sqrt(sizes[alive])).T / scale
    return rows[::-1], sizes[alive][::-1] / sizes.sum()


def _mixture(channels: list[TailoredNoise], uses: tuple[Use, ...]) -> TailoredNoise:
    """Equal parts of channels on the same bins; outputs that coincide are moved apart by a hair to stay tellable."""
    first = channels[0]
    outputs = np.concatenate([channel.outputs for channel in channels])
    order = np.argsort(outputs, kind="stable")
    probabilities = np.hstack([channel.probabilities for channel in channels])[:, order] / len(channels)
    outputs, hair = outputs[order], 1e-9 * first.domain.width
    for at in range(1, len(outputs)):
        outputs[at] = max(outputs[at], outputs[at - 1] + hair)
    wish = DesignWish(
        first.domain, first.epsilon, 0.0, uses, None, first.bins, tuple(outputs), "none", first.binning, first.guard
    )  # fmt: skip
    weights = private_weights(probabilities, first.epsilon)
    cost = sum(channel.table.cost for channel in channels) / len(channels)
    table = ChannelTable(wish, first.table.grid, first.table.prior, outputs, weights, cost, math.inf, 0.0)
    return TailoredNoise(
        wish.domain, wish.epsilon, 0.0, uses, None, wish.bins, outputs, "none", wish.binning, wish.guard, table=table
    )
