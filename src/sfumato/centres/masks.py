"""Keys and masks: X25519, HKDF-SHA256, ChaCha20.

In:   private and public keys, the round they are for.
Out:  words that look uniform, and cancel in the sum; sealed shares.
Not here: who sends them (participant.py), what is noise (mechanisms/shares.py): a mask is none, it vanishes.
Proof: docs/proofs/secure_aggregation.md
"""

from __future__ import annotations

import hashlib

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.errors import MessageError

__all__ = [
    "commitment",
    "mask",
    "opened",
    "pack",
    "pair_key",
    "pair_sign",
    "private_key",
    "public_bytes",
    "sealed",
    "unpack",
]


def private_key(secret: bytes) -> X25519PrivateKey:
    """Reading a key costs as much as using it: once for a round."""
    return X25519PrivateKey.from_private_bytes(secret)


def public_bytes(secret: bytes) -> bytes:
    """The X25519 public key of 32 secret bytes."""
    return private_key(secret).public_key().public_bytes_raw()


def pair_key(own: X25519PrivateKey, their_public: bytes, purpose: str, round_hash: str) -> bytes:
    """The key two centres share for one purpose in one round; both compute the same."""
    try:
        agreed = own.exchange(X25519PublicKey.from_public_bytes(their_public))
    except ValueError as error:  # a public key of small order
        raise MessageError("A centre's public key is not one.") from error
    info = f"sfumato {purpose} {round_hash}".encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(agreed)


def mask(key: bytes, length: int) -> np.ndarray:
    """`length` words of 64 bits from a key that serves for this one mask; smaller moduli use their low bits."""
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * length)), dtype="<u8")


def pair_sign(own: int, other: int) -> int:
    """The two of a pair use the same mask with opposite signs."""
    return 1 if own < other else -1


def commitment(seed: bytes) -> str:
    """Binds a centre to its own mask without telling it: the seed has 256 random bits."""
    return hashlib.sha256(b"sfumato own mask" + seed).hexdigest()


def sealed(key: bytes, text: bytes, header: str) -> bytes:
    """Encrypted for the other of a pair. The key is for one direction of one round, so the nonce may be constant."""
    return ChaCha20Poly1305(key).encrypt(bytes(12), text, header.encode())


def opened(key: bytes, sealed_text: bytes, header: str) -> bytes:
    """The inverse of `sealed`; MessageError where the text, the key or the header is another one."""
    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), sealed_text, header.encode())
    except InvalidTag as error:
        raise MessageError("A sealed share was changed on its way or is from another round.") from error


def pack(words: np.ndarray, width: int) -> bytes:
    """The low `width` bytes of each word."""
    return np.ascontiguousarray(words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]).tobytes()


def unpack(data: bytes, width: int, length: int) -> np.ndarray:
    """The inverse of `pack`: words of 64 bits."""
    if len(data) != width * length:
        raise MessageError("A masked vector has the wrong length.")
    padded = np.zeros((length, 8), dtype=np.uint8)
    padded[:, :width] = np.frombuffer(data, dtype=np.uint8).reshape(length, width)
    return padded.view("<u8").reshape(length)
