"""Random events and promises, and what the two roads say of them: the issuer (core) and the verifier (evidence).

In:   a seed.
Out:  Case: events of one adjacency, what they cost by core, a promise at, just above or just below its edge.
Not here: the law itself (tests/laws/test_second_road.py).
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.core import (
    ADD_REMOVE,
    REPLACE_ONE,
    ZCDP,
    Adjacency,
    ApproxDP,
    BoxEvent,
    Event,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NormGammaEvent,
    PureDP,
    RandomizedResponseEvent,
    RenyiDP,
    Repeated,
    SelectionEvent,
    compose,
)
from sfumato.core.certificate import Certificate, Claims
from sfumato.core.compose import ComposedDP
from sfumato.core.events.centre import SharedGaussianEvent, SharedLaplaceEvent
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.events.disjoint import DisjointEvent
from sfumato.core.events.groups import GroupCountsEvent
from sfumato.core.events.joint import JointObjectiveEvent
from sfumato.core.events.learning import ObjectiveDP, ObjectivePerturbationEvent
from sfumato.core.events.linear import LinearGaussianEvent
from sfumato.core.events.quantiles import QuantilesEvent
from sfumato.core.events.together import TogetherEvent
from sfumato.core.guarantee import Guarantee, mu_of_pure
from sfumato.errors import UnprovedError
from sfumato.evidence import verify
from sfumato.mechanisms.group_counts import naming_weights

Make = Callable[[random.Random, Adjacency], Event]


def _scale(rng: random.Random) -> float:
    return math.exp(rng.uniform(math.log(0.3), math.log(200.0)))


def _grid(rng: random.Random) -> float:
    return rng.choice([0.0, 2.0**-30, 0.01])


def _additive(kind: type) -> Make:
    return lambda rng, who: kind(1.0, _scale(rng), _grid(rng), rng.randint(1, 4), adjacency=who)


def _shared(kind: type) -> Make:
    def make(rng: random.Random, who: Adjacency) -> Event:
        centres = rng.randint(2, 6)
        return kind(1.0, _scale(rng), 2.0**-30, rng.randint(1, 3), centres=centres, honest=rng.randint(1, centres - 1),
                    colluders=0, adjacency=who)  # fmt: skip

    return make


def _answers(rng: random.Random, who: Adjacency) -> Event:
    move = rng.randint(1, 40)
    return RandomizedResponseEvent(rng.randint(2, 9), move + rng.randint(1, 80), move, adjacency=who)


def _objective(rng: random.Random, who: Adjacency) -> Event:
    noise = rng.choice(["gaussian", "gaussian", "norm-gamma", "laplace"])
    return ObjectivePerturbationEvent(noise, 1.0, 0.25, rng.uniform(1.0, 50.0), _scale(rng), adjacency=who)


def _joint(rng: random.Random, who: Adjacency) -> Event:
    facts = (rng.randint(2, 12), 1.0, rng.choice([1.0, 2.0]), rng.uniform(1.0, 200.0), rng.uniform(2.0, 30.0))
    if rng.random() < 0.5:
        return JointObjectiveEvent(rng.choice(["norm-gamma", "laplace"]), *facts, adjacency=who)
    mask = rng.choice([0.0, 0.01])
    free = JointObjectiveEvent("gaussian", *facts, mask, 50.0, 0.999, adjacency=who)
    at = free.shift + rng.uniform(0.3, 2.0)
    stated = (at, free.profile(at)) if free.profile(at) < 0.9 else (50.0, 0.999)
    return JointObjectiveEvent("gaussian", *facts, mask, *stated, adjacency=who)


def _linear(rng: random.Random, who: Adjacency) -> Event:
    columns = tuple(tuple(rng.uniform(-1, 1) for _ in range(3)) for _ in range(2))
    return LinearGaussianEvent(((5, (1.0, 2.0), columns),), 10, _scale(rng), _grid(rng), adjacency=who)


def _channel(rng: random.Random, who: Adjacency) -> Event:
    a, b = rng.randint(2, 30), rng.randint(1, 30)
    leak = rng.choice([0, 0, 1, 7])
    if not leak:
        silent = [rng.randint(1, 90)] * rng.choice([0, 1, 3])
        return ChannelEvent([[a, b, *silent], [b, a, *silent]], adjacency=who)
    unit = 10 ** rng.randint(3, 14)
    at = abs(math.log(a / b)) + 0.01
    return ChannelEvent([[a * unit, b * unit, leak, 0], [b * unit, a * unit, 0, leak]], at=at, adjacency=who)


def _box(rng: random.Random, who: Adjacency) -> Event:
    return BoxEvent(1.0, rng.uniform(1.0, 30.0), rng.choice([0.0, 0.0, 1.0, 30.0]), 2.0**-12, adjacency=who)


def _disjoint(rng: random.Random, who: Adjacency) -> Event:
    portions = [[LaplaceEvent(1.0, _scale(rng), adjacency=who)], [GaussianEvent(1.0, 4 * _scale(rng), adjacency=who)]]
    eps = max(portions[0][0].guarantee().epsilon(0.0), portions[1][0].guarantee().epsilon(1e-6), 1e-3)
    return DisjointEvent(eps * (1 + 1e-6), 1e-6, portions, adjacency=who)


def _quantiles(rng: random.Random, who: Adjacency) -> Event:
    wanted = tuple(sorted({rng.randint(1, 99) / 100 for _ in range(rng.randint(1, 5))}))
    return QuantilesEvent(wanted, rng.randint(1, 3), _scale(rng), adjacency=who)


def _groups(rng: random.Random, who: Adjacency) -> Event:
    at, delta = math.exp(rng.uniform(-2.0, 1.5)), 10 ** rng.uniform(-9, -2)
    weights = naming_weights(at, delta)
    return GroupCountsEvent(weights, at * rng.choice([1.0, 1.0, 0.9]), rng.randint(1, 3), adjacency=who)


def _together(rng: random.Random, who: Adjacency) -> Event:
    """Sums of random moves, some of which one individual is part of at once."""
    count = rng.randint(1, 6)
    sums = tuple(
        (rng.uniform(0.1, 5.0), rng.choice([0.0, rng.uniform(0.0, 9.0)]), _scale(rng), _grid(rng), rng.randint(1, 4))
        for _ in range(count)
    )
    sets = {(place,) for place in range(count)}
    sets |= {tuple(sorted(rng.sample(range(count), rng.randint(1, count)))) for _ in range(rng.randint(0, 5))}
    return TogetherEvent(rng.choice(["gaussian", "laplace"]), sums, tuple(sorted(sets)), adjacency=who)


MAKERS: dict[type[Event], Make] = {
    GaussianEvent: _additive(GaussianEvent),
    LaplaceEvent: _additive(LaplaceEvent),
    NormGammaEvent: _additive(NormGammaEvent),
    SelectionEvent: lambda rng, who: SelectionEvent(
        rng.choice(["permute-and-flip", "exponential"]), 1.0, _scale(rng), _grid(rng), adjacency=who
    ),
    RandomizedResponseEvent: _answers,
    BoxEvent: _box,
    ChannelEvent: _channel,
    ObjectivePerturbationEvent: _objective,
    JointObjectiveEvent: _joint,
    GroupCountsEvent: _groups,
    LinearGaussianEvent: _linear,
    DisjointEvent: _disjoint,
    QuantilesEvent: _quantiles,
    TogetherEvent: _together,
    SharedGaussianEvent: _shared(SharedGaussianEvent),
    SharedLaplaceEvent: _shared(SharedLaplaceEvent),
}
#: Acts that publish something for every record: they replace a record or are refused.
PER_RECORD = (RandomizedResponseEvent, ChannelEvent, DisjointEvent)
#: Promises whose arithmetic is written down, not computed on a grid.
CLOSED = ("pure", "gaussian", "concentrated", "renyi", "closed")


@dataclass(frozen=True)
class Case:
    events: tuple[Event | Repeated, ...]
    cost: Guarantee
    kind: str
    factor: float
    promise: Guarantee

    @property
    def is_on_a_grid(self) -> bool:
        """Whether core adds up losses on a grid."""
        return isinstance(self.cost, ComposedDP) or (isinstance(self.cost, ObjectiveDP) and self.cost.count > 1)

    def weaker(self) -> Guarantee:
        """A promise so much weaker that neither core's rounding of an event nor its grid can miss it."""
        assert isinstance(self.promise, ApproxDP)
        eps, delta = self.promise.eps, self.promise.delta_
        if not self.is_on_a_grid:
            return ApproxDP(eps * (1 + 1e-9), delta)
        acts = sum(event.count if isinstance(event, Repeated) else 1 for event in self.events)
        return ApproxDP(1.02 * eps + 2e-3 * acts, min(0.999, 1.001 * delta + 2e-12))


def case(seed: int) -> Case:
    rng = random.Random(seed)
    who = rng.choice([REPLACE_ONE, REPLACE_ONE, ADD_REMOVE, Adjacency("patient", "add-remove")])
    kinds = [kind for kind in MAKERS if kind not in PER_RECORD or who == REPLACE_ONE]
    kinds = [kind for kind in kinds if kind is not BoxEvent or rng.random() < 0.3]  # slow on both roads
    events: list[Event | Repeated] = []
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
        event = MAKERS[rng.choice(kinds)](rng, who)
        repeat = rng.random() < 0.25
        events.append(Repeated(event, rng.randint(2, 5 if isinstance(event, BoxEvent) else 30)) if repeat else event)
    cost = compose(events)
    kind = rng.choice(["pure", "pure", "approximate", "approximate", "gaussian", "concentrated", "renyi"])
    factor = rng.choice([1.0, 1 - 1e-9, 1 + 1e-9, 1 - 1e-3, 1 + 1e-3, 0.5])
    return Case(tuple(events), cost, kind, factor, _promise(kind, cost, factor, rng))


def many_acts(seed: int) -> tuple[Event | Repeated, ...]:
    """Acts of every kind but box noise, strong and faint ones, each up to thousands of times."""
    rng = random.Random(seed)
    who = rng.choice([REPLACE_ONE, REPLACE_ONE, ADD_REMOVE])
    kinds = [kind for kind in MAKERS if kind is not BoxEvent and (kind not in PER_RECORD or who == REPLACE_ONE)]
    events: list[Event | Repeated] = []
    for _ in range(rng.choice([1, 2, 2, 3])):
        event = MAKERS[rng.choice(kinds)](rng, who)
        events.append(Repeated(event, int(2 * math.exp(rng.uniform(0.0, 8.0)))) if rng.random() < 0.6 else event)
    return tuple(events)


def refusal_of_many(seed: int) -> str | None:
    """Why an honest certificate of many acts is refused: as it is, or with the tightest promise there is."""
    events = many_acts(seed)
    own = Certificate.issue(subject="a law", events=events, proofs=proofs(events))
    rng = random.Random(seed + 1)
    delta = 10 ** rng.uniform(-9, -3)
    epsilon = own.composed.epsilon(delta)
    if found := verify(own).failures:
        return f"its own: {found}"
    if not (math.isfinite(epsilon) and epsilon):
        return None
    stated = issues(events, ApproxDP(epsilon, delta))
    return f"at {delta}: {found}" if stated is not None and (found := verify(stated).failures) else None


def _promise(kind: str, cost: Guarantee, factor: float, rng: random.Random) -> Guarantee:
    match kind:
        case "pure":
            edge = cost.epsilon(0.0)
            return PureDP(edge * factor) if math.isfinite(edge) else PureDP(rng.choice([0.1, 3.0, 50.0]))
        case "gaussian":
            edge = edge_of_mu(cost)
            return GaussianDP(edge * factor) if math.isfinite(edge) else GaussianDP(rng.choice([0.1, 3.0, 50.0]))
        case "concentrated":
            edge = edge_of_rho(cost)
            return ZCDP(edge * factor) if math.isfinite(edge) else ZCDP(rng.choice([0.1, 3.0, 500.0]))
        case "renyi":
            order = rng.choice([1.5, 4.0, 32.0])
            edge = cost.rdp(order)
            return RenyiDP(order, edge * factor if math.isfinite(edge) else 3.0)
    delta = 10 ** rng.uniform(-14, -1)
    edge = cost.epsilon(delta)
    if not math.isfinite(edge) or edge == 0:
        return ApproxDP(rng.choice([0.1, 3.0]), delta)
    if rng.random() < 0.5:
        return ApproxDP(edge * factor, delta)
    return ApproxDP(edge, min(0.999, max(cost.delta(edge), 1e-300) * factor))


def edge_of_mu(cost: Guarantee) -> float:
    match cost:
        case GaussianDP(mu=mu):
            return mu
        case PureDP(eps=eps):
            return mu_of_pure(eps)
        case ComposedDP(parts=parts):
            return math.sqrt(math.fsum(part.square_of_mu() for part in parts))
    return math.inf


def edge_of_rho(cost: Guarantee) -> float:
    match cost:
        case GaussianDP(mu=mu):
            return mu**2 / 2
        case PureDP(eps=eps):
            return eps**2 / 2
        case ComposedDP(parts=parts):
            return math.fsum(part.rho() for part in parts)
    return math.inf


def proofs(events: tuple[Event | Repeated, ...]) -> list[str]:
    return sorted(frozenset().union(*(event.proof_ids() for event in events)))


def issues(events: tuple[Event | Repeated, ...], promise: Guarantee) -> Certificate | None:
    if compose(events).implies(promise) is not True:
        return None  # `issue` asks the same and then words a refusal, which costs a second; see test_second_road.py
    try:
        return Certificate.issue(subject="a law", events=events, proofs=proofs(events), guarantee=promise)
    except UnprovedError:
        return None


def forged(of: Case) -> dict:
    """The certificate that an issuer without scruples would write for this promise, digest included."""
    who = of.cost.adjacency
    assert who is not None
    promise = of.promise.under(who)
    claims = json.loads(json.dumps(Claims.of(promise).to_dict()).replace("Infinity", '"infinity"'))
    body = {
        **{"schema_version": 1, "subject": "a law", "plan_hash": None, "notes": [], "publishable": True},
        "events": json.loads(json.dumps([event.to_dict() for event in of.events])),
        "composed": json.loads(json.dumps(of.cost.to_dict())),
        "guarantee": json.loads(json.dumps(promise.to_dict())),
        **{"adjacency": who.to_dict(), "claims": claims, "proofs": proofs(of.events)},
        **{"versions": {"sfumato": "x"}, "created": "2020-01-01T00:00:00+00:00"},
    }
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return {**body, "digest": hashlib.sha256(text.encode()).hexdigest()}


def disagreement(of: Case) -> str | None:
    """What is wrong between the two roads, in words; None where they agree."""
    certificate = issues(of.events, of.promise)
    if certificate is not None:
        found = verify(certificate).failures
        return f"an honest certificate fails: {found}" if found else None
    if not verify(forged(of)).ok:
        return None
    if of.kind in CLOSED:
        return "the verifier accepts what core does not issue"
    return None if issues(of.events, of.weaker()) else "the verifier accepts far more than core issues"
