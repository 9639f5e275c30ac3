"""What an institution checks before it takes part, and what it pays afterwards.

In:   the round and certificates that a coordinator sends, the round that the institution agreed to, its own ledger.
Out:  RefusedError, or a Seat: the one way in which a centre speaks, over whatever transport; its reservation ends
      committed, released or open.
Not here: the ledger itself (ledger/ledger.py, handed in by the caller), the protocol (participant.py), what was$
      said (register.py).
Proof: docs/proofs/secure_aggregation.md, "Charging"
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.messages import DECLINE, Message, read_json, write_json
from sfumato.centres.outcome import Outcome, proves_silence
from sfumato.centres.participant import Participant
from sfumato.centres.register import Register
from sfumato.centres.round import Round
from sfumato.centres.unsent import charge_key, release_once
from sfumato.core.certificate import Certificate
from sfumato.errors import (
    InputError,
    LedgerError,
    MessageError,
    OtherRoundError,
    OverspendError,
    RefusedError,
    SfumatoError,
    UnknownDatasetError,
)

__all__ = [
    "Charge",
    "Offer",
    "Purse",
    "RoundAccount",
    "Seat",
    "can_be_mended",
    "check_agreement",
    "declined",
    "known_reason",
    "reason_of",
    "refusal_of",
    "said_by",
]

Verify = Callable[[Certificate], Any]


class Book(Protocol):
    """The part of a ledger that is used here."""

    path: Path

    def reserve(self, dataset: str, cost: Any, *, purpose: str = "", key: str | None = None) -> Any: ...
    def commit(self, reservation: Any) -> None: ...
    def release(self, reservation: Any) -> None: ...
    def state(self, identity: str) -> str: ...


class Purse(Protocol):
    """Where an institution books what its patients spend, and keeps what it has said in which round."""

    @property
    def ledger(self) -> Book: ...

    def reserve(self, agreed: Round, key: str, made: list[Any]) -> None:
        """Sets the round's cost aside; `made` tells of every reservation as soon as there is one."""
        ...


@dataclass(frozen=True)
class RoundAccount:
    """One account of a ledger that pays for all that a round costs."""

    ledger: Book
    dataset: str

    def reserve(self, agreed: Round, key: str, made: list[Any]) -> None:
        for events in agreed.costs:
            purpose = f"{agreed.subject} (several centres)"
            made.append(self.ledger.reserve(self.dataset, list(events), purpose=purpose, key=key))


@dataclass(frozen=True)
class Offer:
    """What a coordinator sends first: the round of this attempt, and the certificates of its cost."""

    round: Round
    certificates: tuple[str, ...]

    @classmethod
    def of(cls, agreed: Round) -> Offer:
        return cls(agreed, tuple(one.to_json() for one in agreed.certificates()))

    def to_bytes(self) -> bytes:
        return write_json({"round": self.round.to_dict(), "certificates": list(self.certificates)})

    @classmethod
    def from_bytes(cls, body: bytes) -> Offer:
        try:
            record = read_json(body, dict)
            return cls(Round.from_dict(record["round"]), tuple(map(str, record["certificates"])))
        except (KeyError, TypeError, SfumatoError) as error:
            raise RefusedError("The coordinator's round cannot be read. Nothing left the centre.") from error


def check_agreement(offered: Round, approved: Round, certificates: Sequence[str], verify: Verify | None = None) -> None:
    """RefusedError unless the coordinator offers exactly what was approved, and its certificates say what that costs.

    The numbers are derived again from the round; `verify` (evidence.verify, where there is one) checks them
    independently.
    """
    _check_offered(offered, approved)
    own = approved.certificates()
    try:
        given = [Certificate.from_json(text) for text in certificates]
    except SfumatoError as error:
        raise OtherRoundError("The coordinator's certificates cannot be read. Nothing left the centre.") from error
    if [_claims(one) for one in given] != [_claims(one) for one in own]:
        raise OtherRoundError("The certificates do not say what this round costs. Nothing left the centre.")
    if verify is not None and not all(verify(one) for one in given):
        raise OtherRoundError("A certificate does not hold. Nothing left the centre and nothing was spent.")


def _check_offered(offered: Round, approved: Round) -> None:
    if offered.description() != approved.description():
        changed = [name for name, value in offered.description().items() if approved.description()[name] != value]
        raise OtherRoundError(
            f"The coordinator offers a round that differs from the approved one in {', '.join(changed)}. Nothing left "
            "the centre and nothing was spent. Approve the new round first, if it is acceptable."
        )
    if not isinstance(offered.nonce, str) or len(offered.nonce) < 32:
        raise OtherRoundError("The round has no fresh number: it could be a replay. Nothing left the centre.")


def _claims(certificate: Certificate) -> tuple[object, ...]:
    return certificate.events, certificate.guarantee, certificate.claims, certificate.proofs, certificate.plan_hash


@dataclass
class Charge:
    """The cost of one round at one centre: reserved before anything is sent, settled when its end is known.

    `token` belongs to the call that takes part: the ledger hands the reservation back for this token alone, so nobody
    else who is offered the round can use it or give it back.
    """

    agreed: Round
    name: str
    account: Purse | None
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    _open: list[Any] = field(default_factory=list)

    @property
    def register(self) -> Register:
        return Register(None if self.account is None else self.account.ledger.path)

    def reserve(self) -> None:
        """Sets the cost aside for every kind of unit; raises what the ledger raises, with nothing left reserved."""
        if self.account is None:
            return
        try:
            self.account.reserve(self.agreed, charge_key(self.agreed.hash, self.token, self.name), self._open)
        except SfumatoError:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Releases what this call reserved: nothing that it pays for has left the centre or ever will."""
        self._each("release")

    def settle(self, outcome: Outcome | None) -> str:
        """Commit, release or keep; the word for it."""
        word = self._word(outcome)
        if word != "open":
            self._each(word)
        return word

    def _word(self, outcome: Outcome | None) -> Literal["commit", "release", "open"]:
        # Taking the step of the masked sum here means that nobody can send it after the release.
        if self.register.try_withdraw(self.agreed.hash, self.name):
            return "release"
        if not self.agreed.masked:
            return "commit"  # what left carried all of its noise and may have been read by anybody
        if outcome is None:
            return "open"
        curious = self.agreed.coordinator == "curious"
        if outcome.revealed:
            # A coordinator that follows the protocol left out whom it says it left out.
            return "release" if curious and self.name not in outcome.included else "commit"
        if curious:
            return "release"
        try:
            return "release" if proves_silence(self.agreed, outcome.refusals) else "open"
        except MessageError:
            return "open"

    def _each(self, word: Literal["commit", "release"]) -> None:
        if self.account is not None:
            for reservation in self._open:
                if word == "commit":
                    self.account.ledger.commit(reservation)
                else:
                    release_once(self.account.ledger, reservation)
        self._open = []


#: Why a centre does not take part, as it may be told: by the kind of refusal, never by its words.
_REASONS: tuple[tuple[type[SfumatoError], str], ...] = (
    (UnknownDatasetError, "no budget was granted yet"),
    (OverspendError, "its budget does not allow it"),
    (LedgerError, "its ledger does not allow it"),
    (InputError, "its tables are missing or not what the study describes"),
    (OtherRoundError, "the round is not what it agreed to"),
    (RefusedError, "it may not take part, or has answered this round before"),
)
_OTHERWISE = "it could not take part"
#: What somebody can decide or mend within a minute.
_MENDED = frozenset({*(text for _, text in _REASONS[:4]), _OTHERWISE})


def reason_of(error: SfumatoError) -> str:
    """The kind of reason, as the coordinator may hear it."""
    return next((text for kind, text in _REASONS if isinstance(error, kind)), _OTHERWISE)


def declined(agreed: Round, name: str, key: Ed25519PrivateKey, error: SfumatoError) -> Message:
    """A signed word to the coordinator that this centre does not take part, and the kind of reason."""
    return Message(agreed.hash, name, DECLINE, reason_of(error).encode()).sign(key)


def refusal_of(message: Message) -> str:
    """The reason in a centre's word."""
    return known_reason(message.body.decode("utf-8", "replace"))


def known_reason(said: object) -> str:
    """A reason as it may be repeated: of what is none of the known ones nothing is."""
    return next((text for _, text in _REASONS if text == said), _OTHERWISE)


def can_be_mended(reason: str) -> bool:
    """Whether a centre that refused so may come again, with a grant or another folder."""
    return reason in _MENDED


def said_by(member: Participant, kind: Any, body: bytes) -> Message:
    """A participant's answer to one question of the conductor."""
    match kind:
        case "keys":
            return member.shares([Message.from_dict(item) for item in read_json(body, list)])
        case "parcels":
            return member.masked(read_json(body, dict))
        case "included":
            return member.agreed(read_json(body, list))
        case "signatures":
            return member.unmask([Message.from_dict(item) for item in read_json(body, list)])
        case "refuse":
            return member.refuse()
    raise MessageError("The coordinator asks for something that is no step of the protocol.")


#: A refusal promises never to unmask, so the two are one step that is taken once.
_SLOTS = {"refuse": "unmask"}


@dataclass
class Seat:
    """One centre's place in one round: every transport lets a centre speak through this alone."""

    member: Participant
    charge: Charge

    @classmethod
    def take(
        cls,
        offer: Offer,
        approved: Round,
        name: str,
        key: Ed25519PrivateKey,
        cells: np.ndarray,
        account: Purse | None,
        verify: Verify | None,
    ) -> tuple[Seat, Message]:
        """Checks what is offered, reserves its cost, records that the centre takes part; its first message.

        RefusedError, or what the ledger raises: nothing left, and nothing stays reserved.
        """
        check_agreement(offer.round, approved, offer.certificates, verify)
        member = Participant(offer.round, name, key, cells)
        seat = cls(member, Charge(offer.round, name, account))
        if seat.has_taken("keys"):
            seat._claim("keys")  # refuses, before anything is reserved
        seat.charge.reserve()
        try:
            seat._claim("keys")
        except SfumatoError:
            seat.charge.give_back()
            raise
        return seat, member.keys()

    @classmethod
    def again(
        cls, agreed: Round, name: str, key: Ed25519PrivateKey, cells: np.ndarray, account: Purse | None, memory: bytes
    ) -> Seat:
        """The seat as `memory` left it, for transports that call a centre anew for every message."""
        known = read_json(memory, dict)
        member = Participant(agreed, name, key, cells)
        member.recall(bytes.fromhex(known["member"]))
        return cls(member, Charge(agreed, name, account, known["token"]))

    def memory(self) -> bytes:
        """What to keep until the next message: secrets of the round, not the centre's data."""
        return write_json({"token": self.charge.token, "member": self.member.memory().hex()})

    def has_taken(self, step: str) -> bool:
        return self.charge.register.holds(self.member.round.hash, self.member.name, _SLOTS.get(step, step))

    def answer(self, kind: Any, body: bytes) -> Message:
        """The centre's message for one request; on record before it leaves, so that no step is ever said twice."""
        answer = said_by(self.member, kind, body)
        self._claim(answer.step)
        return answer

    def settle(self, outcome: Outcome | None) -> str:
        """Ends the round for this centre: what it reserved is committed, released or stays open."""
        return self.charge.settle(outcome)

    def _claim(self, step: str) -> None:
        self.charge.register.claim(self.member.round.hash, self.member.name, _SLOTS.get(step, step))
