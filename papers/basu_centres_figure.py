"""The figure of the study of medical centres.

In:   losses of both designs, measured errors.
Out:  two panels on a Figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Curves", "draw"]

Errors = Sequence[tuple[int, float, float]]


class Curves(NamedTuple):
    """Both losses over the weight of encryption for one number of centres, and the design chosen at each weight."""

    centres: int
    weights: np.ndarray
    apart: np.ndarray
    together: np.ndarray
    chosen: tuple[str, ...]
    turning: float


def draw(figure: Figure, curves: Curves, apart: Errors, together: Errors) -> None:
    figure.set_size_inches(9.5, 4)
    left, right = figure.subplots(1, 2)
    for name, errors, mark in (("noisy sharing", apart, "o"), ("secure aggregation", together, "s")):
        centres = [one[0] for one in errors]
        (line,) = left.plot(centres, [one[1] for one in errors], label=f"{name}, predicted")
        left.plot(centres, [one[2] for one in errors], mark, color=line.get_color(), label="measured")
    left.set(xscale="log", yscale="log", xlabel="centres", ylabel="standard deviation of an entry")
    left.set_xticks([one[0] for one in apart], [str(one[0]) for one in apart], minor=False)
    left.minorticks_off()
    left.legend(fontsize=8)
    right.plot(curves.weights, curves.apart, label="noisy sharing")
    right.plot(curves.weights, curves.together, label="secure aggregation")
    right.plot(curves.weights, np.minimum(curves.apart, curves.together), "k:", label="chosen")
    if math.isfinite(curves.turning):
        right.axvline(curves.turning, color="0.7", linewidth=1)
    right.set(xscale="log", yscale="log", xlabel="weight of one second of masks", ylabel="loss")
    right.set_title(f"{curves.centres} centres", fontsize=9)
    right.legend(fontsize=8)
