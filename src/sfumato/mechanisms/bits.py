"""Random bits: AES-256 in counter mode, keyed by the operating system.

In:   nothing, the secret key of a run that may be retried, or a seed for experiments.
Out:  uniform 64-bit words.
Not here: turning bits into noise (mechanisms/sampling.py), where the key of a run lives (run/run_key.py).
Proof: docs/proofs/keyed_streams.md

A generator lives for one call of a mechanism and takes a fresh key, so forked processes never share a stream. Only
where the same call may happen twice (a task that a cluster retries) is the key derived from the secret of the run
and the place of the rows, so that both calls draw the same noise.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.errors import InputError

__all__ = ["Bits", "StreamKey"]

_ZEROS = bytes(1 << 17)
_KEY_BYTES = 32


@final
class StreamKey:
    """The secret of one run. `at` derives a key for each place; streams of different places are independent.

    Two draws at the same place are the same draw: use a place for one set of rows and one act only, and destroy the key
    when the run is over. It never shows itself in a message.

    >>> key = StreamKey.fresh()
    >>> bool(np.all(Bits(key.at(3, "age")).words(4) == Bits(key.at(3, "age")).words(4)))
    True
    >>> bool(np.any(Bits(key.at(3, "age")).words(4) != Bits(key.at(4, "age")).words(4)))
    True
    >>> key
    StreamKey(…)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes) or len(secret) != _KEY_BYTES:
            raise InputError(f"The secret of a run has {_KEY_BYTES} bytes. Nothing was drawn.")
        self._secret = secret

    @classmethod
    def fresh(cls) -> StreamKey:
        """A key nobody has seen."""
        return cls(os.urandom(_KEY_BYTES))

    def at(self, *place: int | str) -> StreamKey:
        """The key of a place. `repr` writes a tuple of whole numbers and texts in one way only."""
        return StreamKey(hmac.digest(self._secret, b"place" + repr(place).encode(), "sha256"))

    def material(self, length: int) -> bytes:
        """Bytes for a cipher, from the secret alone; another label than `at` has."""
        return hmac.digest(self._secret, b"stream", "sha512")[:length]

    def export(self) -> bytes:
        """The secret itself, for the file beside the ledger."""
        return self._secret

    def __repr__(self) -> str:
        return "StreamKey(…)"

    def __reduce__(self) -> tuple[type[StreamKey], tuple[bytes]]:
        return StreamKey, (self._secret,)


class Bits:
    """A stream of uniform bits. With a `seed` it repeats itself: for experiments, never for publication.

    With a StreamKey it repeats itself only to those who hold the key: for the retries of one run.

    >>> bool(np.all(Bits(seed=7).words(4) == Bits(seed=7).words(4)))
    True
    >>> bool(np.any(Bits().words(4) != Bits().words(4)))
    True
    """

    def __init__(self, seed: int | StreamKey | None = None) -> None:
        if seed is None:
            material = os.urandom(48)
        elif isinstance(seed, StreamKey):
            material = seed.material(48)
        elif isinstance(seed, int | np.integer) and not isinstance(seed, bool):
            material = hashlib.sha384(b"sfumato experiment" + repr(int(seed)).encode()).digest()
        else:
            raise InputError(f"random_state must be a whole number or None, not {type(seed).__name__}.")
        self._stream = Cipher(algorithms.AES256(material[:32]), modes.CTR(material[32:])).encryptor()

    def fill(self, words: np.ndarray) -> None:
        """Overwrite a contiguous array with random bytes."""
        view = words.data.cast("B")
        for start in range(0, len(view), len(_ZEROS)):
            piece = view[start : start + len(_ZEROS)]
            self._stream.update_into(_ZEROS[: len(piece)] if len(piece) < len(_ZEROS) else _ZEROS, piece)

    def words(self, count: int) -> np.ndarray:
        """`count` uniform 64-bit words."""
        result = np.empty(count, dtype=np.uint64)
        if count:
            self.fill(result)
        return result

    def integer(self, bits: int) -> int:
        """One uniform integer of that many bits."""
        words = self.words(-(-bits // 64))
        return int.from_bytes(words.tobytes(), "little") >> (64 * len(words) - bits)

    def below(self, bound: int, count: int) -> np.ndarray:
        """`count` uniform integers in [0, bound), exactly; `bound` up to 2^63."""
        mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
        result = self.words(count) & mask
        # Half of the words at worst are redrawn in each round.
        waiting = np.flatnonzero(result >= bound)
        while waiting.size:
            result[waiting] = self.words(waiting.size) & mask
            waiting = waiting[result[waiting] >= bound]
        return result.astype(np.int64)
