"""Groups written as separate conditions are priced once: brute force over neighbours, two roads, planted relatives."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest

from laws.question_rows import EXAMPLES, people, sums_by_hand
from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.core.events.together import TogetherEvent, farthest
from sfumato.network.apart import families_apart
from sfumato.plan.derive import derive
from sfumato.plan.draw import Draw, events_of
from sfumato.plan.make import make_plan, network_of
from sfumato.plan.reached import reached

LEVELS = ("a", "b", "c")
ENDS = (-2.0, 5.0)
HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, g, g(P)). random(g(P)) :- p(P). range(g(P), [a, b, c]).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), -2, 5).
column(t, y, y(P)). random(y(P)) :- p(P). range(y(P), 0, 100).
"""
#: A test as a study writes it, and what it says of (g, y).
TESTS = [
    *((f"g(P) = {one}", lambda g, y, one=one: g == one) for one in LEVELS),
    *((f"y(P) < {cut}", lambda g, y, cut=cut: y < cut) for cut in (20, 60)),
    *((f"y(P) >= {cut}", lambda g, y, cut=cut: y >= cut) for cut in (20, 60)),
    ("y(P) > 60", lambda g, y: y > 60),
    ("20 =< y(P)", lambda g, y: y >= 20),
    ("\\+ g(P) = a", lambda g, y: g != "a"),
]
PEOPLE = list(itertools.product(LEVELS, (0.0, 19.0, 20.0, 40.0, 60.0, 61.0, 100.0), (*ENDS, 1.5)))


def study(seed: int) -> tuple[str, dict]:
    """A study of conditional aggregates; for each name its kind, and who counts."""
    rng = random.Random(seed)
    relation = rng.choice(["", "adjacency(d, add_remove).\n"])
    promise = rng.choice(["dp(1)", "gdp(0.5)"])
    text = f"{HEAD}dataset(d, domain(P, p(P))). {relation}privacy_requirement(o(pub), d, {promise}).\n"
    asked = {}
    for place in range(rng.randint(2, 5)):
        tests = rng.sample(TESTS, rng.randint(1, 2))
        while not any(all(test(g, y) for _, test in tests) for g, y, _ in PEOPLE):  # what nobody can fulfil is refused
            tests = rng.sample(TESTS, 2)
        kind = rng.choice(["count", "count", "mean", "sum", "histogram"])
        goal = ", ".join(["p(P)", *(words for words, _ in tests)])
        value = {"count": "", "histogram": "g(P), "}.get(kind, "x(P), ")
        text += f"{kind}(n{place}, {value}({goal})). publish(s{place}, n{place}, o(pub)).\n"
        asked[f"n{place}"] = (kind, [test for _, test in tests])
    return text, asked


def added(question, kind: str, tests, person, pure: bool) -> np.ndarray:
    """What one person adds to the drawn numbers, by hand."""
    g, y, x = person
    counts = all(test(g, y) for test in tests)
    if kind == "histogram":
        return np.array([float(counts and g == level) for level in LEVELS])
    if kind == "mean":
        return counts * np.array([x - 1.5, question.unit(pure)])
    return counts * np.array([1.0 if kind == "count" else x])


def moved(plan, asked, draws) -> float:
    """The largest cost between two people of the draws together, by brute force."""
    pure = draws[0].noise == "laplace"
    vectors = [
        np.concatenate([added(plan.questions[d.node], *asked[d.node], one, pure) / d.scale for d in draws])
        for one in PEOPLE
    ]
    points = np.array([*vectors, np.zeros_like(vectors[0])])
    if draws[0].adjacency.relation == "add-remove":
        apart = points
    else:
        apart = (points[:, None, :] - points[None, :, :]).reshape(-1, points.shape[1])
    return float(np.abs(apart).sum(1).max() if pure else np.linalg.norm(apart, axis=1).max())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.by_day(8)
def test_nobody_moves_a_family_further_than_its_event_says(seed):
    text, asked = study(seed)
    plan = make_plan(text)
    families: dict[str, list[Draw]] = {}
    for draw in plan.draws:
        if draw.apart is not None:
            families.setdefault(draw.apart.family, []).append(draw)
    for draws in families.values():
        (event,) = events_of(draws)
        assert isinstance(event, TogetherEvent)
        cost = event.guarantee()
        claimed = cost.epsilon(0.0) if draws[0].noise == "laplace" else cost.mu
        found = moved(plan, asked, draws)
        assert found <= claimed
        # Values of one row that several sums read, and cells that a condition decides, are taken as independent: there
        # the claim may be too large.
        if sum(asked[draw.node][0] != "count" for draw in draws) <= 1 and not any(
            asked[draw.node][0] == "histogram" for draw in draws
        ):
            assert found >= 0.99 * claimed, [asked[draw.node][0] for draw in draws]
        assert claimed <= _apart(draws) * (1 + 1e-6)


def _apart(draws) -> float:
    costs = [draw.event().guarantee() for draw in draws]
    if draws[0].noise == "laplace":
        return math.fsum(cost.epsilon(0.0) for cost in costs)
    return math.hypot(*(cost.mu for cost in costs))


@pytest.mark.parametrize("seed", range(20, 40))
@pytest.mark.by_day(11)
def test_two_ways_find_the_same_sets(seed):
    network = network_of(study(seed)[0])
    nodes = {node.name: node for node in network.aggregates}
    known = {node.name: node for group in network.groups for node in group.nodes}
    for family in families_apart(network.aggregates, network.groups):
        again = set(reached({name: nodes[name].condition for name in family.names}, known)) - {frozenset()}
        assert again == set(family.sets)


def counts_of(*tests: str, promise: str = "gdp(1.0)") -> str:
    body = "".join(
        f"count(n{place}, (p(P), {test})). publish(s{place}, n{place}, o(pub)).\n" for place, test in enumerate(tests)
    )
    return f"{HEAD}dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, {promise}).\n{body}"


@pytest.mark.parametrize(
    ("tests", "square"),
    [
        (("y(P) > 60", "y(P) > 65", "y(P) > 70"), 3),
        (("y(P) < 20", "y(P) >= 20, y(P) < 60", "y(P) >= 60"), 2),
        (tuple(f"y(P) >= {low}, y(P) < {low + 5}" for low in range(0, 100, 5)), 2),
        (("y(P) < 40", "y(P) >= 20, y(P) < 60", "y(P) >= 40"), 3),
        (("g(P) = a", "g(P) = b", "y(P) < 50"), 3),
    ],
)
def test_what_counts_cost_together(tests, square):
    """In units of one count: nested ones add up, of disjoint ones a replaced person moves two."""
    plan = make_plan(counts_of(*tests))
    assert len({draw.scale for draw in plan.draws}) <= 2
    if square < len(tests):
        (scale,) = {draw.scale for draw in plan.draws}
        assert scale == pytest.approx(math.sqrt(square), rel=5e-4)
    else:
        total = math.fsum(draw.scale**-2 for draw in plan.draws)
        assert total == pytest.approx(1.0, rel=1e-5)


def group_means(kind: str, groups: int, promise: str) -> float:
    """The largest predicted standard error of means of twelve groups of a thousand, however they are written."""
    names = [f"k{place}" for place in range(groups)]
    text = HEAD + f"column(t, k, k(P)). random(k(P)) :- p(P). range(k(P), [{', '.join(names)}]).\n"
    text += f"dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, {promise}).\n"
    sizes = {"d": groups * 1000.0}
    if kind == "by":
        text += "mean(m, x(P), p(P), by([k(P)])). publish(s, m, o(pub)).\n"
    else:
        for name in names:
            text += f"mean(m_{name}, x(P), (p(P), k(P) = {name})). publish(s_{name}, m_{name}, o(pub)).\n"
            sizes[f"m_{name}"] = 1000.0
    plan = make_plan(text, sizes=sizes)
    return max(seen.standard_error for planned in plan.publications for seen in planned.seen)


@pytest.mark.parametrize("promise", ["dp(1)", "gdp(0.3)", "dp(1, 0.000001)"])
def test_groups_written_apart_are_as_good_as_groups_written_together(promise):
    assert group_means("apart", 12, promise) <= 1.001 * group_means("by", 12, promise)


def test_counts_written_apart_are_as_good_as_a_histogram():
    tests = [f"g(P) = {one}" for one in LEVELS]
    apart = make_plan(counts_of(*tests)).draws[0].scale
    text = counts_of(*tests).partition("count(")[0] + "histogram(h, g(P), p(P)). publish(s, h, o(pub)).\n"
    assert apart == pytest.approx(make_plan(text).draws[0].scale, rel=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_merging_two_groups_never_costs_more(seed):
    """Counts: two that exclude each other become one."""
    rng = random.Random(seed)
    size = rng.randint(3, 6)
    sets = {frozenset(rng.sample(range(2, size), rng.randint(0, size - 2))) | {rng.choice([0, 1])} for _ in range(6)}
    sets |= {frozenset({place}) for place in range(size)}
    merged = {frozenset(max(place, 1) for place in one) for one in sets}
    alone, inside = [rng.uniform(0.5, 2.0) for _ in range(size)], [0.0] * size
    alone[0] = alone[1]
    for replaces in (True, False):
        before, after = (farthest(alone, inside, [sorted(one) for one in kind], replaces) for kind in (sets, merged))
        assert after <= before * (1 + 1e-12)


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_who_counts_in_one_or_in_both_moves_no_more_than_it_says(kind):
    generator = np.random.default_rng(0)
    for question in EXAMPLES[kind][:40:3]:
        if question.everybody or question.only_drawn or question.is_public:
            continue
        alone, inside = question.met()
        rows = [one for one in people(question, generator, 6)[:12] if one]
        for pure, of in ((True, "l1"), (False, "l2")):
            size = (lambda v: np.abs(v).sum()) if pure else np.linalg.norm
            drawn = [question.encode(sums_by_hand(question, one), pure) for one in rows]
            nobody = question.encode(sums_by_hand(question, []), pure)
            slack = 1 + 1e-9
            assert max(size(one - nobody) for one in drawn) <= getattr(alone, of) * slack
            if question.replaces and question.rows == 1:  # of several rows some may count and others not
                assert max(size(a - b) for a in drawn for b in drawn) <= getattr(inside, of) * slack


def test_a_plan_that_lost_a_cell_is_found():
    """Relatives: a plan that says two overlapping counts never meet, or that a sum moves less than it does."""
    tests = ("y(P) < 40", "y(P) >= 20, y(P) < 60", "y(P) >= 60")
    plan = make_plan(counts_of(*tests))
    assert all(finding.ok for finding in derive(plan, plan.network))
    for change in ({"cells": (0,)}, {"alone": 0.5}, {"inside": 0.1}):
        for place, draw in enumerate(plan.draws):
            if draw.apart is None or draw.apart.cells == change.get("cells"):
                continue
            edited = dataclasses.replace(draw, apart=dataclasses.replace(draw.apart, **change))
            draws = (*plan.draws[:place], edited, *plan.draws[place + 1 :])
            findings = list(derive(dataclasses.replace(plan, draws=draws), plan.network))
            assert not all(finding.ok for finding in findings), (change, place)


def test_too_many_cells_are_taken_to_overlap():
    """Seventeen tests that cannot be cut are 2^17 cells: nothing is put together, and nothing is promised for it."""
    tests = [f"x(P) + {place} < y(P)" for place in range(18)]
    network = network_of(counts_of(*tests))
    assert families_apart(network.aggregates, network.groups) == ()
    assert all(draw.apart is None for draw in make_plan(network).draws)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_large_family_is_priced_soon(adjacency):
    size = 1000
    event = TogetherEvent(
        "gaussian", ((1.0, 1.5, 2.0, 0.0, 1),) * size, tuple((place,) for place in range(size)), adjacency=adjacency
    )
    expected = math.sqrt(0.5625) if adjacency == REPLACE_ONE else 0.5
    assert event.guarantee().mu == pytest.approx(max(expected, math.sqrt(0.5) if expected > 0.5 else 0.5), rel=1e-9)


def test_a_run_of_separate_groups_verifies(tmp_path):
    from sfumato.evidence.verify_plan import verify_folder
    from sfumato.ledger.ledger import Ledger
    from sfumato.run.planning import make_plan as plan_all
    from sfumato.run.study import run_plan

    rng = np.random.default_rng(1)
    text = counts_of(*(f"g(P) = {one}" for one in LEVELS), promise="dp(5, 0.000001)")
    path = tmp_path / "study.pl"
    path.write_text(text)
    table = pa.table({"id": range(300), "g": rng.choice(list("abc"), 300), "x": np.zeros(300), "y": np.zeros(300)})
    ledger = Ledger(tmp_path / "ledger.db")
    run_plan(plan_all(path), {"t": table}, ledger, out=tmp_path / "out", grant=True)
    checks = verify_folder(tmp_path / "out", path)
    assert all(check.ok for check in checks)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_more_studies(part):
    for seed in range(1000 + 40 * part, 1040 + 40 * part):
        test_nobody_moves_a_family_further_than_its_event_says(seed)
        test_two_ways_find_the_same_sets(seed)


@pytest.mark.parametrize(("metric", "together"), [("dp(1)", False), ("gdp(1)", True)])
def test_rounding_of_several_rows_is_not_paid_once(metric, together):
    """With Laplace noise a person with a row in every sum moves each by its rounding as well: priced one by one."""
    text = f"""
    source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 3). missing(t, never).
    column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 9).
    dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, {metric}).
    count(low, (p(P), x(P) < 3)). count(middle, (p(P), x(P) >= 3, x(P) < 6)). count(high, (p(P), x(P) >= 6)).
    publish(a, low, o(pub)). publish(b, middle, o(pub)). publish(c, high, o(pub)).
    """
    assert all((draw.apart is not None) == together for draw in make_plan(text).draws)
