"""What a study is: how it is asked for and what it answers.

In:   nothing; these are plain records.
Out:  Study, StudySettings, StudyResult, Verdict.
Not here: which studies there are and how their files are written (catalogue.py), what they compute (farokhi.py …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "Study", "StudyResult", "StudySettings", "Verdict"]

Cell = str | float | int


def _silently(steps: Sequence[Any], _label: str) -> Iterable[Any]:
    return steps


@dataclass(frozen=True)
class StudySettings:
    """How to run: the seed of everything random, and whether a rough answer in seconds is enough.

    `track(steps, label)` yields the steps one by one and shows how far the study is.
    """

    seed: int = 0
    quick: bool = False
    track: Callable[[Sequence[Any], str], Iterable[Any]] = _silently


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it held in this run (None: the run does not decide it), and the numbers that say so.

    >>> print(Verdict("the earth is flat", False, "it is round"))
    the earth is flat: does not hold: it is round
    """

    claim: str
    holds: bool | None
    finding: str
    #: Whose claim it is: the paper's, or one that this project makes beside it.
    of: str = "paper"

    def __str__(self) -> str:
        if self.holds:
            return f"{self.claim}: holds ({self.finding})"
        return f"{self.claim}: {'not decided' if self.holds is None else 'does not hold'}: {self.finding}"


@dataclass(frozen=True)
class StudyResult:
    """The numbers of a study, one verdict for each claim, and how to draw it.

    `columns` and `rows` become the CSV file. `shown` is a smaller table (columns, rows) for the terminal where the full
    one is too long to read. `numbers` are single values worth keeping; `settings` are what the run used.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    verdicts: tuple[Verdict, ...]
    figure: Callable[[Figure], None]
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    shown: tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]] | None = None


@dataclass(frozen=True)
class Study:
    """One experiment of a paper, runnable."""

    id: str
    title: str
    reference: str
    run: Callable[[StudySettings], StudyResult]
