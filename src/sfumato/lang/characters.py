"""A study's text by its characters: where quotes and comments are, where a clause ends, which signs stand for others.

In:   text.
Out:  places in it, and the text as ProbLog reads it.
Not here: clauses and terms (lang/reader.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["bare_characters", "ends_clause", "missing_stop", "quote_end", "translate"]

_ARROW = "←"
#: Between two numbers.
_DOTS = re.compile(r"(?<=[\d)])\.\.(?=\s*(?:-?\s*\d|date\(|time\(|fill_in\())")


def ends_clause(text: str, position: int) -> bool:
    """Whether the full stop at `position` is the last of its clause."""
    if text[position - 1 : position] == ".":  # the operator =..
        return False
    return position + 1 == len(text) or text[position + 1] <= " " or text[position + 1] == "%"


def quote_end(text: str, position: int) -> int | None:
    """Behind the closing quote; a backslash before it keeps the quote open, as ProbLog's tokens have it."""
    end = text.find(text[position], position + 1)
    while end > 0 and text[end - 1] == "\\":
        end = text.find(text[position], end + 1)
    return end + 1 if end > 0 else None


def bare_characters(text: str) -> Iterator[tuple[int, str]]:
    """The characters outside of quotes and comments, with their places."""
    position = 0
    while position < len(text):
        character = text[position]
        if character in "'\"":
            position = quote_end(text, position) or len(text)
        elif character == "%":
            line_end = text.find("\n", position)
            position = len(text) if line_end < 0 else line_end + 1
        elif text.startswith("/*", position):
            comment_end = text.find("*/", position)
            position = len(text) if comment_end < 0 else comment_end + 2
        else:
            yield position, character
            position += 1


#: A line that ends with a whole term, and a next one that begins with a predicate: nothing joins them.
_LINE_ENDS = re.compile(r"[\w)\]'\"](?=[ \t]*(?:%[^\n]*)?\n\s*'?[^\W\d_]\w*'?\()")


def missing_stop(text: str) -> int | None:
    """Where a clause that cannot be read seems to end, outside of brackets; None if it does not."""
    for found in _LINE_ENDS.finditer(text):
        before = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"|%[^\n]*", "", text[: found.end()])
        if all(before.count(opening) == before.count(closing) for opening, closing in ("()", "[]")):
            return found.start()
    return None


def translate(text: str) -> tuple[str, list[int] | range]:
    """The clause with `←` as `:-` and `low..high` as `low - high`, and for each of its characters the offset in the
    text as written. Quotes and comments stay as they are."""
    if _ARROW not in text and ".." not in text:
        return text, range(len(text))
    pieces, offsets, position = [], [], 0
    while position < len(text):
        end = _untouched(text, position)
        if end is not None:
            pieces.append(text[position:end])
            offsets += range(position, end)
            position = end
            continue
        dots = _DOTS.match(text, position)
        piece = " - " if dots else ":-" if text[position] == _ARROW else text[position]
        pieces.append(piece)
        offsets += [position] * len(piece)
        position += 2 if dots else 1
    return "".join(pieces), offsets


def _untouched(text: str, position: int) -> int | None:
    """The end of a quote or comment that begins here; None where none does."""
    if text[position] in "'\"":
        return quote_end(text, position)
    if text[position] == "%":
        end = text.find("\n", position)
        return len(text) if end < 0 else end
    if text.startswith("/*", position):
        end = text.find("*/", position)
        return len(text) if end < 0 else end + 2
    return None
