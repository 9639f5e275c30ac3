"""What the institutions agree on before anything is sent: one Round.

In:   public facts: who takes part, what is summed, how much noise, how many may collude or stay away.
Out:  Round, frozen and hashed; its costs and certificates.
Not here: rounds of one statistic (statistic_round.py), of a whole study (study_round.py), the protocol (participant.py,
aggregator.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.certificate import Certificate
from sfumato.core.checks import positive
from sfumato.core.events.event import Event
from sfumato.core.guarantee import Guarantee
from sfumato.errors import InputError, SfumatoError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.grid_law import Law, grid_law
from sfumato.mechanisms.shares import draw_share, draw_whole

__all__ = ["Block", "Centre", "Coordinator", "Requirement", "Round"]

Coordinator = Literal["curious", "malicious"]
#: The noisy sum stays below so many deviations of its noise, but for a chance of e^-40 or so for each number.
SPREAD = 50
#: More than there are: where each of them has noise, the sum still fits.
_MOST_INDIVIDUALS = 1 << 40


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
        """Whom it protects and how well, in plain values."""
        return {"adjacency": self.adjacency.to_dict(), "guarantee": self.guarantee.to_dict()}


@dataclass(frozen=True)
class Block:
    """`length` numbers of the sum with noise of one law; without a law they are public and get none.

    They travel as multiples of `grid`; no honest centre's own number is beyond `largest` of them. Where there are no
    masks, noise may be added for every individual: as often as the number at place `often` of the centre's own says.
    """

    law: Law | None
    scale: float
    grid: float
    length: int
    largest: int
    often: int | None = None

    def __post_init__(self) -> None:
        if self.law is not None:
            grid_law(self.law)
        if math.frexp(positive(self.grid, "grid"))[0] != 0.5:
            raise InputError("grid must be a power of two. Nothing was run.")
        for name in ("length", "largest"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InputError(f"{name} of a block must be a whole number from 0 on. Nothing was run.")

    @property
    def deviation(self) -> float:
        """Of the whole noise in one number."""
        return 0.0 if self.law is None else grid_law(self.law).deviation(self.scale)


@dataclass(frozen=True, kw_only=True)
class Round(ABC):
    """One sum over several institutions, described by public facts alone. Abstract.

    The noise shares are sized so that `honest` of them keep every promise: all centres but the `colluders` and the
    tolerated `absences`. Numbers travel modulo 2^`bits`. `nonce` is new for every attempt.
    """

    kind: ClassVar[str]

    subject: str
    centres: tuple[Centre, ...]
    bits: int
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
        if self.coordinator not in ("curious", "malicious"):
            raise InputError("The coordinator is curious or malicious. Nothing was run.")
        positive(self.step_seconds, "step_seconds")
        self._check_numbers()

    def _check_numbers(self) -> None:
        for name, least in (("colluders", 0), ("absences", 0), ("bits", 8)):
            check_whole(getattr(self, name), name, least)
        if self.bits not in range(8, 65, 8):
            raise InputError("bits must be 8, 16, … or 64. Nothing was run.")
        if self.honest < 1:
            raise InputError("Colluders and absences leave no honest centre. Nothing was run.")
        if not self.colluders < self.threshold <= self.quorum:
            raise InputError(
                f"With {len(self.centres)} centres, {self.colluders} colluders and a {self.coordinator} coordinator "
                f"{self.threshold} centres must stay to the end, so at most {len(self.centres) - self.threshold} may "
                "be absent. Nothing was run."
            )
        self._check_often()
        if any(self.largest_sum_of(block) >= 1 << (self.bits - 1) for block in self.blocks):
            raise InputError(f"The sum does not fit into {self.bits} bits: plan the round again. Nothing was run.")

    def _check_often(self) -> None:
        """How often noise is drawn is a public number of the same sum, and nothing masks share."""
        public = np.repeat([block.law is None for block in self.blocks], [block.length for block in self.blocks])
        for often in {block.often for block in self.blocks if block.often is not None}:
            check_whole(often, "often", 0)
            if self.masked or often >= len(public) or not public[often]:
                raise InputError("Noise for every individual needs their public number, and no masks. Nothing was run.")

    # ── what is summed ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """The numbers of the sum, one law after the other."""

    @property
    @abstractmethod
    def costs(self) -> tuple[tuple[Event, ...], ...]:
        """What the round costs each kind of unit; costs under different adjacencies do not add."""

    @property
    def proofs(self) -> tuple[str, ...]:
        """The notes in docs/proofs/ that its promise rests on."""
        return ("distributed_noise", "secure_aggregation")

    @property
    def masked(self) -> bool:
        """Whether masks hide every centre's own sum; otherwise each adds all the noise by itself."""
        return True

    @property
    def length(self) -> int:
        """How many numbers are summed."""
        return sum(block.length for block in self.blocks)

    @property
    def width(self) -> int:
        """Bytes of a number on the wire."""
        return self.bits // 8

    @cached_property
    def grids(self) -> np.ndarray:
        """The unit of each number."""
        return np.repeat([block.grid for block in self.blocks], [block.length for block in self.blocks])

    @property
    def _times(self) -> float:
        """How often the whole noise is in the sum of all centres."""
        return len(self.centres) / self.honest if self.masked else float(len(self.centres))

    def largest_sum_of(self, block: Block) -> int:
        """The largest number that the noisy sum reaches, but for a chance of e^-40 or so for each number."""
        times = self._times if block.often is None else _MOST_INDIVIDUALS
        spread = math.sqrt(times) * block.scale / block.grid if block.law is not None else 0.0
        return len(self.centres) * block.largest + math.ceil(SPREAD * spread)

    def is_beyond(self, cells: np.ndarray, *, summed: bool) -> bool:
        """Whether a number is larger than an honest centre's own, or than an honest noisy sum."""
        found = np.split(np.abs(cells), np.cumsum([block.length for block in self.blocks])[:-1])
        limits = [self.largest_sum_of(block) if summed else block.largest for block in self.blocks]
        return any(int(part.max(initial=0)) > most for part, most in zip(found, limits, strict=True))

    def noise(self, bits: Bits, cells: np.ndarray) -> np.ndarray:
        """What one centre adds to its own cells: a share of the noise, or without masks all of it."""
        drawn = (self._noise(block, bits, cells) for block in self.blocks)
        return np.concatenate([np.zeros(0, dtype=np.int64), *drawn])

    def _noise(self, block: Block, bits: Bits, cells: np.ndarray) -> np.ndarray:
        if block.law is None:
            return np.zeros(block.length, dtype=np.int64)
        if not self.masked:
            times = 1 if block.often is None else int(cells[block.often])
            return draw_whole(block.law, block.scale, block.grid, block.length, bits, times)
        return draw_share(block.law, block.scale, block.grid, self.honest, block.length, bits)

    def deviation(self, included: int) -> float:
        """Of the noise in one number of a sum over so many centres; the widest of them."""
        times = included / self.honest if self.masked else float(included)
        return max((block.deviation for block in self.blocks), default=0.0) * math.sqrt(times)

    # ── who takes part ───────────────────────────────────────────────────────────────────────────────────────────────

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

    @cached_property
    def places(self) -> Mapping[str, int]:
        """1, 2, … for the centres in order: where their key shares are taken."""
        return {centre.name: place for place, centre in enumerate(self.centres, 1)}

    def identity(self, name: str) -> str:
        """The public key by which the centre of this name signs."""
        return self.centres[self.places[name] - 1].identity

    @property
    def why_awaited(self) -> str:
        """What is said of a centre that did not come in time."""
        return "never joined"

    # ── names and files ──────────────────────────────────────────────────────────────────────────────────────────────

    def certificates(self, *, publishable: bool = True) -> tuple[Certificate, ...]:
        """One certificate for each kind of unit; costs under different adjacencies do not add."""
        who = (
            f"{len(self.centres)} centres; {self.honest} honest ones suffice; up to {self.colluders} may collude with "
            f"a {self.coordinator} coordinator and all readers; sums over fewer than {self.quorum} are never opened; "
            f"sums modulo 2^{self.bits} on {self._grid_words()}."
        )
        return tuple(
            Certificate.issue(
                subject=self.subject,
                events=list(events),
                proofs=list(self.proofs),
                plan=self.description(),
                notes=[who],
                publishable=publishable,
            )
            for events in self.costs
        )

    def _grid_words(self) -> str:
        grids = sorted({block.grid for block in self.blocks})
        return f"a grid of {grids[0]:g}" if len(grids) == 1 else f"grids from {grids[0]:g} to {grids[-1]:g}"

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
        """All that was agreed, in plain values: `from_dict` is the inverse and checks everything again."""
        record = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        record["centres"] = [[centre.name, centre.identity] for centre in self.centres]
        return {"kind": self.kind, **record, **self._own_record()}

    @abstractmethod
    def _own_record(self) -> dict[str, Any]:
        """The fields of the class that are no plain values."""

    @classmethod
    @abstractmethod
    def _own_fields(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of `_own_record`."""

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Round:
        """The round a record describes; InputError if it describes none.

        Every check of a round is made again: a record from elsewhere cannot promise more than its noise keeps.
        """
        # Kinds of rounds are those below Round: they have to be there to be found.
        for home in ("statistic_round", "study_round"):
            import_module(f"sfumato.centres.{home}")
        try:
            fields = dict(record)
            kind = {one.kind: one for one in Round.__subclasses__()}[fields.pop("kind")]
            if set(fields) != {item.name for item in dataclasses.fields(kind)}:
                raise InputError("It has unknown or missing fields")
            fields["centres"] = tuple(Centre(*pair) for pair in fields["centres"])
            return kind(**{**fields, **kind._own_fields(fields)})
        except SfumatoError as error:
            raise InputError(f"This is not a round: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"This is not a round: {type(error).__name__}.") from error


def check_whole(value: object, name: str, least: int) -> None:
    """InputError unless `value` is a whole number, and no truth value, of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}. Nothing was run.")
