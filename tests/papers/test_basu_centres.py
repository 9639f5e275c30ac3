"""The study of medical centres: every verdict of ours holds on a small run, and the choice is the cheaper design."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.basu_centres import CENTRES, _choices, _noisy_features, _trial, patients
from papers.catalogue import STUDIES
from papers.study import StudySettings


@pytest.fixture(scope="module")
def trial():
    return _trial(4, 60, 3)


def test_it_is_in_the_catalogue():
    assert STUDIES["basu-centres"] is CENTRES


@pytest.mark.slow
def test_masks_gain_the_root_of_the_centres(trial):
    assert trial.measured_together / trial.measured_apart == pytest.approx(1 / 2, rel=0.12)
    assert trial.measured_together == pytest.approx(trial.together.deviation, rel=0.12)


def test_the_choice_is_always_the_cheaper_one(trial):
    curves = _choices(trial)
    cheaper = np.where(curves.apart <= curves.together, "noisy sharing", "secure aggregation")
    assert list(cheaper) == list(curves.chosen)
    gain = 10 * (trial.apart.deviation**2 - trial.together.deviation**2)
    price = trial.together.seconds - trial.apart.seconds
    assert curves.turning == pytest.approx(gain / price, rel=0.5)


def test_noise_on_the_features_is_no_rival(trial):
    plain, centred = _noisy_features(patients(["a", "b", "c", "d"], 3), 3)
    assert plain > centred > 10 * trial.measured_apart


@pytest.mark.paper("002", "Figs 3.3–3.6", "papers/basu_centres.py")
@pytest.mark.slow
def test_the_quick_study_finds_what_it_should():
    result = CENTRES.run(StudySettings(seed=1, quick=True))
    assert [verdict.holds for verdict in result.verdicts] == [True, True, False, True]
    assert math.isfinite(result.numbers["turning weight"])
