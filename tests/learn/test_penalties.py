"""Penalties beside ½‖f‖²: shapes are what they say, what is solved is the minimum, what the proof does not cover is
refused. That the promise holds with each of them: tests/learn/test_density.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato import evidence
from sfumato.core import REPLACE_ONE, ApproxDP
from sfumato.errors import DataError, InputError
from sfumato.learn import (
    ConvexLoss,
    ConvexPenalty,
    HuberPenalty,
    LogCoshPenalty,
    PrivateLogisticRegression,
    PrivateSVC,
    SquaredPenalty,
    load,
)
from sfumato.learn.calibration import plan_training
from sfumato.learn.losses import HuberLoss, LogisticLoss
from sfumato.learn.newton import LENGTHS, Objective, SumsGiven, attainable_tolerance, minimise_together
from sfumato.learn.penalties import PenaltyTerms
from sfumato.learn.training_budget import TrainingBudget
from sfumato.ledger import Ledger

#: Each with its slope and curvature in one coefficient, written down a second time.
ONE = {
    "squares": (SquaredPenalty(weights=3.0), lambda f: 3 * f, lambda f: np.full_like(f, 3.0)),
    "huber": (
        HuberPenalty(0.2, weights=2.0),
        lambda f: 2 * np.clip(f / 0.2, -1, 1),
        lambda f: 10.0 * (np.abs(f) <= 0.2),
    ),
    "log cosh": (
        LogCoshPenalty(0.1),
        lambda f: np.tanh(f / 0.1),
        lambda f: 10 / np.cosh(np.clip(f / 0.1, -300, 300)) ** 2,
    ),
    "by slopes": (
        ConvexPenalty((0.0, 0.5, 1.0), (0.0, 0.0, 2.0)),
        lambda f: np.sign(f) * np.clip(4 * (np.abs(f) - 0.5), 0, 2),
        lambda f: 4.0 * ((np.abs(f) >= 0.5) & (np.abs(f) < 1)),
    ),
}


# The shapes.


@pytest.mark.parametrize("name", ONE)
def test_value_gradient_and_hessian_fit_together_and_keep_their_bounds(name):
    penalty, slope, curvature = ONE[name]
    lengths = np.linspace(0, 3, 2_001)[1:] + 1e-5
    weight = penalty.weights
    steps = (penalty.value(lengths + 1e-6) - penalty.value(lengths - 1e-6)) / 2e-6
    np.testing.assert_allclose(weight * steps, slope(lengths), atol=2e-5)
    np.testing.assert_allclose(weight * penalty.pull(lengths) * lengths, slope(lengths), atol=1e-12)
    np.testing.assert_allclose(weight * penalty.curvature(lengths), curvature(lengths), rtol=1e-9, atol=1e-12)
    for bounded in (penalty.pull(np.append(0.0, lengths)), penalty.curvature(np.append(0.0, lengths))):
        assert (bounded >= 0).all()
        assert (bounded <= penalty.steepness * (1 + 1e-12)).all()


def _several(outputs=1):
    """Groups that overlap, weights that differ, two shapes; five features and a constant."""
    penalties = [
        HuberPenalty(0.3, groups=[[0, 1], [1, 2, 4], [3]], weights=[1.0, 0.5, 2.0]),
        LogCoshPenalty(0.2, weights=[0, 1, 2, 3, 4]),
    ]
    return PenaltyTerms.of(penalties, 5, 6, outputs)


def _plain_value(point, outputs):
    """The same in a plain loop."""
    table = point.reshape(outputs, 6)
    total = 0.0
    for group, weight in (([0, 1], 1.0), ([1, 2, 4], 0.5), ([3], 2.0)):
        r = math.sqrt(sum(table[o, j] ** 2 for o in range(outputs) for j in group))
        total += weight * (r * r / 0.6 if r <= 0.3 else r - 0.15)
    for j in range(5):
        total += j * 0.2 * math.log(math.cosh(math.sqrt(sum(table[o, j] ** 2 for o in range(outputs))) / 0.2))
    return total


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("size", [0.05, 1.0])
def test_groups_weights_and_sums_mean_what_they_say(outputs, size):
    terms, generator = _several(outputs), np.random.default_rng(3)
    point, vector = size * generator.normal(size=(2, 6 * outputs))
    assert terms.value(point) == pytest.approx(_plain_value(point, outputs), rel=1e-12)
    steps = [
        (_plain_value(point + 1e-6 * one, outputs) - _plain_value(point - 1e-6 * one, outputs)) / 2e-6
        for one in np.eye(6 * outputs)
    ]
    np.testing.assert_allclose(terms.gradient(point), steps, atol=1e-7)
    assert not terms.gradient(point).reshape(outputs, 6)[:, 5].any()  # the constant is free
    hessian = np.zeros((6 * outputs, 6 * outputs))
    terms.add_hessian(point, hessian, 1.0)
    differences = (terms.gradient(point + 1e-6 * vector) - terms.gradient(point - 1e-6 * vector)) / 2e-6
    np.testing.assert_allclose(hessian @ vector, differences, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(terms.times(point, vector), hessian @ vector, rtol=1e-12, atol=1e-12)
    sizes = np.linalg.eigvalsh(hessian)
    assert sizes[0] >= -1e-12
    assert sizes[-1] <= terms.steepness
    assert terms.gradient(np.zeros(6 * outputs)).tolist() == [0.0] * (6 * outputs)


# The solver.


def _problem(terms, strength, seed, loss, tilt=1e-3):
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(60, 6)) / 6
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    signs = np.where(rows @ generator.normal(size=6) + 0.1 * generator.normal(size=60) > 0, 1.0, -1.0)
    linear = tilt * generator.normal(size=6)
    tolerance = attainable_tolerance(loss, 6, strength, float(np.linalg.norm(linear)), 1.0, terms.rounding)
    return rows * signs[:, None], Objective(loss, 6, 60, 60, strength, linear, tolerance, terms)


def _solved(rows, objective):
    from sfumato.learn.newton import LENGTHS

    def ask(questions):
        found = []
        for one in questions:
            margins, loss = rows @ one.point, objective.loss
            if one.direction is not None:
                along = rows @ one.direction
                found.append(SumsGiven(np.array([loss.slope(margins + t * along) @ along for t in LENGTHS])))
            else:
                found.append(SumsGiven(loss.slope(margins) @ rows, rows.T @ (loss.curvature(margins)[:, None] * rows)))
        return found

    return minimise_together([objective], ask)[0]


@pytest.mark.parametrize("strength", [1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.1)], ids=repr)
@pytest.mark.by_day(3)
def test_the_solver_finds_the_minimum_by_cvxpy(strength, loss):
    """With groups that overlap; strengths from hardly any to much."""
    cvxpy = pytest.importorskip("cvxpy")
    terms = PenaltyTerms.of(HuberPenalty(0.3, groups=[[0, 1], [1, 2, 4], [3]], weights=[1.0, 0.5, 2.0]), 5, 6)
    rows, objective = _problem(terms, strength, 5, loss)
    f = cvxpy.Variable(6)
    margins = rows @ f
    if isinstance(loss, LogisticLoss):
        losses = cvxpy.sum(cvxpy.logistic(-margins))
    else:  # Huber's corner: the least of a parabola in what a hinge leaves
        left, straight = cvxpy.Variable(60, nonneg=True), cvxpy.Variable(60, nonneg=True)
        losses = cvxpy.sum(left**2 / (4 * loss.h) + straight)
    limits = [] if isinstance(loss, LogisticLoss) else [left <= 2 * loss.h, left + straight >= 1 + loss.h - margins]
    value = losses / 60 + strength / 2 * cvxpy.sum_squares(f) + objective.tilt @ f
    for group, weight in (([0, 1], 1.0), ([1, 2, 4], 0.5), ([3], 2.0)):
        value += strength * weight * cvxpy.huber(cvxpy.norm(f[group]), 0.3) / 0.6
    cvxpy.Problem(cvxpy.Minimize(value), limits).solve(solver="CLARABEL")
    found = _solved(rows, objective).point
    ours = float(loss.value(rows @ found).mean() + objective.tilt @ found)
    ours += strength * (found @ found / 2 + terms.value(found))
    assert ours <= float(value.value) + 1e-9
    assert ours == pytest.approx(float(value.value), abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_certified_gradient_is_the_exact_one(seed):
    """At the returned point, with fifty digits: no longer than certified, and certified within the tolerance."""
    weights = [1.0, 0.3, 2.0]
    terms = PenaltyTerms.of(
        [HuberPenalty([1e-5, 0.1][seed % 2], groups=[[0, 1], [1, 2, 4], [3]], weights=weights), LogCoshPenalty(1e-3)],
        5, 6,
    )  # fmt: skip
    rows, objective = _problem(terms, 10.0 ** -(seed + 1), seed, LogisticLoss())
    found = _solved(rows, objective)
    assert found.gradient_bound <= objective.tolerance
    with mpmath.workdps(50):
        f = [mpmath.mpf(one) for one in found.point.tolist()]
        total = [mpmath.mpf(one) for one in objective.tilt.tolist()]
        for row in rows.tolist():
            margin = mpmath.fsum(mpmath.mpf(a) * b for a, b in zip(row, f, strict=True))
            slope = -1 / (1 + mpmath.exp(margin)) / 60
            total = [t + slope * mpmath.mpf(a) for t, a in zip(total, row, strict=True)]
        pulls = list(f)
        h = mpmath.mpf(terms.terms[0].penalty.h)
        for group, weight in zip(([0, 1], [1, 2, 4], [3]), weights, strict=True):
            r = mpmath.sqrt(mpmath.fsum(f[j] ** 2 for j in group))
            for j in group:
                pulls[j] += mpmath.mpf(weight) * f[j] / max(r, h)
        for j in range(5):
            pulls[j] += mpmath.tanh(f[j] / mpmath.mpf(1e-3))
        strength = mpmath.mpf(objective.strength)
        exact = mpmath.sqrt(mpmath.fsum((t + strength * p) ** 2 for t, p in zip(total, pulls, strict=True)))
    assert exact <= found.gradient_bound


def _hard_problem(seed):
    """Strengths down to 10⁻⁸, corners of penalties down to 10⁻⁶ and of hinges down to 10⁻³, tilts up to 10."""
    generator = np.random.default_rng(seed)
    h = 10.0 ** generator.uniform(-6, 0)
    penalty = [
        None,
        HuberPenalty(h),
        HuberPenalty(h, groups=[[0, 1, 2], [3, 4]]),
        LogCoshPenalty(h),
        ConvexPenalty((0.0, h, 2 * h), (0.0, 0.0, 1.0)),
    ][seed % 5]
    loss = [LogisticLoss(), HuberLoss(0.1), HuberLoss(0.001)][seed % 3]
    strength, tilt = 10.0 ** generator.uniform(-8, 0), 10.0 ** generator.uniform(-4, 1)
    return _problem(PenaltyTerms.of(penalty, 5, 6), strength, seed, loss, tilt)


@pytest.mark.parametrize("seed", [*range(90), 137, 458, 506, 652, 655])
@pytest.mark.by_day(19)
def test_the_solver_arrives_whatever_the_penalty(seed):
    """Far from the 2000 steps at which training would end without a model, which would be an output that tells."""
    assert _solved(*_hard_problem(seed)).steps < 150


def test_bold_steps_alone_go_round_in_circles(monkeypatch):
    """Why later steps are careful: a full step whose derivative is half as large need not lower the objective."""
    monkeypatch.setattr("sfumato.learn.newton._CAREFUL_FROM", 10**9)
    monkeypatch.setattr("sfumato.learn.newton._MOST_STEPS", 500)
    with pytest.raises(DataError, match="no model is published"):
        _solved(*_hard_problem(17))


# The estimators.


def table(rows=4_000):
    generator = np.random.default_rng(0)
    X = generator.uniform(-0.3, 0.3, (rows, 8))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("method", ["objective", "output"])
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateSVC])
@pytest.mark.by_day(2)
def test_a_smoothed_lasso_pulls_what_is_useless_to_zero(kind, method, tmp_path):
    X, y = table()
    wish = {"method": method, "regularization": 0.01, "classes": [0, 1], "random_state": 1}
    plain = kind(50.0, 1e-5, **wish).fit(X, y)
    penalty = [HuberPenalty(0.02), SquaredPenalty(weights=[0.0] * 7 + [5.0])]
    model = kind(50.0, 1e-5, penalty=penalty, **wish).fit(X, y)
    assert np.abs(model.coef_[0, 2:]).max() < 0.5 * np.abs(plain.coef_[0, 2:]).max()
    assert model.score(X, y) > 0.85
    assert evidence.verify(model.certificate_).ok
    assert model.certificate_.guarantee == plain.certificate_.guarantee
    assert "public penalty" in model.explain()
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.predict(X) == model.predict(X)).all()
    assert again.penalty == penalty


def test_a_steep_penalty_does_not_ask_for_endless_strength():
    """Its rounding is as large at every strength, so no strength would make the mask narrow: the rule stops."""
    budget = TrainingBudget(1.0, 0.0, REPLACE_ONE, 3_000, 300)
    gentle, steep = (
        plan_training(replace(budget, penalty=PenaltyTerms.of(one, 300, 300).rounding), LogisticLoss(), "objective")
        for one in (HuberPenalty(0.1), HuberPenalty(1e-3, groups=[list(range(300))]))
    )
    assert gentle.regularization <= steep.regularization < 100 * gentle.regularization
    assert steep.mask.error() > gentle.mask.error()


def test_several_classes_share_the_groups_of_their_features():
    X, _ = table()
    y = np.where(X[:, 0] > 0.1, 0, np.where(X[:, 1] > 0, 1, 2))
    wish = {"classes": [0, 1, 2], "regularization": 0.003, "random_state": 1}
    lengths = [
        np.linalg.norm(PrivateSVC(200.0, 1e-5, penalty=penalty, **wish).fit(X, y).coef_, axis=0)
        for penalty in (None, HuberPenalty(0.02, weights=3.0))
    ]
    assert (lengths[1][2:] < 0.5 * lengths[0][2:]).all()


def test_an_equal_penalty_is_more_of_the_square():
    """Λ(½‖f‖² + ½·w‖f‖²) is Λ(1 + w)·½‖f‖²: the same solution by another name, where nothing is drawn but the mask."""
    X, y = table()
    wish = {"method": "output", "fit_intercept": False, "random_state": 1}
    ours = PrivateLogisticRegression(1e6, 1e-5, regularization=0.01, penalty=SquaredPenalty(weights=3.0), **wish)
    other = PrivateLogisticRegression(1e6, 1e-5, regularization=0.04, **wish)
    np.testing.assert_allclose(ours.fit(X, y).coef_, other.fit(X, y).coef_, atol=1e-3)


def test_a_wrong_penalty_is_refused_before_a_norm_is_bought(monkeypatch):
    """Nothing is drawn before: the message says that nothing was spent."""
    monkeypatch.setattr("sfumato.learn.base.bounds_by_sums", lambda *_: pytest.fail("a norm was bought"))
    model = PrivateSVC(1.0, 1e-5, norm=None, spend_on_bounds=0.1, penalty=HuberPenalty(0.1, groups=[[9]]))
    with pytest.raises(InputError, match="Nothing was spent"):
        model.fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConvexPenalty((0, 1), (0, -1)),  # falls: not convex
        lambda: ConvexPenalty((0, 1, 2), (0, 1, 0.5)),
        lambda: ConvexPenalty((0, 1), (0.5, 1)),  # a corner at 0: the gradient jumps
        lambda: ConvexPenalty((-1, 1), (0, 1)),
        lambda: ConvexPenalty((0, 0), (0, 1)),
        lambda: ConvexPenalty((0, math.inf), (0, 1)),
        lambda: ConvexPenalty.from_slope(lambda r: 1.0, 2.0),
        lambda: HuberPenalty(0.0),
        lambda: HuberPenalty(0.1, weights=-1.0),
        lambda: HuberPenalty(0.1, weights=[1.0, math.nan]),
        lambda: HuberPenalty(0.1, groups=[]),
        lambda: HuberPenalty(0.1, groups=[[0, 0]]),
        lambda: HuberPenalty(0.1, groups=[[-1]]),
        lambda: HuberPenalty(0.1, groups=["ab"]),
        lambda: HuberPenalty(0.1, groups=[[0], [1]], weights=[1.0]),
        lambda: PenaltyTerms.of(HuberPenalty(0.1, groups=[[2]]), 2, 3),  # the constant's place
        lambda: PenaltyTerms.of(HuberPenalty(0.1, weights=[1.0, 2.0, 3.0]), 2, 3),
        lambda: PenaltyTerms.of(HuberPenalty(1e-7), 2, 3),  # too sharp to certify
        lambda: PenaltyTerms.of("l1", 2, 3),
        lambda: PrivateSVC(1.0, 1e-5, penalty="l1").fit(np.eye(4), [0, 1, 0, 1]),
    ],
)
def test_penalties_outside_of_the_theorems_are_refused(make):
    with pytest.raises(InputError):
        make()


# What somebody else says of a shape of their own is nobody's proof.


class Hollow(SquaredPenalty):
    """p(r) = -0.495 r²: its gradient is as Lipschitz as it states, and it is not convex."""

    def value(self, lengths):
        return -0.495 * lengths**2

    def pull(self, lengths):
        return np.full_like(lengths, -0.99)

    def curvature(self, lengths):
        return np.full_like(lengths, -0.99)


class Steep(ConvexLoss):
    def slope(self, margins):
        return 5 * super().slope(margins)


@pytest.mark.parametrize(
    "model",
    [
        PrivateLogisticRegression(1.0, 1e-6, penalty=Hollow()),
        PrivateLogisticRegression(1.0, 1e-6, penalty=[HuberPenalty(0.1), Hollow()]),
        PrivateSVC(1.0, 1e-6, penalty=Hollow()),
        PrivateSVC(1.0, 1e-6, loss=Steep((0.5, 1.5), (-1.0, 0.0))),
    ],
)
def test_a_class_of_somebody_elses_is_refused_before_anything_is_reserved(model, tmp_path):
    """Believed, the first broke e^1 by e^4.06 on two rows, and its certificate verified."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("d", ApproxDP(1.0, 1e-6))
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))
    with pytest.raises(InputError):
        model.fit(X, np.arange(40) % 2, ledger=ledger, dataset="d")
    assert ledger.balance("d").reserved is None


@pytest.mark.parametrize(
    ("columns", "steepness"), [(90, 9e5), (150, 900.0), pytest.param(500, 900.0, marks=pytest.mark.slow)]
)
def test_whatever_is_not_refused_is_solved(columns, steepness):
    """Each coefficient with a bend of its own, near the tilt: where steps were most, and grew with the coefficients."""
    penalty = HuberPenalty(0.3 / steepness, weights=0.3)
    terms, tilt = PenaltyTerms.of(penalty, columns, columns), np.random.default_rng(0).normal(size=columns)
    tolerance = attainable_tolerance(LogisticLoss(), columns, 1.0, float(np.linalg.norm(tilt)), 1.0, terms.rounding)
    objective = Objective(LogisticLoss(), columns, 1, 1, 1.0, tilt, tolerance, terms)

    def nothing(asked):
        flat = np.zeros(columns)
        return [
            SumsGiven(np.zeros(len(LENGTHS)))
            if one.direction is not None
            else SumsGiven(flat, np.zeros((columns, columns)) if one.hessian else None)
            for one in asked
        ]

    assert minimise_together([objective], nothing)[0].steps < 200
    with pytest.raises(InputError, match="the most that can be solved"):
        PenaltyTerms.of(HuberPenalty(0.3 / (steepness * 1500), weights=0.3), columns, columns)


@pytest.mark.parametrize("number", [1, 40, 1500])
def test_the_rounding_of_many_penalties_is_bounded(number):
    """Against exact sums: a list of many adds up many small errors."""
    draw = np.random.default_rng(number)
    listed = [
        HuberPenalty(float(h), weights=float(w))
        for h, w in zip(draw.uniform(0.5, 2, number), draw.uniform(0, 1, number), strict=True)
    ]
    terms, point = PenaltyTerms.of(listed, 3, 3), draw.normal(size=3)
    exact = [
        sum(Fraction(one.weights) * min(Fraction(abs(x)) / Fraction(one.h), 1) for one in listed) * (1 if x > 0 else -1)
        for x in point.tolist()
    ]
    off = math.sqrt(
        sum(float(Fraction(found) - one) ** 2 for found, one in zip(terms.gradient(point).tolist(), exact, strict=True))
    )
    assert off <= terms.rounding * 2.0**-53 * float(np.linalg.norm(point))


@pytest.mark.parametrize("knots", [(-1e308, 1e308), (0.0, 5e-324), (0.0, 1e30)])
def test_a_loss_that_no_number_can_hold_is_refused_in_words(knots):
    with pytest.raises(InputError, match="steepest piece"):
        ConvexLoss(knots, (-1.0, 0.0))


def test_numbers_of_numpy_are_numbers():
    one = HuberPenalty(0.1, weights=np.array(2.0), groups=[[np.int64(0), np.int32(1)]])
    assert one.weights == 2.0
    assert one.groups == ((0, 1),)
    with pytest.raises(InputError, match="the most that can be solved"):
        PenaltyTerms.of(HuberPenalty(1e-320, weights=0.0), 2, 2)
