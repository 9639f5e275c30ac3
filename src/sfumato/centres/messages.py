"""Signed messages of the protocol, and their form on the wire.

In:   a step, a sender, a body.
Out:  Message; bytes.
Not here: what the bodies mean (participant.py, aggregator.py), sockets (network.py).

No pickles, no compression, every length checked: a message is data from somebody who may be hostile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from sfumato.errors import MessageError

__all__ = ["DECLINE", "STEPS", "Message", "Step", "read_json", "write_json"]

Step = Literal["hello", "keys", "shares", "masked", "agreed", "unmask", "refuse"]
#: What a centre sends after its hello, in this order; "refuse" may take the place of any later one.
STEPS: tuple[Step, ...] = ("keys", "shares", "masked", "agreed", "unmask")
#: What a centre says that was offered a round and does not take part.
DECLINE = "decline"


@dataclass(frozen=True)
class Message:
    """What a centre says in one step of one round, with its signature."""

    round_hash: str
    sender: str
    step: str
    body: bytes
    signature: bytes = b""

    def _signed_text(self) -> bytes:
        head = json.dumps([self.round_hash, self.sender, self.step], ensure_ascii=True)
        return b"sfumato message\0" + head.encode() + b"\0" + self.body

    def sign(self, key: Ed25519PrivateKey) -> Message:
        return replace(self, signature=key.sign(self._signed_text()))

    def check(self, identity: str, round_hash: str, step: str) -> None:
        """Raises MessageError unless `identity` (hex of an Ed25519 key) said this in this step of this round."""
        if self.round_hash != round_hash:
            raise MessageError(f"{self.sender}: the message is from another round.")
        if self.step != step:
            raise MessageError(f"{self.sender}: the message is from another step.")
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(identity)).verify(self.signature, self._signed_text())
        except (InvalidSignature, ValueError) as error:
            raise MessageError(f"{self.sender}: the signature is not that of the registered centre.") from error

    def to_dict(self) -> dict[str, str]:
        return {
            "round": self.round_hash,
            "sender": self.sender,
            "step": self.step,
            "body": self.body.hex(),
            "signature": self.signature.hex(),
        }

    @classmethod
    def from_dict(cls, record: Any) -> Message:
        try:
            texts = [record[name] for name in ("round", "sender", "step", "body", "signature")]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("not text")
            round_hash, sender, step, body, signature = texts
            return cls(round_hash, sender, step, bytes.fromhex(body), bytes.fromhex(signature))
        except (KeyError, TypeError, ValueError) as error:
            raise MessageError("A forwarded message cannot be read.") from error


def write_json(value: Any) -> bytes:
    """The one way to write a value: what is signed and hashed by several parties."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def read_json(data: bytes, kind: type) -> Any:
    """Plain values of the expected outer kind."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MessageError("A message body is not JSON.") from error
    if not isinstance(value, kind):
        raise MessageError("A message body has the wrong form.")
    return value
