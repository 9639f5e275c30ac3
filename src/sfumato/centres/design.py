"""Two ways to publish a sum over several institutions, with their price: strategies as data.

In:   public facts: how many centres, what statistic, which promises, how fast machines and lines are.
Out:  Design values (error, events, seconds, bytes, whom one has to trust), and the cheaper one by given weights.
Not here: running either (memory.py, network.py), a whole study's plan (plan/).
Reference: Basu, ch. 3.3.4 and 3.4. Where the two programs share no variable, min λ·E + (1-λ)·C is attained at an end:
solve both, take the cheaper.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.centres.plan import law_for, needed_noise
from sfumato.centres.round import Coordinator, Requirement
from sfumato.centres.statistic_round import SHARES, StatisticRound
from sfumato.centres.statistics import Statistic
from sfumato.core.checks import at_least_zero
from sfumato.core.events.event import Event
from sfumato.errors import InputError, SfumatoError
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.additive import IndependentNoise
from sfumato.mechanisms.grid_law import Law, grid_law

__all__ = [
    "Design",
    "DesignChoice",
    "Speed",
    "Weights",
    "choose_design",
    "noisy_sharing",
    "secure_aggregation",
    "way_costs",
]

#: The noise that one centre draws alone, by the name of its law.
_ALONE: dict[str, type[IndependentNoise]] = {noise.law: noise for noise in (Gaussian, Laplace)}


@dataclass(frozen=True)
class Speed:
    """How fast one machine and one line are; the defaults were measured with benchmarks/centres.py. No privacy here."""

    handshake: float = 1.6e-4  # one X25519 exchange with HKDF
    signature: float = 2.5e-4  # one Ed25519 verification
    words: float = 4.0e-9  # masking one number with one mask
    noise: float = 1.0e-7  # drawing one number of a share
    start: float = 0.25  # joining, once
    latency: float = 0.005  # one message there and back
    bandwidth: float = 1e8  # bytes in a second, at the coordinator
    machines: int = 1_000_000  # how many centres work at the same time; on one machine, its cores


@dataclass(frozen=True)
class Design:
    """One way to publish the sum.

    `deviation` is the standard deviation of the noise in each published number when every centre is there; `events` are
    what it costs each kind of unit, in the order of the requirements. A design that cannot be used says so in
    `refused`.
    """

    name: str
    deviation: float
    events: tuple[Event, ...]
    seconds: float
    bytes: int
    trust: str
    refused: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """All fields in plain values, the events too."""
        record = dataclasses.asdict(self)
        return record | {"events": [event.to_dict() for event in self.events]}


def noisy_sharing(
    statistic: Statistic,
    requirements: Iterable[Requirement],
    centres: int,
    *,
    law: Law | None = None,
    speed: Speed | None = None,
) -> Design:
    """Each centre publishes its own noisy sum; anybody adds them up. Nobody needs to be trusted, the noise adds up.

    A patient is in one centre, so he is in one of the publications: their cost is that of one.
    """
    wanted, pace = tuple(requirements), speed
    chosen = law or law_for(wanted)
    mechanism = _ALONE[chosen]
    alone = [
        mechanism.for_guarantee(
            one.guarantee, statistic.sensitivity(one.adjacency, chosen), one.adjacency, dimension=statistic.length
        )
        for one in wanted
    ]
    scale, grid = max(noise.scale for noise in alone), min(noise.grid for noise in alone)
    events = tuple(
        mechanism.event_class(
            statistic.sensitivity(one.adjacency, chosen), scale, grid, statistic.length, adjacency=one.adjacency
        )
        for one in wanted
    )
    seconds, size = way_costs(centres, statistic.length, False, pace)
    return Design(
        "noisy sharing",
        grid_law(chosen).deviation(scale) * math.sqrt(centres),
        events,
        seconds,
        size,
        "nobody: what leaves a centre is private already",
    )


def secure_aggregation(
    statistic: Statistic,
    requirements: Iterable[Requirement],
    centres: int,
    *,
    colluders: int = 0,
    absences: int = 0,
    coordinator: Coordinator = "curious",
    width: int = 8,
    law: Law | None = None,
    speed: Speed | None = None,
) -> Design:
    """Masks hide the parts, noise shares add up to what one centre alone would have to add.

    `width` is the number of bytes of a number on the wire (Round.width).
    """
    wanted, pace = tuple(requirements), speed
    chosen = law or law_for(wanted)
    honest = centres - colluders - absences
    trust = (
        f"that no more than {colluders} centres collude with a {coordinator} coordinator, and that {honest} centres "
        "draw their noise honestly"
    )
    nothing = Design("secure aggregation", math.inf, (), math.inf, 0, trust)
    threshold = (centres + colluders) // 2 + 1 if coordinator == "malicious" else centres - absences
    if honest < 1 or not colluders < threshold <= centres - absences:
        return dataclasses.replace(nothing, refused="Colluders and absences leave too few honest centres.")
    try:
        scale, grid = needed_noise(statistic, wanted, chosen)
        events = tuple(
            SHARES[chosen].event_class(
                statistic.sensitivity(one.adjacency, chosen),
                scale,
                grid,
                statistic.length,
                honest,
                centres,
                colluders,
                adjacency=one.adjacency,
            )
            for one in wanted
        )
    except SfumatoError as error:
        return dataclasses.replace(nothing, refused=str(error))
    seconds, size = way_costs(centres, statistic.length, True, pace, width)
    deviation = grid_law(chosen).deviation(scale) * math.sqrt(centres / honest)
    return Design("secure aggregation", deviation, events, seconds, size, trust)


def way_costs(
    centres: int, numbers: int, masks: bool, speed: Speed | None = None, width: int = 8, draws: float = 1.0
) -> tuple[float, int]:
    """(seconds, bytes) of a round for so many numbers, with masks or with all the noise at each centre, `draws` times.

    >>> [way_costs(5, 10_000, masks)[1] // 1000 for masks in (False, True)]
    [402, 1414]
    """
    pace = speed or Speed()
    if masks:
        size = _bytes(centres, numbers, width)
        return _seconds(centres, numbers, pace) + size / pace.bandwidth, size
    size = centres * (8 * numbers + 400)
    work = pace.noise * numbers * draws * math.ceil(centres / pace.machines)
    return pace.start + pace.latency + work + size / pace.bandwidth, size


def _bytes(centres: int, length: int, width: int) -> int:
    """All messages of a round with everybody there; fitted to counted frames (tests/centres/test_design.py)."""
    for_each_pair = 2080  # keys, parcels, signatures and key shares, up and down
    for_each_centre = 2560 + length * (width + 19)  # heads and the round; the vector up, the result down as text
    return centres * centres * for_each_pair + centres * for_each_centre


def _seconds(centres: int, length: int, pace: Speed) -> float:
    """One centre's work, as often as machines must take turns, then the coordinator's, and five exchanges."""
    own = centres * (3 * pace.handshake + 2 * pace.signature + length * pace.words) + length * pace.noise
    coordinating = centres * (5 * pace.signature + length * pace.words)
    return pace.start + own * max(1.0, centres / pace.machines) + coordinating + 5 * pace.latency


@dataclass(frozen=True)
class Weights:
    """What one unit of each price is worth: squared error of one number, a second, a megabyte."""

    error: float = 1.0
    seconds: float = 0.0
    megabytes: float = 0.0

    def __post_init__(self) -> None:
        if not sum(at_least_zero(getattr(self, item.name), item.name) for item in dataclasses.fields(self)):
            raise InputError("At least one weight must be greater than 0.")

    def price(self, design: Design) -> float:
        """Its error, time and traffic together; infinite where it cannot be used."""
        if design.refused is not None:
            return math.inf
        return self.error * design.deviation**2 + self.seconds * design.seconds + self.megabytes * design.bytes / 2**20


@dataclass(frozen=True)
class DesignChoice:
    """The chosen design and the others with their prices: why they were not chosen."""

    chosen: Design
    price: float
    rejected: tuple[tuple[Design, float], ...]


def choose_design(designs: Sequence[Design], weights: Weights) -> DesignChoice:
    """The design with the least price; on a tie the first.

    >>> from sfumato.core import Adjacency, ApproxDP, Interval, Schema
    >>> from sfumato.centres.statistics import Means
    >>> patient = Requirement(Adjacency("patient", "add-remove"), ApproxDP(1.0, 1e-6))
    >>> facts = Means(Schema({"kalium": Interval(0, 10)})), [patient], 16
    >>> both = noisy_sharing(*facts), secure_aggregation(*facts)
    >>> round(both[0].deviation / both[1].deviation, 3)
    4.0
    >>> choose_design(both, Weights(error=1.0)).chosen.name
    'secure aggregation'
    >>> choose_design(both, Weights(error=1e-6, megabytes=1.0)).chosen.name
    'noisy sharing'
    """
    usable = [design for design in designs if design.refused is None]
    if not usable:
        reasons = " ".join(design.refused or "" for design in designs)
        raise InputError(f"No design can be used: {reasons} Nothing was run.")
    chosen = min(usable, key=weights.price)
    others = tuple((design, weights.price(design)) for design in designs if design is not chosen)
    return DesignChoice(chosen, weights.price(chosen), others)


def designs_of(agreed: StatisticRound, speed: Speed | None = None) -> tuple[Design, Design]:
    """Both designs for what a round says."""
    facts = agreed.statistic, agreed.requirements, len(agreed.centres)
    shared = secure_aggregation(
        *facts,
        colluders=agreed.colluders,
        absences=agreed.absences,
        coordinator=agreed.coordinator,
        width=agreed.width,
        law=agreed.law,
        speed=speed,
    )
    return noisy_sharing(*facts, law=agreed.law, speed=speed), shared
