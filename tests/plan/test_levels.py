"""Noise on a category that a lookup reads: no way to publish it, and none of the ways compared."""

from __future__ import annotations

import math

from sfumato.plan.make import make_plan

STUDY = """
source(people, 'people.parquet').
column(people, id, person(P)). missing(people, never).
rows_per_person(people, 1).
column(people, dose, dose(P)).
column(people, kind, kind(P)).
random(dose(P)) :- person(P). random(kind(P)) :- person(P). random(effect(P)) :- person(P).
range(dose(P), 0, 10).
range(kind(P), [0, 1]).
depends(effect(P), [dose(P), kind(P)], lookup([kind(P)], [row([0], 0.5 * dose(P)), row([1], -0.7 * dose(P))])).
dataset(everybody, domain(P, person(P))).
privacy_requirement(openness(public), everybody, dp(5, 0.000001)).
publish(each, effect(P), openness(public)) :- person(P).
"""


def test_a_level_with_noise_is_no_level():
    planned = make_plan(STUDY).publication("each")
    assert planned.strategy.startswith("output noise")
    assert all(other.error is not None and math.isfinite(other.error) for other in planned.alternatives)
    assert not any("kind(P)" in other.cut for other in planned.alternatives)
