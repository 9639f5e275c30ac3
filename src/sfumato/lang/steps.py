"""A history in one study: which lines hold at which step.

In:   clauses as they were read, those of table/4 written out; the step that is asked for.
Out:  the clauses that hold then; the steps, in order; what is wrong with them.
Not here: what reveal and forget do (network/, run/forget.py), what may still be spent (run/history.py).

`step(N, reveal(O, RV)) :- conditions.` and `step(N, forget(P)).` hold from step N on, so they are there when step N
publishes. `step(N, publish(Name)).` publishes at N alone, and of a clause with variables the instance that it names:
`step(1, publish(means(north)))` of `publish(means(W), mean(W), …) :- ward(W)` is that of the north. Without a step
asked for everything holds at once: that is what is checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sfumato.errors import InputError
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause
from sfumato.lang.shares import share_of
from sfumato.lang.term import (
    Compound,
    Number,
    Position,
    Term,
    Variable,
    indicator,
    match,
    show,
    substitute,
    variables,
    walk,
)
from sfumato.lang.vocabulary import PUBLICATION_FORMS, SHORT
from sfumato.questions.registry import QUESTIONS

if TYPE_CHECKING:
    from sfumato.lang.spec import PrivacyRequirement

__all__ = ["Step", "has_instances_at", "name_in", "shared_out", "steps_of", "unfolded"]

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
    return clauses if at is None else [one for clause in clauses for one in _instances(clause, steps, at)]


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


def _instances(clause: Clause, steps: Sequence[Step], at: int) -> list[Clause]:
    """What of a clause takes part at a step: all of it, or what the step names of it, or nothing.

    A publication is known by its name, a wish by that of its publication. Shares of promises are counted by the same
    instances (`steps_of`): who is shown something at a step is who it was shared out for.
    """
    place = {**_NAMED, **_WISHED}.get(indicator(clause.head))
    if place is None:
        return [clause]
    name = clause.head.arguments[place]
    named = [step.publishes for step in steps if step.number == at and step.publishes is not None]
    if any(_is_whole(published, name) for published in named):
        return [clause]
    return list(dict.fromkeys(_bound(clause, found) for one in named if (found := _named_of(name, one)) is not None))


def _is_whole(published: Term, name: Term) -> bool:
    """Whether a step names everything of that name: as it is written, or more."""
    return show(published) == show(name) or match(published, name) is not None


def _named_of(name: Term, published: Term) -> dict[str, Term] | None:
    """What a clause's variables are where a step names a part of it. The step's own variables are no clause's."""
    others = {one.name: Variable(f"{one.name} of the step") for one in variables(published)}
    return match(name, substitute(published, others))


def _bound(clause: Clause, found: Mapping[str, Term]) -> Clause:
    head = substitute(clause.head, found)
    assert isinstance(head, Compound)
    return replace(clause, head=head, body=None if clause.body is None else substitute(clause.body, found))


def _same(published: Term | None, name: Term) -> bool:
    return published is not None and (_is_whole(published, name) or _named_of(name, published) is not None)


def name_in(head: Compound) -> Term:
    """The name of what a publish or dp_rv line shows."""
    return head.arguments[_NAMED[indicator(head)]]


def has_instances_at(clause: Clause, step: Step) -> bool:
    """Whether a step names a part of what a clause publishes."""
    if indicator(clause.head) not in _NAMED or step.publishes is None:
        return False
    name = name_in(clause.head)
    return not _is_whole(step.publishes, name) and _named_of(name, step.publishes) is not None


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
    own = [clause for clause in clauses if indicator(clause.head) in _NAMED]
    return frozenset(
        number
        for number in {step.number for step in steps}
        for clause in own
        if any(match(_requirement(one), requirement.name) is not None for one in _instances(clause, steps, number))
    )


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
    for name, clause in ((name_in(one.head), one) for one in clauses if indicator(one.head) in _NAMED):
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
            later = [other for other in steps if other.number >= step.number and indicator(clause.head) in _NAMED]
            shown = [one.head for other in later for one in _instances(clause, (other,), other.number)]
            if any(part == gone for head in shown for part in walk(head)):
                wrong = f"{show(gone)} is forgotten at step {step.number} and published at that step or later"
                yield _problem(clause, wrong, "Publish it before, or take one of the two lines out.")


def _names(clauses: Sequence[Clause]) -> list[Term]:
    return [name_in(clause.head) for clause in clauses if indicator(clause.head) in _NAMED]


def _problem(clause: Clause, message: str, way_out: str) -> Problem:
    return Problem("error", "step", message, clause.position, clause.text, expected=SHORT["step/2"], way_out=way_out)
