"""Names of a table's columns that no engine tells apart: twice the same, or the same but for capital letters.

In:   the names of columns, which are public.
Out:  the pair, and a sentence that names it.
Not here: reading a table (network/plain.py).
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["alike_names"]


def alike_names(table: str, names: Iterable[str]) -> str | None:
    """What is wrong with the names of a table's columns; None where all can be told apart.

    >>> print(alike_names("stays", ["id", "Alter", "ALTER"]))
    stays has 'Alter' and 'ALTER', which differ in nothing but small and capital letters, and no engine tells them apart
    >>> print(alike_names("stays", ["id", "Alter"]))
    None
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.casefold())
        if other == name:
            return f"{table} has two columns of one name, {name!r}"
        if other is not None:
            return (
                f"{table} has {other!r} and {name!r}, which differ in nothing but small and capital letters, and no "
                "engine tells them apart"
            )
        seen[name.casefold()] = name
    return None
