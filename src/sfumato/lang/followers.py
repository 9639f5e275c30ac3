"""One fault, one problem: what follows from it is counted, not listed.

In:   all problems of a study.
Out:  fewer: a declaration that cannot be read carries the number of problems that go away with it; a name that is
      unknown in several places is reported at the first.
Not here: finding problems (lang/reader.py, lang/structure.py, lang/check.py, lang/wishes.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from sfumato.lang.problem import Problem, in_order

__all__ = ["gathered"]

_REQUIREMENT = re.compile(r"\s*privacy_requirement\s*\(\s*(?P<name>\w+(?:\(\s*(?P<observer>[^(),]*?)\s*\))?)\s*,")
_VARIABLE = re.compile(r"\s*(?:count|sum|mean|moment2|histogram|random)\s*\(\s*(?P<name>[a-zà-ÿ]\w*)")
_UNKNOWN = {
    "unknown-requirement": re.compile(r"the privacy requirement (.+) is not declared"),
    "unknown-observer": re.compile(r"no requirement speaks of the observer (.+)"),
    "unknown-variable": re.compile(r"([^\s/(]+)(?:/\d+|\(.*\))? is "),
}
_ALIKE = ("unknown-requirement", "unknown-observer")
#: Who a row is about: without it every line that speaks of somebody is wrong, and one of them is enough to read.
_IDENTITY = re.compile(
    r"\s*column\s*\(\s*(?P<table>[\w']+)\s*,.*,\s*(?P<name>[a-zà-ÿ]\w*)\(\s*\w+\s*\)\s*\)", re.DOTALL
)
_NOBODY = {
    "unknown-predicate": re.compile(r"([^\s/]+)/1 (?:is called here|says who is in|is not a comparison)"),
    "table-variable": re.compile(r"nothing in the table (\S+) says who"),
}


def gathered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems in order, those that follow from another one counted in it.

    >>> from sfumato.lang.term import Position
    >>> cause = Problem("error", "metric", "epsilon must be greater than 0", Position("s", 1, 1),
    ...                 "privacy_requirement(openness(public), people, dp(-1)).")
    >>> effect = Problem("error", "unknown-requirement", "the privacy requirement openness(public) is not declared",
    ...                  Position("s", 2, 1), "publish(a, b, openness(public)).")
    >>> [problem.message for problem in gathered([cause, effect])]
    ['epsilon must be greater than 0 (… and 1 problem that follows from it)']
    """
    ordered = in_order(problems)
    causes = {mark: cause for cause in reversed(ordered) for mark in _declared(cause)}
    followers: dict[Problem, int] = {}
    first: dict[tuple[str, str], Problem] = {}
    again: dict[Problem, int] = {}
    kept = []
    for problem in ordered:
        cause = causes.get(_missed(problem))
        if cause is not None and cause is not problem:
            followers[cause] = followers.get(cause, 0) + 1
        elif earlier := first.get(_sameness(problem)):
            again[earlier] = again.get(earlier, 0) + 1
        else:
            first[_sameness(problem)] = problem
            kept.append(problem)
    return tuple(_counting(problem, followers.get(problem, 0), again.get(problem, 0)) for problem in kept)


def _sameness(problem: Problem) -> tuple[str, ...]:
    """Equal for problems of which one is enough to read."""
    if problem.code in _NOBODY and _missed(problem)[0]:
        return _missed(problem)
    return (problem.code, problem.message) if problem.code in _ALIKE else (str(problem.position), problem.message)


def _declared(problem: Problem) -> Iterator[tuple[str, str]]:
    """What a clause with an error would have declared."""
    if problem.severity != "error" or problem.code in _UNKNOWN:
        return
    if found := _REQUIREMENT.match(problem.clause):
        yield "unknown-requirement", re.sub(r"\s", "", found["name"])
        yield "unknown-observer", found["observer"] or ""
    elif found := _VARIABLE.match(problem.clause):
        yield "unknown-variable", found["name"]
    elif problem.code == "declaration" and (found := _IDENTITY.match(problem.clause)):
        yield "unknown-predicate", found["name"]
        yield "table-variable", found["table"]


def _missed(problem: Problem) -> tuple[str, str]:
    """The name that a problem says is missing."""
    pattern = _UNKNOWN.get(problem.code) or _NOBODY.get(problem.code)
    found = pattern.match(problem.message) if pattern else None
    return (problem.code, found[1]) if found else ("", "")


def _counting(problem: Problem, following: int, again: int) -> Problem:
    words = []
    if following:
        words.append(f"… and {following} problem{'s that follow' if following > 1 else ' that follows'} from it")
    if again:
        words.append(f"and in {again} more line{'s' if again > 1 else ''}")
    return dataclasses.replace(problem, message=f"{problem.message} ({'; '.join(words)})") if words else problem
