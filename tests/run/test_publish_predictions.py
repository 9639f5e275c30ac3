"""What strategies predict from public facts, against repeated fits on the same people.

Tables and channels: within 5 %, for their laws are public. Models: within the factor that is stated here, which is
what ranking strategies and splitting a budget by cube roots can bear.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core import Adjacency, ApproxDP, Categories, Interval, PureDP, Schema
from sfumato.lang.spec import PrivacyRequirement
from sfumato.lang.term import Compound
from sfumato.learn import NothingLearnedWarning, PrivateSVDD
from sfumato.plan.request import Request
from sfumato.plan.wanted import Wanted
from sfumato.questions.axis import Axis
from sfumato.questions.bought import Bought, power_axis
from sfumato.questions.groups import FoundGroups
from sfumato.questions.quantile import Quantile
from sfumato.run.publish import STRATEGIES

PATIENT = Adjacency("patient", "replace-one")
COLUMNS = ("a", "b", "c", "d")
DOMAINS = (Interval(0, 10), Interval(-1, 1), Interval(0, 1), Interval(100, 300))
SIZE = 5000
STRATEGY = {(one.kind, one.name): one for one in STRATEGIES}


def wanted(kind: str, target: str | None = None, domain=None, columns: int = 4, uses: tuple[str, ...] = ()) -> Wanted:
    requirement = PrivacyRequirement(Compound("r", ()), "public", "people", ApproxDP(1.0, 1e-6, adjacency=PATIENT))
    request = Request("p", Compound(kind, ()), requirement, COLUMNS[:columns], "other")
    return Wanted(request, kind, COLUMNS[:columns], DOMAINS[:columns], target, domain, uses)


def promise(epsilon: float, delta: float):
    return ApproxDP(epsilon, delta, adjacency=PATIENT) if delta else PureDP(epsilon, adjacency=PATIENT)


def numbers(seed: int, size: int = SIZE) -> np.ndarray:
    """Shares of the columns' widths: some skewed, some centred."""
    generator = np.random.default_rng(seed)
    return np.column_stack(
        [
            generator.beta(2, 5, size),
            generator.uniform(0, 1, size),
            generator.beta(3, 3, size),
            generator.beta(5, 2, size),
        ]
    )


def table_of(shares: np.ndarray) -> dict[str, np.ndarray]:
    return {
        name: domain.low + domain.width * shares[:, place]
        for place, (name, domain) in enumerate(zip(COLUMNS, DOMAINS, strict=True))
    }


SLOPES = np.array([2.0, -1.0, 1.5, 1.0])


def labels_of(shares: np.ndarray, seed: int) -> np.ndarray:
    score = (shares - shares.mean(axis=0)) @ SLOPES
    noise = np.random.default_rng(seed).logistic(size=len(shares)) * 0.3 * score.std()
    return np.where(score + noise > 0, "yes", "no")


def within(measured: float, predicted: float, factor: float) -> bool:
    return predicted / factor <= measured <= predicted * factor


def measured_ratio(name: str, guarantee, repeats: int) -> float:
    """Variance of a score over fits on the same people, over the variance of scores; from labels if there are none."""
    shares = numbers(1)
    table, labels, fresh = table_of(shares), labels_of(shares, 2), table_of(numbers(3, 800))
    strategy = STRATEGY["classifier", name]
    schema = Schema(dict(zip(COLUMNS, DOMAINS, strict=True)))
    epsilon, delta = guarantee.eps, getattr(guarantee, "delta_", 0.0)
    given = {"epsilon": epsilon, "delta": delta}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        models = [
            strategy._made(schema, ["no", "yes"], guarantee, given, seed).fit(table, labels) for seed in range(repeats)
        ]
    if not hasattr(models[0], "decision_function"):
        votes = np.array([model.predict(fresh) == "yes" for model in models])
        overturned = np.mean(votes != (votes.mean(axis=0) > 0.5))
        return (2.5 * overturned) ** 2
    scores = np.array([model.decision_function(fresh) for model in models])
    noise = float(scores.var(axis=0, ddof=1).mean())
    return noise / max(float(scores.mean(axis=0).var()) - noise / repeats, 1e-12)


@pytest.mark.parametrize("name", ["objective", "svm"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (6.0, 1e-6), (2.0, 0.0)])
@pytest.mark.by_day(2)
def test_linear_classifiers_within_a_factor_of_six(name, epsilon, delta):
    guarantee = promise(epsilon, delta)
    target = wanted("classifier", "y", Categories(["no", "yes"]))
    predicted = STRATEGY["classifier", name].predict(target, guarantee, SIZE).loss
    assert within(measured_ratio(name, guarantee, 12), predicted, 6)


@pytest.mark.parametrize("name", ["logistic_steps", "hinge_steps"])
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
@pytest.mark.by_day(3)
def test_classifiers_by_steps_within_a_factor_of_six(name, epsilon):
    """Their formula was fixed on other tables, with other columns."""
    guarantee = promise(epsilon, 1e-6)
    target = wanted("classifier", "y", Categories(["no", "yes"]))
    predicted = STRATEGY["classifier", name].predict(target, guarantee, SIZE).loss
    assert within(measured_ratio(name, guarantee, 10), predicted, 6)


@pytest.mark.parametrize("name", ["objective", "svm"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (4.0, 0.0)])
@pytest.mark.by_day(2)
def test_linear_classifiers_on_a_table_that_no_formula_has_seen(name, epsilon, delta):
    """Two numbers, two categories, three labels, 3,000 people: the formulas were fixed before this table was made."""
    generator = np.random.default_rng(11)
    size, place = 3000, generator.integers(4, size=3000)
    columns = {
        "income": generator.gamma(2.0, 15.0, size),
        "year": generator.uniform(1940, 2005, size),
        "region": np.array(["n", "e", "s", "w"])[place],
        "owner": generator.choice(["no", "yes"], size),
    }
    score = columns["income"] / 20 + (columns["year"] - 1970) / 20 + 0.5 * place + generator.normal(0, 1, size)
    labels = np.array(["low", "middle", "high"])[np.digitize(score, np.quantile(score, [0.3, 0.8]))]
    schema = Schema(
        {
            "income": Interval(0, 200),
            "year": Interval(1900, 2010),
            "region": Categories(["n", "e", "s", "w"]),
            "owner": Categories(["no", "yes"]),
        }
    )
    guarantee, strategy = promise(epsilon, delta), STRATEGY["classifier", name]
    target = Categories(["low", "middle", "high"])
    asked = wanted("classifier", "y", target)
    asked = Wanted(asked.request, "classifier", tuple(schema.columns), tuple(schema.columns.values()), "y", target)
    predicted = strategy.predict(asked, guarantee, size).loss
    given = {"epsilon": epsilon, "delta": delta}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingLearnedWarning)
        models = [
            strategy._made(schema, list(target.values), guarantee, given, seed).fit(columns, labels)
            for seed in range(10)
        ]
    scores = np.array([model.decision_function(columns) for model in models])
    noise = float(scores.var(axis=0, ddof=1).mean())
    measured = noise / (float(scores.mean(axis=0).var(axis=0).mean()) - noise / 10)
    assert within(measured, predicted, 10)  # found: 2.5, 3, 3.3 and, for the machine at ε = 1, 6.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernel", "equilibrium"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (6.0, 1e-6), (2.0, 0.0)])
def test_kernel_classifiers_within_a_factor_of_six(name, epsilon, delta):
    guarantee = promise(epsilon, delta)
    target = wanted("classifier", "y", Categories(["no", "yes"]))
    predicted = STRATEGY["classifier", name].predict(target, guarantee, SIZE).loss
    assert within(measured_ratio(name, guarantee, 8), predicted, 6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (6.0, 1e-6), (2.0, 0.0)])
def test_regression_within_a_factor_of_five(epsilon, delta):
    guarantee = promise(epsilon, delta)
    shares, fresh = numbers(1), numbers(3, 800)
    span = Interval(-3.0, 7.0)
    strategy = STRATEGY["regression", "sufficient"]
    schema = Schema(dict(zip(COLUMNS, DOMAINS, strict=True)))
    predicted = strategy.predict(wanted("regression", "y", span), guarantee, SIZE).seen[0].error
    truth = fresh @ (2 * SLOPES)
    models = [
        strategy._made(schema, span, guarantee, (epsilon, delta), seed).fit(table_of(shares), shares @ (2 * SLOPES))
        for seed in range(12)
    ]
    errors = [np.mean((model.predict(table_of(fresh)) - truth) ** 2) for model in models]
    assert within(float(np.mean(errors)), predicted, 5)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (6.0, 1e-6), (2.0, 0.0)])
def test_outliers_within_a_factor_of_six(epsilon, delta):
    """How alike individuals are decides the typical score, and no public fact tells."""
    guarantee = promise(epsilon, delta)
    schema = Schema(dict(zip(COLUMNS, DOMAINS, strict=True)))
    predicted = STRATEGY["outliers", "svdd"].predict(wanted("outliers"), guarantee, SIZE).loss
    fresh = table_of(numbers(3, 500))
    fits = [
        PrivateSVDD(epsilon, delta, C=1.0, schema=schema, random_state=s).fit(table_of(numbers(1))) for s in range(6)
    ]
    scores = np.array([fit.score_samples(fresh) for fit in fits])
    measured = float(scores.var(axis=0, ddof=1).mean() / scores.mean() ** 2)
    assert within(measured, predicted, 6)


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_tables_within_five_per_cent(name):
    """The error of a record: squared deviation of a number, share of changed answers of a category."""
    strategy = STRATEGY["table", name]
    levels = Categories(["u", "v", "w"])
    asked = wanted("table")
    asked = Wanted(asked.request, "table", ("a", "b", "y"), (*DOMAINS[:2], levels), "y", levels)
    guarantee, size = promise(3.0, 1e-6), 40_000
    predicted = {seen.node: seen.error for seen in strategy.predict(asked, guarantee, size).seen}
    act = strategy.settle(asked, guarantee, size)
    # One record many times: the order of rows is lost, and nothing else.
    table = pa.table({"a": np.full(size, 4.0), "b": np.full(size, 0.5), "y": ["v"] * size})
    values = strategy.perform(act, table, range(size), 5).values
    assert np.mean((values["a"].to_numpy() - 4.0) ** 2) == pytest.approx(predicted["a"], rel=0.05)
    assert np.mean((values["b"].to_numpy() - 0.5) ** 2) == pytest.approx(predicted["b"], rel=0.05)
    changed = np.mean(np.array(values["y"].to_pylist()) != "v")
    assert changed == pytest.approx(predicted["y"], rel=0.05)


def test_a_channel_within_five_per_cent():
    strategy = STRATEGY["channel", "tailored"]
    asked = wanted("channel", columns=1, uses=("identity", "sqrt"))
    guarantee, size = promise(2.0, 0.0), 40_000
    predicted = strategy.predict(asked, guarantee, size)
    act = strategy.settle(asked, guarantee, size)
    truth = np.random.default_rng(4).uniform(0, 10, size)
    performed = strategy.perform(act, pa.table({"a": truth}), np.arange(size), 5)
    errors = performed.values["a"].to_numpy() - truth
    assert np.mean(errors**2) == pytest.approx(predicted.seen[0].error, rel=0.05)
    assert predicted.loss == pytest.approx(predicted.seen[0].error / 100 / size)


ASKED = {
    "quantile": Quantile(values=("x(P)",), ranges=((0.0, 10.0),), numbers=(0.25, 0.5), everybody=True),
    "bought": Bought(values=("x(P)",), axes=(power_axis("x(P)"),), everybody=True),
    "groups": FoundGroups(axes=(Axis("city(P)"),)),
}


@pytest.mark.parametrize("kind", sorted({strategy.kind for strategy in STRATEGIES}))
def test_more_budget_and_more_people_never_hurt(kind):
    """Predictions fall with ε, and with n where n matters at all."""
    target = {"classifier": Categories(["no", "yes"]), "regression": Interval(0, 1)}.get(kind)
    asked = wanted(kind, "y" if target else None, target, 1 if kind == "channel" else 4, ("identity",))
    asked = dataclasses.replace(asked, question=ASKED.get(kind))
    for strategy in STRATEGIES:
        if strategy.kind != kind or strategy.accepts(asked, promise(1.0, 1e-6)) is not None:
            continue
        losses = [strategy.predict(asked, promise(epsilon, 1e-6), SIZE).loss for epsilon in (0.3, 1.0, 3.0, 10.0)]
        assert losses == sorted(losses, reverse=True)
        sizes = [strategy.predict(asked, promise(1.0, 1e-6), size).loss for size in (300, 3000, 30_000)]
        assert all(later <= earlier * 1.1 for earlier, later in itertools.pairwise(sizes))
        assert all(math.isfinite(loss) and loss > 0 for loss in (*losses, *sizes))
