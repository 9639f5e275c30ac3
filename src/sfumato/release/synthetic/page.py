"""A page that shows how near the rows are to what was measured: counts with their intervals beside generated ones.

In:   measured tables (noisy, public to whoever gets the rows).
Out:  one self-contained HTML page, no script. No number on it is private: all were published with the rows.
Not here: how it looks (templates/marginals.html), the report of a study, which shows no result (evidence/report.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.release.synthetic.result import INVENTED, Measured, one_way
from sfumato.wording import page

__all__ = ["LevelBar", "LevelPlot", "marginals_page"]

_WIDTH, _ROW, _LABEL = 450, 17, 170
#: Levels that are drawn of one column; the others are summed up in a line.
_MOST_LEVELS = 24
#: Pairs of columns that are named.
_MOST_PAIRS = 12
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class LevelBar:
    """One level in pixels: the bar of the rows, the dot of the measured count, the line of its interval."""

    top: int
    level: str
    made: float
    count: float
    low: float
    high: float


@dataclass(frozen=True)
class LevelPlot:
    """One column: its first levels, of how many, and the count at the right end."""

    name: str
    bars: tuple[LevelBar, ...]
    levels: int
    highest: float
    width: int = _WIDTH
    left: int = _LABEL

    @property
    def height(self) -> int:
        return len(self.bars) * _ROW + 22


def marginals_page(title: str, measured: Sequence[Measured], about: Sequence[str] = ()) -> str:
    """The page. Bars are rows, dots measured counts, lines their 95 % intervals."""
    columns = list(dict.fromkeys(name for one in measured for name in one.columns))
    pairs = sorted((_distance(one), " and ".join(one.columns)) for one in _once(measured) if len(one.columns) == 2)
    return page(
        "marginals.html",
        title=title,
        about=tuple(dict.fromkeys((INVENTED, *about))),
        plots=[_plot(name, measured) for name in columns],
        pairs=pairs[-_MOST_PAIRS:][::-1],
    )


def _once(measured: Sequence[Measured]) -> list[Measured]:
    """Each table once: what was measured in several rounds, each weighed by its precision."""
    found: dict[tuple[str, ...], Measured] = {}
    for one in measured:
        other = found.get(one.columns, one)
        mine, theirs = one.standard_error**-2, 0.0 if other is one else other.standard_error**-2
        counts = (mine * one.counts + theirs * other.counts) / (mine + theirs)
        found[one.columns] = replace(one, counts=counts, standard_error=(mine + theirs) ** -0.5)
    return list(found.values())


def _plot(name: str, measured: Sequence[Measured]) -> LevelPlot:
    levels, counts, error = one_way(measured, name)
    holding = next(one for one in measured if name in one.columns)
    at = holding.columns.index(name)
    made = holding.generated.sum(axis=tuple(axis for axis in range(holding.generated.ndim) if axis != at))
    shown = min(len(levels), _MOST_LEVELS)
    reach = _NORMAL_95 * error
    highest = max(float(made[:shown].max()), float(counts[:shown].max()) + reach, 1.0)
    scale = (_WIDTH - _LABEL - 8) / highest
    bars = tuple(
        LevelBar(
            row * _ROW,
            levels[row],
            max(float(made[row]) * scale, 0.0),
            *(_LABEL + max(0.0, float(counts[row]) + away) * scale for away in (0.0, -reach, reach)),
        )
        for row in range(shown)
    )
    return LevelPlot(name, bars, len(levels), highest)


def _distance(one: Measured) -> float:
    """Between the measured counts, those below zero as zero, and the generated ones."""
    measured = np.maximum(one.counts, 0.0)
    shares = [table / max(math.fsum(table.ravel()), 1e-9) for table in (measured, one.generated)]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())
