"""Tables and models over several centres: every sum is that of one place, its noise too, and nothing else is drawn."""

from __future__ import annotations

import dataclasses
import itertools
import json
from contextlib import suppress
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from run.centre_studies import CENTRES, NAMES, dealt, study
from run.publish_studies import CLASSIFIER, MEAN, OUTLIERS, REGRESSION
from sfumato.centres import aggregate_in_memory, new_centres
from sfumato.centres.node import Offer, check_agreement
from sfumato.centres.outcome import Aggregate
from sfumato.core import compose
from sfumato.core.records import guarantee_from_dict
from sfumato.errors import PlanError, RefusedError, SfumatoError, UnprovedError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.learn.stepped import SteppedClassifier
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.plan.derive import derive
from sfumato.plan.plan import Plan
from sfumato.plan.sharing import Masks, NoiseAtEach
from sfumato.run.course import Course
from sfumato.run.over_centres import published_over_centres, sharing_of, study_round
from sfumato.run.planning import make_plan
from sfumato.run.publish import columns_for, strategy_of

PEOPLE = {"people": 600}
ROWS = "publish(rows, synthetic([age(P), sex(P), ill(P)], for(ill(P))), openness(public)).\n"
BOUGHT = "mean(weights, bmi(P), patient(P), by([sex(P)])). publish(weights, weights, openness(public)).\n"
SUMMED = {
    "sufficient": REGRESSION,
    "kernel": CLASSIFIER + "prefer(triage, [kernel]).\n",
    "equilibrium": CLASSIFIER + "prefer(triage, [equilibrium]).\n",
    "logistic_steps": CLASSIFIER + "prefer(triage, [logistic_steps]).\n",
    "hinge_steps": CLASSIFIER + "prefer(triage, [hinge_steps]).\n",
    "pairs": ROWS,
    "bounds": BOUGHT,
}


@cache
def planned(name: str, more: str = "", metric: str = "dp(2, 0.000001)") -> Plan:
    text = study(SUMMED[name], metric, CENTRES + more)
    without = text.replace("range(bmi(P), 10, 60).", "range(bmi(P), private(0.1)).")
    return make_plan(without if name == "bounds" else text, sizes=PEOPLE)


def values_of(plan: Plan, tables):
    return {name: plan.network.evaluate({"patients": table}) for name, table in tables.items()}


class Play:
    """A course of everybody, round after round, in memory."""

    def __init__(self, plan: Plan, tables=None) -> None:
        self.tables = dealt() if tables is None else tables
        self.members, self.keys = new_centres(NAMES)
        first = study_round(plan, self.members)
        self.leader, self.own = Course(plan, first), {name: Course(plan, first) for name in NAMES}
        self.values = values_of(plan, self.tables)

    def step(self, leaves=None):
        agreed = self.leader.round.fresh()
        cells = {name: self.own[name].cells(self.values[name]) for name in NAMES}
        found = aggregate_in_memory(agreed, cells, self.keys, leaves=leaves)
        for course in (self.leader, *self.own.values()):
            course.moved(found)
        return agreed, cells, found

    def step_of(self, names, other):
        """A round of which only `names` hear the end."""
        agreed = self.leader.round.fresh()
        cells = {name: self.own[name].cells(self.values[name]) for name in names}
        cells["south"] = other.cells(self.values["south"])
        return agreed, cells, aggregate_in_memory(agreed, cells, self.keys)

    def finish(self):
        while not self.leader.is_over:
            self.step()


#: Its points are searched for a while; the sums are those of kernels.
SLOW = pytest.mark.slow
ALL = [pytest.param(name, marks=SLOW) if name == "equilibrium" else name for name in SUMMED]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.by_day(1)
def test_the_parts_add_up_to_what_one_place_would_draw(name):
    """Number by number, in every round, before noise."""
    plan = planned(name)
    assert [act.strategy for act in plan.acts] == [name]
    play = Play(plan)
    whole = Course(plan, play.leader.first)
    everybody = plan.network.evaluate({"patients": pa.concat_tables(play.tables.values())})
    compared = 0
    while not play.leader.is_over and compared < 5:
        alone = whole.cells(everybody)
        agreed, cells, found = play.step()
        apart, alone = sum(cells.values()) * agreed.grids, alone * agreed.grids
        assert np.all(np.abs(apart - alone) <= 2 * agreed.grids + 1e-9 * np.abs(alone))
        assert np.abs(alone).max() > 100
        compared += 1
        whole.moved(found)
    assert compared >= 2


@pytest.mark.parametrize("whole", [NAMES[:1], NAMES], ids=["at one", "at all"])
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW) if name != "pairs" else name for name in SUMMED])
def test_the_type_of_a_centres_file_decides_nothing(name, whole):
    """Ages in whole numbers at some centres: rows were refused after everybody had paid."""
    tables = dealt()
    for centre in whole:
        held = tables[centre]
        ages = pa.array(np.asarray(held["age"]).round().astype(np.int64))
        tables[centre] = held.set_column(held.column_names.index("age"), "age", ages)
    play = Play(planned(name), tables)
    play.finish()
    assert all(one.values.num_rows for one in play.leader.performed.values())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW) if name in ("kernel", "equilibrium") else name for name in SUMMED]
)
@pytest.mark.by_day(1)
def test_the_noise_is_that_of_one_place(name):
    """All rounds together cost μ² as all draws of one party do, within 1e-6: no noise is wasted on being apart."""
    plan, play = planned(name), Play(planned(name))
    spent = 0.0
    while not play.leader.is_over:
        agreed, _, _ = play.step()
        spent += sum(event.mu**2 for cost in agreed.paid for event in cost.events)
    act = plan.acts[0]
    alone = dataclasses.replace(act, parameters={k: v for k, v in act.parameters.items() if k != "sharing"})
    (columns,) = columns_for(plan, plan.network.evaluate({"patients": pa.concat_tables(play.tables.values())}))
    drawn, whole = [], Gaussian.__call__

    def recorded(self, values):
        drawn.append(self)
        return whole(self, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gaussian, "__call__", recorded)
        strategy_of(act).perform(alone, columns.table, columns.identifiers, 0)
    assert spent == pytest.approx(sum(noise.event().mu ** 2 for noise in drawn), rel=1e-6)


def test_a_release_of_tables_models_and_numbers_verifies(tmp_path):
    text = study(REGRESSION + ROWS + MEAN, "dp(2, 0.000001)", CENTRES + "absences(1).\n")
    (tmp_path / "study.pl").write_text(text)
    plan = make_plan(tmp_path / "study.pl", sizes=PEOPLE)
    play = Play(plan)
    while not play.leader.is_over:
        play.step({"south": "masked"} if len(play.leader.opened) == 2 else None)
    first, *later = play.leader.opened
    made = published_over_centres(plan, first, {}, tmp_path / "out", performed=play.leader.performed, later=later)
    assert made["rows"].num_rows == 600
    checks = verify_folder(tmp_path / "out", tmp_path / "study.pl")
    assert all(check.ok for check in checks), [check for check in checks if not check.ok]
    for certificate in made.certificates.values():
        assert {"centre_acts", "distributed_noise", "secure_aggregation"} <= set(certificate.proofs)
        assert compose(certificate.events).implies(certificate.guarantee) is True


def test_a_method_that_asks_for_more_than_its_guarantee_is_stopped(monkeypatch):
    quiet = SteppedClassifier.step_noise

    def louder(self, width):
        noise = quiet(self, width)
        return dataclasses.replace(noise, scale=noise.scale * 0.9)

    plan = planned("logistic_steps")
    monkeypatch.setattr(SteppedClassifier, "step_noise", louder)
    play = Play(plan)
    with pytest.raises(UnprovedError, match="would cost more"):
        play.finish()


@pytest.mark.parametrize("stated", [-5e17, -1.0, 0.0, 1e8, 1e12, 1e17, 1e18])
@pytest.mark.parametrize("name", [name for name in SUMMED if name != "equilibrium"])
@pytest.mark.by_day(6)
def test_a_false_number_of_individuals_ends_a_course_in_words(name, stated):
    """Whoever states it: no memory is taken for people who do not exist."""
    plan = planned(name)
    course = Course(plan, study_round(plan, new_centres(NAMES)[0]))
    values = np.zeros(course.round.length)
    values[-1] = stated
    with pytest.raises(SfumatoError) if stated else suppress(SfumatoError):
        course.moved(Aggregate(course.round, NAMES, values))


def loosened(plan: Plan, factor: float) -> Plan:
    """What a coordinator may write into a plan: the same charges, and a guarantee so many times as large."""
    acts = []
    for act in plan.acts:
        record = act.guarantee.to_dict()
        larger = {key: value * factor for key, value in record.items() if key in ("eps", "delta", "mu", "rho")}
        acts.append(dataclasses.replace(act, guarantee=guarantee_from_dict({**record, **larger})))
    return dataclasses.replace(plan, acts=tuple(acts))


def opened_and_charged(plan: Plan) -> tuple[float, float]:
    """ε at δ = 10⁻⁶ of every sum that a course opens until it ends or is stopped, and of what is charged for it."""
    members, _ = new_centres(NAMES)
    course = Course(plan, study_round(plan, members))
    chance, opened = np.random.default_rng(1), []
    try:
        while not course.is_over:
            agreed = course.round
            opened += [event for paid in agreed.paid for event in paid.events] if agreed.stage else []
            values = np.abs(chance.normal(0, 50, agreed.length))
            values[-1] = 600.0
            course.moved(Aggregate(agreed, NAMES, values))
    except UnprovedError:
        pass
    charged = compose(plan.events("people")).epsilon(1e-6)
    return (compose(opened).epsilon(1e-6) if opened else 0.0), charged


@pytest.mark.parametrize("factor", [1.0, 1.2, 50.0])
@pytest.mark.parametrize("name", [name for name in SUMMED if name != "equilibrium"])
@pytest.mark.by_day(5)
def test_no_more_is_opened_than_was_charged_whatever_a_plan_says_of_guarantees(name, factor):
    plan = planned(name)
    opened, charged = opened_and_charged(loosened(plan, factor))
    assert opened <= charged * (1 + 1e-6)
    assert opened > 0 or factor > 1


def test_an_act_held_to_its_own_guarantee_alone_is_found(monkeypatch):
    """Planted: sums are opened as long as they keep what the plan calls the act's guarantee."""

    def by_word(act, noises):
        if compose([noise.event() for noise in noises]).implies(act.guarantee) is not True:
            raise UnprovedError("too much")

    monkeypatch.setattr(Course, "_check_cost", staticmethod(by_word))
    opened, charged = opened_and_charged(loosened(planned("bounds"), 50.0))
    assert opened > 10 * charged


def claiming(plan: Plan, colluders: int, centres: int = len(NAMES)) -> Plan:
    """The same noise, said to bear so many colluders among so many centres; the promises say what that costs."""
    claim = {"honest": centres - colluders, "centres": centres, "colluders": colluders}
    acts = [
        dataclasses.replace(act, events=tuple(dataclasses.replace(event, **claim) for event in act.events))
        for act in plan.acts
    ]
    forged = dataclasses.replace(plan, acts=tuple(acts))
    kept = [compose(forged.events(one.dataset, one.observers)) for one in forged.promises]
    promises = zip(forged.promises, kept, strict=True)
    return dataclasses.replace(forged, promises=tuple(dataclasses.replace(one, kept=cost) for one, cost in promises))


@pytest.mark.parametrize(
    "more", ["", "colluders(1).\n", "absences(1).\n"], ids=["all honest", "one colludes", "one away"]
)
@pytest.mark.parametrize("name", ["pairs", "bounds"])
@pytest.mark.by_day(4)
def test_no_plan_claims_more_colluders_than_its_shares_bear(name, more):
    """Certificates repeat what an act's events say: found by whoever derives the plan, published by nobody else."""
    plan = planned(name, more)
    (own,) = {(event.centres, event.honest, event.colluders) for act in plan.acts for event in act.events}
    for centres, colluders in itertools.product((2, 3, 4), (0, 1, 2)):
        if centres <= colluders or (centres, centres - colluders, colluders) == own:
            continue
        forged = claiming(plan, colluders, centres)
        assert [finding for finding in derive(forged, plan.network) if not finding.ok], (centres, colluders)
    with pytest.raises(UnprovedError, match="not what was planned"):
        Play(claiming(plan, 2)).finish()


@pytest.mark.parametrize("name", ["pairs", "bounds"])
def test_what_is_published_of_an_act_says_who_drew_it(name):
    plan = planned(name, "colluders(1).\n")
    play = Play(plan)
    play.finish()
    (done,) = play.leader.performed.values()
    assert {(event.centres, event.honest, event.colluders) for event in done.events} == {(3, 2, 1)}


def test_what_is_no_sum_or_follows_the_rows_never_leaves(monkeypatch):
    """A plan that names a strategy of one place, and a method whose noise depends on the rows at hand."""
    plan = planned("logistic_steps")
    act = dataclasses.replace(plan.acts[0], strategy="objective")
    play = Play(dataclasses.replace(plan, acts=(act,)))
    with pytest.raises(UnprovedError, match="not made from sums"):
        play.step()
    quiet = SteppedClassifier.fit

    def follows(self, table, labels):
        self.steps += len(labels) % 2
        return quiet(self, table, labels)

    monkeypatch.setattr(SteppedClassifier, "fit", follows)
    play = Play(plan)
    play.step()
    with pytest.raises(UnprovedError, match=r"depends on the rows|would cost more"):
        play.finish()


def test_another_history_is_another_round():
    """A coordinator that tells one centre other sums than the rest is refused by it, or by all others."""
    play = Play(planned("sufficient"))
    _, _, found = play.step()
    for one in play.own.values():
        assert one.round.description() == play.leader.round.description()
    told = Course(play.leader.plan, play.leader.first)
    told.moved(dataclasses.replace(found, values=found.values + 1))
    offered = Offer.of(play.leader.round.fresh())
    with pytest.raises(RefusedError, match="before"):
        check_agreement(offered.round, told.round, offered.certificates)


STEPS = ("keys", "shares", "masked", "agreed")


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=SLOW) for seed in range(2, 40))])
def test_any_schedule_of_a_course_ends_with_one_model_for_all_who_stayed(seed):
    """Drops at any step of any round, sums that one centre is never told: it is out from then on, nobody else is."""
    generator = np.random.default_rng(seed)
    play = Play(planned("logistic_steps", "absences(1).\n"))
    there = set(NAMES)
    while not play.leader.is_over:
        agreed = play.leader.round.fresh()
        leaves = {name: "keys" for name in NAMES if name not in there}
        if not leaves and generator.random() < 0.2:
            leaves = {str(generator.choice(NAMES)): str(generator.choice(STEPS))}
        untold = str(generator.choice(NAMES)) if generator.random() < 0.1 and len(there) == 3 else None
        cells = {name: play.own[name].cells(play.values[name]) for name in there}
        cells |= {name: np.zeros(agreed.length, dtype=np.int64) for name in NAMES if name not in there}
        found = aggregate_in_memory(agreed, cells, play.keys, leaves=leaves)
        play.leader.moved(found)
        for name in sorted(there):
            if name == untold or name not in found.included:
                there.discard(name)  # it does not know what was opened
            else:
                play.own[name].moved(found)
    (done,) = play.leader.performed.values()
    for name in NAMES:
        if name in there:
            assert play.own[name].performed.keys() == play.leader.performed.keys()
            (own,) = play.own[name].performed.values()
            assert own.values.equals(done.values)
        else:
            assert not play.own[name].performed or play.own[name].is_over
    assert compose(done.events).implies(play.leader.plan.acts[0].guarantee) is True


def test_who_missed_a_sum_is_in_no_later_round():
    play = Play(planned("sufficient"))
    play.step()
    behind = play.own.pop("south")
    _, _, found = play.step_of(("east", "north"), behind)
    play.leader.moved(found)
    offered = Offer.of(play.leader.round.fresh())
    with pytest.raises(RefusedError, match="stage"):
        check_agreement(offered.round, behind.round, offered.certificates)


def test_a_centre_without_anybody_takes_part_with_nothing():
    tables = dealt()
    tables["south"] = tables["south"].slice(0, 0)
    play = Play(planned("sufficient"), tables)
    play.finish()
    assert play.leader.performed


def test_an_act_whose_noise_is_shared_otherwise_is_found_out():
    plan = planned("sufficient", "absences(1).\n")
    act = plan.acts[0]
    assert sharing_of(plan) == Masks(3, 0, 1)
    for changed in (None, Masks(3).to_dict(), NoiseAtEach(3).to_dict()):
        edited = dataclasses.replace(act, parameters={**act.parameters, "sharing": changed})
        findings = list(derive(dataclasses.replace(plan, acts=(edited,)), plan.network))
        assert "sharing" in [finding.field for finding in findings if not finding.ok], changed


def test_noise_at_each_centre_is_a_way_too():
    plan = make_plan(study(REGRESSION + "prefer(line, each_centre).\n", "dp(2, 0.000001)"), sizes=PEOPLE)
    masks = make_plan(study(REGRESSION, "dp(2, 0.000001)"), sizes=PEOPLE)
    assert isinstance(sharing_of(plan), NoiseAtEach)
    assert plan.publication("line").error > masks.publication("line").error
    play = Play(plan)
    play.finish()
    (done,) = play.leader.performed.values()
    assert all(event.proof_id() == "gaussian" for event in done.events)


def test_tables_and_models_do_not_get_noise_for_every_individual():
    plan = make_plan(study(REGRESSION + "prefer(line, local).\n", "dp(2, 0.000001)"), sizes=PEOPLE)
    assert isinstance(sharing_of(plan), Masks)
    assert "which cannot be used here: noise at each individual" in plan.publication("line").reason


def test_what_is_no_sum_says_who_would_have_to_see_the_rows():
    with pytest.raises(PlanError, match=r"trusted\(Party\)"):
        make_plan(study(OUTLIERS), sizes=PEOPLE)
    with pytest.raises(PlanError, match="needs a δ"):
        make_plan(study(REGRESSION, "dp(2)"), sizes=PEOPLE)
    central = make_plan(study(CLASSIFIER, head=CENTRES + "trusted(registry).\n"), sizes=PEOPLE)
    assert sharing_of(central) is None
    assert "steps" not in central.acts[0].strategy


def test_the_mean_of_those_who_are_there_is_their_mean():
    """Who leaves before the target is looked at is missing in its sum and in its number of people alike."""
    plan = planned("sufficient", "absences(1).\n", "dp(200, 0.01)")
    play = Play(plan)
    play.step()
    play.step({"east": "masked"})
    play.finish()
    (done,) = play.leader.performed.values()
    there = pa.concat_tables([play.tables[name] for name in ("north", "south")])["bmi"].to_numpy()
    middle = json.loads(done.documents["json"])["rule"]["middle"]
    by_everybody = 35 + (there.mean() - 35) * len(there) / 600
    assert abs(middle - there.mean()) < 0.3 < abs(by_everybody - there.mean()) / 2


def bought(more: str = "", centres: str = CENTRES) -> str:
    text = study(BOUGHT, "dp(2, 0.000001)", centres + more)
    return text.replace("range(bmi(P), 10, 60).", "range(bmi(P), private(0.1)).")


def test_bounds_bought_over_centres_are_those_of_all_and_verify(tmp_path):
    """One centre leaves after the bounds were bought: the means are of those who stayed, clipped to the same bounds."""
    (tmp_path / "study.pl").write_text(bought("absences(1).\n"))
    plan = make_plan(tmp_path / "study.pl", sizes=PEOPLE)
    play = Play(plan)
    while not play.leader.is_over:
        play.step({"south": "masked"} if len(play.leader.opened) == 2 else None)
    first, *later = play.leader.opened
    made = published_over_centres(plan, first, {}, tmp_path / "out", performed=play.leader.performed, later=later)
    checks = verify_folder(tmp_path / "out", tmp_path / "study.pl")
    assert all(check.ok for check in checks), [check for check in checks if not check.ok]
    told = made["weights"].to_pandas()
    stayed = pa.concat_tables([play.tables[name] for name in ("east", "north")]).to_pandas()
    clipped = stayed["bmi"].clip(told["clipped_from"][0], told["clipped_to"][0]).groupby(stayed["sex"]).mean()
    off = (told["value"].to_numpy() - clipped.to_numpy()) / told["standard_error"].to_numpy()
    assert np.all(np.abs(off) < 6)
    assert (told["clipped_from"][0], told["clipped_to"][0]) == (16.0, 64.0)


@pytest.mark.slow
def test_intervals_behind_bounds_bought_over_centres_cover():
    plan, inside = planned("bounds"), []
    for seed in range(100):
        play = Play(plan, dealt(seed=seed))
        play.finish()
        (done,) = play.leader.performed.values()
        told = done.values.to_pandas()
        rows = pa.concat_tables(play.tables.values()).to_pandas()
        placed = rows["bmi"].clip(told["clipped_from"][0], told["clipped_to"][0])
        clipped = placed.groupby(rows["sex"]).mean().to_numpy()
        inside += list((told["low"] <= clipped) & (clipped <= told["high"]))
    assert 0.90 <= np.mean(inside) <= 0.99


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (bought("adjacency(people, add_remove).\n"), "how many individuals"),
        (bought().replace("dp(2, 0.000001)", "dp(2)"), "δ"),
        (study("groups(names, ill(P), patient(P)). publish(names, names, openness(public)).\n").replace(
            "range(ill(P), [no, yes]).", "range(ill(P), text)."), "List the values"),
    ],
)  # fmt: skip
def test_what_cannot_be_found_out_over_centres_is_told(text, said):
    with pytest.raises(PlanError, match=said):
        make_plan(text, sizes=PEOPLE)
