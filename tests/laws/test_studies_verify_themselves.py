"""A study's own certificates pass its own verifier, however many publications share one promise."""

from __future__ import annotations

import random
import warnings

import pyarrow as pa
import pytest

from sfumato import load, make_plan, run_plan, verify
from sfumato.core import PureDP

HEAD = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)).
column(patients, age, age(P)).
rows_per_person(patients, 1).
random(age(P)) :- patient(P).
range(age(P), 0, 110).
missing(age(P), 0).
dataset(people, domain(P, patient(P))).
"""
TABLE = {"patients": pa.table({"id": list(range(20)), "age": [float(20 + k) for k in range(20)]})}


def study(seed: int) -> str:
    rng = random.Random(seed)
    epsilon = rng.choice(["0.1", "0.3", "0.5", "1", "1.7", "20"])
    delta = rng.choice(["", "", ", 0", ", 0.000001", ", 0.001"])
    lines = [HEAD, f"privacy_requirement(openness(public), people, dp({epsilon}{delta}))."]
    for place in range(rng.randint(1, 5)):
        low = rng.randint(1, 100)
        lines.append(
            rng.choice(
                [
                    f"count(c{place}, (patient(P), age(P) > {low})).",
                    f"mean(c{place}, age(P), (patient(P), age(P) > {low})).",
                    f"sum(c{place}, age(P), patient(P)).",
                ]
            )
        )
        lines.append(f"publish(p{place}, c{place}, openness(public)).")
    return "\n".join(lines)


def check(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = run_plan(make_plan(load(study(seed))), TABLE, None)
    for name, certificate in release.certificates.items():
        assert verify(certificate).failures == (), (seed, name)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.by_day(3)
def test_an_honest_study_verifies(seed):
    check(seed)


@pytest.mark.slow
def test_honest_studies_verify_at_length():
    for seed in range(8, 200):
        check(seed)


def test_pure_promises_are_among_them():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = HEAD + "privacy_requirement(openness(public), people, dp(1)).\n"
        for place, low in enumerate((3, 50, 70)):
            text += f"count(c{place}, (patient(P), age(P) > {low})).\npublish(p{place}, c{place}, openness(public)).\n"
        release = run_plan(make_plan(load(text)), TABLE, None)
    promised = [
        certificate for certificate in release.certificates.values() if isinstance(certificate.guarantee, PureDP)
    ]
    assert promised
    assert all(certificate.guarantee.eps == 1.0 and len(certificate.events) >= 3 for certificate in promised)
    assert all(verify(certificate).ok for certificate in release.certificates.values())
