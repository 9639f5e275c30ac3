"""README.txt for recipients: the law it states is the law that was drawn."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from plan.studies import HEAD, MEAN, RISK, one
from sfumato.evidence.drawn import drawn_for
from sfumato.evidence.recipient import noise_law, recipient_text, write_recipient_readme
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan, Planned
from sfumato.run.generate import generated_tables
from sfumato.run.planning import make_plan as plan_everything
from sfumato.run.study import run_plan
from sfumato.wording import text

SIZES = {"people": 200}
COUNTS = (
    "histogram(ages, age(P), patient(P), [0, 20, 40, 60, 80, 110]).\npublish(spread, ages, openness(public)).\n"
    "count(older, (patient(P), age(P) > 65)).\npublish(old, older, openness(public)).\n"
)


def law(plan: Plan, name: str) -> str:
    return first_law(plan, plan.publication(name))


def first_law(plan: Plan, planned: Planned) -> str:
    """What README.txt says of the noise in the first line of a publication."""
    return text("law.txt", law=noise_law(plan, planned, planned.seen[0])).strip()


def test_a_count_is_exact_plus_noise_of_the_stated_width():
    """The width in the sentence is that of many draws: 400 runs with fixed seeds, within a sixth."""
    plan = make_plan(one("gdp(0.3)", COUNTS), sizes=SIZES)
    said = law(plan, "old")
    stated = float(said.split("standard deviation ")[1].split(",")[0])
    draw = next(d for d in plan.draws if d.node == "older")
    drawn = [draw.mechanism(seed)(np.array([17.0]))[0] for seed in range(400)]
    assert np.std(drawn) == pytest.approx(stated, rel=1 / 6)
    assert said.startswith("Published = exact + noise")
    assert "Gaussian" in said


def test_a_mean_is_told_to_be_a_ratio():
    plan = make_plan(
        one("dp(1.0, 0.000001)", "mean(m, age(P), (patient(P), bmi(P) > 30)).\npublish(x, m, openness(public)).\n")
    )
    assert re.search(r"added to the sum and of \S+ to the count, then divided", law(plan, "x"))
    fixed = make_plan(one("dp(1.0, 0.000001)", MEAN), sizes=SIZES)
    assert "then divided by the number of contributions, which is public" in law(fixed, "average")
    bare = Plan.from_json(fixed.to_json())
    assert law(bare, "average") == law(fixed, "average")


def test_laplace_noise_is_called_by_its_name():
    plan = make_plan(one("dp(1.0)", COUNTS), sizes=SIZES)
    assert "Laplace" in law(plan, "spread")
    assert "heavier tails" in recipient_text(plan)
    assert "heavier tails" not in recipient_text(make_plan(one("gdp(0.5)", COUNTS), sizes=SIZES))


def test_individuals_with_noise_on_the_way_get_no_simple_law():
    plan = make_plan(one("dp(1.0, 0.000001)", "publish(each, risk(P), openness(public)) :- patient(P).\n"), sizes=SIZES)
    planned = plan.publication("each")
    said = law(plan, "each")
    outputs = set(planned.cut) <= {seen.node for seen in planned.seen}
    assert ("classical measurement error" in said) == outputs
    raw = make_plan(HEAD + RISK + "privacy_requirement(a(x), people, gdp(1.0)).\ndp_rv(a(x), age(P)) :- patient(P).\n")
    shown = raw.publications[0]
    assert "measurement error" in first_law(raw, shown)
    assert math.isclose(drawn_for(raw, "x")[0].deviation or 0.0, math.sqrt(raw.draws[0].variance))


def test_what_is_public_is_called_exact():
    study = one("dp(1.0, 0.000001)", MEAN + "count(n, patient(P)).\npublish(number, n, openness(public)).\n")
    assert law(make_plan(study, sizes=SIZES), "number").startswith("Exact")


def test_second_moments_are_told_to_share_noise():
    study = one("dp(1.0, 0.000001)", "moment2(s, [age(P), bmi(P)], patient(P)).\npublish(x, s, openness(public)).\n")
    assert "carry the same noise" in law(make_plan(study, sizes=SIZES), "x")


def test_the_file_names_what_is_in_the_folder(tmp_path):
    plan = make_plan(one("dp(1.0, 0.000001)", COUNTS), sizes=SIZES)
    run_plan(plan, generated_tables(plan.network.spec), None, out=tmp_path / "out", random_state=0)
    said = write_recipient_readme(plan, tmp_path / "out").read_text(encoding="utf-8")
    for path in (tmp_path / "out" / "results").glob("*.parquet"):
        assert f"results/{path.name}" in said
    for planned in plan.publications:
        assert f"value ±{planned.seen[0].half_width:.4g}" in said
    assert plan.hash in said
    assert str(plan.promises[0].asked) in said
    assert max(len(line) for line in said.splitlines() if "results/" not in line) <= 100
    code = said.split("In Python\n---------\n")[1].split("What was promised")[0]
    lines = "\n".join(line.removeprefix("    ") for line in code.splitlines()).replace(
        '"results/', f'"{tmp_path}/out/results/'
    )
    exec(compile(lines, "README", "exec"), {})


def test_tables_and_models_are_told_how_to_be_used():
    study = one("dp(8, 0.000001)", MEAN + "publish(line, regression(bmi(P), [age(P)]), openness(public)).\n")
    plan = plan_everything(
        study + "publish(open, table([age(P), bmi(P)]), openness(public)).\n", sizes={"people": 2000}
    )
    assert "in the columns' own units" in " ".join(law(plan, "line").split())
    assert "noise.json" in law(plan, "open")
    for act in plan.acts:
        assert act.guarantee.describe() in law(plan, act.name)
    assert "divided" in law(plan, "average")
