"""The second road: what core issues the verifier accepts, and what the verifier accepts core would have issued."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import random
from decimal import Decimal
from pathlib import Path

import pytest

import sfumato.core
from laws.second_road import MAKERS, PER_RECORD, Case, case, disagreement, forged, issues, proofs, refusal_of_many
from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    Event,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    PureDP,
    compose,
)
from sfumato.core.certificate import Certificate
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.events.disjoint import DisjointEvent
from sfumato.core.events.joint import JointObjectiveEvent
from sfumato.errors import PrivacyParameterError, UnprovedError
from sfumato.evidence import plain_sums, verify

losses = importlib.import_module("sfumato.evidence.losses")

FEW, MANY = 120, 2000


def disagreements(seeds: range) -> list[tuple[int, str]]:
    return [(seed, words) for seed in seeds if (words := disagreement(case(seed))) is not None]


def lives_here(kind: type) -> bool:
    """Not what the test of a recipe has added to the house for a moment."""
    return Path(inspect.getfile(kind)).is_relative_to(Path(sfumato.core.__file__).parents[1])


def every_event() -> set[type[Event]]:
    found, left = set(), [Event]
    while left:
        kinds = left.pop().__subclasses__()
        left += kinds
        found |= {kind for kind in kinds if not kind.__abstractmethods__ and lives_here(kind)}
    return found


def test_every_kind_of_event_is_tried():
    assert every_event() == set(MAKERS)


def note_of(event: Event) -> str:
    note = (Path(__file__).parents[2] / "docs" / "proofs" / f"{event.proof_id()}.md").read_text()
    return note.partition("## Adjacency\n")[2].split("##")[0]


@pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)
def test_what_is_proved_for_replacing_alone_refuses_adding(kind):
    """One answer for every record: whoever counts the answers sees that a record is missing, so δ would be 1."""
    alone = note_of(MAKERS[kind](random.Random(0), REPLACE_ONE)).startswith("Replace-one only")
    assert alone == (kind in PER_RECORD)
    for unit in ("record", "person"):
        make = lambda unit=unit: MAKERS[kind](random.Random(1), Adjacency(unit, "add-remove"))  # noqa: E731
        if alone:
            with pytest.raises(PrivacyParameterError, match="publishes something for every record"):
                make()
        else:
            make()


def test_core_issues_what_the_verifier_accepts():
    assert disagreements(range(FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_core_issues_what_the_verifier_accepts_at_length(part):
    assert disagreements(range(part * MANY // 20, (part + 1) * MANY // 20)) == []


def refusals_of_many(seeds: range) -> list[tuple[int, str]]:
    return [(seed, words) for seed in seeds if (words := refusal_of_many(seed)) is not None]


def test_honest_certificates_of_many_acts_are_accepted():
    assert refusals_of_many(range(345, 357)) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_honest_certificates_of_many_acts_are_accepted_at_length(part):
    assert refusals_of_many(range(50 * part, 50 * part + 50)) == []


@pytest.mark.parametrize("delta", [1e-8, 1e-6, 1e-5])
def test_an_act_that_fails_with_a_stated_delta_is_certified_beside_others(delta):
    """No ε has that δ, which is told as infinity; far out the verifier saw the δ alone and took it for kept."""
    portions = [[LaplaceEvent(1.0, 5.0, adjacency=REPLACE_ONE)]] * 2
    events = (
        DisjointEvent(0.2, delta, portions, adjacency=REPLACE_ONE),
        GaussianEvent(1.0, 2.0, adjacency=REPLACE_ONE),
    )
    own = Certificate.issue(subject="x", events=events, proofs=proofs(events))
    assert own.composed.epsilon(delta) == math.inf
    assert verify(own).failures == ()
    for place, pair in enumerate(own.claims.to_dict()["pairs"]):
        if math.isfinite(pair["epsilon"]):  # what has an ε is not told as if it had none
            record = json.loads(own.to_json())
            record["claims"]["pairs"][place]["epsilon"] = "infinity"
            assert f"claims.pairs[{place}].epsilon" in [check.field for check in verify(record).failures]


def leaking(chance: float) -> ChannelEvent:
    """A channel that publishes the value itself with this small chance."""
    total = 1 << 62
    leak = int(total * chance)
    often = (total - leak) * 3 // 4
    rest = total - leak - often
    return ChannelEvent([[often, rest, leak, 0], [rest, often, 0, leak]], at=1.0986122886681102, adjacency=REPLACE_ONE)


@pytest.mark.parametrize("chance", [1e-3, 1e-9, 1e-12, 1e-17])
def test_an_event_that_may_fail_supports_no_promise_without_failure(chance):
    event = leaking(chance)
    assert event.delta > 0
    for promise in (GaussianDP(50.0), ZCDP(500.0), PureDP(50.0), ApproxDP(50.0, 0.0)):
        of = Case((event,), compose([event]), "closed", 1.0, promise)
        assert issues(of.events, promise) is None
        assert "guarantee" in [check.field for check in verify(forged(of)).failures]


@pytest.mark.parametrize("count", [2, 3, 7, 26])
@pytest.mark.parametrize("total", [0.1, 1.0, 20.0])
def test_pure_publications_that_share_a_promise_verify(total, count):
    """Calibrated to equal shares of ε, as a study does it; no grid decides about the last digit."""
    scale = count / total * (1 + 1e-14)
    events = tuple(LaplaceEvent(1.0, math.nextafter(scale, math.inf), adjacency=REPLACE_ONE) for _ in range(count))
    certificate = issues(events, PureDP(total))
    assert certificate is not None
    assert verify(certificate).failures == ()
    below = Case(events, compose(events), "pure", 1 - 1e-12, PureDP(total * (1 - 1e-12)))
    assert issues(events, below.promise) is None
    assert not verify(forged(below)).ok


def test_what_is_not_implied_is_refused_by_issue_itself():
    for seed in range(12):
        of = case(seed)
        if of.cost.implies(of.promise) is not True:
            with pytest.raises(UnprovedError, match="Nothing was certified"):
                Certificate.issue(subject="x", events=of.events, proofs=[], guarantee=of.promise)


# --- the law would have found its relatives ---


def test_a_verifier_that_forgets_the_failure_of_an_act_is_found(monkeypatch):
    monkeypatch.setattr(losses.Part, "fails", property(lambda part: 0.0))
    event = leaking(1e-9)
    assert disagreement(Case((event,), compose([event]), "gaussian", 1.0, GaussianDP(50.0))) is not None


@pytest.mark.slow
def test_a_verifier_with_another_sum_is_found(monkeypatch):
    honest = plain_sums.pure_sum

    def generous(parts):
        plain = honest(parts)
        return plain and (plain[0] * (1 - Decimal("1e-3")), plain[1])

    verifier = importlib.import_module("sfumato.evidence.verify")
    for wrong in (generous, lambda parts: (plain := honest(parts)) and (plain[0] * (1 + Decimal("1e-9")), plain[1])):
        monkeypatch.setattr(verifier, "pure_sum", wrong)
        assert any(disagreement(of) for seed in range(240) if (of := case(seed)).kind == "pure")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(6)
def test_acts_that_are_nearly_alike_add_up_as_they_are(seed):
    """Values that differ in late digits are one law for a grid, and several numbers for a sum."""
    rng = random.Random(seed)
    scale = rng.uniform(0.5, 20.0)
    events = tuple(
        LaplaceEvent(1 + rng.choice([0.0, 5e-13, 5e-10, 9e-10]), scale, adjacency=REPLACE_ONE) for _ in range(4)
    )
    cost = compose(events)
    for promise in (PureDP(cost.epsilon(0.0)), ApproxDP(cost.epsilon(1e-9), 1e-9)):
        certificate = issues(events, promise)
        assert certificate is not None
        assert verify(certificate).failures == ()
    assert verify(Certificate.issue(subject="x", events=events, proofs=["laplace"])).failures == ()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.by_day(6)
def test_two_acts_of_different_sizes_verify_at_the_edge(seed):
    """The verifier's grid is finer than core's where a law is not a power of one other."""
    rng = random.Random(seed)
    events = tuple(LaplaceEvent(10 ** rng.uniform(-1.0, 0.7), 1.0, adjacency=REPLACE_ONE) for _ in range(2))
    for delta in (0.05, 1e-2, 1e-3, 1e-5):
        epsilon = compose(events).epsilon(delta)
        if epsilon > 0:
            certificate = issues(events, ApproxDP(epsilon, delta))
            assert certificate is None or verify(certificate).failures == ()


def test_the_second_road_is_above_the_exact_profile_of_two_laplace_acts():
    """Against an integral written down for two acts: the verifier errs upwards, and by less than a relative 1e-6."""
    from scipy.integrate import quad  # shares no code with either road

    one, other, epsilon = 3.858546890327606, 0.5680936572285482, 4.386638867406021

    def delta_of_other(threshold: float) -> float:
        return max(0.0, 1 - math.exp((threshold - other) / 2)) if threshold > -other else 1 - math.exp(threshold)

    smooth = quad(
        lambda loss: math.exp(-(one - loss) / 2) / 4 * delta_of_other(epsilon - loss),
        max(-one, epsilon - other), one, epsabs=1e-16, epsrel=1e-13,
    )[0]  # fmt: skip
    exact = delta_of_other(epsilon - one) / 2 + smooth
    laws = importlib.import_module("sfumato.evidence.laws")
    parts = tuple(losses.Part("laplace", Decimal(size)) for size in (other, one))
    assert exact <= laws.law_of(parts).delta(epsilon) <= exact * (1 + 1e-6)


def test_the_farthest_tails_of_joint_trainings_are_followed():
    """A δ of 1e-240 moves by 1e-9 of itself where a loss moves by 1e-12: both roads round by less."""
    rng = random.Random(7)
    for _ in range(60):
        facts = (rng.randint(2, 12), 1.0, 2.0, rng.uniform(50.0, 200.0), rng.uniform(20.0, 30.0), 0.01)
        free = JointObjectiveEvent("gaussian", *facts, 50.0, 0.999, adjacency=ADD_REMOVE)
        at = free.shift + rng.uniform(1.0, 2.0)
        stated = JointObjectiveEvent("gaussian", *facts, at, free.profile(at), adjacency=ADD_REMOVE)
        assert losses.event_parts([stated.to_dict()])
        too_little = {**stated.to_dict(), "delta": stated.delta * (1 - 1e-6)}
        with pytest.raises(ValueError, match="do not follow"):
            losses.event_parts([too_little])


def test_what_is_inside_an_act_rests_on_proofs_of_its_own():
    """Core asks for the same proofs as the verifier: neither issues what the other refuses."""
    event = MAKERS[DisjointEvent](random.Random(3), REPLACE_ONE)
    needed = losses.required_proofs([event.to_dict()])
    assert event.proof_ids() == needed
    for missing in needed:
        with pytest.raises(UnprovedError, match=missing):
            Certificate.issue(subject="portions", events=[event], proofs=sorted(needed - {missing}))
