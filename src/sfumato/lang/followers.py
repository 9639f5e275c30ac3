"""One fault, one problem: what follows from it is counted, not listed.

In:   all problems of a study.
Out:  fewer: a declaration that cannot be read carries the number of problems that go away with it; a name that is
      unknown in several places is reported at the first.
Not here: finding problems (lang/reader.py, lang/structure.py, lang/check.py, lang/wishes.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from sfumato.lang.problem import Problem, in_order
from sfumato.questions.registry import QUESTIONS

__all__ = ["gathered"]

_REQUIREMENT = re.compile(r"\s*privacy_requirement\s*\(\s*(?P<name>\w+(?:\(\s*(?P<observer>[^(),]*?)\s*\))?)\s*,")
_VARIABLE = re.compile(rf"\s*(?:{'|'.join(sorted(QUESTIONS))}|random)\s*\(\s*(?P<name>[a-zà-ÿ]\w*)")
_UNKNOWN = {
    "unknown-requirement": re.compile(r"the privacy requirement (.+) is not declared"),
    "unknown-observer": re.compile(r"no requirement speaks of the observer (.+)"),
    "unknown-variable": re.compile(r"([^\s/(]+)(?:/\d+|\(.*\))? is "),
}
#: What else one clause declares and others need: how it is declared, and how its absence is told.
_NAME = r"\s*(?:'(?P<quoted>[^']*)'|(?P<name>\w+))"
_DECLARED = {
    "correlated": re.compile(rf"\s*correlated\s*\({_NAME}"),
    "fairness": re.compile(rf"\s*fairness_requirement\s*\({_NAME}"),
}
_MISSED = {
    "correlated": re.compile(r"pufferfish is a promise about units .* which units of (.+?) do\b"),
    "fairness": re.compile(r"the fairness requirement (.+) is not declared$"),
}
#: How a message about one amount ends.
_ENDING = " Nothing was spent."
_ALIKE = ("unknown-requirement", "unknown-observer")
#: A table that does not say whose its rows are, and a predicate that is used and nowhere defined.
_NOBODY = re.compile(r"nothing in the table (\S+) says who")
_UNDEFINED = re.compile(r"(\S+/\d+) (says who is in|is called here and defined nowhere|is not a comparison and no)")


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
    ordered = _one_identity(in_order(problems))
    causes = {mark: cause for cause in reversed(ordered) for mark in _declared(cause)}
    followers: dict[Problem, int] = {}
    first: dict[tuple[str, str], Problem] = {}
    again: dict[Problem, int] = {}
    kept = []
    for problem in ordered:
        cause = _first_cause(problem, causes)
        if cause is not problem:
            followers[cause] = followers.get(cause, 0) + 1
        elif problem.code in _ALIKE and (earlier := first.get((problem.code, problem.message))):
            again[earlier] = again.get(earlier, 0) + 1
        else:
            first.setdefault((problem.code, problem.message), problem)
            kept.append(problem)
    return tuple(_counting(problem, followers.get(problem, 0), again.get(problem, 0)) for problem in kept)


def _first_cause(problem: Problem, causes: dict[tuple[str, str], Problem]) -> Problem:
    """What it follows from in the end; itself where it follows from nothing."""
    met = [problem]
    while (cause := causes.get(_missed(met[-1]))) is not None and cause not in met:
        met.append(cause)
    return met[-1]


def _causes_of_calls(calls: list[tuple[Problem, str, str]], table: Problem | None) -> dict[Problem, Problem]:
    """Of every call of what is defined nowhere: the table that forgot to say who, or the first call of that name."""
    people = {name for _, name, how in calls if how == "says who is in"}
    causes = {}
    for problem, name, _ in calls:
        same = sorted((how != "says who is in", place) for place, (_, other, how) in enumerate(calls) if other == name)
        causes[problem] = table if name in people and table is not None else calls[same[0][1]][0]
    return causes


def _one_identity(ordered: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """One forgotten identity column is one problem: all cells of its table, and all calls of the predicate it feeds.

    A predicate that is defined nowhere is one problem as well, at the place that says whose it is, or at the first.
    """
    tables = [(problem, found[1]) for problem in ordered if (found := _NOBODY.match(problem.message))]
    calls = [(problem, found[1], found[2]) for problem in ordered if (found := _UNDEFINED.match(problem.message))]
    first = {table: problem for problem, table in reversed(tables)}
    causes = {problem: first[table] for problem, table in tables}
    causes |= _causes_of_calls(calls, tables[0][0] if tables else None)
    return _kept(ordered, causes)


def _kept(ordered: tuple[Problem, ...], causes: dict[Problem, Problem]) -> tuple[Problem, ...]:
    """The problems that have no other cause, each with the number of its followers."""
    number = Counter(cause for problem, cause in causes.items() if problem is not cause)
    kept = [problem for problem in ordered if causes.get(problem, problem) is problem]
    return tuple(_counting(problem, number[problem], 0) for problem in kept)


def _declared(problem: Problem) -> Iterator[tuple[str, str]]:
    """What a clause with an error would have declared."""
    if problem.severity != "error" or problem.code in _UNKNOWN:
        return
    if found := _REQUIREMENT.match(problem.clause):
        yield "unknown-requirement", re.sub(r"\s", "", found["name"])
        yield "unknown-observer", found["observer"] or ""
    elif found := _VARIABLE.match(problem.clause):
        yield "unknown-variable", found["name"]
    for mark, pattern in _DECLARED.items():
        if found := pattern.match(problem.clause):
            yield mark, found["quoted"] or found["name"]


def _missed(problem: Problem) -> tuple[str, str]:
    """The name that a problem says is missing."""
    for mark, told in _MISSED.items():
        if found := told.match(problem.message):
            return mark, found[1]
    pattern = _UNKNOWN.get(problem.code)
    found = pattern.match(problem.message) if pattern else None
    return (problem.code, found[1]) if found else ("", "")


def _counting(problem: Problem, following: int, again: int) -> Problem:
    words = []
    if following:
        words.append(f"… and {following} problem{'s that follow' if following > 1 else ' that follows'} from it")
    if again:
        words.append(f"and in {again} more line{'s' if again > 1 else ''}")
    # What is said of one problem alone is said of all of them at the end.
    said = problem.message
    said = said.removesuffix(_ENDING).removesuffix(".") if said.endswith(_ENDING) else said
    return dataclasses.replace(problem, message=f"{said} ({'; '.join(words)})" if words else said)
