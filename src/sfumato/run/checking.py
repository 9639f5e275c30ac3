"""Whether a study can be planned, said without its data: the language's problems, and what a plan would refuse.

In:   a study file, the folder of its public tables.
Out:  the Spec and all problems. What has no error here is planned by `sfumato plan`.
Not here: the language's own checks (lang/load.py), how problems are shown (cli/check.py).

A plan needs no private table, so the surest way to know whether there is one is to make it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import SfumatoError, StudyError
from sfumato.lang.load import examine
from sfumato.lang.problem import Problem, in_order
from sfumato.lang.term import Position

if TYPE_CHECKING:
    from sfumato.lang.spec import Source, Spec

__all__ = ["examine_study"]

_PLACE = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+)(?::(?P<column>\d+))?:? ")
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
    if spec is None or any(problem.severity == "error" for problem in problems):
        return spec, problems
    steps = sorted({step.number for step in spec.steps if step.publishes is not None})
    found = [problem for step in steps for problem in _at_step(study, step, data)]
    if not spec.steps:
        found = _refusal(spec, _folder(spec, data))
    return spec, in_order(list(dict.fromkeys([*problems, *found])))


def _at_step(study: str | os.PathLike[str], step: int, data: str | os.PathLike[str] | None) -> list[Problem]:
    """What is wrong with one step of a study, and with nothing else of it."""
    spec, problems = examine(study, at=step)
    errors = [problem for problem in problems if problem.severity == "error"]
    return errors or (_refusal(spec, _folder(spec, data)) if spec is not None else [])


def _folder(spec: Spec, data: str | os.PathLike[str] | None) -> Path:
    return Path(data) if data is not None else (Path(spec.path).parent if spec.path else Path())


def _is_there(source: Source, folder: Path) -> bool:
    return source.path.startswith("postgresql:") or (folder / source.path).exists()


def _not_checked(absent: list[Source], start: Position) -> Problem:
    names = ", ".join(one.table for one in absent)
    way_out = "Check it with the folder that has them: sfumato check STUDY.pl --data FOLDER."
    message = f"whether the study can be planned depends on rows of public tables that are not there: {names}"
    return Problem("warning", "not-checked", message, absent[0].position or start, way_out=way_out)


def _refusal(spec: Spec, folder: Path) -> list[Problem]:
    start = Position(Path(spec.path).name if spec.path else "text", 1, 1)
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
