"""Whose data a requirement is about: parts of people, and owners of things.

In:   nothing.
Out:  Division, Owner.
Not here: how they are found (lang/divisions.py, lang/owners.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.lang.term import Compound, Position, Term

__all__ = ["Division", "Owner"]


@dataclass(frozen=True, slots=True)
class Division:
    """A dataset that is a part of another: some variables of each individual, or the individuals of a public group."""

    name: str
    whole: str
    condition: tuple[Term, ...] = ()
    #: What its individual is called in the condition.
    variable: str = ""
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose the things of a dataset are, by a public table: `column` names the owner, `thing` the thing."""

    dataset: str
    unit: str
    whole: str
    table: str
    column: str
    thing: str
    cell: Compound
    position: Position | None = field(default=None, compare=False)
    #: The most things of one owner, once the table was read.
    most: int | None = None
