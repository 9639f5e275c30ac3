"""Sums that train: Newton's method without rows, rows on a device.

The device is array-api-strict, which has the standard's functions and nothing else, and torch where it is installed.
"""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.optimize import minimize

from sfumato.core import Interval, Schema
from sfumato.errors import DataError, InputError
from sfumato.learn import (
    EquilibriumClassifier,
    KernelMeanClassifier,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSVC,
    PrivateSVDD,
)
from sfumato.learn.arrays import is_device_array, to_host
from sfumato.learn.device_features import DeviceFeatures, device_class_sums, weighted_gram
from sfumato.learn.device_rows import DeviceRows
from sfumato.learn.features import FourierFeatures
from sfumato.learn.losses import HuberLoss, LogisticLoss, SmoothedHinge
from sfumato.learn.newton import LENGTHS, Objective, SumsGiven, attainable_tolerance, minimise_together
from sfumato.learn.rows import UnitRows
from sfumato.learn.seeds import Seeds
from sfumato.learn.stream_sums import MarginSums, RowShape, answers_from

GENERATOR = np.random.default_rng(2)
X = GENERATOR.normal(size=(5000, 6)) * 0.5
X[0] = 0.0
X[1] = 1e-200
X[2] = 1e200
CODES = (X @ np.arange(6.0) > 0).astype(int)
SIGNS = np.where(CODES == 1, 1.0, -1.0)


#: Libraries whose arrays count as lying on a device.
DEVICES = ["array_api_strict", *(["torch"] if find_spec("torch") else [])]


@pytest.fixture(params=DEVICES)
def device(request):
    """Puts numbers of the host on a device."""
    return import_module(request.param).asarray


def on(library: str, array: np.ndarray):
    return array if library == "numpy" else import_module(library).asarray(array)


def host(array) -> np.ndarray:
    return to_host(array)


@pytest.mark.parametrize("library", ["numpy", *DEVICES])
@pytest.mark.parametrize("options", [{}, {"constant": 0.2}, {"constant": 0.2, "stretch": True}, {"nonzeros": 3}])
@pytest.mark.parametrize("rows", [5000, 1500])
def test_device_rows_are_unit_rows(library, options, rows):
    plain = UnitRows(X[:rows], 1.3, **options)
    device = DeviceRows(on(library, X[:rows]), 1.3, **options)
    vector, weights = GENERATOR.normal(size=plain.width), GENERATOR.uniform(0, 1, rows)
    assert np.allclose(host(device.times(on(library, vector))), plain.times(vector), rtol=1e-12, atol=1e-13)
    assert np.allclose(device.pull(on(library, weights)), plain.pull(weights), rtol=1e-11, atol=1e-11)
    assert np.allclose(device.gram(on(library, weights)), plain.gram(weights, np.float64), rtol=1e-11, atol=1e-11)
    assert np.allclose(device.exact_gram(), plain.exact_gram(), rtol=1e-11, atol=1e-11)
    lengths = np.linalg.norm(np.vstack([host(device.times(on(library, e))) for e in np.eye(plain.width)]), axis=0)
    assert lengths.max() <= 1 + 1e-15  # no row is longer than 1, whatever it was: the guarantee rests on it


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.3), SmoothedHinge(0.4)], ids=str)
def test_losses_on_a_device(loss, device):
    margins = np.concatenate([np.linspace(-3, 3, 101), [-800.0, 800.0]])
    for name in ("slope", "curvature"):
        there = getattr(loss, name)(device(margins))
        assert is_device_array(there)
        assert host(there).dtype == np.float64
        assert np.allclose(host(there), getattr(loss, name)(margins), rtol=1e-14, atol=1e-300)


def by_quasi_newton(rows, signs, loss, strength, tilt):
    """The minimiser by scipy, in plain numpy, and how large its gradient is left: far above the tolerance."""
    table = np.stack([rows.times(axis) for axis in np.eye(rows.width)], axis=1) * signs[:, None]

    def value(f):
        return loss.value(table @ f).mean() + strength / 2 * f @ f + tilt @ f

    def slope(f):
        return table.T @ loss.slope(table @ f) / len(table) + strength * f + tilt

    point = minimize(value, np.zeros(rows.width), jac=slope, options={"maxiter": 5000, "gtol": 1e-8}).x
    return point, np.linalg.norm(slope(point))


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.1), SmoothedHinge(0.5)], ids=str)
@pytest.mark.parametrize("strength", [2e-5, 1e-2])
@pytest.mark.by_day(3)
def test_newton_by_sums_finds_the_minimiser(loss, strength):
    rows, size = UnitRows(X, 1.0, 0.2), len(X)
    tilts = [np.random.default_rng(seed).normal(size=rows.width) * 1e-3 for seed in (0, 1)]
    tolerance = attainable_tolerance(loss, rows.width, strength, 1e-2)
    objectives = [Objective(loss, rows.width, size, size, strength, tilt, tolerance) for tilt in tilts]
    asked = []

    def ask(questions):
        asked.append(len(questions))
        sums = MarginSums(RowShape(1.0, 0.2), loss, tuple(questions), (1, 0))(X, CODES)
        return answers_from(questions, sums)

    found = minimise_together(objectives, ask)
    assert len(asked) < 80  # separable rows and a sharp corner are hard; logistic takes about ten
    for model, tilt in enumerate(tilts):
        signs = SIGNS if model == 0 else -SIGNS
        other, left = by_quasi_newton(rows, signs, loss, strength, tilt)
        assert np.linalg.norm(found[model].point - other) <= (left + tolerance) / strength
        margins = signs * rows.times(found[model].point)
        exact = rows.pull(signs * loss.slope(margins)) / size + strength * found[model].point + tilt
        assert np.linalg.norm(exact) <= found[model].gradient_bound <= tolerance


@pytest.mark.parametrize("loss", [HuberLoss(0.5), HuberLoss(0.05), SmoothedHinge(0.5), LogisticLoss()], ids=str)
def test_little_strength_takes_few_steps(loss):
    """One-hot rows that hardly say anything in some directions: full Newton steps alone took hundreds here."""
    generator, size = np.random.default_rng(0), 4000
    table = np.hstack([np.eye(20)[generator.integers(20, size=size)], 0.3 * generator.normal(size=(size, 10))])
    codes = (table @ generator.normal(size=30) + 0.5 * generator.normal(size=size) > 0).astype(int)
    tilt = generator.normal(size=30) * 9 / size
    tolerance = attainable_tolerance(loss, 30, 5e-8, float(np.linalg.norm(tilt)), 1.0)

    def ask(questions):
        return answers_from(
            questions, MarginSums(RowShape(2.0, 0.0), loss, tuple(questions), (1,), fine=True)(table, codes)
        )

    (found,) = minimise_together([Objective(loss, 30, size, size, 5e-8, tilt, tolerance)], ask)
    assert found.steps < 50


def test_a_wrong_sum_is_not_certified():
    """The planted mistake: gradients of another table end at another point, and the certificate there fails."""
    rows, size = UnitRows(X, 1.0), len(X)
    objective = Objective(LogisticLoss(), 6, size, size, 1e-3, np.zeros(6), 1e-10)

    def lying(questions):
        sums = MarginSums(RowShape(1.0, 0.0), LogisticLoss(), tuple(questions), (1,))(X[:-1], CODES[:-1])
        return answers_from(questions, sums)

    (found,) = minimise_together([objective], lying)
    margins = SIGNS * rows.times(found.point)
    exact = rows.pull(SIGNS * LogisticLoss().slope(margins)) / size + 1e-3 * found.point
    assert np.linalg.norm(exact) > 1e-6


def test_a_step_too_long_is_halved():
    """f ↦ √(1 + f²)-like loss, for which full Newton steps diverge from far away; the sums still lead home."""
    objective = Objective(LogisticLoss(), 1, 1, 1, 1e-3, np.array([2.0]), 1e-9)

    def ask(questions):
        answers = []
        for one in questions:
            along = 0.0 if one.direction is None else LENGTHS * one.direction
            points = one.point + along
            slopes = points / np.sqrt(1 + points * points) - 1.9
            curvature = np.array([[float(1 + one.point[0] ** 2) ** -1.5]])
            answers.append(SumsGiven(slopes if one.direction is None else slopes * one.direction, curvature))
        return answers

    (found,) = minimise_together([objective], ask)
    p = float(found.point[0])
    assert abs(p / np.sqrt(1 + p * p) - 1.9 + 1e-3 * p + 2.0) <= 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivateLogisticRegression(1.0, 1e-6, random_state=3),
        lambda: PrivateLogisticRegression(1.0, rows="stretch", method="output", random_state=3),
        lambda: PrivateSVC(1.0, 1e-6, random_state=3),
        lambda: PrivateSVC(1.0, 1e-6, kernel="rbf", n_components=11, random_state=3),
        lambda: PrivateLogisticRegression(1.0, 1e-6, norm=None, spend_on_bounds=0.1, random_state=3),
    ],
    ids=["logistic", "output", "svc", "rbf", "bought norm"],
)
@pytest.mark.by_day(2)
def test_classifiers_on_tensors(make, device):
    labels = CODES + (X[:, 0] > 0.4)
    memory = make().fit(X, labels)
    tensor = make().fit(device(X), device(labels))
    assert np.abs(tensor.coef_ - memory.coef_).max() <= 1e-7 * np.abs(memory.coef_).max()
    assert tensor.classes is None
    assert (tensor.predict(device(X)) == tensor.predict(X)).all()
    assert str(tensor.guarantee_) == str(memory.guarantee_)
    assert isinstance(tensor.coef_, np.ndarray)


def test_regression_on_tensors(device):
    target = np.clip(X, -1, 1) @ np.arange(6.0) / 6
    make = lambda: PrivateLinearRegression(1.0, 1e-6, random_state=3)  # noqa: E731
    memory, tensor = make().fit(X, target), make().fit(device(X), device(target))
    assert np.allclose(tensor.coef_, memory.coef_, rtol=1e-9, atol=1e-12)
    assert np.allclose(tensor.predict(device(X)), memory.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("priors", ["included", "divided"])
def test_kernel_means_on_tensors(priors, device):
    rows, labels = np.clip(X, -2, 2), CODES + (X[:, 0] > 0.4)
    make = lambda: KernelMeanClassifier(  # noqa: E731
        1.0, 1e-6, n_components=20, box=(-2.0, 2.0), priors=priors, random_state=3
    )
    memory, tensor = make().fit(rows, labels), make().fit(device(rows), device(labels))
    assert np.allclose(tensor.weights_, memory.weights_, rtol=1e-9, atol=1e-9)
    assert (tensor.predict(device(rows)) == memory.predict(rows)).mean() > 0.999
    with pytest.raises(DataError, match="columns"):
        tensor.predict(device(rows[:, :2]))


def test_supports_and_equilibrium_points_on_tensors(device):
    generator = np.random.default_rng(0)
    labels = generator.integers(2, size=1500)
    rows = generator.normal(scale=0.12, size=(1500, 2)) + np.where(labels == 1, 0.5, -0.5)[:, None]
    make = lambda: PrivateSVDD(2.0, 1e-6, C=20.0, n_components=40, random_state=0)  # noqa: E731
    memory, tensor = make().fit(rows), make().fit(device(rows))
    assert np.abs(memory.centre_ - tensor.centre_).max() <= 4 * memory.sensitivity_
    assert np.allclose(tensor.score_samples(device(rows)), tensor.score_samples(rows), atol=1e-9)
    for support in ("classes", "all"):
        points = EquilibriumClassifier(2.0, 1e-6, cells=16, n_components=40, random_state=0, support=support)
        points.fit(device(rows), device(labels))
        assert isinstance(points.points_, np.ndarray)
        assert points.score(rows, labels) > 0.9
        assert (points.predict(device(rows)) == points.predict(rows)).mean() > 0.99
    assert points.counts_.shape == (len(points.points_), 2)


def test_device_features_are_the_matrix_they_stand_for():
    there, weights = DeviceFeatures(X[5:500]), GENERATOR.uniform(0, 1, 495)
    assert np.allclose(there @ np.ones(6), X[5:500].sum(axis=1))
    assert np.allclose(weights @ there, weights @ X[5:500])
    assert np.allclose(weighted_gram(there, weights), weighted_gram(X[5:500], weights))
    assert np.allclose(there[3], X[8])
    assert there[10:20].shape == (10, 6)
    assert there.astype(np.float32).dtype == np.float32
    sums = device_class_sums(X[5:], CODES[5:], 2)
    assert np.allclose(sums[1], X[5:][CODES[5:] == 1].sum(axis=0))


def test_random_features_on_tensors(device):
    features = FourierFeatures(0.5, 7, 1.0, Seeds(1))
    assert np.allclose(features(X), host(features(device(X))), atol=1e-12)


def test_tensors_that_do_not_fit_are_refused(device):
    model = PrivateLogisticRegression(1.0, 1e-6, random_state=3)
    with pytest.raises(DataError, match="NaN"):
        model.fit(device(np.where(X[5] == X, np.nan, X)), CODES)
    with pytest.raises(DataError, match="matrix"):
        model.fit(device(np.zeros(3)), CODES)
    with pytest.raises(DataError, match="rows"):
        model.fit(device(X), CODES[:-1])
    named = PrivateLogisticRegression(1.0, 1e-6, schema=Schema({"x": Interval(0, 1)}))
    with pytest.raises(InputError, match="SchemaEncoder"):
        named.fit(device(X), CODES)


@pytest.mark.parametrize(
    "kind", [UnitRows, lambda x, *args, **more: DeviceRows(on("array_api_strict", x), *args, **more)]
)
@pytest.mark.parametrize(("columns", "constant"), [(20_001, 0.0), (100_001, 0.5)])
def test_stretched_rows_of_many_columns_stay_in_the_unit_ball(kind, columns, constant):
    """Squares that vanish beside a large one are missed one by one; exactly, they make a row longer."""
    row = np.full((1, columns), 2.0**-27 * 0.99)
    row[0, 0] = 1.0
    rows = kind(row, 1.0, constant, stretch=True)
    stretch, factor = (Fraction(float(np.asarray(part)[0])) for part in (rows._stretch, rows.factor))
    square = 1 + (columns - 1) * Fraction(float(row[0, 1])) ** 2
    assert stretch**2 * (factor**2 * square + Fraction(constant) ** 2) <= 1
