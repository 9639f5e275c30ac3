"""A Gaussian loss has no end: whatever stands beside a Gaussian act, nothing promises a pure ε."""

from __future__ import annotations

import importlib
import math
import random

import pytest

from sfumato.core import REPLACE_ONE, GaussianEvent, LaplaceEvent, ObjectivePerturbationEvent, compose


def random_acts(source: random.Random) -> list:
    """At least one Gaussian act, from next to nothing to huge, beside pure ones and perhaps a training run."""
    acts: list = [GaussianEvent(1.0, 10 ** source.uniform(-1, 9), adjacency=REPLACE_ONE)]
    acts += [LaplaceEvent(1.0, 10 ** source.uniform(-1, 4), adjacency=REPLACE_ONE) for _ in range(source.randrange(4))]
    if source.random() < 0.7:
        scale, strength = 10 ** source.uniform(-1, 3), 10 ** source.uniform(-1, 3)
        acts.append(ObjectivePerturbationEvent("gaussian", 1.0, 0.25, strength, scale, adjacency=REPLACE_ONE))
    source.shuffle(acts)
    return acts


def offenders(count: int) -> list[int]:
    return [seed for seed in range(count) if math.isfinite(compose(random_acts(random.Random(seed))).epsilon(0.0))]


def test_no_pure_promise_follows_from_a_gaussian_act():
    assert not offenders(200)


def test_a_delta_that_underflows_would_be_found(monkeypatch: pytest.MonkeyPatch):
    """Forty deviations away a Gaussian tail is 0 in floating point, and no bound for a pure ε."""
    room = importlib.import_module("sfumato.core.compose")
    monkeypatch.setattr(room, "masked_epsilon", lambda mu, shift, mask, delta: shift + 40 * (mu + mask))
    assert offenders(60)
