"""Losses far beyond what e^loss of a float holds: no δ is below that of one act alone, no ε below what its δ allows.

Promises with an ε of hundreds mean little, but a number that is stated is true, and nothing ends in a stack trace.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from sfumato.core import REPLACE_ONE, compose, loss_distribution
from sfumato.core.compose import ComposedDP
from sfumato.core.events import learning
from sfumato.core.events.learning import ObjectiveDP, ObjectivePerturbationEvent
from sfumato.core.gaussian import gaussian_delta
from sfumato.core.parts import Part
from sfumato.evidence import verify
from sfumato.learn import PrivateLogisticRegression
from sfumato.learn.stopping import RunCost, poisson_epsilon


def far_parts(seed: int) -> tuple[Part, ...]:
    """A training run whose losses reach from hundreds to tens of thousands, alone or beside other acts."""
    source = random.Random(seed)
    mu = math.exp(source.uniform(math.log(15.0), math.log(150.0)))
    found = [Part("objective", mu, 0.01, source.choice([1, 1, 2, 3]))]
    for kind in source.sample(["gaussian", "laplace", "two-point", "three-point"], source.choice([0, 1, 1, 2])):
        extra = 0.5 if kind == "three-point" else 0.0
        found.append(Part(kind, math.exp(source.uniform(-3.0, 4.0)), extra, source.choice([1, 1, 40])))
    return tuple(sorted(found))


def least_delta(parts: tuple[Part, ...], epsilon: float) -> float:
    """δ(ε) of one run alone: all acts together never hide more."""
    run = next(part for part in parts if part.kind == "objective")
    return gaussian_delta(run.value, epsilon - run.extra) * (1 - 1e-9)


def wrong(parts: tuple[Part, ...]) -> str | None:
    together = ComposedDP(parts)
    for epsilon in (1.0, 300.0, 900.0, 5000.0):
        if together.delta(epsilon) < least_delta(parts, epsilon):
            return f"δ({epsilon}) is {together.delta(epsilon)}, and that of a run alone {least_delta(parts, epsilon)}"
    deltas = (1e-9, 1e-6, 1e-3)
    epsilons = [together.epsilon(delta) for delta in deltas]
    if epsilons != sorted(epsilons, reverse=True):
        return f"more δ costs more ε: {epsilons}"
    for epsilon, delta in zip(epsilons, deltas, strict=True):
        if together.delta(epsilon) > delta * (1 + 1e-6):
            return f"δ({epsilon}) is {together.delta(epsilon)}, not {delta}"
    return None


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(2)
def test_far_losses_are_counted(seed: int):
    """From a μ of 27 on the law of a run was no number: a stack trace, or a δ of 10⁻¹² for what tells everything."""
    assert wrong(far_parts(seed)) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 150))
def test_far_losses_are_counted_at_length(seed: int):
    assert wrong(far_parts(seed)) is None


def test_a_law_that_is_no_number_hides_nothing(monkeypatch: pytest.MonkeyPatch):
    honest = learning.objective_loss
    broken = lambda *given: (law := honest(*given))._replace(masses=law.masses * np.nan)  # noqa: E731
    monkeypatch.setattr(loss_distribution, "objective_loss", broken)
    loss_distribution.loss_distribution.cache_clear()
    assert loss_distribution.law_delta((Part("objective", 38.0, 0.01),), 1.0) == 1.0
    loss_distribution.loss_distribution.cache_clear()


@pytest.mark.parametrize("mu", [5.0, 26.0, 30.0, 40.0, 75.0])
def test_the_best_of_many_runs_costs_no_less_than_one(mu: float):
    """From a μ of 27 on it was said to cost nothing, so a search for ε = 600 spent 621 or more."""
    one = ObjectiveDP(mu, 0.01)
    assert poisson_epsilon(RunCost(0.1, one), 1e-6, 10.0) > one.epsilon(1e-6)


@pytest.mark.parametrize("epsilon", [400.0, 600.0, 3000.0])
def test_a_model_of_little_privacy_has_its_certificate(epsilon: float):
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    model = PrivateLogisticRegression(epsilon, 1e-6, classes=[0, 1], random_state=1).fit(rows, rows[:, 0] > 0)
    assert verify(model.certificate_).failures == ()


def test_runs_of_little_privacy_are_added_up_in_time():
    """Their grid was made for losses of μ, and they are μ²/2: seventy runs wanted tens of millions of steps."""
    event = ObjectivePerturbationEvent("gaussian", 1.0, 0.25, 20.0, 2 / 61.7, adjacency=REPLACE_ONE)
    together = ComposedDP((Part("gaussian", 0.1), *(Part("objective", event.moved, event.shift, 70),)))
    assert loss_distribution.grid_step(together.parts) > 0.1
    assert together.epsilon(1e-6) > compose([event]).epsilon(1e-6)
