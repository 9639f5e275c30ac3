"""Tables, models and channels of a study: planned, drawn, certified, charged, and refused where they must be."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from run.publish_studies import (
    CHANNEL,
    CLASSIFIER,
    MEAN,
    NUMBERS,
    OUTLIERS,
    REGRESSION,
    SIZE,
    TABLE,
    features,
    people,
    study,
)
from sfumato.core import REPLACE_ONE, compose
from sfumato.errors import InputError, PlanError, UnprovedError
from sfumato.evidence import verify
from sfumato.evidence.explain import explain
from sfumato.learn.model_document import load_model
from sfumato.ledger.ledger import Ledger
from sfumato.mechanisms import TailoredNoise
from sfumato.plan.plan import Plan
from sfumato.questions.registry import WAYS
from sfumato.release import TableNoise
from sfumato.run import publish, publish_learning
from sfumato.run import study as running
from sfumato.run.generate import generated_tables
from sfumato.run.planning import make_plan
from sfumato.run.study import read_release, run_plan


def plan_of(metric: str, body: str, **options) -> Plan:
    return make_plan(study(metric, body), sizes={"people": SIZE}, **options)


def run(plan: Plan, tmp_path, **options):
    return run_plan(plan, {"patients": people()}, tmp_path / "ledger.db", out=tmp_path / "out", grant=True, **options)


def check_promises(plan: Plan, release) -> None:
    """Every certificate is verified independently, and each promise is what its certificate states."""
    for certificate in release.certificates.values():
        assert verify(certificate, plan=plan.to_dict()).failures == ()
        assert certificate.adjacency.unit == "patient"
    for promise in plan.promises:
        certificate = release.certificates[f"people/{' and '.join(promise.observers)}"]
        assert compose(certificate.events).implies(promise.asked) is True


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """One study with a statistic, a table, a classifier and a regression under one requirement."""
    folder = tmp_path_factory.mktemp("everything")
    plan = plan_of("dp(8, 0.000001)", MEAN + TABLE + CLASSIFIER + REGRESSION)
    return plan, run(plan, folder), folder


def test_one_requirement_pays_for_everything(everything):
    plan, release, folder = everything
    check_promises(plan, release)
    assert release["open"].num_rows == SIZE
    assert "portions" in release.certificate.proofs
    balance = Ledger(folder / "ledger.db").balance("people", "patient")
    assert balance.spent is not None
    assert balance.reserved is None
    (promise,) = plan.promises
    assert compose([balance.spent]).implies(promise.asked) is True


def test_the_release_reads_back_with_its_documents(everything):
    plan, release, folder = everything
    stored = read_release(folder / "out")
    assert {one.name: one.level for one in stored.published} == {
        "average": "aggregate",
        "open": "table",
        "triage": "classifier",
        "line": "regression",
    }
    for one in release.published:
        other = stored.publication((one.name, one.observer))
        assert other.values.equals(one.values)
        assert other.documents == one.documents
    assert not list((folder / "out").rglob("*.pkl"))
    again = run_plan(plan, {"patients": people()}, folder / "ledger.db", out=folder / "out", resume=True)
    assert again.plan_hash == release.plan_hash


def test_the_plan_reads_back_and_explains_itself(everything):
    plan, _, _ = everything
    assert Plan.from_json(plan.to_json()) == plan
    for reader in ("analyst", "lawyer", "subject", "public"):
        text = explain(plan, reader)
        assert "triage" in text
    analyst = explain(plan)
    assert "obfuscation" in analyst
    assert "no guarantee" in analyst


def test_the_table_names_nobody_and_hides_the_order(everything):
    _, release, folder = everything
    table = release["open"]
    assert table.column_names == ["age", "bmi", "sex", "ill"]
    noise = TableNoise.from_json((folder / "out/results/open.public.noise.json").read_text())
    assert noise.label == "ill"
    assert set(noise.responses) == {"sex", "ill"}
    # Means are what noise-aware readers use: within six deviations of the truth.
    law = noise.laws[noise.columns.index("age")]
    truth = people()["age"].to_numpy().mean()
    assert abs(table["age"].to_numpy().mean() - truth) < 6 * math.sqrt(law.variance() / SIZE)
    true_age = people()["age"].to_numpy()
    assert abs(np.corrcoef(table["age"].to_numpy(), true_age)[0, 1]) < 0.1  # rows cannot be put side by side


def test_the_predicted_error_of_a_table_is_that_of_its_noise(everything):
    plan, _, folder = everything
    noise = TableNoise.from_json((folder / "out/results/open.public.noise.json").read_text())
    seen = {one.node: one for one in plan.publication("open").seen}
    for name, law in zip(noise.columns, noise.laws, strict=True):
        assert seen[f"{name}(P)"].error == pytest.approx(law.variance())
    assert seen["ill(P)"].error == pytest.approx(1 - noise.responses["ill"].keep)


def test_a_classifier_beats_guessing_and_predicts_from_its_file(everything):
    _, release, folder = everything
    fresh = people(7)
    truth = fresh["ill"].to_numpy(zero_copy_only=False)
    model = load_model(folder / "out/results/triage.public.json")
    assert model.classes == ("no", "yes")
    share = np.mean(model.predict(features(fresh)) == truth)
    assert share > 0.8  # the best rule reaches about 0.92, guessing 0.5
    assert np.array_equal(release.model("triage").predict(features(fresh)), model.predict(features(fresh)))
    document = json.loads((folder / "out/results/triage.public.json").read_text())
    assert document["guarantee"].endswith("replacing one patient")


def test_a_regression_predicts_from_its_file(everything):
    _, release, _ = everything
    fresh = people(7)
    truth = fresh["bmi"].to_numpy()
    errors = release.model("line").predict(features(fresh)) - truth
    assert np.mean(errors**2) < np.var(truth)


@pytest.mark.paper("004", "§6.2", "run/publish_learning.py")
@pytest.mark.parametrize("strategy", ["objective", "svm", "kernel", "equilibrium", "points"])
@pytest.mark.by_day(1)
def test_every_classifier_can_be_preferred(strategy, tmp_path):
    plan = plan_of("dp(8, 0.000001)", CLASSIFIER + f"prefer(triage, [{strategy}]).\n")
    assert plan.acts[0].strategy == strategy
    release = run(plan, tmp_path)
    check_promises(plan, release)
    fresh = people(7, 500)
    share = np.mean(release.model("triage").predict(features(fresh)) == fresh["ill"].to_numpy(zero_copy_only=False))
    assert share > 0.75


def test_a_forbidden_classifier_is_not_chosen():
    everything_but = "".join(f"forbid(triage, {name}).\n" for name in ("objective", "svm", "equilibrium", "points"))
    assert plan_of("dp(2, 0.000001)", CLASSIFIER + everything_but).acts[0].strategy == "kernel"
    with pytest.raises(PlanError, match="forbidden by the study"):
        plan_of("dp(2, 0.000001)", CLASSIFIER + everything_but + "forbid(triage, kernel).\n")


def test_obfuscation_is_never_chosen():
    plan = plan_of("dp(2, 0.000001)", NUMBERS + "prefer(open, [obfuscation]).\n")
    assert plan.acts[0].strategy in ("gaussian", "laplace")
    with pytest.raises(PlanError, match="no guarantee"):
        plan_of("dp(2, 0.000001)", NUMBERS + "forbid(open, gaussian).\nforbid(open, laplace).\n")


@pytest.mark.parametrize("strategy", ["gaussian", "laplace"])
def test_both_tables_keep_the_promise(strategy, tmp_path):
    plan = plan_of("dp(4, 0.000001)", MEAN + TABLE + f"prefer(open, [{strategy}]).\n")
    assert plan.acts[0].strategy == strategy
    release = run(plan, tmp_path)
    check_promises(plan, release)
    (promise,) = plan.promises
    # The whole record is protected: label and categories have events of their own.
    kinds = [type(event).__name__ for event in plan.acts[0].events]
    assert kinds.count("RandomizedResponseEvent") == 2
    assert promise.kept.implies(promise.asked) is True


def test_outliers_and_a_channel(tmp_path):
    plan = plan_of("dp(8, 0.000001)", OUTLIERS + CHANNEL)
    release = run(plan, tmp_path)
    check_promises(plan, release)
    model = release.model("odd")
    usual, strange = model.decision_function({"age(P)": [55.0, 109.0], "bmi(P)": [29.0, 11.0]})
    assert usual > strange
    channel = TailoredNoise.read(tmp_path / "out/results/meter.public.channel.json")
    assert [use.name for use in channel.uses] == ["identity", "sqrt"]
    meter = release["meter"]
    assert meter.column_names == ["id", "age(P)"]
    assert np.isin(meter["age(P)"].to_numpy(), channel.outputs).all()
    found = channel.estimate(meter["age(P)"].to_numpy(), "identity")
    assert found.low <= people()["age"].to_numpy().mean() <= found.high


@pytest.mark.parametrize(("metric", "kind"), [("dp(6)", "PureDP"), ("gdp(3)", "GaussianDP"), ("zcdp(4)", "ZCDP")])
def test_promises_without_a_delta_are_kept_by_pure_acts(metric, kind, tmp_path):
    plan = plan_of(metric, MEAN + NUMBERS + CLASSIFIER)
    assert all(type(act.guarantee).__name__ == "PureDP" for act in plan.acts)
    release = run(plan, tmp_path)
    check_promises(plan, release)
    assert type(release.certificates["people/public"].guarantee).__name__ == kind


@pytest.mark.slow
def test_two_observers_who_collude(tmp_path):
    body = (
        "privacy_requirement(work(researcher), people, dp(6, 0.000001)).\n"
        + MEAN
        + NUMBERS
        + "publish(triage, classifier(ill(P), [age(P), bmi(P)]), work(researcher)).\n"
        + "publish(average, meanAge, work(researcher)).\ncollude([researcher, public]).\n"
    )
    plan = plan_of("dp(3, 0.000001)", body)
    release = run(plan, tmp_path)
    check_promises(plan, release)
    assert "people/public and researcher" in release.certificates


# ── what must fail ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_estimator_that_spends_more_than_its_act_is_caught(tmp_path, monkeypatch):
    """The events really drawn are composed again: a model fitted at 1.5 times its ε stays unpublished, and paid for."""
    plan = plan_of("dp(4, 0.000001)", CLASSIFIER)
    honest = publish_learning.LinearPublisher._made

    def greedy(self, schema, classes, guarantee, given, random_state):
        return honest(self, schema, classes, guarantee, {**given, "epsilon": 1.5 * given["epsilon"]}, random_state)

    monkeypatch.setattr(publish_learning.LinearPublisher, "_made", greedy)
    with pytest.raises(UnprovedError, match="more than"):
        run(plan, tmp_path)
    assert not (tmp_path / "out").exists()
    assert Ledger(tmp_path / "ledger.db").balance("people", "patient").reserved is not None


def test_an_interrupted_run_is_paid_once_and_can_be_finished(tmp_path, monkeypatch):
    class PowerCutError(Exception):
        pass

    def cut(*_):
        raise PowerCutError

    plan = plan_of("dp(4, 0.000001)", MEAN + NUMBERS + CLASSIFIER)
    with monkeypatch.context() as patched:
        patched.setattr(running, "_commit", cut)
        with pytest.raises(PowerCutError):
            run(plan, tmp_path)
    assert not (tmp_path / "out").exists()
    ledger = Ledger(tmp_path / "ledger.db")
    assert ledger.balance("people", "patient").reserved is not None
    with pytest.raises(InputError, match="resume=True"):  # what was drawn waits, and is not drawn again
        run(plan, tmp_path)
    check_promises(plan, run(plan, tmp_path, resume=True))
    assert ledger.balance("people", "patient").reserved is None


def test_a_table_planned_with_other_noise_than_is_drawn_is_caught(tmp_path):
    plan = plan_of("dp(4, 0.000001)", NUMBERS)
    (act,) = plan.acts
    wider = {**act.parameters, "epsilon": 0.9 * act.parameters["epsilon"]}
    if "deviation" in wider:
        wider["deviation"] = 0.9 * wider["deviation"]
    changed = dataclasses.replace(plan, acts=(dataclasses.replace(act, parameters=wider),))
    with pytest.raises(PlanError, match="does not follow from its study"):
        run(changed, tmp_path)


def test_an_act_under_another_unit_is_caught(tmp_path, monkeypatch):
    """What protects a record of some table is no promise to a patient."""
    plan = plan_of("dp(4, 0.000001)", CLASSIFIER)
    honest = publish_learning.ClassifierPublisher._made

    def for_records(self, schema, classes, guarantee, given, random_state):
        return honest(self, schema, classes, guarantee.under(REPLACE_ONE), given, random_state)

    monkeypatch.setattr(publish_learning.ClassifierPublisher, "_made", for_records)
    with pytest.raises(UnprovedError, match="costs"):
        run(plan, tmp_path)


def test_labels_come_from_the_declared_range_and_not_from_the_data(tmp_path):
    """Nobody is ill: the model still has both labels, and no message tells."""
    healthy = people().set_column(4, "ill", pa.array(["no"] * SIZE))
    plan = plan_of("dp(4, 0.000001)", CLASSIFIER)
    release = run_plan(plan, {"patients": healthy}, None)
    assert release.model("triage").classes == ("no", "yes")


def test_cells_that_make_no_sense_do_not_stop_a_run():
    table = people(size=50).to_pydict()
    table["age"][0], table["age"][1], table["bmi"][2] = float("nan"), None, float("inf")
    table["sex"][3], table["ill"][4] = None, "perhaps"
    plan = plan_of("dp(4, 0.000001)", TABLE + CLASSIFIER)
    release = run_plan(plan, {"patients": pa.table(table)}, None)
    assert release["open"].num_rows == 50


def test_no_individuals_cost_nothing(tmp_path):
    plan = plan_of("dp(4, 0.000001)", NUMBERS)
    with pytest.raises(InputError, match="no individuals"):
        run_plan(plan, {"patients": people(size=0)}, tmp_path / "ledger.db", out=tmp_path / "out")
    assert not (tmp_path / "ledger.db").exists() or not Ledger(tmp_path / "ledger.db").history()


def test_a_dry_run_repeats_itself_and_is_not_for_publication(tmp_path):
    plan = plan_of("dp(4, 0.000001)", MEAN + TABLE + CLASSIFIER)
    tables = generated_tables(plan.network.spec)
    first, second = (run_plan(plan, tables, None, random_state=0) for _ in range(2))
    for here, there in zip(first.published, second.published, strict=True):
        assert here.values.equals(there.values)
        assert here.documents == there.documents
    assert not first.certificate.publishable


BAD = {
    "a number as a label": ("publish(t, classifier(age(P), [bmi(P)]), openness(public)).\n", "use regression"),
    "a category as a target": ("publish(t, regression(ill(P), [bmi(P)]), openness(public)).\n", "use classifier"),
    "a category through a channel": ("publish(t, channel(sex(P), [identity]), openness(public)).\n", "is a category"),
    "a use that does not exist": ("publish(t, channel(age(P), [sideways]), openness(public)).\n", "no use"),
    "a use with a pole": ("publish(t, channel(age(P), [inverse]), openness(public)).\n", "no strategy is left"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused_with_a_way_out(name):
    body, words = BAD[name]
    with pytest.raises(PlanError, match=words):
        plan_of("dp(4, 0.000001)", body)


def test_every_strategy_is_registered_once():
    names = [(strategy.kind, strategy.name) for strategy in publish.STRATEGIES]
    assert len(set(names)) == len(names)
    assert {kind for kind, _ in names} == set(WAYS) - {"variable", "aggregate", "sample"}


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="not a published model"):
        load_model(path)
    parquet.write_table(people(size=3), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="model"):
        load_model(tmp_path / "x.parquet")
