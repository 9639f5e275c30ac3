"""Training and the noise that hides the solver's residual, together: by quadrature, without a product's formula.

The laws are integrated on fine grids with numpy alone; the planned parameters and the claim are the product's.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP, LaplaceEvent, compose
from sfumato.core.certificate import Certificate
from sfumato.core.events.learning import masked_delta, masked_epsilon
from sfumato.evidence import verify
from sfumato.learn import PrivateLogisticRegression
from sfumato.learn.calibration import logistic_margin, plan_training
from sfumato.learn.losses import HuberLoss, LogisticLoss
from sfumato.learn.training_budget import TrainingBudget

CASES = [(0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-2), (10.0, 1e-9), (0.5, 0.3)]


def planned(epsilon, delta, adjacency=REPLACE_ONE, size=10_000):
    plan = plan_training(TrainingBudget(epsilon, delta, adjacency, size, 20), LogisticLoss(), "objective")
    run, mask = plan.events
    return run.moved, run.shift, mask.mu, plan


def by_quadrature(mu, shift, mask, epsilon, cells=4001):
    """E(1 - e^{ε-T-G})₊ by the midpoint rule over both normal laws; W ≤ 0 is one atom."""
    ends = np.linspace(-9, 9, cells)
    middles, weights = (ends[1:] + ends[:-1]) / 2, np.diff(norm.cdf(ends))
    losses = np.append(np.maximum(mu * mu / 2 + mu * middles, 0.0), 0.0)
    masses = np.append(weights * (mu * mu / 2 + mu * middles > 0), norm.cdf(-mu / 2))
    gained = mask * mask / 2 + mask * middles
    total = 0.0
    for loss, mass in zip(losses, masses, strict=True):
        total += mass * float(np.dot(weights, -np.expm1(np.minimum(epsilon - shift - loss - gained, 0.0))))
    return total


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
@pytest.mark.by_day(2)
def test_the_planned_noise_keeps_the_promise_by_quadrature(epsilon, delta, adjacency):
    mu, shift, mask, plan = planned(epsilon, delta, adjacency)
    reached = by_quadrature(mu, shift, mask, epsilon)
    assert reached <= delta * (1 + 1e-4)
    assert reached >= 0.9 * delta  # and wastes little
    assert masked_delta(mu, shift, mask, epsilon) == pytest.approx(reached, rel=2e-3)
    assert compose(plan.events).delta(epsilon) <= delta
    assert compose(plan.events).epsilon(delta) <= epsilon
    # Planted: a mask of ten times the planned parameter is no part of the same promise.
    assert by_quadrature(mu, shift, min(10 * mask, 3.0), epsilon) > delta


def test_honest_plans_verify_down_to_faint_deltas():
    """Issuer and verifier each have the joint bound in closed form: no grid stands between a plan and its promise."""
    generator = np.random.default_rng(4)
    for _ in range(25):
        epsilon, delta = 10 ** generator.uniform(-2, 1.3), 10 ** generator.uniform(-12, -1)
        adjacency = (REPLACE_ONE, ADD_REMOVE)[generator.integers(2)]
        size, width = int(10 ** generator.uniform(1, 8)), int(generator.choice([1, 5, 100]))
        plan = plan_training(TrainingBudget(epsilon, delta, adjacency, size, width), LogisticLoss(), "objective")
        promise = ApproxDP(epsilon, delta, adjacency=adjacency)
        issued = Certificate.issue(subject="a model", events=plan.events, proofs=plan.proofs, guarantee=promise)
        assert verify(issued).ok, (epsilon, delta, adjacency, size, width)
        _, shift, mask, _ = planned(epsilon, delta)
        assert masked_epsilon(0.1, shift, mask, 0.0) == math.inf


def test_the_inverse_and_bought_bounds():
    for epsilon, delta in CASES:
        mu, shift, mask, plan = planned(epsilon, delta)
        assert masked_epsilon(mu, shift, mask, delta) == pytest.approx(epsilon, rel=1e-4)
        bought = LaplaceEvent(1.0, 4.0, adjacency=REPLACE_ONE)
        assert compose([*plan.events, bought]).epsilon(delta) <= epsilon + 0.25 + 1e-9
    assert masked_delta(0.1, 0.5, 0.01, 0.4) == 1.0  # below the shift nothing is claimed


def residual_profile(shift_of_centre: float, mask: float, epsilon: float) -> float:
    """δ of N(±centre, 1·scale²) for a solver that errs by +r on D and by -r on D', r = 1, mask = 2r/scale."""
    scale = 2.0 / mask
    points = np.linspace(-12 * scale, 12 * scale, 200_001)
    first = norm.pdf(points, shift_of_centre, scale)
    second = norm.pdf(points, -shift_of_centre, scale)
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum() * (points[1] - points[0]))


def test_a_solver_that_errs_on_purpose_is_covered_and_half_the_distance_is_not():
    """Given f*, two solutions are up to 2r apart. Noise for r alone would be twice as little: it is caught."""
    _, _, mask, _ = planned(1.0, 1e-6)
    epsilon = 2 * mask
    claimed = by_quadrature(1e-9, 0.0, mask, epsilon)
    assert residual_profile(1.0, mask, epsilon) <= claimed * (1 + 1e-3)
    assert residual_profile(1.0, 2 * mask, epsilon) > 2 * claimed


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(0.5)], ids=repr)
def test_the_longest_noise_is_longer_than_every_draw(loss):
    """The tolerance counts on it; e^-84.5 cannot be seen, so the draws must stay well below."""
    generator = np.random.default_rng(0)
    for width in (1, 10, 300):
        for delta, draws in (
            (1e-6, np.linalg.norm(generator.normal(size=(2000, width)), axis=1)),
            (0.0, generator.gamma(width, size=2000)),
        ):
            budget = TrainingBudget(1.0, delta, REPLACE_ONE, 1000, width)
            longest = budget.longest_noise(1.0)
            assert draws.max() < longest < 60 * draws.mean() + 90


def test_little_regularization_warns_of_the_mask():
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = PrivateLogisticRegression(1e4, 1e-6, regularization=1e-13, random_state=0)
    with pytest.warns(UserWarning, match="so little that"):
        model.fit(X, X[:, 0] > 0)


def test_chances_undo_the_margin():
    """The score that minimises p·loss(s) + (1 - p)·loss(-s) is turned back into p, whatever the margin."""
    for margin in (0.0, 1.0, 2.0):
        loss = LogisticLoss(margin)
        for p in (0.02, 0.5, 0.8, 0.99):
            found = minimize_scalar(lambda s, p=p, loss=loss: p * loss.value(s) + (1 - p) * loss.value(-s))
            assert loss.chance(np.array(found.x)) == pytest.approx(p, abs=1e-4)
    # Planted: the logistic curve alone.
    wrong = minimize_scalar(lambda s: 0.8 * LogisticLoss(2.0).value(s) + 0.2 * LogisticLoss(2.0).value(-s)).x
    assert abs(1 / (1 + math.exp(-wrong)) - 0.8) > 0.05


def mean_error(margin: float | None, draws: int = 6) -> float:
    """The error of models with this margin, or that of the rule, where noise is a hundredth of a gradient long."""
    generator = np.random.default_rng(5)
    X, test = generator.normal(size=(3000, 30)), generator.normal(size=(4000, 30))
    direction = generator.normal(size=30) / math.sqrt(30)

    class Given(PrivateLogisticRegression):
        def _loss_under(self, budget):
            return super()._loss_under(budget) if margin is None else LogisticLoss(margin)

    Given.__init__ = PrivateLogisticRegression.__init__
    models = (
        Given(3.2, 1e-6, norm=math.sqrt(30), random_state=seed).fit(X, X @ direction > 0) for seed in range(draws)
    )
    return float(np.mean([1 - model.score(test, test @ direction > 0) for model in models]))


def test_a_margin_helps_where_noise_is_long():
    """The rule's error is below that without a margin; one with the wrong sign is above it and would be seen."""
    without = mean_error(0.0)
    assert mean_error(None) < 0.95 * without
    assert mean_error(-2.0) > without


def test_the_margin_is_a_rule_of_public_facts():
    sizes = [
        logistic_margin(TrainingBudget(1.0, 1e-6, REPLACE_ONE, size, 20)) for size in (100, 1000, 3000, 20_000, 10**6)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (2.0, 0.0)
    X = np.random.default_rng(0).normal(size=(500, 4))
    one, other = (PrivateLogisticRegression(1.0, 1e-6, random_state=0).fit(X, X @ w > 0) for w in np.eye(4)[:2])
    assert one.plan_ == other.plan_
    assert one.plan_.loss.margin > 0
    chances = one.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert ((chances[:, 1] > 0.5) == (one.decision_function(X) > 0)).all()
