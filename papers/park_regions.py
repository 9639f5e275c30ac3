"""Park's thesis, Fig. 5.1, again: equilibrium points and decision regions in the plane, with noise and without.

In:   StudySettings; the drawn tables of park_data.py.
Out:  the study FIG5_1.
Not here: accuracy by ε (park.py), training (park_trials.py).

One claim about privacy can be seen with two tables that differ in a single record far from all others: whether an
equilibrium point lies near that record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import beta as beta_law

from papers.chaudhuri_settings import with_one_thread
from papers.park_data import REFERENCE
from papers.park_trials import (
    DELTA,
    HONEST_FACTOR,
    NO_NOISE,
    QUICK,
    SERIES,
    Point,
    Split,
    Task,
    measure,
    price,
    rows_of,
    shown_budget,
    split_of,
)
from papers.study import Cell, Study, StudyResult, StudySettings, Verdict
from sfumato.learn import EquilibriumClassifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIG5_1", "Leak", "leak"]

_TABLES = ("five gaussians", "three moons")
#: The thesis does not say how much noise its right column has.
_EPSILON = 1.0
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9")
#: Columns of the figure: series, ε, title.
_PANELS = (
    ("published", NO_NOISE, "as published, no noise"),
    ("published", _EPSILON, f"as published, “ε = {_EPSILON:g}”: no guarantee"),
    ("corrected", _EPSILON, f"corrected, ε = {_EPSILON:g}, δ = {DELTA:g}"),
    ("corrected, 3ε", _EPSILON, f"corrected, ε = {HONEST_FACTOR * _EPSILON:g}, δ = {DELTA:g}"),
)
#: Where the far record lies in the box from -1 to 1, and how near is near.
_FAR, _NEAR = np.array([0.8, 0.8]), 0.5
#: C/n = 0.05 as on most of the thesis' tables, fewer features for time.
_LEAK: dict[str, Any] = {"C": 10.0, "gamma": 20.0, "n_components": 100, "merge_radius": 0.05, "classes": (0, 1)}


def _run(settings: StudySettings) -> StudyResult:
    runs, size = (2, 100) if settings.quick else (10, None)
    priced = (("published, defaults", _EPSILON), ("kernel", _EPSILON))
    wanted = [*((series, epsilon) for series, epsilon, _ in _PANELS), *priced]
    tasks = [Task(table, series, epsilon, runs, size) for table in _TABLES for series, epsilon in wanted]
    points = measure(tasks, settings, "training")
    alike = {table: _agreement(settings, table, runs, size) for table in _TABLES}
    tries = 8 if settings.quick else 150
    leaks = {name: leak(settings, as_published=name == "published", runs=tries) for name in ("published", "corrected")}
    columns, rows = rows_of(points)
    paragraph, numbers = price(points, _EPSILON)
    return StudyResult(
        columns,
        rows,
        _verdicts(alike, leaks),
        partial(_draw, settings=settings, size=size),
        (paragraph, *_NOTES, *([QUICK] if settings.quick else [])),
        {"epsilon": _EPSILON, "delta": DELTA, "runs": runs, "leak_runs": tries},
        {
            **numbers,
            **{f"{table.replace(' ', '_')}_agreement": found for table, found in alike.items()},
            **{f"leak_{name}": [leak.present, leak.absent] for name, leak in leaks.items()},
        },
        _shown(points),
    )


_NOTES = (
    "The tables are drawn anew, in coordinates of this project's choice; the thesis prints neither their law nor the "
    "noise of its right column. C/n and γ are those of Table 7.1 as published, automatic as corrected.",
    "The picture shows the basins; contours are levels of the released support function; stars are equilibrium points.",
)


# How alike the regions are.


def _agreement(settings: StudySettings, table: str, runs: int, size: int | None) -> float:
    """Share of test records on which the noisy model as published answers what the noise-free one does."""
    shares = []
    for run in settings.track(range(runs), f"regions of {table}"):
        split = split_of(table, settings.seed, run, size)
        quiet, noisy = (_fitted(split, "published", epsilon, run) for epsilon in (NO_NOISE, _EPSILON))
        shares.append(np.mean(quiet.predict(split.test.rows) == noisy.predict(split.test.rows)))
    return float(np.mean(shares))


def _fitted(split: Split, series: str, epsilon: float, seed: int) -> Any:
    return SERIES[series].build(split, epsilon, seed).fit(split.training.rows, split.training.labels)


# What equilibrium points betray.


@dataclass(frozen=True)
class Leak:
    """How often an equilibrium point lies near a place, with a record there and without."""

    runs: int
    present: int
    absent: int

    @property
    def least_epsilon(self) -> float:
        """The smallest ε that explains both counts, with 99 % confidence and δ = 1e-5 granted.

        >>> Leak(100, 50, 50).least_epsilon, Leak(100, 100, 0).least_epsilon > 2.5
        (0.0, True)
        """
        often = float(beta_law.ppf(0.005, self.present, self.runs - self.present + 1)) if self.present else 0.0
        seldom = (
            float(beta_law.ppf(0.995, self.absent + 1, self.runs - self.absent)) if self.absent < self.runs else 1.0
        )
        return max(0.0, float(np.log(max(often - DELTA, 1e-300) / seldom)))


def leak(settings: StudySettings, *, as_published: bool, runs: int) -> Leak:
    """Two clouds in one corner of the box; the first record stays with them or moves to the opposite corner."""
    generator = np.random.default_rng([settings.seed, 5])
    labels = np.arange(200) % 2
    rows = generator.normal(0, 0.15, (200, 2)) + np.where(labels == 1, -0.3, -0.6)[:, None]
    rows = np.clip(rows, -1, 0.2)
    moved = np.vstack([_FAR, rows[1:]])
    label = f"a far record, {'as published' if as_published else 'corrected'}"
    counts = []
    for offset, table in enumerate((moved, rows)):
        found = 0
        for run in settings.track(range(runs), label):
            seed = (settings.seed * 2 + offset) * 100_003 + run
            model = EquilibriumClassifier(
                _EPSILON, as_published=as_published, random_state=seed, support="all", **_LEAK
            )
            model.fit(table, labels)
            found += bool((np.linalg.norm(model.points_ - _FAR, axis=1) <= _NEAR).any())
        counts.append(found)
    return Leak(runs, *counts)


def _verdicts(alike: dict[str, float], leaks: dict[str, Leak]) -> tuple[Verdict, ...]:
    texts = ", ".join(f"{table} {share:.2f}" for table, share in alike.items())
    published, corrected = leaks["published"], leaks["corrected"]
    granted = HONEST_FACTOR * _EPSILON
    return (
        Verdict(
            f"models with noise show decision regions similar to those without (here: at ε = {_EPSILON:g} nine in ten "
            "test records get the same answer)",
            min(alike.values()) >= 0.9,
            f"share with the same answer: {texts}",
        ),
        Verdict(
            "equilibrium points reached from the records are as private as the support function",
            False if published.least_epsilon > _EPSILON else None,
            f"near a far record one is published in {published.present} of {published.runs} runs, without that record "
            f"in {published.absent}: ε is at least {published.least_epsilon:.2f}, not {_EPSILON:g}"
            + (f" and not {granted:g}" if published.least_epsilon > granted else ""),
        ),
        Verdict(
            f"from public starting points the same two tables show no ε above {_EPSILON:g}",
            corrected.least_epsilon <= _EPSILON,
            f"{corrected.present} and {corrected.absent} of {corrected.runs}: ε is at least "
            f"{corrected.least_epsilon:.2f}",
            of="sfumato",
        ),
    )


# Showing.


def _shown(points: Sequence[Point]) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    rows: list[tuple[Cell, ...]] = []
    for point in points:
        mean, low, high = point.bounds
        promised = f"{point.total_epsilon:g}" if isinstance(point.total_epsilon, float) else "none"
        budget = shown_budget(point.task.epsilon)
        rows.append((point.task.table, point.task.series, budget, promised, f"{mean:.3f} [{low:.3f}, {high:.3f}]"))
    return ("data set", "series", "nominal ε", "guaranteed ε", "accuracy [95 %]"), tuple(rows)


def _draw(figure: Figure, settings: StudySettings, size: int | None) -> None:
    figure.set_size_inches(15, 8.2)
    panels = figure.subplots(len(_TABLES), len(_PANELS), sharex="row", sharey="row")
    for across, table in zip(panels, _TABLES, strict=True):
        split = split_of(table, settings.seed, 0, size)
        for axes, (series, epsilon, title) in zip(across, _PANELS, strict=True):
            model = _fitted(split, series, epsilon, settings.seed * 1009)
            _regions(axes, split, model, 50 if settings.quick else 220)
            score = model.score(split.test.rows, split.test.labels)
            axes.set_title(f"{title}\n{len(model.points_)} points, test accuracy {score:.2f}", fontsize=9.5)
        across[0].set_ylabel(f"{table}\nsecond coordinate")
    for axes in panels[-1]:
        axes.set_xlabel("first coordinate")
    figure.legend(handles=_keys(panels[0, 0]), loc="outside lower center", frameon=False, ncols=4)
    figure.suptitle("Decision regions by equilibrium points (Park, Fig. 5.1)")


def _regions(axes: Axes, split: Split, model: Any, cells: int) -> None:
    from matplotlib.colors import ListedColormap

    low, high = (np.broadcast_to(np.asarray(end, dtype=float), (2,)) for end in split.training.box)
    first, second = (np.linspace(low[at], high[at], cells) for at in range(2))
    grid = np.column_stack([place.ravel() for place in np.meshgrid(first, second)])
    answers = np.searchsorted(model.classes_, model.predict(grid)).reshape(cells, cells)
    last = len(model.classes_) - 1
    colours = ListedColormap(_COLOURS[: last + 1])
    axes.pcolormesh(first, second, answers, cmap=colours, vmin=0, vmax=last, alpha=0.35, rasterized=True)
    scaled = (grid - (low + high) / 2) / ((high - low) / 2)
    support = model.support_
    levels = (support.features_(scaled) @ support.centre_).reshape(cells, cells)
    axes.contour(first, second, levels, levels=6, colors="#B22222", linewidths=0.5, alpha=0.8)
    for at, name in enumerate(model.classes_):
        here = split.training.labels == name
        axes.scatter(*split.training.rows[here].T, s=7, color=_COLOURS[at], edgecolors="0.25", linewidths=0.25)
    stars = (low + high) / 2 + model.points_ * (high - low) / 2
    fill = [_COLOURS[at] for at in model.point_labels_]
    axes.scatter(*stars.T, s=90, marker="*", c=fill, edgecolors="black", linewidths=0.8, zorder=5, clip_on=True)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_aspect("equal")


def _keys(axes: Axes) -> list[Any]:
    star = {"marker": "*", "s": 110, "edgecolors": "black", "linewidths": 0.8}
    return [
        axes.scatter([], [], s=14, color="0.6", edgecolors="0.25", linewidths=0.25, label="training record, by class"),
        axes.scatter([], [], color="0.6", label="equilibrium point, by its label", **star),
        *axes.plot([], [], color="#B22222", linewidth=0.8, label="level of the support function"),
        axes.scatter([], [], s=60, marker="s", color="0.8", label="answer, by class"),
    ]


FIG5_1 = Study(
    "park-fig5.1",
    "Decision regions of equilibrium points, and what these points betray",
    f"{REFERENCE}, Fig. 5.1",
    with_one_thread(_run),
)
