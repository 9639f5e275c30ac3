"""Things with two owners: neither moves more than the promise pays for, whether ownership is public or private."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato import make_plan, run_plan
from sfumato.core import ApproxDP, GaussianDP, PureDP
from sfumato.core.one_of_several import for_one_of
from sfumato.errors import InputError, StudyError
from sfumato.evidence import verify
from sfumato.evidence.explain import explain
from sfumato.lang import load
from sfumato.release import OwnedTotal
from sfumato.release import flow as flow_module
from sfumato.release.flow import largest_total
from sfumato.run.held_tables import all_tables


def brute(values, first, second, most) -> int:
    """Every set of rows."""
    best = 0
    for size in range(len(values) + 1):
        for rows in combinations(range(len(values)), size):
            chosen = list(rows)
            fine = all(
                not chosen or np.bincount(np.array(side)[chosen]).max() <= limit
                for side, limit in zip((first, second), most, strict=True)
            )
            best = max(best, sum(values[row] for row in chosen)) if fine else best
    return best


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))])
def test_the_flow_is_exact(seed, monkeypatch):
    chance = np.random.default_rng(seed)
    for _ in range(6):
        rows = int(chance.integers(1, 9))
        values = chance.integers(0, 50, rows).tolist()
        first, second = chance.integers(0, 3, rows).tolist(), chance.integers(0, 3, rows).tolist()
        most = (int(chance.integers(1, 4)), int(chance.integers(1, 4)))
        truth = brute(values, first, second, most)
        assert largest_total(values, (first, second), most) == truth
        with monkeypatch.context() as without:  # the way that needs no linear program
            without.setattr(flow_module, "_proposed", lambda *_: None)
            assert largest_total(values, (first, second), most) == truth


def rows_without(table: list[tuple[int, int, int]], side: int, who: int) -> list[tuple[int, int, int]]:
    return [row for row in table if row[side] != who]


def total(table: list[tuple[int, int, int]], most: tuple[int, int]) -> int:
    return largest_total([row[2] for row in table], ([row[0] for row in table], [row[1] for row in table]), most)


@pytest.mark.parametrize("seed", [*range(1), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 30))])
def test_no_owner_moves_it_further_than_the_limit(seed):
    """Replacing, adding and removing; the relative that cuts rows twice is found by the same search."""
    chance = np.random.default_rng(seed)
    most, reached = (int(chance.integers(1, 4)), int(chance.integers(1, 4))), [0, 0]
    for _ in range(25):
        size = int(chance.integers(2, 25))
        table = [(*map(int, chance.integers(0, 5, 2)), int(chance.integers(0, 11))) for _ in range(size)]
        for side in (0, 1):
            rest = rows_without(table, side, 0)
            many = int(chance.integers(1, 12))
            other = [(0, int(o), 10) if side == 0 else (int(o), 0, 10) for o in chance.integers(0, 9, many)]
            ends = [total(one, most) for one in (table, rest, rest + other)]
            assert max(ends) - min(ends) <= most[side] * 10
            reached[side] = max(reached[side], max(ends) - min(ends))
    assert reached == [limit * 10 for limit in most]


def cut_twice(table: list[tuple[int, int]], most: tuple[int, int]) -> int:
    """The rule that does not work: the first rows of each patient, of these the first of each doctor."""
    for side, limit in enumerate(most):
        seen: dict[int, int] = {}
        kept = []
        for row in table:
            seen[row[side]] = seen.get(row[side], 0) + 1
            kept += [row] if seen[row[side]] <= limit else []
        table = kept
    return len(table)


@pytest.mark.paper("002", "§4.4, units", "release/owned.py")
def test_a_doctor_with_a_hundred_patients():
    with_doctor = [(p, d) for p in range(100) for d in (0, p + 1)]  # every patient's first row is at doctor 0
    without = [row for row in with_doctor if row[1] != 0]
    assert (cut_twice(with_doctor, (1, 2)), cut_twice(without, (1, 2))) == (2, 100)
    totals = [total([(p, d, 1) for p, d in table], (1, 2)) for table in (with_doctor, without)]
    assert totals == [100, 100]


def test_one_draw_keeps_both_promises():
    promises = {"patient": ApproxDP(1.0, 1e-6), "doctor": GaussianDP(0.5)}
    owned = OwnedTotal(10.0, {"patient": 2, "doctor": 5}, promises)
    chance = np.random.default_rng(3)
    patients, doctors = chance.integers(0, 40, 200), chance.integers(0, 9, 200)
    values = chance.uniform(-5, 15, 200)
    result = owned.publish(patients, doctors, values, random_state=2)
    for unit, certificate in result.certificates.items():
        assert verify(certificate).ok
        assert certificate.guarantee.implies(promises[unit].under(certificate.guarantee.adjacency)) is True
        (event,) = certificate.events
        assert event.sensitivity / event.scale <= owned.moves[unit] / owned.scale * (1 + 1e-9)
        assert not certificate.publishable
    assert owned.scale == pytest.approx(max(20 / 0.2367, 50 / 0.5), rel=1e-3)
    both = OwnedTotal(10.0, {"patient": 2, "doctor": 5}, promises, same_person=True)
    assert both.moves == {"patient": 70.0, "doctor": 70.0}
    truth = np.clip(values, 0, 10).sum()
    free = OwnedTotal(10.0, {"patient": 200, "doctor": 200}, dict.fromkeys(promises, GaussianDP(1e6)))
    assert free.publish(patients, doctors, values, random_state=1).value == pytest.approx(truth, abs=0.1)
    assert owned.publish(patients, doctors, values, random_state=1).value < truth + 6 * owned.scale
    with pytest.raises(InputError, match="two kinds of owner"):
        OwnedTotal(10.0, {"patient": 2}, promises)


STUDY = """
source(visits, 'v.parquet'). column(visits, id, visit(V)). column(visits, cost, cost(V)). rows_per_person(visits, 1).
missing(visits, never). random(cost(V)) :- visit(V). range(cost(V), 0, 100).
source(who, 'w.parquet'). column(who, id, visit(V)). column(who, patient, patient(P)). column(who, doctor, doctor(D)).
relation(who, seen(V, P, D)). public(who).
dataset(patients, domain(P, patient(P))). dataset(doctors, domain(D, doctor(D))).
instance_rv(patients, P, cost(V)) :- seen(V, P, _).
instance_rv(doctors, D, cost(V)) :- seen(V, _, D).
privacy_requirement(pp(public), patients, {patients}). privacy_requirement(dd(public), doctors, {doctors}).
sum(s, cost(V), visit(V)). mean(m, cost(V), visit(V)). publish(total, s, pp(public)). publish(average, m, pp(public)).
"""


def tables(chance: np.random.Generator, size: int = 30) -> dict[str, pa.Table]:
    ids = [f"v{place}" for place in range(size)]
    who = {"id": ids, "patient": chance.integers(0, 12, size), "doctor": chance.integers(0, 4, size)}
    return {"who": pa.table(who), "visits": pa.table({"id": ids, "cost": chance.uniform(0, 100, size)})}


@pytest.mark.paper("002", "§4.4, units", "network/owners.py")
@pytest.mark.parametrize(
    ("patients", "doctors", "mus"), [("gdp(1)", "gdp(2)", (1, 2)), ("gdp(0.3)", "gdp(9)", (0.3, 9))]
)
def test_public_owners_are_protected_with_all_their_things(patients, doctors, mus):
    chance = np.random.default_rng(7)
    data = tables(chance)
    plan = make_plan(load(STUDY.format(patients=patients, doctors=doctors)), data, sizes={"visit": 30})
    scale = {draw.node: draw.scale for draw in plan.draws}
    most = [int(np.bincount(data["who"][name].to_numpy()).max()) for name in ("patient", "doctor")]
    for number, mu in zip(most, mus, strict=True):
        moves = {"s": 100.0 * number, "m": 100.0 * number}  # all things of one owner from one end to the other
        assert sum((moves[name] / one) ** 2 for name, one in scale.items()) <= mu**2 * (1 + 1e-6)
    tight = [mu / number for mu, number in zip(mus, most, strict=True)]
    assert plan.promises[0].asked.mu == pytest.approx(min(tight), rel=1e-9)
    said = " ".join(explain(plan, "lawyer").split())
    assert f"no doctor has more than {most[1]}" in said
    same = STUDY.format(patients=patients, doctors=doctors) + "same_person(patients, doctors).\n"
    both = make_plan(load(same), data, sizes={"visit": 30}).promises[0].asked.mu
    assert both == pytest.approx(min(mus) / sum(most), rel=1e-9)


TWICE = """
source(visits, 'v.parquet'). column(visits, id, visit(V)). column(visits, cost, cost(V)). rows_per_person(visits, 1).
missing(visits, never). random(cost(V)) :- visit(V). range(cost(V), 0, 100).
source(out, 'o.parquet'). column(out, id, visit(V)). column(out, patient, patient(P)). relation(out, seen(V, P)).
source(stays, 's.parquet'). column(stays, id, visit(V)). column(stays, patient, patient(P)).
relation(stays, stayed(V, P)). public(out). public(stays).
dataset(patients, domain(P, patient(P))).
instance_rv(patients, P, cost(V)) :- seen(V, P).
instance_rv(patients, P, cost(V)) :- stayed(V, P).
privacy_requirement(pp(public), patients, gdp(1)).
sum(s, cost(V), visit(V)). publish(total, s, pp(public)).
"""


#: How a second table may write an owner whom the first one writes as 7.
WRITTEN = {
    "7": int,
    "7.0": float,
    "as text": str,
    "as a decimal's text": lambda owner: f"{owner}.0",
    "either way": lambda owner: owner if owner % 2 else f"{owner}.0",
    "7.00": lambda owner: Decimal(f"{owner}.00"),
    "7.000": lambda owner: Decimal(f"{owner}.000"),
}


def named_alike(table: pa.Table, written: str) -> Any:
    """The table as Arrow has it, or, where it has no type for such a column, as pandas does."""
    owners = [WRITTEN[written](owner) for owner in table["patient"].to_pylist()]
    if written == "either way":
        return pd.DataFrame({"id": table["id"].to_pylist(), "patient": pd.Series(owners, dtype=object)})
    return table.set_column(1, "patient", pa.array(owners))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("written", WRITTEN)
def test_who_owns_things_by_two_tables_owns_all_of_them(seed, written):
    """Things named by both tables count once; owners that a second table writes as 1.0 are the same owners."""
    chance = np.random.default_rng(seed)
    pairs = [sorted({(int(v), int(p)) for v, p in chance.integers(0, (12, 3), (9, 2))}) for _ in range(2)]
    owned: dict[int, set[int]] = {}
    for thing, owner in (*pairs[0], *pairs[1]):
        owned.setdefault(owner, set()).add(thing)
    named = [
        pa.table({"id": [f"v{thing}" for thing, _ in own], "patient": [owner for _, owner in own]}) for own in pairs
    ]
    visits = pa.table({"id": [f"v{place}" for place in range(12)], "cost": [50.0] * 12})
    first = named_alike(named[0], "7.000") if written == "7.00" else named[0]
    plan = make_plan(load(TWICE), {"visits": visits, "out": first, "stays": named_alike(named[1], written)})
    most = max(map(len, owned.values()))
    assert plan.draws[0].scale >= 100 * most * (1 - 1e-9)
    assert written.startswith("7.00") or plan.promises[0].asked.mu == pytest.approx(1 / most, rel=1e-9)


def test_owners_in_the_files_of_a_folder_are_the_same_owners(tmp_path):
    """One file of a folder has an absent cell, so that pandas writes its owners as decimals."""
    (tmp_path / "out").mkdir()
    pd.DataFrame({"id": ["v0", "v1"], "patient": [7, 7]}).to_csv(tmp_path / "out" / "1.csv", index=False)
    pd.DataFrame({"id": ["v2", "v3"], "patient": [7.0, None]}).to_csv(tmp_path / "out" / "2.csv", index=False)
    parquet.write_table(pa.table({"id": ["v9"], "patient": ["other"]}), tmp_path / "s.parquet")
    parquet.write_table(pa.table({"id": ["v0"], "cost": [1.0]}), tmp_path / "v.parquet")
    spec = load(TWICE.replace("'o.parquet'", "'out/'"))
    plan = make_plan(spec, all_tables(spec, tmp_path))
    assert plan.promises[0].asked.mu == pytest.approx(1 / 3, rel=1e-9)


def test_a_study_of_owned_things_runs_and_verifies(tmp_path):
    data = tables(np.random.default_rng(1))
    plan = make_plan(load(STUDY.format(patients="dp(1, 0.000001)", doctors="dp(2, 0.000001)")), data)
    run_plan(plan, data, None, out=tmp_path / "out")
    assert all(verify(path).ok for path in (tmp_path / "out").glob("certificate*.json"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("public(who).", "rows_per_person(who, 3).", "from 2 to 100"),
        ("privacy_requirement(dd(public), doctors, gdp(1)).", "", "promised nothing about doctors"),
        (":- seen(V, _, D).", ":- doctor(D), visit(V).", "no goal is a relation"),
        ("doctor, doctor(D)", "doctor, ward(D)", "no goal is a relation"),
    ],
)
def test_what_is_not_known_of_owners_is_refused(old, new, said):
    with pytest.raises(StudyError) as error:
        load(STUDY.format(patients="gdp(1)", doctors="gdp(1)").replace(old, new))
    assert said in str(error.value)


def test_what_one_thing_may_cost():
    assert for_one_of(PureDP(1.0), 4).epsilon(0.0) == pytest.approx(0.25)
    assert for_one_of(ApproxDP(1.0, 1e-6), 3).mu == pytest.approx(0.2367 / 3, rel=1e-3)


@pytest.mark.parametrize(("patients", "doctors"), [("gdp(100)", "gdp(1)"), ("gdp(1)", "gdp(2)"), ("dp(100)", "dp(1)")])
@pytest.mark.parametrize("last", [2, 9])
def test_steps_together_keep_the_promise_to_every_owner(patients, doctors, last):
    """Also to the owner whose requirement no publication names; brute over all draws, with one owner's things moved."""
    data = tables(np.random.default_rng(7))
    most = {name: int(np.bincount(data["who"][name].to_numpy()).max()) for name in ("patient", "doctor")}
    steps = "".join(f"step({at}, publish(total)). " for at in range(1, last + 1)) + "step(1, publish(average))."
    text = STUDY.format(patients=patients, doctors=doctors) + steps
    draws = [
        draw for at in range(1, last + 1) for draw in make_plan(load(text, at=at), data, sizes={"visit": 30}).draws
    ]
    for owner, promise in (("patient", patients), ("doctor", doctors)):
        kind, _, number = promise.rstrip(")").partition("(")
        moved = [draw.sensitivity * most[owner] / draw.scale for draw in draws]
        seen = sum(moved) if kind == "dp" else sum(one**2 for one in moved) ** 0.5
        assert seen <= float(number) * (1 + 1e-9)
