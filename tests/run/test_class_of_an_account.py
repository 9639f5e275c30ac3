"""An account is for one class of dependences: promises about another one are refused, by whichever road they come."""

from __future__ import annotations

import shlex
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato import Groups, Ledger, Pufferfish, make_plan, run_plan
from sfumato.cli.app import app
from sfumato.core import Adjacency, GaussianDP, Known, PureDP, Reach
from sfumato.errors import LedgerError
from sfumato.ledger.grants import window_grant
from sfumato.run.accounts import needed, sources_of
from sfumato.run.charges import charges_of
from sfumato.run.steps import history_needs
from sfumato.run.study_file import plan_study

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, y, y(P)). random(y(P)) :- p(P). range(y(P), 0, 1). dataset(d, domain(P, p(P))).
"""
PLAIN = HEAD + "privacy_requirement(o(x), d, dp(1)). sum(n, y(P), p(P)). publish(s, n, o(x))."
FRIENDS = (
    HEAD
    + """
source(f, 'f.csv'). public(f). column(f, a, p(P)). column(f, b, p(Q)). relation(f, fr(P, Q)).
random(e(P)) :- p(P). depends(e(P), L, sum(L)) :- findall(y(Q), fr(P, Q), L).
privacy_requirement(o(x), d, dp(1)). sum(n, e(P), p(P)). publish(s, n, o(x)).
"""
)
KNOWN = (
    HEAD.replace("0, 1)", "[0, 1])")
    + """
correlated(d, known, joint([row([0, 0], 0.5), row([1, 0], 0.5)])). privacy_requirement(o(x), d, pufferfish(1.0)).
count(n, (p(P), y(P) = 1)). publish(s, n, o(x)).
"""
)
PEOPLE = pa.table({"id": list(range(8)), "y": [0.5] * 8})
WHO = Adjacency("p", "replace-one")


def grouped(size: int, *observers: str) -> str:
    asked = "".join(f"privacy_requirement(o({one}), d, pufferfish(1.0)). " for one in observers)
    shown = "".join(f"sum(n_{one}, y(P), p(P)). publish(s_{one}, n_{one}, o({one})). " for one in observers)
    return f"{HEAD}correlated(d, group, at_most({size})). {asked}{shown}"


def opened(folder, plan, granted, table=PEOPLE) -> Ledger:
    ledger = Ledger(folder / "ledger.db", beside=())
    ledger.grant("d", granted, sources=sources_of(plan.network, {"t": table})["d"])
    return ledger


def granting(message: str) -> list[str]:
    """The words after `sfumato` of the command that a message tells."""
    return shlex.split(message.split("`")[1])[1:]


def test_friends_need_an_account_for_so_many_rows(tmp_path):
    tables = {"t": PEOPLE, "f": pa.table({"a": [1, 2, 3, 4], "b": [0] * 4})}
    plain, friends = make_plan(PLAIN), make_plan(FRIENDS, {"f": tables["f"]})
    assert friends.promises[0].asked.dependence == Reach(5)
    ledger = opened(tmp_path, plain, PureDP(2.0, adjacency=WHO))
    run_plan(plain, {"t": PEOPLE}, ledger)
    with pytest.raises(LedgerError, match=r"accounted for single units.*nothing was spent.*--groups 5") as refused:
        run_plan(friends, tables, ledger)
    assert ledger.balance("d", "p").spent == PureDP(1.0, adjacency=WHO)
    done = CliRunner().invoke(app, granting(str(refused.value)))  # the way out is complete
    assert done.exit_code == 0, done.output
    run_plan(friends, tables, ledger)
    assert ledger.balance("d", "p").spent.eps == pytest.approx(6.0, rel=1e-4)  # 5 for the plain one, and its own
    with pytest.raises(LedgerError):
        run_plan(friends, tables, ledger)


def test_a_known_law_needs_an_account_of_its_own_and_seals_it_for_good(tmp_path):
    table = pa.table({"id": [0, 1], "y": [0, 1]})
    known, plain = make_plan(KNOWN), make_plan(PLAIN)
    ledger = opened(tmp_path, plain, PureDP(3.0, adjacency=WHO), table)
    with pytest.raises(LedgerError, match=r"nothing was spent.*no account yet, and run with --grant"):
        run_plan(known, {"t": table}, ledger)
    assert ledger.balance("d", "p").spent is None
    other = Ledger(tmp_path / "other.db", beside=())
    run_plan(known, {"t": table}, other, grant=True)
    other.grant("d", PureDP(5.0, adjacency=WHO))  # a new grant does not unsay what was published
    for book in (other, Ledger(tmp_path / "other.db", beside=())):
        with pytest.raises(LedgerError, match="sealed"):
            run_plan(plain, {"t": table}, book)


def test_a_history_opens_an_account_for_its_class(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "t.parquet")
    study = tmp_path / "study.pl"
    text = grouped(4, "x").replace("s_x", "s") + "sum(m, y(P), p(P)). publish(r, m, o(x))."
    study.write_text(text + " step(1, publish(s)). step(2, publish(r)).")
    plans = [plan_study(study, tmp_path, {}, number) for number in (1, 2)]
    need = history_needs(plans)["d"]
    assert isinstance(need, Pufferfish)
    assert (need.dependence, need.eps) == (Groups(4), pytest.approx(1.0, rel=1e-6))
    ledger = opened(tmp_path, plans[0], need)
    for plan in plans:
        run_plan(plan, {"t": PEOPLE}, ledger)
    assert ledger.balance("d", "p").spent.eps == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("observers", [["x"], ["x", "y"]])
def test_the_class_is_checked_for_however_many_observers(tmp_path, observers):
    wide = make_plan(grouped(4, *observers))
    ledger = opened(tmp_path, wide, Pufferfish(9.0, 0.0, Groups(2), adjacency=WHO))
    with pytest.raises(LedgerError, match=r"accounted for .*nothing was spent"):
        run_plan(wide, {"t": PEOPLE}, ledger)
    assert ledger.balance("d", "p").spent is None
    fresh = Ledger(tmp_path / "fresh.db", beside=())
    run_plan(wide, {"t": PEOPLE}, fresh, grant=True)
    assert fresh.balance("d", "p").granted.dependence == Groups(4)


def test_observers_of_different_classes_are_refused():
    asked = [Pufferfish(1.0, 0.0, Groups(size), adjacency=WHO) for size in (2, 4)]
    plan = SimpleNamespace(
        promises=[SimpleNamespace(dataset="d", asked=one) for one in asked],
        row_cost=lambda _: PureDP(0.1, adjacency=WHO),
        events=lambda _: [PureDP(0.1, adjacency=WHO)],
    )
    with pytest.raises(LedgerError, match=r"one class of dependences.*nothing was spent"):
        list(charges_of(plan, "d", [("d", "p")]))
    with pytest.raises(LedgerError, match="one class of dependences"):  # before an account is opened for either
        needed(PureDP(0.1, adjacency=WHO), asked)
    with pytest.raises(LedgerError, match="one class of dependences"):
        window_grant(asked, [[PureDP(0.1)]])


def test_a_grant_for_several_observers_holds_them_and_not_more():
    one = Pufferfish(1.0, 1e-6, Groups(4), adjacency=WHO)
    each = GaussianDP(one.largest_mu(), adjacency=WHO)
    found = window_grant([one, one], [[each], [each]])
    assert (found.eps, found.delta_) == (pytest.approx(2.0), pytest.approx(2e-6))
    known = make_plan(KNOWN).promises[0].asked
    assert isinstance(known.dependence, Known)
    with pytest.raises(LedgerError, match="one release to one observer"):
        window_grant([known], [[PureDP(0.5)], [PureDP(0.5)]])
