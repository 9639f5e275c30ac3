"""The spread of rows: what one record can do to it, what it costs, and that a bandwidth follows from it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP, GaussianDP, PureDP
from sfumato.errors import PrivacyParameterError
from sfumato.evidence.audit import audit
from sfumato.evidence.verify import verify
from sfumato.learn.kernel_classifier import KernelClassifier
from sfumato.learn.kernel_mean import KernelMeanClassifier
from sfumato.learn.kernel_rule import plan_kernel
from sfumato.learn.kernel_spread import KernelSpread, pair_distances, split_promise
from sfumato.learn.seeds import Seeds


@pytest.mark.parametrize("records", [2, 7, 50])
def test_one_record_moves_the_sum_by_at_most_one(records):
    generator = np.random.default_rng(records)
    worst = 0.0
    for _ in range(300):
        rows = generator.choice([-1.0, 1.0], (records, 3)) * generator.choice([0.1, 1.0], (records, 1))
        other = rows.copy()
        other[generator.integers(records)] = generator.choice([-1.0, 0.0, 1.0], 3)
        worst = max(worst, abs(float(pair_distances(rows).sum() - pair_distances(other).sum())))
    assert 0.9 < worst <= 1.0 + 1e-12  # rounding of the sums is paid for


class Distances:
    """The sum of distances of two records, released again and again; `value` is the second."""

    def __init__(self, scale=1.0):
        first, _ = split_promise(ApproxDP(30.0, 1e-3).under(REPLACE_ONE))
        noise = KernelSpread.of_nothing(first).noise
        self.claim = noise.guarantee()
        self.noise = dataclasses.replace(noise, scale=noise.scale * scale)

    def guarantee(self):
        return self.claim

    def total(self, value):
        return np.array([pair_distances(np.array([[1.0], [value]])).sum()])

    def sample(self, value, trials):
        return self.noise.sample(self.total(value), trials)

    def log_likelihood(self, outputs, value):
        return self.noise.log_likelihood(outputs, self.total(value))


def test_the_release_keeps_its_word_and_half_the_noise_does_not():
    assert not audit(Distances(), (1.0, -1.0), trials=20_000).refuted
    assert audit(Distances(0.5), (1.0, -1.0), trials=20_000).refuted


@pytest.mark.parametrize("promise", [ApproxDP(1.0, 1e-5), PureDP(2.0)], ids=str)
def test_both_parts_together_cost_the_promise(promise):
    first, rest = split_promise(promise.under(REPLACE_ONE))
    if isinstance(first, GaussianDP):
        assert GaussianDP((first.mu**2 + rest.mu**2) ** 0.5).epsilon(1e-5) <= 1.0
    else:
        assert first.epsilon(0.0) + rest.epsilon(0.0) <= 2.0


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_wide_box_costs_little_where_the_spread_is_paid_for(delta):
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, (3000, 2))
    y = (X > 0).sum(axis=1)
    epsilon = 5.0 if delta else 200.0
    scores = {}
    for gamma in ("auto", "spread"):
        model = KernelMeanClassifier(epsilon, delta, gamma, box=(-6, 6), random_state=0).fit(X, y)
        scores[gamma] = model.score(X, y)
        verify(model.certificate_)
        assert len(model.certificate_.events) == (2 if gamma == "spread" else 1)
    assert scores["spread"] > scores["auto"] + 0.05
    assert "paid for" in model.explain()


def test_the_public_rule_decides_whether_to_pay():
    X, y = np.random.default_rng(0).uniform(-1, 1, (1000, 3)), np.arange(1000) % 2
    paid = KernelClassifier(5.0, 1e-5, random_state=0).fit(X, y)
    assert paid.spread_ is not None
    assert plan_kernel(1000, 3, 2, 5.0, 1e-5).pays
    verify(paid.certificate_)
    assert KernelClassifier(5.0, 1e-5, random_state=0).fit(X[:40], y[:40]).spread_ is None
    assert KernelClassifier(5.0, 1e-5, adjacency=ADD_REMOVE, random_state=0).fit(X, y).spread_ is None
    assert KernelClassifier(5.0, 1e-5, gamma=2.0, random_state=0).fit(X, y).spread_ is None
    # Other values, same shape: the same decision and the same noise.
    other = KernelClassifier(5.0, 1e-5, random_state=0).fit(X * 0.1, y)
    assert other.spread_ is not None
    assert (other.noise_, other.spread_.noise) == (paid.noise_, paid.spread_.noise)


def test_identical_rows_and_hopeless_noise_still_give_a_bandwidth():
    X, y = np.zeros((60, 2)), np.arange(60) % 2
    for epsilon in (0.01, 50.0):
        model = KernelMeanClassifier(epsilon, 1e-5, "spread", n_components=20, random_state=0).fit(X, y)
        assert model.spread_ is not None
        assert 0 < model.spread_.value <= 1
        assert np.isfinite(model.gamma_)
    assert KernelSpread.release(np.zeros((1, 2)), split_promise(PureDP(1.0).under(REPLACE_ONE))[0], Seeds(0)).value <= 1


def test_rows_of_unknown_number_are_refused():
    with pytest.raises(PrivacyParameterError, match="position"):
        KernelMeanClassifier(1.0, 1e-5, "spread", adjacency=ADD_REMOVE).fit(np.zeros((9, 2)), np.arange(9) % 2)
