"""What a study's clauses derive: dependencies, publications, aggregates, observations.

In:   terms.
Out:  Grounding and what it holds; nothing in it comes from a private row.
Not here: deriving (lang/ground.py), what a study declares by facts (lang/spec.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.lang.term import Position, Term
from sfumato.questions.form import Place
from sfumato.questions.question import Question
from sfumato.questions.registry import QUESTIONS

__all__ = ["AggregateDeclaration", "Dependency", "DpRv", "Grounding", "Observation", "Publication"]


@dataclass(frozen=True, slots=True)
class Dependency:
    """depends(Child, Parents, CPF), or an LBN statement `Child | Parents`, whose CPF may be `unspecified`."""

    child: Term
    parents: tuple[Term, ...]
    cpf: Term
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DpRv:
    """dp_rv(Requirement, RV): the observer sees RV, within the requirement."""

    requirement: Term
    variable: Term
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Publication:
    """publish(Name, What, Requirement)."""

    name: str
    what: Term
    requirement: Term
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AggregateDeclaration:
    """A question over individuals (questions/); the person stays a Variable in what is given and in the condition.

    `given` is what stands in the places of the question's form beside its name and its goal.
    """

    functor: str
    atom: Term
    condition: Term
    given: tuple[tuple[Place, Term], ...] = ()
    position: Position | None = field(default=None, compare=False)

    def place(self, place: Place) -> Term | None:
        """What stands there; None where the question is written without it."""
        return dict(self.given).get(place)

    @property
    def question(self) -> type[Question]:
        return QUESTIONS[self.functor]


@dataclass(frozen=True, slots=True)
class Observation:
    """observe(Observer, RV) or reveal(Observer, RV): the observer knows RV exactly."""

    observer: Term
    variable: Term
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Grounding:
    """What the clauses derive from given logical facts. Nothing in it comes from a private row."""

    variables: tuple[Term, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    observed: tuple[DpRv, ...] = ()
    publications: tuple[Publication, ...] = ()
    aggregates: tuple[AggregateDeclaration, ...] = ()
    personal: tuple[tuple[Term, Term], ...] = ()
    instances: tuple[tuple[str, Term, Term], ...] = ()
    observations: tuple[Observation, ...] = ()
