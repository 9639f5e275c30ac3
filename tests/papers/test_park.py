"""The studies of Park's thesis: each writes its files and judges claims; the thesis' ε is not what it costs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from papers import data, park_data
from papers.catalogue import STUDIES, reproduce
from papers.park_data import ALL, FILES, SETTINGS, Setting, present, read_records
from papers.park_regions import Leak, leak
from papers.park_tables import PRINTED
from papers.park_trials import (
    DELTA,
    HONEST_FACTOR,
    SERIES,
    Point,
    Task,
    contest,
    measure,
    price,
    split_of,
)
from papers.study import StudySettings
from papers_by_night import by_night
from sfumato.core.adjacency import REPLACE_ONE
from sfumato.core.compose import compose
from sfumato.core.guarantee import NoGuarantee
from sfumato.errors import DataError
from sfumato.mechanisms import Laplace

NEEDS = {
    "park-fig5.1": (),
    "park-fig7.1": (),
    "park-fig7.2": (),
    "park-table7.2": (),
    "park-table7.3": ("shuttle",),
}


def needs_data(*names: str) -> None:
    for name in names:
        if data.find(name) is None:
            pytest.skip(f"{name}.parquet is not in SFUMATO_DATA nor in ../shared/data")


@pytest.mark.paper("004", "Fig 1.1", "papers/park_figures.py")
@pytest.mark.paper("004", "Figs 5.1–5.2", "papers/park_figures.py")
@pytest.mark.paper("004", "Tables 7.1–7.2", "papers/park_figures.py")
@pytest.mark.parametrize(
    ("study", "holds"), [("park-fig1.1", [True, True]), ("park-fig5.2", [True]), ("park-table7.1", [False])]
)
@pytest.mark.by_day(1)
def test_drawings_and_settings_are_judged(study, holds, tmp_path):
    """Support vectors betray, others do not; points alone do in two columns; two rows of Table 7.1 are swapped."""
    reproduce(study, tmp_path, quick=True, console=Console(file=io.StringIO()))
    report = json.loads((tmp_path / f"{study}.json").read_text())
    assert [verdict["holds"] for verdict in report["verdicts"]] == holds
    assert (tmp_path / f"{study}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.paper("004", "Table 7.3", "papers/park_tables.py")
@pytest.mark.paper("004", "Tables 7.1–7.2", "papers/park_tables.py")
@pytest.mark.paper("004", "Fig 7.2", "papers/park_points.py")
@pytest.mark.paper("004", "Fig 7.1", "papers/park.py")
@pytest.mark.paper("004", "Figs 5.1–5.2", "papers/park_regions.py")
@pytest.mark.parametrize("study", by_night(NEEDS, "park-table7.2"))
@pytest.mark.slow
def test_a_quick_run_writes_table_figure_and_numbers(study, tmp_path):
    """Three readable files; verdicts on the thesis' claims and on ours, all printed."""
    needs_data(*NEEDS[study])
    console = Console(width=160, record=True, file=io.StringIO())
    written = reproduce(study, tmp_path / "out", quick=True, console=console)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in written)
    report = json.loads((tmp_path / "out" / f"{study}.json").read_text())
    assert (tmp_path / "out" / f"{study}.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "out" / f"{study}.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {"published", "corrected"} <= {row["series"] for row in rows}
    text = " ".join(console.export_text().split())
    assert {verdict["of"] for verdict in report["verdicts"]} == {"paper", "sfumato"}
    for verdict in report["verdicts"]:
        assert " ".join(verdict["claim"].split()) in text
    if study == "park-table7.2":
        assert all(float(row["both_s"]) > 0 for row in rows)
        assert any(row["printed_s"] for row in rows)
        return
    assert all(0 <= float(row["low_95"]) <= float(row["accuracy"]) <= float(row["high_95"]) <= 1 for row in rows)
    if study != "park-fig7.2":
        assert "What the corrected privacy costs." in text
        assert {row["total_epsilon"] for row in rows if row["series"] == "published"} <= {"none", ""}
        assert all(row["total_epsilon"] == "3.0" for row in rows if row["series"] == "corrected, 3ε")
    if study == "park-table7.3":
        printed = {(row["series"], row["epsilon"]): row["printed"] for row in rows}
        assert printed["published", "no noise"] == "0.986"
        assert printed["kernel", "1"] == ""


# What it costs.


@pytest.fixture(scope="module")
def iris():
    return split_of("iris", 0, 0, features=20)


def fitted(split, series: str, epsilon: float = 1.0):
    return SERIES[series].build(split, epsilon, 0).fit(split.training.rows, split.training.labels)


def test_as_published_nothing_is_promised_and_its_noisy_steps_cost_three_times_epsilon(iris):
    """ε for the centre; two votes move when a record is replaced, and Lap(1/ε) on them costs 2ε."""
    model = fitted(iris, "published", 0.5)
    assert isinstance(model.guarantee_, NoGuarantee)
    support = model.support_.noise_.event()
    votes = Laplace(model.votes_.scale, 2.0, REPLACE_ONE).event()
    total = compose([support, votes]).epsilon(0.0)
    assert HONEST_FACTOR * 0.5 * (1 - 1e-9) <= total <= HONEST_FACTOR * 0.5 * 1.001


def test_the_other_series_promise_what_the_table_says(iris):
    assert fitted(iris, "weight").guarantee_.epsilon(0.0) == 1.0
    assert fitted(iris, "semi").delta == 1 / 80
    assert fitted(iris, "corrected, 3ε").guarantee_.epsilon(DELTA) == pytest.approx(3.0)
    point = measure([Task("iris", "output", 0.1, 1, features=20)], StudySettings(quick=True), "")[0]
    assert point.total_epsilon == pytest.approx(0.1 * 20), "every answer costs ε, and 20 are given"


def test_a_far_record_is_betrayed_as_published_and_not_when_corrected():
    """The attack of the study: with that record an equilibrium point is there, without it there is none."""
    published, corrected = (leak(StudySettings(), as_published=published, runs=10) for published in (True, False))
    assert published.present >= 8
    assert published.absent <= 1
    assert abs(corrected.present - corrected.absent) <= 6


@pytest.mark.parametrize(("counts", "low", "high"), [((150, 0), 3.0, 4.0), ((75, 75), 0.0, 0.0), ((0, 150), 0.0, 0.0)])
def test_the_least_epsilon_of_an_attack(counts, low, high):
    assert low <= Leak(150, *counts).least_epsilon <= high


# Judging.


def point(series: str, accuracies, table: str = "iris", epsilon: float = 1.0) -> Point:
    return Point(Task(table, series, epsilon, len(accuracies)), 80, np.array(accuracies), epsilon, DELTA)


@pytest.mark.parametrize(
    ("first", "second", "holds"),
    [
        ((0.9, 0.91, 0.92), (0.5, 0.52, 0.51), True),
        ((0.5, 0.52, 0.51), (0.9, 0.91, 0.92), False),
        ((0.5, 0.9, 0.6), (0.6, 0.5, 0.8), None),
    ],
    ids=["ahead", "behind", "too few runs to tell"],
)
def test_a_verdict_follows_the_numbers(first, second, holds):
    pair = ([point("published", first)], [point("weight", second)])
    assert contest("better", [pair], ["iris"]).holds is holds
    ahead = ([point("published", (0.9, 0.9, 0.9))], [point("weight", (0.1, 0.1, 0.1))])
    assert contest("better everywhere", [pair, ahead], ["iris", "wine"]).holds is holds


def test_the_paragraph_on_the_price_holds_its_numbers():
    means = {"published, defaults": 0.8, "corrected": 0.6, "corrected, 3ε": 0.7, "kernel": 0.9}
    points = [point(series, [mean - 0.1, mean + 0.1]) for series, mean in means.items()]
    points += [point("corrected", [0.0, 0.0], epsilon=5.0)]  # another budget, not meant
    text, numbers = price(points, 1.0)
    assert all(f"{mean:.3f}" in text for mean in means.values())
    assert numbers["mean_corrected_at_honest_total_at_1"] == pytest.approx(0.7)
    assert numbers["mean_corrected_at_1"] == pytest.approx(0.6)


def test_a_run_repeats_itself_and_a_seed_changes_it():
    task = Task("three moons", "corrected", 1.0, 2, size=100)
    first, again, other = (measure([task], StudySettings(seed, quick=True), "")[0].accuracies for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


# Data and the thesis' numbers.


@pytest.mark.parametrize(
    ("name", "columns", "classes"),
    [
        ("three moons", 2, 3),
        ("five gaussians", 2, 5),
        ("iris", 4, 3),
        ("wine", 13, 3),
        ("vowel", 10, 11),
        ("satimage", 36, 6),
        ("segment", 19, 7),
        ("shuttle", 9, 3),
    ],
)
def test_tables_have_the_thesis_sizes_and_lie_in_their_boxes(name, columns, classes):
    if name in FILES:
        needs_data(name)
    records = read_records(name, 0)
    assert records.rows.shape == (SETTINGS[name].size, columns)
    assert records.classes == classes
    low, high = records.box
    outside = (records.rows < low) | (records.rows > high)
    assert outside.mean() < 0.03, "bounds are written by hand: almost nothing is clipped"


@pytest.mark.paper("004", "Tables 7.1–7.2", "papers/park_data.py")
def test_settings_are_those_of_the_thesis():
    assert SETTINGS["five gaussians"].proposed == (0.1, 5.0)
    assert SETTINGS["vowel"].weight == (1.0, 1.0)
    assert SETTINGS["satimage"].semi == (0.05, 1.0)
    assert SETTINGS["shuttle"].seconds["weight"] == 49943.29
    assert {len(row) for table in PRINTED.values() for row in table.values()} == {5}
    assert PRINTED[0.1]["output"] == (0.493, 0.919, 0.926, 0.926, 0.926)
    wide = replace(SETTINGS["iris"], unit=2.0)
    assert isinstance(wide, Setting)
    assert (wide.gamma(1.0), wide.merge_radius) == (4.0, 0.25)


def test_absent_files_are_left_out_or_asked_for(monkeypatch):
    monkeypatch.setattr(park_data, "find", lambda _: None)
    assert present(ALL) == ([name for name in ALL if name not in FILES], list(FILES))
    with pytest.raises(DataError, match=r"shuttle.*SFUMATO_DATA.*Nothing was run"):
        STUDIES["park-table7.3"].run(StudySettings(quick=True))
