"""Pages and texts from templates: facts in, words out. Open to all rooms, like `errors`; it knows none of them.

In:   the name of a template in templates/, the facts it words.
Out:  a page (HTML, every value escaped) or a text (wrapped lines, in which no value breaks a line or begins one).
Not here: the facts (evidence/facts.py and its neighbours), the words (templates/).

A line of a text begins with its mark, then a blank:

    | a paragraph; its indent is kept          = a title, underlined by its mark (or -, or ─)
    > the same, later lines two further in     $ a line that stays as it is
      a line that begins with blanks goes on with the one above; an empty line is nothing, a lone | an empty one

Whatever a template writes between {{ and }} loses its control characters and line breaks, so that a mark always comes
from the template.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["TEMPLATES", "page", "printable", "text"]

TEMPLATES = Path(__file__).parent / "templates"
_BLANKS = re.compile(r"[ \t\n]+")
_UNDERLINED = "=-─"


def page(template: str, **facts: Any) -> str:
    """A page of HTML, every value escaped."""
    return _rendered(_pages(), template, facts)


def text(template: str, width: int | None = None, **facts: Any) -> str:
    """A text whose paragraphs are at most `width` wide, except for words that are longer; None: one line each.

    >>> step = {"kind": "history", "step": 2, "requirement": "open", "whole": "1-DP", "shares": 4}
    >>> text("shared.txt", 60, shared=[step]).splitlines()[0]
    'This is step 2 of a history. open promises 1-DP about'
    """
    return "".join(f"{line}\n" for line in _laid_out(_rendered(_texts(), template, facts), width))


def printable(value: Any) -> str:
    """A value on one line, without anything that steers a terminal or turns the direction of writing.

    >>> printable("a\\nb\\x1b[31m\\u202ec")
    'a b [31m c'
    """
    return "".join(letter if letter.isprintable() else " " for letter in str(value))


def _rendered(environment: Environment, template: str, facts: Mapping[str, Any]) -> str:
    from jinja2 import UndefinedError

    try:
        return environment.get_template(template).render(**facts)
    except UndefinedError as error:
        raise LookupError(f"{template} words a fact that is not there: {error}.") from error


@cache
def _pages() -> Environment:
    """Values are escaped, those of shared sentences too: the environment decides, not the name of a file."""
    return _environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)


@cache
def _texts() -> Environment:
    return _environment(autoescape=False, finalize=printable)


def _environment(**options: Any) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, auto_reload=False, **options)
    made.filters |= {"number": _number, "sentence": _sentence, "capital": _capital, "form": _form, "line": _one_line}
    return made


def _laid_out(rendered: str, width: int | None) -> Iterator[str]:
    lines: list[str] = []
    for line in rendered.split("\n"):
        if line[:1] == " " and line.strip() and lines:
            lines[-1] += line
        elif line.strip():
            lines.append(line)
    for line in lines:
        yield from _line(line, width)


def _line(line: str, width: int | None) -> Iterator[str]:
    mark, said = line[0], line[2:]
    if line[1:2] not in ("", " ") or mark not in f"{_UNDERLINED}|>$":
        raise ValueError(f"A line of a text template has no mark: {line[:60]!r}")
    words = _BLANKS.sub(" ", said).strip(" ")
    if mark == "$":
        yield said
    elif mark in _UNDERLINED:
        yield from (words, mark * len(words))
    elif not words:
        yield ""
    else:
        indent = said[: len(said) - len(said.lstrip(" "))]
        yield from _wrapped(words, indent, indent + ("  " if mark == ">" else ""), width)


def _wrapped(words: str, first: str, later: str, width: int | None) -> list[str]:
    if width is None:
        return [first + words]
    return textwrap.wrap(words, width, initial_indent=first, subsequent_indent=later, break_long_words=False)


def _one_line(words: str) -> str:
    """A shared sentence without its line breaks, escaped as before."""
    return type(words)(_BLANKS.sub(" ", words).strip(" "))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _form(value: float, form: str) -> str:
    """A number in one of Python's forms: `0.1 | form(".3g")`."""
    return format(value, form)


def _sentence(words: str) -> str:
    """A reason as a sentence: "one act is enough" becomes "One act is enough." """
    stripped = _capital(words.strip())
    return stripped + ("" if stripped.endswith((".", "!", "?")) or not stripped else ".")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
