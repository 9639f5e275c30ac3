"""Small changes to a study's text, as a slider or a form makes them: one clause is rewritten, the rest stays as it is.

In:   the text, what is to change.
Out:  the new text; the same text if there is nothing to change.
Not here: what a clause means (lang/), how the change was asked for (studio/app.py).

The text is the study. A form never keeps a state of its own: it is read off the text and writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sfumato.errors import InputError
from sfumato.lang.reader import Clause, read
from sfumato.lang.term import called, show

__all__ = ["AskedForm", "add_publication", "drop_publication", "set_delta", "set_epsilon", "set_weight"]

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_PROMISE = re.compile(rf"(?P<before>\bdp\s*\(\s*)(?P<epsilon>{_NUMBER})(?P<rest>\s*(?:,\s*(?P<delta>{_NUMBER})\s*)?\))")
_NAME = re.compile(r"[a-z]\w*")


@dataclass(frozen=True)
class AskedForm:
    """A publication that a form asks for: `what` is an aggregate's name, `of` the variable it reads, if any."""

    name: str
    what: str
    of: str
    goal: str
    requirement: str


def set_epsilon(text: str, requirement: str, epsilon: float) -> str:
    """The same study with another ε towards one observer.

    >>> set_epsilon("privacy_requirement(open(all), people, dp(1, 1e-6)). % ours", "open(all)", 0.25)
    'privacy_requirement(open(all), people, dp(0.25, 1e-6)). % ours'
    """
    return _rewritten(text, "privacy_requirement", 0, requirement, lambda old: _promise(old, epsilon=epsilon))


def set_delta(text: str, requirement: str, delta: float) -> str:
    """The same study with another δ towards one observer; 0 leaves a pure ε."""
    return _rewritten(text, "privacy_requirement", 0, requirement, lambda old: _promise(old, delta=delta))


def set_weight(text: str, publication: str, weight: float) -> str:
    """The same study with another weight of one publication; a weight of 1 needs no clause.

    >>> set_weight("publish(a, m, r).", "a", 2.0)
    'publish(a, m, r).\\nweight(a, 2).\\n'
    """
    clause = f"weight({publication}, {weight:g})."
    if weight == 1:
        return _without(text, "weight", publication)
    if any(True for _ in _found(text, "weight", 0, publication)):
        return _rewritten(text, "weight", 0, publication, lambda old: clause)
    return _appended(text, clause)


def add_publication(text: str, wish: AskedForm) -> str:
    """The same study with one more publication at its end."""
    if not _NAME.fullmatch(wish.name):
        raise InputError(
            f"{wish.name!r} is no name for a publication: write letters, digits and _, beginning with a small letter."
        )
    atom = f"{wish.name}Of"
    taken = {show(argument) for clause in read(text)[0] for argument in clause.head.arguments}
    if {wish.name, atom} & taken:
        raise InputError(f"The study uses the name {wish.name} already. Choose another one.")
    read_of = [wish.of] if wish.of else []
    asked = f"{wish.what}({', '.join([atom, *read_of, wish.goal])})."
    return _appended(text, f"{asked}\npublish({wish.name}, {atom}, {wish.requirement}).")


def drop_publication(text: str, name: str) -> str:
    """The same study without a publication and its weight. What it was computed from stays declared."""
    for functor in ("publish", "weight", "within", "prefer", "forbid"):
        text = _without(text, functor, name)
    return text


def _promise(clause: str, epsilon: float | None = None, delta: float | None = None) -> str:
    found = _PROMISE.search(clause)
    if found is None:
        raise InputError("This promise is not written as dp(ε) or dp(ε, δ): change it in the text.")
    new_epsilon = found["epsilon"] if epsilon is None else f"{epsilon:.6g}"
    new_delta = found["delta"] if delta is None else (f"{delta:g}" if delta else None)
    inner = new_epsilon if new_delta is None else f"{new_epsilon}, {new_delta}"
    return f"{clause[: found.start()]}dp({inner}){clause[found.end() :]}"


def _appended(text: str, clauses: str) -> str:
    return f"{text.rstrip()}\n{clauses}\n"


def _rewritten(text: str, functor: str, place: int, name: str, change: Callable[[str], str]) -> str:
    for start, end in _found(text, functor, place, name):
        return text[:start] + change(text[start:end]) + text[end:]
    raise InputError(f"The study has no {functor} for {name}. Look at its text: it may be derived by a rule.")


def _without(text: str, functor: str, name: str) -> str:
    for start, end in reversed(list(_found(text, functor, 0, name))):
        tail = text[end:]
        # A line that held nothing else goes with its clause.
        whole = text[:start].rpartition("\n")[2].strip() == "" and tail.partition("\n")[0].strip() == ""
        text = text[:start].rstrip(" \t") + (tail.partition("\n")[2] if whole else tail)
    return text


def _found(text: str, functor: str, place: int, name: str) -> Iterator[tuple[int, int]]:
    """Where clauses with this head stand in the text, the full stop included."""
    for clause in read(text)[0]:
        arguments = clause.head.arguments
        if clause.head.functor == functor and len(arguments) > place and called(arguments[place]) == name:
            start = _offset(text, clause)
            yield start, start + len(clause.text)


def _offset(text: str, clause: Clause) -> int:
    before = text.split("\n")[: clause.position.line - 1]
    return sum(len(line) + 1 for line in before) + clause.position.column - 1
