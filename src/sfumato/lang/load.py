"""Loading a study: read, check, and hand over a Spec, or say everything that is wrong with it.

In:   a path or a text.
Out:  Spec; StudyError with every problem.
Not here: the command line (cli/check.py); whether it can be planned (run/checking.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

from sfumato.errors import StudyError
from sfumato.lang.bindings import bound_twice, read_twice
from sfumato.lang.centre_units import uncounted
from sfumato.lang.check import check_grounded
from sfumato.lang.dates import with_numbers
from sfumato.lang.declare import declare
from sfumato.lang.divisions import check_divisions, divided
from sfumato.lang.followers import gathered
from sfumato.lang.kinds import named_individuals
from sfumato.lang.limits import Limits
from sfumato.lang.others import check_others
from sfumato.lang.owners import owned
from sfumato.lang.problem import Problem
from sfumato.lang.reader import LONGEST_TEXT, Clause, goals, read
from sfumato.lang.safety import check_safety
from sfumato.lang.short import written_out
from sfumato.lang.spec import Spec
from sfumato.lang.step_views import views_over_steps
from sfumato.lang.steps import shared_out, unfolded
from sfumato.lang.structure import check_structure
from sfumato.lang.term import Compound, ListTerm, Position, indicator
from sfumato.lang.vocabulary import random_predicates

__all__ = ["examine", "load"]

_BLOCKING = frozenset(
    ["syntax", "too-long", "refused", "name", "arity", "conditions", "unknown-predicate", "declaration"]
)


def load(path_or_text: str | os.PathLike[str], at: int | None = None) -> Spec:
    """The Spec of a study file, or of a study's text: a string with a line break, a parenthesis or a final full stop.

    `at` is a step of a study that has steps (lang/steps.py): the Spec is then what holds and is published at it.
    Raises StudyError, which carries every problem with its place. Warnings stay in `Spec.problems`.

    >>> load("random(age(P)) :- paitent(P). patient(uma).")
    Traceback (most recent call last):
    ...
    sfumato.errors.StudyError: The study has 1 error. Nothing was run and nothing was spent.
    text:1:19: error: paitent/1 is called here and defined nowhere [unknown-predicate]
    ...
    """
    spec, problems = examine(path_or_text, at=at)
    errors = tuple(problem for problem in problems if problem.severity == "error")
    if errors or spec is None:
        number = f"{len(errors)} error" + ("s" if len(errors) != 1 else "")
        raise StudyError(f"The study has {number}. Nothing was run and nothing was spent.", errors)
    return spec


def examine(
    path_or_text: str | os.PathLike[str], limits: Limits | None = None, at: int | None = None
) -> tuple[Spec | None, tuple[Problem, ...]]:
    """Everything that can be said about a study: the Spec, if there are clauses at all, and all problems in order."""
    text, path, problem = _text(path_or_text)
    if problem is not None:
        return None, (problem,)
    return _examine(text, path, limits, at)


def _empty(file: str) -> Problem:
    place = Position(file, 1, 1)
    return Problem("error", "empty", "the study says nothing", place, way_out="Write its first declaration.")


def _examine(text: str, path: str | None, limits: Limits | None, at: int | None) -> tuple[Spec, tuple[Problem, ...]]:
    name, file = (Path(path).stem, Path(path).name) if path else ("study", "text")
    clauses, problems = read(text, file)
    found = list(problems) or ([_empty(file)] if not clauses else [])
    clauses, complaints = written_out(_as_cpd(clause) for clause in clauses)
    found += complaints
    clauses, complaints = with_numbers(clauses)
    found += complaints
    every, (clauses, steps, complaints) = clauses, unfolded(clauses, at)
    found += complaints
    declared, complaints = declare(clauses)
    found += complaints
    declared.columns = named_individuals(declared.columns, declared.relations, declared.datasets, clauses)
    random = random_predicates(clauses)
    found += (*bound_twice(declared.columns, random, clauses), *read_twice(declared.columns, random, clauses))
    clauses, owners, complaints = owned(clauses, declared)
    found += complaints
    parted = divided(declared.datasets, declared.requirements, clauses)
    found += parted.problems
    declared.datasets, declared.requirements = list(parted.datasets), list(parted.requirements)
    found += uncounted(declared)
    if steps:
        found += views_over_steps(declared.requirements, declared.collusions, steps, every)
    if at is not None:
        declared.requirements, complaints = shared_out(declared.requirements, steps, every)
        found += complaints
    spec = Spec(
        name,
        path,
        text,
        _digest(text, at),
        **declared.fields(),
        divisions=parted.divisions,
        owners=owners,
        steps=steps,
        step=at,
        clauses=clauses,
    )
    ordered = gathered(_checked(spec, found, limits))
    warnings = tuple(one for one in ordered if one.severity == "warning")
    return dataclasses.replace(spec, problems=warnings), ordered


def _checked(spec: Spec, found: list[Problem], limits: Limits | None) -> list[Problem]:
    """What was found while reading, and what is wrong with the whole."""
    private = {name: not public for name, (_, public) in spec.table_predicates.items()}
    found += check_divisions(spec.divisions, spec.clauses, private, spec.random_predicates)
    found += check_safety(spec.clauses, spec.table_predicates)
    found += check_structure(spec)
    found += check_others(spec)
    # The engine never sees what was refused, and what it would say about a study with holes is noise.
    if not any(one.severity == "error" and one.code in _BLOCKING for one in found):
        found += check_grounded(spec, limits)
    return found


def _digest(text: str, at: int | None) -> str:
    """Of the text, and of the step that is asked for: what is planned for one step is no plan of another."""
    whole = text if at is None else f"{text}\0step {at}"
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def _text(path_or_text: str | os.PathLike[str]) -> tuple[str, str | None, Problem | None]:
    if isinstance(path_or_text, str) and _is_text(path_or_text):
        return path_or_text, None, None
    path = os.fspath(path_or_text)
    try:
        with open(path, "rb") as file:
            content = file.read(4 * LONGEST_TEXT + 1)
        return content.decode("utf-8"), path, None
    except OSError as error:
        message, way_out = f"the study cannot be opened: {error.strerror}", "Check the path."
    except UnicodeDecodeError:
        message, way_out = "the study is not UTF-8 text", "Save it as UTF-8."
    except ValueError:
        message, way_out = "the path of the study is not a path", "Check the path."
    return "", path, Problem("error", "file", message, Position(Path(path).name, 1, 1), way_out=way_out)


def _is_text(given: str) -> bool:
    return any(mark in given for mark in ("\n", "(", ":-")) or given.rstrip().endswith(".") or not given.strip()


def _as_cpd(clause: Clause) -> Clause:
    """`p(iq(john)), low: 0.4, high: 0.6.`, as logical Bayesian networks print a distribution, means cpd/2."""
    first, *rest = goals(clause.head)
    if clause.body is not None or not rest or not isinstance(first, Compound) or indicator(first) != "p/1":
        return clause
    if not all(indicator(part) == ":/2" for part in rest):
        return clause
    law = Compound("discrete", (ListTerm(tuple(rest)),), clause.position)
    return Clause(Compound("cpd", (first.arguments[0], law), clause.position), None, clause.position, clause.text)
