"""What is published of a random variable is its expectation under the declared network, and its bounds hold."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate, stats

from sfumato.lang import load
from sfumato.network import inference
from sfumato.network.algebra import within
from sfumato.network.bounds import Bounds
from sfumato.network.condition import Comparison, Every, Not, Some
from sfumato.network.expression import Call, Constant, Distribution, Expression, Power, Reference
from sfumato.network.indicator import Indicator
from sfumato.network.inference import Inference
from sfumato.network.network import Network
from sfumato.network.quadrature import Expectation
from tests.laws.random_networks import Written, random_network

ROWS = 6


def table_for(seed: int) -> tuple[pa.Table, dict[str, np.ndarray]]:
    generator = np.random.default_rng(seed)
    cells = {
        "x": np.append(generator.uniform(0.05, 1, ROWS - 2), [0.05, 1.0]),
        "z": np.append(generator.uniform(-1, 1, ROWS - 2), [-1.0, 1.0]),
        "kind": generator.integers(0, 3, ROWS),
    }
    words = np.array(["a", "b", "c"])[cells["kind"]]
    return pa.table({"id": [f"i{k}" for k in range(ROWS)], "x": cells["x"], "z": cells["z"], "kind": words}), cells


def stated_error(expression: Expression | None, values: dict[str, np.ndarray]) -> float:
    """What the points leave, as the expression itself says."""
    if expression is None:
        return 0.0
    if isinstance(expression, Expectation):
        return float(np.max(expression.error(values)))
    inner = [stated_error(part, values) for part in expression.parts()]
    sizes = [float(np.max(np.abs(part.evaluate(values)))) for part in expression.parts() if max(inner, default=0) > 0]
    return math.fsum(inner) * max([1.0, *sizes])


def simulated(made: Written, cells: dict[str, np.ndarray], draws: int, seed: int) -> dict[str, np.ndarray]:
    shape = (draws, ROWS)
    spread = {name: np.broadcast_to(column, shape) for name, column in cells.items()}
    return made.simulate(spread["x"], spread["z"], spread["kind"], np.random.default_rng(seed))


def close(found, drawn: np.ndarray, stated: float, errors: float = 4.5) -> bool:
    """Whether a mean of draws allows the value: so many standard errors beside the error that is stated."""
    spread = drawn.std(axis=0) / math.sqrt(len(drawn))
    heavy = np.abs(drawn).max(axis=0) / len(drawn)  # of rare large draws the spread knows too little
    return bool(np.all(np.abs(np.asarray(found) - drawn.mean(axis=0)) <= errors * spread + heavy + stated + 1e-9))


def check_network(seed: int, draws: int, errors: float = 4.5) -> None:
    made = random_network(seed)
    condition, holds = made.condition()
    value = made.generator.choice([name for name in made.drawn if name not in made.words])
    made.lines += [
        f"count(c, (item(I), {condition})).",
        f"sum(s, {value}(I), item(I)).",
        f"sum(sc, {value}(I), (item(I), {condition})).",
        f"mean(mc, {value}(I), (item(I), {condition})).",
        f"moment2(m2, [{value}(I), x(I)], item(I)).",
        "publish(count, c, p(obs)).",
    ]
    cuts = [0.0, 0.5, 1.0]
    declared = re.search(rf"range\({value}\(I\), (\S+), (\S+)\)\.", made.text)
    low, high = map(float, declared.groups()) if declared else (-math.inf, math.inf)
    if not any(low < cut < high for cut in cuts):  # cuts that split nothing are refused
        cuts = [(low + high) / 2]
    made.lines.append(f"histogram(h, {value}(I), item(I), {cuts}).")
    network = Network.from_spec(load(made.text))
    table, cells = table_for(seed)
    values = network.evaluate({"items": table})
    drawn = simulated(made, cells, draws, seed + 1)
    known = {"x(I)": cells["x"], "z(I)": cells["z"], "kind(I)": np.array(["a", "b", "c"])[cells["kind"]]}
    worst = 0.0
    for name in made.drawn:
        node = network.node(f"{name}(I)")
        if node.expression is None:
            high = values.column(f"{node.name}=high")
            assert close(high, drawn[name], 0.0, errors), (seed, name)
            continue
        found = values.column(node.name)
        known[node.name] = found
        stated = stated_error(node.expression, known)
        worst = max(worst, stated)
        assert close(found, drawn[name], stated, errors), (seed, name, str(node.law))
        assert np.all((found >= node.bounds.low) & (found <= node.bounds.high)), (seed, name)
    sums = {node.name: values.aggregates[node.name].vector for node in network.aggregates}
    chosen, weight = drawn[value], holds(drawn, np.random.default_rng(0))
    # Aggregates have points of their own; their error is that of indicators of the same variables.
    slack = 0.02 * ROWS + 3 * worst * ROWS
    truths = {
        "c": [weight],
        "s": [chosen],
        "sc": [chosen * weight],
        "mc": [chosen * weight, weight],
        "m2": [chosen * chosen, chosen * cells["x"], np.broadcast_to(cells["x"] ** 2, chosen.shape)],
        "h": [(chosen >= low) & (chosen < high) for low, high in pairwise([-math.inf, *cuts, math.inf])],
    }
    for name, entries in truths.items():
        node = network.node(name)
        grown = max(1.0, float(np.abs(chosen).max())) ** (2 if name == "m2" else 1)
        if name == "h" and len(sums["h"]) != len(entries):
            continue  # cuts outside the support make no bins
        for place, entry in enumerate(entries):
            totals = np.sum(np.asarray(entry, dtype=float), axis=1, keepdims=True)
            assert close(sums[name][place : place + 1], totals, slack * grown, errors), (seed, name, place, condition)
            if name in ("sc", "mc") and place == 0 and node.question.bounded:
                low, high = min(node.question.ranges[0][0], 0.0), max(node.question.ranges[0][1], 0.0)
                assert ROWS * low - 1e-6 <= sums[name][0] <= ROWS * high + 1e-6


def check_networks(seeds: range) -> None:
    for seed in seeds:
        check_network(seed, 20_000)


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.by_day(3)
def test_expectations_equal_simulated_means(seed):
    check_network(seed, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_expectations_equal_simulated_means_nightly(seed):
    check_network(seed, 200_000, 5.0)


def test_the_simulation_finds_means_pushed_through_functions(monkeypatch):
    """The planted relative: every variable taken for its mean, as in linear networks."""
    monkeypatch.setattr("sfumato.network.nodes.affine", lambda law, random: True)
    with pytest.raises(AssertionError):
        check_networks(range(14))


@pytest.mark.slow
def test_the_simulation_finds_parents_taken_as_independent(monkeypatch):
    """A second planted relative: a variable that is met twice is drawn twice."""

    shared = inference.Inference._value

    def fresh(self, name):
        formula = self.formulas[name]
        drawn = isinstance(formula, Distribution) and name not in self.levels
        return self._drawn(formula, name) if drawn else shared(self, name)

    monkeypatch.setattr(inference.Inference, "_value", fresh)
    with pytest.raises(AssertionError):
        check_networks(range(14))


@pytest.mark.slow
def test_the_simulation_finds_levels_outside_their_range(monkeypatch):
    """A third: a declared range that leaves the levels of finite draws where they are."""
    monkeypatch.setattr("sfumato.network.nodes.clipped_levels", lambda law, low, high: law)
    monkeypatch.setattr("sfumato.network.nodes.clipped_level", lambda level, low, high: level)
    with pytest.raises(AssertionError):
        check_networks(range(14))


@pytest.mark.parametrize("law", ["discrete([4: 0.9, -2: 0.1])", "bernoulli(0.9)"])
def test_a_range_clips_finite_draws(law):
    made = random_network(0)
    made.lines = [
        f"random(o(I)) :- item(I). depends(o(I), [x(I)], {law}). range(o(I), 0.25, 0.5).",
        "sum(s, o(I), item(I)). count(c, (item(I), o(I) > 0.5)). histogram(h, o(I), item(I), [0.3]).",
        "publish(a, s, p(obs)).",
    ]
    values = Network.from_spec(load(made.text)).evaluate({"items": table_for(0)[0]})
    assert values.aggregates["s"].vector == pytest.approx([ROWS * (0.9 * 0.5 + 0.1 * 0.25)])
    assert values.aggregates["c"].vector == pytest.approx([0.0])
    assert values.aggregates["h"].vector == pytest.approx([0.1 * ROWS, 0.9 * ROWS])


# ── one variable, against quadrature ─────────────────────────────────────────────────────────────────────────────────

X, DRAW = Reference("x"), Reference("o")
RANGES = {"x": Bounds(0.2, 1.5)}
LAWS = {
    "normal": (Distribution("normal", (X, Constant(0.7))), lambda x: stats.norm(x, 0.7)),
    "narrow": (Distribution("normal", (X, X)), lambda x: stats.norm(x, x)),
    "exponential": (Distribution("exponential", (X + Constant(1.0),)), lambda x: stats.expon(scale=1 / (x + 1))),
    "uniform": (Distribution("uniform", (Constant(-1.0), X)), lambda x: stats.uniform(-1, x + 1)),
    "poisson": (Distribution("poisson", (X + Constant(2.0),)), lambda x: stats.poisson(x + 2)),
}
C = Constant
BODIES = {
    "o": DRAW,
    "o^2": Power(DRAW, 2),
    "o^5": Power(DRAW, 5),
    "exp(-o)": Call("exp", (Call("negate", (DRAW,)),)),
    "o exp(o/3)": DRAW * Call("exp", (DRAW / C(3.0),)),
    "[o >= 1]": Indicator(Comparison(">=", DRAW, C(1.0))),
    "[1 <= o < 2]": Indicator(Every((Comparison(">=", DRAW, C(1.0)), Comparison("<", DRAW, C(2.0))))),
    "[o = 2]": Indicator(Comparison("=", DRAW, C(2.0))),
    "o [o > x]": DRAW * Indicator(Comparison(">", DRAW, X)),
    "o^2 [not (3 - 2 o > 1)]": Power(DRAW, 2) * Indicator(Not(Comparison(">", C(3.0) - C(2.0) * DRAW, C(1.0)))),
    "[o < 0.3 or o > 1.2]": Indicator(Some((Comparison("<", DRAW, C(0.3)), Comparison(">", DRAW, C(1.2))))),
    "clip": Call("clip", (DRAW, C(0.25), C(1.75))),
    "clip^3": Power(Call("clip", (DRAW, C(0.25), C(1.75))), 3),
    "max": Call("max", (DRAW - X, C(0.0))),
    "abs": Call("abs", (DRAW - C(1.0),)),
}
SMOOTH = {
    "tanh": Call("tanh", (DRAW,)),
    "1/(1+o^2)": C(1.0) / (C(1.0) + Power(DRAW, 2)),
    "sqrt(1+|o|)": Call("sqrt", (C(1.0) + Call("abs", (DRAW,)),)),
    "clip(exp(o), 0, 2)": Call("clip", (Call("exp", (DRAW,)), C(0.0), C(2.0))),
}


def by_quadrature(body: Expression, law, x: float) -> float:
    """∫ body dP by scipy, split at the places where the bodies above jump or bend."""
    value = lambda o: float(np.squeeze(body.evaluate({"o": np.asarray(o), "x": np.asarray(x)})))  # noqa: E731
    if isinstance(law.dist, stats.rv_discrete):
        return math.fsum(law.pmf(n) * value(float(n)) for n in range(120))
    low, high = max(law.support()[0], law.mean() - 12 * law.std()), min(law.support()[1], law.mean() + 45 * law.std())
    ends = sorted({low, high, *(c for c in (0.0, 0.25, 0.3, 1.0, 1.2, 1.75, 2.0, math.log(2), x) if low < c < high)})
    pieces = (
        integrate.quad(lambda o: law.pdf(o) * value(o), a, b, epsabs=1e-12, limit=200)[0] for a, b in pairwise(ends)
    )
    return math.fsum(pieces)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.by_day(15)
def test_closed_forms_equal_quadrature(name, body):
    law, true = LAWS[name]
    made = Inference({"o": law}, {}, dict(RANGES)).expected(BODIES[body])
    for x in (0.2, 0.7, 1.5):
        expected = by_quadrature(BODIES[body], true(x), x)
        stated = stated_error(made, {"x": np.asarray(x)})
        assert float(made.evaluate({"x": np.asarray(x)})) == pytest.approx(expected, rel=1e-7, abs=1e-8 + stated)
    open_ones = {"uniform": ("o exp(o/3)",), "poisson": ("o [o > x]", "max")}
    assert _has_points(made) == (body in open_ones.get(name, ()))


@pytest.mark.parametrize("body", SMOOTH)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.by_day(5)
def test_points_equal_quadrature_up_to_the_stated_error(name, body):
    law, true = LAWS[name]
    made = Inference({"o": law}, {}, dict(RANGES)).expected(SMOOTH[body])
    assert _has_points(made)
    for x in (0.2, 0.7, 1.5):
        stated = stated_error(made, {"x": np.asarray(x)})
        expected = by_quadrature(SMOOTH[body], true(x), x)
        assert stated < 0.01
        assert abs(float(made.evaluate({"x": np.asarray(x)})) - expected) <= stated + 1e-8


def _has_points(expression: Expression) -> bool:
    return isinstance(expression, Expectation) or any(_has_points(part) for part in expression.parts())


def test_a_tail_far_out_keeps_its_digits():
    """P(o >= 30) for a Poisson variable of rate 3, against 50 digits."""
    made = Inference({"o": Distribution("poisson", (X,))}, {}, {"x": Bounds(1, 5)})
    found = float(made.expected(Indicator(Comparison(">=", DRAW, C(30.0)))).evaluate({"x": np.asarray(3.0)}))
    with mpmath.workdps(50):
        true = mpmath.gammainc(30, 0, 3, regularized=True)
    assert found == pytest.approx(float(true), rel=1e-10)


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def leaves_bounds(made: Expression, bounds: Bounds) -> bool:
    x = np.linspace(0.2, 1.5, 400)
    values = np.broadcast_to(made.evaluate({"x": x}), x.shape)
    return bool(np.any((values < bounds.low) | (values > bounds.high) | np.isnan(values)))


@pytest.mark.parametrize("name", LAWS)
def test_enclosures_hold_for_what_is_computed(name):
    law, _ = LAWS[name]
    for body in (*BODIES.values(), *SMOOTH.values()):
        made = Inference({"o": law}, {}, dict(RANGES)).expected(body)
        bounds, slopes = made.enclose(RANGES)
        assert not leaves_bounds(made, bounds), str(body)
        x = np.linspace(0.2, 1.5, 400)
        steps = np.diff(np.broadcast_to(made.evaluate({"x": x}), x.shape)) / np.diff(x)
        steep = slopes.get("x", Bounds(0.0, 0.0))
        assert np.all((steps >= steep.low - 1e-6) & (steps <= steep.high + 1e-6)), str(body)


def test_an_enclosure_of_the_plain_mean_is_found_false():
    """The planted relative: the function of the mean's range in place of the mean of the function's."""
    made = Inference({"o": LAWS["normal"][0]}, {}, dict(RANGES)).expected(Power(DRAW, 2))
    assert leaves_bounds(made, Power(X, 2).interval(RANGES))
    assert within(made, Bounds(0.0, 1.0), RANGES) != made


def test_unbounded_values_are_refused_and_clipped_ones_are_not():
    study = random_network(0)
    study.lines = [
        "random(o(I)) :- item(I). depends(o(I), [x(I)], normal(x(I), 1)).",
        "random(h(I)) :- item(I). depends(h(I), [o(I)], sqrt(1 + abs(o(I)))).",
        "random(k(I)) :- item(I). depends(k(I), [o(I)], clip(sqrt(1 + abs(o(I))), 0, 2)).",
        "mean(m, VALUE(I), item(I)). publish(out, m, p(obs)).",
    ]
    from sfumato.errors import PlanError
    from sfumato.plan.make import make_plan

    with pytest.raises(PlanError, match="clip"):
        make_plan(study.text.replace("VALUE", "h"))
    assert make_plan(study.text.replace("VALUE", "k")).publications
    assert make_plan(study.text.replace("VALUE", "o")).publications  # its mean is x, whatever is drawn
