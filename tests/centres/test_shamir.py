"""Shamir's scheme: enough shares open the secret, fewer say nothing, and wrong ones are not taken for right."""

from __future__ import annotations

import itertools
import secrets

import pytest

from sfumato.centres.shamir import PRIME, recover, split, weights_at_zero
from sfumato.errors import MessageError


def test_any_threshold_of_shares_open_the_secret():
    secret = secrets.token_bytes(32)
    shares = split(secret, 3, [1, 2, 3, 4, 5, 6])
    for used in itertools.combinations(shares, 3):
        assert recover({place: shares[place] for place in used}) == secret


def test_fewer_shares_fit_every_secret_equally_often():
    """Over a small prime, by counting: two shares of threshold three are compatible with every secret once."""
    prime, places = 7, (1, 2)
    seen: dict[tuple[int, int], list[int]] = {}
    for secret, a, b in itertools.product(range(prime), repeat=3):
        pair = tuple((secret + a * x + b * x * x) % prime for x in places)
        seen.setdefault(pair, []).append(secret)
    assert all(sorted(fitting) == list(range(prime)) for fitting in seen.values())


def test_weights_are_those_of_lagrange():
    weights = weights_at_zero((1, 2, 3), 7)
    for c in itertools.product(range(7), repeat=3):
        values = {x: (c[0] + c[1] * x + c[2] * x * x) % 7 for x in (1, 2, 3)}
        assert sum(weights[x] * values[x] for x in values) % 7 == c[0]


def test_shares_that_do_not_belong_together_open_nothing_or_something_else():
    """The commitment tells the second case from the right secret (aggregator.py)."""
    secret = secrets.token_bytes(32)
    shares = split(secret, 2, [1, 2])
    assert recover({**shares, 1: (shares[1] + 1) % PRIME}) != secret
    with pytest.raises(MessageError):
        recover({**shares, 1: secrets.randbelow(PRIME)})
