"""How the studies of Chaudhuri, Monteleoni & Sarwate 2011 are told: points, tables, verdicts, styles.

In:   errors of trials, with what they are errors of.
Out:  Point; rows for the CSV file; verdicts on "A beats B"; notes; how a series looks.
Not here: running trials (chaudhuri_trials.py), which claims are judged (chaudhuri.py and its siblings).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.chaudhuri_trials import DELTA, LossName, beats, interval
from papers.study import Cell, StudySettings, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "LOSS_NAMES",
    "REFERENCE",
    "SERIES",
    "Point",
    "contest",
    "draw_series",
    "notes",
    "pick",
    "rows_of",
    "seeds_of",
    "shown_error",
]

REFERENCE = "Chaudhuri, Monteleoni & Sarwate, Differentially Private Empirical Risk Minimization, 2011"
LOSS_NAMES: dict[LossName, str] = {"logistic": "logistic regression", "huber": "Huber SVM (h = 0.5)"}
_NOTES = (
    "The paper scales columns by their largest value, drops rows with missing entries and chooses Λ on the test data: "
    "all three leak. Here bounds are public and written by hand, and missing is a category.",
    "Alg. 2 has this project's tightened constants: less noise at a given Λ; where Λ is too small for ε, about half as "
    "much is added to it as in the paper, which at these sizes may err more.",
    "Intervals are 95 % for the mean over splits and draws; the splits share training records, so they are a little "
    "too narrow.",
)
_QUICK = "A quick run has too few rows and draws to judge the claims: its verdicts only show that everything works."


@dataclass(frozen=True)
class Style:
    """How a series is named and drawn. Colours: Okabe & Ito's palette, told apart by marker and dash as well."""

    label: str
    colour: str
    marker: str
    dash: str


SERIES: dict[str, Style] = {
    "non-private": Style("non-private", "black", "s", "-"),
    "output": Style("output perturbation (Alg. 1)", "#D55E00", "v", "--"),
    "objective": Style("objective perturbation (Alg. 2)", "#0072B2", "o", "-"),
    "default": Style("this project's defaults, pure ε", "#009E73", "^", "-."),
    "default, delta": Style(f"this project's defaults, δ = {DELTA:g}", "#CC79A7", "D", "-."),
    "split": Style("Λ tuned by Alg. 4, pure ε", "#E69F00", "P", ":"),
    "random stopping": Style("Λ tuned by random stopping, pure ε", "#56B4E9", "X", ":"),
    "random stopping, delta": Style(f"Λ tuned by random stopping, δ = {DELTA:g}", "#8C564B", "*", ":"),
}


@dataclass(frozen=True)
class Point:
    """Test errors (splits down, draws of noise across) of one series at one setting."""

    loss: LossName
    series: str
    epsilon: float
    strength: float | str
    size: int
    errors: np.ndarray
    delta: float = 0.0
    paper: float | None = None

    @property
    def mean(self) -> float:
        return float(self.errors.mean())

    @property
    def text(self) -> str:
        centre, low, high = interval(self.errors)
        return f"{shown_error(centre)} ± {max(high - centre, centre - low):.1g}"


def shown_error(error: float) -> str:
    return f"{error:.4f}"


def rows_of(points: Iterable[Point]) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """The long table: one row for each point. Cells are empty where a thing does not exist."""
    columns = ("loss", "series", "regularization", "epsilon", "delta", "training_records", "error", "low_95", "high_95")
    rows = []
    for point in points:
        private = point.series != "non-private"
        facts = (point.strength, point.epsilon if private else "", point.delta if private else "", point.size)
        spread = float(point.errors.std()) if np.ptp(point.errors) > 0 else 0.0
        paper = "" if point.paper is None else point.paper
        rows.append((point.loss, point.series, *facts, *interval(point.errors), spread, *point.errors.shape, paper))
    return (*columns, "deviation", "splits", "draws", "paper_error"), tuple(rows)


def pick(points: Iterable[Point], loss: LossName, series: str, **wanted: Any) -> list[Point]:
    """The points of a series, in order."""
    return [
        point
        for point in points
        if point.loss == loss
        and point.series == series
        and all(getattr(point, name) == value for name, value in wanted.items())
    ]


def seeds_of(settings: StudySettings, split: int, draws: int) -> list[int]:
    """The same for every recipe, so that recipes are compared under the same luck."""
    return [(settings.seed * 1009 + split) * 1009 + draw for draw in range(draws)]


def notes(settings: StudySettings, *more: str) -> tuple[str, ...]:
    return (*_NOTES, *more, *([_QUICK] if settings.quick else []))


def contest(claim: str, pairs: Sequence[tuple[Point, Point]], where: Sequence[str], of: str = "paper") -> Verdict:
    """The first of each pair has the smaller error: holds if it does somewhere and nowhere the reverse."""
    told = [beats(first.errors, second.errors, len(pairs)) for first, second in pairs]
    holds = False if False in told else True if True in told else None
    ahead, behind = told.count(True), told.count(False)
    texts = [f"{here}: {first.text} against {second.text}" for here, (first, second) in zip(where, pairs, strict=True)]
    if len(pairs) > 3:
        smaller = sum(first.mean < second.mean for first, second in pairs)
        count = f"smaller at {smaller} of {len(pairs)}, beyond chance at {ahead}; larger beyond chance at {behind}"
        return Verdict(claim, holds, f"{count}; {texts[0]}; {texts[-1]}", of)
    return Verdict(claim, holds, "; ".join(texts), of)


def draw_series(axes: Axes, places: Sequence[float], points: Sequence[Point], series: str, **style: Any) -> Any:
    """Means with 95 % bars; the handle for a legend."""
    look = SERIES[series]
    bands = np.array([interval(point.errors) for point in points])
    spread = np.abs(bands[:, 1:] - bands[:, :1]).T
    drawn: dict[str, Any] = {
        "color": look.colour,
        "marker": look.marker,
        "linestyle": look.dash,
        "markersize": 5,
        "capsize": 3,
        "elinewidth": 1,
        "label": look.label,
    }
    return axes.errorbar(places, bands[:, 0], yerr=spread, **(drawn | style))
