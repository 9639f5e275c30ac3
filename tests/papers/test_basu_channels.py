"""The studies of Basu, Ch. 5: methods do what they say, verdicts can be false, quick runs write their files."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

from papers import basu_channels, basu_methods
from papers.basu_channels import Curve, Curves, _never_worse, _orders, _reaches
from papers.basu_means import printed_delta, shaped
from papers.basu_methods import METHODS, OURS, cross_validate, published_channel, run_method
from papers.basu_parties import BUDGETS, DATASETS
from papers.catalogue import STUDIES, reproduce
from papers.study import StudySettings
from papers_by_night import by_night


def test_all_studies_are_listed():
    wanted = {f"basu-{name}" for name in DATASETS} | {"basu-discretisation", "basu-power-means"}
    assert wanted <= set(STUDIES)
    assert len(BUDGETS) == 12


@pytest.mark.parametrize("name", list(METHODS))
@pytest.mark.parametrize("data", ["ds1b", "ds2a", "ds3b"])
@pytest.mark.by_day(11)
def test_every_method_gives_features_that_become_true_at_large_epsilon(name, data):
    """At ε = 64 a model from published features is near the one without privacy; at 0.5 it is not better."""
    dataset, generator = DATASETS[data], np.random.default_rng(3)
    sample = dataset.draw(3000, generator)
    folds = generator.permutation(3000) % 10
    features = {eps: METHODS[name](dataset, eps, sample.attributes, generator) for eps in (0.5, 64.0)}
    assert all(np.isfinite(table).all() and table.shape == (3000, 1 + len(dataset.uses)) for table in features.values())
    near, far = (cross_validate(dataset, sample, features[eps], folds).excess.mean() for eps in (64.0, 0.5))
    assert near < far


def test_staircase_and_laplace_have_their_scales():
    generator, data = np.random.default_rng(0), DATASETS["ds0"]
    still = np.full(400_000, 0.5)
    laplace = basu_methods._laplace(data, 2.0, still, generator) - 0.5
    stairs = basu_methods._staircase(data, 2.0, still, generator) - 0.5
    assert np.abs(laplace).mean() == pytest.approx(0.99 / 2, rel=0.01)
    # Geng & Viswanath 2014, Thm 3: E|noise| = Δ e^(ε/2)/(e^ε - 1), below Laplace's Δ/ε.
    assert np.abs(stairs).mean() == pytest.approx(0.99 * math.exp(1) / (math.exp(2) - 1), rel=0.01)


def test_the_published_channel_is_private_and_biased_downwards_for_free():
    channel = published_channel(DATASETS["ds0"].uses, 0.01, 1.0, 1.0, 20, 20)
    assert len(channel.outputs) >= 2
    assert np.isin(channel(np.linspace(0.01, 1, 50), np.random.default_rng(1)), channel.outputs).all()


def test_our_estimator_beats_the_same_parties_taken_at_face_value():
    data, generator = DATASETS["ds1a"], np.random.default_rng(77)
    sample = data.draw(6000, generator)
    folds = generator.permutation(6000) % 10
    ours = run_method(OURS, data, 1.0, sample, folds, generator).excess.mean()
    for name in METHODS:
        assert ours < run_method(name, data, 1.0, sample, folds, generator).excess.mean()


def curves(ours: float, tailored: float, laplace: float, second: float = 1.0) -> Curves:
    def curve(value: float) -> Curve:
        wiggle = 1e-6 * np.arange(6).reshape(3, 2)
        return Curve(value + wiggle, value + wiggle, value + wiggle)

    series = {name: curve(laplace) for name in METHODS}
    series |= {"TNM tns∘dp": curve(tailored), "TNM dp∘tns": curve(tailored * second), OURS: curve(ours)}
    series["no privacy"] = curve(0.0)
    return Curves(DATASETS["ds1b"], (1.0, 2.0), series, 100, {})


def test_verdicts_can_be_false():
    good, bad = curves(0.001, 0.005, 0.5), curves(0.9, 0.7, 0.005, second=0.5)
    assert _reaches(good).holds
    assert not _reaches(bad).holds
    assert _never_worse(good).holds
    assert not _never_worse(bad).holds
    assert _orders(good).holds
    assert not _orders(bad).holds


def test_the_attribute_is_there_in_the_target_of_misra1d():
    verdict = basu_channels._target_leak(Curves(DATASETS["misra1d"], (1.0,), {}, 10, {}))
    assert verdict is not None
    assert verdict.holds is False
    assert basu_channels._target_leak(Curves(DATASETS["ds0"], (1.0,), {}, 10, {})) is None


@pytest.mark.paper("002", "§3.3.3", "papers/basu_means.py")
def test_the_program_for_two_means_keeps_them():
    """E[y|x] and E[1/y|x] are the same mixture of the truth and a background for every input."""
    found = shaped(2.0)
    assert found is not None
    assert 0 < found.alpha < 1
    shares = found.weights / found.weights.sum(axis=1, keepdims=True).astype(float)
    inputs = (found.edges[1:] + found.edges[:-1]) / 2
    for values, truth, middle in ((found.outputs, inputs, 0), (1 / found.outputs, 1 / inputs, 1)):
        wanted = found.alpha * truth + (1 - found.alpha) * found.background[middle]
        assert shares @ values == pytest.approx(wanted, rel=1e-4)


def test_the_printed_slack_rule_hides_nothing():
    assert printed_delta(2, 50, 0.1) > 0.9
    assert printed_delta(2, 2, 0.1) == pytest.approx(0.05)


@pytest.mark.paper("002", "Figs 5.9–5.15", "papers/basu_bins.py")
@pytest.mark.paper("002", "Figs 5.1–5.8", "papers/basu_channels.py")
@pytest.mark.parametrize("study", by_night(["basu-ds0", "basu-power-means"], "basu-ds0"))
@pytest.mark.slow
def test_a_quick_run_writes_its_files(study, tmp_path):
    console = Console(width=140, record=True, file=io.StringIO())
    written = reproduce(study, tmp_path / "out", quick=True, console=console)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in written)
    report = json.loads((tmp_path / "out" / f"{study}.json").read_text())
    assert len(report["verdicts"]) >= 2
    assert report["rows"]


@pytest.mark.slow
@pytest.mark.parametrize("study", [f"basu-{name}" for name in DATASETS])
def test_full_runs_keep_our_claim(study):
    """No more excess error than the best rival at any of the twelve budgets, up to three standard errors."""
    result = STUDIES[study].run(StudySettings(seed=1))
    assert all(verdict.holds for verdict in result.verdicts if verdict.of == "sfumato")
