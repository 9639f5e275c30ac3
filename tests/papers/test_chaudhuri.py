"""The studies of Chaudhuri et al. 2011: each writes its files, judges claims, and trains as learn/ does."""

from __future__ import annotations

import csv
import io
import json
import warnings

import numpy as np
import pytest
from rich.console import Console

from papers import chaudhuri_data, data
from papers.catalogue import STUDIES, reproduce
from papers.chaudhuri_data import FILES, Records, read_records
from papers.chaudhuri_settings import ADULT, CANDIDATES, KDD
from papers.chaudhuri_trials import DELTA, LOSSES, Recipe, Split, Training, beats, interval
from papers.study import StudySettings
from papers_by_night import by_night
from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.errors import DataError
from sfumato.learn import PrivateLogisticRegression, PrivateSVC, SchemaEncoder

NEEDS = {
    "chaudhuri-table1": "adult",
    "chaudhuri-table2": "kdd",
    "chaudhuri-fig2": "adult",
    "chaudhuri-fig3": "kdd",
    "chaudhuri-fig4": "kdd",
    "chaudhuri-fig5": "kdd",
}
KINDS = {"logistic": PrivateLogisticRegression, "huber": PrivateSVC}


def needs_data(name: str) -> None:
    file = FILES[name][0]
    if data.find(file) is None:
        pytest.skip(f"{file}.parquet is not in SFUMATO_DATA nor in ../shared/data")


@pytest.mark.paper("003", "Figs 4–5", "papers/chaudhuri_curves.py")
@pytest.mark.paper("003", "Tables 1–2", "papers/chaudhuri.py")
@pytest.mark.paper("003", "Figs 2–3", "papers/chaudhuri_tradeoff.py")
@pytest.mark.parametrize("study", by_night(NEEDS, "chaudhuri-fig2"))
@pytest.mark.slow
def test_a_quick_run_writes_table_figure_and_numbers(study, tmp_path):
    """Three readable files; verdicts on the paper's claims and on ours, all printed; its numbers beside ours."""
    needs_data(NEEDS[study])
    console = Console(width=160, record=True, file=io.StringIO())
    written = reproduce(study, tmp_path / "out", quick=True, console=console)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in written)
    report = json.loads((tmp_path / "out" / f"{study}.json").read_text())
    assert (tmp_path / "out" / f"{study}.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "out" / f"{study}.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert all(float(row["low_95"]) <= float(row["error"]) <= float(row["high_95"]) for row in rows)
    assert {"non-private", "output", "objective", "default, delta"} <= {row["series"] for row in rows}
    assert any(row["paper_error"] for row in rows) == (study not in ("chaudhuri-fig4", "chaudhuri-fig5"))
    text = " ".join(console.export_text().split())
    assert {verdict["of"] for verdict in report["verdicts"]} == {"paper", "sfumato"}
    assert any(verdict["claim"].startswith("objective beats output") for verdict in report["verdicts"])
    for verdict in report["verdicts"]:
        assert " ".join(verdict["claim"].split()) in text
    assert any("public" in note for note in report["notes"])


def test_the_missing_file_is_named_before_anything_runs(monkeypatch):
    monkeypatch.setattr(chaudhuri_data, "find", lambda _: None)
    with pytest.raises(DataError, match=r"kddcup99_10pct.*Nothing was run"):
        STUDIES["chaudhuri-fig3"].run(StudySettings(quick=True))


# Training.


@pytest.fixture(scope="module")
def invented() -> tuple[Records, dict[str, np.ndarray]]:
    """3000 records, every second one a repeat of the one before."""
    generator = np.random.default_rng(0)
    words = np.array(list("abcdefgh"))
    table = {
        "age": generator.uniform(0, 50, 1500).repeat(2),
        "job": words[generator.integers(0, 8, 1500)].repeat(2),
        "town": words[generator.integers(0, 8, 1500)].repeat(2),
    }
    schema = Schema({"age": Interval(0, 100), "job": Categories(tuple(words)), "town": Categories(tuple(words))})
    signs = np.where((table["age"] > 25) ^ (table["job"] == "a"), 1.0, -1.0)
    plain, centred = schema.encode(table), SchemaEncoder(schema).fit_transform(table)
    return Records(schema, plain, centred, signs, chaudhuri_data.twins_of(plain, signs)), table


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["output", "objective"])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
@pytest.mark.by_day(4)
def test_a_recipe_is_the_estimator_at_a_given_strength(invented, loss, method, epsilon):
    """Same seed, same coefficients, to what the solver leaves: for all Λ, whether or not Alg. 2 has to raise it."""
    records, _ = invented
    training = Training(records, np.arange(3000))
    assert training.signs.size <= 1500
    for strength in (1e-5, *CANDIDATES):
        if method == "output" and strength < 1e-4:
            continue
        found = training.private(Recipe(loss, method, epsilon, strength=strength), [5])[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KINDS[loss](epsilon, method=method, regularization=strength, fit_intercept=False, random_state=5)
            model.fit(records.plain, records.signs)
        np.testing.assert_allclose(found, model.coef_[0], rtol=1e-3, atol=1e-3 * np.abs(model.coef_).max())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_the_defaults_are_the_estimators_defaults(invented, loss, delta):
    records, table = invented
    found = Training(records, np.arange(3000)).private(Recipe(loss, "objective", 1.0, delta), [5])[0]
    model = KINDS[loss](1.0, delta, schema=records.schema, random_state=5).fit(table, records.signs)
    np.testing.assert_allclose(found, model.coef_[0], rtol=1e-3, atol=1e-3 * np.abs(model.coef_).max())


def test_output_perturbation_from_a_known_solution_is_the_same(invented):
    training = Training(invented[0], np.arange(3000))
    recipe = Recipe("logistic", "output", 1.0, strength=0.01)
    known = training.non_private("logistic", [0.01, 1e-10])[0.01]
    np.testing.assert_allclose(training.private(recipe, [1, 2], known), training.private(recipe, [1, 2]), atol=1e-4)


def test_folds_part_the_records(invented):
    splits = Split.folds(invented[0], 10, 10)
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(3000))
    for split in splits:
        assert not set(split.test) & set(split.training.places)
        assert split.training.counts.sum() == split.training.size == 2700


def test_a_vector_and_its_opposite_err_by_one_together(invented):
    """So noise that is symmetric errs by one half on average, whatever the data."""
    split = Split.folds(invented[0], 10, 1)[0]
    vectors = np.random.default_rng(1).normal(size=(20, invented[0].schema.width))
    np.testing.assert_allclose(split.error(vectors) + split.error(-vectors), 1.0)


# Judging and the paper's numbers.


def test_beats_needs_more_than_luck():
    generator = np.random.default_rng(2)
    lower, higher = generator.normal(0.2, 0.01, (10, 3)), generator.normal(0.3, 0.01, (10, 3))
    assert beats(lower, higher) is True
    assert beats(higher, lower) is False
    assert beats(lower, lower) is None
    coins = [beats(*generator.normal(0.2, 0.01, (2, 10, 1))) for _ in range(400)]
    assert 0.01 < 1 - coins.count(None) / 400 < 0.1  # 5 % by design
    base = np.full((3, 1), 0.2)
    near = base + np.array([[0.015], [0.020], [0.025]])
    assert beats(base, near) is True
    assert beats(base, near, questions=100) is None


def test_intervals_hold_the_mean():
    generator = np.random.default_rng(3)
    held = [low <= 0.3 <= high for _, low, high in (interval(generator.normal(0.3, 0.05, (5, 1))) for _ in range(400))]
    assert 0.91 < np.mean(held) < 0.985


def test_the_bold_entries_are_the_papers():
    """Λ in bold in Tables 1 and 2, non-private, output, objective."""
    for setting, logistic, huber in ((ADULT, (-7, -2, -2.5), (-7, -2, -2.5)), (KDD, (-9, -2, -2.5), (-9, -2, -2))):
        for loss, powers in (("logistic", logistic), ("huber", huber)):
            found = [setting.best_in_paper(loss, series) for series in ("non-private", "output", "objective")]
            assert np.log10(found) == pytest.approx(powers)


def test_records_are_shuffled_and_bounded():
    needs_data("adult")
    records, again, other = (read_records("adult", 500, seed) for seed in (0, 0, 1))
    assert np.array_equal(records.plain, again.plain)
    assert not np.array_equal(records.plain, other.plain)
    assert records.plain.min() >= 0
    assert records.plain.max() <= 1
