"""The number of a text is what its definition says, in whatever pieces it is computed, and costs little memory."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core import bag_of_rows
from sfumato.core.bag_of_rows import words_hashed

WORDS = ["", "a", "aa", "ab", "ba", "Ω", "\N{SLIGHTLY SMILING FACE}", "é\0", "x" * 300, None]


def mixed(bits: int) -> int:
    """Steele, Lea & Flood's finaliser, in Python's own numbers."""
    bits = (bits + 0x9E3779B97F4A7C15) % 2**64
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


def hashed(word: str | None) -> int:
    """Every byte with its place, added up and hashed; an empty text is an absent one."""
    return mixed(sum(mixed(byte | place << 8) for place, byte in enumerate(word.encode())) % 2**64) if word else 0


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("at_once", [1, 2, 7, 301, 1 << 16])
@pytest.mark.by_day(12)
def test_a_text_has_one_number_in_whatever_pieces_it_is_hashed(seed, at_once, monkeypatch):
    source = random.Random(seed)
    words = [source.choice(WORDS) for _ in range(source.randrange(40))]
    start = source.randrange(len(words) + 1)
    monkeypatch.setattr(bag_of_rows, "_AT_ONCE", at_once)
    found = words_hashed(pa.array(words, source.choice([pa.string(), pa.large_string()])).slice(start))
    expected = list(map(hashed, words[start:]))
    assert np.broadcast_to(found, len(expected)).tolist() == expected


def test_long_texts_take_no_more_memory_than_a_few_copies():
    """Notes of doctors: twenty thousand of 500 letters, and one of ten million."""
    for texts in (["x" * 500] * 20_000, ["x" * 10_000_000]):
        column = pa.array(texts)
        tracemalloc.start()
        words_hashed(column)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * column.nbytes
