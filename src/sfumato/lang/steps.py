"""A history in one study: which lines hold at which step.

In:   clauses as they were read, those of table/4 written out; the step that is asked for.
Out:  the clauses that hold then; the steps, in order; what is wrong with them.
Not here: what reveal and forget do (network/, run/forget.py), what may still be spent (run/history.py).

`step(N, reveal(O, RV)) :- conditions.` and `step(N, forget(P)).` hold from step N on, so they are there when step N
publishes. `step(N, publish(Name)).` publishes at N alone. Without a step asked for everything holds at once: that is
what is checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sfumato.errors import InputError
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause
from sfumato.lang.shares import share_of
from sfumato.lang.term import Compound, Number, Position, Term, indicator, match, show, walk
from sfumato.lang.vocabulary import PUBLICATION_FORMS, SHORT
from sfumato.questions.registry import QUESTIONS

if TYPE_CHECKING:
    from sfumato.lang.spec import PrivacyRequirement

__all__ = ["Step", "shared_out", "steps_of", "unfolded"]

_LASTING = ("reveal/2", "observe/2", "forget/1", "forget/2")
#: The place of a publication's name in what shows something, and in what is wished of it.
_NAMED = {"publish/3": 0, "dp_rv/2": 1}
_WISHED = {"prefer/2": 0, "forbid/2": 0, "weight/2": 0, "nonnegative/1": 0, "whole/1": 0, "within/2": 0, "fair_rv/2": 1}


@dataclass(frozen=True, slots=True)
class Step:
    """step(Number, Action): something that happens once, in the order of the numbers."""

    number: int
    action: Compound
    position: Position | None = field(default=None, compare=False)

    @property
    def publishes(self) -> Term | None:
        """The name of the publication, where that is what happens."""
        return self.action.arguments[0] if indicator(self.action) == "publish/1" else None


def unfolded(
    clauses: Iterable[Clause], at: int | None = None
) -> tuple[tuple[Clause, ...], tuple[Step, ...], list[Problem]]:
    """The clauses that hold at a step, all steps of the study, and what is wrong with them."""
    given = tuple(clauses)
    lines = [clause for clause in given if indicator(clause.head) == "step/2"]
    if not lines and at is None:
        return given, (), []
    problems = list(itertools.chain.from_iterable(map(_wrong, lines)))
    wrong = {problem.position for problem in problems}
    good = [clause for clause in lines if clause.position not in wrong]
    steps = tuple(sorted(map(_step, good), key=lambda step: step.number))
    problems += _unknown_step(steps, at, given)
    others = [clause for clause in given if indicator(clause.head) != "step/2"]
    problems += [*_unknown_names(steps, others), *_never_published(steps, others), *_used_after(steps, others)]
    return (*_shown_at(others, steps, at), *_lasting_at(good, at)), steps, problems


def _shown_at(clauses: Sequence[Clause], steps: Sequence[Step], at: int | None) -> Sequence[Clause]:
    return clauses if at is None else [clause for clause in clauses if _shown(clause, steps, at)]


def _lasting_at(clauses: Sequence[Clause], at: int | None) -> list[Clause]:
    """What steps say for good: everything but their publications."""
    return [_lasting(clause) for clause in clauses if _step(clause).publishes is None and _holds(clause, at)]


def _step(clause: Clause) -> Step:
    number, action = clause.head.arguments
    assert isinstance(number, Number)
    assert isinstance(action, Compound)
    return Step(int(number.value), action, clause.position)


def _holds(clause: Clause, at: int | None) -> bool:
    return at is None or _step(clause).number <= at


def _lasting(clause: Clause) -> Clause:
    return Clause(_step(clause).action, clause.body, clause.position, clause.text)


def _shown(clause: Clause, steps: Sequence[Step], at: int) -> bool:
    """Whether a clause takes part at this step: a publication by its name, a wish by that of its publication."""
    place = {**_NAMED, **_WISHED}.get(indicator(clause.head))
    if place is None:
        return True
    name = clause.head.arguments[place]
    return any(step.number == at and _same(step.publishes, name) for step in steps)


def _same(published: Term | None, name: Term) -> bool:
    if published is None:
        return False
    return show(published) == show(name) or match(name, published) is not None or match(published, name) is not None


def shared_out(
    requirements: Iterable[PrivacyRequirement], steps: Sequence[Step], clauses: Sequence[Clause]
) -> tuple[list[PrivacyRequirement], list[Problem]]:
    """Every requirement with its share of one step: as many as publish something under it; and what cannot be
    shared."""
    statistics = not any(_is_act(clause) for clause in clauses)
    found: list[PrivacyRequirement] = []
    problems: list[Problem] = []
    given = list(requirements)
    for one in given:
        # Promises to several owners of the same things bind whatever is shown of these, by whichever name.
        alike = [other for other in given if (other.observer, other.dataset) == (one.observer, one.dataset)]
        shares = len(frozenset[int]().union(*(steps_of(other, steps, clauses) for other in alike)))
        try:
            share = share_of(one.guarantee, shares, statistics)
        except InputError as error:
            problems.append(_unshared(one, error))
            share = one.guarantee
        found.append(replace(one, guarantee=share, whole=one.guarantee, shares=shares))
    return found, problems


def steps_of(requirement: PrivacyRequirement, steps: Sequence[Step], clauses: Sequence[Clause]) -> frozenset[int]:
    """The numbers of the steps that publish something under a requirement."""
    own = [c for c in clauses if indicator(c.head) in _NAMED and match(_requirement(c), requirement.name) is not None]
    return frozenset(step.number for step in steps if any(_shown(clause, steps, step.number) for clause in own))


def _unshared(requirement: PrivacyRequirement, error: InputError) -> Problem:
    place = requirement.position or Position("study", 1, 1)
    return Problem("error", "step", str(error), place, way_out="Write one step(N, publish(…)) for it.")


def _requirement(clause: Clause) -> Term:
    return clause.head.arguments[2 if clause.head.functor == "publish" else 0]


def _is_act(clause: Clause) -> bool:
    """A table, a model, a list of groups: something whose cost is an (ε, δ) and no μ."""
    what = clause.head.arguments[1] if indicator(clause.head) == "publish/3" else None
    asked = QUESTIONS.get(clause.head.functor)
    return (asked is not None and asked.of_texts) or (what is not None and indicator(what) in PUBLICATION_FORMS)


# ── what is wrong ────────────────────────────────────────────────────────────────────────────────────────────────────


def _wrong(clause: Clause) -> Iterator[Problem]:
    number, action = clause.head.arguments
    if not isinstance(number, Number) or number.value != int(number.value) or number.value < 1:
        yield _problem(clause, "a step has a whole number from 1 on", f"Write {SHORT['step/2']}.")
    elif indicator(action) not in (*_LASTING, "publish/1"):
        yield _problem(clause, f"{show(action)[:60]} is nothing that happens at a step", f"Write {SHORT['step/2']}.")
    elif clause.body is not None and indicator(action) not in ("reveal/2", "observe/2"):
        way_out = "Write one line for each of them, without conditions."
        yield _problem(clause, "what is published or forgotten at a step is written out", way_out)


def _unknown_step(steps: Sequence[Step], at: int | None, clauses: Sequence[Clause]) -> Iterator[Problem]:
    numbers = sorted({step.number for step in steps})
    if at is None or at in numbers:
        return
    position = clauses[0].position if clauses else Position("study", 1, 1)
    known = f"its steps are {', '.join(map(str, numbers))}" if numbers else "it has no steps"
    yield Problem(
        "error",
        "step",
        f"the study has no step {at}: {known}",
        position,
        way_out="Ask for one of them with --at N." if numbers else "Leave --at out, or write step(N, publish(Name)).",
    )


def _unknown_names(steps: Sequence[Step], clauses: Sequence[Clause]) -> Iterator[Problem]:
    names = _names(clauses)
    for step in steps:
        wanted = step.publishes
        if wanted is not None and not any(_same(wanted, name) for name in names):
            yield Problem(
                "error",
                "step",
                f"step {step.number} publishes {show(wanted)}, and no publish line has that name",
                step.position or Position("study", 1, 1),
                nearest=nearest(show(wanted), [show(name) for name in names]),
                way_out=f"Write publish({show(wanted)}, What, Requirement)., or correct the name.",
            )


def _never_published(steps: Sequence[Step], clauses: Sequence[Clause]) -> Iterator[Problem]:
    """In a study with steps a publication that none of them names would never take place."""
    if not steps:
        return
    for clause in clauses:
        place = _NAMED.get(indicator(clause.head))
        if place is None:
            continue
        name = clause.head.arguments[place]
        if not any(_same(step.publishes, name) for step in steps):
            way_out = f"Say when: step(N, publish({show(name)}))."
            yield _problem(clause, f"the study has steps, and none of them publishes {show(name)}", way_out)


def _used_after(steps: Sequence[Step], clauses: Sequence[Clause]) -> Iterator[Problem]:
    """Something that names a forgotten person, or a forgotten variable, cannot be published from then on."""
    for step in steps:
        if step.action.functor != "forget":
            continue
        gone = step.action.arguments[-1]
        for clause in clauses:
            later = any(
                other.number >= step.number
                and indicator(clause.head) in _NAMED
                and _shown(clause, (other,), other.number)
                for other in steps
            )
            if later and any(part == gone for part in walk(clause.head)):
                wrong = f"{show(gone)} is forgotten at step {step.number} and published at that step or later"
                yield _problem(clause, wrong, "Publish it before, or take one of the two lines out.")


def _names(clauses: Sequence[Clause]) -> list[Term]:
    return [
        clause.head.arguments[_NAMED[indicator(clause.head)]] for clause in clauses if indicator(clause.head) in _NAMED
    ]


def _problem(clause: Clause, message: str, way_out: str) -> Problem:
    return Problem("error", "step", message, clause.position, clause.text, expected=SHORT["step/2"], way_out=way_out)
