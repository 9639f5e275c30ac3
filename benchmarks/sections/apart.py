"""Means of twelve groups, however they are written, beside one joint draw of all sums and counts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sections import Line

from sfumato.plan.make import make_plan

GROUPS, EACH, MU, WIDTH = 12, 1000.0, 0.2367, 10.0
HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10).
column(t, k, k(P)). random(k(P)) :- p(P). range(k(P), [{levels}]).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, gdp({mu})).
"""
NAMES = [f"k{place}" for place in range(GROUPS)]
WAYS = {
    "by": ("mean(m, x(P), p(P), by([k(P)])). publish(s, m, o(pub)).\n", {}),
    "separate conditions": (
        "".join(f"mean(m_{k}, x(P), (p(P), k(P) = {k})). publish(s_{k}, m_{k}, o(pub)).\n" for k in NAMES),
        {f"m_{k}": EACH for k in NAMES},
    ),
    "one clause for all groups": (
        f"mean(m(K), x(P), (p(P), k(P) = K)) :- member(K, [{', '.join(NAMES)}]).\n"
        f"publish(s, m(K), o(pub)) :- member(K, [{', '.join(NAMES)}]).\n",
        {f"m({k})": EACH for k in NAMES},
    ),
}


def lines() -> Iterator[Line]:
    # Sum and half the width times the count, both moved by the width: a mean spread over its range errs by √(1 + 1/3).
    joint = math.sqrt(4 / 3) * WIDTH / MU / EACH
    head = HEAD.format(levels=", ".join(NAMES), mu=MU)
    for way, (body, sizes) in WAYS.items():
        plan = make_plan(head + body, sizes={"d": GROUPS * EACH, **sizes})
        error = max(seen.standard_error for planned in plan.publications for seen in planned.seen)
        yield Line(f"means of 12 groups, {way}: error over that of one joint draw", error / joint, 1.05)
    counts = "".join(f"count(c_{k}, (p(P), k(P) = {k})). publish(s_{k}, c_{k}, o(pub)).\n" for k in NAMES)
    table = "histogram(h, [k(P)], p(P)). publish(s, h, o(pub)).\n"
    apart, together = (
        max(seen.standard_error for planned in make_plan(head + body).publications for seen in planned.seen)
        for body in (counts, table)
    )
    yield Line("counts of 12 groups, separate conditions: error over that of a histogram", apart / together, 1.05)
