"""The exact law of one trained coefficient, by quadrature, against the claim.

With one feature the minimiser f of Σφ(y x f) + λ(½f² + ψ(f)) + b·f is a monotone function of b, so its density is
known: p(f) = p_b(b(f))·|b'(f)| with b(f) = -Σ y x φ'(y x f) - λ(f + ψ'(f)). No sampling, no tolerance but the
quadrature's.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, Adjacency
from sfumato.core.events.learning import ObjectiveDP, ObjectivePerturbationEvent, objective_curve
from sfumato.learn.calibration import plan_training
from sfumato.learn.losses import HuberLoss, LogisticLoss, SmoothedHinge
from sfumato.learn.penalties import ConvexPenalty, HuberPenalty, LogCoshPenalty, SquaredPenalty
from sfumato.learn.rows import UnitRows
from sfumato.learn.training_budget import TrainingBudget

PENALTIES = [
    SquaredPenalty(weights=3.0),
    HuberPenalty(0.2, weights=2.0),
    LogCoshPenalty(0.1),
    ConvexPenalty((0.0, 0.5, 1.0), (0.0, 0.0, 2.0)),
]
LOSSES = [LogisticLoss(), LogisticLoss(2.0), HuberLoss(0.5), HuberLoss(0.1), SmoothedHinge(0.5)]
POINTS = 8_001
RECORDS = [(1.0, 1), (1.0, -1), (0.5, 1), (0.0, 1)]
COMMON = [[], [(1.0, 1), (1.0, -1), (0.2, 1)], [(1.0, -1)] * 5]


def noise_term(data, loss, strength, grid, penalty=None):
    """b(f) and |b'(f)| on the grid."""
    b, slope = -strength * grid, np.full_like(grid, strength)
    if penalty is not None:  # values and slopes as training has them; tests/learn/test_penalties.py holds them to ψ
        b = b - strength * penalty.weights * penalty.pull(np.abs(grid)) * grid
        slope = slope + strength * penalty.weights * penalty.curvature(np.abs(grid))
    for x, y in data:
        b = b - y * x * loss.slope(y * x * grid)
        slope = slope + x * x * loss.curvature(y * x * grid)
    return b, slope


def log_density(data, loss, event, grid, penalty=None):
    b, slope = noise_term(data, loss, event.strength, grid, penalty)
    with np.errstate(divide="ignore"):
        jacobian = np.log(slope)
    if event.noise == "gaussian":
        return -(b**2) / (2 * event.scale**2) - math.log(event.scale * math.sqrt(2 * math.pi)) + jacobian
    return -np.abs(b) / event.scale - math.log(2 * event.scale) + jacobian


def pairs(adjacency):
    for common in COMMON:
        if adjacency.relation == "add-remove":
            yield from ((common, [*common, record]) for record in RECORDS)
        else:
            yield from (([*common, a], [*common, b]) for a, b in itertools.combinations(RECORDS, 2))


def nodes(data, loss, event, penalty=None):
    """Nodes and midpoints, alternating; where a density may jump a tiny interval of its own."""
    reach = (10 * event.scale + 8) / event.strength
    edges = [side * edge / abs(x) for x, _ in data if x for edge in (1 - 0.5, 1 + 0.5, 0.9, 1.1) for side in (-1, 1)]
    if penalty is not None:
        edges += [side * edge for edge in (0.2, 0.5, 1.0) for side in (-1, 1)]
    jumps = np.array([edge + step for edge in edges for step in (-1e-12, 1e-12)])
    fine = np.linspace(-3, 3, 1 if penalty is None else 2 * POINTS)  # where penalties bend
    ends = np.concatenate([np.linspace(-reach, reach, POINTS), fine, jumps])
    ends = np.unique(ends[np.abs(ends) <= reach])
    result = np.empty(2 * ends.size - 1)
    result[::2] = ends
    result[1::2] = (ends[1:] + ends[:-1]) / 2
    return result


def positive_part(values, grid):
    """∫ values₊ by Simpson's rule, and by triangles in the intervals where the sign changes."""
    width = grid[2::2] - grid[:-2:2]
    left, middle, right = values[:-2:2], values[1::2], values[2::2]
    inside = (left > 0) & (middle > 0) & (right > 0)
    total = float(np.dot(width[inside] / 6, (left + 4 * middle + right)[inside]))
    for at in np.flatnonzero(~inside & ((left > 0) | (middle > 0) | (right > 0))):
        for a, b in ((left[at], middle[at]), (middle[at], right[at])):
            high, low = max(a, b), min(a, b)
            if high > 0:
                total += width[at] / 4 * (high + low if low >= 0 else high * high / (high - low))
    return total


def excess(event, loss, claim, adjacency, scaled=lambda record: record, penalty=None):
    """By how much the worst neighbours exceed the claimed δ, over a range of ε; above 0 the claim is false."""
    worst = -math.inf
    for left, right in pairs(adjacency):
        sides = [[scaled(record) for record in side] for side in (left, right)]
        grid = nodes(sides[0] + sides[1], loss, event, penalty)
        logs = [log_density(side, loss, event, grid, penalty) for side in sides]
        for first, second in (logs, logs[::-1]):
            if isinstance(claim, ObjectiveDP):
                for epsilon in (0.0, 0.3, 1.0, 2.5):
                    reached = positive_part(np.exp(first) - np.exp(second + epsilon), grid)
                    worst = max(worst, reached - claim.delta(epsilon))
            else:
                worst = max(worst, float((first - second)[np.isfinite(first)].max()) - claim.epsilon(0.0))
    return worst


def event_of(loss, adjacency, epsilon, delta, size, regularization="auto"):
    plan = plan_training(TrainingBudget(epsilon, delta, adjacency, size, 1), loss, "objective", regularization)
    event = plan.events[0]
    assert isinstance(event, ObjectivePerturbationEvent)
    assert plan.tilt is not None
    assert plan.tilt.scale == event.scale
    assert event.strength == size * plan.regularization
    return event


@pytest.mark.paper("003", "Alg 2", "learn/calibration.py")
@pytest.mark.paper("003", "§3.4", "learn/losses.py")
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (3.0, 1e-2), (0.5, 0.0), (3.0, 0.0)])
@pytest.mark.by_day(8)
def test_the_claim_is_never_exceeded(loss, adjacency, epsilon, delta):
    """Worst neighbouring pairs in one dimension, planned strengths and a weak given one."""
    for regularization in ("auto", 1e-3):
        event = event_of(loss, adjacency, epsilon, delta, 4, regularization)
        assert excess(event, loss, event.guarantee(), adjacency) <= 1e-9
        if not delta:
            assert event.guarantee().epsilon(0.0) <= epsilon


@pytest.mark.paper("003", "§3.1", "learn/penalties.py")
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (3.0, 1e-2), (0.5, 0.0), (3.0, 0.0)])
@pytest.mark.by_day(3)
def test_no_penalty_makes_the_claim_false(penalty, adjacency, epsilon, delta):
    """What is recorded knows of no penalty, and holds with each of them."""
    for loss, regularization in ((LogisticLoss(), "auto"), (HuberLoss(0.5), 1e-3)):
        event = event_of(loss, adjacency, epsilon, delta, 4, regularization)
        assert excess(event, loss, event.guarantee(), adjacency, penalty=penalty) <= 1e-8


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_penalty_that_is_not_convex_is_caught(delta):
    """Taking nearly all of the square away again would leave strong convexity behind: the test above would see it."""
    concave = SquaredPenalty()
    object.__setattr__(concave, "weights", -0.97)  # no such weight is accepted
    event = event_of(HuberLoss(0.5), REPLACE_ONE, 1.0, delta, 4)
    assert excess(event, HuberLoss(0.5), event.guarantee(), REPLACE_ONE, penalty=concave) > 1e-4


@pytest.mark.parametrize("norm", [0.1, 7.0])
@pytest.mark.parametrize("constant", [0.0, 0.4])
@pytest.mark.by_day(3)
def test_other_norms_and_the_intercept(norm, constant):
    """Rows as training sees them: clipped to the norm; in the intercept's direction the feature is the constant."""
    loss = LogisticLoss()
    event = event_of(loss, REPLACE_ONE, 1.0, 1e-3, 4)

    def scaled(record):
        rows = UnitRows(np.array([[record[0] * norm * 3]]), norm, constant)
        direction = np.array([1.0, 0.0])[: rows.width] if not constant else np.array([0.0, 1.0])
        return float(rows.times(direction)[0]), record[1]

    assert excess(event, loss, event.guarantee(), REPLACE_ONE, scaled) <= 1e-9


def test_the_gaussian_claim_is_tight():
    """A claim much above the truth would waste noise: flipping one label reaches 90 % of it."""
    loss = HuberLoss(0.5)
    event = event_of(loss, REPLACE_ONE, 1.0, 1e-2, 1000, 1.0)
    grid = nodes([(1.0, 1)], loss, event)
    logs = [log_density([(1.0, y)], loss, event, grid) for y in (1, -1)]
    assert positive_part(np.exp(logs[0]) - np.exp(logs[1] + 0.5), grid) > 0.9 * event.guarantee().delta(0.5)


def planted(noise="gaussian", **changes):
    fields = {"noise": noise, "slope": 1.0, "curvature": 1.0, "strength": 0.4, "scale": 3.0, **changes}
    return ObjectivePerturbationEvent(adjacency=REPLACE_ONE, **fields)


@pytest.mark.parametrize("noise", ["gaussian", "norm-gamma"])
@pytest.mark.parametrize("mistake", ["no determinant", "one record", "two thirds of the noise"])
@pytest.mark.by_day(3)
def test_mistakes_are_caught(noise, mistake):
    """Each false claim is refuted by some neighbouring pair; the true one is not."""
    loss = HuberLoss(0.5)
    strength = 0.4 if mistake == "no determinant" else 50.0
    true = planted(noise, strength=strength)
    assert excess(true, loss, true.guarantee(), REPLACE_ONE) <= 1e-9
    if mistake == "no determinant":
        claim = planted(noise, curvature=1e-12, strength=strength).guarantee()
    elif mistake == "one record":
        claim = ObjectivePerturbationEvent(
            noise, 1.0, 1.0, strength, 3.0, adjacency=Adjacency("record", "add-remove")
        ).guarantee()
    else:
        claim = planted(noise, scale=4.5, strength=strength).guarantee()
    assert excess(true, loss, claim, REPLACE_ONE) > 1e-3


def test_an_unpenalised_intercept_is_caught():
    """Without a penalty the Jacobian of one record vanishes where the other's does not: no claim holds."""
    loss = HuberLoss(0.5)
    unpenalised = planted("norm-gamma", strength=1e-9)
    claim = planted("norm-gamma").guarantee()
    grid = np.linspace(-2, 2, 4001)
    first, second = (log_density([(1.0, y)], loss, unpenalised, grid) for y in (1, -1))
    assert float((first - second).max()) > claim.epsilon(0.0) + 5


@pytest.mark.paper("003", "Alg 1", "learn/calibration.py")
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=["replace", "add"])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.by_day(2)
def test_output_perturbation_covers_the_exact_sensitivity(loss, adjacency, delta):
    """The noise's sensitivity is at least the largest distance of exact minimisers, and at most 2.2 times it.

    With a penalty they are no farther apart.
    """
    plan = plan_training(TrainingBudget(1.0, delta, adjacency, 6, 1), loss, "output", 1.0)
    event = plan.events[0]
    grid = np.linspace(-30, 30, 60_001)
    largest = dict.fromkeys((None, *PENALTIES), 0.0)
    for (left, right), penalty in itertools.product(pairs(adjacency), largest):
        ends = [np.interp(0.0, -noise_term(side, loss, 6.0, grid, penalty)[0], grid) for side in (left, right)]
        largest[penalty] = max(largest[penalty], abs(ends[0] - ends[1]))
    assert max(largest.values()) <= event.sensitivity <= 2.2 * largest[None]
    promise = event.guarantee()
    assert promise.delta(1.0) <= delta if delta else promise.epsilon(0.0) <= 1.0


def test_several_models_cost_more_than_their_gaussian_parts():
    """Two runs cost at least two Gaussian acts and at most the plain sum; a wrong sum rule would show."""
    two = ObjectiveDP(0.3, 0.01, 2)
    one = ObjectiveDP(0.3, 0.01)
    from sfumato.core import GaussianDP

    for epsilon in (0.1, 0.5, 1.0):
        assert (
            two.delta(epsilon)
            >= GaussianDP(0.3 * math.sqrt(2)).delta(epsilon - 0.02 if epsilon > 0.02 else 0.0) * 0.999
        )
        assert two.delta(2 * epsilon) <= 2 * one.delta(epsilon)
    assert ObjectiveDP(0.3, 0.0, 2).delta(0.4) == pytest.approx(_by_simulation(0.3, 2, 0.4), abs=2e-3)


def _by_simulation(mu, count, epsilon):
    losses = np.random.default_rng(0).normal(mu * mu / 2, mu, (400_000, count)).clip(min=0).sum(axis=1)
    return float(-np.expm1(np.minimum(epsilon - losses, 0.0)).mean())


def test_the_renyi_curve_bounds_the_profile():
    """Converting the Rényi curve never undercuts the exact profile, and comes within a factor of 30 of it."""
    from sfumato.core.renyi import delta_from_curve

    one = ObjectiveDP(0.5, 0.05)
    for epsilon in (0.5, 1.0, 2.0):
        converted = delta_from_curve(lambda alpha: objective_curve(0.5, 0.05, alpha), epsilon)
        assert one.delta(epsilon) <= converted <= 30 * one.delta(epsilon)
