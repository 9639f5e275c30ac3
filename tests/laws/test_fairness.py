"""Fair rules: the gap is kept as often as is said, the price is what is told, and edits are found."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laws.test_every_fit import Watch
from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    Adjacency,
    ApproxDP,
    Categories,
    GaussianEvent,
    Interval,
    LaplaceEvent,
    NormGammaEvent,
    Repeated,
    Schema,
)
from sfumato.core.events.disjoint import DisjointEvent
from sfumato.core.fairness import Fairness, MeasuredGap
from sfumato.core.records import event_from_dict
from sfumato.errors import DataError, InputError, OverspendError, PrivacyParameterError
from sfumato.evidence import verify
from sfumato.evidence.audit import audit
from sfumato.evidence.fairness import verify_fairness
from sfumato.learn import (
    EquilibriumClassifier,
    FairClassifier,
    KernelMeanClassifier,
    PrivateAdditiveClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    PrivateSVC,
)
from sfumato.learn.fair import portions_of
from sfumato.ledger import Ledger
from sfumato.mechanisms import Gaussian

WISH = {"measure": "demographic_parity", "gap": 0.1, "groups": ["f", "m"], "on": "rows", "confidence": 0.95}
MEASURES = ("demographic_parity", "equal_opportunity", "equalized_odds")


def asked(measure="demographic_parity", gap=0.05, where="rows", confidence=0.9, groups=("f", "m")):
    return Fairness(measure, gap, groups, where, confidence)


def draws(wish: Fairness, chances: np.ndarray, people: int, trials: int, sigma: float, seed: int):
    """The true gap of a rule (of rows, or of the population) and what is measured of it, many times."""
    chance = np.random.default_rng(seed)
    for _ in range(trials):
        sizes = chance.multinomial(people, np.full(wish.cells, 1 / wish.cells))
        yeses = chance.binomial(sizes, chances)
        noise = chance.normal(0, sigma, 2 * wish.cells)
        measured = MeasuredGap.of(wish, np.concatenate([yeses - sizes / 2, sizes / 2]) + noise, sigma)
        means = yeses / np.maximum(sizes, 1) if wish.where == "rows" else chances
        yield max(abs(means[a] - means[b]) for a, b in wish.pairs), measured


@pytest.mark.parametrize("where", ["rows", "population"])
@pytest.mark.parametrize("measure", MEASURES)
def test_the_gap_is_kept_as_often_as_is_said(measure, where):
    """400 draws at 90 %: one in ten may fail, and six deviations of counting; without the allowance most would."""
    wish = asked(measure, 0.05, where, 0.9)
    chances = np.linspace(0.4, 0.7, wish.cells)
    broken = sum(m.share * true > wish.gap for true, m in draws(wish, chances, 600, 400, 4.0, 1))
    assert broken <= 400 * 0.1 + 6 * math.sqrt(400 * 0.09)


def without_the_noise_term(measured: MeasuredGap) -> float:
    wish = measured.asked
    found = [abs(measured.sums[a] / measured.sizes[a] - measured.sums[b] / measured.sizes[b]) for a, b in wish.pairs]
    return min(1.0, wish.gap / max(found))


def test_dropping_the_noise_term_is_caught():
    wish = asked(gap=0.05, confidence=0.95)
    found = list(draws(wish, np.array([0.4, 0.6]), 300, 300, 4.0, 2))
    assert sum(without_the_noise_term(m) * true > wish.gap for true, m in found) > 60
    assert sum(m.share * true > wish.gap for true, m in found) < 30


def test_an_empty_group_leaves_a_constant_but_for_the_gap():
    wish = asked(gap=0.05, groups=("f", "m", "x"))
    measured = MeasuredGap(wish, (10.0, 5.0, 0.3), (400.0, 500.0, -0.7), 4.0)
    assert measured.bound == 1.0
    assert measured.share == pytest.approx(0.05)
    assert "nearly constant" in measured.price()


def test_the_share_is_never_below_the_gap_and_the_price_is_told():
    chance = np.random.default_rng(3)
    for _ in range(100):
        wish = asked(gap=float(chance.uniform(0.01, 0.5)), where=("rows", "population")[chance.integers(2)])
        numbers = chance.normal(0, 300, 2), np.abs(chance.normal(0, 600, 2))
        measured = MeasuredGap(wish, tuple(numbers[0]), tuple(numbers[1]), float(chance.uniform(0.5, 20)))
        assert wish.gap * (1 - 1e-9) <= measured.share <= 1
        assert measured.bound * measured.share <= wish.gap
        told = measured.to_dict()
        assert all(check.ok for check in verify_fairness(told))
        for edit in ({"share": min(1.0, told["share"] * 1.01 + 1e-3)}, {"bound": told["bound"] * 0.9}, {"scale": -1}):
            ok = all(check.ok for check in verify_fairness({**told, **edit}))
            assert not ok or measured.bound * edit.get("share", 0) <= wish.gap


def test_no_rule_stays_whole_in_small_groups():
    """At a gap of 0.05 and 95 % sampling alone forbids it below 1,750 people a group."""
    wish = asked(gap=0.05, where="population", confidence=0.95)
    assert wish.share_for(0.0, 1700, 0.0) < 1
    assert wish.share_for(0.0, 1800, 0.0) == 1


def test_one_person_moves_the_measurement_by_one():
    """Every pair of neighbours of a small table, for every measure: never above 1, and reached."""
    for measure in MEASURES:
        wish, largest = asked(measure), 0.0
        persons = list(itertools.product((0.0, 1.0), ("f", "m", "other"), (False, True)))
        told = [
            FairClassifier._sums(wish, np.array([r]), np.array([who]), np.array([label])) for r, who, label in persons
        ]
        for one, other in itertools.combinations(told, 2):
            largest = max(largest, float(np.linalg.norm(one - other)))
        assert largest == pytest.approx(1.0)


def test_an_attacker_does_not_beat_the_measurement():
    promise = ApproxDP(1.0, 1e-3)
    noise = Gaussian.for_guarantee(promise, 1.0, REPLACE_ONE, dimension=4)
    pair = (np.array([0.5, 0.0, 0.5, 0.0]), np.array([0.0, -0.5, 0.0, 0.5]))
    assert not audit(noise, pair, trials=20_000, confidence=0.999, claim=promise, delta=1e-3).refuted
    quiet = Gaussian(noise.scale * 0.4, 1.0, REPLACE_ONE, 4)
    assert audit(quiet, pair, trials=20_000, confidence=0.999, claim=promise, delta=1e-3).refuted


# ── portions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_person_stays_in_their_portion():
    names = [f"p{number}" for number in range(500)]
    a, b = portions_of(names, 0.4)
    assert len(b) == 200
    assert not set(a) & set(b)
    shuffled = names[::-1]
    other = portions_of(shuffled, 0.4)[1]
    assert {names[place] for place in b} == {shuffled[place] for place in other}


def test_the_costliest_portion_is_charged_and_nothing_cheaper():
    quiet, loud = LaplaceEvent(1.0, 1.0, adjacency=REPLACE_ONE), GaussianEvent(1.0, 4.5, adjacency=REPLACE_ONE)
    both = DisjointEvent(1.0, 1e-6, [[quiet], [loud]], adjacency=REPLACE_ONE)
    assert event_from_dict(json.loads(json.dumps(both.to_dict()))) == both
    assert hash(both)
    with pytest.raises(PrivacyParameterError, match="Portion 2 costs more"):
        DisjointEvent(1.0, 1e-6, [[quiet], [GaussianEvent(1.0, 4.0, adjacency=REPLACE_ONE)]], adjacency=REPLACE_ONE)
    with pytest.raises(PrivacyParameterError, match="Portion 1 costs more"):
        DisjointEvent(1.0, 1e-6, [[quiet, quiet], [loud]], adjacency=REPLACE_ONE)


# ── the estimator ────────────────────────────────────────────────────────────────────────────────────────────────────


def people(rows: int, seed: int = 0):
    chance = np.random.default_rng(seed)
    who = chance.choice(["f", "m"], rows)
    X = chance.uniform(-1, 1, (rows, 2)) + 0.4 * (who == "m")[:, None] * np.array([1, 0])
    y = np.where(X[:, 0] + 0.3 * chance.normal(size=rows) > 0.2, "yes", "no")
    return X, y, who


def base(**more):
    given = {"epsilon": 2.0, "delta": 1e-6, "norm": 2.0, "classes": ["no", "yes"], "random_state": 1}
    return PrivateLogisticRegression(**{**given, **more})


@pytest.mark.paper("002", "§3.5", "learn/fair.py")
@pytest.mark.parametrize("measure", MEASURES)
def test_a_fitted_rule_is_fair_and_its_certificate_holds(measure):
    X, y, who = people(8000)
    fair = FairClassifier(base(), measure=measure, gap=0.1, groups=["f", "m"], on="rows", confidence=0.95).fit(
        X, y, who=who
    )
    assert verify(fair.certificate_).ok, verify(fair.certificate_).failures
    events = [event.to_dict() for event in fair.certificate_.events]
    assert all(check.ok for check in verify_fairness(fair.measured_.to_dict(), events))
    quieter = {**fair.measured_.to_dict(), "scale": fair.measured_.scale / 2}
    assert not all(check.ok for check in verify_fairness(quieter, events))
    fresh, truth, groups = people(20_000, seed=7)
    chances, yes = fair.chances(fresh), truth == "yes"
    cells = {"demographic_parity": [yes | ~yes], "equal_opportunity": [yes], "equalized_odds": [yes, ~yes]}[measure]
    gaps = [abs(chances[c & (groups == "f")].mean() - chances[c & (groups == "m")].mean()) for c in cells]
    assert max(gaps) < 0.1 + 0.03
    own = (fair.base_.predict(fresh) == "yes").astype(float)
    bare = [abs(own[c & (groups == "f")].mean() - own[c & (groups == "m")].mean()) for c in cells]
    if measure == "demographic_parity":
        assert max(bare) > 0.15  # the base rule is not
        assert 0.3 < fair.measured_.share < 1
    assert set(fair.predict(fresh, random_state=0)) <= {"no", "yes"}
    assert str(round(100 * fair.measured_.share, 1))[:2] in fair.price_


def test_what_the_rule_was_learned_on_is_never_measured():
    X, y, who = people(400)
    fair = FairClassifier(base(), **{**WISH, "gap": 0.2}).fit(X, y, who=who)
    a, b = portions_of(range(400), 0.5)
    changed = y.copy()
    changed[b] = np.where(changed[b] == "yes", "no", "yes")
    again = FairClassifier(base(), **{**WISH, "gap": 0.2}).fit(X, changed, who=who)
    assert np.array_equal(fair.base_.coef_, again.base_.coef_)
    assert len(a) + len(b) == 400


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"gap": 0.0}, PrivacyParameterError),
        ({"groups": ["f"]}, PrivacyParameterError),
        ({"measure": "kindness"}, PrivacyParameterError),
        ({"base": base(delta=0.0)}, InputError),
        ({"base": base(classes=None)}, InputError),
        ({"portion": 1.0}, InputError),
    ],
)
def test_what_cannot_be_fair_is_refused(change, error):
    X, y, who = people(100)
    given = {"base": base(), **WISH, **change}
    with pytest.raises(error):
        FairClassifier(given.pop("base"), **given).fit(X, y, who=who)


def test_rows_must_agree():
    X, y, who = people(100)
    with pytest.raises(DataError):
        FairClassifier(base(), **WISH).fit(X, y, who=who[:50])


# ── one adjacency for both portions ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["output", "objective", "kernel", "equilibrium"])
@pytest.mark.parametrize("who", [ADD_REMOVE, Adjacency("visit", "replace-one")])
def test_a_base_that_protects_otherwise_is_refused_before_it_draws(kind, who, monkeypatch):
    """Its noise was measured for another change: relabelled, half of what is needed would have verified."""
    base = {
        "output": lambda: PrivateLogisticRegression(1.0, 1e-6, method="output", adjacency=who, public_size=500),
        "objective": lambda: PrivateLogisticRegression(1.0, 1e-6, adjacency=who, public_size=500),
        "kernel": lambda: KernelMeanClassifier(1.0, 1e-6, adjacency=who),
        "equilibrium": lambda: EquilibriumClassifier(1.0, 1e-6, adjacency=who),
    }[kind]()
    monkeypatch.setattr(type(base), "_fit", lambda *_: pytest.fail("it drew"))
    fair = FairClassifier(
        base, measure="demographic_parity", gap=0.1, groups=["f", "m"], labels=["n", "y"], on="rows", confidence=0.95
    )
    with pytest.raises(InputError, match="Nothing was drawn"):
        fair.fit(np.zeros((8, 2)), ["n", "y"] * 4, who=["f", "m"] * 4)


@pytest.mark.parametrize("stated", [ADD_REMOVE, Adjacency("visit", "replace-one")])
@pytest.mark.parametrize("make", [GaussianEvent, LaplaceEvent, NormGammaEvent])
def test_an_act_of_a_portion_is_not_relabelled(make, stated):
    own = make(1.0, 50.0, adjacency=REPLACE_ONE)
    for other in (make(1.0, 50.0, adjacency=stated), Repeated(make(1.0, 50.0, adjacency=stated), 2)):
        with pytest.raises(PrivacyParameterError, match="says nothing of the other"):
            DisjointEvent(1.0, 1e-6, [[own], [other]], adjacency=REPLACE_ONE)


def test_one_odd_label_or_name_does_not_decide_how_others_are_read():
    generator = np.random.default_rng(2)
    rows = generator.uniform(-1, 1, (60, 2))
    labels, who = (rows[:, 0] > 0).astype(int).tolist(), generator.integers(1, 3, 60).tolist()
    _, measured = portions_of(range(60), 0.5)
    place = int(measured[0])
    told = []
    for odd in (labels[place], None, "x", 0.5, float("nan")):
        changed = list(labels)
        changed[place] = odd
        base = PrivateLogisticRegression(1.0, 1e-6, norm=1.5, classes=[0, 1], random_state=0)
        fair = FairClassifier(base, measure="equalized_odds", gap=0.1, groups=[1, 2], on="rows", confidence=0.95).fit(
            rows, changed, who=who, names=["\ud800", *range(1, 60)] if odd == "x" else None
        )
        told.append((fair.measured_.sums, fair.measured_.sizes))
    scale = np.array(told)
    assert np.abs(scale[[1, 3, 4]] - scale[0]).max() <= 1 + 1e-6


ODD: tuple[Any, ...] = (None, float("nan"), "x", [1], {}, pd.NA, np.array([1, 2]), 10**400, True, object(), b"\xff")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("column", ["a", "c", "label", "who"])
@pytest.mark.by_day(3)
def test_no_cell_of_a_measured_person_ends_a_fit(column: str):
    """A word in a column of numbers, or a label that cannot be compared, ended it; the second after noise was drawn."""
    chance = np.random.default_rng(4)
    cells: dict[str, list[Any]] = {"a": chance.uniform(-1, 1, 60).tolist(), "c": chance.integers(1, 3, 60).tolist()}
    cells["label"] = ["yes" if one > 0 else "no" for one in cells["a"]]
    cells["who"] = chance.choice(["f", "m"], 60).tolist()
    schema = Schema({"a": Interval(-1, 1, null=0.0), "c": Categories([1, 2], unknown=1, null=1)})
    place, found = int(portions_of(range(60), 0.5)[1][0]), []
    for odd in (cells[column][place], *ODD):
        changed = {**cells, column: [odd if at == place else cell for at, cell in enumerate(cells[column])]}
        fair = FairClassifier(base(schema=schema), **{**WISH, "measure": "equalized_odds"})
        fair.fit({name: changed[name] for name in "ac"}, changed["label"], who=changed["who"])
        found.append([*fair.measured_.sums, *fair.measured_.sizes])
    assert np.abs(np.array(found) - found[0]).max() <= 1 + 1e-6


@pytest.mark.filterwarnings("ignore")
def test_rows_that_the_base_refuses_reserve_nothing(tmp_path):
    X, y, who = people(200)
    place = int(portions_of(range(200), 0.5)[0][0])
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("d", ApproxDP(2.0, 1e-6, adjacency=REPLACE_ONE))
    labels = [None if at == place else cell for at, cell in enumerate(y.tolist())]
    for _ in range(3):
        with pytest.raises(DataError):
            FairClassifier(base(), **WISH).fit(X, labels, who=who, ledger=ledger, dataset="d")
    FairClassifier(base(), **WISH).fit(X, y, who=who, ledger=ledger, dataset="d")
    with pytest.raises(OverspendError):
        FairClassifier(base(), **WISH).fit(X, y, who=who, ledger=ledger, dataset="d")


@pytest.mark.filterwarnings("ignore::sfumato.learn.lineage.PrivacyLeakWarning")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, DataError])
@pytest.mark.parametrize(
    ("where", "charged"),
    [("training", True), ("measuring", True), ("committing", True), ("training", False), ("measuring", False)],
)
def test_what_breaks_a_fit_leaves_the_last_rule_and_says_what_stays(kind, where, charged, monkeypatch):
    X, y, who = people(120)
    first = FairClassifier(base(), **WISH).fit(X, y, who=who)
    before, watch = dict(vars(first)), Watch()

    def broken(*_: Any, **__: Any) -> Any:
        raise kind("No. Nothing was spent.")

    if where == "training":
        monkeypatch.setattr("sfumato.learn.base.minimise_together", broken)
    elif where == "measuring":
        monkeypatch.setattr(MeasuredGap, "of", broken)
    else:
        monkeypatch.setattr(watch, "commit", broken)
    with pytest.raises(kind) as found:
        first.fit(X, y, who=who, **({"ledger": watch, "dataset": "d"} if charged else {}))
    said = " ".join([str(found.value), *getattr(found.value, "__notes__", [])])
    assert said.count("for 'd' before that and stays charged") == charged
    assert kind is not DataError or ("Nothing was spent" in said) is not charged
    assert watch.seen == ["reserve"] * charged
    assert vars(first).keys() == before.keys()
    assert all(vars(first)[name] is before[name] for name in before)


@pytest.mark.filterwarnings("ignore::sfumato.learn.lineage.PrivacyLeakWarning")
def test_a_second_fit_states_the_cost_of_both():
    generator = np.random.default_rng(1)
    rows, who = generator.uniform(-1, 1, (200, 2)), generator.choice(["f", "m"], 200)
    base = PrivateLogisticRegression(1.0, 1e-6, norm=1.5, classes=[False, True])
    fair = FairClassifier(base, **WISH)
    told = [fair.fit(rows, rows[:, 0] > 0, who=who).guarantee_ for _ in range(2)]
    assert told == [ApproxDP(1.0, 1e-6, adjacency=REPLACE_ONE), ApproxDP(2.0, 2e-6, adjacency=REPLACE_ONE)]
    assert verify(fair.certificate_).ok


BASES = (
    PrivateLogisticRegression,
    PrivateSVC,
    PrivateClassifier,
    PrivateAdditiveClassifier,
    KernelMeanClassifier,
    EquilibriumClassifier,
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("odd", [float("nan"), float("inf"), None, "abc", 1e308])
@pytest.mark.by_day(8)
def test_a_cell_ends_a_fit_before_anything_is_reserved_or_not_at_all(kind, odd, tmp_path):
    """In either portion: what ended it after the rule was drawn took the budget and told of the cell."""
    X, y, who = people(120)
    for part, places in enumerate(portions_of(range(120), 0.5)):
        ledger = Ledger(tmp_path / f"{part}.db")
        ledger.grant("d", ApproxDP(2.0, 1e-6, adjacency=REPLACE_ONE))
        rows = X.astype(object) if isinstance(odd, str | None) else X.copy()
        rows[places[0], 0] = odd
        bound = {"norm": 1.5} if "norm" in kind(1.0, 1e-6).get_params() else {}
        if kind is PrivateAdditiveClassifier:
            bound, rows = {"schema": Schema({"a": Interval(-2, 2), "b": Interval(-2, 2)})}, pd.DataFrame(rows)
            rows.columns = ["a", "b"]
        fair = FairClassifier(kind(2.0, 1e-6, classes=["no", "yes"], **bound), **WISH)
        try:
            fair.fit(rows, y, who=who, ledger=ledger, dataset="d")
        except DataError:
            assert ledger.balance("d").reserved is None
            assert ledger.balance("d").spent is None
        else:
            assert ledger.balance("d").spent is not None


def test_any_kind_of_seed_seeds_the_measurement_too():
    X, y, who = people(200)
    for seed in (3, np.random.default_rng(3), np.random.RandomState(3)):
        model = PrivateLogisticRegression(1.0, 1e-6, norm=1.5, classes=["no", "yes"], random_state=seed)
        assert not FairClassifier(model, **WISH).fit(X, y, who=who).certificate_.publishable
