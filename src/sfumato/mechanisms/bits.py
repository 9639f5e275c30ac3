"""Random bits: AES-256 in counter mode, keyed by the operating system.

In:   nothing, or a seed for experiments.
Out:  uniform 64-bit words.
Not here: turning bits into noise (mechanisms/sampling.py).

A generator lives for one call of a mechanism and takes a fresh key, so forked processes never share a stream.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.errors import InputError

__all__ = ["Bits"]

_ZEROS = bytes(1 << 17)


class Bits:
    """A stream of uniform bits. With a `seed` it repeats itself: for experiments, never for publication.

    >>> bool(np.all(Bits(seed=7).words(4) == Bits(seed=7).words(4)))
    True
    >>> bool(np.any(Bits().words(4) != Bits().words(4)))
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        if seed is None:
            material = os.urandom(48)
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
