"""What the curator alone is told of single cells: a warning on her screen, in no file.

In:   sentences about cells that nothing was declared for.
Out:  warnings, or a set of sentences that a worker sends home.
Not here: when there is something to tell (core/domain.py, network/told.py).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sfumato.errors import UndeclaredCellWarning

__all__ = ["ALONE", "tell_missing", "tell_unfolded", "tell_unlisted", "told_to", "warn_of"]

ALONE = "This is told to you alone and stands in no file."
#: Where sentences for the curator go instead of into a warning: workers send them home.
_told: ContextVar[set[str] | None] = ContextVar("told", default=None)


@contextmanager
def told_to(sentences: set[str]) -> Iterator[None]:
    """Collect what the curator is to be told instead of warning, for a worker whose warnings nobody reads.

    >>> heard = set()
    >>> with told_to(heard):
    ...     tell_missing("dose", "the middle of its interval", "null = 1")
    >>> len(heard)
    1
    """
    before = _told.set(sentences)
    try:
        yield
    finally:
        _told.reset(before)


def warn_of(sentences: Iterable[str]) -> None:
    """Tell the curator, or whoever listens with `told_to`.

    A filter that makes errors of warnings would let one cell decide whether the caller fails: then it is only written.
    """
    heard = _told.get()
    for sentence in sorted(sentences):
        if heard is not None:
            heard.add(sentence)
            continue
        try:
            warnings.warn(sentence, UndeclaredCellWarning, stacklevel=_outside())
        except UndeclaredCellWarning:
            print(sentence, file=sys.stderr)


def _outside() -> int:
    """How far up the line is that called this program: there a warning is of use, not at a line of ours."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "sfumato":
        frame, level = frame.f_back, level + 1
    return level


def tell_missing(name: str, where: str, way: str) -> None:
    """Of a missing cell that nothing was declared for."""
    text = f"Column {name!r} has a missing cell and no place is declared for one: it counts as {where}."
    warn_of([f"{text} Declare {way}. {ALONE}"])


def tell_unlisted(name: str, where: str, way: str) -> None:
    """Of a cell that is not in the list, and nothing was declared for such."""
    text = f"Column {name!r} has a cell that is not among its categories and no place is declared for one: it counts"
    warn_of([f"{text} as {where}. Declare {way}, or list it. {ALONE}"])


def tell_unfolded(name: str) -> None:
    """Of cells that are not in the list but for capital letters or blanks."""
    text = f"Column {name!r} has cells that miss its categories by capital letters or blanks alone."
    warn_of(
        [f"{text} To read them as the listed words declare fold = true; in Python Categories([…], fold=True). {ALONE}"]
    )
