"""Who called: a problem is told at the line of the caller's own program, never at a line of generated text.

In:   the stack, the word of the method that was called.
Out:  Mark; messages of the other rooms in the caller's words, without the language's notation.
Not here: finding problems (lang/, plan/, study/builder.py).
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sfumato.errors import PlanError, SfumatoError, StudyError
from sfumato.lang.problem import nearest

if TYPE_CHECKING:
    from sfumato.lang.problem import Problem

__all__ = ["Mark", "here", "in_callers_words", "in_own_words", "plan_error", "refused", "study_error"]

_ROOM = str(Path(__file__).parents[1])
_Method = TypeVar("_Method", bound=Callable[..., Any])
_NOTHING = "Nothing was planned and nothing was spent."


@dataclass(frozen=True)
class Mark:
    """A place in the caller's program and the call that stands there."""

    place: str
    call: str

    def __str__(self) -> str:
        return f"{self.place}, {self.call}" if self.place else self.call


def here(call: str) -> Mark:
    """The nearest line outside of sfumato.

    >>> here(".mean('days')").call
    ".mean('days')"
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_ROOM):
        frame = frame.f_back
    return Mark("" if frame is None else _place(frame.f_code.co_filename, frame.f_lineno), call)


def _place(file: str, line: int) -> str:
    if file.startswith("<") and "ipython" not in file:
        return f"line {line}"
    session = sys.modules.get("IPython")
    shell = session.get_ipython() if session is not None else None
    named = shell.compile.format_code_name(file) if shell is not None else None
    return f"{' '.join(named)}, line {line}" if named else f"{Path(file).name}, line {line}"


def refused(mark: Mark, sentence: str) -> StudyError:
    """What a call asks for and cannot have."""
    return StudyError(f"{mark}: {sentence} {_NOTHING}")


def in_own_words(method: _Method) -> _Method:
    """The method; what Python itself says of an argument that is no such thing is told at the caller's line."""

    @functools.wraps(method)
    def told(self: Any, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except SfumatoError:
            raise
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            _check_arguments(method, self, given, named)
            first = given[0] if given and isinstance(given[0], str) else "…"
            call = f".{method.__name__}({first!r})" if first != "…" else f".{method.__name__}(…)"
            raise refused(here(call), f"an argument is not what it has to be ({error}); see help(Study).") from error

    return cast("_Method", told)


def _check_arguments(method: Callable[..., Any], study: Any, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse arguments that a method does not have, each with the nearest one, and those that are missing."""
    signature = inspect.signature(method)
    try:
        signature.bind(study, *given, **named)
    except TypeError as error:
        known = [
            one.name for one in signature.parameters.values() if one.name != "self" and one.kind != one.VAR_KEYWORD
        ]
        told = "; ".join(_unknown(name, known) for name in named if name not in known)
        first = repr(given[0]) if given and isinstance(given[0], str) else "…"
        call = f".{method.__name__}({first})"
        raise refused(here(call), f"{told or error}. It takes {', '.join(known)}.") from error


def _unknown(name: str, known: Sequence[str]) -> str:
    close = nearest(name, known)
    return f"there is no argument {name!r}{f' (did you mean {close!r}?)' if close else ''}"


def study_error(
    problems: Sequence[Problem], marks: Callable[[int], Mark | None], columns: Mapping[str, str]
) -> StudyError:
    """Problems that the language found, each at the call that wrote its line; a line written by hand keeps its own."""
    lines = []
    for problem in problems:
        mark = marks(problem.position.line)
        if mark is None:
            lines.append(problem.describe())
            continue
        close = f" Did you mean {in_callers_words(problem.nearest, columns)}?" if problem.nearest else ""
        way_out = f" {in_callers_words(problem.way_out, columns)}" if problem.way_out else ""
        lines.append(f"{mark}: {in_callers_words(problem.message, columns)}.{close}{way_out}")
    return StudyError("\n".join([*dict.fromkeys(lines), _NOTHING]))


def plan_error(error: PlanError, marks: Callable[[int], Mark | None], columns: Mapping[str, str]) -> PlanError:
    """The planner's refusal, its place in the generated text replaced by the call that wrote it."""

    def replaced(found: re.Match[str]) -> str:
        mark = marks(int(found.group(1)))
        return found.group(0) if mark is None else f"{mark}:"

    return PlanError(in_callers_words(re.sub(r"\btext:(\d+)(?::\d+)?:?", replaced, str(error)), columns))


def in_callers_words(text: str, columns: Mapping[str, str]) -> str:
    """days(P) is days, days/1 is days, and a Python call stands where a clause was advised.

    `columns` are the names of the study's columns by their words in the language: an error names a column as its author
    does, in quotes where the name is no word of its own.

    >>> in_callers_words("days(P) has no range; stayDays/1 is a column", {"stayDays": "stay (days)"})
    "days has no range; 'stay (days)' is a column"
    """
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)

    def named(found: re.Match[str]) -> str:
        name = columns.get(found.group(2), found.group(2))
        return name if found.group(1) == _NAME and name.isidentifier() else repr(name)

    return re.sub(f"([{_NAME}{_ARGUMENT}])(\\w+)[{_NAME}{_ARGUMENT}]", named, text)


#: Signs around a word of the language that stands for a column: in a sentence, and as an argument of a call.
_NAME, _ARGUMENT = "\x02", "\x03"

#: What the other rooms advise, as one writes it in Python. The last three take the notation of variables away.
_WORDS = (
    (r"the requirement promise\(('?)([^()]*?)\1\)", r"the promise towards '\2'"),
    (
        r"Publish something under it, name an observed variable with dp_rv, or remove it",
        "Ask something with to=, or remove it",
    ),
    (r"publish\(Name, What, Requirement\)(?: or dp_rv\(Requirement, RV\))?", "a question such as .mean(…, to=reader)"),
    (r"\. instead of rows_per_person\([^()]*\)\. \(or each_person\([^()]*\)\. for [^()]*\)", ""),
    (r"rows_per_person\(('?)([^(),']*)\1, (\w+)(?:, sample)?\)", r"rows_per_person=\3 in .table('\2', …)"),
    (r"dp\(ε, δ\)", "epsilon= and delta="),
    (r"dp\(ε\)", "epsilon="),
    (r"(?:in )?privacy_requirement\(…\)", "in .promise(…)"),
    (r"adjacency\(\w+, add_remove\)", "hide_presence=True"),
    (r"--size \w+=N \(in Python: sizes=\{[^}]*\}\)", ".plan(size=N)"),
    (r"\b(mean|sum)\(Atom, '?(\w+)'?\(P\), Goal\)", rf".\1({_ARGUMENT}\2{_ARGUMENT}, …)"),
    (r"range\('?\w+'?\(P\), Low, High\)", "Interval(low, high)"),
    (r"missing\(('?)(\w+)\1\(P\), Value\)", rf"null= into the domain of {_NAME}\2{_NAME}"),
    (r"missing\(('?)\w+\1\(P\), never\)", "missing='never' into .table(…)"),
    (r"'(\w+)'\(P\)", rf"{_NAME}\1{_NAME}"),
    (r"\b([a-zA-Z]\w*)\((?:P|'\$\w+')\)", rf"{_NAME}\1{_NAME}"),
    (r"\b([a-zA-Z]\w*)/\d\b", rf"{_NAME}\1{_NAME}"),
)
