"""Of how many individuals tables and models over centres are made: as many as the rounding of sums is proved for."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext

import numpy as np
import pytest

from run.centre_studies import NAMES, dealt
from run.test_course import SUMMED, planned, values_of
from sfumato.centres import new_centres
from sfumato.centres.outcome import Aggregate
from sfumato.errors import InputError, RoundFailedError
from sfumato.learn.kernel_base import MOST_ROWS
from sfumato.run.course import Course
from sfumato.run.over_centres import study_round
from sfumato.run.publish import strategy_of

MODELS = [name for name in SUMMED if name not in ("equilibrium", "pairs", "bounds")]


@pytest.mark.parametrize("name", [*MODELS, "pairs", "bounds"])
def test_a_course_is_of_as_many_individuals_as_its_rounding_is_proved_for(name):
    """Models of ten million: more are refused in the plan, and where all together state more."""
    plan, most = planned(name), MOST_ROWS if name in MODELS else 50_000_000
    members, _ = new_centres(NAMES)

    def sized(size):
        return dataclasses.replace(plan, extras={**plan.extras, "sizes": {"people": float(size)}})

    study_round(sized(most), members)
    with pytest.raises(InputError, match=r"Nothing was run"):
        study_round(sized(most + 1), members)
    course = Course(plan, study_round(plan, members))
    values = np.zeros(course.round.length)
    values[-1] = most + 1
    with pytest.raises(RoundFailedError, match="stays charged"):
        course.moved(Aggregate(course.round, NAMES, values))


@pytest.mark.parametrize("name", ["logistic_steps", "pairs"])
def test_a_centre_with_too_many_of_its_own_refuses_before_anything_leaves(name, monkeypatch):
    """Whatever number another centre states beside its own."""
    monkeypatch.setattr(type(strategy_of(planned(name).acts[0])), "most_shared", 200)
    plan = planned(name)
    small = dataclasses.replace(plan, extras={**plan.extras, "sizes": {"people": 200.0}})
    course = Course(plan, study_round(small, new_centres(NAMES)[0]))
    own = {centre: values.individuals["people"].num_rows for centre, values in values_of(plan, dealt()).items()}
    for centre, values in values_of(plan, dealt()).items():
        with pytest.raises(InputError, match="Nothing left the centre") if own[centre] > 200 else nullcontext():
            course.cells(values)
    assert min(own.values()) < 200 < max(own.values())
