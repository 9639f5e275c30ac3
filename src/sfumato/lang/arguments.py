"""The arguments of a declaration, read: names, atoms, numbers, categories.

In:   terms.
Out:  what they say, or Wrong with the place and the way out.
Not here: the declarations (lang/declare.py).
"""

from __future__ import annotations

from typing import Any

from sfumato.lang.term import Compound, ListTerm, Number, Term, Text, show

__all__ = ["Wrong", "atom_of", "name_of", "names_of", "number_of", "scalar_of"]


#: From here on a decimal number no longer tells a whole number from the next.
_TOLD_APART = 2**53


class Wrong(Exception):
    """A declaration that cannot be used."""

    def __init__(self, message: str, at: Term | None = None, **more: Any) -> None:
        super().__init__(message)
        self.at = at
        self.more = more


def name_of(term: Term, what: str) -> str:
    """A name, written plainly or in quotes."""
    if isinstance(term, Compound) and not term.arguments:
        return term.functor
    if isinstance(term, Text):
        return term.value
    raise Wrong(
        f"{what} must be a name, not {show(term)[:60]}", term, way_out="Write a small-letter name or a 'quoted' one."
    )


def atom_of(term: Term, what: str) -> Compound:
    """An atom such as age(P)."""
    if isinstance(term, Compound):
        return term
    raise Wrong(f"{what} must be an atom such as age(P), not {show(term)[:60]}", term)


def number_of(term: Term, what: str) -> float | int:
    """A number."""
    if isinstance(term, Number):
        return term.value
    raise Wrong(f"{what} must be a number, not {show(term)[:60]}", term)


def names_of(term: Term, what: str) -> tuple[str, ...]:
    """One name, or a list of them."""
    if isinstance(term, ListTerm):
        return tuple(name_of(item, what) for item in term.items)
    return (name_of(term, what),)


def _told_apart(value: int, term: Term) -> int:
    """A cell is read as a decimal number: one that cannot be told from its neighbour would be counted as it."""
    if abs(value) < _TOLD_APART:
        return value
    raise Wrong(
        f"the listed number {value} cannot be told from the next: from 2^53 on they are one decimal number",
        term,
        way_out=f"List them as words, '{value}', and have the column as text.",
    )


def scalar_of(term: Term) -> str | int:
    """A category: a name or a whole number."""
    if isinstance(term, Number):
        if isinstance(term.value, int):
            return _told_apart(term.value, term)
        raise Wrong("a category cannot be a decimal number", term, way_out="Write a name or an integer.")
    return name_of(term, "a category")
