"""The split of a budget is searched by an estimate and certified by few compositions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sfumato.release.gaussian as module
from sfumato.core import ApproxDP, Categories, GaussianDP, Interval, PureDP, Schema, compose
from sfumato.release import GaussianRelease
from sfumato.release.budget import estimated_delta

MIXED = {"a": Interval(0, 1), "c": Categories(["x", "y"])}


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0, 20.0])
@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.by_day(2)
def test_few_compositions_and_nearly_all_of_the_budget(epsilon, answers, monkeypatch):
    composed = []
    monkeypatch.setattr(module, "compose", lambda events: composed.append(1) or compose(events))
    schema = Schema({"a": Interval(0, 1), **{f"c{k}": Categories(["x", "y", "z"]) for k in range(answers)}})
    prepared = GaussianRelease(schema, epsilon=epsilon, delta=1e-6).prepare()
    total = compose([event for act in prepared.acts for event in act.events()])
    assert total.implies(ApproxDP(epsilon, 1e-6)) is True
    assert total.epsilon(1e-6) >= 0.98 * epsilon
    assert len(composed) <= 12


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.by_day(3)
def test_the_estimate_is_near_the_composition(seed):
    rng = np.random.default_rng(seed)
    shares = {f"c{k}": float(rng.uniform(0.05, 2.0)) for k in range(rng.integers(1, 5))} | {
        "numbers": rng.uniform(0.1, 2)
    }
    total = compose(
        [GaussianDP(shares["numbers"]), *(PureDP(share) for name, share in shares.items() if name != "numbers")]
    )
    for epsilon in (0.1, 1.0, 3.0):
        assert estimated_delta(shares, epsilon) == pytest.approx(total.delta(epsilon), rel=0.02, abs=1e-6)


def test_many_answers_are_estimated_on_a_grid():
    shares = {f"c{k}": 0.1 for k in range(40)}
    assert estimated_delta(shares, 0.5) == pytest.approx(compose([PureDP(0.1)] * 40).delta(0.5), rel=0.05)
    assert math.isfinite(estimated_delta({f"c{k}": 60.0 for k in range(30)}, 1e4))


def test_a_budget_without_end_is_spent_up_to_what_can_be_drawn():
    assert GaussianRelease(Schema(MIXED), epsilon=1e4, delta=1e-6).prepare().acts
