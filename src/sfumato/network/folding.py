"""Folded words in SQL: the cells that fold to a listed word, and which.

In:   a list of words, SQL for a cell of text.
Out:  SQL.
Not here: the rule itself (core/folding.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sfumato.core.folding import BLANKS, folded, letters_of
from sfumato.network.expression import sql_level

__all__ = ["sql_folded", "sql_listed", "sql_words"]


def sql_words(words: Iterable[str]) -> str:
    """The SQL type of these words, in their order."""
    return f"ENUM({', '.join(map(sql_level, words))})"


def sql_listed(cell: str, words: Sequence[str]) -> str:
    """SQL for the listed word a cell folds to, NULL where there is none.

    >>> sql_listed("a", ["no"])[:40]
    "coalesce(TRY_CAST(a AS ENUM('no')), (['n"
    """
    small = [folded(word) for word in words]
    found = f"enum_code(TRY_CAST({sql_folded(cell, small)} AS {sql_words(small)}))"
    listed = ", ".join(map(sql_level, words))
    # Most cells are written as they are listed, and coalesce folds only the others.
    return f"coalesce(TRY_CAST({cell} AS {sql_words(words)}), ([{listed}])[{found} + 1]::{sql_words(words)})"


def sql_folded(cell: str, small: Iterable[str]) -> str:
    """SQL for a cell that is folded as far as these folded words need; it is one of them where the folded cell is."""
    text = f"trim(regexp_replace({cell}, {sql_level(f'[{BLANKS}]+')}, ' ', 'g'))"
    single = {}
    for letter, becomes in letters_of(small).items():
        if len(becomes) == 1:
            single[letter] = becomes
        else:
            text = f"replace({text}, {sql_level(letter)}, {sql_level(becomes)})"
    if not single:
        return text
    return f"translate({text}, {sql_level(''.join(single))}, {sql_level(''.join(single.values()))})"
