"""What the institutions agree on before anything is sent: one Round.

In:   public facts: who takes part, what is summed, how much noise, how many may collude or stay away.
Out:  Round, frozen and hashed; its events and certificate.
Not here: choosing the numbers (plan.py), the protocol (participant.py, aggregator.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from sfumato.centres.statistics import Statistic, statistic_from_dict
from sfumato.core.adjacency import Adjacency
from sfumato.core.certificate import Certificate
from sfumato.core.checks import positive
from sfumato.core.events.centre import SharedEvent, SharedGaussianEvent, SharedLaplaceEvent
from sfumato.core.guarantee import Guarantee
from sfumato.core.records import guarantee_from_dict
from sfumato.errors import InputError, PrivacyParameterError, SfumatoError

__all__ = ["Centre", "Coordinator", "Requirement", "Round"]

Coordinator = Literal["curious", "malicious"]
Law = Literal["gaussian", "laplace"]
_EVENTS: dict[str, type[SharedEvent]] = {"gaussian": SharedGaussianEvent, "laplace": SharedLaplaceEvent}


@dataclass(frozen=True)
class Centre:
    """An institution: a name, and the Ed25519 public key (hex) that its messages are signed with."""

    name: str
    identity: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InputError("A centre needs a name of printable characters.")
        try:
            fits = len(bytes.fromhex(self.identity)) == 32
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InputError(f"{self.name}: the identity must be an Ed25519 public key, 32 bytes in hex.")


@dataclass(frozen=True)
class Requirement:
    """What is promised to one kind of unit: a patient (one row in one centre), or a "centre" with all its rows."""

    adjacency: Adjacency
    guarantee: Guarantee

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", self.guarantee.under(self.adjacency))

    def to_dict(self) -> dict[str, Any]:
        return {"adjacency": self.adjacency.to_dict(), "guarantee": self.guarantee.to_dict()}


@dataclass(frozen=True)
class Round:
    """One sum over several institutions, described by public facts alone.

    The noise shares are sized so that `honest` of them keep every requirement: all centres but the `colluders` and the
    tolerated `absences`. Numbers travel as multiples of `grid` modulo 2^`bits`. `nonce` is new for every attempt.
    """

    subject: str
    centres: tuple[Centre, ...]
    statistic: Statistic
    requirements: tuple[Requirement, ...]
    law: Law
    scale: float
    grid: float
    bits: int
    most_patients: int
    colluders: int = 0
    absences: int = 0
    coordinator: Coordinator = "curious"
    step_seconds: float = 30.0
    plan_hash: str | None = None
    nonce: str = ""

    def __post_init__(self) -> None:
        names = [centre.name for centre in self.centres]
        keys = [centre.identity for centre in self.centres]
        if len(set(names)) < len(names) or len(set(keys)) < len(keys):
            raise InputError("Two centres have the same name or the same key. Nothing was run.")
        if len(names) < 2:
            raise InputError("A round needs at least two centres. Nothing was run.")
        if self.law not in _EVENTS or self.coordinator not in ("curious", "malicious"):
            raise InputError("The law is gaussian or laplace, the coordinator curious or malicious. Nothing was run.")
        if not self.requirements:
            raise PrivacyParameterError("A round needs a requirement: who is protected, and how well.")
        positive(self.step_seconds, "step_seconds")
        self._check_numbers()
        for event, requirement in zip(self.events, self.requirements, strict=True):
            if event.guarantee().implies(requirement.guarantee) is not True:
                raise PrivacyParameterError(
                    f"Noise of scale {self.scale:g} does not keep {requirement.guarantee}. Plan the round again. "
                    "Nothing was run and nothing was spent."
                )

    def _check_numbers(self) -> None:
        for name, least in (("most_patients", 1), ("colluders", 0), ("absences", 0), ("bits", 8)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InputError(f"{name} must be a whole number of at least {least}. Nothing was run.")
        if self.bits not in range(8, 65, 8):
            raise InputError("bits must be 8, 16, … or 64. Nothing was run.")
        if math.frexp(positive(self.grid, "grid"))[0] != 0.5:
            raise InputError("grid must be a power of two. Nothing was run.")
        if self.honest < 1:
            raise InputError("Colluders and absences leave no honest centre. Nothing was run.")
        if not self.colluders < self.threshold <= self.quorum:
            raise InputError(
                f"With {len(self.centres)} centres, {self.colluders} colluders and a {self.coordinator} coordinator "
                f"{self.threshold} centres must stay to the end, so at most {len(self.centres) - self.threshold} may "
                "be absent. Nothing was run."
            )
        if self.largest_sum >= 1 << (self.bits - 1):
            raise InputError(f"The sum does not fit into {self.bits} bits: plan the round again. Nothing was run.")
        self._check_scaling()

    def _check_scaling(self) -> None:
        """What `centre_norm` charges for scaling a centre's vector in floating point (statistics.py) must be enough."""
        if self.statistic.centre_norm is None:
            return
        for requirement in self.requirements:
            moved = self.statistic.sensitivity(requirement.adjacency, self.law)
            if 2 * self.grid * math.sqrt(self.length) > moved * 2.0**-11 or self.largest_part > 1 << 52:
                raise InputError("The grid does not fit the centre_norm: plan the round again. Nothing was run.")

    @property
    def honest(self) -> int:
        """How many honest shares are certain to be in the sum."""
        return self.quorum - self.colluders

    @property
    def quorum(self) -> int:
        """The smallest set whose sum is opened."""
        return len(self.centres) - self.absences

    @property
    def threshold(self) -> int:
        """How many key shares open a mask (docs/proofs/secure_aggregation.md)."""
        if self.coordinator == "curious":
            return self.quorum
        return (len(self.centres) + self.colluders) // 2 + 1

    @property
    def length(self) -> int:
        return self.statistic.length

    @property
    def width(self) -> int:
        """Bytes of a number on the wire."""
        return self.bits // 8

    @property
    def largest_part(self) -> int:
        """The largest number, in cells, that an honest centre's figure can have without noise."""
        return self.statistic.largest_part(self.grid, self.most_patients)

    @property
    def largest_sum(self) -> int:
        """The largest number that the noisy sum reaches, but for a chance of e^-40 or so for each number."""
        spread = math.sqrt(len(self.centres) / self.honest) * self.scale / self.grid
        return len(self.centres) * self.largest_part + math.ceil(50 * spread)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """1, 2, … for the centres in order: where their key shares are taken."""
        return {centre.name: place for place, centre in enumerate(self.centres, 1)}

    def identity(self, name: str) -> str:
        return self.centres[self.places[name] - 1].identity

    @property
    def events(self) -> tuple[SharedEvent, ...]:
        """What the round costs each kind of unit."""
        return tuple(
            _EVENTS[self.law](
                self.statistic.sensitivity(requirement.adjacency, self.law),
                self.scale,
                self.grid,
                self.length,
                self.honest,
                len(self.centres),
                self.colluders,
                adjacency=requirement.adjacency,
            )
            for requirement in self.requirements
        )

    def events_for(self, knowing: int, included: int) -> tuple[SharedEvent, ...]:
        """What a sum over `included` centres costs towards an observer who knows `knowing` of the shares in it.

        The public knows none, a centre its own, a coalition its members'. More than `honest` unknown Gaussian shares
        are wider than promised; of Pólya shares only the promise itself is claimed.
        """
        unknown = included - knowing
        if not 0 <= knowing <= self.colluders or included < self.quorum or included > len(self.centres):
            raise InputError("Observers know the shares of at most `colluders` centres in a sum of a quorum.")
        wider = math.sqrt(unknown / self.honest) * (1 - 1e-15) if self.law == "gaussian" else 1.0
        return tuple(
            dataclasses.replace(event, scale=max(event.scale, event.scale * wider), honest=unknown, colluders=knowing)
            if self.law == "gaussian"
            else event
            for event in self.events
        )

    def certificates(self, *, publishable: bool = True) -> tuple[Certificate, ...]:
        """One certificate for each kind of unit; costs under different adjacencies do not add."""
        who = (
            f"{len(self.centres)} centres; {self.honest} honest ones suffice; up to {self.colluders} may collude with "
            f"a {self.coordinator} coordinator and all readers; sums over fewer than {self.quorum} are never opened; "
            f"sums modulo 2^{self.bits} on a grid of {self.grid:g}."
        )
        return tuple(
            Certificate.issue(
                subject=self.subject,
                events=[event],
                proofs=["distributed_noise", "secure_aggregation"],
                plan=self.description(),
                notes=[who],
                publishable=publishable,
            )
            for event in self.events
        )

    def fresh(self) -> Round:
        """The same round with a new nonce: for another attempt."""
        return dataclasses.replace(self, nonce=secrets.token_hex(16))

    @cached_property
    def hash(self) -> str:
        """Names this attempt; every signature and key includes it."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    @cached_property
    def agreement(self) -> str:
        """Names what the institutions agreed on, whatever the attempt."""
        return hashlib.sha256(json.dumps(self.description(), sort_keys=True).encode()).hexdigest()

    def description(self) -> dict[str, Any]:
        """Everything but the nonce: what the institutions agree on."""
        return {name: value for name, value in self.to_dict().items() if name != "nonce"}

    def to_dict(self) -> dict[str, Any]:
        record = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        record["centres"] = [[centre.name, centre.identity] for centre in self.centres]
        record["statistic"] = self.statistic.to_dict()
        record["requirements"] = [requirement.to_dict() for requirement in self.requirements]
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Round:
        """The round a record describes; InputError if it describes none.

        Every check of a round is made again: a record from elsewhere cannot promise more than its noise keeps.
        """
        try:
            fields = dict(record)
            if set(fields) != {item.name for item in dataclasses.fields(cls)}:
                raise InputError("It has unknown or missing fields")
            fields["centres"] = tuple(Centre(*pair) for pair in fields["centres"])
            fields["statistic"] = statistic_from_dict(fields["statistic"])
            fields["requirements"] = tuple(
                Requirement(Adjacency.from_dict(item["adjacency"]), guarantee_from_dict(item["guarantee"]))
                for item in fields["requirements"]
            )
            return cls(**fields)
        except SfumatoError as error:
            raise InputError(f"This is not a round: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"This is not a round: {type(error).__name__}.") from error
