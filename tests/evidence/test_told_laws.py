"""What recipients are told of noise and of what a promise covers is what was drawn and what is counted."""

from __future__ import annotations

import math
import re

import pytest

from sfumato.evidence.facts import gather
from sfumato.evidence.recipient import noise_law
from sfumato.run.planning import make_plan

HEAD = """
    table(t, 't.csv', p(P) = id, [x: 0..1000, g: [a, b]]). rows_per_person(t, 3). missing(t, never).
    dataset(d, domain(P, p(P))).
"""


@pytest.mark.parametrize("promise", ["dp(1)", "dp(1, 0.000001)", "gdp(0.4)"])
@pytest.mark.parametrize("of", ["p(P)", "(p(P), g(P) = a)"])
def test_the_noise_of_a_mean_is_told_for_its_sum_and_for_its_count(promise, of):
    """A recipient who draws by what is told has the planned error, for a mean that may lie anywhere in its range."""
    text = f"privacy_requirement(o(public), d, {promise}). mean(m, x(P), {of}). publish(a, m, o(public))."
    plan = make_plan(HEAD + text, sizes={"d": 20_000})
    (planned,) = plan.publications
    (seen,) = planned.seen
    told = re.search(r"deviation (\S+) was added to the sum and of (\S+) to the", noise_law(plan, planned, seen).said)
    size = float(re.search(r"For ([\d,]+) contributions", seen.note)[1].replace(",", ""))
    total, count = map(float, told.groups())
    assert math.hypot(total, 1000 / math.sqrt(12) * count) / size == pytest.approx(seen.standard_error, rel=0.01)


def test_what_everyone_sees_is_covered_by_each_promise():
    text = """
        privacy_requirement(open, d, dp(1)). privacy_requirement(care(doctor), d, dp(3)).
        mean(m, x(P), p(P)). count(n, (p(P), g(P) = a)). publish(a, m, open). publish(b, n, care(doctor)).
    """
    shown = {one.observers: set(one.shown) for one in gather(make_plan(HEAD + text, sizes={"d": 2000})).promises}
    assert shown[("doctor",)] == {"a", "b"}
    assert shown[("everyone",)] == {"a"}
