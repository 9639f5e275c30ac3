"""Which rows of a person count is decided once for a ledger, whatever a study calls its things."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from sfumato.core import Adjacency, ApproxDP
from sfumato.ledger.ledger import Ledger
from sfumato.network import Network
from sfumato.plan.make import make_plan
from sfumato.run import study as module
from sfumato.run.run_key import RunKey
from sfumato.run.study import run_plan

STUDY = """
source(visits, 'visits.csv'). column(visits, id, person(P)). column(visits, cost, cost(P)). missing(visits, never).
random(cost(P)) :- person(P). range(cost(P), 0, 10). rows_per_person(visits, 1).
dataset(people, domain(P, person(P))).
privacy_requirement(o(public), people, dp(1, 0.000001)).
mean(m, cost(P), person(P)). publish(m, m, o(public)).
"""
TABLE = pa.table(
    {"id": np.repeat([f"p{n}" for n in range(30)], 6), "cost": np.random.default_rng(3).uniform(0, 10, 180)}
)


def kept(monkeypatch, study: str, table: str, ledger, **options) -> list[float]:
    """The values of the kept rows, as the run evaluates them."""
    seen = []
    evaluate = Network.evaluate

    def watched(self, tables, row_keys=None, **_):  # values are held, so that they can be looked at
        seen.append(evaluate(self, tables, row_keys))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Network, "evaluate", watched)
        run_plan(make_plan(study), {table: TABLE}, ledger, grant=True, **options)
    (values,) = seen
    (individuals,) = values.individuals.values()
    return [next(cell for name, cell in row.items() if name != "id") for row in individuals.to_pylist()]


def test_no_word_of_a_study_chooses_other_rows(monkeypatch, tmp_path):
    """Renaming drew another sample: its average over names would have told of the rows that are not kept."""
    ledger = Ledger(tmp_path / "ledger.db", beside=())
    ledger.grant("people", ApproxDP(99.0, 0.01, adjacency=Adjacency("person", "replace-one")))
    first = kept(monkeypatch, STUDY, "visits", ledger)
    for old, new in (("people", "others"), ("visits", "stays"), ("cost(P)", "price(P)")):
        renamed = STUDY.replace(old, new)
        assert kept(monkeypatch, renamed, "stays" if new == "stays" else "visits", ledger) == first
    assert kept(monkeypatch, STUDY, "visits", Ledger(tmp_path / "elsewhere.db", beside=())) != first


def test_a_dry_run_leaves_nothing_beside_the_ledger(monkeypatch, tmp_path):
    dry = kept(monkeypatch, STUDY, "visits", tmp_path / "ledger.db", random_state=1)
    assert not list(tmp_path.iterdir())
    assert dry == kept(monkeypatch, STUDY, "visits", None)


def test_the_key_is_named_and_not_told(tmp_path):
    plan, names = make_plan(STUDY), []
    for out in ("one", "two"):
        run_plan(plan, {"visits": TABLE}, Ledger(tmp_path / f"{out}.db", beside=()), out=tmp_path / out, grant=True)
        names.append(json.loads((tmp_path / out / "run.json").read_text())["row_key"])
        key = (tmp_path / f"{out}.db.rows").read_bytes()
        assert names[-1] == module.key_digest(key)
        assert key.hex() not in "".join(p.read_text() for p in (tmp_path / out).rglob("*.json"))
    assert names[0] != names[1]


def test_a_link_to_the_ledger_has_its_key(monkeypatch, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", beside=())
    ledger.grant("people", ApproxDP(99.0, 0.01, adjacency=Adjacency("person", "replace-one")))
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "other.db").symlink_to(ledger.path)
    first = kept(monkeypatch, STUDY, "visits", ledger)
    assert kept(monkeypatch, STUDY, "visits", Ledger(tmp_path / "link" / "other.db", beside=())) == first
    with RunKey.open(ledger.path, "bound") as one:
        run = one.run
    with RunKey.open(tmp_path / "link" / "other.db", "bound") as again:
        assert (again.run, again.resumed) == (run, True)
    assert [path.name for path in (tmp_path / "link").iterdir()] == ["other.db"]
