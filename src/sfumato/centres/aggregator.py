"""The coordinator's side of the protocol, without a network.

In:   the round; signed messages of the centres.
Out:  what to send to each centre next; at the end the noisy sum in cells.
Not here: sockets and deadlines (network.py), what the sum means (outcome.py).
Proof: docs/proofs/secure_aggregation.md

A message that is malformed, forged, replayed or out of turn raises MessageError and changes nothing: its sender
counts as absent from then on, which the protocol can bear as often as the round says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sfumato.centres.masks import commitment, mask, pair_key, pair_sign, private_key, public_bytes, unpack
from sfumato.centres.messages import STEPS, Message, read_json
from sfumato.centres.participant import steps_of, two_keys
from sfumato.centres.round import Round
from sfumato.centres.shamir import PRIME, recover
from sfumato.errors import MessageError, RoundFailedError

__all__ = ["Aggregator"]


class Aggregator:
    """Collects one message from each centre for each step; lives for one round."""

    def __init__(self, agreed: Round) -> None:
        self.round = agreed
        self._steps = steps_of(agreed)
        self.step = self._steps[0]
        self._messages: dict[str, dict[str, Message]] = {step: {} for step in (*STEPS, "refuse")}
        self._vectors: dict[str, np.ndarray] = {}
        self._parcels: dict[str, dict[str, str]] = {}
        self._commitments: dict[str, str] = {}
        self._given: dict[str, tuple[dict[str, int], dict[str, int]]] = {}

    def accept(self, message: Message) -> None:
        """Takes up a centre's message for the present step; MessageError if it is not one."""
        if message.sender not in self.round.places:
            raise MessageError("A message from somebody who is not in the round.")
        message.check(self.round.identity(message.sender), self.round.hash, self.step)
        if message.sender in self._messages[self.step]:
            raise MessageError(f"{message.sender}: a second message for the same step.")
        if message.sender not in self._eligible():
            raise MessageError(f"{message.sender}: not in this round any more.")
        _READERS[self.step](self, message)
        self._messages[self.step][message.sender] = message

    def _eligible(self) -> set[str]:
        position = self._steps.index(self.step)
        if position == 0:
            return set(self.round.places)
        # Whoever agreed may have been late with it and still unmask; all other steps need the one before.
        before = "masked" if self.step == "unmask" else self._steps[position - 1]
        return set(self._messages[before])

    def present(self) -> tuple[str, ...]:
        """Who has answered in this step, in the order of the round."""
        return tuple(name for name in self.round.places if name in self._messages[self.step])

    def advance(self) -> None:
        """Closes the step; RoundFailedError if too few centres are left."""
        needed = self.round.threshold if self.step in ("agreed", "unmask") else self.round.quorum
        count = len(self._messages[self.step])
        if count < needed:
            raise RoundFailedError(
                f"{count} of {len(self.round.centres)} centres answered in step {self.step!r}, and {needed} are "
                "needed. Nothing was revealed by this round and nobody is charged for it. Find out who is missing and "
                "start a new one.",
                revealed=False,
            )
        if self.step != self._steps[-1]:
            self.step = self._steps[self._steps.index(self.step) + 1]

    # What to send.

    def public_keys(self) -> list[Message]:
        return list(self._messages["keys"].values())

    def parcels_for(self, name: str) -> dict[str, str]:
        return {sender: parcels[name] for sender, parcels in self._parcels.items() if sender != name}

    def included(self) -> list[str]:
        return sorted(self._messages["masked"])

    def signatures(self) -> list[Message]:
        return list(self._messages["agreed"].values())

    def has_unmasked(self, name: str) -> bool:
        return name in self._messages["unmask"]

    # What comes in.

    def _read_keys(self, message: Message) -> None:
        two_keys(message)

    def _read_shares(self, message: Message) -> None:
        body = read_json(message.body, dict)
        parcels, bound = body.get("parcels"), body.get("commitment")
        others = set(self._messages["keys"]) - {message.sender}
        if not isinstance(parcels, dict) or set(parcels) != others or not isinstance(bound, str):
            raise MessageError(f"{message.sender}: a parcel for each of the others was expected.")
        if not all(isinstance(parcel, str) and len(parcel) < 1000 for parcel in parcels.values()):
            raise MessageError(f"{message.sender}: a parcel has the wrong form.")
        self._parcels[message.sender], self._commitments[message.sender] = parcels, bound

    def _read_masked(self, message: Message) -> None:
        self._vectors[message.sender] = unpack(message.body, self.round.width, self.round.length)

    def _read_agreed(self, message: Message) -> None:
        if read_json(message.body, list) != self.included():
            raise MessageError(f"{message.sender}: agreed to another set.")

    def _read_unmask(self, message: Message) -> None:
        body = read_json(message.body, dict)
        inside, absent = _numbers(body.get("inside")), _numbers(body.get("absent"))
        if set(inside) != set(self._vectors) or set(absent) != set(self._parcels) - set(self._vectors):
            raise MessageError(f"{message.sender}: shares for other centres than were asked for.")
        self._given[message.sender] = inside, absent

    def total(self) -> np.ndarray:
        """The noisy sum of the included centres in cells (int64); RoundFailedError if the shares do not fit."""
        total = np.zeros(self.round.length, dtype=np.uint64)
        for vector in self._vectors.values():
            total = total + vector
        return self._signed(self._unmasked(total) if self.round.masked else total)

    def _unmasked(self, total: np.ndarray) -> np.ndarray:
        for name in self._vectors:
            seed = self._opened(name, 0, lambda secret, name=name: commitment(secret) == self._commitments[name])
            total = total - mask(seed, self.round.length)
        for gone in set(self._parcels) - set(self._vectors):
            public = two_keys(self._messages["keys"][gone])[0]
            secret = self._opened(gone, 1, lambda secret, public=public: public_bytes(secret) == public)
            total = self._without_pairs(total, gone, secret)
        return total

    def _without_pairs(self, total: np.ndarray, gone: str, secret: bytes) -> np.ndarray:
        """Takes out the masks that the included centres shared with one that went."""
        own = private_key(secret)
        for name in self._vectors:
            public = two_keys(self._messages["keys"][name])[0]
            shared = mask(pair_key(own, public, "mask", self.round.hash), self.round.length)
            added = pair_sign(self.round.places[name], self.round.places[gone]) > 0
            total = total - shared if added else total + shared
        return total

    def _opened(self, name: str, which: int, right: Callable[[bytes], bool]) -> bytes:
        """The secret of one centre from any shares that fit it: a wrong share is passed over while enough are left."""
        shares = {self.round.places[giver]: pair[which][name] for giver, pair in self._given.items()}
        places, threshold = sorted(shares), self.round.threshold
        for turn in range(len(places)):
            used = [places[(turn + step) % len(places)] for step in range(threshold)]
            try:
                secret = recover({place: shares[place] for place in used})
            except MessageError:
                continue
            if right(secret):
                return secret
            if len(places) == threshold:
                break
        raise RoundFailedError(
            "The key shares do not open the masks: a centre sent wrong ones. The sum may be known to whoever has the "
            "right shares, so the round counts as spent. Find out which centre it was before another attempt.",
            revealed=True,
        )

    def _signed(self, total: np.ndarray) -> np.ndarray:
        """Modulo 2^bits, read as a number around 0."""
        if self.round.bits < 64:
            half = np.uint64(1 << (self.round.bits - 1))
            return ((total + half) & np.uint64((1 << self.round.bits) - 1)).astype(np.int64) - np.int64(half)
        return total.view(np.int64)


def _numbers(shares: object) -> dict[str, int]:
    if not isinstance(shares, Mapping):
        raise MessageError("Shares were expected.")
    numbers = {}
    for name, text in shares.items():
        try:
            numbers[name] = int(text, 16)
        except (TypeError, ValueError) as error:
            raise MessageError("A share is not a number.") from error
        if not 0 <= numbers[name] < PRIME:
            raise MessageError("A share is out of range.")
    return numbers


_READERS = {
    "keys": Aggregator._read_keys,
    "shares": Aggregator._read_shares,
    "masked": Aggregator._read_masked,
    "agreed": Aggregator._read_agreed,
    "unmask": Aggregator._read_unmask,
}
