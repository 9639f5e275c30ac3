"""The studies of Farokhi 2020: each writes its files, judges the paper's claims, and leaves nothing when it fails."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from papers import catalogue, data
from papers.catalogue import STUDIES, reproduce
from papers.farokhi_curves import DELTA, SERIES, Curves, Level, Problem, level, rivalry, unit_noise
from papers.study import StudyResult, StudySettings, Verdict
from papers_by_night import by_night
from sfumato.cli.reproduce import reproduce_command
from sfumato.core.compose import compose
from sfumato.errors import DataError, InputError
from sfumato.mechanisms import Gaussian, Laplace

NEEDS = {"farokhi-adult": "adult", "farokhi-lending": "lending_club_2007_2014"}
REGIONS = ("farokhi-fig1", "farokhi-fig2")
FAROKHI = [name for name in STUDIES if name.startswith("farokhi-") and name not in REGIONS]


def needs_data(study: str) -> None:
    if study in NEEDS and data.find(NEEDS[study]) is None:
        pytest.skip(f"{NEEDS[study]}.parquet is not in SFUMATO_DATA nor in ../shared/data")


@pytest.fixture
def console() -> Console:
    return Console(width=140, record=True, file=io.StringIO())


@pytest.mark.paper("000", "Figs 5–7", "papers/farokhi.py")
@pytest.mark.parametrize("study", by_night(FAROKHI, "farokhi-toy"))
@pytest.mark.slow
def test_a_quick_run_writes_table_figure_and_numbers(study, tmp_path, console):
    """Three files, all readable; every claim has a verdict that is printed; every series stands at every λ."""
    needs_data(study)
    written = reproduce(study, tmp_path / "out", quick=True, console=console)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in written)
    report = json.loads((tmp_path / "out" / f"{study}.json").read_text())
    assert report["settings"]["quick"] is True
    assert report["versions"]["sfumato"]
    assert (tmp_path / "out" / f"{study}.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "out" / f"{study}.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["series"] for row in rows} == set(SERIES)
    assert len(rows) == len(SERIES) * len(report["settings"]["lambdas"])
    assert all(float(row["low_95"]) <= float(row["mean"]) <= float(row["high_95"]) for row in rows)
    text = " ".join(console.export_text().split())
    assert len(report["verdicts"]) >= 5
    for verdict in report["verdicts"]:
        assert verdict["holds"] in (True, False, None)
        assert " ".join(verdict["claim"].split()) in text


@pytest.mark.paper("000", "Figs 1–2", "papers/farokhi_regions.py")
@pytest.mark.slow
def test_regions_are_judged_by_the_exact_profile(tmp_path, console):
    """The printed region is met and not all; its rule fails far out; the error grows like ln and not like ln²."""
    for study, wanted in zip(REGIONS, ([True, False, True], [True, False, False]), strict=True):
        reproduce(study, tmp_path, quick=True, console=console)
        report = json.loads((tmp_path / f"{study}.json").read_text())
        assert [verdict["holds"] for verdict in report["verdicts"]] == wanted
        assert (tmp_path / f"{study}.png").read_bytes().startswith(b"\x89PNG")
    for epsilon, delta, printed, exact in report["rows"]:
        assert printed == pytest.approx((1 + np.sqrt(2 * np.log(1 / delta))) ** 2 / epsilon**2)
        assert exact <= printed


@pytest.fixture(scope="module")
def toy() -> StudyResult:
    return STUDIES["farokhi-toy"].run(StudySettings(quick=True))


@pytest.mark.paper("000", "Figs 3–4", "papers/farokhi_toy.py")
def test_the_toy_says_what_the_paper_says_and_what_it_does_not(toy):
    """Bounds 200, 20, 2; the same classifier at m = 100 to 1e-6; and a support vector that comes back all the same."""
    numbers = toy.numbers
    assert numbers["attacker_bounds"] == pytest.approx([200, 20, 2], rel=1e-6)
    assert numbers["obfuscated_classifier_moved"] <= 1e-6
    assert numbers["obfuscated_move_along_normal"] <= 1e-9
    assert numbers["support_vector_recovery_error"] <= 1e-6
    assert all(error < bound for error, bound in zip(numbers["shrinking_attacker_errors"], (200, 20, 2), strict=True))


@pytest.mark.slow
def test_a_run_repeats_itself_and_a_seed_changes_it(toy):
    again, other = (STUDIES["farokhi-toy"].run(StudySettings(seed=seed, quick=True)) for seed in (0, 1))
    assert again.rows == toy.rows
    assert other.rows != toy.rows


def test_an_unknown_study_is_refused_with_the_nearest_and_the_list(tmp_path, console):
    with pytest.raises(InputError, match=r"did you mean 'farokhi-toy'.*farokhi-lending"):
        reproduce("farokhi-tou", tmp_path / "out", console=console)
    assert not (tmp_path / "out").exists()


# Nothing half-written.


def result_with(figure) -> StudyResult:
    return StudyResult(("a",), ((1.0,),), (Verdict("it runs", True, "it did"),), figure)


def failing(error: type[BaseException]):
    def fail(*_):
        raise error("stopped")

    return fail


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("moment", ["running", "drawing"])
def test_a_study_that_stops_leaves_nothing(error, moment, tmp_path, monkeypatch, console):
    """Whether it fails or is interrupted, while computing or while writing: no file, no folder."""
    run = failing(error) if moment == "running" else lambda _: result_with(failing(error))
    monkeypatch.setitem(catalogue.STUDIES, "broken", replace(STUDIES["farokhi-toy"], id="broken", run=run))
    with pytest.raises(error):
        reproduce("broken", tmp_path / "out", console=console)
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_stops_keeps_the_files_of_the_last_run(tmp_path, monkeypatch, console):
    good = replace(STUDIES["farokhi-toy"], id="broken", run=lambda _: result_with(lambda figure: None))
    monkeypatch.setitem(catalogue.STUDIES, "broken", good)
    before = {path: path.read_bytes() for path in reproduce("broken", tmp_path, console=console)}
    bad = replace(good, run=lambda _: result_with(failing(KeyboardInterrupt)))
    monkeypatch.setitem(catalogue.STUDIES, "broken", bad)
    with pytest.raises(KeyboardInterrupt):
        reproduce("broken", tmp_path, console=console)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_that_cannot_be_used_is_refused_before_the_work(tmp_path, monkeypatch, console):
    (tmp_path / "file").write_text("")
    monkeypatch.setitem(
        catalogue.STUDIES, "broken", replace(STUDIES["farokhi-toy"], id="broken", run=failing(AssertionError))
    )
    with pytest.raises(InputError, match="is a file"):
        reproduce("broken", tmp_path / "file" / "below", console=console)


# Data.


def test_absent_data_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "find", lambda name: None)
    with pytest.raises(DataError, match="SFUMATO_DATA"):
        data.load("lending_club_2007_2014")
    with pytest.raises(InputError, match="There are: adult"):
        data.load("iris")


def test_the_environment_says_where_the_data_are(tmp_path, monkeypatch):
    (tmp_path / "adult.parquet").write_bytes(b"not a table")
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    assert data.find("adult") == tmp_path / "adult.parquet"
    with pytest.raises(DataError, match="cannot be read as a Parquet file"):
        data.load("adult")


@pytest.mark.parametrize("name", list(data.SCHEMAS))
def test_the_public_bounds_hold_nearly_all_of_the_data(name):
    """Bounds are written by hand: the coded table fills the unit box and almost nothing is clipped at its top."""
    needs_data(next((study for study, needed in NEEDS.items() if needed == name), ""))
    table = data.load(name)
    values = data.integer_coded(name, table)
    assert values.shape == (table.num_rows, len(data.SCHEMAS[name].columns) - 1)
    assert values.min() >= 0
    assert values.max() <= 1
    numbers = [at for at, domain in enumerate(data.SCHEMAS[name].columns.values()) if domain.kind == "interval"]
    counted = [at for at in numbers if at < values.shape[1] and len(np.unique(values[:, at])) > 20]
    assert (values[:, counted] == 1).mean(axis=0).max() < 0.01


# The comparison.


def test_the_three_laplace_noises_are_what_they_are_called():
    """Equal information, equal variance, and the least scale that keeps the Gaussian's (ε, δ): 3 % less breaks it."""
    widths = np.ones(30)
    here = level(1e-2, widths)
    sigma = here.deviation
    assert here.laplace["laplace_information"] == pytest.approx(sigma)
    assert 2 * here.laplace["laplace_variance"] ** 2 == pytest.approx(sigma**2)
    assert here.attacker == pytest.approx(30 * sigma**2)

    def epsilon(scale: float) -> float:
        from sfumato.core import REPLACE_ONE

        return compose([Laplace(scale, 1.0, REPLACE_ONE, 1).event()] * 30).epsilon(DELTA)

    scale = here.laplace["laplace_privacy"]
    assert epsilon(scale) <= here.epsilon < epsilon(0.97 * scale)
    assert scale < 30 / here.epsilon, "exact composition should beat the sum of ε for thirty columns"


@pytest.mark.parametrize(("law", "variance"), [(Gaussian, 1.0), (Laplace, 2.0)])
def test_unit_noise_has_its_variance(law, variance):
    noise = unit_noise(law, (20_000, 5), seed=3)
    assert abs(noise.var() - variance) < 6 * variance * math.sqrt(5 / noise.size)


def curves_with(gain: float, spread: float, larger_is_better: bool = True) -> Curves:
    """Gaussian noise ahead of every Laplace noise by `gain`."""
    generator = np.random.default_rng(0)
    sign = 1 if larger_is_better else -1
    levels = tuple(Level(10.0**k, 1.0, 1.0, 1.0, dict.fromkeys(list(SERIES)[1:4], 1.0)) for k in range(3))
    scores = {name: 0.5 + generator.normal(0, spread, (20, 3)) for name in SERIES}
    scores["gaussian"] = scores["gaussian"] + sign * gain
    problem = Problem(np.zeros((1, 1)), np.ones(1), lambda _: 0.0, lambda *_: 0.0, "score", larger_is_better)
    return Curves(levels, scores, 1.0 if larger_is_better else 0.0, problem)


@pytest.mark.parametrize("larger_is_better", [True, False])
@pytest.mark.parametrize(
    ("gain", "spread", "holds"),
    [(0.1, 0.01, True), (-0.1, 0.01, False), (0.0, 0.001, False), (0.0, 0.2, None)],
    ids=["ahead", "behind", "certainly the same", "too noisy to tell"],
)
def test_a_verdict_follows_the_numbers(gain, spread, holds, larger_is_better):
    verdict = rivalry(curves_with(gain, spread, larger_is_better))[0]
    assert verdict.holds is holds
    word = {True: "holds (", False: "does not hold: ", None: "not decided: "}[holds]
    assert word in str(verdict)


# The command.


def test_the_command_lists_and_runs(tmp_path, monkeypatch):
    app = typer.Typer()
    app.command()(reproduce_command)
    runner = CliRunner()
    listed = runner.invoke(app, ["--list"])
    assert listed.exit_code == 0
    assert all(study in listed.output for study in FAROKHI)
    assert isinstance(runner.invoke(app, []).exception, InputError)
    asked = {}

    def run(settings: StudySettings) -> StudyResult:
        asked.update(seed=settings.seed, quick=settings.quick)
        return result_with(lambda figure: None)

    monkeypatch.setitem(catalogue.STUDIES, "small", replace(STUDIES["farokhi-toy"], id="small", run=run))
    done = runner.invoke(app, ["small", "--out", str(tmp_path), "--quick", "--seed", "5"])
    assert done.exit_code == 0, done.output
    assert asked == {"seed": 5, "quick": True}
    assert "it runs: holds (it did)" in done.output
