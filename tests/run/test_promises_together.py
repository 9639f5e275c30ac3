"""Several promises about the same people: what a first grant is, and what all texts say that everything costs."""

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Categories, Interval, Ledger, Study, load, make_plan, run_plan
from sfumato.core import ApproxDP, PureDP
from sfumato.errors import UnknownDatasetError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.plan.whole import whole_cost
from sfumato.run.charges import charges_of, need_of

PEOPLE = 300
FRAME = pd.DataFrame(
    {"id": range(PEOPLE), "x": np.linspace(0, 10, PEOPLE), "c": ["a", "b"] * 150, "town": ["north"] * PEOPLE}
)
KINDS = ("groups", "mean", "many", "rows")


def promised(promises, kinds) -> Study:
    """One reader for each promise, who sees one kind of publication."""
    columns = {"x": Interval(0, 10), "c": Categories(["a", "b"]), "town": str}
    study = Study("several").table("t", FRAME, person="id", columns=columns, missing="never")
    for reader, (epsilon, delta) in enumerate(promises):
        study = study.promise(f"r{reader}", epsilon=epsilon, delta=delta)
    for reader, kind in enumerate(kinds):
        study = asked(study, kind, f"r{reader}")
    return study


def asked(study: Study, kind: str, to: str) -> Study:
    if kind == "groups":
        return study.groups("town", to=to, name=f"towns {to}")
    if kind == "rows":
        return study.synthetic(["x", "c"], to=to, name=f"rows {to}")
    for part in range(1 if kind == "mean" else 8):  # so many that Gaussian noise is less
        study = study.mean("x", where=f"x > {part}", to=to, name=f"mean {part} {to}")
    return study


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.by_day(3)
def test_a_first_grant_is_no_more_than_the_promises_together(seed, tmp_path):
    """Neither in ε nor in δ; it holds what is charged, and every text names the same point."""
    generator = np.random.default_rng(seed)
    readers = int(generator.integers(2, 4))
    promises = [
        (float(generator.choice([0.5, 1, 2])), float(generator.choice([1e-8, 1e-6, 3e-6, 1e-5])))
        for _ in range(readers)
    ]
    study = promised(promises, ["groups", *generator.choice(KINDS, readers - 1)])  # which have a δ that no ε spares
    plan = (study.together("r0", "r1") if seed % 4 == 3 else study).plan(size=PEOPLE).plan
    (dataset,) = plan.datasets
    need, most = need_of(plan, dataset), [math.fsum(column) for column in zip(*promises, strict=True)]
    if isinstance(need, PureDP | ApproxDP):
        epsilon, delta = need.stated
        assert epsilon <= most[0] * (1 + 1e-6)
        assert delta <= most[1]
        # A promise that everything keeps is granted as it is; what everything costs is told as it is, which is less.
        kept = need in [promise.asked for promise in plan.promises]
        assert kept or need.describe() in whole_cost(plan, dataset)
    ledger = Ledger(tmp_path / "ledger.db", beside=())
    ledger.grant(dataset, need)
    for name, costs, point in charges_of(plan, dataset, [(dataset, "person")]):
        ledger.check(name, costs, promised=point)


#: Promises of every kind; some state no (ε, δ).
PROMISES = ("dp(1)", "dp(1, 0.000001)", "gdp(1)", "zcdp(0.5)", "renyi_dp(2, 1)", "dp(2, 0.001)")
MIXED = """
source(t, 't.csv'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 110).
dataset(d, domain(P, p(P))). mean(m, x(P), p(P)). median(q, x(P), p(P)).
privacy_requirement(o(a), d, {}). privacy_requirement(o(b), d, {}). publish(x, m, o(a)). publish(y, q, o(b)).
"""


@pytest.mark.parametrize("pair", list(itertools.product(PROMISES, repeat=2)), ids=" beside ".join)
@pytest.mark.by_day(5)
def test_promises_of_any_two_kinds_are_granted_told_and_charged(pair, tmp_path):
    plan = make_plan(load(MIXED.format(*pair)), sizes={"d": 200})
    data = {"t": pa.table({"id": range(200), "x": [float(place % 110) for place in range(200)]})}
    ledger = Ledger(tmp_path / "ledger.db", beside=())
    run_plan(plan, data, ledger, grant=True)
    ((name, unit),) = ledger.datasets()
    need = need_of(plan, "d")
    assert ledger.balance(name, unit).granted == need
    assert plan.row_cost("d").implies(need)
    assert whole_cost(plan, "d")


def test_the_question_the_ledger_and_verify_tell_one_delta(tmp_path):
    """Two promises of 1e-6 need 2e-6, which is no one of them: the question says what it is made of."""
    plan = promised([(1, 1e-6), (4, 1e-6)], ["groups", "groups"]).plan(size=PEOPLE)
    with pytest.raises(UnknownDatasetError) as refused:
        plan.run(ledger=tmp_path / "ledger.db")
    words = str(refused.value)
    assert ", 2e-06)-DP under replacing one person. That is for all readers together" in words
    assert "the promises to each are (1, 1e-06)-DP and (4, 1e-06)-DP." in words
    plan.run(ledger=tmp_path / "ledger.db", grant=True, out=tmp_path / "out")
    granted = Ledger(tmp_path / "ledger.db").balance("t", "person").granted
    assert granted.stated[1] == 2e-6
    told = {check.field: check.sentence for check in verify_folder(tmp_path / "out")}
    assert told["certificate.json"].startswith(granted.describe())
    assert "to all readers together" in told["certificate.json"]
