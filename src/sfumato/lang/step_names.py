"""What steps name of clauses with variables, held against what the clauses derive.

In:   a Spec, what its clauses derive for one symbolic individual.
Out:  problems: a name that no clause gives, instances that no step names.
Not here: names that no clause could give (lang/steps.py), names that come from rows of public tables, which a check
          does not read (plan/make.py asks for them again).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set

from sfumato.lang.ground import Derivation
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause
from sfumato.lang.spec import Spec
from sfumato.lang.steps import Step, has_instances_at, name_in
from sfumato.lang.term import Position, Term, match, show
from sfumato.lang.vocabulary import SHORT

__all__ = ["check_step_names"]


def check_step_names(spec: Spec, derivation: Derivation, left_open: Callable[[Clause], bool]) -> Iterator[Problem]:
    """Every clause of which steps name instances; `left_open` says whether it waits for rows of public tables."""
    if spec.step is not None:  # then the clauses are the instances that are named
        return
    said = [(one.clause, name_in(one.head)) for one in derivation.of("publish/3", "dp_rv/2")]
    waiting = {clause for clause in spec.clauses if left_open(clause)}
    for clause in spec.clauses:
        if clause not in waiting and any(has_instances_at(clause, step) for step in spec.steps):
            yield from _left_out(clause, spec.steps, said)
    yield from _unknown(_decided(spec, waiting), [name for _, name in said])


def _decided(spec: Spec, waiting: Set[Clause]) -> list[Step]:
    """The steps that name instances, all of clauses of which no row of a public table gives further ones."""
    meant = [(step, [clause for clause in spec.clauses if has_instances_at(clause, step)]) for step in spec.steps]
    return [step for step, clauses in meant if clauses and not any(clause in waiting for clause in clauses)]


def _covers(step: Step, name: Term) -> bool:
    return step.publishes is not None and match(step.publishes, name) is not None


def _unknown(steps: Sequence[Step], names: Sequence[Term]) -> Iterator[Problem]:
    for step in steps:
        if step.publishes is not None and not any(_covers(step, name) for name in names):
            wanted = show(step.publishes)
            yield Problem(
                "error",
                "step",
                f"step {step.number} publishes {wanted}, and no clause that could be meant gives such an instance",
                step.position or Position("study", 1, 1),
                nearest=nearest(wanted, list(map(show, names))),
                way_out="Name one of its instances, or correct the conditions of the clause.",
            )


def _left_out(clause: Clause, steps: Sequence[Step], said: Sequence[tuple[Clause, Term]]) -> Iterator[Problem]:
    """What a clause publishes and no step names; `said` are all names, each beside its clause."""
    names = [name for own, name in said if own == clause]
    left = [name for name in names if not any(_covers(step, name) for step in steps)]
    if left and len(left) < len(names):
        listed = ", ".join(map(show, left[:3])) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
        yield Problem(
            "warning",
            "step",
            f"no step publishes {listed}: of this clause steps name other instances alone",
            clause.position,
            clause.text,
            expected=SHORT["step/2"],
            way_out=f"Say when: step(N, publish({show(left[0])}))., or leave them unpublished.",
        )
