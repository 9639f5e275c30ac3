"""What another weight would do is what a study with that weight does, and follows the law of the split."""

from __future__ import annotations

import random

import pytest

from sfumato import Categories, Interval, Study
from sfumato.errors import InputError
from sfumato.plan import mixed
from sfumato.run import other_weights as module
from sfumato.run.aims import half_width_of
from sfumato.run.other_weights import other_weights
from sfumato.run.planning import make_plan

QUESTIONS = ("mean(q{i}, x(P), p(P)).", "count(q{i}, (p(P), x(P) > 3)).", "histogram(q{i}, g(P), p(P)).")


def study_of(seed: int) -> tuple[str, list[str]]:
    source = random.Random(seed)
    promise = source.choice(["dp(1)", "dp(1, 0.000001)", "gdp(0.5)"])
    names = [f"p{i}" for i in range(source.randint(2, 4))]
    lines = [source.choice(QUESTIONS).format(i=i) + f" publish(p{i}, q{i}, o(public))." for i in range(len(names))]
    lines += [f"weight({name}, {source.choice([0.5, 3, 20])})." for name in names if source.random() < 0.4]
    return (
        f"""table(t, 't.csv', p(P) = id, [x: 0..10, g: [a, b, c]]). rows_per_person(t, 1). missing(t, never).
        dataset(d, domain(P, p(P))). privacy_requirement(o(public), d, {promise}).
        """
        + "\n".join(lines),
        names,
    )


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_the_study_with_that_weight_says(seed):
    """The text is written again with the other weight and planned from the start."""
    text, names = study_of(seed)
    for curve in other_weights(make_plan(text, sizes={"d": 500}), {"d": 500}, [0.3, 7]):
        for one in curve:
            kept = "\n".join(line for line in text.splitlines() if not line.startswith(f"weight({one.publication},"))
            again = make_plan(f"{kept}\nweight({one.publication}, {one.weight}).", sizes={"d": 500})
            assert one.half_width == pytest.approx(half_width_of(again.publication(one.publication)), rel=1e-9)
            before = make_plan(text, sizes={"d": 500})
            wider = [
                half_width_of(again.publication(name)) / half_width_of(before.publication(name))
                for name in names
                if name != one.publication
            ]
            assert one.others_wider == pytest.approx(max(wider), rel=1e-9)


@pytest.mark.parametrize(("promise", "degree"), [("dp(1)", 2), ("gdp(0.5)", 1)])
def test_two_means_follow_the_law_of_the_split(promise, degree):
    """Shares are in proportion to weight^(1/(p+1)), errors to share^-p: docs/proofs/allocation.md."""
    text = f"""
        table(t, 't.csv', p(P) = id, [x: 0..1, y: 0..1]). rows_per_person(t, 1). missing(t, never).
        dataset(d, domain(P, p(P))). privacy_requirement(o(public), d, {promise}).
        mean(a, x(P), p(P)). mean(b, y(P), p(P)). publish(first, a, o(public)). publish(second, b, o(public)).
    """
    curve = next(other_weights(make_plan(text, sizes={"d": 10**6}), {"d": 10**6}, [1, 4]))
    ratio = 4 ** (1 / (degree + 1))
    share = ratio / (1 + ratio)
    power = degree / 2
    assert curve[1].half_width / curve[0].half_width == pytest.approx((0.5 / share) ** power, rel=1e-3)
    assert curve[1].others_wider == pytest.approx((0.5 / (1 - share)) ** power, rel=1e-3)


def test_python_compares_weights():
    study = (
        Study("Stays")
        .table("t", "t.csv", person="id", rows_per_person=1, missing="never",
               columns={"x": Interval(0, 10), "g": Categories(["a", "b"])})
        .promise("public", epsilon=1).mean("x", to="public").histogram("g", to="public")
    )  # fmt: skip
    plan = study.plan(size=1000)
    table = plan.compare(weight=[1, 4]).to_pandas()
    assert list(table.columns) == ["reader", "publication", "weight", "half_width", "others_wider"]
    means = table[table["publication"] == "mean x"].set_index("weight")
    assert means.loc[4.0, "half_width"] < means.loc[1.0, "half_width"]
    for wrong in ({}, {"weight": [1], "epsilon": [1]}, {"weight": [0]}, {"weight": [float("nan")]}):
        with pytest.raises(InputError, match="Nothing was planned"):
            plan.compare(**wrong)


MIXED = """
table(t, 't.csv', p(P) = id, [x: 0..10, y: 0..10, g: [a, b, c]]). rows_per_person(t, 1). missing(t, never).
dataset(d, domain(P, p(P))). privacy_requirement(o(public), d, dp(1, 0.000001)).
mean(m, x(P), p(P)). publish(average, m, o(public)).
median(q, y(P), p(P)). publish(middle, q, o(public)).
publish(rows, synthetic([x(P), g(P)]), o(public)).
publish(groups, classifier(g(P), [x(P), y(P)]), o(public)).
"""


def test_nothing_is_planned_that_is_known(monkeypatch):
    """At the weight that it has a publication is as it is."""
    plan, made = make_plan(MIXED, sizes={"d": 500}), []
    again = module.planned_with
    monkeypatch.setattr(module, "planned_with", lambda *given, **named: made.append(named) or again(*given, **named))
    curves = list(other_weights(plan, {"d": 500}))
    assert len(made) == (len(module.MULTIPLES) - 1) * len(curves)
    for curve in curves:
        own = curve[module.MULTIPLES.index(1.0)]
        assert own.half_width == half_width_of(plan.publication(own.publication))
        same = again(plan, {"d": 500}, weights={own.publication: own.weight})
        assert own.half_width == half_width_of(same.publication(own.publication))


def test_losses_at_other_amounts_are_predicted_of_the_plan_that_is_kept_alone(monkeypatch):
    told, predict = [], mixed.act_curve
    monkeypatch.setattr(mixed, "act_curve", lambda wanted, *given: told.append(wanted.name) or predict(wanted, *given))
    plan = make_plan(MIXED, sizes={"d": 500})
    assert sorted(told) == sorted(act.name for act in plan.acts)
    assert [curve.publication for curve in plan.frontier] == [one.name for one in plan.publications]
