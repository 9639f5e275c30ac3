"""A step is released once and in order, whoever runs at the same time and whatever a stopped run has left behind.

Random histories: a run of one step, in the middle of which (while it reads, evaluates or is about to draw) another
process runs a step of its own, into folders beside which a stopped run may have left its hidden one. What the ledger
then holds is compared with the rule itself: the steps, in the order of their reservations, go up.
"""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from sfumato.core import Adjacency, PureDP
from sfumato.errors import LedgerError
from sfumato.lang import load
from sfumato.ledger.ledger import Ledger
from sfumato.plan.make import make_plan
from sfumato.run import study as run_study
from sfumato.run.history import released_steps
from sfumato.run.staging import Staging
from sfumato.run.study import run_plan

STEPS = (1, 2, 3)
STUDY = """
source(people, 'people.parquet'). column(people, id, person(P)). column(people, age, age(P)).
rows_per_person(people, 1). missing(people, never). random(age(P)) :- person(P). range(age(P), 0, 100).
dataset(town, domain(P, person(P))). privacy_requirement(open(public), town, dp(1)).
""" + "".join(
    f"sum(s{step}, age(P), person(P)). publish(n{step}, s{step}, open(public)). step({step}, publish(n{step})).\n"
    for step in STEPS
)
TABLES = {"people": pa.table({"id": [1, 2, 3], "age": [10.0, 50.0, 90.0]})}
MOMENTS = ("reading the tables", "evaluating the study", "drawing noise")


@pytest.fixture(scope="module")
def plans():
    return {step: make_plan(load(STUDY, step)) for step in STEPS}


def left_behind(out, plan):
    """What a run leaves that is killed when its folder is made."""
    with Staging.open(out, plan.hash, again="") as staging:
        folder = staging.folder
        kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    folder.mkdir()
    for name, content in kept.items():
        (folder / name).write_bytes(content)


def history(folder, plans, chance, turns=3):
    """The ledger after some runs, one inside the other."""
    ledger = Ledger(folder / "ledger.db", beside=())
    ledger.grant("town", PureDP(100.0), adjacency=Adjacency("person", "replace-one"))
    number = itertools.count()

    def run(step, others=()):
        out = folder / f"out{next(number)}"
        if chance.random() < 0.5:
            left_behind(out, plans[step])
        moment = chance.choice(MOMENTS)

        def stage(name):
            if name == moment:
                for other in others:
                    run(other)

        try:
            run_plan(plans[step], TABLES, Ledger(ledger.path, beside=()), out=out, stage=stage)
        except LedgerError:
            assert not out.exists()
        else:
            assert out.exists()

    for _ in range(turns):
        run(chance.choice(STEPS), [chance.choice(STEPS)] if chance.random() < 0.7 else ())
    return ledger


def out_of_order(ledger):
    steps = [one.step for one in released_steps(ledger, "town", "study")]
    assert steps
    assert not ledger.open_reservations("town", "person")
    return any(first >= second for first, second in itertools.pairwise(steps))


def test_a_step_is_released_once_and_in_order(tmp_path, plans):
    for seed in range(5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert not out_of_order(history(folder, plans, random.Random(seed))), f"seed {seed}"


@pytest.mark.slow
def test_a_step_is_released_once_and_in_order_in_many_histories(tmp_path, plans):
    for seed in range(1000, 1150):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert not out_of_order(history(folder, plans, random.Random(seed), turns=5)), f"seed {seed}"


@pytest.mark.parametrize("planted", ["check_turn", "check_order"])
def test_without_the_decision_in_the_ledger_a_step_is_released_twice(tmp_path, plans, monkeypatch, planted):
    """Looking before the run is not enough; and who only looks there, and not where something was left, sees less."""
    monkeypatch.setattr(run_study, "check_turn", lambda *_: None)
    if planted == "check_order":
        monkeypatch.setattr(run_study, "is_waiting", lambda out: out is not None and any(out.parent.glob(".out*")))
    for seed in range(20):
        folder = tmp_path / str(seed)
        folder.mkdir()
        if out_of_order(history(folder, plans, random.Random(seed))):
            return
    pytest.fail("no history broke the law")
