"""Training all classes at once: determinants, corners and the exact density of three classes, against the claim."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, Adjacency, JointObjectiveEvent, event_from_dict
from sfumato.core.events.joint import corners_of, joint_delta, joint_shift
from sfumato.errors import PrivacyParameterError
from sfumato.evidence import verify
from sfumato.evidence.losses import RULES
from sfumato.learn import PrivateLogisticRegression, PrivateSearch, PrivateSVC
from sfumato.learn.calibration import plan_training
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.training_budget import TrainingBudget

GENERATOR = np.random.default_rng(0)
LOSSES = [JointLoss(3), JointLoss(3, margin=1.0, temperature=0.5)]


def event(loss=LOSSES[0], strength=7.0, scale=12.0, mask=0.0, relation=REPLACE_ONE, at=None):
    made = JointObjectiveEvent("gaussian", loss.classes, 1.0, loss.score_curvature, strength, scale, mask, 100.0, 0.999,
                               adjacency=relation)  # fmt: skip
    at = made.shift + 0.4 if at is None else at
    return JointObjectiveEvent(
        "gaussian",
        loss.classes,
        1.0,
        loss.score_curvature,
        strength,
        scale,
        mask,
        at,
        made.profile(at),
        adjacency=relation,
    )


def test_no_determinant_exceeds_the_shift():
    """det(H + A⊗xxᵀ)/det H for random chances, common Hessians and rows; equal chances attain the bound."""
    for classes in (2, 3, 6):
        strength, worst = 0.3, 0.0
        for _ in range(300):
            p = GENERATOR.dirichlet(np.full(classes, GENERATOR.choice([0.2, 1.0, 50.0])))
            x = GENERATOR.normal(size=2)
            x *= GENERATOR.uniform(0, 1) / np.linalg.norm(x)
            common = GENERATOR.normal(size=(2 * classes, 2 * classes)) * GENERATOR.choice([0.0, 1.0])
            hessian = strength * np.eye(2 * classes) + common @ common.T
            record = np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x))
            ratio = np.linalg.slogdet(hessian + record)[1] - np.linalg.slogdet(hessian)[1]
            worst = max(worst, ratio)
        equal = np.full(classes, 1 / classes)
        record = np.kron(np.diag(equal) - np.outer(equal, equal), np.diag([1.0, 0.0]))
        attained = np.linalg.slogdet(np.eye(2 * classes) + record / strength)[1]
        assert worst <= joint_shift(classes, 1.0, strength) + 1e-12
        assert attained == pytest.approx(joint_shift(classes, 1.0, strength))


@pytest.mark.parametrize("classes", [3, 5])
def test_corners_are_no_longer_and_no_more_than_counted(classes):
    """All pairs of corners of two records, for random rows and all labels."""
    counted = sorted(itertools.chain(*([length] * count for length, count in corners_of(classes, "replace-one"))))
    eye = np.eye(classes)
    for _ in range(200):
        rows = GENERATOR.normal(size=(2, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows[1] = rows[1] if GENERATOR.random() < 0.5 else -rows[0]
        y, z = GENERATOR.integers(classes, size=2)
        ours = [np.outer(eye[y] - eye[k], rows[0]) for k in range(classes)]
        theirs = [np.outer(eye[z] - eye[k], rows[1]) for k in range(classes)]
        lengths = sorted(float(np.linalg.norm(a - b)) for a in ours for b in theirs if a.any() or b.any())
        assert len(lengths) <= len(counted)
        assert all(real <= bound + 1e-12 for real, bound in zip(reversed(lengths), reversed(counted), strict=False))


def densities(loss, made, data, grid):
    """log p(U) on a plane of two coefficients: one feature, three classes; b(U) is read off the gradient condition."""
    basis = loss.basis
    plane = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    b = -made.strength * plane
    jacobian = np.broadcast_to(made.strength * np.eye(2), (len(plane), 2, 2)).copy()
    for x, y in data:
        right = np.broadcast_to(np.eye(3)[y], (len(plane), 3))
        chances = loss.chances(x * plane @ basis.T, right)
        b -= x * (chances - right) @ basis
        means = chances @ basis
        inner = np.einsum("ka,kb,nk->nab", basis, basis, chances) - means[:, :, None] * means[:, None, :]
        jacobian += x * x * loss.score_curvature * inner
    determinant = np.log(np.linalg.det(jacobian))
    return -(b**2).sum(axis=1) / (2 * made.scale**2) - math.log(2 * math.pi * made.scale**2) + determinant


def excess(loss, made, claim, relation) -> float:
    """By how much the worst neighbours exceed the claimed δ; above 0 the claim is false."""
    reach = (7 * made.scale + 4) / made.strength
    grid = np.linspace(-reach, reach, 241)
    cell, worst = (grid[1] - grid[0]) ** 2, -math.inf
    records = [(x, y) for x in (1.0, -1.0) for y in range(3)]
    for common in ([], [(1.0, 0), (-0.6, 2)]):
        pairs = [(common, [*common, one]) for one in records]
        if relation.relation == "replace-one":
            pairs = [([*common, a], [*common, b]) for a, b in itertools.combinations(records, 2)]
        for left, right in pairs:
            logs = [densities(loss, made, side, grid) for side in (left, right)]
            for first, second in (logs, logs[::-1]):
                for epsilon in (made.shift + 0.02, made.shift + 0.4):
                    reached = np.maximum(np.exp(first) - np.exp(second + epsilon), 0).sum() * cell
                    worst = max(worst, float(reached) - claim(epsilon))
    return worst


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize("loss", LOSSES, ids=["softmax", "hinge"])
@pytest.mark.by_day(1)
def test_the_exact_density_stays_below_the_claim(loss, relation):
    made = event(loss, relation=relation)
    assert excess(loss, made, made.profile, relation) <= 1e-4


def saturated(scale: float, epsilon: float) -> float:
    """δ by quadrature of a pair with settled chances: x and -x, both pulled from one class to another."""
    moved = 2 * math.sqrt(2) / scale
    points = np.linspace(-12, 12, 200_001)
    density, other = np.exp(-(points**2) / 2), np.exp(-((points - moved) ** 2) / 2 + epsilon)
    return float(np.maximum(density - other, 0).sum() * (points[1] - points[0]) / math.sqrt(2 * math.pi))


def test_mistakes_are_caught():
    """Where nothing bends, the two records' pulls add up. One record, or half of the noise, is refuted by that pair."""
    corners, alone = corners_of(3, "replace-one"), corners_of(3, "add-remove")
    for rest in (0.1, 0.4, 0.8):
        reached = saturated(12.0, rest)
        assert reached <= joint_delta(corners, 1 / 12, 0.0, rest)
        assert reached > joint_delta(alone, 1 / 12, 0.0, rest)
    assert saturated(12.0, 0.8) > joint_delta(corners, 1 / 24, 0.0, 0.8)


def test_the_event_keeps_what_it_states():
    made = event(mask=0.01)
    assert event_from_dict(made.to_dict()) == made
    assert made.guarantee().delta(made.at) <= made.delta
    with pytest.raises(PrivacyParameterError, match="does not keep"):
        JointObjectiveEvent("gaussian", 3, 1.0, 1.0, 7.0, 12.0, 0.01, made.at, made.delta * 0.99, adjacency=REPLACE_ONE)
    with pytest.raises(PrivacyParameterError, match="no mask"):
        JointObjectiveEvent("laplace", 3, 1.0, 1.0, 0.7, 3.0, 0.01, adjacency=REPLACE_ONE)
    pure = JointObjectiveEvent("norm-gamma", 3, 1.0, 1.0, 50.0, 4.0, adjacency=REPLACE_ONE)
    assert pure.guarantee().epsilon(0.0) == pytest.approx(joint_shift(3, 1.0, 50.0) + 2 * math.sqrt(2) / 4)


def test_less_noise_than_one_against_the_rest():
    """σ at ε = 1, δ = 1e-6 grows with ln K, not with √K."""
    scales = {}
    for classes in (3, 10, 100):
        plan = plan_training(TrainingBudget(1.0, 1e-6, REPLACE_ONE, 10**7, 5), JointLoss(classes), "objective", 0.01)
        assert plan.tilt is not None
        scales[classes] = plan.tilt.scale
    assert scales[3] == pytest.approx(12.43, abs=0.1)
    assert scales[10] == pytest.approx(13.4, abs=0.2)
    assert scales[100] == pytest.approx(15.0, abs=0.3)


def blobs(classes=4, rows=3000, width=3):
    centres = np.random.default_rng(7).normal(size=(classes, width))
    codes = GENERATOR.integers(classes, size=rows)
    return 0.5 * (centres[codes] + 0.4 * GENERATOR.normal(size=(rows, width))), codes


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateSVC])
@pytest.mark.by_day(4)
def test_models_of_several_classes_learn_and_verify(kind, delta, relation):
    X, y = blobs()
    size = None if relation is REPLACE_ONE else 3000
    model = kind(5.0, delta, adjacency=relation, public_size=size, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.coef_.shape == (4, 3)
    assert np.allclose(model.coef_.sum(axis=0), 0.0, atol=1e-9)
    assert verify(model.certificate_).ok
    assert "4 classes were trained together" in model.explain()


def test_without_noise_it_is_multinomial_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    X, y = blobs(rows=500)
    X /= max(1.0, np.linalg.norm(X, axis=1).max())
    ours = PrivateLogisticRegression(1e7, regularization=0.01, fit_intercept=False, random_state=0).fit(X, y)
    theirs = LogisticRegression(C=1 / (0.01 * 500), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


def test_random_stopping_takes_several_classes():
    X, y = blobs(rows=1500)
    search = PrivateSearch(
        PrivateLogisticRegression(1.0), {"regularization": [0.01, 1.0]}, 8.0, 1e-6, "random_stopping", expected_runs=3,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    assert search.score(X, y) > 0.6


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_gaussian_training_is_never_pure(relation: str):
    """Far out its δ underflows to 0, and 0.41-DP without a δ was certified."""
    who = Adjacency("record", relation)
    for scale in (30.0, 300.0, 3e6):
        for at in (0.01, 0.41, 3.0, 50.0, 1e4):
            with pytest.raises(PrivacyParameterError):
                JointObjectiveEvent("gaussian", 3, 1.0, 0.25, 1e9, scale, 0.0, at, 0.0, adjacency=who)
            least = JointObjectiveEvent("gaussian", 3, 1.0, 0.25, 1e9, scale, 0.0, 1e4, 5e-324, adjacency=who)
            with pytest.raises(ValueError, match="do not follow"):
                RULES["JointObjectiveEvent"].loss({**least.to_dict(), "at": at, "delta": 0.0})
