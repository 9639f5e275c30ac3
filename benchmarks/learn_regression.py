"""Private regression beside AdaSSP and a private mean, on ten shapes of targets, in one run.

Run: python benchmarks/learn_regression.py [--full]. δ = 1e-6, replace-one, test error in shares of the target's
variance. AdaSSP (Wang 2018, Alg. 2) has a constant column, targets centred on the middle of their interval, exact
Gaussian calibration and a third of the squared budget for each release; the mean has the whole budget. Both draw
numpy's noise.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from scipy.linalg import eigh

from sfumato.core.gaussian import gaussian_mu
from sfumato.learn import PrivateLinearRegression

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.laws.test_regression_means import SHAPES, rows_of

DELTA, NORM, CONSTANT = 1e-6, 3.0, 0.2
EPSILONS = (0.1, 1.0, 3.0)


def unit_rows(matrix: np.ndarray) -> np.ndarray:
    """The rows as our estimator sees them."""
    factor = math.sqrt(1 - CONSTANT**2) / np.maximum(NORM, np.linalg.norm(matrix, axis=1))
    return np.column_stack([matrix * factor[:, None], np.full(len(matrix), CONSTANT)])


def adassp(matrix, target, interval, epsilon, generator):
    """Coefficients for unit rows, and the middle and half of the interval."""
    (low, high), mu = interval, gaussian_mu(epsilon, DELTA) / math.sqrt(3)
    rows, middle, half = unit_rows(matrix), (low + high) / 2, (high - low) / 2
    scaled, width = (np.clip(target, low, high) - middle) / half, rows.shape[1]
    gram, product = rows.T @ rows, rows.T @ scaled
    least = eigh(gram, eigvals_only=True)[0] + generator.normal() / mu - math.sqrt(2 * math.log(6 / DELTA)) / mu
    noise = generator.normal(size=(width, width)) * math.sqrt(2) / mu
    upper = np.triu(noise, 1) / math.sqrt(2)
    noisy = gram + upper + upper.T + np.diag(np.diag(noise))
    wanted = math.sqrt(width * math.log(2 * width**2 / 0.05)) * math.sqrt(2) / mu
    ridge = max(0.0, wanted - max(0.0, least)) * np.eye(width)
    weights = np.linalg.lstsq(noisy + ridge, product + 2 / mu * generator.normal(size=width), rcond=None)[0]
    return weights, middle, half


def errors(name: str, rows: int, epsilon: float, seed: int) -> tuple[float, float, float]:
    generator = np.random.default_rng([seed, rows])
    matrix, target, interval = rows_of(name, rows, generator)
    table, truth, _ = rows_of(name, 10_000, generator)
    mean = target.mean() + (interval[1] - interval[0]) / (rows * gaussian_mu(epsilon, DELTA)) * generator.normal()
    weights, middle, half = adassp(matrix, target, interval, epsilon, generator)
    model = PrivateLinearRegression(epsilon, DELTA, interval, norm=NORM, random_state=seed).fit(matrix, target)
    guesses = (model.predict(table), np.clip(mean, *interval), middle + half * unit_rows(table) @ weights)
    return tuple(float(np.mean((guess - truth) ** 2) / truth.var()) for guess in guesses)  # type: ignore[return-value]


def main(*, full: bool) -> bool:
    sizes, seeds = ((2000, 5000, 50_000), 40) if full else ((5000,), 10)
    lost = [0, 0]
    for rows in sizes:
        print(f"{rows} rows, {seeds} seeds: test error / variance     ours    mean  AdaSSP")
        for name in SHAPES:
            for epsilon in EPSILONS:
                scores = np.array([errors(name, rows, epsilon, seed) for seed in range(seeds)])
                words = []
                for place, peer in ((1, "mean"), (2, "AdaSSP")):
                    gaps = scores[:, 0] - scores[:, place]
                    if gaps.mean() > 2 * gaps.std() / math.sqrt(seeds - 1):
                        lost[place - 1] += 1
                        words.append(f"worse than {peer} by {gaps.mean():.4f}")
                ours, mean, peer = scores.mean(axis=0)
                print(
                    f"{'MISS' if words else 'ok  '} {name:22s} epsilon {epsilon:<4g} {ours:14.3f} {mean:7.3f} "
                    f"{peer:7.3f}  {', '.join(words)}",
                    flush=True,
                )
    cells = len(sizes) * len(SHAPES) * len(EPSILONS)
    print(f"beyond two standard errors: worse than the mean in {lost[0]}, than AdaSSP in {lost[1]} of {cells} cells")
    return not any(lost)


if __name__ == "__main__":
    sys.exit(not main(full="--full" in sys.argv[1:]))
