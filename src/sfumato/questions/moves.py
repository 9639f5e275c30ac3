"""How far one individual can move what is drawn: the only sensitivity there is.

In:   what one row can add to the numbers that get noise.
Out:  Moves: an L1 and an L2 number, two types, rounded up.
Not here: what the rows add (each question's own file), the noise (mechanisms/).
Proof: docs/proofs/aggregates.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

from sfumato.core.adjacency import Relation
from sfumato.core.norms import L1, L2, Norm
from sfumato.questions.grid import root_up, up

__all__ = ["Corner", "Moves", "moves_of_corners"]

#: What a row at one end of its range adds to each number that is drawn for its cell.
Corner = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Moves:
    """The largest distance between the drawn numbers of neighbours; `tight` where some neighbours are so far apart.

    >>> Moves(L1(2.0), L2(1.5)).l1
    2.0
    >>> Moves(L2(1.5), L2(1.5))
    Traceback (most recent call last):
    ...
    TypeError: Moves takes an L1 and an L2 number.
    """

    l1: L1
    l2: L2
    tight: bool = True

    def __post_init__(self) -> None:
        if not (isinstance(self.l1, L1) and isinstance(self.l2, L2)):
            raise TypeError("Moves takes an L1 and an L2 number.")

    def by(self, norm: Norm) -> L1 | L2:
        """The distance that noise of this norm is measured by."""
        return self.l1 if norm is L1 else self.l2

    @classmethod
    def none(cls) -> Moves:
        """Nobody can move it."""
        return cls(L1(0.0), L2(0.0))

    @classmethod
    def beside(cls, parts: Iterable[Moves]) -> Moves:
        """Of one vector of several parts, each of which the same individual moves; tight where she moves them freely.

        >>> Moves.beside([Moves(L1(3.0), L2(3.0)), Moves(L1(4.0), L2(4.0))])
        Moves(l1=7.0, l2=5.0, tight=True)
        """
        found = list(parts)
        total = sum((Fraction(one.l1) for one in found), Fraction(0))
        squares = sum((Fraction(one.l2) ** 2 for one in found), Fraction(0))
        return cls(L1(up(total)), L2(root_up(squares)), all(one.tight for one in found))


def moves_of_corners(
    l1: Sequence[Corner], l2: Sequence[Corner], cells: int, rows: int, relation: Relation, certain: bool
) -> Moves:
    """When a row adds a point of the hull of the corners to one of `cells` cells, and a person has up to `rows` rows.

    `l1` and `l2` are the corners as they are drawn for Laplace and for Gaussian noise. `certain`: a person's row always
    counts. What a person adds lies in the convex hull of (0 and) `rows` times a corner in one cell; a norm of a
    difference is convex, so its maximum is found at corners:

    add-remove:   max |v|
    replace-one:  max |v - w| inside a cell, and across two cells |v| + |w| (L1) or the root of |v|² + |w|² (L2).

    >>> one = [(Fraction(1),)]
    >>> moves_of_corners(one, one, 5, 1, "replace-one", False) == Moves(L1(2.0), L2(root_up(Fraction(2))))
    True
    """
    replaced = relation == "replace-one"
    first = max(_sizes(l1, _sum, cells, replaced, certain, squared=False))
    second = max(_sizes(l2, _squares, cells, replaced, certain, squared=True))
    return Moves(L1(up(rows * first)), L2(root_up(rows * rows * second)))


def _sizes(corners: Sequence[Corner], size, cells: int, replaced: bool, certain: bool, squared: bool) -> list[Fraction]:  # type: ignore[no-untyped-def]
    alone = [size(corner) for corner in corners]
    if not replaced:
        return alone
    found = [Fraction(0)] if certain else alone
    found = found + [size(tuple(a - b for a, b in zip(v, w, strict=True))) for v, w in combinations(corners, 2)]
    return found + [a + b for a, b in combinations_with_replacement(alone, 2)] if cells > 1 else found


def _sum(corner: Corner) -> Fraction:
    return sum((abs(entry) for entry in corner), Fraction(0))


def _squares(corner: Corner) -> Fraction:
    return sum((entry * entry for entry in corner), Fraction(0))
