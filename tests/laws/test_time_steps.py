"""Steps of a history: shares add up to the promise, what is forgotten is not read, steps come once and in order."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato import make_plan, run_plan
from sfumato.cli.app import app
from sfumato.core import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP, compose
from sfumato.errors import LedgerError, StudyError
from sfumato.lang import load
from sfumato.lang.shares import share_of
from sfumato.network.network import Network
from sfumato.run.forget import read_forgotten, without_forgotten
from sfumato.run.steps import history_needs

STUDY = """
source(t, 't.parquet'). column(t, id, p(P)). column(t, x, x(P)). column(t, k, k(P)). rows_per_person(t, {rows}).
random(x(P)) :- p(P). random(k(P)) :- p(P). random(y(P)) :- p(P).
range(x(P), 0, 10). range(k(P), [a, b]). missing(x(P), {missing}). missing(k(P), a).
depends(y(P), [x(P)], x(P) * x(P)).
dataset(d, domain(P, p(P))). adjacency(d, {adjacency}). privacy_requirement(o(pub), d, gdp(1)).
mean(m, y(P), p(P)). sum(s, x(P), p(P)). count(c, (p(P), x(P) > 4)). histogram(h, k(P), p(P)). count(n, p(P)).
publish(m, m, o(pub)). publish(s, s, o(pub)). publish(c, c, o(pub)). publish(h, h, o(pub)). publish(n, n, o(pub)).
"""


@pytest.mark.parametrize("steps", [1, 3, 100])
@pytest.mark.parametrize("whole", [GaussianDP(0.7), ZCDP(0.3), RenyiDP(4.0, 0.5), ApproxDP(1.0, 1e-6), PureDP(0.9)])
def test_shares_of_all_steps_keep_the_whole(whole, steps):
    for numbers in (True, False):
        share = share_of(whole, steps, numbers)
        if isinstance(share, ApproxDP):  # plain addition, in exact decimals of the law
            assert steps * share.eps <= whole.eps
            assert steps * share.delta_ <= whole.delta_
        else:
            assert compose([share] * steps).implies(whole) is True
    assert compose([PureDP(0.9 / math.sqrt(7))] * 7).implies(PureDP(0.9)) is not True  # a share that would be too large


def test_shares_of_statistics_are_larger_than_plain_ones():
    shared, plain = share_of(ApproxDP(1.0, 1e-6), 16), share_of(ApproxDP(1.0, 1e-6), 16, numbers=False)
    assert shared.epsilon(1e-6 / 16) > 2 * plain.epsilon(1e-6 / 16)


def tables(chance: np.random.Generator, rows: int) -> dict[str, pa.Table]:
    people = [f"u{number}" for number in range(6)]
    ids = sorted(people + list(chance.choice(people, 6 * (rows - 1))))
    x = [None if chance.random() < 0.2 else float(chance.uniform(-2, 12)) for _ in ids]
    return {"t": pa.table({"id": ids, "x": pa.array(x, pa.float64()), "k": chance.choice(["a", "b", "z"], len(ids))})}


def altered(chance: np.random.Generator, data: dict[str, pa.Table], whole: bool) -> dict[str, pa.Table]:
    """Another table: everything of u2, or only its x, is different; of a whole person also the number of rows."""
    rows = data["t"].to_pylist()
    if whole:
        rows = [row for row in rows if row["id"] != "u2"]
        rows += [{"id": "u2", "x": float(chance.uniform(0, 10)), "k": "b"} for _ in range(int(chance.integers(1, 4)))]
    else:
        rows = [{**row, "x": float(chance.uniform(0, 10))} if row["id"] == "u2" else row for row in rows]
    return {"t": pa.Table.from_pylist(rows, data["t"].schema)}


def sums(network: Network, data: dict[str, pa.Table]) -> dict[str, list[int]]:
    values = network.evaluate(without_forgotten(network.spec, data))
    return {name: [int(unit) for unit in np.ravel(one.units)] + [one.count] for name, one in values.aggregates.items()}


@pytest.mark.paper("002", "§6.2", "run/forget.py")
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_nothing_later_depends_on_what_is_forgotten(seed):
    chance = np.random.default_rng(seed)
    whole, rows = bool(chance.integers(2)), int(chance.integers(1, 4))
    line = "forget(u2)." if whole else "forget(u2, x(u2))."
    adjacency = str(chance.choice(["replace_one", "add_remove"]))
    missing = str(chance.choice(["skip", "3", "never"]))
    text = STUDY.format(rows=rows, missing=missing, adjacency=adjacency)
    network, without = (Network.from_spec(load(study)) for study in (text + line, text))
    data = tables(chance, rows)
    other = altered(chance, data, whole)
    assert sums(network, data) == sums(network, other)
    assert sums(without, data) != sums(without, other)  # the same comparison sees what is not forgotten


@pytest.mark.parametrize("rows", [2])
def test_leaving_shows_in_no_public_size(rows):
    text = STUDY.format(rows=rows, missing="skip", adjacency="replace_one")
    data = tables(np.random.default_rng(5), rows)
    counts = [
        Network.from_spec(load(study)).evaluate(without_forgotten(load(study), data)).aggregates["n"].count
        for study in (text, text + "forget(u2). forget(u4).")
    ]
    assert counts == [6, 6]
    gone = load(text.replace("replace_one", "add_remove") + "forget(u2). forget(u4).")
    assert Network.from_spec(gone).evaluate(without_forgotten(gone, data)).aggregates["n"].count == 4


def test_a_forgotten_person_is_not_listed_and_a_list_of_the_curator_does_the_same(tmp_path):
    text = STUDY.format(rows=1, missing="3", adjacency="replace_one") + "publish(each, y(P), o(pub)) :- p(P).\n"
    data = tables(np.random.default_rng(1), 1)
    (tmp_path / "gone.pl").write_text("% asked on Monday\nforget(u2).\nforget(u3, x(u3)).\n")
    gone = read_forgotten(tmp_path / "gone.pl")
    plan, named = make_plan(text), make_plan(text + "forget(u2). forget(u3, x(u3)).")
    quiet, loud = (
        run_plan(one, data, None, random_state=3, forgotten=more) for one, more in ((plan, gone), (named, ()))
    )
    assert "u2" not in quiet["each"]["id"].to_pylist()
    assert quiet["each"].equals(loud["each"])
    assert quiet["m"].equals(loud["m"])
    assert plan.hash == make_plan(text).hash != named.hash  # the list is in no digest
    (tmp_path / "bad.pl").write_text("forget(u2).\nrandom(x(P)).\n")
    with pytest.raises(StudyError, match=r"bad\.pl:2"):
        read_forgotten(tmp_path / "bad.pl")
    for cell in ("y(u2)", "z(u2)"):  # computed, and unknown: taken in silence, x(u2) would be read all the same
        (tmp_path / "bad.pl").write_text(f"forget(u3, x(u3)).\nforget(u2, {cell}).\n")
        with pytest.raises(StudyError, match=r"bad\.pl:2.*only what is read can be forgotten"):
            run_plan(plan, data, None, random_state=3, forgotten=read_forgotten(tmp_path / "bad.pl"))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("step(1, publish(m)).", "none of them publishes s"),
        ("step(1, publish(mm)).", "no publish line has that name"),
        ("step(0, publish(m)).", "whole number"),
        ("step(1, sell(m)).", "nothing that happens"),
        ("step(1, publish(m)) :- p(P).", "written out"),
        ("forget(u2, y(u2)).", "only what is read can be forgotten"),
        ("forget(u2, x(u3)).", "no variable of u2"),
        ("forget(P).", "names one individual"),
    ],
)
def test_steps_that_say_something_impossible_are_refused(lines, said):
    text = STUDY.format(rows=1, missing="3", adjacency="replace_one")
    with pytest.raises(StudyError) as error:
        load(text + lines)
    assert said in str(error.value)


WARD = Path(__file__).parents[2] / "examples" / "ward"


@pytest.fixture
def ward(tmp_path, monkeypatch):
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path / "state"))
    (tmp_path / "data").mkdir()
    for name in ("study.pl", "patients.parquet"):
        (tmp_path / "data" / name).write_bytes((WARD / name).read_bytes())
    return tmp_path


def command(*words: object, fails: bool = False) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert (done.exit_code != 0) == fails, (done.output, done.exception)
    return " ".join((done.output + (str(done.exception) if fails else "")).split())


def at(ward: Path, step: int, *more: object, fails: bool = False) -> str:
    data = ward / "data"
    words = ["run", data / "study.pl", "--data", data, "--at", step, "--out", ward / f"out{step}", *more]
    return command(*words, fails=fails)


@pytest.mark.paper("002", "§6.2", "lang/steps.py")
def test_a_history_is_one_account(ward):
    study, data = ward / "data" / "study.pl", ward / "data"
    assert "Nothing is granted for people yet" in command("steps", study, "--data", data)
    at(ward, 1, "--grant")
    assert "released already" in at(ward, 1, "--out", ward / "again", fails=True)
    at(ward, 2)
    assert "what was forgotten since" in at(ward, 1, "--out", ward / "again", fails=True)
    said = command("steps", study, "--data", data, "--person", "p0007")
    assert "these steps: 1, 2." in said
    assert "From step 3 on no row of p0007 is read" in said
    assert "--at 4" in said
    assert "skipped" not in at(ward, 4)
    assert "Every step that publishes was released." in command("steps", study, "--data", data)
    command("verify", ward / "out4", "--study", study)
    page = " ".join((ward / "out4" / "README.txt").read_text().split())
    assert "This is step 4 of a history. openness(public) promises (1, 1e-06)-DP" in page
    for file in (ward / "out4").rglob("*"):
        assert not file.is_file() or b"p0007" not in file.read_bytes(), file
    # A further step under the same promise would share it out anew: the shares of the first ones were larger.
    study.write_text(study.read_text() + "publish(winter, meanAge, openness(public)).\nstep(5, publish(winter)).\n")
    assert "another number of steps" in at(ward, 5, fails=True)


def test_a_step_that_is_left_behind_is_told_before_and_after(ward):
    at(ward, 1, "--grant")
    assert "WARNING: step 2 is skipped for ever" in at(ward, 4)
    said = command("steps", ward / "data" / "study.pl", "--data", ward / "data")
    assert "No step is to come; never released: 2." in said
    assert "Every step" not in said


def test_all_steps_together_cost_what_is_granted_for_them():
    plans = [make_plan(load(WARD / "study.pl", step)) for step in (1, 2, 4)]
    (need,) = history_needs(plans).values()
    assert isinstance(need, GaussianDP)
    spent = compose([cost for plan in plans for cost in plan.events("people")])
    assert spent.implies(ApproxDP(need.epsilon(1e-6), 1e-6)) is True
    public = [plan.events("people", ("public",)) for plan in (plans[0], plans[2])]
    assert compose([event for events in public for event in events]).implies(ApproxDP(1.0, 1e-6)) is True


def test_going_back_is_refused_from_python_too(tmp_path):
    text = STUDY.format(rows=1, missing="3", adjacency="replace_one")
    steps = "\n".join(f"step({place}, publish({name}))." for place, name in enumerate("mschn", 1))
    pq.write_table(tables(np.random.default_rng(2), 1)["t"], tmp_path / "t.parquet")
    plans = {place: make_plan(load(text + steps, place)) for place in (1, 2)}
    ledger = tmp_path / "ledger.db"
    run_plan(plans[2], tmp_path, ledger, grant=True, needs=history_needs(list(plans.values())))
    with pytest.raises(LedgerError, match="released already"):
        run_plan(plans[1], tmp_path, ledger)
