"""The functions of an additive model as a figure.

In:   shapes (learn/additive_terms.py), the names of the scores.
Out:  a matplotlib figure: steps for intervals, bars for categories, one panel a column.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato.learn.additive_terms import Shape

__all__ = ["shapes_figure"]

_ACROSS = 3


def shapes_figure(shapes: list[Shape], scores: list[str], unit: str) -> Any:
    """A figure that belongs to no window: show it in a notebook or `savefig` it."""
    from matplotlib.figure import Figure

    across = min(_ACROSS, len(shapes))
    down = math.ceil(len(shapes) / across)
    figure = Figure(figsize=(4.2 * across, 2.8 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for panel, shape in zip(panels, shapes, strict=False):
        _draw(panel, shape, scores)
    for panel in panels[len(shapes) :]:
        panel.set_axis_off()
    for row in range(down):
        panels[row * across].set_ylabel(f"added to the {unit}")
    if len(scores) > 1:
        panels[0].legend(fontsize="small")
    return figure


def _draw(panel: Any, shape: Shape, scores: list[str]) -> None:
    panel.axhline(0.0, color="0.7", linewidth=0.8)
    panel.set_title(shape.column)
    if shape.edges is not None:
        for values, name in zip(shape.values.T, scores, strict=True):
            panel.stairs(values, shape.edges, label=name, baseline=None)
        return
    places, width = np.arange(len(shape.values)), 0.8 / len(scores)
    for number, (values, name) in enumerate(zip(shape.values.T, scores, strict=True)):
        panel.bar(places - 0.4 + width * (number + 0.5), values, width, label=name)
    panel.set_xticks(places, shape.names(), rotation=90, fontsize="x-small")
