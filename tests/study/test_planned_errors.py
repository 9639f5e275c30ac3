"""What a plan says about people with several rows lies between one row each and as many as may be."""

import math

import numpy as np
import pandas as pd
import pytest

from sfumato import Study

PEOPLE = 400


@pytest.mark.parametrize("most", [1, 4, 9])
@pytest.mark.parametrize("each", ["one", "most"])
@pytest.mark.by_day(2)
def test_planned_errors_are_within_the_root_of_the_rows(most, each):
    rows = 1 if each == "one" else most
    generator = np.random.default_rng(most)
    frame = pd.DataFrame({"who": np.repeat(np.arange(PEOPLE), rows)})
    frame["days"] = generator.uniform(1, 14, len(frame))
    frame["side"] = np.tile(["left", "right"], len(frame))[: len(frame)]
    study = (
        Study("rows")
        .table(
            "stays",
            frame,
            person="who",
            rows_per_person=most,
            columns={"days": (1, 14), "side": ["left", "right"]},
            missing="never",
        )
        .promise("public", mu=3)
        .mean("days", to="public", name="all")
        .mean("days", by="side", to="public", name="sides")
    )
    plan = study.plan(size=PEOPLE)
    release = plan.run(ledger=None)
    planned = {row["publication"]: row["standard_error"] for row in plan.errors.rows()}
    for name, error in planned.items():
        drawn = np.array(release[name].to_dict()["standard_error"])
        # A drawn count and a mean off the middle move the error of a ratio by some more, here at most by three tenths.
        assert (drawn <= 1.3 * math.sqrt(most) * error).all()
        assert (drawn >= error / (1.3 * math.sqrt(most))).all()
