"""What the true rows may have been: draws given the published ones, by the law of the noise and what all rows tell.

In:   published rows, the covariance of their noise, its law where it is not normal.
Out:  TrueRows: for each published row some draws of the true one with weights that sum to 1.
Not here: the models that are trained on them (release/aware_network.py). The draws are public and hide nothing.
Reference: Bovy, Hogg & Roweis 2011 (extreme deconvolution: a mixture of normal laws seen through known noise).

A mixture of normal laws stands for the true rows; seen through noise of covariance Σ each part N(m, C) becomes
N(m, C + Σ), so that its likelihood is known and EM rises. Given a published row the true one is a mixture again. Where
the noise is not normal, draws by the normal law of the same covariance are weighted by the ratio of the densities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.noise import GaussianNoise
from sfumato.errors import InputError
from sfumato.release.aware_common import Features

__all__ = ["TrueRows", "log_ratio"]

Matrix = NDArray[np.float64]
#: Rows for each part of the mixture at least, and the most parts.
_ROWS_PER_PART, _PARTS = 100, 6
_STEPS, _WEIGHTED_STEPS = 60, 20
#: No part becomes narrower than this share of the whole table's variance: noise tells no more.
_LEAST_SHARE = 1e-3
#: The variance of true rows in units of the published ones', where the difference to the noise says less.
_LEAST_VARIANCE = 0.02


@dataclass(frozen=True)
class TrueRows:
    """`draws` (rows, draws, columns) of the true rows and `weights` (rows, draws), which sum to 1 for each row."""

    draws: Matrix
    weights: Matrix

    @classmethod
    def given(
        cls, published: Matrix, noise: Matrix, count: int, ratio: Callable[[Matrix], Matrix] | None, seed: int
    ) -> TrueRows:
        """Draws of the true rows; the published rows themselves where there is no noise.

        >>> rows = np.random.default_rng(0).normal(size=(4000, 1))
        >>> blurred = TrueRows.given(rows, np.array([[0.5]]), 8, None, 0)
        >>> bool(abs(blurred.draws.var() - 0.5) < 0.06)  # rows of variance 1, of which 0.5 is noise
        True
        """
        if not noise.any():
            return cls(published[:, None, :], np.ones((len(published), 1)))
        unit = np.where(published.std(axis=0) > 0, published.std(axis=0), 1.0)
        centre = published.mean(axis=0)
        generator = np.random.default_rng(seed)
        mixture = _Mixture.seen((published - centre) / unit, noise / np.outer(unit, unit), generator)
        if ratio is None:
            draws, _ = mixture.draws(count, generator)
            return cls(centre + unit * draws, np.full(draws.shape[:2], 1 / count))

        def weighed() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            draws, parts = mixture.draws(count, generator)
            logs = ratio(published[:, None, :] - (centre + unit * draws))
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            return draws, parts, weights / weights.sum(axis=1, keepdims=True)

        for _ in range(_WEIGHTED_STEPS):
            mixture.fit_draws(*weighed())
        draws, _, weights = weighed()
        return cls(centre + unit * draws, weights)


class _Mixture:
    """Normal laws that, seen through the noise, fit the published rows. Final."""

    def __init__(self, rows: Matrix, noise: Matrix, generator: np.random.Generator) -> None:
        self.rows, self.noise = rows, noise
        count = max(1, min(_PARTS, len(rows) // _ROWS_PER_PART))
        values, vectors = np.linalg.eigh(np.cov(rows.T).reshape(noise.shape) - noise)
        self.whole = (vectors * np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
        pulled = np.linalg.solve(self.whole + noise, self.whole)
        self.means = rows[generator.choice(len(rows), count, replace=False)] @ pulled
        self.spreads = np.repeat(self.whole[None] / 2, count, axis=0)
        self.shares = np.full(count, 1 / count)

    @classmethod
    def seen(cls, rows: Matrix, noise: Matrix, generator: np.random.Generator) -> _Mixture:
        mixture = cls(rows, noise, generator)
        for _ in range(_STEPS):
            mixture.step()
        return mixture

    def step(self) -> None:
        """One step of EM; every part keeps a little of the whole table's spread."""
        parts = self.responsible()
        totals = parts.sum(axis=0) + 1e-9
        for place, total in enumerate(totals):
            expected, left = self.posterior(place)
            weight = parts[:, place] / total
            self.means[place] = weight @ expected
            away = expected - self.means[place]
            self.spreads[place] = (away * weight[:, None]).T @ away + left + _LEAST_SHARE * self.whole
        self.shares = totals / totals.sum()

    def fit_draws(self, draws: Matrix, parts: NDArray[np.int64], weights: Matrix) -> None:
        """One step of EM by weighted draws: for noise that is not normal."""
        for place in range(len(self.shares)):
            here = parts == place
            weight = weights[here]
            total = weight.sum() + 1e-9
            self.shares[place] = total / len(self.rows)
            self.means[place] = weight @ draws[here] / total
            away = draws[here] - self.means[place]
            self.spreads[place] = (away * weight[:, None]).T @ away / total + _LEAST_SHARE * self.whole
        self.shares /= self.shares.sum()

    def responsible(self) -> Matrix:
        """How likely each row comes from each part."""
        logs = np.empty((len(self.rows), len(self.shares)))
        for place, share in enumerate(self.shares):
            root = np.linalg.cholesky(self.spreads[place] + self.noise)
            away = np.linalg.solve(root, (self.rows - self.means[place]).T)
            logs[:, place] = np.log(share) - 0.5 * (away**2).sum(axis=0) - np.log(np.diag(root)).sum()
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def posterior(self, place: int) -> tuple[Matrix, Matrix]:
        """Means of the true rows if they come from this part, and their common covariance."""
        spread = self.spreads[place]
        pulled = np.linalg.solve(spread + self.noise, spread)
        left = spread - spread @ pulled
        return self.means[place] + (self.rows - self.means[place]) @ pulled, (left + left.T) / 2

    def draws(self, count: int, generator: np.random.Generator) -> tuple[Matrix, NDArray[np.int64]]:
        """So many of each true row, and the part each is from: by turns, in proportion to their chances."""
        rows, width = self.rows.shape
        reached = np.cumsum(self.responsible(), axis=1)
        levels = (generator.random((rows, 1)) + np.arange(count)) / count
        chosen = np.minimum((levels[:, :, None] > reached[:, None, :]).sum(axis=2), len(self.shares) - 1)
        found = generator.normal(size=(rows, count, width))  # public draws, no noise
        for place in range(len(self.shares)):
            here = chosen == place
            expected, left = self.posterior(place)
            values, vectors = np.linalg.eigh(left)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            found[here] = np.repeat(expected, here.sum(axis=1), axis=0) + found[here] @ root.T
        return found, chosen


def log_ratio(features: Features, noise: Matrix) -> Callable[[Matrix], Matrix] | None:
    """log(density of the noise / normal density of its covariance) at differences; None where the noise is normal."""
    if features.law is None:
        return None
    if set(features.names) & set(features.law.responses):
        raise InputError("Randomised categories are not undone here: pass the numeric columns alone.")
    known = dict(zip(features.law.columns, features.law.laws, strict=True))
    strange = [
        place
        for place, name in enumerate(features.names)
        if not isinstance(known.get(name, GaussianNoise(1.0)), GaussianNoise)
    ]
    if not strange:
        return None
    tied = noise - np.diag(np.diag(noise))
    if tied[strange].any():
        raise InputError(
            "Columns tied by constraints have noise whose joint law is not undone here: use "
            "NoiseAwareLinearRegression, NoiseAwareLogisticRegression or NoiseAwareSVC: they need its covariance alone."
        )

    def ratio(differences: Matrix) -> Matrix:
        total = np.zeros(differences.shape[:-1])
        for place in strange:
            law, own = known[features.names[place]], differences[..., place] * features.scale[place]
            normal = GaussianNoise(law.variance() ** 0.5)
            total += np.log(np.maximum(law.density(own), 1e-300)) - np.log(np.maximum(normal.density(own), 1e-300))
        return total

    return ratio
