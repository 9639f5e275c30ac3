"""Farokhi 2020, Figs 5 to 7, again: Breast Cancer and Adult with support vectors, Lending Club with least squares.

In:   StudySettings; the data sets of data.py.
Out:  the studies CANCER, ADULT and LENDING.
Not here: the sweep over λ and the comparisons (farokhi_curves.py), Figs 3 and 4 (farokhi_toy.py).

As in the paper a model is learned from the noisy table and scored on the original one, categories are coded as
integers and labels are published as they are. Unlike the paper's, all columns are in units of their public widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from papers.data import SCHEMAS, integer_coded, load
from papers.farokhi_curves import Curves, Problem, approach, draw_study, rivalry, sweep, unit_noise
from papers.study import Study, StudyResult, StudySettings, Verdict
from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.mechanisms import Gaussian
from sfumato.release.aware_linear import NoiseAwareLinearRegression
from sfumato.release.aware_svc import NoiseAwareSVC
from sfumato.release.obfuscated import ObfuscatedRelease
from sfumato.release.svm import RegularisedSVM

__all__ = [
    "ADULT",
    "CANCER",
    "LENDING",
    "QUICK",
    "REFERENCE",
    "RHO",
    "THETA",
    "Obfuscation",
    "classification",
    "obfuscate",
    "obfuscation_numbers",
    "obfuscation_verdicts",
]

RHO, THETA = 1e-2, 1.0
#: The paper's penalty σ on the regression.
_PENALTY = 1e-5
REFERENCE = "Farokhi, Privacy-Preserving Public Release of Datasets for Support Vector Machine Classification, 2020"
_NOTES = (
    "Columns are in units of their public widths and Π = I; the paper does not say how it scaled the columns, so its λ "
    "and ours are not on the same axis.",
    "Labels are published as they are: ε covers one record's features.",
    "The Cramér-Rao bound binds unbiased attackers only; guessing the middle of every range errs less at small λ.",
)
QUICK = "A quick run has too few rows and draws to judge the claims: its verdicts only show that everything works."


def classification(values: np.ndarray, labels: np.ndarray, widths: np.ndarray | None = None) -> Problem:
    """Problem (2) on noisy columns, scored by the share of original rows on the right side."""

    def plain(noisy: np.ndarray) -> float:
        machine = RegularisedSVM(RHO, THETA).fit(noisy, labels)
        return float(np.mean((values @ machine.alpha_ + machine.beta_ > 0) == (labels > 0)))

    def aware(noisy: np.ndarray, variance: float) -> float:
        return float(np.mean(NoiseAwareSVC(noise=variance).fit(noisy, labels).predict(values) == labels))

    widths = np.ones(values.shape[1]) if widths is None else widths
    return Problem(values, widths, plain, aware, "share of original records classified correctly", True)


def regression(values: np.ndarray, target: np.ndarray) -> Problem:
    """Least squares with the paper's penalty on noisy columns; its loss on the original rows."""

    def plain(noisy: np.ndarray) -> float:
        return _loss(values, target, *_ridge(noisy, target))

    def aware(noisy: np.ndarray, variance: float) -> float:
        return _loss(values, target, *_noise_aware(noisy, np.full(noisy.shape[1], variance), target))

    score = "loss of the regression on the original records (squared % points)"
    return Problem(values, np.ones(values.shape[1]), plain, aware, score, False)


def _loss(values: np.ndarray, target: np.ndarray, weights: np.ndarray, intercept: float) -> float:
    residual = target - values @ weights - intercept
    return float(_PENALTY * weights @ weights + residual @ residual / len(target))


def _noise_aware(noisy: np.ndarray, variances: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    model = NoiseAwareLinearRegression(variances, regularization="prediction").fit(noisy, target)
    return model.coef_, model.intercept_


def _ridge(values: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """argmin σ|φ|² + mean (y - φᵀx - b)²; the constant b is public and free, as every column's low end is."""
    centre, middle = values.mean(axis=0), float(target.mean())
    gram = values.T @ values / len(values) - np.outer(centre, centre)
    products = values.T @ target / len(values) - middle * centre
    weights = np.linalg.solve(gram + _PENALTY * np.eye(len(gram)), products)
    return weights, middle - float(weights @ centre)


def _subsample(table: pa.Table, settings: StudySettings, rows: int) -> pa.Table:
    if not settings.quick or table.num_rows <= rows:
        return table
    chosen = np.random.default_rng(settings.seed).choice(table.num_rows, rows, replace=False)
    return table.take(pa.array(np.sort(chosen)))


def _signs(column: pa.ChunkedArray, positive: str) -> np.ndarray:
    return np.where(column.cast(pa.string()).to_numpy() == positive, 1, -1)


def _result(
    settings: StudySettings,
    curves: Curves,
    title: str,
    verdicts: tuple[Verdict, ...],
    notes: tuple[str, ...],
    numbers: dict[str, float],
    floor: tuple[float, str] | None = None,
) -> StudyResult:
    columns, rows = curves.rows()
    used = {
        "rows": len(curves.problem.values),
        "columns": curves.problem.values.shape[1],
        "draws": curves.draws,
        "lambdas": [level.trade_off for level in curves.levels],
    }
    return StudyResult(
        columns,
        rows,
        verdicts,
        partial(draw_study, curves=curves, title=title, floor=floor),
        (*notes, *([QUICK] if settings.quick else [])),
        used,
        {"non_private": curves.clean, **numbers},
        curves.shown(),
    )


# Fig. 5.


def _cancer(settings: StudySettings) -> StudyResult:
    table = load("breast_cancer")
    values, labels = integer_coded("breast_cancer", table), _signs(table["diagnosis"], "benign")
    grid = (1.0, 1e2, 1e4) if settings.quick else tuple(10.0**k for k in range(-2, 7))
    curves = sweep(settings, classification(values, labels), grid, 3 if settings.quick else 40)
    unit = {f"x{at}": Interval(0, 1) for at in range(values.shape[1])}
    hidden = obfuscate(Schema({**unit, "y": Categories((-1, 1))}), values, labels, settings.seed, variance=100.0)
    return _result(
        settings,
        curves,
        "Breast Cancer (569 records, 30 columns): support vector machine from a noisy table (Farokhi, Fig. 5)",
        (approach(curves), *rivalry(curves), *obfuscation_verdicts(hidden, 2840.0)),
        (*_NOTES, _SVC_NOTE),
        obfuscation_numbers(hidden) | _price(curves),
        _majority(labels),
    )


_SVC_NOTE = (
    "The noise-aware model starts from scikit-learn's LinearSVC (squared hinge, C = 1), the plain one is problem (2) "
    f"with ρ = {RHO:g} and θ = {THETA:g}: part of their difference is the loss, not the correction."
)


@dataclass(frozen=True)
class Obfuscation:
    """What Thm 2.10's noise did and did not do."""

    noisy: np.ndarray
    machine: RegularisedSVM
    moved: float
    along_normal: float
    least_variance: float
    recovery_error: float


def obfuscate(schema: Schema, values: np.ndarray, labels: np.ndarray, seed: int, variance: float) -> Obfuscation:
    """Publish with correlated noise, train again, and attack: whoever knows the others gets a support vector back."""
    *names, label = schema.columns
    table = pa.table({**{name: values[:, at] for at, name in enumerate(names)}, label: labels})
    release = ObfuscatedRelease(
        schema, label=label, variance=variance, rho=RHO, theta=THETA, accept_no_dp=True, random_state=seed
    )
    published = release.release(table).table
    noisy = np.column_stack([published[name].to_numpy() for name in names])
    before, after = (RegularisedSVM(RHO, THETA).fit(inputs, labels) for inputs in (values, noisy))
    pairs = ((before.alpha_, after.alpha_), (before.beta_, after.beta_), (before.xi_, after.xi_))
    share = float((before.omega_**2).max()) / float(before.omega_ @ before.omega_)
    return Obfuscation(
        noisy,
        after,
        max(float(np.abs(np.subtract(old, new)).max()) for old, new in pairs),
        float(np.abs((noisy - values) @ before.alpha_).max() / np.linalg.norm(before.alpha_)),
        variance * (values.shape[1] - 1) * (1 - share),
        _recovery_error(values, labels, after),
    )


def _recovery_error(values: np.ndarray, labels: np.ndarray, published: RegularisedSVM) -> float:
    """α = Σ ω y x at the optimum: α and ω of the published table and all records but one give that one back."""
    victim = int(np.argmax(published.omega_))
    weights = published.omega_ * labels
    others = np.delete(np.arange(len(values)), victim)
    guess = (published.alpha_ - weights[others] @ values[others]) / weights[victim]
    return float(np.linalg.norm(guess - values[victim]))


def obfuscation_verdicts(hidden: Obfuscation, bound: float) -> tuple[Verdict, ...]:
    """On the same classifier, on where the points go, and on the quoted `bound` on an attacker."""
    return (
        Verdict(
            "with the correlated noise of Thm 2.10 at m = 100 the classifier is the same",
            hidden.moved <= 1e-6,
            f"α, β and ξ move by at most {hidden.moved:.1e}",
        ),
        Verdict(
            "this noise spreads the data along the classifier and not towards it",
            hidden.along_normal <= 1e-9,
            f"no point moves by more than {hidden.along_normal:.1e} across",
        ),
        Verdict(
            f"with it no record is estimated with a squared error below {bound:g}",
            hidden.recovery_error**2 >= bound,
            f"the noise on the least noisy record has total variance {hidden.least_variance:.4g}, but its margin is "
            f"published, and who knows the other records recovers a support vector to {hidden.recovery_error:.1e}",
        ),
    )


def obfuscation_numbers(hidden: Obfuscation) -> dict[str, float]:
    return {
        "obfuscated_classifier_moved": hidden.moved,
        "obfuscated_move_along_normal": hidden.along_normal,
        "obfuscated_least_variance": hidden.least_variance,
        "support_vector_recovery_error": hidden.recovery_error,
    }


# Fig. 6.


def _adult(settings: StudySettings) -> StudyResult:
    table = _subsample(load("adult"), settings, 4000)
    values, labels = integer_coded("adult", table), _signs(table["income"], ">50K")
    grid = (1e2, 1e4, 1e6) if settings.quick else tuple(10.0**k for k in range(-2, 7))
    curves = sweep(settings, classification(values, labels), grid, 3 if settings.quick else 8)
    return _result(
        settings,
        curves,
        f"Adult ({len(values):,} records, {values.shape[1]} columns): "
        "support vector machine from a noisy table (Farokhi, Fig. 6)",
        (approach(curves), *rivalry(curves)),
        (*_NOTES, _SVC_NOTE, "education is left out: education_num is its integer code."),
        _price(curves),
        _majority(labels),
    )


# Fig. 7.


def _lending(settings: StudySettings) -> StudyResult:
    name = "lending_club_2007_2014"
    table = _subsample(load(name), settings, 20_000)
    target_name = list(SCHEMAS[name].columns)[-1]
    values, target = integer_coded(name, table), table[target_name].to_numpy().astype(float)
    problem = regression(values, target)
    grid = (1.0, 1e2, 1e4) if settings.quick else tuple(10.0**k for k in range(-4, 9))
    curves = sweep(settings, problem, grid, 3 if settings.quick else 10)
    matched, numbers = _at_feature_variance(settings, problem, target)
    return _result(
        settings,
        curves,
        f"Lending Club 2007-2014 ({len(values):,} loans, {values.shape[1]} columns): "
        "interest rate by least squares from a noisy table (Farokhi, Fig. 7)",
        (approach(curves), *rivalry(curves), matched),
        (*_NOTES, *_LENDING_NOTES),
        numbers | _price(curves),
        (float(target.var()), "predicting the mean rate"),
    )


_LENDING_NOTES = (
    "The paper's 887,379 loans are not available with exact values: these are the 227,214 finished loans of 2007-2014 "
    "with 16 columns.",
    "The regression has a constant term, which the paper's does not mention: without it large noise would cost the "
    "mean rate as well.",
)


def _at_feature_variance(
    settings: StudySettings, problem: Problem, target: np.ndarray
) -> tuple[Verdict, dict[str, float]]:
    """Noise as strong as each column itself (Π to match): how much of the excess loss knowing the noise saves."""
    values, clean, excess = problem.values, problem.plain(problem.values), []
    deviations = values.std(axis=0)
    for draw in settings.track(range(2 if settings.quick else 5), "noise as strong as the data"):
        noisy = values + deviations * unit_noise(Gaussian, values.shape, 7_000_003 + settings.seed * 1009 + draw)
        corrected = _loss(values, target, *_noise_aware(noisy, deviations**2, target))
        excess.append((problem.plain(noisy) - clean, corrected - clean))
    plain, aware = np.mean(excess, axis=0)
    return Verdict(
        "with noise as strong as each column, knowing the noise law saves 4/5 of the excess loss",
        bool(aware <= plain / 5),
        f"excess loss {aware:.3g} instead of {plain:.3g}",
        of="sfumato",
    ), {"excess_plain_at_feature_variance": float(plain), "excess_aware_at_feature_variance": float(aware)}


# Shared.


def _majority(labels: np.ndarray) -> tuple[float, str]:
    share = float(np.mean(labels > 0))
    return max(share, 1 - share), "always the larger class"


def _price(curves: Curves) -> dict[str, float]:
    """ε from which on the plain model keeps nine tenths of what can be learned, for each kind of model."""
    found = {}
    for name in ("gaussian", "aware", "laplace_privacy"):
        gaps = np.abs(curves.scores[name].mean(axis=0) - curves.clean)
        near = np.flatnonzero(gaps <= 0.1 * np.abs(curves.scores["gaussian"].mean(axis=0) - curves.clean).max())
        if len(near):
            found[f"epsilon_of_a_tenth_of_the_gap_{name}"] = curves.levels[int(near[0])].epsilon
    return found


CANCER = Study("farokhi-cancer", "Breast Cancer: support vectors from a noisy table", f"{REFERENCE}, Fig. 5", _cancer)
ADULT = Study("farokhi-adult", "Adult: support vectors from a noisy table", f"{REFERENCE}, Fig. 6", _adult)
LENDING = Study("farokhi-lending", "Lending Club: least squares from a noisy table", f"{REFERENCE}, Fig. 7", _lending)
