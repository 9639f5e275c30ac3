"""Words that differ by capital letters or blanks alone, read as one: a public rule for one cell at a time.

In:   text.
Out:  the same text folded: blanks at its ends left out, blanks inside made one, letters by Unicode's case folding.
Not here: which words are listed (core/domain.py), the same rule in SQL (network/folding.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa

__all__ = ["BLANKS", "folded", "folded_column", "letters_of", "two_alike"]

#: What counts as a blank: what Python's str.split() divides words at.
BLANKS = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


def folded(text: str) -> str:
    """A word without what case and blanks make of it.

    >>> folded("  Not   KNOWN "), folded("Straße") == folded("STRASSE")
    ('not known', True)
    """
    return " ".join(text.split()).casefold()


def folded_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Every word of a column of text folded; each different word is looked at once.

    >>> folded_column(pa.chunked_array([["Yes ", None, "YES"]])).to_pylist()
    ['yes', None, 'yes']
    """
    return pa.chunked_array([_folded_chunk(chunk) for chunk in column.chunks], pa.large_string())


def _folded_chunk(chunk: Any) -> pa.Array:
    words = chunk.dictionary_encode()
    unlike = [_folded_bytes(word) for word in words.dictionary.cast(pa.large_binary()).to_pylist()]
    return pa.array(unlike, pa.large_string()).take(words.indices)


def _folded_bytes(word: bytes) -> str:
    try:
        return folded(word.decode())
    except UnicodeDecodeError:  # Arrow holds such cells; no folded word ends in a blank, so this one is never listed
        return "\ufffd "


def two_alike(words: Iterable[str]) -> tuple[str, str] | None:
    """Two words of a list that folding makes one; None if there are none.

    >>> two_alike(["no", "Yes", "yes "])
    ('Yes', 'yes ')
    """
    met: dict[str, str] = {}
    for word in words:
        first = met.setdefault(folded(word), word)
        if first is not word:
            return first, word
    return None


def letters_of(words: Iterable[str]) -> dict[str, str]:
    """The letters that folding changes into a part of one of these folded words, and what they become.

    A cell that folds to one of the words holds no other letter that folding changes: whatever a letter becomes stands
    in the folded cell. And what no letter here changes is not in the words, because folding twice is folding once. So
    to change these letters alone finds the same cells as folding them, and SQL needs no table of all scripts.

    >>> letters_of(["yes"])
    {'E': 'e', 'S': 's', 'Y': 'y', 'ſ': 's'}
    """
    text = "\n".join(words)
    return {letter: small for letter, small in _changed().items() if small in text}


#: Behind it stand ideographs, pictures and tags, which have no small letters: the search takes a tenth of the time.
_LAST_SCRIPT = 0x1F000


@cache
def _changed() -> dict[str, str]:
    letters = (chr(code) for code in range(_LAST_SCRIPT) if not 0xD800 <= code < 0xE000)
    return {letter: small for letter in letters if (small := letter.casefold()) != letter}
