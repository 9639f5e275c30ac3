"""What a study says of itself, for people: its title, its purpose, who decided a promise. It changes no number.

In:   the arguments of about/2 and decided_by/2.
Out:  About, Decision; a problem where the promise that was decided does not exist.
Not here: where it is shown (plan/about.py, evidence/).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.errors import InputError
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.term import Compound, Position, Term, Text, show

if TYPE_CHECKING:
    from sfumato.lang.spec import Spec

__all__ = ["TOPICS", "About", "Decision", "about", "decision", "unknown_decisions"]

#: What about/2 may speak of.
TOPICS = ("title", "purpose")
#: Longer texts belong into a document of their own.
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class About:
    """about(title, 'Stays in hospital') or about(purpose, 'Plan beds'): said to whoever reads the report."""

    topic: str
    text: str
    position: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """decided_by(Requirement, 'Data board, 3 May'): who answers for a promise."""

    requirement: Term
    who: str
    position: Position | None = field(default=None, compare=False)


def about(topic: Term, text: Term, known: list[About], position: Position | None) -> About:
    """The declaration, or an InputError that says what is wrong with it."""
    word = _text(topic, "what it is about")
    if word not in TOPICS:
        raise InputError(f"a study speaks about its {' and its '.join(TOPICS)}, not about {word[:40]}")
    if any(one.topic == word for one in known):
        raise InputError(f"the study has two texts about its {word}")
    return About(word, _text(text, f"the {word}"), position)


def decision(requirement: Term, who: Term, position: Position | None) -> Decision:
    """Who decided which promise; an InputError where `who` is no text."""
    return Decision(requirement, _text(who, "who decided"), position)


def _text(term: Term, what: str) -> str:
    if isinstance(term, Text):
        found = term.value
    elif isinstance(term, Compound) and not term.arguments:
        found = term.functor
    else:
        raise InputError(f"{what} must be a 'quoted text', not {show(term)[:60]}")
    if len(found) > _LONGEST:
        raise InputError(f"{what} has more than {_LONGEST} letters")
    return " ".join("".join(letter if letter.isprintable() else " " for letter in found).split())


def unknown_decisions(spec: Spec) -> Iterator[Problem]:
    """A decision about a promise that is not there would be believed by whoever reads it."""
    known = {show(one.name) for one in spec.requirements}
    for one in spec.decisions:
        if show(one.requirement) not in known:
            yield Problem(
                "error",
                "unknown-requirement",
                f"no requirement has the name {show(one.requirement)[:60]}",
                one.position or Position("study", 1, 1),
                expected="decided_by(Requirement, 'who, when')",
                nearest=nearest(show(one.requirement), known),
                way_out=f"Name one of: {', '.join(sorted(known)) or 'none is declared'}.",
            )
