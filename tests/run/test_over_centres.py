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
from sfumato.mechanisms.bits import Bits
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


@pytest.mark.by_day(1)
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


@pytest.mark.parametrize(("metric", "noise"), [("gdp(1)", "gaussian"), ("dp(8)", "laplace")])
@pytest.mark.by_day(1)
def test_noise_at_each_individual_is_drawn_once_for_each_of_them(tmp_path, metric, noise):
    """What leaves a centre has as many independent noises as it has people; nobody is promised by fewer than one."""
    (tmp_path / "study.pl").write_text(study(FEW + "prefer(average, local).\n", metric))
    plan = make_plan(tmp_path / "study.pl", sizes=PEOPLE)
    tables = {name: table.slice(0, size) for (name, table), size in zip(dealt().items(), (0, 1, 40), strict=True)}
    agreed = study_round(plan, new_centres(NAMES)[0])
    years = next(draw for draw in plan.draws if draw.node == "years")
    assert years.noise == noise
    place = [draw.node for draw in plan.draws].index("years")
    start = sum(block.length for block in agreed.summed[:place])
    assert plan.promises[0].kept.implies(plan.promises[0].asked)
    for cells, people in zip(own_cells(plan, agreed, tables).values(), (0, 1, 40), strict=True):
        assert cells[-1] == people  # what the noise is drawn by, and public under replace-one
        drawn = [agreed.noise(Bits(seed), cells)[start] * agreed.grids[start] for seed in range(400)]
        one = years.scale * (np.sqrt(2) if noise == "laplace" else 1.0)
        assert np.std(drawn) == pytest.approx(one * np.sqrt(people), rel=0.15)
    found, _ = released(plan, dealt(), tmp_path / "out")
    assert all(check.ok for check in verify_folder(tmp_path / "out", tmp_path / "study.pl"))
    assert found["years"]["standard_error"][0].as_py() == pytest.approx(one * np.sqrt(600), rel=0.01)
    assert "noise at each individual of 3 centres" in found.certificate.notes[1]
    assert finish_folder(plan, tmp_path / "out") == ()
    assert "trust nobody beyond one's own centre" in (tmp_path / "out" / "report.html").read_text().replace(
        "&#39;", "'"
    )


def test_readme_and_report_state_the_noise_of_those_who_were_counted(tmp_path):
    """Planned for ten people, and 600 came: each brought noise of their own."""
    plan = make_plan(study(FEW + "prefer(average, local).\n"), sizes={"people": 10})
    found, _ = released(plan, dealt(), tmp_path / "out")
    assert finish_folder(plan, tmp_path / "out") == ()
    error = digits(found["years"]["standard_error"][0].as_py())
    assert re.search(rf"years: standard error {error};", (tmp_path / "out" / "README.txt").read_text())


def test_noise_for_every_individual_needs_their_public_number():
    plan = make_plan(study(FEW + "prefer(average, local).\n"), sizes=PEOPLE)
    agreed = study_round(plan, new_centres(NAMES)[0])
    record = agreed.to_dict()
    assert Round.from_dict(record) == agreed
    for changed in (0, agreed.length, -1, True):
        record["summed"][0]["often"] = changed
        with pytest.raises(InputError):
            Round.from_dict(record)
    with pytest.raises(InputError):
        Round.from_dict(agreed.to_dict() | {"with_masks": True})


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
