"""Models that know the noise: consistent where plain ones are biased, and never worse."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from sfumato.core import BoxNoise, Categories, GaussianNoise, Interval, LaplaceNoise, Schema
from sfumato.errors import InputError, SfumatoError
from sfumato.release.aware_common import Labels, NoisyGram, calibrate, onto_simplex, unbiased_indicators
from sfumato.release.aware_linear import NoiseAwareLinearRegression, SwampedWarning
from sfumato.release.aware_logistic import NoiseAwareLogisticRegression, penalised_logit
from sfumato.release.aware_moments import NoiseAwareMoments
from sfumato.release.aware_svc import NoiseAwareSVC
from sfumato.release.noise import ResponseNoise, TableNoise

LEVELS = (0.01, 0.1, 1.0, 10.0, 100.0)
SCHEMA = Schema({"age": Interval(0, 100), "dose": Interval(0, 10), "town": Categories(["a", "b", "c"])})
WITH_LABEL = Schema({**SCHEMA.columns, "ill": Categories(["no", "yes"])})
RESPONSES = {"town": ResponseNoise(("a", "b", "c"), 0.6), "ill": ResponseNoise(("no", "yes"), 0.8)}
LAWS = {"age": GaussianNoise(20.0), "dose": LaplaceNoise(2.0)}
NOISE = TableNoise.independent(SCHEMA, LAWS, {"town": RESPONSES["town"]})
LABELLED = TableNoise.independent(WITH_LABEL, LAWS, RESPONSES, label="ill")
MODELS = (NoiseAwareLinearRegression, NoiseAwareLogisticRegression, NoiseAwareSVC)


def answers(generator: np.random.Generator, truth: np.ndarray, response: ResponseNoise) -> np.ndarray:
    """Randomised answers, by numpy: nothing here is published."""
    codes = np.searchsorted(np.array(response.values), truth)
    limits = np.cumsum(response.matrix, axis=1)[codes]
    return np.array(response.values)[(generator.uniform(size=(len(truth), 1)) > limits).sum(axis=1)]


def people(rows: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """True table, published table, and a linear target of the true one."""
    generator = np.random.default_rng(seed)
    age = generator.uniform(10, 90, rows)
    dose = np.clip(age / 12 + generator.normal(0, 2, rows), 0, 10)
    town = generator.choice(["a", "b", "c"], p=[0.5, 0.3, 0.2], size=rows)
    true = pd.DataFrame({"age": age, "dose": dose, "town": town})
    target = 0.05 * age - 0.8 * dose + 2.0 * (town == "c") + generator.normal(0, 0.5, rows)
    published = pd.DataFrame(
        {
            "age": age + generator.normal(0, 20, rows),
            "dose": dose + generator.laplace(0, 2, rows),
            "town": answers(generator, town, RESPONSES["town"]),
        }
    )
    return true, published, target


def correlated(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two related features, their noisy copies, unit noise."""
    generator = np.random.default_rng(seed)
    true = generator.normal(size=(rows, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    return true, true + generator.normal(size=true.shape), generator.normal(size=rows)


# Linear regression


@pytest.mark.paper("000", "§2.4", "release/aware_linear.py")
def test_linear_regression_is_consistent_where_plain_is_biased():
    """Error falls like 1/√n; plain least squares stays 40 % off."""
    truth = np.array([2.0, -1.0])
    errors = []
    for rows in (1_000, 100_000):
        true, noisy, disturbance = correlated(rows, 1)
        target = true @ truth + disturbance
        plain = LinearRegression().fit(noisy, target).coef_
        errors.append(np.linalg.norm(NoiseAwareLinearRegression(1.0).fit(noisy, target).coef_ - truth))
        assert np.linalg.norm(plain - truth) > 0.9
    assert errors[1] < 0.05
    assert errors[1] < errors[0]


def test_correlated_noise_is_corrected_for_too():
    generator = np.random.default_rng(2)
    noise = np.array([[1.0, 0.7], [0.7, 1.0]])
    true, _, disturbance = correlated(100_000, 3)
    noisy = true + generator.multivariate_normal([0, 0], noise, size=len(true))
    model = NoiseAwareLinearRegression(noise).fit(noisy, true @ [2.0, -1.0] + disturbance)
    assert np.abs(model.coef_ - [2.0, -1.0]).max() < 0.1
    with pytest.warns(SwampedWarning):  # more noise than there is: it seems to drown a direction
        wrong = NoiseAwareLinearRegression(1.0).fit(noisy, true @ [2.0, -1.0] + disturbance)
    assert np.abs(wrong.coef_ - [2.0, -1.0]).max() > 0.3


def test_columns_without_noise_are_left_exact():
    true, noisy, disturbance = correlated(50_000, 4)
    mixed = np.column_stack([noisy[:, 0], true[:, 1]])
    model = NoiseAwareLinearRegression([1.0, 0.0]).fit(mixed, true @ [2.0, -1.0] + disturbance)
    assert np.abs(model.coef_ - [2.0, -1.0]).max() < 0.1


@pytest.mark.parametrize("seed", range(3))
def test_no_noise_is_least_squares(seed):
    true, _, target = correlated(200, seed)
    model, plain = NoiseAwareLinearRegression(0.0).fit(true, target), LinearRegression().fit(true, target)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(plain.intercept_)


def test_noisy_rows_have_a_predictor_of_their_own():
    """For noisy inputs the best linear prediction is plain least squares; for clean ones it is not."""
    true, noisy, disturbance = correlated(20_000, 5)
    target = true @ [2.0, -1.0] + disturbance
    model, plain = NoiseAwareLinearRegression(1.0).fit(noisy, target), LinearRegression().fit(noisy, target)
    np.testing.assert_allclose(model.predict(noisy, noisy=True), plain.predict(noisy), atol=1e-8)
    assert np.mean((model.predict(true) - target) ** 2) < 0.8 * np.mean((plain.predict(true) - target) ** 2)


def test_released_table_with_categories():
    """Gaussian, Laplace and randomised columns together: every coefficient is found, by every kind of table."""
    true, published, target = people(60_000)
    model = NoiseAwareLinearRegression(NOISE).fit(published, target)
    assert list(model.feature_names_out_) == ["age", "dose", "town=b", "town=c"]
    assert (np.abs(model.coef_ - [0.05, -0.8, 0.0, 2.0]) < [0.01, 0.1, 0.1, 0.15]).all()
    assert np.mean((model.predict(true) - target) ** 2) < 0.35
    for other in (pl.DataFrame(published), pa.Table.from_pandas(published), published.to_dict("list")):
        again = NoiseAwareLinearRegression(NOISE).fit(other, target)
        np.testing.assert_allclose(again.predict(true), model.predict(true))
    some = NoiseAwareLinearRegression(NOISE).fit(published[["age", "dose"]], target)
    assert some.covariance_.shape == (2, 2)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_named_tables_with_a_plain_covariance(kind):
    _, noisy, disturbance = correlated(500, 6)
    frame = kind({"first": noisy[:, 0], "second": noisy[:, 1]})
    named = NoiseAwareLinearRegression(1.0).fit(frame, disturbance)
    np.testing.assert_allclose(named.coef_, NoiseAwareLinearRegression(1.0).fit(noisy, disturbance).coef_)
    assert named.predict(frame).shape == (500,)


def test_noise_shared_with_the_target_is_taken_out():
    """One release may draw the noise of a feature and of the numeric label together."""
    generator = np.random.default_rng(7)
    schema = Schema({"x": Interval(0, 1), "y": Interval(0, 1)})
    covariance = ((1.0, 0.8), (0.8, 1.0))
    noise = TableNoise(schema, ("x", "y"), (GaussianNoise(1.0),) * 2, covariance, label="y")
    true = generator.normal(size=100_000)
    drawn = generator.multivariate_normal([0, 0], np.array(covariance), size=len(true))
    model = NoiseAwareLinearRegression(noise).fit({"x": true + drawn[:, 0]}, 0.5 * true + drawn[:, 1])
    assert model.coef_[0] == pytest.approx(0.5, abs=0.05)


# The repaired Gram matrix


@pytest.mark.parametrize("seed", range(5))
def test_repaired_covariance_is_positive_semidefinite(seed):
    """With noise 50 times the signal some corrected eigenvalue is negative; the repaired matrix has none."""
    generator = np.random.default_rng(seed)
    noisy = generator.normal(size=(60, 6)) * np.sqrt(50)
    moments = np.cov(noisy.T)
    noise = 50 * np.eye(6)
    assert np.linalg.eigvalsh(moments - noise)[0] < 0
    repaired = NoisyGram.of(moments, noise, 60).repaired(noise)
    assert np.linalg.eigvalsh(repaired)[0] > -1e-9
    with pytest.warns(SwampedWarning, match="drowns"):
        model = NoiseAwareLinearRegression(50.0).fit(noisy, generator.normal(size=60))
    assert model.resolution_ < 2
    assert np.isfinite(model.coef_).all()
    assert np.linalg.eigvalsh(model.covariance_)[0] > -1e-9


def test_family_ends_at_plain_and_at_the_full_correction():
    true, noisy, disturbance = correlated(5_000, 8)
    target = true[:, 0] + disturbance
    plain = NoiseAwareLinearRegression(1.0, regularization=1.0).fit(noisy, target)
    np.testing.assert_allclose(plain.coef_, LinearRegression().fit(noisy, target).coef_, rtol=1e-8)
    full = NoiseAwareLinearRegression(1.0, regularization=0.0).fit(noisy, target)
    centred = noisy - noisy.mean(axis=0)
    moments = centred.T @ centred / len(noisy) - np.eye(2)
    np.testing.assert_allclose(full.coef_, np.linalg.solve(moments, centred.T @ target / len(noisy)), rtol=1e-8)


# Never worse than plain


def _splits(inputs: np.ndarray, target: np.ndarray, count: int):
    scaled = (inputs - inputs.min(axis=0)) / np.ptp(inputs, axis=0)
    for seed in range(count):
        yield train_test_split(scaled, target, test_size=0.4, random_state=seed)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.by_day(3)
def test_linear_regression_is_never_worse(level, law):
    """Mean over 20 draws on 265 rows, within one hundredth of the loss: the least that such a table can resolve."""
    plain, aware = [], []
    for seed, (train, test, known, asked) in enumerate(_splits(*load_diabetes(return_X_y=True), 20)):
        variance = level * train.var(axis=0)
        drawn = getattr(np.random.default_rng(seed), law)(size=train.shape) / (1 if law == "normal" else np.sqrt(2))
        noisy = train + drawn * np.sqrt(variance)
        plain.append(np.mean((LinearRegression().fit(noisy, known).predict(test) - asked) ** 2))
        model = NoiseAwareLinearRegression(variance, regularization="prediction").fit(noisy, known)
        aware.append(np.mean((model.predict(test) - asked) ** 2))
    assert np.mean(aware) <= 1.01 * np.mean(plain)
    if level >= 1:
        assert np.mean(aware) < np.mean(plain)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("keep", [1.0, 0.75])
@pytest.mark.by_day(2)
def test_classifiers_are_never_worse(level, keep):
    """Log-loss strictly, errors within one half per cent of the test rows."""
    losses, errors, margins = [], [], []
    for seed, (train, test, known, asked) in enumerate(_splits(*load_breast_cancer(return_X_y=True), 6)):
        generator = np.random.default_rng(seed)
        variance = level * train.var(axis=0)
        noisy = train + generator.normal(size=train.shape) * np.sqrt(variance)
        labels = np.where(generator.uniform(size=len(known)) > keep, 1 - known, known)
        response = ResponseNoise((0, 1), keep) if keep < 1 else None
        pair = [
            LogisticRegression(max_iter=1000).fit(noisy, labels),
            NoiseAwareLogisticRegression(variance, label_noise=response).fit(noisy, labels),
        ]
        losses.append([log_loss(asked, model.predict_proba(test)) for model in pair])
        errors.append([1 - model.score(test, asked) for model in pair])
        vectors = LinearSVC(dual=False).fit(noisy, labels), NoiseAwareSVC(variance, label_noise=response)
        margins.append([1 - model.fit(noisy, labels).score(test, asked) for model in vectors])
    for table, slack in ((losses, 0.0), (errors, 0.005), (margins, 0.005)):
        plain, aware = np.mean(table, axis=0)
        assert aware <= plain + slack


# Logistic regression and support vectors


@pytest.mark.paper("000", "§2.4", "release/aware_logistic.py")
def test_logistic_regression_is_consistent_whatever_the_features():
    """Skewed features, Gaussian noise: the conditional score finds the truth, calibration alone does not."""
    generator = np.random.default_rng(9)
    true = generator.exponential(size=(60_000, 2)) - 1
    labels = generator.uniform(size=len(true)) < expit(true @ [2.0, -1.0] - 0.5)
    noisy = true + generator.normal(size=true.shape)
    truth = np.array([2.0, -1.0])
    model = NoiseAwareLogisticRegression(1.0).fit(noisy, labels)
    assert model.method_ == ("score",)
    assert np.abs(model.coef_[0] - truth).max() < 0.15
    assert model.intercept_[0] == pytest.approx(-0.5, abs=0.1)
    assert np.abs(LogisticRegression().fit(noisy, labels).coef_[0] - truth).max() > 0.5
    rough = NoiseAwareLogisticRegression(1.0, method="calibration").fit(noisy, labels)
    assert np.abs(rough.coef_[0] - truth).max() > 0.15


def test_logistic_regression_undoes_randomised_labels():
    generator = np.random.default_rng(10)
    true = generator.normal(size=(60_000, 2))
    labels = np.where(generator.uniform(size=len(true)) < expit(true @ [2.0, -1.0]), "yes", "no")
    response = ResponseNoise(("no", "yes"), 0.8)
    published = answers(generator, labels, response)
    noisy = true + generator.normal(size=true.shape) * 0.5
    model = NoiseAwareLogisticRegression(0.25, label_noise=response).fit(noisy, published)
    assert np.abs(model.coef_[0] - [2.0, -1.0]).max() < 0.2
    blind = NoiseAwareLogisticRegression(0.25).fit(noisy, published)
    assert np.abs(blind.coef_[0] - [2.0, -1.0]).max() > 0.5


def test_without_noise_logistic_regression_is_scikit_learns():
    inputs, labels = load_breast_cancer(return_X_y=True)
    inputs = inputs / inputs.max(axis=0)
    model = NoiseAwareLogisticRegression(0.0).fit(inputs, labels)
    plain = LogisticRegression(tol=1e-8, max_iter=5000).fit(inputs, labels)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)
    assert model.method_ == ("plain",)


def test_three_classes_of_a_released_table():
    """Numbers, randomised categories and a randomised label, read from the noise law alone."""
    true, published, target = people(20_000)
    ill = np.where(target > np.median(target), "yes", "no")
    asked = answers(np.random.default_rng(1), ill, RESPONSES["ill"])
    for model in (NoiseAwareLogisticRegression(LABELLED), NoiseAwareSVC(LABELLED)):
        assert model.fit(published, asked).score(true, ill) > 0.85
    town = true["town"].to_numpy()
    plain = TableNoise.independent(Schema({"age": Interval(0, 100), "dose": Interval(0, 10)}), LAWS)
    chances = (
        NoiseAwareLogisticRegression(plain).fit(published[["age", "dose"]], town).predict_proba(true[["age", "dose"]])
    )
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert chances.shape == (20_000, 3)


def test_calibration_is_exact_for_gaussian_classes():
    generator = np.random.default_rng(11)
    labels = generator.integers(0, 2, size=100_000)
    true = generator.normal(size=(len(labels), 2)) @ np.array([[1.0, 0.5], [0.0, 0.9]]) + np.outer(labels, [1.0, 0.5])
    noisy = true + generator.normal(size=true.shape)
    rules = [penalised_logit(inputs, Labels(np.array([0, 1]), labels), 1, np.eye(2))[0] for inputs in (true, noisy)]
    coefficients, intercept = calibrate(rules[1], noisy, labels.astype(float), np.eye(2))
    np.testing.assert_allclose(coefficients, rules[0][0], atol=0.05)
    assert intercept == pytest.approx(rules[0][1], abs=0.05)


# Moments


def test_moments_find_the_truth():
    true, published, _ = people(60_000)
    moments = NoiseAwareMoments(NOISE).fit(published)
    numeric = true[["age", "dose"]]
    assert moments.columns_ == ("age", "dose")
    assert (np.abs(moments.mean_ - numeric.mean().to_numpy()) < 4 * moments.mean_error_).all()
    assert (np.abs(moments.covariance_ - numeric.cov().to_numpy()) < 4 * moments.covariance_error_).all()
    shares = true["town"].value_counts(normalize=True)
    for value, share in moments.frequencies_["town"].items():
        assert abs(share - shares[value]) < 4 * moments.frequency_errors_["town"][value]
    assert sum(moments.frequencies_["town"].values()) == pytest.approx(1.0)


@pytest.mark.parametrize("law", [GaussianNoise(20.0), LaplaceNoise(15.0), BoxNoise(60.0)], ids=repr)
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
@pytest.mark.by_day(2)
def test_quantiles_by_deconvolution(law, q):
    """Within 2.5 years of the truth, where the noisy quantile is up to 20 years off."""
    generator = np.random.default_rng(12)
    true = 20 + 60 * generator.beta(2, 4, size=40_000)
    grid = np.linspace(-400, 400, 80_001)
    noisy = true + np.interp(generator.uniform(size=len(true)), law.cdf(grid), grid)
    noise = TableNoise.independent(Schema({"age": Interval(0, 100)}), {"age": law})
    moments = NoiseAwareMoments(noise).fit({"age": noisy})
    assert moments.quantile("age", q) == pytest.approx(np.quantile(true, q), abs=2.5)
    assert 0 < moments.quantile_error("age", q, repetitions=8) < 5
    if q != 0.5:
        assert abs(np.quantile(noisy, q) - np.quantile(true, q)) > 8


def test_quantiles_without_noise_are_the_columns_own():
    values = np.arange(101.0)
    assert NoiseAwareMoments(0.0).fit(values[:, None]).quantile(0, 0.25) == 25.0


# Randomised response


@pytest.mark.parametrize("size", [2, 3, 7])
def test_inverted_answers_are_unbiased(size):
    response = ResponseNoise(tuple(range(size)), 0.5 if size > 2 else 0.7)
    rows = unbiased_indicators(response, np.arange(size))
    np.testing.assert_allclose(response.matrix @ rows, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_simplex_projection_is_the_nearest_point(seed):
    generator = np.random.default_rng(seed)
    point = generator.normal(size=4)
    nearest = onto_simplex(point)
    assert nearest.sum() == pytest.approx(1.0)
    assert (nearest >= 0).all()
    others = generator.dirichlet(np.ones(4), size=2000)
    assert np.linalg.norm(point - nearest) <= np.linalg.norm(others - point, axis=1).min() + 1e-12


# Conformance and bad input


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [model(noise=0.0) for model in MODELS], ids=lambda model: type(model).__name__)
def test_scikit_learn_conformance(estimator):
    check_estimator(estimator, on_skip=None)


@pytest.mark.parametrize("model", MODELS)
def test_clipped_noise_is_refused(model):
    noise = TableNoise.independent(SCHEMA, LAWS, clipped=True)
    _, published, target = people(50)
    with pytest.raises(InputError, match="clip=False"):
        model(noise).fit(published, target > 0)
    with pytest.raises(InputError, match="clip=False"):
        NoiseAwareMoments(noise).fit(published)


@pytest.mark.parametrize("model", MODELS)
def test_tables_that_do_not_fit(model):
    _, published, target = people(50)
    with pytest.raises(SfumatoError, match="height"):
        model(NOISE).fit(published.assign(height=1.0), target > 0)
    with pytest.raises(SfumatoError, match="2 columns"):
        model(NOISE).fit(published[["age", "dose"]].to_numpy(), target > 0)
    with pytest.raises(SfumatoError, match="missing"):
        model(NOISE).fit(published.assign(age=np.nan), target > 0)
    with pytest.raises(SfumatoError, match="label 'ill'"):
        model(LABELLED).fit(published.assign(ill="no"), ["no", "yes"] * 25)
    with pytest.raises(InputError, match="shape"):
        model(np.eye(3)).fit(published[["age", "dose"]], target > 0)
    with pytest.raises(InputError, match="negative eigenvalue"):
        model(np.array([[1.0, 2.0], [2.0, 1.0]])).fit(published[["age", "dose"]], target > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SwampedWarning)  # 50 rows
        fitted = model(NOISE).fit(published, target > 0)
    with pytest.raises(SfumatoError, match="lacks"):
        fitted.predict(published[["age", "dose"]])


@pytest.mark.parametrize("model", [NoiseAwareLogisticRegression, NoiseAwareSVC])
def test_labels_that_cannot_be_learned(model):
    inputs = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(SfumatoError, match="class"):
        model(0.1).fit(inputs, np.zeros(40))
    with pytest.raises(SfumatoError, match="do not know"):
        model(0.1, label_noise=ResponseNoise((0, 1), 0.8)).fit(inputs, np.arange(40) % 3)
    with pytest.raises(InputError, match="say nothing"):
        model(0.1, label_noise=ResponseNoise((0, 1), 0.5)).fit(inputs, np.arange(40) % 2)
    with pytest.raises(SfumatoError, match="empty"):
        model(0.1, label_noise=ResponseNoise((0, 1), 0.8)).fit(inputs, np.zeros(40, dtype=int))


def test_parameters_that_mean_nothing():
    inputs, target = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    for model in (
        NoiseAwareLinearRegression(0.1, regularization=2.0),
        NoiseAwareLogisticRegression(0.1, C=0.0),
        NoiseAwareSVC(0.1, shrinkage=-1.0),
        NoiseAwareLinearRegression("much"),  # type: ignore[arg-type]
        NoiseAwareMoments(0.1, bins=1),
    ):
        with pytest.raises(InputError):
            model.fit(inputs, target)
    fitted = NoiseAwareMoments(0.1).fit(inputs)
    with pytest.raises(InputError, match="between 0 and 1"):
        fitted.quantile(0, 1.5)
    with pytest.raises(InputError, match="No numeric column"):
        fitted.quantile("age", 0.5)
