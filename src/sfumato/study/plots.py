"""Pictures of predicted errors and of published numbers with their intervals.

In:   a plan, a release, a tidy table.
Out:  matplotlib figures, made without a window. Colours are readable on light and dark ground.
Not here: the report's plots (evidence/report_plots.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sfumato.study.planned import StudyPlan
    from sfumato.study.released import StudyRelease
    from sfumato.study.tidy import Tidy

__all__ = ["error_figure", "interval_figure", "release_figure"]

_HAZE, _LINE = "#6f9fb5", "#2f6d86"
_MOST = 60
_NUMBERS = ("value", "standard_error", "low", "high")


def error_figure(plan: StudyPlan) -> Figure:
    """One panel a publication: how far its numbers may lie from the true ones, 95 of 100 times."""
    rows = plan.lines.rows()
    names = list(dict.fromkeys((row["publication"], row["reader"]) for row in rows))
    figure, panels = _panels([sum((row["publication"], row["reader"]) == name for row in rows) for name in names])
    for axes, name in zip(panels, names, strict=True):
        own = [row for row in rows if (row["publication"], row["reader"]) == name]
        widths = [row["half_width"] for row in own]
        _hazes(axes, [row["group"] for row in own], [0.0] * len(own), [-w for w in widths], widths)
        axes.set_title(f"{name[0]}, for {name[1]}: ± {max(widths):.4g}", loc="left", fontsize=10)
        axes.axvline(0, color=_LINE, linewidth=0.8)
    panels[-1].set_xlabel("distance from the true number; the line holds 95 of 100 draws")
    return figure


def release_figure(release: StudyRelease) -> Figure:
    """Every publication that has intervals, one panel each."""
    tables = [release[name, reader] for name, reader in release]
    shown = [table for table in tables if set(_NUMBERS) <= set(table.columns)]
    if not shown:
        raise InputError("Nothing here has intervals: tables and models are not drawn.")
    figure, panels = _panels([len(table) for table in shown])
    for axes, table in zip(panels, shown, strict=True):
        _draw(axes, table)
    return figure


def interval_figure(table: Tidy) -> Figure:
    """The numbers of one table with their intervals."""
    if not set(_NUMBERS) <= set(table.columns):
        raise InputError(f"{table.title or 'This table'} has no intervals to draw.")
    figure, (axes,) = _panels([len(table)])
    _draw(axes, table)
    return figure


def _draw(axes: Axes, table: Tidy) -> None:
    keys = [name for name in table.columns if name not in _NUMBERS]
    labels = [", ".join(str(row[name]) for name in keys) for row in table.rows()]
    _hazes(axes, labels, table["value"], table["low"], table["high"])
    axes.set_title(table.title, loc="left", fontsize=10)


def _hazes(
    axes: Axes, labels: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> None:
    shown = range(min(len(labels), _MOST))
    for place in shown:
        low, value, high = lows[place], values[place], highs[place]
        if math.isfinite(low) and math.isfinite(high):
            axes.barh(place, high - low, left=low, height=0.6, color=_HAZE, alpha=0.45, linewidth=0)
            axes.plot([low, high], [place, place], color=_LINE, linewidth=1.4)
        axes.plot([value], [place], marker="|", markersize=9, color=_LINE)
    axes.use_sticky_edges = False
    axes.margins(x=0.06)
    axes.set_yticks(list(shown), [labels[place] for place in shown], fontsize=8)
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)


def _panels(heights: Sequence[int]) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    rows = [min(max(height, 1), _MOST) for height in heights]
    figure = Figure(figsize=(7.0, sum(0.24 * row + 0.8 for row in rows)), layout="constrained")
    panels = figure.subplots(len(rows), 1, squeeze=False, gridspec_kw={"height_ratios": [0.24 * r + 0.5 for r in rows]})
    return figure, [row[0] for row in panels]
