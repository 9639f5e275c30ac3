"""Expressions: one tree, the same number in numpy and SQL, inside its bounds, no steeper than its slopes."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sfumato.core import Categories
from sfumato.errors import SchemaError
from sfumato.lang import Compound, ListTerm, Number, Variable
from sfumato.network import Bounds, Call, Constant, Distribution, Lookup, Power, Reference
from sfumato.network.convert import expression_of
from sfumato.network.discrete import Latent, level_probability, summed_out

RANGES = {"x": Bounds(-2, 3), "y": Bounds(0.5, 4), "z": Bounds(-1, 1)}
numbers = st.floats(-3, 3, allow_subnormal=False).map(Constant)
leaves = numbers | st.sampled_from([Reference(name) for name in RANGES])


def grown(inner):
    one = st.sampled_from(["negate", "exp", "tanh", "abs", "sqrt", "log", "tan"])
    two = st.sampled_from(["+", "-", "*", "/"])
    many = st.sampled_from(["sum", "mean", "max", "min"])
    return (
        st.builds(lambda f, a: Call(f, (a,)), one, inner)
        | st.builds(lambda f, a, b: Call(f, (a, b)), two, inner, inner)
        | st.builds(lambda f, a: Call(f, tuple(a)), many, st.lists(inner, min_size=1, max_size=4))
        | st.builds(lambda a: Call("clip", (a, Constant(-1.0), Constant(2.0))), inner)
        | st.builds(Power, inner, st.integers(-2, 4))
        | st.builds(lambda a: Distribution("exponential", (a,)), inner)
        | st.builds(lambda a, b: Distribution("uniform", (a, b)), inner, inner)
    )


expressions = st.recursive(leaves, grown, max_leaves=12)
points = st.fixed_dictionaries({name: st.floats(b.low, b.high) for name, b in RANGES.items()})


def at(expression, point):
    return float(expression.evaluate({name: np.asarray(value) for name, value in point.items()}))


@settings(deadline=None, max_examples=60)
@given(expressions, points)
def test_the_value_lies_in_its_interval(expression, point):
    found = expression.interval(RANGES)
    assume(found.bounded)
    assert at(expression, point) in found


@settings(deadline=None, max_examples=60)
@given(expressions, points, points)
def test_no_two_points_differ_by_more_than_the_slopes_allow(expression, first, second):
    """The planner uses this as a proof, so it must hold between far points, across corners, everywhere."""
    bounds, slopes = expression.enclose(RANGES)
    assume(bounds.bounded and all(slope.bounded for slope in slopes.values()))
    moves = {name: abs(first[name] - second[name]) for name in RANGES}
    allowed = sum(slopes[name].magnitude * moves[name] for name in slopes)
    difference = abs(at(expression, first) - at(expression, second))
    rounding = 1e-9 * (1 + bounds.magnitude)
    assert difference <= allowed + rounding
    assert difference <= expression.change(moves, RANGES) + rounding


def test_a_slope_taken_at_a_point_would_be_caught():
    """tanh(50(x - 1/2)): the slope at 0 is 0, and the value still moves by 2; x² at 0 likewise."""
    steep = Call("tanh", (Constant(50.0) * (Reference("x") - Constant(0.5)),))
    slope = steep.gradient_intervals({"x": Bounds(0, 1)})["x"]
    assert slope.magnitude >= 50 * (1 - 1e-12)
    assert Power(Reference("x"), 2).gradient_intervals({"x": Bounds(-1, 1)})["x"].magnitude >= 2
    assert steep.change({"x": 1.0}, {"x": Bounds(0, 1)}) <= 2.0 + 1e-12


def test_what_is_no_number_never_hides_inside_a_bound():
    """log(-1) is NaN; tanh and 1/(1+exp) of it would be NaN inside [-1, 1] and [0, 1]. A clip ends it, at its top."""
    lost = Call("log", (Reference("x"),))
    ranges, point = {"x": Bounds(-2, 3)}, {"x": -1.0}
    logistic = Constant(1.0) / (Constant(1.0) + Call("exp", (lost,)))
    for expression in (
        Call("tanh", (lost,)),
        logistic,
        Call("max", (Call("negate", (Call("abs", (lost,)),)), Constant(1.0))),
    ):
        assert np.isnan(at(expression, point))
        assert not expression.interval(ranges).bounded
    clipped = Call("clip", (lost, Constant(0.0), Constant(5.0)))
    assert clipped.interval(ranges) == Bounds(0, 5)
    assert at(clipped, point) == 5.0
    with duckdb.connect() as connection:
        query = f"SELECT {clipped.to_sql({'x': 'x'})} FROM (VALUES (-1.0)) AS t(x)"
        assert connection.execute(query).fetchall() == [(5.0,)]


def test_a_choice_that_is_never_made_has_no_slope():
    larger = Call("max", (Reference("x"), Reference("y")))
    assert set(larger.gradient_intervals({"x": Bounds(0, 1), "y": Bounds(2, 3)})) == {"y"}
    both = larger.gradient_intervals({"x": Bounds(0, 2), "y": Bounds(1, 3)})
    assert both == {"x": Bounds(0, 1), "y": Bounds(0, 1)}
    same = Call("max", (Reference("x"), Reference("x") + Constant(1.0)))
    assert same.gradient_intervals({"x": Bounds(0, 1)})["x"] == Bounds(1, 1)


@settings(deadline=None, max_examples=60)
@given(expressions, st.lists(points, min_size=1, max_size=5))
@example(Call("negate", (Constant(-0.0),)), [{"x": 0.0, "y": 1.0, "z": 0.0}])
def test_sql_gives_the_same_numbers(expression, rows):
    columns = {name: np.array([row[name] for row in rows]) for name in RANGES}
    expected = np.broadcast_to(expression.evaluate(columns), len(rows))
    assume(np.isfinite(expected).all() and np.abs(expected).max() < 1e100)
    names = {name: f"c{place}" for place, name in enumerate(RANGES)}
    listed = ", ".join(
        f"({', '.join(repr(row[name]) + 'e0' if 'e' not in repr(row[name]) else repr(row[name]) for name in RANGES)})"
        for row in rows
    )
    with duckdb.connect() as connection:
        query = f"SELECT {expression.to_sql(names)} FROM (VALUES {listed}) AS t(c0, c1, c2)"
        found = np.array([row[0] for row in connection.execute(query).fetchall()], dtype=float)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3), points)
def test_linear_expressions_know_their_coefficients(weights, point):
    a, b, d = weights
    x, y, z = (Reference(name) for name in RANGES)
    expression = Constant(a) * x + (y * Constant(b) - Call("mean", (z, x))) / Constant(4.0) + Constant(d)
    coefficients, constant = expression.linear()
    total = constant + sum(value * point[name] for name, value in coefficients.items())
    assert total == pytest.approx(at(expression, point), abs=1e-9)
    assert Call("exp", (x,)).linear() is None
    assert (x * y).linear() is None
    assert (x / y).linear() is None
    assert Call("exp", (Constant(0.0),)).linear() == ({}, 1.0)


@pytest.mark.parametrize(("base", "exponent"), [(1e259, 2), (1e-200, -2), (0.0, -1), (-1e200, 3)])
def test_powers_too_large_for_a_number_are_infinite_and_no_warning(base, exponent):
    for inner in (Constant(base), Distribution("uniform", (Constant(base), Constant(base)))):
        found = Power(inner, exponent)
        assert np.isinf(at(found, {}))
        assert found.linear() is None


def test_tables_of_cases():
    table = Lookup(("sex",), ((("f",), Reference("x")), (("m",), Constant(7.0))))
    values = {"sex": np.array(["m", "f"]), "x": np.array([1.0, 2.0])}
    assert table.evaluate(values).tolist() == [7.0, 2.0]
    ranges = {"x": Bounds(0, 3), "sex": Categories(("f", "m"))}
    assert table.interval(ranges) == Bounds(0, 7)
    assert table.change({"sex": None}, ranges) == 7.0
    assert table.change({"x": 0.5}, ranges) == 0.5
    with duckdb.connect() as connection:
        query = f"SELECT {table.to_sql({'sex': 'a', 'x': 'b'})} FROM (VALUES ('m', 1), ('f', 2)) AS t(a, b)"
        assert [row[0] for row in connection.execute(query).fetchall()] == [7.0, 2.0]


def test_strings_are_quoted():
    table = Lookup(("s",), ((("it's",), Constant(1.0)), (("no",), Constant(2.0))))
    with duckdb.connect() as connection:
        query = f"""SELECT {table.to_sql({"s": 'we"ird'})} FROM (VALUES ('it''s')) AS t("we""ird")"""
        assert connection.execute(query).fetchall() == [(1.0,)]


def test_unobserved_parents_that_share_an_ancestor_are_not_independent():
    """Two copies of one coin always agree: multiplying their marginals would say they agree half of the time."""
    coin = Latent("coin", ("h", "t"), Distribution("discrete", (Constant(0.5), Constant(0.5)), ("h", "t")))
    copy = (
        (("h",), Distribution("discrete", (Constant(1.0),), ("h",))),
        (("t",), Distribution("discrete", (Constant(1.0),), ("t",))),
    )
    latents = {"coin": coin} | {name: Latent(name, ("h", "t"), Lookup(("coin",), copy)) for name in ("one", "two")}
    rows = tuple(((a, b), Constant(float(a == b))) for a in "ht" for b in "ht")
    assert summed_out(Lookup(("one", "two"), rows), latents) == Constant(1.0)
    chances = [summed_out(level_probability(latents["one"].law, level), latents) for level in ("h", "t")]
    assert chances == [Constant(0.5), Constant(0.5)]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.01, 1), min_size=5, max_size=5), st.integers(0, 1))
def test_inference_sums_over_all_states(weights, seen):
    """a -> b -> c with an observed switch s at b: against the sum written out by hand."""
    p, q0, q1, r0, r1 = weights
    a = Latent("a", (0, 1), Distribution("bernoulli", (Constant(p),)))
    law = Lookup(
        ("a", "s"),
        tuple(
            ((i, s), Distribution("bernoulli", (Constant((q0, q1)[i] * (1, 0.5)[s]),))) for i in (0, 1) for s in (0, 1)
        ),
    )
    b = Latent("b", (0, 1), law)
    latents = {"a": a, "b": b}
    final = Call("exp", (Lookup(("b",), (((0,), Constant(r0)), ((1,), Constant(r1)))) + Reference("a"),))
    found = float(summed_out(final, latents).evaluate({"s": np.asarray(seen)}))
    expected = 0.0
    for i, pa in ((0, 1 - p), (1, p)):
        chance = (q0, q1)[i] * (1, 0.5)[seen]
        expected += pa * ((1 - chance) * np.exp(r0 + i) + chance * np.exp(r1 + i))
    assert found == pytest.approx(expected)


def test_terms_become_trees():
    age = Compound("age", (Compound("p"),))
    naming = {age: "age(P)"}.get
    read = lambda term: expression_of(term, naming)  # noqa: E731
    assert read(Compound("-", (age,))) == Call("negate", (Reference("age(P)"),))
    assert read(Compound("max", (ListTerm((age, Number(3))),))) == Call("max", (Reference("age(P)"), Constant(3.0)))
    assert read(Compound("**", (age, Number(2)))) == Power(Reference("age(P)"), 2)
    assert read(Compound("sum", (ListTerm(),))) == Constant(0.0)


@pytest.mark.parametrize(
    ("term", "word"),
    [
        (Compound("agee", (Compound("p"),)), "did you mean|neither"),
        (Variable("X"), "unbound"),
        (Compound("max", (ListTerm(),)), "empty"),
        (Compound("**", (Number(2), Compound("age", (Compound("p"),)))), "exponent"),
        (Compound("bernoulli", ()), "argument"),
        (Compound("discrete", (ListTerm((Compound(":", (Compound("a"), Number(0.7))),)),)), "add up"),
        (Number(10**400), "too large"),
        (Compound("exp", (Number(1), Number(2))), "argument"),
    ],
)
def test_what_is_no_expression_is_refused(term, word):
    age = Compound("age", (Compound("p"),))
    with pytest.raises(SchemaError, match=word):
        expression_of(term, lambda t: "age(P)" if t == age else None)
