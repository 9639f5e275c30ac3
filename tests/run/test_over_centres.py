"""One study over several centres: what is opened is what one place would have drawn, for every kind of question."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest

from run.centre_studies import NAMES, QUESTIONS, dealt, own_cells, released, study
from run.publish_studies import MEAN
from sfumato.centres import Round, new_centres
from sfumato.errors import InputError, PlanError
from sfumato.evidence.report import finish_folder
from sfumato.evidence.verify_plan import verify_folder
from sfumato.plan.plan import Plan
from sfumato.plan.told import digits
from sfumato.run.over_centres import study_round
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

PEOPLE = {"people": 600}
TRUSTED = "trusted(registry).\n"


@pytest.fixture(scope="module", params=["dp(8, 0.000001)", "dp(8)"])
def planned(request):
    return make_plan(study(metric=request.param), sizes=PEOPLE)


FEW = MEAN + "count(all, patient(P)). sum(years, age(P), patient(P)).\n"
FEW += "publish(all, all, openness(public)). publish(years, years, openness(public)).\n"


@pytest.fixture(scope="module")
def small():
    return make_plan(study(FEW), sizes=PEOPLE)


def test_the_parts_add_up_to_what_one_place_would_draw(planned):
    """Cell by cell, before noise: at most half a cell of rounding a centre."""
    tables = dealt()
    agreed = study_round(planned, new_centres(NAMES)[0])
    apart = sum(own_cells(planned, agreed, tables).values()) * agreed.grids
    whole = own_cells(planned, agreed, {"all": pa.concat_tables(tables.values())})["all"] * agreed.grids
    assert np.all(np.abs(apart - whole) <= 2 * agreed.grids)
    assert np.abs(whole).max() > 1000 * agreed.grids.max()


def test_every_question_is_answered_in_the_release_of_one_place(planned):
    """The same tables with the same columns, each interval around the truth but for one in twenty."""
    tables = dealt()
    found, _ = released(planned, tables)
    central = make_plan(study(QUESTIONS, str_metric(planned), TRUSTED), sizes=PEOPLE)
    exact = run_plan(central, {"patients": pa.concat_tables(tables.values())}, None, random_state=1)
    inside = total = 0
    for one in found.published:
        other = exact[one.name]
        assert one.values.column_names == other.column_names
        assert one.values.num_rows == other.num_rows
        low, high = one.values["low"].to_numpy(), one.values["high"].to_numpy()
        half = (other["high"].to_numpy() - other["low"].to_numpy()) / 2
        inside += int(np.sum((low - half <= other["value"].to_numpy()) & (other["value"].to_numpy() <= high + half)))
        total += len(low)
    assert inside >= 0.9 * total
    assert found["all"]["value"].to_pylist() == [600.0]


def str_metric(plan: Plan) -> str:
    return "dp(8)" if plan.draws[0].noise == "laplace" else "dp(8, 0.000001)"


def test_the_folder_is_that_of_any_release(tmp_path):
    text = study(FEW)
    (tmp_path / "study.pl").write_text(text)
    plan = make_plan(tmp_path / "study.pl", sizes=PEOPLE)
    _, found = released(plan, dealt(), tmp_path / "out")
    assert all(check.ok for check in verify_folder(tmp_path / "out", tmp_path / "study.pl"))
    said = json.loads((tmp_path / "out" / "run.json").read_text())["centres"]
    assert said == {
        "round": found.round.hash, "agreement": found.round.agreement, "included": list(NAMES), "absent": {},
    }  # fmt: skip
    edited = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert edited["draws"][0]["sharing"]["centres"] == 3


def test_whoever_leaves_is_not_in_the_sum_and_the_error_says_so():
    few = FEW + "forbid(average, laplace).\n"
    plan = make_plan(study(few, head=study_head() + "absences(1).\n"), sizes=PEOPLE)
    found, summed = released(plan, dealt(), leaves={"south": "masked"})
    everybody, _ = released(plan, dealt())
    assert summed.included == ("east", "north")
    assert found["all"]["value"][0].as_py() < 600
    ratio = found["years"]["standard_error"][0].as_py() / everybody["years"]["standard_error"][0].as_py()
    assert ratio == pytest.approx(np.sqrt(2 / 3), rel=0.01)


def test_readme_and_report_say_who_took_part_and_state_the_error_of_the_file(tmp_path):
    plan = make_plan(study(FEW, head=study_head() + "absences(1).\n"), sizes=PEOPLE)
    released(plan, dealt(), tmp_path / "all")
    found, _ = released(plan, dealt(), tmp_path / "two", leaves={"south": "masked"})
    said = {}
    for name in ("all", "two"):
        assert finish_folder(plan, tmp_path / name) == ()
        said[name] = [(tmp_path / name / page).read_text() for page in ("README.txt", "report.html")]
    assert all("of 2 of 3 centres" in text for text in said["two"])  # How, beside every number
    assert not any("of 2 of 3 centres" in text for text in said["all"])
    for text in said["two"]:
        assert "2 of 3 centres took part: east, north; absent: south." in text[: text.index("romise")]
        for name, node in (("average", "meanAge"), ("years", "years")):
            error = digits(found[name]["standard_error"][0].as_py())
            assert re.search(rf"{node}: standard error {error};|>{node}</th>.*?>{error}</td>", text), (name, text[:20])
    assert all("3 of 3 centres took part: east, north, south." in text for text in said["all"])
    assert digits(found["years"]["standard_error"][0].as_py()) not in said["all"][0]


def study_head() -> str:
    return "".join(f"centre({name}). " for name in NAMES) + "\n"


def test_a_round_reads_back_and_names_the_study(small):
    agreed = study_round(small, new_centres(NAMES)[0]).fresh()
    assert Round.from_dict(json.loads(json.dumps(agreed.to_dict()))) == agreed
    assert agreed.plan_hash == small.hash
    assert [cost.dataset for cost in agreed.paid] == ["people"]


def test_a_plan_over_centres_is_not_run_in_one_place(small):
    with pytest.raises(PlanError, match="sfumato centre init"):
        run_plan(small, {"patients": dealt()["east"]}, None)
    rehearsed = run_plan(small, {"patients": dealt()["east"]}, None, random_state=0)
    assert not rehearsed.certificate.publishable


def test_the_cards_are_those_of_the_study(small):
    with pytest.raises(InputError, match="east, north, south"):
        study_round(small, new_centres(["east", "north"])[0])
