"""Plain records of random acts. Their meaning never changes; new behaviour is a new class.

In:   what was drawn: scale, sensitivity, grid, dimension.
Out:  Event values, each with the Guarantee it has on its own.
Not here: how events add up (core/compose.py), the proofs (docs/proofs/), drawing (mechanisms/).
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import at_least_zero, positive, round_up
from sfumato.core.guarantee import GaussianDP, Guarantee, PureDP
from sfumato.core.norms import L1, L2, Norm, in_norm
from sfumato.errors import PrivacyParameterError

__all__ = [
    "BoxEvent",
    "Event",
    "GaussianEvent",
    "LaplaceEvent",
    "NormGammaEvent",
    "RandomizedResponseEvent",
    "Repeated",
    "SelectionEvent",
]


#: Beyond this the box is far wider than its noise, which its cells could no longer follow.
STRONGEST_BOX = 1e9


@dataclass(frozen=True)
class Event(ABC):
    """One random act under a stated adjacency. Abstract; the final classes below are records."""

    proof: ClassVar[str]

    adjacency: Adjacency = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.adjacency, Adjacency):
            raise PrivacyParameterError(
                "Say who is protected: pass adjacency=REPLACE_ONE, adjacency=ADD_REMOVE or your own Adjacency. "
                "Nothing was spent."
            )
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise PrivacyParameterError if the record means nothing."""

    def _check_presence_is_public(self) -> None:
        """For acts that publish something for every record: how many records there are is seen in the output."""
        if self.adjacency.relation != "replace-one":
            raise PrivacyParameterError(
                "This act publishes something for every record, so that a record is there is public: state the "
                "adjacency as replacing one record. Nothing was spent."
            )

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What this act alone promises."""

    def proof_id(self) -> str:
        """The note in docs/proofs/ that the guarantee rests on."""
        return self.proof

    def proof_ids(self) -> frozenset[str]:
        """All notes it rests on: its own, and those of acts inside it."""
        return frozenset([self.proof_id()])

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"kind": type(self).__name__}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            record[item.name] = value.to_dict() if hasattr(value, "to_dict") else value
        return record


@dataclass(frozen=True)
class AdditiveEvent(Event):
    """Noise of one `scale` on `dimension` numbers of joint `sensitivity`, rounded to `grid` beforehand. Abstract."""

    #: What its sensitivity is measured in, and what it is called in a refusal.
    norm: ClassVar[Norm]
    law: ClassVar[str]

    sensitivity: float
    scale: float
    grid: float = 0.0
    dimension: int = 1

    def _check(self) -> None:
        object.__setattr__(self, "sensitivity", in_norm(self.sensitivity, self.norm, self.law))
        positive(self.sensitivity, "sensitivity", "A value nobody influences needs no noise. ")
        positive(self.scale, "scale")
        at_least_zero(self.grid, "grid")
        if not isinstance(self.dimension, int) or isinstance(self.dimension, bool) or self.dimension < 1:
            raise PrivacyParameterError("dimension must be a whole number of at least 1.")

    def _ratio(self, cells: float) -> float:
        """Distance of neighbours over the scale, when rounding can move them apart by so many cells."""
        return round_up((self.sensitivity + self.grid * cells) / self.scale, 1e-15)


@dataclass(frozen=True)
class GaussianEvent(AdditiveEvent):
    """N(0, scale²) on each of `dimension` numbers of joint L2 `sensitivity`, values rounded to `grid` beforehand.

    Rounding moves neighbours apart by at most `grid` per coordinate, so the sensitivity that counts is
    sensitivity + grid·√dimension.
    """

    proof: ClassVar[str] = "gaussian"
    norm: ClassVar[Norm] = L2
    law: ClassVar[str] = "Gaussian noise"

    @property
    def mu(self) -> float:
        return self._ratio(math.sqrt(self.dimension))

    def guarantee(self) -> GaussianDP:
        return GaussianDP(self.mu, adjacency=self.adjacency)


@dataclass(frozen=True)
class LaplaceEvent(AdditiveEvent):
    """Laplace noise of this scale on each of `dimension` numbers of joint L1 `sensitivity`, rounded to `grid`."""

    proof: ClassVar[str] = "laplace"
    norm: ClassVar[Norm] = L1
    law: ClassVar[str] = "Laplace noise"

    @property
    def eps(self) -> float:
        return self._ratio(self.dimension)

    def guarantee(self) -> PureDP:
        return PureDP(self.eps, adjacency=self.adjacency)


@dataclass(frozen=True)
class NormGammaEvent(AdditiveEvent):
    """One vector of density ∝ exp(-‖z‖₂/scale) on `dimension` numbers of L2 `sensitivity`, rounded to `grid`."""

    proof: ClassVar[str] = "norm_gamma"
    norm: ClassVar[Norm] = L2
    law: ClassVar[str] = "NormGamma noise"

    @property
    def eps(self) -> float:
        return self._ratio(math.sqrt(self.dimension))

    def guarantee(self) -> PureDP:
        return PureDP(self.eps, adjacency=self.adjacency)


@dataclass(frozen=True)
class SelectionEvent(Event):
    """One candidate chosen with `rule` by scores of this `sensitivity` and temperature `scale` = 2·sensitivity/ε.

    Scores are rounded to `grid` beforehand, so the sensitivity that counts is sensitivity + grid.
    """

    rule: Literal["permute-and-flip", "exponential"]
    sensitivity: float
    scale: float
    grid: float = 0.0

    def _check(self) -> None:
        if self.rule not in ("permute-and-flip", "exponential"):
            raise PrivacyParameterError(f"Selection rule {self.rule!r} is not known.")
        positive(self.sensitivity, "sensitivity", "A score nobody influences needs no noise. ")
        positive(self.scale, "scale")
        at_least_zero(self.grid, "grid")

    def proof_id(self) -> str:
        return self.rule.replace("-", "_")

    @property
    def eps(self) -> float:
        return round_up(2 * (self.sensitivity + self.grid) / self.scale, 1e-15)

    def guarantee(self) -> PureDP:
        return PureDP(self.eps, adjacency=self.adjacency)


@dataclass(frozen=True)
class RandomizedResponseEvent(Event):
    """One of `categories` answers, the true one with integer weight `keep`, each other with weight `move`.

    A record's presence is public, since it publishes an answer: the adjacency must replace a record.
    """

    proof: ClassVar[str] = "randomized_response"

    categories: int
    keep: int
    move: int

    def _check(self) -> None:
        self._check_presence_is_public()
        for name, least in (("categories", 2), ("keep", 1), ("move", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise PrivacyParameterError(f"{name} must be a whole number of at least {least}.")
        if max(self.keep, self.categories) > 1 << 128:
            raise PrivacyParameterError("Weights and categories beyond 2^128 are not read.")
        if self.keep <= self.move:
            raise PrivacyParameterError("The true answer needs more weight than the others (keep > move).")

    @property
    def eps(self) -> float:
        # log1p keeps the digits when the two weights are nearly equal.
        return round_up(math.log1p((self.keep - self.move) / self.move), 1e-15)

    @property
    def answers(self) -> float | None:
        """The chance of an answer of two points that is as bad: 1 for two categories, less for more."""
        two, all_of_them = self.keep + self.move, self.keep + (self.categories - 1) * self.move
        return 1.0 if two >= all_of_them else min(1.0, round_up(two / all_of_them, 1e-15))

    def guarantee(self) -> PureDP:
        return PureDP(self.eps, adjacency=self.adjacency)


@dataclass(frozen=True)
class BoxEvent(Event):
    """One number of this `sensitivity`, rounded to `grid`, plus box noise (core/noise.py::BoxNoise) rounded to it.

    Its cost is a numeric profile with a part of the mass at infinity: beyond the walls nothing is hidden.
    """

    proof: ClassVar[str] = "box"

    sensitivity: float
    half_width: float
    stiffness: float = 0.0
    grid: float = 0.0

    def _check(self) -> None:
        positive(self.sensitivity, "sensitivity", "A value nobody influences needs no noise. ")
        positive(self.half_width, "half_width")
        at_least_zero(self.stiffness, "stiffness")
        at_least_zero(self.grid, "grid")
        if not self.strength <= STRONGEST_BOX:
            raise PrivacyParameterError(
                f"stiffness·half_width⁴ must be at most {STRONGEST_BOX:g}: the walls are more than 170 standard "
                "deviations away. Take a narrower box, or Gaussian noise. Nothing was spent."
            )

    @property
    def shift(self) -> float:
        """By how much of the half width a neighbour can be moved."""
        return round_up((self.sensitivity + self.grid) / self.half_width, 1e-15)

    @property
    def strength(self) -> float:
        """The stiffness in units of the half width; with `shift` it determines the profile."""
        try:
            return self.stiffness * self.half_width**4
        except OverflowError:
            return math.inf if self.stiffness else 0.0

    def guarantee(self) -> Guarantee:
        from sfumato.core.compose import compose  # the profile is computed where all profiles are

        return compose([self])


@dataclass(frozen=True)
class Repeated:
    """`count` independent acts alike. Costs exactly what writing the event `count` times costs."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise PrivacyParameterError("count must be a whole number of at least 1.")

    def proof_id(self) -> str:
        return self.event.proof_id()

    def proof_ids(self) -> frozenset[str]:
        return self.event.proof_ids()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "Repeated", "event": self.event.to_dict(), "count": self.count}
