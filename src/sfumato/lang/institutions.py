"""What a study says about institutions: who they are, what they hold, what a whole one is promised.

In:   centre/1, holds/2 and requirements on centres, as lang/declare.py reads them.
Out:  the declarations a Spec carries.
Not here: joining the parts of a table (lang/held.py), promises to centres (lang/centre_units.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core import Guarantee
from sfumato.lang.term import Position, Term

if TYPE_CHECKING:
    from sfumato.lang.spec import Source

__all__ = ["CentrePromise", "DeclaredCentre", "HeldPart", "Holds"]


@dataclass(frozen=True, slots=True)
class DeclaredCentre:
    """centre(Name): an institution that keeps its own rows."""

    name: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Holds:
    """holds(Centre, Table): whose rows they are."""

    centre: str
    table: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CentrePromise:
    """A requirement on whole centres, of at most `most` individuals each: what the one on individuals stands for."""

    name: Term
    guarantee: Guarantee
    dataset: str
    most: int


@dataclass(frozen=True, slots=True)
class HeldPart:
    """One centre's part of a table that several centres hold."""

    table: str
    centre: str
    source: Source
