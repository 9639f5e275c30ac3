"""Utility against λ under the noises that Farokhi 2020 compares: sweeps, comparisons, the figure.

In:   a clean table in public bounds, how to learn from a noisy copy and score on the clean one, a list of λ.
Out:  Curves (scores of every draw), rows, verdicts on "Gaussian noise beats Laplace noise", a drawing.
Not here: the data sets and their models (farokhi.py, farokhi_toy.py), releases for publication (release/).

At λ the paper's noise is N(0, 1/√λ) on every column. Laplace noise of scale b is made comparable in three ways:
equal Fisher information (the paper's: b = σ, twice the variance), equal variance (b = σ/√2), and equal local (ε, δ),
by exact composition over the columns. One draw of each law is scaled to all λ, so curves are smooth in λ; noise comes
from the project's mechanisms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from papers.study import Cell, StudySettings, Verdict
from sfumato.core.adjacency import Adjacency
from sfumato.core.compose import compose
from sfumato.mechanisms import Gaussian, Laplace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "DELTA",
    "SERIES",
    "Curves",
    "Level",
    "Problem",
    "approach",
    "draw_curves",
    "draw_study",
    "level",
    "rivalry",
    "sweep",
    "unit_noise",
]

DELTA = 1e-6
_DELTA_TEXT = "δ = 10⁻⁶"
#: Labels are published as they are: one record's other columns are protected.
_FEATURES = Adjacency("record's features (its label is published as it is)", "replace-one")
#: Share of all that noise can cost (largest gap to the clean score) below which a difference does not count.
_WORTH_NAMING = 0.05
Learner = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Style:
    """How a series is named and drawn. Colours: Okabe & Ito's palette, told apart by marker and dash as well."""

    label: str
    short: str
    colour: str
    marker: str
    dash: str


SERIES: dict[str, Style] = {
    "gaussian": Style("Gaussian noise (optimal in the paper)", "Gaussian", "#0072B2", "o", "-"),
    "laplace_information": Style(
        "Laplace, equal Fisher information\n(the paper's comparison: twice the variance)",
        "Laplace, equal information",
        "#D55E00",
        "v",
        "--",
    ),
    "laplace_variance": Style("Laplace, equal variance", "Laplace, equal variance", "#E69F00", "s", ":"),
    "laplace_privacy": Style(f"Laplace, equal (ε, {_DELTA_TEXT})", "Laplace, equal (ε, δ)", "#CC79A7", "D", "-."),
    "aware": Style("Gaussian noise, noise-aware model", "noise-aware", "#009E73", "^", "-"),
}


@dataclass(frozen=True)
class Problem:
    """What is learned: `plain(noisy)` and `aware(noisy, variance)` train on noisy columns and score on clean ones."""

    values: np.ndarray
    widths: np.ndarray
    plain: Learner
    aware: Callable[[np.ndarray, float], float]
    score: str
    larger_is_better: bool


@dataclass(frozen=True)
class Level:
    """One λ and what it means: σ, the local ε at DELTA, an unbiased attacker's least squared error, Laplace scales."""

    trade_off: float
    deviation: float
    epsilon: float
    attacker: float
    laplace: Mapping[str, float]


@dataclass(frozen=True)
class Curves:
    """Scores by series, draws down and levels across; and the score without noise."""

    levels: tuple[Level, ...]
    scores: Mapping[str, np.ndarray]
    clean: float
    problem: Problem

    @property
    def draws(self) -> int:
        return len(next(iter(self.scores.values())))

    def band(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean over the draws and half the width of its 95 % confidence interval."""
        scores = self.scores[name]
        return scores.mean(axis=0), student.ppf(0.975, len(scores) - 1) * _standard_error(scores)

    def rows(self) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
        """The long table: one row for each λ and series."""
        columns = ("lambda", "noise_deviation", f"epsilon_at_delta_{DELTA:g}", "unbiased_attacker_squared_error")
        rows = []
        for name in SERIES:
            mean, half = self.band(name)
            spread = _deviation(self.scores[name])
            for at, level in enumerate(self.levels):
                facts = (level.trade_off, level.deviation, level.epsilon, level.attacker)
                numbers = (mean[at], mean[at] - half[at], mean[at] + half[at], spread[at])
                rows.append((*facts, name, *map(float, numbers), self.draws, self.clean))
        more = ("series", "mean", "low_95", "high_95", "deviation_over_draws", "draws", "non_private")
        return (*columns, *more), tuple(rows)

    def shown(self) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
        """The same for a terminal: λ down, series across, mean ± 95 %."""
        bands = [self.band(name) for name in SERIES]
        rows = [
            (
                f"{level.trade_off:g}",
                f"{level.epsilon:.3g}",
                *(f"{mean[at]:.4g} ± {half[at]:.2g}" for mean, half in bands),
            )
            for at, level in enumerate(self.levels)
        ]
        columns = ("λ", "ε", *(style.short for style in SERIES.values()))
        return columns, (*rows, ("no noise", "∞", f"{self.clean:.4g}", *[""] * (len(SERIES) - 1)))


def _standard_error(scores: np.ndarray) -> np.ndarray:
    return _deviation(scores) / math.sqrt(len(scores))


def _deviation(scores: np.ndarray) -> np.ndarray:
    """Over the draws; exactly zero where all draws agree, which rounding of their mean would hide."""
    return np.where(np.ptp(scores, axis=0) > 0, scores.std(axis=0, ddof=1), 0.0)


# Noise.


def level(trade_off: float, widths: np.ndarray) -> Level:
    """What λ means for columns of these public widths."""
    deviation = trade_off**-0.25
    sensitivity = float(np.linalg.norm(widths))
    epsilon = Gaussian(deviation, sensitivity, _FEATURES, len(widths)).guarantee().epsilon(DELTA)
    scales = {
        "laplace_information": deviation,
        "laplace_variance": deviation / math.sqrt(2),
        "laplace_privacy": _laplace_scale(epsilon, widths),
    }
    return Level(trade_off, deviation, epsilon, len(widths) / math.sqrt(trade_off), scales)


def _laplace_scale(epsilon: float, widths: np.ndarray) -> float:
    """Least scale with local (ε, DELTA), to 1 %: pure composition, or better where exact composition allows it."""
    pure = float(widths.sum()) / epsilon

    def keeps(scale: float) -> bool:
        events = [Laplace(scale, float(width), _FEATURES, 1).event() for width in widths]
        return compose(events).epsilon(DELTA) <= epsilon

    if not keeps(0.98 * pure):
        return pure
    low, high = 0.5 * pure, 0.98 * pure
    while keeps(low):
        low, high = low / 2, low
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def unit_noise(law: type[Gaussian] | type[Laplace], shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Noise of scale 1, from the project's own sampler; seeded, so for experiments only."""
    return law(1.0, 1.0, _FEATURES, shape[-1], seed)(np.zeros(shape))


def sweep(settings: StudySettings, problem: Problem, trade_offs: Sequence[float], draws: int) -> Curves:
    """Scores of every series at every λ."""
    levels = [level(value, problem.widths) for value in settings.track(trade_offs, "calibrating")]
    scores = {name: np.empty((draws, len(levels))) for name in SERIES}
    normal = laplacian = np.zeros(problem.values.shape)
    for draw, at in settings.track(list(itertools.product(range(draws), range(len(levels)))), "learning from noise"):
        if at == 0:
            seed = 2 * (settings.seed * 100_003 + draw)
            normal = unit_noise(Gaussian, problem.values.shape, seed)
            laplacian = unit_noise(Laplace, problem.values.shape, seed + 1)
        here = levels[at]
        noisy = problem.values + here.deviation * normal
        scores["gaussian"][draw, at] = problem.plain(noisy)
        scores["aware"][draw, at] = problem.aware(noisy, here.deviation**2)
        for name, scale in here.laplace.items():
            scores[name][draw, at] = problem.plain(problem.values + scale * laplacian)
    return Curves(tuple(levels), scores, problem.plain(problem.values), problem)


# Verdicts.


def approach(curves: Curves) -> Verdict:
    """As λ grows the model from noisy data approaches the one from the original data."""
    gaps = np.abs(curves.scores["gaussian"].mean(axis=0) - curves.clean)
    claim = f"the {curves.problem.score} approaches the one without noise as λ grows"
    finding = f"the mean gap goes from {gaps[0]:.3g} to {gaps[-1]:.3g} over λ = {_span(curves)}"
    return Verdict(claim, bool(gaps[-1] <= 0.1 * gaps.max() + 1e-12), finding)


def rivalry(curves: Curves) -> tuple[Verdict, ...]:
    """Gaussian against Laplace noise in each way of making them comparable, and plain against noise-aware models."""
    said = "the optimal (Gaussian) noise always beats Laplace noise"
    verdicts = [
        _duel(curves, f"{said} of equal Fisher information, the paper's comparison", "laplace_information"),
        _duel(curves, f"{said} of equal variance", "laplace_variance"),
        _duel(curves, f"{said} of the same local (ε, {_DELTA_TEXT})", "laplace_privacy"),
    ]
    difference = _oriented(curves, curves.scores["aware"] - curves.scores["gaussian"])
    better, worse = _decided(difference.mean(axis=0), _standard_error(difference), len(difference) - 1)
    finding = _counted(curves, better, worse)
    claim = "a model that knows the noise law is never worse than the plain one on the same noisy table"
    return (*verdicts, Verdict(claim, not worse.any(), finding, of="sfumato"))


def _duel(curves: Curves, claim: str, rival: str) -> Verdict:
    ours, theirs = curves.scores["gaussian"], curves.scores[rival]
    gain = _oriented(curves, ours.mean(axis=0) - theirs.mean(axis=0))
    error = np.hypot(_standard_error(ours), _standard_error(theirs))
    better, worse = _decided(gain, error, len(ours) - 1)
    # Without a winner anywhere the claim falls only if no gain worth naming can have been missed.
    cost = float(np.abs(ours.mean(axis=0) - curves.clean).max())
    missed = float((gain + _reach(error, len(ours) - 1)).max()) > _WORTH_NAMING * cost
    holds = False if worse.any() else True if better.any() else None if missed else False
    top = int(np.argmax(np.abs(gain)))
    here = curves.levels[top]
    finding = (
        f"{_counted(curves, better, worse)}; largest gain {gain[top]:+.3g} at λ = {here.trade_off:g}, "
        f"where the Laplace noise has {2 * (here.laplace[rival] / here.deviation) ** 2:.3g} × the variance"
    )
    return Verdict(claim, holds, finding)


def _counted(curves: Curves, better: np.ndarray, worse: np.ndarray) -> str:
    """Where it wins, loses and ties, with the ε of wins and losses: weak and strong privacy differ."""
    parts = []
    for word, where in (("better", better), ("worse", worse)):
        epsilons = [here.epsilon for here, true in zip(curves.levels, where, strict=True) if true]
        span = f" (ε = {epsilons[0]:.3g} … {epsilons[-1]:.3g})" if epsilons else ""
        parts.append(f"{word} at {len(epsilons)} of {len(where)} λ{span}")
    return ", ".join(parts) + f", no difference seen at {int(np.sum(~better & ~worse))}"


def _oriented(curves: Curves, difference: np.ndarray) -> np.ndarray:
    return difference if curves.problem.larger_is_better else -difference


def _decided(gain: np.ndarray, error: np.ndarray, freedom: int) -> tuple[np.ndarray, np.ndarray]:
    """Where a gain is above and below zero."""
    reach = _reach(error, freedom)
    return gain > reach, gain < -reach


def _reach(error: np.ndarray, freedom: int) -> np.ndarray:
    """Half the width of intervals that hold with 95 % confidence for all λ together (Bonferroni).

    The degrees of freedom are fewer than Welch's: slower to decide.
    """
    return student.ppf(1 - 0.025 / len(error), freedom) * error + 1e-9


def _span(curves: Curves) -> str:
    return f"{curves.levels[0].trade_off:g} … {curves.levels[-1].trade_off:g}"


# Drawing.


def draw_curves(curves: Curves, axes: Axes, *, floor: tuple[float, str] | None = None) -> list[Any]:
    """Score against λ with 95 % bands; ε stands along the top. Handles for a legend."""
    places = [here.trade_off for here in curves.levels]
    handles = [axes.axhline(curves.clean, color="black", linewidth=1.5, label="no noise (non-private)")]
    for name, style in SERIES.items():
        mean, half = curves.band(name)
        axes.fill_between(places, mean - half, mean + half, color=style.colour, alpha=0.2, linewidth=0)
        handles += axes.plot(
            places, mean, color=style.colour, marker=style.marker, linestyle=style.dash, markersize=5, label=style.label
        )
    if floor is not None:
        handles.append(axes.axhline(floor[0], color="0.5", linestyle=(0, (1, 3)), label=floor[1]))
    axes.set_xscale("log")
    axes.set_xlabel("λ (weight on utility; noise variance is 1/√λ in squared column widths)")
    axes.set_ylabel(_in_two_lines(curves.problem.score))
    if curves.problem.larger_is_better:  # a share: few draws can put a band above 1
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.01))
    axes.grid(alpha=0.3)
    top = axes.secondary_xaxis("top")
    top.set_xticks(places, labels=[_short(here.epsilon) for here in curves.levels])
    top.minorticks_off()
    top.set_xlabel(f"local ε of one record's features at {_DELTA_TEXT}")
    return handles


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number / 1000:.3g}k"


def _in_two_lines(text: str) -> str:
    words = text.split()
    half = (len(words) + 1) // 2
    return f"{' '.join(words[:half])}\n{' '.join(words[half:])}"


def _draw_attacker(curves: Curves, axes: Axes) -> list[Any]:
    """The paper's privacy measure, and what anybody achieves without looking."""
    places = [here.trade_off for here in curves.levels]
    guess = float((curves.problem.widths**2).sum()) / 4
    bound = axes.plot(
        places,
        [here.attacker for here in curves.levels],
        color="#0072B2",
        marker="o",
        label="least error of an unbiased attacker\n(Cramér-Rao, the paper's measure)",
    )
    middle = axes.axhline(
        guess, color="#D55E00", linestyle="--", label="most error of an attacker who\nguesses the middle of every range"
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("λ (weight on utility)")
    axes.set_ylabel("squared error per record\n(squared column widths)")
    axes.grid(alpha=0.3)
    return [*bound, middle]


def draw_study(figure: Figure, curves: Curves, title: str, floor: tuple[float, str] | None = None) -> None:
    """Two panels as in the paper's Fig. 5: utility above, privacy below."""
    figure.set_size_inches(11, 8)
    above, below = figure.subplots(2, 1, height_ratios=(2, 1))
    outside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False, "fontsize": 9}
    legend = f"mean of {curves.draws} draws\nband: 95 % confidence of the mean"
    above.legend(handles=draw_curves(curves, above, floor=floor), title=legend, alignment="left", **outside)
    below.legend(handles=_draw_attacker(curves, below), **outside)
    figure.suptitle(title)
