"""Quantiles of listed numbers and of days are such numbers and days, and with no noise those of plain pandas.

Lists, calendars, groups, promises with and without δ, sizes and rows are drawn at random; the comparison counts rows in
pandas and shares no code with the runner.
"""

from __future__ import annotations

import random
import warnings

import numpy as np
import pandas as pd
import pytest

from sfumato.network import gather
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

DAYS = pd.Timestamp("1970-01-01")


def drawn(seed: int) -> tuple[str, pd.DataFrame, list[float], set[float]]:
    """A study, its table, the wanted shares and what a quantile may be."""
    source, chance = random.Random(seed), np.random.default_rng(seed)
    size = source.choice([30, 400, 5000])
    if source.random() < 0.5:
        unit, start = source.choice([1, 1, 5, 100]), source.randint(-20, 20)
        places = [unit * (start + step) for step in range(source.randint(2, 40))]
        places = sorted(source.sample(places, source.randint(2, len(places))))  # with gaps of all sizes
        said, cells = f"range(v(P), [{', '.join(map(str, places))}]).", chance.choice(places, size)
    else:
        first, span = source.randint(0, 30000), source.randint(1, 800)  # more would share bins
        places = list(range(first, first + span + 1))
        ends = [(DAYS + pd.Timedelta(days=day)).strftime("date(%Y, %-m, %-d)") for day in (places[0], places[-1])]
        said = f"range(v(P), {ends[0]}, {ends[1]})."
        cells = DAYS + pd.to_timedelta(chance.choice(places, size) + chance.random(size), "D")
    wanted = sorted(source.sample([0.1, 0.25, 0.5, 0.77, 0.9], source.randint(1, 4)))
    by = source.choice(["", ", by([g(P)])"])
    epsilon = source.choice(["EXACT", "0.3", "2"])
    promise = f"dp({epsilon})" if source.random() < 0.5 else f"dp({epsilon}, 0.000001)"
    study = f"""
        source(t, 't.csv'). column(t, id, p(P)). column(t, v, v(P)). column(t, g, g(P)).
        rows_per_person(t, 1). missing(t, never). random(v(P)) :- p(P). random(g(P)) :- p(P).
        range(g(P), [a, b]). {said} dataset(people, domain(P, p(P))).
        privacy_requirement(o(public), people, {promise}).
        quantile(q, v(P), p(P), {wanted}{by}). publish(x, q, o(public)).
    """
    frame = pd.DataFrame({"id": np.arange(size), "v": cells, "g": chance.choice(["a", "b"], size)})
    return study, frame, wanted, {float(place) for place in places}


def published(study: str, frame: pd.DataFrame) -> pd.DataFrame:
    plan = make_plan(study, sizes={"people": len(frame)})
    return run_plan(plan, {"t": frame}, None, random_state=1)["x"].to_pandas()


def are_quantiles(found: list[float], frame: pd.DataFrame, wanted: list[float], parted: bool) -> bool:
    """The wanted share of the rows lies at or below each, up to the row that is cut in two where ranks are drawn."""
    numbers = frame["v"] if frame["v"].dtype.kind in "if" else (frame["v"].dt.floor("D") - DAYS).dt.days
    parts = [numbers[frame["g"] == name] for name in "ab"] if parted else [numbers]
    asked = [(rows, share) for rows in parts for share in wanted]
    return all(
        (rows < value).sum() < share * len(rows) + 1 and (rows <= value).sum() > share * len(rows) - 1
        for value, (rows, share) in zip(found, asked, strict=True)
    )


def check(seed: int) -> None:
    study, frame, wanted, places = drawn(seed)
    exact = "EXACT" in study
    found = published(study.replace("EXACT", "1000000"), frame)
    for column in ("value", "low", "high"):
        assert set(found[column]) <= places, column
    if exact:
        assert are_quantiles(found["value"].tolist(), frame, wanted, "by(" in study)


@pytest.mark.by_day(10)
@pytest.mark.parametrize("seed", range(80))
def test_quantiles_are_values_that_may_occur(seed):
    check(seed)


@pytest.mark.parametrize(("planted", "instead"), [("_step_of", None), ("_listed_of", ())])
def test_places_between_the_values_are_found(monkeypatch, planted, instead):
    monkeypatch.setattr(gather, planted, lambda *given: instead)
    failed = 0
    for seed in range(6):
        try:
            check(seed)
        except AssertionError:
            failed += 1
    assert failed


MOMENTS = {
    "a part of a second": ("time(8, 0), time(9, 0)", ["08:30:00.4"] * 4000, 30600.4),
    "a second": ("time(8, 0), time(9, 0)", ["08:30:00"] * 4000, 30600.0),
    "before midnight": ("time(0, 0), time(23, 59)", ["23:58:59.999"] * 4000, 86339.999),
    "a day": ("date(2020, 1, 1), date(2020, 12, 30)", ["2020-05-19T13:00:00"] * 4000, 18401.0),
    "no day": ("date(2020, 1, 1), date(2020, 12, 31)", ["soon"] * 4000, 18444.0),
    "a day before all": ("date(2020, 1, 1), date(2020, 12, 31)", ["1999-01-01"] * 4000, 18262.0),
}


@pytest.mark.parametrize("way", ["joint", "gaussian", "laplace"])
@pytest.mark.parametrize("kind", MOMENTS)
def test_the_interval_holds_the_moment_that_everybody_has(kind, way):
    """As it is read: a time with parts of a second, a day without its hours, and what stands for no day at all."""
    said, cells, value = MOMENTS[kind]
    study = f"""
        source(t, 't.csv'). column(t, id, p(P)). column(t, v, v(P)).
        rows_per_person(t, 1). missing(t, never). random(v(P)) :- p(P).
        range(v(P), {said}). dataset(people, domain(P, p(P))).
        privacy_requirement(o(public), people, {"dp(1)" if way == "laplace" else "dp(1, 0.000001)"}).
        quantile(q, v(P), p(P), [0.3, 0.5]). publish(x, q, o(public)). prefer(x, [{way}]).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the curator is told of cells that are no days
        found = published(study, pd.DataFrame({"id": np.arange(len(cells)), "v": cells}))
    assert ((found["low"] <= value) & (value <= found["high"])).all()


def test_means_of_days_are_no_days():
    """each_person(T, mean): what is sorted are means, which lie between days."""
    study, frame, _, _ = drawn(next(seed for seed in range(20) if "date(" in drawn(seed)[0]))
    averaged = study.replace("rows_per_person(t, 1).", "each_person(t, mean).").replace("EXACT", "1000000")
    question = make_plan(averaged, sizes={"people": len(frame)}).questions["q"]
    assert question.step is None


@pytest.mark.parametrize(
    ("said", "by"),
    [
        ("range(v(P), [1, 7000000]).", ""),
        ("range(v(P), date(1000, 1, 1), date(9000, 1, 1)).", ""),
        ("range(v(P), date(1900, 1, 1), date(2030, 1, 1)).", f", by([g(P): {list(range(1, 900))}])"),
    ],
)
def test_places_stay_few_enough_to_count_at(said, by):
    """A list of two far numbers, days of eight thousand years, many groups: all are planned, on coarser places."""
    study = f"""
        source(t, 't.csv'). column(t, id, p(P)). column(t, v, v(P)). column(t, g, g(P)).
        rows_per_person(t, 1). missing(t, never). random(v(P)) :- p(P). random(g(P)) :- p(P).
        range(g(P), 0, 900). {said} dataset(people, domain(P, p(P))).
        privacy_requirement(o(public), people, dp(1)).
        median(q, v(P), p(P){by}). publish(x, q, o(public)).
    """
    question = next(node.question for node in make_plan(study, sizes={"people": 5000}).network.aggregates)
    assert question.step is None
    assert question.places.count * question.parted <= 10 * max(1 << 16, question.parted << 12) + question.parted
