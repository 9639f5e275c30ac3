"""Noise-aware models beside plain ones on the same noisy tables.

In:   lending_club_2007_2014.parquet and adult.parquet from SFUMATO_DATA (or ../shared/data), sklearn's breast cancer.
Out:  printed tables: excess loss on clean test rows, plain and aware, for noise from 1/100 to 100 times the variance of
      each feature; PASS or MISS beside each bar.
Not here: private release; the noise is numpy's, because nothing is published.

The models' empirical constants (the caution of the least-squares choice, the gates of the conditional score, the factor
of the penalty for randomised labels) were chosen by looking at clean test losses on these data sets (the caution also
on sklearn's diabetes). The ratios here are therefore not out-of-sample evidence for those constants.

Run `python -m benchmarks.aware [draws]`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, mean_squared_error, zero_one_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from sfumato.release.aware_linear import NoiseAwareLinearRegression
from sfumato.release.aware_logistic import NoiseAwareLogisticRegression
from sfumato.release.aware_svc import NoiseAwareSVC
from sfumato.release.noise import ResponseNoise

LEVELS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
BAR = 1 / 5
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

# Public bounds, written down from what the columns mean.
LENDING = {
    "loan_amnt": (0, 40_000),
    "funded_amnt_inv": (0, 40_000),
    "term_months": (36, 60),
    "installment": (0, 1_500),
    "annual_inc": (0, 500_000),
    "open_acc": (0, 80),
    "total_acc": (0, 150),
    "total_pymnt": (0, 60_000),
}
ADULT = {
    "age": (0, 100),
    "fnlwgt": (0, 1_500_000),
    "education_num": (0, 16),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}
# Worst cells of a biopsy image, in the units of the data set: round numbers above anything a nucleus reaches.
CANCER_HIGH = np.array(
    [
        *(35, 50, 250, 3000, 0.25, 0.5, 0.6, 0.3, 0.5, 0.15),
        *(4, 6, 30, 700, 0.05, 0.2, 0.5, 0.1, 0.1, 0.05),
        *(45, 60, 300, 5000, 0.3, 1.5, 1.5, 0.4, 0.8, 0.3),
    ]
)


def data_folder() -> Path:
    """Where the Parquet files are."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    return Path(os.environ.get("SFUMATO_DATA", beside))


def _scaled(table: Any, bounds: dict[str, tuple[float, float]]) -> np.ndarray:
    columns = [
        np.clip((table.column(name).to_numpy().astype(float) - low) / (high - low), 0, 1)
        for name, (low, high) in bounds.items()
    ]
    return np.column_stack(columns)


def lending() -> Split:
    """Interest rate from eight numeric columns."""
    table = parquet.read_table(data_folder() / "lending_club_2007_2014.parquet")
    return _split(_scaled(table, LENDING), table.column("int_rate").to_numpy(), 0.2)


def adult() -> Split:
    """Income above 50,000 from six numeric columns."""
    table = parquet.read_table(data_folder() / "adult.parquet")
    labels = np.array(table.column("income").to_pylist()) == ">50K"
    return _split(_scaled(table, ADULT), labels.astype(int), 1 / 3)


def cancer(seed: int = 0) -> Split:
    """Malignant or benign from thirty columns, strongly related."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    return _split(np.clip(inputs / CANCER_HIGH, 0, 1), labels, 0.3, seed)


def _split(inputs: np.ndarray, target: np.ndarray, share: float, seed: int = 0) -> Split:
    train, test, known, asked = train_test_split(inputs, target, test_size=share, random_state=seed)
    return train, known, test, asked


def draws(splits: list[Split], level: float, count: int) -> Iterator[tuple[Split, np.ndarray, np.ndarray]]:
    """Noisy copies of the training rows with noise variance `level` times each feature's."""
    for seed in range(count):
        split = splits[seed % len(splits)]
        generator = np.random.default_rng([seed, round(1000 * level)])
        variance = level * split[0].var(axis=0)
        yield split, split[0] + generator.normal(size=split[0].shape) * np.sqrt(variance), variance


Loss = Callable[[Any, np.ndarray, np.ndarray], float]


def squared(model: Any, inputs: np.ndarray, target: np.ndarray) -> float:
    return float(mean_squared_error(target, model.predict(inputs)))


def logarithmic(model: Any, inputs: np.ndarray, target: np.ndarray) -> float:
    return float(log_loss(target, model.predict_proba(inputs)))


def wrong(model: Any, inputs: np.ndarray, target: np.ndarray) -> float:
    return float(zero_one_loss(target, model.predict(inputs)))


def excess(
    splits: list[Split],
    level: float,
    count: int,
    plain: Callable[[], Any],
    aware: Callable[..., Any],
    losses: tuple[Loss, ...],
    keep: float = 1.0,
) -> np.ndarray:
    """Loss above the clean-data model's, as draws × (plain, aware) × losses."""
    rows = []
    for split, noisy, variance in draws(splits, level, count):
        train, known, test, asked = split
        labels, extra = known, {}
        if keep < 1:
            flipped = np.random.default_rng(len(rows)).uniform(size=len(known)) > keep
            labels, extra = np.where(flipped, 1 - known, known), {"label_noise": ResponseNoise((0, 1), keep)}
        clean = plain().fit(train, known)
        models = plain().fit(noisy, labels), aware(noise=variance, **extra).fit(noisy, labels)
        base = [loss(clean, test, asked) for loss in losses]
        rows.append(
            [[loss(model, test, asked) - at for loss, at in zip(losses, base, strict=True)] for model in models]
        )
    return np.array(rows)


def report(title: str, plain: np.ndarray, aware: np.ndarray, bar: float) -> None:
    """One line: PASS within `bar` times plain, TIE when a miss is below two standard errors of the difference."""
    over = aware - bar * plain
    error = float(over.std(ddof=1) / np.sqrt(len(over))) if len(over) > 1 else float("inf")
    verdict = "PASS" if over.mean() <= 0 else "TIE" if over.mean() <= 2 * error else "MISS"
    ratio = aware.mean() / plain.mean() if plain.mean() > 0 else float("nan")
    print(
        f"  {title:<40} plain {plain.mean():9.5f}  aware {aware.mean():9.5f}  ratio {ratio:6.3f}  bar {bar} {verdict}"
    )


def study(name: str, splits: list[Split], count: int, *fits: Any, keep: float = 1.0) -> None:
    """Every level of noise for one data set and one kind of model."""
    plain, aware, losses = fits
    print(f"{name}: mean of {count} draws of the loss on clean test rows above the clean-data model's", flush=True)
    for level in LEVELS:
        table = excess(splits, level, count, plain, aware, losses, keep)
        for column, loss in enumerate(losses):
            bar = BAR if loss is squared and level == 1.0 else 1.0
            report(f"noise {level:6.2f} × variance, {loss.__name__}", table[:, 0, column], table[:, 1, column], bar)


def main(count: int = 10) -> None:
    """Print every table."""
    cancers = [cancer(seed) for seed in range(count)]
    logistic = (lambda: LogisticRegression(max_iter=2000), NoiseAwareLogisticRegression, (logarithmic, wrong))
    vector = (lambda: LinearSVC(dual=False), NoiseAwareSVC, (wrong,))
    study("lending, least squares", [lending()], count, LinearRegression, NoiseAwareLinearRegression, (squared,))
    for name, splits in (("breast cancer", cancers), ("adult", [adult()])):
        for keep, suffix in ((1.0, ""), (0.75, ", labels kept with 3/4")):
            study(f"{name}, logistic{suffix}", splits, count, *logistic, keep=keep)
            study(f"{name}, support vectors{suffix}", splits, count, *vector, keep=keep)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
