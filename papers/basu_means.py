"""Basu, §3.3.3, again: the arithmetic and the harmonic mean of private values from one noisy version of each.

In:   StudySettings.
Out:  the study POWER_MEANS.
Not here: channels (mechanisms/tailored/noise.py).

n parties hold values of [0.05, 1]; wanted are m₁ and m₋₁. Either each party publishes x and 1/x with half of ε each and
Laplace noise, or x once: with Laplace noise clipped to the domain, by the program of §3.3.3 (E[y|x] = αx + (1-α)b and
the same for 1/y, with the largest α there is), or by a channel for both uses whose histogram is decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.basu_channels import QUICK
from papers.basu_parties import BUDGETS, PARTIES
from papers.study import Cell, Study, StudyResult, StudySettings, Verdict
from sfumato.core.domain import Interval
from sfumato.core.events.channel import delta_of_weights
from sfumato.errors import InputError
from sfumato.mechanisms import TailoredNoise
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.tailored.repair import LARGEST_EPSILON, TOTAL_BITS, merged, private_weights
from sfumato.mechanisms.tailored.sampling import alias_table
from sfumato.mechanisms.tailored.solver import WantedMeans, optimal_channel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["POWER_MEANS", "Shaped", "printed_delta", "shaped"]

DOMAIN = Interval(0.05, 1.0)
_METHODS = (
    "Laplace on x and 1/x, ε/2 each",
    "Laplace on x, clipped",
    "§3.3.3 (one channel, αx + (1-α)b)",
    "ours: one joint channel, decoded",
)
_BINS = 39


@dataclass(frozen=True)
class Shaped:
    """The channel of §3.3.3 and what is needed to undo its means."""

    edges: np.ndarray
    outputs: np.ndarray
    weights: np.ndarray
    alpha: float
    background: np.ndarray


def shaped(epsilon: float) -> Shaped | None:
    """min Σ f (x - y)² with E[y|x] = αx + (1-α)E[B], E[1/y|x] = α/x + (1-α)E[1/B], by bisection on the largest α."""
    edges = np.linspace(DOMAIN.low, DOMAIN.high, _BINS + 1)
    inputs = (edges[1:] + edges[:-1]) / 2
    outputs = np.unique(np.concatenate([[DOMAIN.low, DOMAIN.high], inputs]))
    uses = np.array([inputs, 1 / inputs])
    values, background = np.array([outputs, 1 / outputs]), uses.mean(axis=1)
    costs = (outputs[None, :] - inputs[:, None]) ** 2

    def attempt(alpha: float) -> np.ndarray | None:
        wanted = alpha * uses + (1 - alpha) * background[:, None]
        moments = WantedMeans(values, wanted, np.full_like(uses, np.inf))
        try:
            return optimal_channel(costs, min(epsilon, LARGEST_EPSILON), moments).probabilities
        except InputError:
            return None

    low, high, best = 0.0, 1.0, None
    for _ in range(7):
        middle = (low + high) / 2
        found = attempt(middle)
        low, high, best = (middle, high, found) if found is not None else (low, middle, best)
    if best is None:
        return None
    probabilities, kept = merged(best)
    return Shaped(edges, outputs[kept], private_weights(probabilities, epsilon), low, background)


def printed_delta(inputs: int, outputs: int, delta: float) -> float:
    """The true δ of a channel that the printed rule f₁ ≤ e^ε f₂ + δ/|X|, output by output, lets pass (ε = 0.1).

    Two inputs with no output in common, each spread so thinly over half of the outputs that the slack covers all of it.

    >>> printed_delta(2, 50, 0.1) > 0.9
    True
    """
    half, total = outputs // 2, 1 << 40
    most = int(min(delta / inputs, 1 / half) * total)
    thin = [most] * half
    spare = total - half * most  # what does not fit under the slack both inputs share
    rows = [[*thin, *([0] * half), spare], [*([0] * half), *thin, spare]]
    return float(delta_of_weights(rows, 0.1))


def _published_twice(values: np.ndarray, epsilon: float, generator: np.random.Generator) -> tuple[float, float]:
    first = values + generator.laplace(0, DOMAIN.width * 2 / epsilon, len(values))
    second = 1 / values + generator.laplace(0, (1 / DOMAIN.low - 1 / DOMAIN.high) * 2 / epsilon, len(values))
    return float(first.mean()), _inverse(float(second.mean()))


def _clipped(values: np.ndarray, epsilon: float, generator: np.random.Generator) -> tuple[float, float]:
    noisy = np.clip(values + generator.laplace(0, DOMAIN.width / epsilon, len(values)), DOMAIN.low, DOMAIN.high)
    return float(noisy.mean()), _inverse(float((1 / noisy).mean()))


def _undone(channel: Shaped, values: np.ndarray, generator: np.random.Generator) -> tuple[float, float]:
    rows = np.searchsorted(channel.edges[1:-1], values, side="right")
    drawn = alias_table(channel.weights, TOTAL_BITS).draw(rows, Bits(int(generator.integers(1 << 60))))
    noisy = channel.outputs[drawn]
    means = np.array([noisy.mean(), (1 / noisy).mean()])
    plain = (means - (1 - channel.alpha) * channel.background) / channel.alpha
    return float(plain[0]), _inverse(float(plain[1]))


def _ours(channel: TailoredNoise, values: np.ndarray) -> tuple[float, float]:
    published = channel(values)
    means = [channel.estimate(published, use, method="likelihood").value for use in ("identity", "inverse")]
    return float(means[0]), _inverse(float(means[1]))


def _inverse(mean: float) -> float:
    """The harmonic mean from a mean of inverses, which is known to lie between those of the ends."""
    return 1 / float(np.clip(mean, 1 / DOMAIN.high, 1 / DOMAIN.low))


def _losses(settings: StudySettings, budgets: tuple[float, ...], repetitions: int, parties: int) -> np.ndarray:
    """Squared errors, shape (methods, budgets, repetitions, 2 means). Values have a law that is not the prior's."""
    losses = np.full((len(_METHODS), len(budgets), repetitions, 2), np.nan)
    for at, epsilon in enumerate(settings.track(budgets, "budgets")):
        program = shaped(epsilon)
        for repetition in range(repetitions):
            generator = np.random.default_rng((settings.seed, 333, at, repetition))
            values = DOMAIN.low + DOMAIN.width * generator.beta(2, 3, parties)
            truth = np.array([values.mean(), 1 / (1 / values).mean()])
            ours = TailoredNoise(
                DOMAIN, epsilon, uses=["identity", "inverse"], bins=40, random_state=int(generator.integers(1 << 60))
            )
            found = [
                _published_twice(values, epsilon, generator),
                _clipped(values, epsilon, generator),
                _undone(program, values, generator) if program is not None else (np.nan, np.nan),
                _ours(ours, values),
            ]
            losses[:, at, repetition] = (np.array(found) - truth) ** 2
    return losses


def _run(settings: StudySettings) -> StudyResult:
    budgets = (0.5, 2.0, 8.0) if settings.quick else BUDGETS
    parties, repetitions = (2000, 3) if settings.quick else (PARTIES, 30)
    losses = _losses(settings, budgets, repetitions, parties)
    total = np.nanmean(losses.sum(axis=3), axis=2)
    harmonic = np.nanmean(losses[..., 1], axis=2)
    rows: list[tuple[Cell, ...]] = []
    for number, name in enumerate(_METHODS):
        for at, epsilon in enumerate(budgets):
            first, second = np.nanmean(losses[number, at], axis=0)
            rows.append((name, epsilon, float(first), float(second), float(total[number, at])))
    better = int((total[3] < total[0]).sum())
    shape = int((total[2] < total[0]).sum())
    delta = printed_delta(2, 50, 0.1)
    verdicts = (
        Verdict(
            "with additive noise on x the harmonic mean is hard to know",
            bool(np.nanmedian(harmonic[1] / harmonic[3]) > 2),
            f"its squared error with clipped Laplace noise is {np.nanmedian(harmonic[1] / harmonic[3]):.3g} times "
            "that from our channel in the median over the budgets",
        ),
        Verdict(
            "one tailored version of x beats separate noisy versions of x and 1/x (program of §3.3.3)",
            shape > len(budgets) / 2,
            f"smaller loss at {shape} of {len(budgets)} budgets",
        ),
        Verdict(
            "one tailored version of x beats separate noisy versions of x and 1/x",
            better > len(budgets) / 2,
            f"smaller loss at {better} of {len(budgets)} budgets, {np.median(total[0] / total[3]):.3g} times smaller "
            "in the median",
            of="sfumato",
        ),
        Verdict(
            "f₁ ≤ e^ε f₂ + δ/|X| for each output gives (ε, δ)-DP",
            delta <= 0.1,
            f"with |X| = 2, |Y| = 50 and δ = 0.1 it lets a channel pass whose δ is {delta:.2g}",
        ),
    )
    shown = tuple(
        (f"{eps:.3g}", *(f"{total[n, at]:.2g}" for n in range(len(_METHODS)))) for at, eps in enumerate(budgets)
    )
    return StudyResult(
        ("method", "epsilon", "loss_m1", "loss_m-1", "loss"),
        tuple(rows),
        verdicts,
        partial(_draw, total=total, harmonic=harmonic, budgets=budgets),
        (
            "Values are 0.05 + 0.95·Beta(2, 3); the designs do not know that and assume nothing but the domain.",
            *([QUICK] if settings.quick else []),
        ),
        {"parties": parties, "repetitions": repetitions, "budgets": list(budgets)},
        {"printed_rule_true_delta": delta},
        (("loss at ε", *_METHODS), shown),
    )


def _draw(figure: Figure, total: np.ndarray, harmonic: np.ndarray, budgets: tuple[float, ...]) -> None:
    figure.set_size_inches(11, 4.5)
    for axes, losses, title in zip(
        figure.subplots(1, 2), (total, harmonic), ("m₁ and m₋₁ together", "harmonic mean alone"), strict=True
    ):
        for name, series in zip(_METHODS, losses, strict=True):
            axes.plot(budgets, series, marker="o", label=name)
        axes.set(xscale="log", yscale="log", xlabel="ε", ylabel="mean squared error", title=title)
    figure.axes[0].legend(fontsize=7)


POWER_MEANS = Study(
    "basu-power-means",
    "Arithmetic and harmonic mean from one noisy version of each value",
    "Basu, Declarative privacy-preserving inference queries, §3.3.3",
    _run,
)
