"""How the attributes of Basu's data sets are privatised, and how a regression is fitted to what comes out.

In:   a Dataset, ε, a sample, folds.
Out:  for each method the fitted regressions' errors, fold by fold.
Not here: the data (basu_parties.py), verdicts and figures (basu_channels.py).

tns∘dp: the attribute is privatised with the whole ε and transformed afterwards. dp∘tns: each of m features is
privatised with ε/m. The rivals are fitted as in the thesis, by ridge regression on what was published, taken at face
value (5.42). "Ours" is `tailor_for_regression` and the regression that knows its channel. Parties are simulated:
numpy's generator serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from papers.basu_parties import GUARD, Dataset, Sample
from sfumato.core.domain import Interval
from sfumato.mechanisms import TailoredNoise
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.channel_estimate import Calibration, bin_points, likeliest_histogram
from sfumato.mechanisms.tailored.regression import tailor_for_regression
from sfumato.mechanisms.tailored.repair import LARGEST_EPSILON, TOTAL_BITS, merged, private_weights
from sfumato.mechanisms.tailored.sampling import AliasTable, alias_table
from sfumato.mechanisms.tailored.solver import WantedMeans, optimal_channel
from sfumato.mechanisms.tailored.uses import Use, as_use

__all__ = ["METHODS", "OURS", "RIDGE", "Errors", "Published", "cross_validate", "published_channel", "run_method"]

#: λ of (5.42). The text says 10³, which with XᵀX/n leaves nothing of the regression: 10⁻³ is meant, or 10³ without /n.
RIDGE = 1e-3
FOLDS = 10
OURS = "TNM, our estimator"
_OUR_BINS = 40
Order = Literal["tns∘dp", "dp∘tns"]
Generator = np.random.Generator


@dataclass(frozen=True)
class Errors:
    """Per fold: mean squared error on true features, on published ones, and how far predictions are from E[y|a]."""

    clean: np.ndarray
    published: np.ndarray
    excess: np.ndarray


# What rivals publish: features, one row per party.


def _laplace(data: Dataset, epsilon: float, attributes: np.ndarray, generator: Generator) -> np.ndarray:
    return attributes + generator.laplace(0, data.domain.width / epsilon, len(attributes))


def _staircase(data: Dataset, epsilon: float, attributes: np.ndarray, generator: Generator) -> np.ndarray:
    """Geng & Viswanath 2014, Alg. 1, with γ = 1/(1 + e^(ε/2))."""
    decay, share, size = math.exp(-epsilon), 1 / (1 + math.exp(epsilon / 2)), len(attributes)
    step = generator.geometric(1 - decay, size) - 1 if decay > 0 else np.zeros(size)
    inner = generator.random(size) < share / (share + (1 - share) * decay)
    place = generator.random(size)
    away = step + np.where(inner, share * place, share + (1 - share) * place)
    return attributes + np.where(generator.random(size) < 0.5, -1, 1) * away * data.domain.width


def _response(data: Dataset, epsilon: float, attributes: np.ndarray, generator: Generator) -> np.ndarray:
    """Randomised response over 20 bins of equal width."""
    edges = np.linspace(data.domain.low, data.domain.high, 21)
    codes = np.clip(np.searchsorted(edges, attributes, side="right") - 1, 0, 19)
    keep = generator.random(len(codes)) < 1 / (1 + 19 * math.exp(-epsilon))
    return ((edges[1:] + edges[:-1]) / 2)[np.where(keep, codes, (codes + generator.integers(1, 20, len(codes))) % 20)]


def _transformed(data: Dataset, noisy: np.ndarray, clip: bool) -> np.ndarray:
    """Features of noisy attributes: clipped to the domain, or only kept away from where a use has no value."""
    if clip:
        return data.features(np.clip(noisy, data.domain.low, data.domain.high))
    guard = GUARD * data.domain.width
    columns = [use(use.moved(noisy, noisy.min(), noisy.max(), guard)) for use in data.uses]
    return np.column_stack([np.ones(len(noisy)), *columns])


def _first_noise(noise: Callable, clip: bool) -> Callable:
    def features(data: Dataset, epsilon: float, attributes: np.ndarray, generator: Generator) -> np.ndarray:
        return _transformed(data, noise(data, epsilon, attributes, generator), clip)

    return features


def _laplace_features(data: Dataset, epsilon: float, attributes: np.ndarray, generator: Generator) -> np.ndarray:
    features = data.features(attributes)
    for column, use in enumerate(data.uses, start=1):
        width = float(np.ptp(use(np.array([data.domain.low, data.domain.high]))))
        features[:, column] += generator.laplace(0, width * len(data.uses) / epsilon, len(features))
    return features


# The thesis' channel.


@dataclass(frozen=True)
class Published:
    """The channel of (5.27)-(5.38) on given representatives, made exactly private."""

    inputs: np.ndarray
    outputs: np.ndarray
    edges: np.ndarray
    alias: AliasTable

    def __call__(self, values: np.ndarray, generator: Generator) -> np.ndarray:
        rows = np.searchsorted(self.edges[1:-1], values, side="right")
        return self.outputs[self.alias.draw(rows, Bits(int(generator.integers(1 << 60))))]


@lru_cache(maxsize=512)
def published_channel(
    uses: tuple[Use, ...], low: float, high: float, epsilon: float, bins: int, outputs: int
) -> Published:
    """Equal widths, the printed scaling factors, and the printed bias rule, which counts only upward bias (5.18)."""
    edges = np.linspace(low, high, bins + 1)
    inputs = (edges[1:] + edges[:-1]) / 2
    targets = inputs if outputs == bins else np.linspace(low, high, 2 * outputs + 1)[1::2]
    costs = np.zeros((bins, len(targets)))
    for use in uses:
        squares = (use(targets)[None, :] - use(inputs)[:, None]) ** 2
        costs += 1e-2 * min(1.0, 1 / float(squares.max())) * squares
    strength = 2e-2 / float((targets**2).max())
    counted, rounds = np.ones(bins, dtype=bool), 0
    while True:  # which inputs have upward bias settles in a few rounds
        penalty = np.where(counted, strength, 1e-9 * strength)[None, :]
        solution = optimal_channel(
            costs, min(epsilon, LARGEST_EPSILON), WantedMeans(targets[None], inputs[None], penalty)
        )
        upward, rounds = solution.probabilities @ targets > inputs, rounds + 1
        if np.array_equal(upward, counted) or rounds == 12:
            break
        counted = upward
    probabilities, kept = merged(solution.probabilities)
    return Published(inputs, targets[kept], edges, alias_table(private_weights(probabilities, epsilon), TOTAL_BITS))


def _tnm_joint(
    data: Dataset, epsilon: float, attributes: np.ndarray, generator: Generator, bins: int = 20, outputs: int = 20
):
    channel = published_channel(data.uses, data.domain.low, data.domain.high, epsilon, bins, outputs)
    return data.features(channel(attributes, generator))


def _tnm_separate(
    data: Dataset, epsilon: float, attributes: np.ndarray, generator: Generator, bins: int = 20, outputs: int = 20
):
    features = data.features(attributes)
    for column, use in enumerate(data.uses, start=1):
        low, high = sorted(use(np.array([data.domain.low, data.domain.high])).tolist())
        channel = published_channel((as_use("identity"),), low, high, epsilon / len(data.uses), bins, outputs)
        features[:, column] = channel(features[:, column], generator)
    return features


Rival = Callable[[Dataset, float, np.ndarray, Generator], np.ndarray]

METHODS: dict[str, Rival] = {
    "Laplace tns∘dp": _first_noise(_laplace, clip=False),
    "Laplace dp∘tns": _laplace_features,
    "Laplace clipped": _first_noise(_laplace, clip=True),
    "randomised response": _first_noise(_response, clip=True),
    "staircase clipped": _first_noise(_staircase, clip=True),
    "TNM tns∘dp": _tnm_joint,
    "TNM dp∘tns": _tnm_separate,
}


# Fitting.


def cross_validate(
    data: Dataset, sample: Sample, features: np.ndarray, folds: np.ndarray, ridge: float = RIDGE
) -> Errors:
    """Ridge regression (5.42) on the published features of nine folds, judged on the tenth."""
    clean = data.features(sample.attributes)
    grams, products, counts = [], [], []
    for fold in range(FOLDS):
        own = features[folds == fold]
        grams.append(own.T @ own)
        products.append(own.T @ sample.targets[folds == fold])
        counts.append(len(own))
    weights = []
    for gram, product, count in zip(grams, products, counts, strict=True):
        others = len(folds) - count  # the nine other folds
        matrix = (np.sum(grams, axis=0) - gram) / others + ridge * np.eye(features.shape[1])
        weights.append(np.linalg.lstsq(matrix, (np.sum(products, axis=0) - product) / others, rcond=None)[0])
    return _judged(sample, folds, np.array(weights), clean, features)


def _judged(sample: Sample, folds: np.ndarray, weights: np.ndarray, clean: np.ndarray, published: np.ndarray) -> Errors:
    rows = np.arange(len(folds))
    on_clean, on_published = (np.einsum("ij,ij->i", table, weights[folds]) for table in (clean, published))
    sizes = np.bincount(folds, minlength=FOLDS)
    per_fold = [
        np.bincount(folds, weights=squares[rows], minlength=FOLDS) / sizes
        for squares in (
            (sample.targets - on_clean) ** 2,
            (sample.targets - on_published) ** 2,
            (sample.expected - on_clean) ** 2,
        )
    ]
    return Errors(*per_fold)


@lru_cache(maxsize=512)
def our_channel(domain: Interval, uses: tuple[Use, ...], epsilon: float, records: int) -> TailoredNoise:
    return tailor_for_regression(domain, epsilon, uses, records=records, bins=_OUR_BINS)


def _ours(data: Dataset, epsilon: float, sample: Sample, folds: np.ndarray, generator: Generator) -> Errors:
    channel = our_channel(data.domain, data.uses, epsilon, len(folds))
    rows = channel.table.grid.rows_of(sample.attributes)
    columns = channel.table.alias.draw(rows, Bits(int(generator.integers(1 << 60)))).astype(np.int64)
    size = len(channel.outputs)
    cells = folds * size + columns
    sums = [
        np.bincount(cells, weights=w, minlength=FOLDS * size).reshape(FOLDS, size)
        for w in (np.ones(len(cells)), sample.targets, sample.targets**2)
    ]
    counts, targets, squares = (table.sum(axis=0) - table for table in sums)
    histograms = likeliest_histogram(channel.probabilities, counts, channel.table.prior, careful=True)
    fits = [
        Calibration(channel, data.uses, counts[fold], targets[fold], squares[fold], known=histograms[fold])
        for fold in range(FOLDS)
    ]
    weights = np.array([_ridged(fit, data.uses, histograms[at]) for at, fit in enumerate(fits)])
    decoded = np.array([fit.features()[0] for fit in fits])[folds, columns]
    return _judged(sample, folds, weights, data.features(sample.attributes), decoded)


def _ridged(fit: Calibration, uses: tuple[Use, ...], histogram: np.ndarray) -> np.ndarray:
    """The same ridge as everybody's: (S + λI)⁻¹S applied to the coefficients, S = E[φφᵀ] under the histogram."""
    points = bin_points(fit.channel, uses)
    points = np.concatenate([np.ones((*points.shape[:2], 1)), points], axis=2)
    moments = np.einsum("x,xpi,xpj->ij", histogram, points, points) / points.shape[1]
    return np.linalg.solve(moments + RIDGE * np.eye(len(moments)), moments @ fit.coefficients())


def run_method(
    name: str, data: Dataset, epsilon: float, sample: Sample, folds: np.ndarray, generator: Generator
) -> Errors:
    """Privatise a sample by the named method and fit it, fold by fold."""
    if name == OURS:
        return _ours(data, epsilon, sample, folds, generator)
    return cross_validate(data, sample, METHODS[name](data, epsilon, sample.attributes, generator), folds)
