"""Declarations while they are collected.

In:   what lang/declare.py reads.
Out:  Declared, whose `fields()` are those of a Spec.
Not here: reading (lang/declare.py), what joins or rewrites them (lang/held.py, lang/centre_units.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sfumato.lang.about import About, Decision
from sfumato.lang.correlated import Correlated
from sfumato.lang.fair import FairnessHolds, FairnessRequirement, FairRv
from sfumato.lang.reader import Clause
from sfumato.lang.spec import (
    CentrePromise,
    Collusion,
    Column,
    Dataset,
    DeclaredCentre,
    EachPerson,
    Forbidden,
    Forgotten,
    HeldPart,
    Holds,
    Missing,
    Nonnegative,
    Preference,
    PrivacyRequirement,
    Range,
    Relation,
    RowLimit,
    Source,
    Weight,
    Whole,
    Within,
)

__all__ = ["Declared"]


@dataclass
class Declared:
    """Declarations while they are collected; `fields()` are those of a Spec."""

    sources: list[Source] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    public_tables: set[str] = field(default_factory=set)
    ranges: list[Range] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    row_limits: list[RowLimit] = field(default_factory=list)
    each_person: list[EachPerson] = field(default_factory=list)
    datasets: list[Dataset] = field(default_factory=list)
    correlations: list[Correlated] = field(default_factory=list)
    requirements: list[PrivacyRequirement] = field(default_factory=list)
    fairness: list[FairnessRequirement] = field(default_factory=list)
    fair_rvs: list[FairRv] = field(default_factory=list)
    fairness_holds: list[FairnessHolds] = field(default_factory=list)
    preferences: list[Preference] = field(default_factory=list)
    forbidden: list[Forbidden] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    nonnegative: list[Nonnegative] = field(default_factory=list)
    whole: list[Whole] = field(default_factory=list)
    aims: list[Within] = field(default_factory=list)
    collusions: list[Collusion] = field(default_factory=list)
    about: list[About] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    centres: list[DeclaredCentre] = field(default_factory=list)
    holds: list[Holds] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    colluders: int = 0
    absences: int = 0
    parts: list[HeldPart] = field(default_factory=list)
    persons_per_centre: dict[str, int] = field(default_factory=dict)
    centre_promises: list[CentrePromise] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    forgotten: list[Forgotten] = field(default_factory=list)
    same_people: list[tuple[str, str]] = field(default_factory=list)
    #: adjacency/2, kept until the datasets are known.
    relations_of_neighbours: dict[str, tuple[str, Clause]] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Keyword arguments of Spec."""
        made: dict[str, Any] = {name: tuple(value) for name, value in vars(self).items() if isinstance(value, list)}
        made["public_tables"] = frozenset(self.public_tables)
        made |= {"colluders": self.colluders, "absences": self.absences}
        return made
