"""Whether a study can be planned, said without its data: the language's problems, and what a plan would refuse.

In:   a study file, the folder of its public tables.
Out:  the Spec and all problems. What has no error here is planned by `sfumato plan`.
Not here: the language's own checks (lang/load.py), how problems are shown (cli/check.py).

A plan needs no private table, so the surest way to know whether there is one is to make it. The planner says one thing
at a time; what it says of a question is said of nothing else, so that the study is planned again without it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import SfumatoError, StudyError
from sfumato.lang.load import examine
from sfumato.lang.problem import Problem, in_order
from sfumato.lang.reader import read
from sfumato.lang.term import Position, indicator
from sfumato.lang.vocabulary import AGGREGATES

if TYPE_CHECKING:
    from sfumato.lang.spec import Source, Spec

__all__ = ["examine_study"]

_PLACE = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+)(?::(?P<column>\d+))?:? ")
#: Clauses on which nothing rests but publications.
_ALONE = frozenset((*AGGREGATES, "publish/3", "prefer/2", "forbid/2", "weight/2", "within/2"))
#: Refusals that are told of one study, each found by planning without those before it.
_MOST_REFUSALS = 12
#: How far what rests on a refused question is followed.
_FOLLOWING = 4
_ENDING = re.compile(r"\s*Nothing was (?:planned|run|drawn|spent)[^.]*\.\s*$")


def examine_study(
    study: str | os.PathLike[str], data: str | os.PathLike[str] | None = None
) -> tuple[Spec | None, tuple[Problem, ...]]:
    """Everything that is wrong with a study, a refusal of the planner included; warnings for what was not looked at.

    `data` is the folder of the public tables, the study's own if it is left out. Private tables are not opened.

    >>> spec, problems = examine_study('''
    ...     source(items, 'items.parquet').
    ...     column(items, id, item(I)). missing(items, never).
    ...     column(items, z, z(I)).
    ...     random(z(I)) :- item(I). random(root(I)) :- item(I).
    ...     range(z(I), -1, 1).
    ...     rows_per_person(items, 1).
    ...     depends(root(I), [z(I)], sqrt(z(I))).
    ...     dataset(all, domain(I, item(I))).
    ...     privacy_requirement(openness(public), all, dp(1, 1e-6)).
    ...     mean(m, root(I), item(I)).
    ...     publish(average, m, openness(public)).
    ... ''')
    >>> [problem.code for problem in problems]
    ['plan']
    """
    spec, problems = examine(study)
    errors = _errors(problems)
    if spec is None or (errors and spec.steps):
        return spec, problems
    steps = sorted({step.number for step in spec.steps if step.publishes is not None})
    found = [problem for step in steps for problem in _at_step(study, step, data)]
    if not spec.steps:
        found = _refusals(spec, errors, _folder(spec, data))
    return spec, in_order(list(dict.fromkeys([*problems, *found])))


def _at_step(study: str | os.PathLike[str], step: int, data: str | os.PathLike[str] | None) -> list[Problem]:
    """What is wrong with one step of a study, and with nothing else of it."""
    spec, problems = examine(study, at=step)
    errors = _errors(problems)
    return _refusals(spec, errors, _folder(spec, data)) if spec is not None else errors


def _errors(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]


def _places(problems: Iterable[Problem]) -> list[tuple[int, int]]:
    """Where the errors among them are."""
    return [(one.position.line, one.position.column) for one in _errors(problems)]


def _folder(spec: Spec, data: str | os.PathLike[str] | None) -> Path:
    return Path(data) if data is not None else (Path(spec.path).parent if spec.path else Path())


def _is_there(source: Source, folder: Path) -> bool:
    return source.path.startswith("postgresql:") or (folder / source.path).exists()


def _not_checked(absent: list[Source], start: Position) -> Problem:
    names = ", ".join(one.table for one in absent)
    way_out = "Check it with the folder that has them: sfumato check STUDY.pl --data FOLDER."
    message = f"whether the study can be planned depends on rows of public tables that are not there: {names}"
    return Problem("warning", "not-checked", message, absent[0].position or start, way_out=way_out)


def _refusals(spec: Spec, errors: list[Problem], folder: Path) -> list[Problem]:
    """What is wrong with single questions, all of it, and what the planner refuses of the whole.

    `errors` are those of the language.
    """
    found = told = errors or _refusal(spec, folder)
    file, left = _start(spec).file, _without(spec, told)
    while left is not None and len(found) < _MOST_REFUSALS:
        told = [one for one in _errors(_refusal(left, folder)) if one.clause]
        found = [*found, *(replace(one, position=replace(one.position, file=file)) for one in told)]
        left = _without(left, told)
    return found


def _without(spec: Spec, told: list[Problem]) -> Spec | None:
    """The study without questions that were refused, and what rests on them; None where something else was refused."""
    places = _places(told)
    if not places or not all(_stands_alone(spec, place) for place in places):
        return None
    text = spec.text
    for _ in range(_FOLLOWING):
        text = _blanked(text, places)
        left, problems = examine(text, at=spec.step)
        places = _places(problems)
        if not places:
            return left
    return None


def _stands_alone(spec: Spec, place: tuple[int, int]) -> bool:
    """Whether a question, a publication or a wish about one stands here: what is wrong with it is so with it alone."""
    heads = {(one.position.line, one.position.column): indicator(one.head) for one in spec.clauses}
    start = max((one for one in heads if one <= place), default=None)
    return start is not None and heads[start] in _ALONE


def _blanked(text: str, places: list[tuple[int, int]]) -> str:
    """The text without the clauses around these places; every other one keeps its own."""
    lines = [0, *(place + 1 for place, sign in enumerate(text) if sign == "\n")]
    starts = [lines[one.position.line - 1] + one.position.column - 1 for one in read(text, "text")[0]]
    for line, column in places:
        place = lines[line - 1] + column - 1
        start = max((one for one in starts if one <= place), default=0)
        end = min((one for one in starts if one > place), default=len(text))
        text = text[:start] + _blank(text[start:end]) + text[end:]
    return text


def _blank(text: str) -> str:
    """As many signs, and the same lines."""
    return "".join(sign if sign == "\n" else " " for sign in text)


def _start(spec: Spec) -> Position:
    return Position(Path(spec.path).name if spec.path else "text", 1, 1)


def _refusal(spec: Spec, folder: Path) -> list[Problem]:
    start = _start(spec)
    public = [one for one in spec.sources if one.table in spec.public_tables]
    absent = [one for one in public if not _is_there(one, folder)]
    if absent:
        return [_not_checked(absent, start)]
    # The planner is loaded for a study that reads well.
    from sfumato.network.stores.store import located, read_stored
    from sfumato.run.planning import make_plan

    try:
        make_plan(spec, read_stored({one.table: located(one, folder) for one in public}))
    except StudyError as error:
        return list(error.problems)
    except SfumatoError as error:
        return [_problem(spec, str(error), start)]
    return []


def _problem(spec: Spec, message: str, start: Position) -> Problem:
    """A refusal as a problem, at the clause it names."""
    place = _PLACE.match(message)
    position, text = start, message
    if place is not None:
        position = Position(place["file"], int(place["line"]), int(place["column"] or 1))
        text = message[place.end() :]
    clause = next((one.text for one in spec.clauses if place and one.position.line == position.line), "")
    return Problem("error", "plan", _ENDING.sub("", text), position, clause)
