"""Attacks on a placed publication, on the arithmetic of the event, and on its certificate. Each can succeed."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core import GaussianDP, LinearGaussianEvent, compose, event_from_dict
from sfumato.core.adjacency import REPLACE_ONE
from sfumato.core.certificate import Certificate
from sfumato.errors import CertificateError, PrivacyParameterError
from sfumato.evidence.verify import verify
from sfumato.plan import place_noise

MU = 3.0
OWNERS = [0, 0, 1, 1, 1, 2]


def seen_separation(placed, matrix, trials: int = 20_000) -> float:
    """How many standard deviations apart the best linear attacker sees the two worst datasets."""
    best, change = 0.0, np.zeros(len(OWNERS))
    inverse = np.linalg.pinv(placed.covariance, rcond=1e-12)
    for person in set(OWNERS):
        own = np.flatnonzero(np.array(OWNERS) == person)
        for corner in range(1 << len(own)):
            move = np.zeros(len(OWNERS))
            move[own] = [1.0 - 2.0 * (corner >> at & 1) for at in range(len(own))]
            image = matrix @ move
            if (square := float(image @ inverse @ image)) > best:
                best, change = square, move
    here, there = np.where(change < 0, 1.0, 0.0), np.where(change > 0, 1.0, 0.0)
    direction = inverse @ matrix @ change
    first = placed.sample(here, trials, random_state=1) @ direction
    second = placed.sample(there, trials, random_state=2) @ direction
    return float((second.mean() - first.mean()) / math.sqrt((first.var() + second.var()) / 2))


@pytest.fixture(scope="module")
def matrix():
    return np.random.default_rng(21).normal(size=(4, 6))


@pytest.mark.parametrize("allowed", [("output",), ("input", "output"), ("correlated",)], ids=str)
def test_the_best_attacker_sees_what_was_promised(matrix, allowed):
    placed = place_noise(matrix, GaussianDP(MU), 1.0, OWNERS, placements=allowed)
    assert seen_separation(placed, matrix) == pytest.approx(MU, rel=0.02)


def test_a_publication_with_less_noise_is_caught(matrix):
    placed = place_noise(matrix, GaussianDP(MU), 1.0, OWNERS)
    weaker = dataclasses.replace(placed.event, scale=placed.event.scale * 2 / 3)
    assert seen_separation(dataclasses.replace(placed, event=weaker), matrix) > MU * 1.4


def test_a_person_taken_for_several_is_caught(matrix):
    """Noise for single coordinates, attacked by somebody who changes all coordinates of a person."""
    placed = place_noise(matrix, GaussianDP(MU), 1.0)
    assert seen_separation(placed, matrix) > MU * 1.3


def test_floating_point_stays_within_what_was_charged():
    """B·x as computed against rational arithmetic; the event charges twice the largest error."""
    generator = np.random.default_rng(8)
    matrix = generator.normal(size=(3, 400)) * 10 ** generator.uniform(-3, 3, 400)
    placed = place_noise(matrix, GaussianDP(1.0), 1.0, placements=("correlated",))
    values = generator.uniform(size=400)
    computed = placed._form.apply(values)
    largest = 0.0
    for row, value in zip(placed.strategy, computed, strict=True):
        exact = sum(Fraction(float(b)) * Fraction(float(x)) for b, x in zip(row, values, strict=True))
        largest += float(exact - Fraction(float(value))) ** 2
    assert 0 < math.sqrt(largest) <= placed.event.arithmetic / 2
    assert placed.event.arithmetic < 1e-9 * placed.event.sensitivity


def test_the_event_is_read_back_and_composes():
    event = place_noise([[1.0, 2.0]], GaussianDP(0.3), 1.0, owners=["Ann", "Bo"]).event
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert compose([event, event]).epsilon(1e-5) == pytest.approx(compose([GaussianDP(0.3)] * 2).epsilon(1e-5))


@pytest.mark.parametrize("count", [1, 3, 12, 13])
def test_two_ways_to_the_same_cost(count):
    """The event's floating-point bound beside the verifier's exact integers, for few and for many coordinates."""
    generator = np.random.default_rng(count)
    widths = tuple(map(float, generator.uniform(0.1, 9.0, count)))
    columns = tuple(tuple(map(float, column)) for column in generator.normal(size=(count, 6)))
    event = LinearGaussianEvent(((4, widths, columns),), 4 * count, 2.5, 2.0**-30, adjacency=REPLACE_ONE)
    assert event.rule == ("vertices" if count <= 12 else "safe bound")
    certificate = Certificate.issue(subject="a sum", events=[event], proofs=["linear_placement"])
    assert verify(certificate).ok


@pytest.mark.parametrize(
    "forge",
    [
        lambda event: event["people"][0][1].__setitem__(0, event["people"][0][1][0] * 1.01),
        lambda event: event["people"][0][2][0].__setitem__(0, event["people"][0][2][0][0] * 1.01),
        lambda event: event.__setitem__("scale", event["scale"] * 1.01),
        lambda event: event.__setitem__("grid", event["scale"] / 8),
        lambda event: event["people"][0].__setitem__(0, 10**9),
        lambda event: event.__setitem__("coordinates", 10**9),
    ],
    ids=["width", "column", "scale", "grid", "count", "coordinates"],
)
def test_forged_records_are_caught(forge):
    """The issuer's cost stays, one number of the record changes, the digest is made to fit."""
    import hashlib

    event = LinearGaussianEvent(((1, (1.0, 2.0), ((0.3, 0.4), (0.1, -0.7))),), 2, 2.0, adjacency=REPLACE_ONE)
    record = json.loads(Certificate.issue(subject="s", events=[event], proofs=["linear_placement"]).to_json())
    forge(record["events"][0])
    del record["digest"]
    text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    record["digest"] = hashlib.sha256(text.encode()).hexdigest()
    found = verify(record)
    assert "composed" in {failure.field for failure in found.failures}


@pytest.mark.parametrize(
    "people",
    [
        (),
        ((1, (1.0,), ()),),
        ((0, (1.0,), ((1.0,),)),),
        ((1, (0.0,), ((1.0,),)),),
        ((1, (-1.0,), ((1.0,),)),),
        ((1, (1.0,), ((0.0,),)),),
        ((1, (1.0,), ((math.nan,),)),),
        ((1, (1.0,), ((math.inf,),)),),
        ((1, (1.0,), ((1e-200,),)),),
        ((1, (1.0, 1.0), ((1.0,), (1.0, 2.0))),),
        ((True, (1.0,), ((1.0,),)),),
        ((1, (1,), ((1.0,),)),),
        "people",
        ((1, "1", ((1.0,),)),),
    ],
    ids=str,
)
def test_records_that_mean_nothing_are_refused(people):
    with pytest.raises((PrivacyParameterError, ValueError)):
        LinearGaussianEvent(people, 1, 1.0, adjacency=REPLACE_ONE)
    record = LinearGaussianEvent(((1, (1.0,), ((1.0,),)),), 1, 1.0, adjacency=REPLACE_ONE).to_dict()
    with pytest.raises(CertificateError):
        event_from_dict({**record, "people": people})
