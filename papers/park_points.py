"""Park's thesis, Fig. 7.2, again: publishing only labelled equilibrium points instead of the support function.

In:   StudySettings; three moons and vowel.
Out:  the study FIG7_2.
Not here: accuracy of the other methods (park.py), training (park_trials.py).

One fitted model answers in every way: all of them are post-processing of the same release.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.chaudhuri_settings import with_one_thread
from papers.chaudhuri_trials import beats, interval
from papers.park_data import REFERENCE, present, read_records
from papers.park_trials import DELTA, NO_NOISE, QUICK, SCALES, SERIES, shown_budget, split_of
from papers.study import Cell, Study, StudyResult, StudySettings, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIG7_2"]

_TABLES = ("three moons", "vowel")
_BUDGETS = (0.01, 0.1, 1.0, 5.0, 10.0, 100.0, NO_NOISE)
_NEIGHBOURS = (1, 3, 5, 7)
_SUPPORT = "support function"
_WAYS = (_SUPPORT, *(f"{count} nearest" if count > 1 else "nearest point" for count in _NEIGHBOURS))
_SERIES = ("published", "corrected")
_LOOK = {
    way: (colour, marker)
    for way, colour, marker in zip(
        _WAYS, ("black", "#0072B2", "#009E73", "#E69F00", "#D55E00"), ("s", "o", "^", "D", "v"), strict=True
    )
}
#: As judged here: "compatible" is at most this much less accurate on average over ε.
_COMPATIBLE = 0.05


@dataclass(frozen=True)
class _Answer:
    """Accuracies of one way of answering, run by run, with how many points there were."""

    table: str
    series: str
    epsilon: float
    way: str
    accuracies: np.ndarray
    points: float


def _answers(key: tuple[str, str, float], settings: StudySettings) -> list[_Answer]:
    table, series, epsilon = key
    runs, size = (2, 100) if settings.quick else (20 if table == "three moons" else 10, None)
    scores: dict[str, list[float]] = {way: [] for way in _WAYS}
    counts = []
    for run in range(runs):
        split = split_of(table, settings.seed, run, size)
        model = SERIES[series].build(split, epsilon, settings.seed * 1009 + run)
        model.fit(split.training.rows, split.training.labels)
        counts.append(len(model.points_))
        for way, neighbours in zip(_WAYS, (None, *_NEIGHBOURS), strict=True):
            if neighbours is not None:
                model.set_params(publish="points", n_neighbors=neighbours)
            scores[way].append(model.score(split.test.rows, split.test.labels))
    return [_Answer(*key, way, np.array(found), float(np.mean(counts))) for way, found in scores.items()]


def _run(settings: StudySettings) -> StudyResult:
    tables, absent = present(_TABLES[:1] if settings.quick else _TABLES)
    budgets = (0.1, 1.0, NO_NOISE) if settings.quick else _BUDGETS
    keys = [
        (table, series, epsilon)
        for table in tables
        for series in _SERIES
        for epsilon in budgets
        if series == "published" or epsilon != NO_NOISE
    ]
    with ThreadPoolExecutor(1 if settings.quick else 2) as pool:
        tracked = zip(
            settings.track(keys, "training"), pool.map(lambda key: _answers(key, settings), keys), strict=True
        )
        answers = [answer for _, found in tracked for answer in found]
    missing = [f"Left out because the file was not found: {', '.join(absent)}."] if absent else []
    return StudyResult(
        ("table", "series", "epsilon", "way", "accuracy", "low_95", "high_95", "runs", "equilibrium_points"),
        tuple(_row(answer) for answer in answers),
        _verdicts(tables, answers),
        partial(_draw, tables=tables, answers=answers, seed=settings.seed),
        (*_NOTES, SCALES, *missing, *([QUICK] if settings.quick else [])),
        {"tables": tables, "absent": absent, "delta_corrected": DELTA},
        {
            f"{table.replace(' ', '_')}_{series}_{way.replace(' ', '_')}": float(
                _errors(answers, table, series, way).mean()
            )
            for table in tables
            for series in _SERIES
            for way in _WAYS
        },
        _shown(answers, budgets),
    )


_NOTES = (
    "As published there is no guarantee, whichever way is published. Where there is one, publishing less does not make "
    "it better: the points are computed from the same release, and ε is the same.",
    "The thesis prints no numbers for this figure. numbers in the JSON file are error rates averaged over ε.",
)


def _row(answer: _Answer) -> tuple[Cell, ...]:
    mean, low, high = interval(1 - answer.accuracies[:, None])
    facts = (answer.table, answer.series, shown_budget(answer.epsilon), answer.way)
    return (*facts, 1 - mean, 1 - high, 1 - low, len(answer.accuracies), answer.points)


def _errors(answers: Sequence[_Answer], table: str, series: str, way: str) -> np.ndarray:
    """Runs down, budgets across, without the noise-free one."""
    found = [
        1 - answer.accuracies
        for answer in answers
        if (answer.table, answer.series, answer.way) == (table, series, way) and answer.epsilon != NO_NOISE
    ]
    return np.column_stack(found)


# Judging.


def _verdicts(tables: Sequence[str], answers: Sequence[_Answer]) -> tuple[Verdict, ...]:
    verdicts = [_compatible(answers, table, "published", _WAYS[1:3]) for table in tables]
    verdicts += [_compatible(answers, table, "corrected", _WAYS[1:3], of="sfumato") for table in tables]
    verdicts.append(_fewer_neighbours(tables, answers))
    return tuple(verdicts)


def _compatible(answers: Sequence[_Answer], table: str, series: str, ways: Sequence[str], of: str = "paper") -> Verdict:
    """True if certainly at most _COMPATIBLE behind, False if certainly more."""
    whole = _errors(answers, table, series, _SUPPORT)
    told, texts = [], []
    for way in ways:
        found = _errors(answers, table, series, way)
        told.append(beats(found - _COMPATIBLE, whole, len(ways)))
        texts.append(f"{way} {1 - found.mean():.3f}")
    holds = False if False in told else None if None in told else True
    named = "as published" if series == "published" else "corrected"
    claim = (
        f"{table}, {named}: one and three neighbours do as well as the support function (here: within {_COMPATIBLE})"
    )
    return Verdict(claim, holds, f"{', '.join(texts)}; {_SUPPORT} {1 - whole.mean():.3f}", of)


def _fewer_neighbours(tables: Sequence[str], answers: Sequence[_Answer]) -> Verdict:
    pairs = [(table, series) for table in tables for series in _SERIES]
    told = [beats(_errors(answers, *pair, _WAYS[1]), _errors(answers, *pair, _WAYS[-1]), len(pairs)) for pair in pairs]
    texts = [
        f"{table}, {series} {1 - _errors(answers, table, series, _WAYS[1]).mean():.3f} against "
        f"{1 - _errors(answers, table, series, _WAYS[-1]).mean():.3f}"
        for table, series in pairs
    ]
    holds = False if False in told else None if None in told else True
    return Verdict("one neighbour is more accurate than seven everywhere", holds, "; ".join(texts), of="sfumato")


# Showing.


def _shown(
    answers: Sequence[_Answer], budgets: Sequence[float]
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """A terminal is narrow: two budgets are left to the CSV file."""
    budgets = [epsilon for epsilon in budgets if epsilon not in (0.01, 5.0)]
    lines: dict[tuple[str, str, str], dict[float, str]] = {}
    for answer in answers:
        line = lines.setdefault((answer.table, answer.series, answer.way), {})
        line[answer.epsilon] = f"{answer.accuracies.mean():.3f}"
    rows = tuple((*key, *(line.get(epsilon, "") for epsilon in budgets)) for key, line in lines.items())
    return ("data set", "series", "by ε", *map(shown_budget, budgets)), rows


def _draw(figure: Figure, tables: Sequence[str], answers: Sequence[_Answer], seed: int) -> None:
    figure.set_size_inches(5.2 * len(_SERIES) + 2.2, 3.6 * len(tables) + 0.6)
    panels = figure.subplots(len(tables), len(_SERIES), sharey="row", squeeze=False)
    budgets = sorted({answer.epsilon for answer in answers})
    handles: list[Any] = []
    for across, table in zip(panels, tables, strict=True):
        for axes, series in zip(across, _SERIES, strict=True):
            handles = []
            for at, way in enumerate(_WAYS):
                colour, marker = _LOOK[way]
                found = [a for a in answers if (a.table, a.series, a.way) == (table, series, way)]
                bands = np.array([interval(1 - answer.accuracies[:, None]) for answer in found])
                # Five curves that nearly touch: a little to the side of each other, bars stay readable.
                places = [budgets.index(answer.epsilon) + 0.07 * (at - 2) for answer in found]
                drawn = axes.errorbar(
                    places,
                    1 - bands[:, 0],
                    yerr=np.abs(bands[:, 1:] - bands[:, :1]).T[::-1],
                    color=colour,
                    marker=marker,
                    linestyle="-" if way == _SUPPORT else "--",
                    markersize=5,
                    capsize=2,
                    elinewidth=0.8,
                    label=way,
                )
                handles.append(drawn)
            promise = "as published: no guarantee" if series == "published" else f"corrected, δ = {DELTA:g}"
            axes.set_title(f"{table}, {promise}", fontsize=10)
            axes.set_xticks(range(len(budgets)), [shown_budget(epsilon).replace(" ", "\n") for epsilon in budgets])
            axes.axhline(read_records(table, seed).majority, color="0.75", linewidth=1.5, zorder=0)
            axes.set_xlim(-0.4, len(budgets) - 0.6)
            axes.set_ylim(0, 1.02)
            axes.grid(alpha=0.3)
        across[0].set_ylabel("test accuracy")
    for axes in panels[-1]:
        axes.set_xlabel("ε as the method counts it")
    title = "what is published\n(bars: 95 % of the mean;\ngrey: always the largest class)"
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=9, title=title, alignment="left")
    figure.suptitle("Only labelled equilibrium points, or the support function as well (Park, Fig. 7.2)")


FIG7_2 = Study(
    "park-fig7.2",
    "Publishing only equilibrium points: accuracy by the number of neighbours",
    f"{REFERENCE}, Fig. 7.2",
    with_one_thread(_run),
)
