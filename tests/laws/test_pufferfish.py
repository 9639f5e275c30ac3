"""Promises to people who depend on each other, held against what can be enumerated: every path of a short series."""

from __future__ import annotations

import itertools
import json
import math
import random
from decimal import Decimal

import numpy as np
import pytest

from sfumato.core import (
    REPLACE_ONE,
    ApproxDP,
    Chains,
    GaussianDP,
    GaussianEvent,
    Groups,
    LaplaceEvent,
    Pufferfish,
    PureDP,
    compose,
    gaussian_mu,
    guarantee_from_dict,
)
from sfumato.core.certificate import Certificate
from sfumato.core.dependence import border_cost
from sfumato.errors import PrivacyParameterError, UnprovedError
from sfumato.evidence import verify
from sfumato.evidence.audit import audit
from sfumato.evidence.dependences import window_of
from sfumato.mechanisms import Gaussian, Laplace

DAYS = 11
PATHS = np.array(list(itertools.product((0, 1), repeat=DAYS)))
STICKY = math.log(81)  # a yes stays a yes with chance .9, and a no a no


def random_step(chance: random.Random, memory: float) -> np.ndarray:
    """A step whose odds ratio is e^±memory: the most the class allows."""
    odds = math.exp(chance.uniform(-5, 5))
    other = odds * math.exp(chance.choice((-1, 1)) * memory)
    return np.array([[1, odds], [1, other]]) / np.array([[1 + odds], [1 + other]])


def path_chances(chance: random.Random, memory: float, sticky: bool, evidence: bool) -> np.ndarray:
    """The chance of every path, given what somebody knows of some days, exact values included."""
    still = np.array([[0.9, 0.1], [0.1, 0.9]])
    steps = [still if sticky else random_step(chance, memory) for _ in range(DAYS - 1)]
    first = np.array([0.5, 0.5]) if sticky else np.array([p := chance.uniform(0.05, 0.95), 1 - p])
    found = first[PATHS[:, 0]]
    for day, step in enumerate(steps):
        found = found * step[PATHS[:, day], PATHS[:, day + 1]]
    for day in chance.sample(range(DAYS), 3) if evidence else ():
        known = chance.choice(((1.0, 0.0), (0.0, 1.0), (1.0, chance.random())))
        found = found * np.array(known)[PATHS[:, day]]
    return found / found.sum()


def conditional_counts(chances: np.ndarray, day: int) -> list[np.ndarray] | None:
    """The law of the number of yes days, given a no and given a yes on one day; None where one is impossible."""
    laws = []
    for value in (0, 1):
        own = chances * (PATHS[:, day] == value)
        if own.sum() <= 0:
            return None
        laws.append(np.bincount(PATHS.sum(axis=1), own, DAYS + 1) / own.sum())
    return laws


def laplace_loss(laws: list[np.ndarray], scale: float) -> float:
    """The largest loss of a noisy count: a ratio of mixtures of Laplace laws has its extremes at their centres."""
    kernel = np.exp(-np.abs(np.subtract.outer(np.arange(DAYS + 1), np.arange(DAYS + 1))) / scale)
    no, yes = (kernel @ law for law in laws)
    return float(np.abs(np.log(no / yes)).max())


def gaussian_delta_of(laws: list[np.ndarray], scale: float, epsilon: float) -> float:
    points = np.linspace(-8 * scale, DAYS + 8 * scale, 20_001)
    kernel = np.exp(-(np.subtract.outer(points, np.arange(DAYS + 1)) ** 2) / (2 * scale**2))
    densities = [kernel @ law / (scale * math.sqrt(2 * math.pi)) for law in laws]
    step = points[1] - points[0]
    factor = math.exp(epsilon)
    return max(float(np.maximum(a - factor * b, 0).sum() * step) for a, b in (densities, densities[::-1]))


def cases(count: int) -> list[tuple[list[np.ndarray], float]]:
    """Conditional laws of the count for random days, and the memory they were made with."""
    found: list[tuple[list[np.ndarray], float]] = []
    seed = 0
    while len(found) < count:
        chance, seed = random.Random(seed), seed + 1
        memory = chance.choice((0.3, 1.0, STICKY))
        chances = path_chances(chance, memory, memory == STICKY and chance.random() < 0.5, chance.random() < 0.5)
        laws = conditional_counts(chances, chance.randrange(DAYS))
        if laws is not None:
            found.append((laws, memory))
    return found


@pytest.mark.parametrize("longest", [None, DAYS])
def test_no_series_of_eleven_days_loses_more_than_promised(longest):
    largest = 0.0
    for laws, memory in cases(150):
        for epsilon in (0.5, 2.0):
            promise = Pufferfish(epsilon, 0.0, Chains.best(memory, epsilon, 0.0, longest))
            loss = laplace_loss(laws, 1 / promise.largest_pure())
            assert loss <= epsilon * (1 + 1e-9)
            largest = max(largest, loss / epsilon)
    assert largest > 0.05  # the bound is for every question and every law; it is not empty


def test_nor_with_gaussian_noise():
    for laws, memory in cases(25):
        promise = Pufferfish(1.0, 1e-3, Chains.best(memory, 1.0, 1e-3, DAYS))
        assert gaussian_delta_of(laws, 1 / promise.largest_mu(), 1.0) <= 1e-3 * (1 + 1e-6) + 1e-9


@pytest.mark.paper("002", "§6.1", "core/pufferfish.py")
def test_noise_for_one_day_is_caught():
    laws = conditional_counts(path_chances(random.Random(0), STICKY, True, False), DAYS // 2)
    assert laws is not None
    assert laplace_loss(laws, 1.0) > 2.5  # noise for one day at ε = 1
    assert gaussian_delta_of(laws, 1 / gaussian_mu(1.0, 1e-3), 1.0) > 0.1


@pytest.mark.parametrize("sides", [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.by_day(3)
def test_the_border_tells_no_more_than_it_is_charged(sides):
    before, after = sides
    day, largest = 5, 0.0
    for seed in range(400):
        chance = random.Random(seed)
        memory = chance.choice((0.5, 2.0, STICKY))
        chances = path_chances(chance, memory, False, chance.random() < 0.3)
        seen = PATHS[:, day - before] * 2 + PATHS[:, day + after]
        laws = []
        for value in (0, 1):
            own = chances * (PATHS[:, day] == value)
            laws.append(np.bincount(seen, own, 4) / own.sum() if own.sum() > 0 else None)
        if laws[0] is None or laws[1] is None:
            continue
        possible = (laws[0] > 0) | (laws[1] > 0)
        loss = float(np.abs(np.log(laws[0][possible] / laws[1][possible])).max())
        assert loss <= border_cost(memory, before, after) * (1 + 1e-9)
        largest = max(largest, loss / border_cost(memory, before, after))
    assert largest > 0.55  # half the charge would be exceeded


# ── golden numbers: e for each act, or √k for groups, would change them ──────────────────────────────────────────────


def test_a_year_of_days():
    pure = Chains.best(STICKY, 1.0, 0.0, longest=365)
    assert (pure.before, pure.after, pure.together) == (18, 18, 35)
    assert round(pure.flat, 3) == 0.198
    assert round(1 / Pufferfish(1.0, 0.0, pure).largest_pure(), 1) == 43.6
    approximate = Pufferfish(1.0, 1e-6, Chains.best(STICKY, 1.0, 1e-6, longest=365))
    assert round(1 / approximate.largest_mu()) == 181
    assert Chains.best(STICKY, 1.0, 0.0, longest=20).flat == 0.0


def test_the_flat_part_is_paid_once():
    """Four acts that share what is left keep the promise; charged four times, e = .198 would leave .21 and not .80."""
    promise = Pufferfish(1.0, 0.0, Chains.best(STICKY, 1.0, 0.0))
    act = PureDP(promise.largest_pure() / 4)
    assert compose([act] * 4).implies(promise) is True
    assert compose([act] * 5).implies(promise) is not True
    assert 4 * promise.dependence.flat + promise.left > 1.5


def test_a_household_of_four():
    promise = Pufferfish(1.0, 1e-6, Groups(4))
    assert round(1 / promise.largest_mu(), 1) == 16.9
    alone = gaussian_mu(1.0, 1e-6)
    assert round(GaussianDP(4 * alone).delta(1.0), 3) == 0.109  # noise for one person, four who are all alike
    for factor in (1, 2):  # noise for one, and √4
        assert GaussianDP(alone / factor).implies(promise) is not True
    assert GaussianDP(alone / 4 * (1 - 1e-12)).implies(promise) is True


def test_any_mechanism_may_serve_groups():
    promise = Pufferfish(1.0, 1e-6, Groups(3))
    point = promise.for_one()
    assert isinstance(point, ApproxDP)
    assert point.implies(promise) is True
    assert ApproxDP(point.eps, point.delta_ * 1.01).implies(promise) is not True


@pytest.mark.parametrize("law", [Gaussian, Laplace])
def test_an_attacker_who_knows_that_four_are_alike(law):
    """All four ill or none: the count moves by four. The noise of the promise holds, noise for one does not."""
    promise = Pufferfish(1.0, 1e-3 if law is Gaussian else 0.0, Groups(4), adjacency=REPLACE_ONE)
    kept = law.for_guarantee(promise, 1.0, REPLACE_ONE)
    assert not audit(kept, (0.0, 4.0), trials=15_000, confidence=0.999, claim=promise.point, delta=1e-3).refuted
    broken = law.for_guarantee(promise.point, 1.0, REPLACE_ONE)
    assert audit(broken, (0.0, 4.0), trials=15_000, confidence=0.999, claim=promise.point, delta=1e-3).refuted


# ── the second road ──────────────────────────────────────────────────────────────────────────────────────────────────


def random_promise(chance: random.Random) -> Pufferfish:
    epsilon, delta = math.exp(chance.uniform(-2, 1.5)), chance.choice((0.0, 1e-6, 1e-4))
    if chance.random() < 0.5:
        return Pufferfish(epsilon, delta, Groups(chance.randint(1, 9)))
    longest = chance.choice((None, chance.randint(1, 60)))
    return Pufferfish(epsilon, delta, Chains.best(math.exp(chance.uniform(-2, 1.5)), epsilon, delta, longest))


@pytest.mark.parametrize("seed", range(24))
def test_what_core_issues_the_verifier_accepts_and_no_more(seed):
    chance = random.Random(seed)
    promise = random_promise(chance).under(REPLACE_ONE)
    acts = chance.randint(1, 3)
    size = promise.largest_mu() / math.sqrt(acts) if promise.delta_ else promise.largest_pure() / acts
    make = GaussianEvent if promise.delta_ else LaplaceEvent
    kept = [make(1.0, 1.0001 / size, adjacency=REPLACE_ONE)] * acts
    proofs = ["gaussian", "laplace", "pufferfish"]
    issued = Certificate.issue(subject="a", events=kept, proofs=proofs, guarantee=promise)
    assert verify(issued).ok, verify(issued).failures
    assert guarantee_from_dict(promise.to_dict()) == promise
    louder = [make(1.0, 0.99 / size, adjacency=REPLACE_ONE)] * acts
    with pytest.raises(UnprovedError):
        Certificate.issue(subject="a", events=louder, proofs=proofs, guarantee=promise)
    forged = {**json.loads(issued.to_json()), "events": [event.to_dict() for event in louder]}
    assert "guarantee" in {check.field for check in verify(forged).failures}
    with pytest.raises(UnprovedError, match="pufferfish"):
        Certificate.issue(subject="a", events=kept, proofs=["gaussian", "laplace"], guarantee=promise)


def test_both_roads_round_the_border_up():
    for seed in range(200):
        chance = random.Random(seed)
        memory, before, after = math.exp(chance.uniform(-4, 3)), chance.randint(1, 60), chance.randint(1, 60)
        own = window_of({"kind": "Chains", "memory": memory, "before": before, "after": after, "longest": None})
        stated = border_cost(memory, before, after)
        assert own.units == before + after - 1
        assert own.flat <= Decimal(stated)  # core rounds further
        assert stated <= float(own.flat) * (1 + 1e-9) + 1e-300


def test_a_border_that_costs_everything_is_refused():
    with pytest.raises(PrivacyParameterError, match="beyond the window"):
        Pufferfish(1.0, 1e-6, Chains(STICKY, 2, 2))
    with pytest.raises(PrivacyParameterError, match="lasts too long"):
        Chains.best(60.0, 0.1, 1e-6)
