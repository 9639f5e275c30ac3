"""One institution's side of the protocol, without a network.

In:   the round, its own sum in cells, its key; then what the coordinator sends, step by step.
Out:  signed messages, one for each step.
Not here: sockets (network.py), the ledger (node.py), the coordinator (aggregator.py).
Proof: docs/proofs/secure_aggregation.md, docs/proofs/distributed_noise.md

    keys ──▶ shares ──▶ masked ──▶ agreed ──▶ unmask      each at most once, in this order; `refuse` ends it

Everything received is checked against the round, and nothing of it is believed that can be checked with a signature.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sfumato.centres.masks import commitment, mask, opened, pack, pair_key, pair_sign, private_key, public_bytes, sealed
from sfumato.centres.messages import STEPS, Message, Step, read_json, write_json
from sfumato.centres.round import Round
from sfumato.centres.shamir import PRIME, split
from sfumato.errors import MessageError, RefusedError
from sfumato.mechanisms.bits import Bits

__all__ = ["Participant", "steps_of", "two_keys"]

_SHARE_BYTES = (PRIME.bit_length() + 7) // 8


class Participant:
    """What one centre knows and says in one round. Lives for that round only."""

    def __init__(
        self,
        agreed: Round,
        name: str,
        identity: Ed25519PrivateKey,
        cells: np.ndarray,
        *,
        random_state: int | None = None,
    ) -> None:
        """`cells` is the centre's own sum (Statistic.cells). `random_state` fixes the noise share: experiments only."""
        if name not in agreed.places:
            raise RefusedError(f"{name} is not one of the centres of this round. Nothing left the centre.")
        if identity.public_key().public_bytes_raw().hex() != agreed.identity(name):
            raise RefusedError(f"{name} is registered in this round with another key. Nothing left the centre.")
        if not isinstance(cells, np.ndarray) or cells.dtype != np.int64 or cells.shape != (agreed.length,):
            raise RefusedError(f"{name}: the statistic has the wrong shape for this round. Nothing left the centre.")
        if agreed.is_beyond(cells, summed=False):
            raise RefusedError(f"{name}: the statistic is larger than the round allows. Nothing left the centre.")
        self.round, self.name, self.place = agreed, name, agreed.places[name]
        self._identity, self._cells = identity, cells
        self._bits = Bits(random_state)
        self._mask_key, self._seal_key, self._own_seed = (secrets.token_bytes(32) for _ in range(3))
        self._next: str | None = STEPS[0]
        self._gave = False
        self._keys: dict[str, tuple[bytes, bytes]] = {}
        self._held: dict[str, tuple[int, int]] = {}
        self._included: tuple[str, ...] = ()

    def keys(self) -> Message:
        """Step 1: two public keys, one for masks, one for sealing."""
        self._turn("keys")
        return self._say("keys", write_json([public_bytes(self._mask_key).hex(), public_bytes(self._seal_key).hex()]))

    def shares(self, keys: Sequence[Message]) -> Message:
        """Step 2: shares of the mask key and of the own mask's seed, sealed for each of the others."""
        self._turn("shares")
        for message in keys:
            self._known(message)
            message.check(self.round.identity(message.sender), self.round.hash, "keys")
            if message.sender in self._keys:
                raise MessageError(f"{message.sender}: two sets of keys.")
            self._keys[message.sender] = two_keys(message)
        self._enough(self._keys, "keys")
        places = [self.round.places[name] for name in self._keys]
        own = private_key(self._seal_key)
        of_key = split(self._mask_key, self.round.threshold, places)
        of_seed = split(self._own_seed, self.round.threshold, places)
        parcels = {}
        for name in self._keys:
            place = self.round.places[name]
            pair = of_key[place].to_bytes(_SHARE_BYTES, "big") + of_seed[place].to_bytes(_SHARE_BYTES, "big")
            if name == self.name:
                self._held[name] = of_key[place], of_seed[place]
            else:
                parcels[name] = sealed(self._seal(own, self.name, name), pair, self._header(self.name, name)).hex()
        return self._say("shares", write_json({"commitment": commitment(self._own_seed), "parcels": parcels}))

    def masked(self, parcels: Mapping[str, str]) -> Message:
        """Step 3: the sum plus noise plus masks. The first message that depends on the data."""
        self._turn("masked")
        agreed = self.round
        # Whole numbers modulo 2^64, hence modulo every smaller power of two.
        noisy = (self._cells + agreed.noise(self._bits, self._cells)).view(np.uint64)
        return self._say("masked", pack(noisy + self._masks(parcels) if agreed.masked else noisy, agreed.width))

    def _masks(self, parcels: Mapping[str, str]) -> np.ndarray:
        """The own mask, and one with each of the others that sent a parcel."""
        reading = private_key(self._seal_key)
        for name, parcel in parcels.items():
            if name not in self._keys or name == self.name:
                raise MessageError("A parcel from somebody who sent no keys.")
            text = opened(self._seal(reading, name, self.name), _hex(parcel), self._header(name, self.name))
            self._held[name] = _two_shares(text)
        self._enough(self._held, "parcels")
        agreed, own = self.round, private_key(self._mask_key)
        total = mask(self._own_seed, agreed.length)
        for name in self._held:
            if name != self.name:
                other = mask(pair_key(own, self._keys[name][0], "mask", agreed.hash), agreed.length)
                total = total + other if pair_sign(self.place, agreed.places[name]) > 0 else total - other
        return total

    def agreed(self, included: Sequence[str]) -> Message:
        """Step 4: a signature on the one set whose sum may be opened."""
        self._turn("agreed")
        if len(set(included)) < len(included) or not set(included) <= set(self._held) or self.name not in included:
            raise MessageError("The proposed set contains strangers, a name twice, or leaves out its reader.")
        self._enough(included, "centres in the sum")
        self._included = tuple(sorted(included))
        return self._say("agreed", write_json(list(self._included)))

    def unmask(self, signatures: Sequence[Message]) -> Message:
        """Step 5: for each centre in the set a share of its own mask's seed, for each absent one a share of its key."""
        self._turn("unmask")
        signers = set()
        for message in signatures:
            self._known(message)
            message.check(self.round.identity(message.sender), self.round.hash, "agreed")
            if message.body != write_json(list(self._included)):
                raise MessageError("Somebody agreed to another set.")
            signers.add(message.sender)
        if len(signers) < self.round.threshold:
            raise MessageError("Too few centres agreed to the set.")
        inside = {name: format(self._held[name][1], "x") for name in self._included}
        absent = {name: format(pair[0], "x") for name, pair in self._held.items() if name not in self._included}
        return self._say("unmask", write_json({"inside": inside, "absent": absent}))

    def refuse(self) -> Message:
        """A signed promise that this centre has not unmasked this round and never will."""
        if self._gave:
            raise RefusedError(f"{self.name} has already given its shares in this round.")
        self._next = None
        return self._say("refuse", b"")

    def memory(self) -> bytes:
        """What this participant must remember until it is asked again: secrets of the round, not its data."""
        return write_json(
            {
                "secrets": [key.hex() for key in (self._mask_key, self._seal_key, self._own_seed)],
                "next": self._next,
                "gave": self._gave,
                "keys": {name: [key.hex() for key in pair] for name, pair in self._keys.items()},
                "held": {name: [format(share, "x") for share in pair] for name, pair in self._held.items()},
                "included": list(self._included),
            }
        )

    def recall(self, memory: bytes) -> None:
        """Takes up where `memory` left off. Each memory is to be used once: an old one would answer a step again."""
        known = read_json(memory, dict)
        self._mask_key, self._seal_key, self._own_seed = map(bytes.fromhex, known["secrets"])
        self._next, self._gave = known["next"], known["gave"]
        self._keys = {name: (bytes.fromhex(a), bytes.fromhex(b)) for name, (a, b) in known["keys"].items()}
        self._held = {name: (int(a, 16), int(b, 16)) for name, (a, b) in known["held"].items()}
        self._included = tuple(known["included"])

    def _turn(self, step: str) -> None:
        """Each step once and in order: a second answer could open a second sum over the same noise."""
        turn, self._next = self._next, None  # whatever fails from here on, this participant says no more
        if turn != step:
            raise MessageError(f"{self.name} was asked for {step} out of turn and leaves the round.")
        self._gave = self._gave or step == "unmask"

    def _known(self, message: Message) -> None:
        if message.sender not in self.round.places:
            raise MessageError("A message from somebody who is not in the round.")

    def _enough(self, names: Mapping[str, object] | Sequence[str], what: str) -> None:
        if len(names) < self.round.quorum or self.name not in names:
            raise MessageError(f"Too few {what}: the round needs {self.round.quorum}.")

    def _seal(self, own: X25519PrivateKey, sender: str, receiver: str) -> bytes:
        other = receiver if sender == self.name else sender
        return pair_key(own, self._keys[other][1], f"seal {self._header(sender, receiver)}", self.round.hash)

    def _header(self, sender: str, receiver: str) -> str:
        return f"{self.round.places[sender]} to {self.round.places[receiver]}"

    def _say(self, step: str, body: bytes) -> Message:
        steps = steps_of(self.round)
        if step in steps[:-1]:
            self._next = steps[steps.index(step) + 1]
        return Message(self.round.hash, self.name, step, body).sign(self._identity)


def steps_of(agreed: Round) -> tuple[Step, ...]:
    """What a centre says, in order. Without masks there is nothing to agree on and nothing to open."""
    return STEPS if agreed.masked else ("keys", "masked")


def _hex(text: object) -> bytes:
    try:
        return bytes.fromhex(text)  # type: ignore[arg-type]  # refused below
    except (TypeError, ValueError) as error:
        raise MessageError("Bytes were expected in hexadecimal.") from error


def two_keys(message: Message) -> tuple[bytes, bytes]:
    """The two public keys that a centre announces; MessageError where there are others."""
    pair = [_hex(text) for text in read_json(message.body, list)]
    if [len(key) for key in pair] != [32, 32]:
        raise MessageError(f"{message.sender}: two keys of 32 bytes were expected.")
    return pair[0], pair[1]


def _two_shares(text: bytes) -> tuple[int, int]:
    if len(text) != 2 * _SHARE_BYTES:
        raise MessageError("A parcel has the wrong size.")
    return int.from_bytes(text[:_SHARE_BYTES], "big"), int.from_bytes(text[_SHARE_BYTES:], "big")
