"""Studies of people who depend on each other: planned, run, verified; refused where the promise would not hold."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Groups, Ledger, Pufferfish, Study, make_plan
from sfumato.core import Chains, GaussianDP, Known, compose
from sfumato.core.certificate import Certificate
from sfumato.errors import DataError, LedgerError, OverspendError, SchemaError, SfumatoError, StudyError
from sfumato.evidence.explain import explain
from sfumato.evidence.recipient import recipient_text
from sfumato.evidence.verify import verify
from sfumato.evidence.verify_plan import verify_folder
from sfumato.lang import examine, load
from sfumato.mechanisms import Gaussian
from sfumato.network.evaluate import evaluate
from sfumato.network.network import Network
from sfumato.run.aims import aims_of
from sfumato.run.study import run_plan
from sfumato.run.study_file import run_study

TOWN = """
source(people, 'people.csv').
column(people, id, person(P)). column(people, ill, ill(P)).
rows_per_person(people, 1). missing(people, never).
random(ill(P)) :- person(P). range(ill(P), 0, 1).
source(homes, 'homes.csv'). public(homes).
column(homes, person, person(P)). column(homes, home, home(H)). relation(homes, lives_in(P, H)).
dataset(town, domain(P, person(P))).
correlated(town, group(H, lives_in(P, H)), at_most(4)).
privacy_requirement(secrecy(public), town, pufferfish(1.0, 1e-6)).
sum(ills, ill(P), person(P)).
publish(ills, ills, secrecy(public)).
"""
DAYS = """
source(days, 'days.csv'). each_row(days, day(D)). missing(days, never).
column(days, yes, yes(D)). random(yes(D)) :- day(D). range(yes(D), 0, 1).
dataset(readings, domain(D, day(D))).
correlated(readings, chain(T, at(D, T), 365), memory(4.394449154672439)).
privacy_requirement(secrecy(public), readings, pufferfish(1.0, 1e-6)).
prefer(yeses, gaussian).
sum(yeses, yes(D), day(D)).
publish(yeses, yeses, secrecy(public)).
"""


def town(people: int = 40, home: int = 4) -> dict[str, pd.DataFrame]:
    names = [f"p{number}" for number in range(people)]
    homes = pd.DataFrame({"person": names, "home": [f"h{number // home}" for number in range(people)]})
    return {"people": pd.DataFrame({"id": names, "ill": np.arange(people) % 2}), "homes": homes}


def codes(text: str) -> set[str]:
    return {one.code for one in examine(text)[1] if one.severity == "error"}


@pytest.mark.paper("002", "§6.1", "core/dependence.py")
def test_a_town_from_the_study_to_the_verifier(tmp_path):
    tables = town()
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    study = tmp_path / "study.pl"
    study.write_text(TOWN)
    plan = make_plan(study, tables, sizes={"town": 40})
    run_plan(plan, tmp_path, tmp_path / "ledger.db", out=tmp_path / "out", grant=True)
    checks = verify_folder(tmp_path / "out", study, tables)
    assert all(check.ok for check in checks), checks
    told = explain(plan, "lawyer") + explain(plan, "subject") + recipient_text(plan)
    for words in ("1e-06)-Pufferfish for groups of at most 4", "different groups are independent"):
        assert " ".join(told.split()).count(words) >= 2
    assert "learns from theirs as well" not in told  # that is true of dp(…) alone
    balance = Ledger(tmp_path / "ledger.db").balance("town", "person")
    assert isinstance(balance.granted, Pufferfish)
    with pytest.raises(OverspendError):
        run_plan(plan, tmp_path, tmp_path / "ledger.db", out=tmp_path / "again")
    wider = make_plan(TOWN.replace("at_most(4)", "at_most(5)"), tables)
    with pytest.raises(LedgerError, match="accounted for groups of at most 4"):
        run_plan(wider, tables | {"people": tmp_path / "people.csv"}, tmp_path / "ledger.db")


def scale_of(text: str, tables: dict[str, pd.DataFrame], noise: str) -> float:
    (draw,) = make_plan(text.replace("publish(", f"prefer(ills, {noise}). publish("), tables).draws
    assert draw.noise == noise
    return draw.scale


def test_noise_is_for_the_whole_household():
    """Sums move by k widths, and noise grows by k: 16.9 and 4 at ε = 1 for four, whatever the noise."""
    assert scale_of(TOWN, town(), "gaussian") == pytest.approx(16.8987, rel=1e-4)
    assert scale_of(TOWN, town(), "laplace") == pytest.approx(4.0, rel=1e-4)
    alone = TOWN.replace("at_most(4)", "at_most(1)")
    assert scale_of(alone, town(home=1), "gaussian") == pytest.approx(16.8987 / 4, rel=1e-4)


def test_where_presence_is_hidden_everybody_leaves_and_comes():
    """Somebody who is there in both worlds with another value is two changes: 2k of them for k people."""
    hidden = TOWN.replace("dataset(town", "adjacency(town, add_remove). dataset(town")
    assert scale_of(hidden, town(), "gaussian") == pytest.approx(2 * 16.8987, rel=1e-4)
    tables = town()
    asked = make_plan(hidden, tables).promises[0].asked
    assert GaussianDP(2 * asked.largest_mu(), adjacency=asked.adjacency).implies(asked) is not True
    noise = Gaussian.for_guarantee(asked, 1.0, asked.adjacency)
    claim = Certificate.issue(subject="a", events=[noise.event()], proofs=["gaussian", "pufferfish"], guarantee=asked)
    assert verify(claim).ok
    louder = json.loads(claim.to_json())
    louder["events"][0]["scale"] /= 2  # enough for k changes, not for 2k
    assert "guarantee" in {check.field for check in verify(louder).failures}


def test_a_series_is_planned_by_its_best_window():
    plan = make_plan(DAYS)
    (draw,) = plan.draws
    assert draw.scale == pytest.approx(181.49, rel=1e-3)
    asked = plan.promises[0].asked
    assert isinstance(asked, Pufferfish)
    assert isinstance(asked.dependence, Chains)
    assert asked.dependence.together == 35
    assert "35 consecutive values" in explain(plan)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("public(homes).", "rows_per_person(homes, 1).", "who belongs together must be public"),
        ("pufferfish(1.0, 1e-6)", "dp(1.0, 1e-6)", "no promise about town speaks of those"),
        ("correlated(town, group(H, lives_in(P, H)), at_most(4)).", "", "nothing says which units of town do"),
        ("at_most(4)).", "at_most(4)). correlated(town, group, at_most(5)).", "said twice"),
        ("group(H, lives_in(P, H)), at_most(4)", "chain(T, at(P, T)), memory(0)", "number above 0"),
        ("group(H, lives_in(P, H)), at_most(4)", "chain(T, at(P, T)), at_most(4)", "needs memory(M)"),
        ("group(H, lives_in(P, H)), at_most(4)", "crowd, at_most(4)", "no class of dependences"),
        ("at_most(4)", "at_most(2.5)", "whole number"),
        (
            "dataset(town, domain(P, person(P))).",
            "dataset(town, domain(P, (person(P), lives_in(P, h2)))). "
            "dataset(vips, domain(P, (person(P), lives_in(P, h1)))). privacy_requirement(own(vip), vips, dp(1.0)). "
            "sum(v, ill(P), (person(P), lives_in(P, h1))). publish(v, v, own(vip)).",
            "may depend on who is in another",
        ),
    ],
)
def test_what_cannot_be_promised_is_refused(old, new, said):
    found = " ".join(one.describe() for one in examine(TOWN.replace(old, new))[1] if one.severity == "error")
    assert said in found


def test_series_whose_length_is_hidden_are_refused():
    hidden = DAYS.replace("dataset(readings", "adjacency(readings, add_remove). dataset(readings")
    assert "declaration" in codes(hidden)


def test_the_public_table_is_held_against_the_word():
    with pytest.raises(SchemaError, match=r"shows 4 who belong together, more than at_most\(3\)"):
        make_plan(TOWN.replace("at_most(4)", "at_most(3)"), town())
    network = TOWN.replace("home, home(H)", "home, person(H)")  # now it says who knows whom
    chain = {"person": ["p0", "p1", "p2", "p3"], "home": ["p1", "p2", "p3", "p4"]}
    with pytest.raises(SchemaError, match="shows 5 who belong together"):
        make_plan(network, town() | {"homes": pd.DataFrame(chain)})
    assert make_plan(network.replace("at_most(4)", "at_most(5)"), town() | {"homes": pd.DataFrame(chain)}).draws


def test_households_are_no_structure_of_a_plan():
    """A plan of a thousand households has the size of a plan of one, and no limit of structures is met."""
    plan = make_plan(TOWN, town(people=1200))
    assert len(plan.draws) == 1


@pytest.mark.slow
def test_models_and_tables_may_serve_households():
    names = "source(people, 'people.csv'). column(people, id, person(P)). rows_per_person(people, 1)."
    text = f"""
    {names} missing(people, never). column(people, age, age(P)). column(people, ill, ill(P)).
    random(age(P)) :- person(P). random(ill(P)) :- person(P). range(age(P), 0, 100). range(ill(P), [no, yes]).
    dataset(town, domain(P, person(P))). correlated(town, group, at_most(2)).
    privacy_requirement(secrecy(public), town, pufferfish(4.0, 1e-6)).
    publish(triage, classifier(ill(P), [age(P)]), secrecy(public)).
    """
    chance = np.random.default_rng(0)
    ages = chance.uniform(0, 100, 400)
    people = pd.DataFrame({"id": range(400), "age": ages, "ill": np.where(ages > 50, "yes", "no")})
    release = run_plan(make_plan(text, sizes={"town": 400}), {"people": people}, None, random_state=1)
    certificate = release.certificates["town/public"]
    assert certificate.guarantee == Pufferfish(4.0, 1e-6, Groups(2), adjacency=certificate.adjacency)
    assert verify(certificate).ok


def test_the_builder_says_it_in_one_word():
    people = pd.DataFrame({"ill": [0, 1] * 50})
    start = Study("Town").table("people", people, person=None, columns={"ill": (0, 1)})
    study = start.promise("public", epsilon=1, delta=1e-6, households=4).sum("ill", to="public")
    assert "correlated(people, group, at_most(4))." in study.to_text()
    plan = study.plan(size=100)
    assert isinstance(plan.plan.promises[0].asked, Pufferfish)
    both = start.promise("a", epsilon=1, households=3).promise("b", epsilon=2, households=3)
    assert both.to_text().count("correlated(") == 1
    with pytest.raises(StudyError, match="said already"):
        start.promise("a", epsilon=1, households=3).promise("b", epsilon=2, households=4)
    with pytest.raises(StudyError, match="one of the two"):
        start.promise("a", epsilon=1, households=3, memory=2)
    with pytest.raises(StudyError, match="unit='day'"):
        start.promise("a", epsilon=1, memory=1.5, longest=50)


def days(**more):
    rows = pd.DataFrame({"home": np.arange(100) % 10, "day": np.arange(100) % 7, "ill": [0, 1] * 50})
    return Study("Meter").table("meter", rows, columns={"ill": (0, 1), "day": (0, 6)}, missing="never", **more)


def test_values_of_a_series_are_called_what_they_are():
    """The lawyer was told of "one person of days", and what was promised was one day."""
    series = days(person=None, unit="day").promise("a", epsilon=1, memory=1.5, longest=50).sum("ill", to="a")
    plan = series.plan(size=100)
    assert isinstance(plan.plan.promises[0].asked.dependence, Chains)
    told = " ".join(plan.explain("LAWYER").split())
    assert "person" not in told.replace("in person", "")
    assert "day" in told
    again = Study.from_text(series.to_text()).plan(size=100).plan
    assert again.promises[0].asked == plan.plan.promises[0].asked


def test_the_lawyer_is_told_where_the_probability_comes_from():
    """Of a promise that counts what others tell, by its ε and δ; of another, by the noise."""
    told = [
        " ".join(
            study.promise("a", epsilon=1, delta=1e-6, **more)
            .sum("ill", to="a")
            .plan(size=100)
            .explain("LAWYER")
            .split()
        )
        for study, more in ((days(person=None, unit="day"), {"memory": 1.5}), (days(person=None), {}))
    ]
    assert ["follows from the ε and the δ of the promise" in one for one in told] == [True, False]
    assert "that of the noise that is drawn" not in told[0]


def test_a_series_has_one_value_a_row():
    with pytest.raises(StudyError, match="several rows of one"):
        days(person="home", rows_per_person=10, unit="home").promise("a", epsilon=1, memory=1.5).sum(
            "ill", to="a"
        ).plan(size=100)


def test_the_unit_is_one_for_all_tables():
    other = pd.DataFrame({"who": [1, 2], "age": [30, 40]})
    start = days(person="home", unit="home")
    start.table("more", other, person="who", columns={"age": (0, 99)}, unit="home")
    start.table("more", other, person="who", columns={"age": (0, 99)})
    with pytest.raises(StudyError, match="one for all"):
        start.table("more", other, person="who", columns={"age": (0, 99)}, unit="patient")


def test_aims_and_reports_know_the_promise():
    people = pd.DataFrame({"ill": [0, 1] * 50})
    study = Study("Town").table("people", people, person=None, columns={"ill": (0, 1)})
    plan = study.promise("p", epsilon=1, delta=1e-6, households=4).sum("ill", to="p", within=10).plan(size=100)
    (aim,) = aims_of(plan.plan, {"people": 100})
    assert aim.least_amount is not None
    assert aim.least_amount > 1


def test_errors_are_of_the_house():
    with pytest.raises(SfumatoError):
        make_plan(TOWN.replace("at_most(4)", "at_most(0)"), town())


# ── people whose rows hold other people's data ───────────────────────────────────────────────────────────────────────

SOCIAL = """
source(visits, 'visits.csv'). column(visits, patient, patient(P)). column(visits, cost, cost(P)).
rows_per_person(visits, 1). missing(visits, never).
source(fr, 'fr.csv'). column(fr, a, patient(P)). column(fr, b, patient(Q)). relation(fr, friend(P, Q)). public(fr).
random(cost(P)) :- patient(P). random(exposure(P)) :- patient(P).
range(cost(P), 0, 100).
depends(exposure(P), L, sum(L)) :- findall(cost(Q), friend(P, Q), L).
dataset(pats, domain(P, patient(P))).
privacy_requirement(pp(public), pats, dp(1.0, 1e-6)).
sum(m, exposure(P), patient(P)).
publish(c, m, pp(public)).
"""


def social(seed: int, people: int = 30) -> dict[str, pd.DataFrame]:
    chance = np.random.default_rng(seed)
    names = [f"p{number}" for number in range(people)]
    pairs = pd.DataFrame({"a": chance.choice(names, 45), "b": chance.choice(names, 45)})
    costs = chance.integers(-20, 130, people).astype(float)
    return {"visits": pd.DataFrame({"patient": names, "cost": costs}), "fr": pairs}


def exposures(tables: dict[str, pd.DataFrame], mean: bool = False) -> pd.Series:
    """By plain pandas: what each person's friends cost, every friend once, every cost inside its range."""
    costs = tables["visits"].set_index("patient")["cost"].clip(0, 100)
    pairs = tables["fr"].drop_duplicates()
    found = pairs.assign(x=pairs["b"].map(costs)).groupby("a")["x"].agg("mean" if mean else "sum")
    return found.reindex(costs.index).fillna(0.0)


@pytest.mark.parametrize(("seed", "mean"), [(0, False), (1, True)])
def test_friends_are_summed_as_pandas_sums_them_and_one_person_is_in_few_rows(seed, mean):
    text = SOCIAL.replace("sum(L)", "mean(L)") if mean else SOCIAL
    tables = social(seed)
    network = Network.from_spec(load(text), tables)
    seen = network.evaluate(tables).individuals["pats"].to_pandas().set_index("id")["exposure(P)"]
    assert np.allclose(seen.sort_index(), exposures(tables, mean).sort_index(), atol=1e-6)
    rows = network.spec.requirements[0].guarantee.dependence.together
    reached = 0
    pairs = tables["fr"].drop_duplicates()
    often = pairs[pairs["a"] != pairs["b"]].groupby("b").size().nlargest(2).index
    for person in (int(name[1:]) for name in often):
        changed = tables | {"visits": tables["visits"].copy()}
        changed["visits"].loc[person, "cost"] = 77.5
        other = network.evaluate(changed).individuals["pats"].to_pandas().set_index("id")["exposure(P)"]
        touched = set(seen.index[np.abs(seen - other) > 1e-9]) | {f"p{person}"}
        reached = max(reached, len(touched))
    assert reached <= rows
    assert reached >= rows - 1  # whose own row changes may not show


STEPS = [("dp(1.0, 1e-6)", (0.5, 5e-7)), ("dp(1.0)", (0.5, 0.0))]
IN_STEPS = "count(n, (patient(P), cost(P) > 3)). publish(n, n, pp(public)). step(1, publish(c)). step(2, publish(n)).\n"


@pytest.mark.parametrize(("promise", "shared"), STEPS)
def test_each_step_has_its_share_of_a_promise_about_people_in_several_rows(promise, shared):
    text = SOCIAL.replace("dp(1.0, 1e-6)", promise) + IN_STEPS
    assert make_plan(load(text, at=2), social(3)).promises[0].asked.stated == pytest.approx(shared)


@pytest.mark.slow
@pytest.mark.parametrize(("promise", "shared"), STEPS)
def test_steps_share_a_promise_about_people_in_several_rows(promise, shared, tmp_path):
    """Both steps are paid from one grant, and together they keep the whole promise for all rows of a person."""
    text = SOCIAL.replace("dp(1.0, 1e-6)", promise)
    text += IN_STEPS
    tables = social(3)
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    study, events = tmp_path / "study.pl", []
    study.write_text(text)
    for at in (1, 2):
        plan, _ = run_study(study, tmp_path, tmp_path / f"out{at}", tmp_path / "ledger.db", grant=at == 1, at=at)
        asked = plan.promises[0].asked
        assert asked.stated == pytest.approx(shared)
        assert all(check.ok for check in verify_folder(tmp_path / f"out{at}", study, tables))
        events += plan.events("pats", ("public",))
    whole = Pufferfish(1.0, 2 * shared[1], asked.dependence, adjacency=asked.adjacency)
    assert compose(events).implies(whole) is True


@pytest.mark.parametrize("rule", ["rows_per_person(visits, 1)", "rows_per_person(visits, 1, last(day))"])
def test_what_a_friend_holds_is_the_cell_that_counts_for_the_person(rule):
    """Two rows of one person, NaN and an absent cell: friends are summed from the cells people themselves have."""
    text = SOCIAL.replace("rows_per_person(visits, 1). missing(visits, never).", f"{rule}. missing(cost(P), 25).")
    tables, chance = social(2), np.random.default_rng(2)
    own = tables["visits"]
    twice = pd.concat([own, own.assign(cost=chance.integers(0, 100, len(own)).astype(float))], ignore_index=True)
    twice["day"] = np.repeat([1, 2], len(own))
    twice.loc[len(own) :, "cost"] = twice.loc[len(own) :, "cost"].where(np.arange(len(own)) % 5 > 0)
    days = pa.table({name: pa.array(twice[name], from_pandas=False) for name in twice})  # NaN stays NaN
    tables["fr"] = pd.concat([tables["fr"], pd.DataFrame({"a": ["p1"], "b": ["p0"]})])
    network = Network.from_spec(load(text), tables)
    for key in (b"one", b"other"):
        seen = evaluate(network, {"visits": days, "fr": tables["fr"]}, {"pats": key}).individuals["pats"].to_pandas()
        cells = seen.rename(columns={"id": "patient", "cost(P)": "cost"})[["patient", "cost"]]
        assert len(cells) == len(own)
        wanted = exposures({"visits": cells, "fr": tables["fr"]}).sort_index()
        assert np.allclose(seen.set_index("id")["exposure(P)"].sort_index(), wanted, atol=1e-6)
        if "last" in rule:
            last = twice[twice["day"] == 2].set_index("patient")["cost"].fillna(25.0)
            assert np.allclose(cells.set_index("patient")["cost"].sort_index(), last.sort_index())


def test_a_network_of_friends_is_planned_run_and_verified(tmp_path):
    tables = social(1)
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "study.pl").write_text(SOCIAL)
    plan = make_plan(tmp_path / "study.pl", tables)
    (draw,) = plan.draws
    pairs = tables["fr"].drop_duplicates()
    rows = 1 + pairs[pairs["a"] != pairs["b"]].groupby("b").size().max()
    width = 100 * pairs.groupby("a").size().max()
    assert draw.scale >= rows * width / 1.0 * 0.999 if draw.noise == "laplace" else draw.scale > rows * width
    run_plan(plan, tmp_path, tmp_path / "ledger.db", out=tmp_path / "out", grant=True)
    checks = verify_folder(tmp_path / "out", tmp_path / "study.pl", tables)
    assert all(check.ok for check in checks), checks
    told = " ".join(recipient_text(plan).split())
    assert f"(1, 1e-06)-DP for one whose data are part of at most {rows} rows" in told
    assert "This counts what others tell" not in told


@pytest.mark.parametrize("promise", ["dp(1.0)", "dp(1.0, 1e-6)"])
def test_what_everybody_together_learns_is_stated_for_all_rows_that_hold_somebody(tmp_path, promise):
    """By Laplace noise the loss of the most named friend is counted here, by Gaussian noise by its own curve."""
    tables = social(1)
    text = SOCIAL.replace("dp(1.0, 1e-6)", promise)
    text += (
        f"privacy_requirement(qq(other), pats, {promise}). mean(a, cost(P), patient(P)). publish(d, a, qq(other)).\n"
    )
    plan = make_plan(text, tables, sizes={"pats": 30})
    run_plan(plan, tables, None, out=tmp_path / "out")
    stated = Certificate.read(tmp_path / "out" / "certificate.json").guarantee
    pairs = tables["fr"].drop_duplicates()
    rows = 1 + int(pairs[pairs["a"] != pairs["b"]].groupby("b").size().max())
    each = plan.row_cost("pats")
    point = each if math.isfinite(each.epsilon(0.0)) else GaussianDP(each.mu * rows)
    true = point.epsilon(0.0) * rows if point is each else point.epsilon(1e-6)
    assert true <= stated.eps <= true * (1 + 1e-6)
    assert true > plan.promises[0].asked.eps  # two observers together learn more than each
    checks = verify_folder(tmp_path / "out")
    assert [check for check in checks if not check.ok] == []
    forged = json.loads((tmp_path / "out" / "certificate.json").read_text())
    forged["guarantee"]["eps"] /= rows
    assert "guarantee" in {check.field for check in verify(forged).failures}
    for told in (explain(plan, "analyst"), str(plan.cost("pats"))):
        assert f"for one whose data are part of at most {rows} rows" in " ".join(told.split())
    assert (plan.cost("pats").eps, plan.cost("pats").dependence) == (stated.eps, stated.dependence)


def test_the_second_end_of_a_relation_may_have_a_word_of_its_own():
    """`other(Q)`, of whom nothing but cost(Q) is asked, is a patient; a word that means something else stays."""
    text = SOCIAL.replace("column(fr, b, patient(Q))", "column(fr, b, other(Q))")
    (draw,), (same,) = make_plan(text, social(1)).draws, make_plan(SOCIAL, social(1)).draws
    assert draw.scale == same.scale
    known = text.replace("dataset(pats", "random(mood(Q)) :- other(Q). depends(mood(Q), [], 1). dataset(pats")
    assert "unknown-variable" in codes(known)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sum(L)", "max(L)", "only their sum or mean"),
        ("dataset(pats", "personal_rv(P, exposure(P)) :- patient(P). dataset(pats", "may be somebody else's"),
        ("dataset(pats", "adjacency(pats, add_remove). dataset(pats", "nobody may know who is there"),
        ("dp(1.0, 1e-6)", "gdp(1.0)", "is none for that"),
        ("range(cost(P), 0, 100).", "range(cost(P), [low, high]).", "has no range of numbers"),
        ("rows_per_person(visits, 1)", "rows_per_person(visits, 2)", "takes one cell of each"),
        ("rows_per_person(visits, 1)", "each_person(visits, mean)", "takes one cell of each"),
    ],
)
def test_what_friends_would_give_away_is_refused(old, new, said):
    with pytest.raises(SfumatoError, match=said):
        make_plan(SOCIAL.replace(old, new), social(1))


# ── a known law ──────────────────────────────────────────────────────────────────────────────────────────────────────

ILL = ("0.1", "0.15", "0.5", "0.15", "0.1")  # the chances of 0, 1, … 4 of four contacts being ill


def contacts() -> str:
    rows = []
    for values in itertools.product((0, 1), repeat=4):
        chance = Fraction(ILL[sum(values)]) / math.comb(4, sum(values))
        rows.append((values, chance))
    written = [float(chance) for _, chance in rows[1:]]
    first = 1 - sum(Fraction(repr(chance)) for chance in written)
    shown = [f"row([{', '.join(map(str, rows[0][0]))}], {float(first)!r})"]
    shown += [f"row([{', '.join(map(str, v))}], {c!r})" for (v, _), c in zip(rows[1:], written, strict=True)]
    return f"""
source(contacts, 'contacts.csv'). column(contacts, id, contact(C)). column(contacts, ill, ill(C)).
rows_per_person(contacts, 1). missing(contacts, never).
random(ill(C)) :- contact(C). range(ill(C), 0, 1).
dataset(circle, domain(C, contact(C))).
correlated(circle, known, joint([{", ".join(shown)}])).
privacy_requirement(secrecy(public), circle, pufferfish(1.0, 1e-6)).
prefer(ills, gaussian).
sum(ills, ill(C), contact(C)).
publish(ills, ills, secrecy(public)).
"""


def test_four_contacts_with_a_known_law(tmp_path):
    """W∞ = 2: the noise is half that of a group of four, and after one release the account is sealed."""
    text, table = contacts(), pd.DataFrame({"id": ["a", "b", "c", "d"], "ill": [0, 1, 1, 0]})
    plan = make_plan(text)
    (draw,) = plan.draws
    asked = plan.promises[0].asked
    assert asked.dependence.distance == 2.0
    assert draw.scale == pytest.approx(8.45, rel=1e-3)
    release = run_plan(plan, {"contacts": table}, tmp_path / "ledger.db", grant=True)
    certificate = release.certificates["circle/public"]
    assert verify(certificate).ok, verify(certificate).failures
    forged = json.loads(certificate.to_json())
    forged["guarantee"]["dependence"]["numbers"] = [0.0] * 16
    assert {check.field for check in verify(forged).failures} - {"digest"}
    quieter = json.loads(certificate.to_json())
    quieter["events"][0]["scale"] /= 2
    assert "guarantee" in {check.field for check in verify(quieter).failures}
    with pytest.raises(LedgerError, match="sealed"):
        run_plan(plan, {"contacts": table}, tmp_path / "ledger.db")
    with pytest.raises(DataError, match="speaks of 4 individuals"):
        run_plan(plan, {"contacts": table[:3]}, None, random_state=1)


@pytest.mark.parametrize("seed", range(3))
def test_no_known_law_loses_more_than_promised(seed):
    """The exact loss of a noisy weighted sum under random laws of three units, by enumeration."""
    chance = random.Random(seed)
    for _ in range(40):
        tables = [t for t in itertools.product((0, 1, 2), repeat=3) if chance.random() < 0.5]
        if len(tables) < 3:
            continue
        weights = [Fraction(chance.randint(1, 20)) for _ in tables]
        law = [(t, w / sum(weights)) for t, w in zip(tables, weights, strict=True)]
        numbers = [float(t[0] + 2 * t[1] - t[2]) for t in tables]
        known = Known.of(law, numbers, 1.0)
        scale = known.distance / 0.7 if known.distance else 1.0
        points = np.array(sorted(set(numbers)))
        for unit in range(3):
            densities = []
            for value in {t[unit] for t in tables}:
                own = [(n, float(w)) for (t, w), n in zip(law, numbers, strict=True) if t[unit] == value]
                total = sum(w for _, w in own)
                densities.append(sum(w / total * np.exp(-np.abs(points - n) / scale) for n, w in own))
            for one, other in itertools.combinations(densities, 2):
                assert np.abs(np.log(one / other)).max() <= 0.7 + 1e-9


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        # The study of the two coins: what one and what the other tells is nothing, and both tell everything.
        ("publish(ills", "count(n, (contact(C), ill(C) > 0.5)). publish(n, n, secrecy(public)). publish(ills", "once"),
        ("sum(ills,", "variance(ills,", "one number"),
        (
            "dataset(circle",
            "column(contacts, age, age(C)). random(age(C)) :- contact(C). range(age(C), 0, 9). dataset(circle",
            "one column",
        ),
    ],
)
def test_more_than_one_number_of_a_known_law_is_refused(old, new, said):
    with pytest.raises(SfumatoError, match=said):
        make_plan(contacts().replace(old, new))


def test_a_law_that_is_none_is_refused():
    wrong = contacts().replace("row([1, 1, 1, 1], 0.1)", "row([1, 1, 1, 1], 0.2)")
    assert "add up to 1" in " ".join(one.describe() for one in examine(wrong)[1])
