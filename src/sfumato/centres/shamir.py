"""Shamir's secret sharing over the prime 2^521 - 1.

In:   a secret of 32 bytes, who gets a share, how many shares open it.
Out:  shares; the secret again from enough of them.
Not here: what is shared and with whom (participant.py).

Ours, and short, because no library fits: pycryptodome's scheme takes 16 bytes over GF(2^128), so a key would be cut in
two and the package become a dependency for thirty lines. Whoever sees a share sees it whole, so timing is no issue.
The law is tested exhaustively over a small prime, and pycryptodome is not needed for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache

from sfumato.errors import MessageError

__all__ = ["PRIME", "recover", "split", "weights_at_zero"]

PRIME = (1 << 521) - 1
SECRET_BYTES = 32


def split(secret: bytes, threshold: int, places: Sequence[int]) -> dict[int, int]:
    """One share for each of the distinct `places` >= 1; any `threshold` of them open the secret, fewer say nothing.

    >>> shares = split(bytes(range(32)), 3, [1, 2, 3, 4, 5])
    >>> recover({place: shares[place] for place in (2, 3, 5)}) == bytes(range(32))
    True
    """
    coefficients = [int.from_bytes(secret, "big"), *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    shares = {}
    for place in places:
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * place + coefficient) % PRIME
        shares[place] = value
    return shares


@lru_cache(maxsize=256)
def weights_at_zero(places: tuple[int, ...], prime: int = PRIME) -> Mapping[int, int]:
    """Lagrange's weights: Σ weight·share is the polynomial at 0. Kept, as every mask is opened by the same centres."""
    weights = {}
    for place in places:
        top = bottom = 1
        for other in places:
            if other != place:
                top = top * other % prime
                bottom = bottom * (other - place) % prime
        weights[place] = top * pow(bottom, -1, prime) % prime
    return weights


def recover(shares: Mapping[int, int]) -> bytes:
    """The secret behind exactly as many shares as open it; MessageError if they are not of one secret."""
    factors = weights_at_zero(tuple(shares))
    value = sum(factors[place] * share for place, share in shares.items()) % PRIME
    if value.bit_length() > 8 * SECRET_BYTES:
        raise MessageError("The key shares do not belong together.")
    return value.to_bytes(SECRET_BYTES, "big")
