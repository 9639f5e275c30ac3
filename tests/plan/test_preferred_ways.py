"""What a study prefers binds, and its plan says what it costs everything under the promise."""

from __future__ import annotations

import pytest

from sfumato.plan.plan import Plan
from sfumato.run.planning import make_plan

HEAD = """
table(t, 't.csv', p(P) = id, [x: 0..100, y: 0..10]). rows_per_person(t, 1). missing(t, never).
dataset(d, domain(P, p(P))). mean(m, y(P), p(P)). histogram(h, x(P), p(P), [20, 40, 60, 80]).
median(q, x(P), p(P)). quantile(r, y(P), p(P), [0.1, 0.9]).
"""
OTHERS = ("", "publish(b, m, o(pub)).", "publish(b, m, o(pub)). publish(c, h, o(pub)).", "publish(e, r, o(pub)).")
PROMISES = ("gdp(1)", "gdp(0.2)", "zcdp(0.5)", "renyi_dp(8, 0.5)", "dp(1, 0.000001)", "dp(1)")


def planned(promise: str, others: str, wish: str) -> Plan:
    text = f"{HEAD} privacy_requirement(o(pub), d, {promise}). publish(a, q, o(pub)). {others} {wish}"
    return make_plan(text, sizes={"d": 3000})


@pytest.mark.by_day(8)
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("promise", PROMISES)
def test_what_a_preferred_way_costs_is_told_of_every_publication(promise, others):
    """The errors beside it are those of the plan in which the median is read off sums."""
    drawn, read = (planned(promise, others, f"prefer(a, [{way}]).") for way in ("joint", "central"))
    assert drawn.publication("a").strategy.startswith("joint")
    for one in drawn.publications:
        (beside,) = [other for other in one.alternatives if other.strategy.startswith("a read off noisy sums")]
        assert beside.error == pytest.approx(read.publication(one.name).error)
        assert f"{beside.error / one.error:.3g} times the squared error here" in beside.reason


@pytest.mark.parametrize(
    ("promise", "pure"), [("gdp(1)", "0.806158"), ("zcdp(0.5)", "0.999"), ("dp(1)", ""), ("dp(1, 1e-6)", "")]
)
def test_a_curve_that_is_kept_by_a_pure_promise_says_so(promise, pure):
    """Noise on sums has all of μ = 1; what is drawn has 0.8 of ε, and so has all that is seen beside it."""
    said = planned(promise, OTHERS[1], "prefer(a, [joint]).").publication("a").reason
    assert ("sums alone would have all of it" in said) == bool(pure)
    assert pure in said
