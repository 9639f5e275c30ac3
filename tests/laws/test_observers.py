"""Observers who know something exactly: they get it, no noise is spent on it, and nobody else notices."""

from __future__ import annotations

import re
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato import make_plan, run_plan
from sfumato.cli.app import app
from sfumato.errors import PlanError
from sfumato.evidence.explain import explain
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.run.own import observers_own, persons_own

BASE = """
source(patients, 'patients.parquet'). column(patients, id, patient(P)). column(patients, age, age(P)).
column(patients, bmi, bmi(P)). column(patients, pulse, pulse(P)). rows_per_person(patients, 1).
missing(patients, never).
random(age(P)) :- patient(P). random(bmi(P)) :- patient(P). random(pulse(P)) :- patient(P).
random(risk(P)) :- patient(P).
range(age(P), 0, 110). range(bmi(P), 10, 60). range(pulse(P), 40, 200).
depends(risk(P), [age(P), bmi(P), pulse(P)], FORMULA).
dataset(ds, domain(P, patient(P))).
personal_rv(P, age(P)) :- patient(P).
personal_rv(P, risk(P)) :- patient(P).
privacy_requirement(pp(drA), ds, dp(1.0, 0.00001)).
privacy_requirement(pp(public), ds, dp(0.5, 0.00001)).
publish(each, risk(P), pp(drA)) :- patient(P).
publish(each, risk(P), pp(public)) :- patient(P).
mean(m, risk(P), patient(P)).
publish(average, m, pp(public)).
"""
FORMULAS = ["age(P)/110 + bmi(P)/60 + pulse(P)/200", "age(P)*bmi(P)/6600 + tanh(pulse(P)/100)"]
KNOWS = "observe(drA, age(P)) :- patient(P).\n"
DATA = {
    "patients": pa.table(
        {
            "id": [f"p{place:03d}" for place in range(400)],
            "age": np.random.default_rng(1).integers(0, 111, 400).astype(float),
            "bmi": np.random.default_rng(2).uniform(10, 60, 400),
            "pulse": np.random.default_rng(3).uniform(40, 200, 400),
        }
    )
}


@pytest.fixture(scope="module", params=FORMULAS)
def plans(request):
    text = BASE.replace("FORMULA", request.param)
    return make_plan(text + KNOWS, sizes={"ds": 400}), make_plan(text, sizes={"ds": 400})


def test_nobody_else_notices(plans):
    knowing, plain = ([draw for draw in plan.draws if "public" in draw.observers] for plan in plans)
    assert {d.node: d.scale for d in knowing} == pytest.approx({d.node: d.scale for d in plain})
    said = [re.sub(r"\s+", " ", explain(plan, "public")) for plan in plans]
    assert said[0] == said[1]
    assert [one.asked for one in plans[0].promises] == [one.asked for one in plans[1].promises]


@pytest.mark.paper("002", "§6.2", "plan/request.py")
def test_no_noise_is_spent_on_what_is_known(plans):
    knowing, plain = plans
    assert "age(P)" not in {draw.node for draw in knowing.draws if "drA" in draw.observers}
    errors = [plan.publication("each", "drA").seen[0].error for plan in plans]
    assert errors[0] < 0.9 * errors[1]
    said = re.sub(r"\s+", " ", explain(knowing, "drA"))
    assert "age(P): who estimates" not in said
    assert "drA knows age(P) exactly, so no noise is spent on it" in said
    assert "age(P): who estimates" in re.sub(r"\s+", " ", explain(plain, "drA")) or "age(P)" not in str(
        plain.publication("each", "drA").cut
    )


def test_every_noise_covers_all_cells_of_a_person(plans):
    """What is drawn is private for everybody's pairs: brute force over the corners of all cells, the known one too."""
    network = plans[0].network
    template_nodes = {node.name: node for node in network.groups[0].nodes}
    corners = np.array(np.meshgrid([0.0, 110.0], [10.0, 60.0], [40.0, 200.0])).reshape(3, -1)
    cells = dict(zip(("age(P)", "bmi(P)", "pulse(P)"), corners, strict=True))
    for draw in plans[0].draws:
        if draw.group is not None:
            law = template_nodes[draw.node].expression
            values = cells[draw.node] if law is None else law.evaluate(cells)
            assert draw.sensitivity >= values.max() - values.min() - 1e-9


def test_the_file_holds_noisy_nodes_alone_and_the_observer_puts_them_together(plans, tmp_path):
    plan = plans[0]
    release = run_plan(plan, DATA, None, out=tmp_path / "out", random_state=4)
    noisy = {draw.node for draw in plan.draws if "drA" in draw.observers and draw.group is not None}
    columns = set(release["each", "drA"].column_names)
    assert {name for name in columns if " " not in name} == {"id"} | noisy
    values = plan.network.evaluate(DATA)
    (mine,) = observers_own(plan, plan.network, values, tmp_path / "out", "drA").values()
    assert mine["age(P)"].to_pylist() == DATA["patients"]["age"].to_pylist()
    wrong = np.array(mine["risk(P)"].to_pylist(), float) - values.column("risk(P)")
    seen = plan.publication("each", "drA").seen[0]
    assert np.mean(wrong**2) == pytest.approx(seen.error, rel=0.4)
    assert np.std(np.array(mine["risk(P)"].to_pylist(), float)) > 0


def test_a_finished_answer_in_the_file_would_be_found(plans, monkeypatch, tmp_path):
    """The relative: a file with the answer itself tells the known cell to whoever reads the file."""
    from sfumato.plan.template import Template

    monkeypatch.setattr(Template, "observed", property(lambda self: frozenset(), lambda self, value: None))
    with pytest.raises(PlanError, match=r"noise|study"):
        run_plan(plans[0], DATA, None, random_state=4)


@pytest.mark.parametrize("word", ["observe", "reveal"])
def test_what_is_known_cannot_be_promised(word):
    text = BASE.replace("FORMULA", FORMULAS[0]) + "".join(
        f"{word}(drA, {cell}(P)) :- patient(P).\n" for cell in ("age", "bmi", "pulse")
    )
    with pytest.raises(PlanError, match=r"pp\(drA\) cannot promise"):
        make_plan(text)


def test_who_knows_what_must_be_public():
    private = "source(v, 'v.csv'). column(v, p, patient(P)). column(v, d, doc(D)). relation(v, treats(P, D)).\n"
    text = BASE.replace("FORMULA", FORMULAS[0]) + private + "rows_per_person(v, 1).\n"
    text += "observe(D, age(P)) :- treats(P, D).\n"
    with pytest.raises(Exception, match="private"):
        make_plan(load(text))


def test_a_doctor_knows_the_patients_she_treats(tmp_path):
    """The thesis' own example: a public relation says of whom; the others are seen as by everybody."""
    text = BASE.replace("FORMULA", FORMULAS[0])
    text += (
        "source(v, 'v.csv'). column(v, p, patient(P)). column(v, d, doc(D)). relation(v, treats(P, D)). public(v).\n"
    )
    text += "doc(drA). observe(D, age(P)) :- treats(P, D).\n"
    treated = [f"p{place:03d}" for place in range(0, 400, 2)]
    data = DATA | {"v": pa.table({"p": treated, "d": ["drA"] * len(treated)})}
    plan = make_plan(load(text), data, sizes={"ds": 400})
    release = run_plan(plan, data, None, out=tmp_path / "out", random_state=4)
    file = {row["id"]: row for row in release["each", "drA"].to_pylist()}
    (mine,) = observers_own(plan, plan.network, plan.network.evaluate(data), tmp_path / "out", "drA").values()
    ages = dict(zip(DATA["patients"]["id"].to_pylist(), DATA["patients"]["age"].to_pylist(), strict=True))
    for row in mine.to_pylist():
        known = row["id"] in treated
        assert row["age(P)"] == (ages[row["id"]] if known else None)
        assert np.isfinite(row["risk(P)"])
        if known:  # the file has no answer that holds her age
            assert file[row["id"]].get("risk(P)") is None or np.isnan(file[row["id"]]["risk(P)"])


@pytest.mark.paper("002", "§4.4, personal", "run/own.py")
def test_a_person_gets_what_is_theirs_and_nothing_else():
    network = Network.from_spec(load(BASE.replace("FORMULA", FORMULAS[0]) + KNOWS))
    own = {one.variable: one for one in persons_own(network, DATA, "p007")}
    assert own.keys() == {"age(P)", "risk(P)"}
    assert own["age(P)"].cells == (DATA["patients"]["age"][7].as_py(),)
    changed = DATA["patients"].to_pylist()
    changed = [{**row, "age": 1.0} if row["id"] != "p007" else row for row in changed]
    assert persons_own(network, {"patients": pa.Table.from_pylist(changed)}, "p007") == tuple(own.values())


def test_views_go_to_their_hands_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    study, out = tmp_path / "study.pl", tmp_path / "out"
    study.write_text(BASE.replace("FORMULA", FORMULAS[0]) + KNOWS + "forget(p003).\n")
    pq.write_table(DATA["patients"], tmp_path / "patients.parquet")
    run_plan(make_plan(study, sizes={"ds": 400}), tmp_path, None, out=out)

    def view(*words: object) -> str:
        words = ("view", out, "--study", study, "--data", tmp_path, *words)
        done = CliRunner().invoke(app, [str(word) for word in words])
        return done.output + str(done.exception or "")

    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert f"age(P),{DATA['patients']['age'][7].as_py()}" in view("--person", "p007")
    assert "p003 is forgotten: no row of p003 was opened" in view("--person", "p003")
    assert "lies in a release" in view("--observer", "drA", "--out", out / "own.csv")
    assert "say where it goes" in view("--observer", "drA")
    assert "knows nothing exactly" in view("--observer", "public", "--out", tmp_path / "none.csv")
    view("--observer", "drA", "--out", tmp_path / "own.csv")
    assert stat.S_IMODE((tmp_path / "own.csv").stat().st_mode) == 0o600
    assert "p003" not in [line.split(",")[0] for line in (tmp_path / "own.csv").read_text().splitlines()]
    assert "is there already" in view("--observer", "drA", "--out", tmp_path / "own.csv")
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
