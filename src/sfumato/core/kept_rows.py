"""Of several rows of one person: which are kept.

In:   whose each row is, what it holds, how many rows one person may have, a key.
Out:  the positions of the kept rows, those of one person side by side.
Not here: tables in SQL (network/), what is done with the rows (centres/statistics.py).

A person's rows are ordered by HMAC-SHA256(key, person ‖ content ‖ copy number), every field with its length in front,
and the first ones are kept; equal rows of one person are numbered, so a position in a file never counts. The choice
looks at this person's rows alone: replacing a person changes nobody else's rows, and at most `most` of hers are used
whatever the key is. Privacy does not rest on the key; under a random key the kept rows are a uniform sample.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence

import numpy as np

__all__ = ["PUBLIC_KEY", "kept_rows"]

#: The key where nobody has one. It is no secret and need not be one.
PUBLIC_KEY = hashlib.sha256(b"sfumato rows per person").digest()


def kept_rows(
    people: Sequence[str | None], contents: np.ndarray, most: int, key: bytes = PUBLIC_KEY
) -> tuple[np.ndarray, np.ndarray]:
    """The kept rows, ordered by person, and where each person begins among them. Rows of nobody (None) are left out.

    `contents` has one row of numbers for each row of the table: what is the same there is the same row.

    >>> kept, starts = kept_rows(["a", "b", "a", None], np.array([[1.0], [2.0], [1.0], [3.0]]), most=1)
    >>> len(kept), starts.tolist()
    (2, [0, 1])
    """
    owned = np.array([place for place, person in enumerate(people) if person is not None], dtype=np.int64)
    names = [people[place] for place in owned]
    codes = _codes(names)
    crowded = np.bincount(codes, minlength=1)[codes] > most if len(codes) else np.zeros(0, dtype=bool)
    rank = np.zeros(len(owned), dtype=np.int64)
    rank[crowded] = _ranks(owned[crowded], codes[crowded], people, contents, key)
    chosen = np.flatnonzero(~crowded | (rank < most))
    order = chosen[np.lexsort((rank[chosen], codes[chosen]))]
    return owned[order], np.flatnonzero(np.diff(codes[order], prepend=-1))


def _codes(names: Sequence[str | None]) -> np.ndarray:
    """0, 1, … for the people in the order of their first row."""
    numbers: dict[str | None, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)


def _ranks(
    places: np.ndarray, codes: np.ndarray, people: Sequence[str | None], contents: np.ndarray, key: bytes
) -> np.ndarray:
    """The position of each row among those of its person, by hash."""
    copies: Counter[bytes] = Counter()
    hashes = []
    for place in places:
        message = _field(str(people[place]).encode("utf-8", "surrogatepass")) + _field(contents[place].tobytes())
        copies[message] += 1
        hashes.append(hmac.digest(key, message + _field(b"%d" % copies[message]), "sha256"))
    ranks = np.empty(len(places), dtype=np.int64)
    met: Counter[int] = Counter()
    for position in sorted(range(len(places)), key=lambda position: (codes[position], hashes[position])):
        ranks[position] = met[codes[position]]
        met[codes[position]] += 1
    return ranks


def _field(content: bytes) -> bytes:
    return len(content).to_bytes(8, "big") + content
