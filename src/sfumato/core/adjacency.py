"""Who is protected, and what counts as a change.

In:   nothing.
Out:  Adjacency, the two usual relations, and the sentence that is printed beside every ε.
Not here: what a change costs (core/guarantee.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sfumato.errors import PrivacyParameterError

__all__ = ["ADD_REMOVE", "REPLACE_ONE", "Adjacency", "Relation"]

Relation = Literal["replace-one", "add-remove"]

_WORDS = {"replace-one": "replacing one", "add-remove": "adding or removing one"}


@dataclass(frozen=True, slots=True)
class Adjacency:
    """Two datasets are neighbours if they differ by `relation` applied to one `unit`.

    Under "replace-one" the number of units is public; under "add-remove" it is not.

    >>> print(REPLACE_ONE)
    replacing one record
    >>> print(Adjacency("person", "add-remove"))
    adding or removing one person
    """

    unit: str
    relation: Relation

    def __post_init__(self) -> None:
        if self.relation not in get_args(Relation):
            raise PrivacyParameterError(
                f"Adjacency relation {self.relation!r} is not known. Use one of {', '.join(get_args(Relation))}."
            )
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise PrivacyParameterError("Adjacency needs a unit in words, for example 'record' or 'person'.")

    def __str__(self) -> str:
        return f"{_WORDS[self.relation]} {self.unit}"

    def to_dict(self) -> dict[str, str]:
        return {"unit": self.unit, "relation": self.relation}

    @classmethod
    def from_dict(cls, record: dict[str, str]) -> Adjacency:
        return cls(record["unit"], record["relation"])  # type: ignore[arg-type]  # checked in __post_init__


REPLACE_ONE = Adjacency("record", "replace-one")
ADD_REMOVE = Adjacency("record", "add-remove")
