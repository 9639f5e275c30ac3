"""Designing a channel: from what is wanted to certified weights.

In:   a public interval, ε, δ, uses, a prior, grids, how bias is treated.
Out:  ChannelTable: bins, outputs, integer weights, and a report of how the design went.
Not here: the mechanism itself (tailored.py), the solver (tailored_solver.py).
Reference: Basu, §3.3.3 and Ch. 5; errata: two-sided bias, no slack for each output, repair.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from sfumato.core.domain import Interval
from sfumato.core.threads import calm_threads
from sfumato.errors import InputError, PrivacyParameterError, SchemaError
from sfumato.mechanisms.tailored.grid import Binning, InputGrid, Prior, make_grid, make_knots, prior_of
from sfumato.mechanisms.tailored.repair import LARGEST_EPSILON, TOTAL, TOTAL_BITS, merged, private_weights
from sfumato.mechanisms.tailored.sampling import AliasTable, alias_table
from sfumato.mechanisms.tailored.solver import WantedMeans, optimal_channel
from sfumato.mechanisms.tailored.uses import Use, checked_uses

__all__ = ["Bias", "ChannelTable", "DesignWish", "WeightsKey", "as_outputs", "design", "use_weights"]

Bias = Literal["soft", "none", "unbiased"]

#: Time of a design grows with the cube of the larger grid: measured 5 s at 400.
_SECONDS_AT_400 = 5.0
_MOST_SECONDS = 300.0
_FINE_OUTPUTS = 97
#: A design that may be this much worse than its kind allows, or this biased where no bias was allowed, is refused.
_LARGEST_GAP = 1e-3


@dataclass(frozen=True)
class DesignWish:
    """Everything a design depends on; all of it public."""

    domain: Interval
    epsilon: float
    delta: float
    uses: tuple[Use, ...]
    prior: Prior
    bins: int
    outputs: int | tuple[float, ...] | None
    bias: Bias
    binning: Binning
    guard: float | None


@dataclass(frozen=True)
class ChannelTable:
    """A designed channel. `probabilities` are weights/2^62; `gap` bounds how far its cost is from the best possible.

    With δ = 0 the gap is rounding. With δ > 0 it is a few hundredths of δ, more for unbiased channels: what a channel
    with slacks for every pair of inputs could gain at most (docs/proofs/tailored_noise.md).
    """

    wish: DesignWish
    grid: InputGrid = field(repr=False)
    prior: np.ndarray = field(repr=False)
    outputs: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    cost: float
    gap: float
    seconds: float

    def __post_init__(self) -> None:
        for array in (self.grid.edges, self.grid.inputs, self.prior, self.outputs, self.weights):
            array.setflags(write=False)

    @cached_property
    def alias(self) -> AliasTable:
        """For drawing; built once."""
        return alias_table(self.weights, TOTAL_BITS)

    @cached_property
    def weights_key(self) -> WeightsKey:
        return WeightsKey(tuple(map(tuple, self.weights.tolist())))

    @cached_property
    def probabilities(self) -> np.ndarray:
        shares = self.weights / float(TOTAL)
        shares.setflags(write=False)
        return shares


@dataclass(frozen=True, eq=False)
class WeightsKey:
    """The weights as Python integers, told apart by identity: comparing 160,000 numbers at every use would cost."""

    rows: tuple[tuple[int, ...], ...] = field(repr=False)


@lru_cache(maxsize=64)
@calm_threads()
def design(wish: DesignWish) -> ChannelTable:
    """Solve, merge what is rare, repair, certify."""
    start = time.perf_counter()
    checked_uses(wish.uses, wish.domain.low, wish.domain.high, wish.guard)
    if wish.bias == "unbiased":
        grid = make_knots(wish.domain, wish.uses, wish.bins, wish.binning, wish.guard)
    else:
        grid = make_grid(wish.domain, wish.uses, wish.bins, wish.binning, wish.prior, wish.guard)
    prior = prior_of(grid, wish.prior)
    if wish.bias == "unbiased" and len(wish.uses) > 1 and not isinstance(wish.outputs, tuple):
        return _several(wish, grid, prior, start)
    found = _Part.of(wish, grid, prior)
    weights = private_weights(found.private, wish.epsilon, wish.delta, found.free)
    cost = _cost(found.costs, found.moments, found.kept, weights / float(TOTAL))
    _check_success(wish, found, cost, weights / float(TOTAL))
    gap = _gap(found.costs, cost, found.bound)
    return ChannelTable(wish, grid, prior, found.outputs, weights, cost, gap, time.perf_counter() - start)


@dataclass(frozen=True)
class _Part:
    """A solved channel before its weights are whole numbers."""

    private: np.ndarray
    free: np.ndarray
    outputs: np.ndarray
    costs: np.ndarray
    moments: WantedMeans | None
    kept: np.ndarray
    bound: float
    reached: float

    @classmethod
    def of(cls, wish: DesignWish, grid: InputGrid, prior: np.ndarray) -> _Part:
        outputs = _outputs(wish, grid)
        _affordable(len(grid.inputs), len(outputs))
        costs, moments = _problem(wish, grid.inputs, prior, outputs)
        # A δ of less than one unit buys no weight, and the solver would look for a channel that nothing depends on.
        delta = wish.delta if wish.delta * TOTAL >= 1 else 0.0
        found = optimal_channel(costs, min(wish.epsilon, LARGEST_EPSILON), moments, delta=delta)
        _, private, free, kept = merged(found.probabilities, found.private, found.free)
        return cls(private, free, outputs[kept], costs[:, kept], moments, kept, found.bound, found.reached)


def _several(wish: DesignWish, grid: InputGrid, prior: np.ndarray, start: float) -> ChannelTable:
    """Unbiased for several uses: each record goes through the best channel of one of them, drawn by their weights.

    An output tells which; whoever estimates one use learns from the others' outputs as well (channel_estimate.py).
    """
    parts = [_Part.of(replace(wish, uses=(use,)), grid, prior) for use in wish.uses]
    total = sum(use.weight for use in wish.uses)
    shares = [use.weight / total for use in wish.uses]
    private, free = (
        np.hstack([share * getattr(part, name) for share, part in zip(shares, parts, strict=True)])
        for name in ("private", "free")
    )
    outputs = np.concatenate([part.outputs for part in parts])
    order = np.argsort(outputs, kind="stable")
    weights = private_weights(private[:, order], wish.epsilon, wish.delta, free[:, order])
    costs, gaps = [], []
    for use, part in zip(wish.uses, parts, strict=True):
        probabilities = (1 - wish.delta) * part.private + wish.delta * part.free
        costs.append(_cost(part.costs, part.moments, part.kept, probabilities))
        gaps.append(_gap(part.costs, costs[-1], part.bound))
        _check_success(replace(wish, uses=(use,)), part, costs[-1], probabilities)
    cost, outputs = float(np.dot(shares, costs)), _told_apart(outputs[order])
    return ChannelTable(wish, grid, prior, outputs, weights, cost, max(gaps), time.perf_counter() - start)


def _gap(costs: np.ndarray, cost: float, bound: float) -> float:
    return max(0.0, cost - bound) / max(abs(cost), 1e-6 * float(np.abs(costs).max()))


def _told_apart(outputs: np.ndarray) -> np.ndarray:
    """Rising values: where two channels have the same output, the second one's is the next number that there is."""
    apart = outputs.copy()
    for place in range(1, len(apart)):
        if apart[place] <= apart[place - 1]:
            apart[place] = np.nextafter(apart[place - 1], math.inf)
    return apart


def _check_success(wish: DesignWish, found: _Part, cost: float, probabilities: np.ndarray) -> None:
    """Private it is in any case; but a channel that is not what was wished for is not handed out in silence."""
    missed, moments, gap = 0.0, found.moments, _gap(found.costs, cost, found.reached)
    if moments is not None and wish.bias == "unbiased":
        biases = probabilities @ moments.values[:, found.kept].T - moments.wanted.T
        missed = float((np.abs(biases) / np.maximum(np.ptp(moments.wanted, axis=1), 1e-300)).max())
    if gap > _LARGEST_GAP or missed > _LARGEST_GAP:
        raise PrivacyParameterError(
            f"At ε = {wish.epsilon:g} this channel cannot be computed in double precision: the one found may cost "
            f"{100 * gap:.2g} % more than the best. Ask for a larger ε, bias='soft', or uses of a smaller range. "
            "Nothing was drawn or spent."
        )


def use_weights(uses: tuple[Use, ...], inputs: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """What a unit of squared error of each use counts: its weight over the use's own variance."""
    values = np.array([use(inputs) for use in uses])
    means = values @ prior
    spread = ((values - means[:, None]) ** 2) @ prior
    return np.array([use.weight for use in uses]) / np.where(spread > 0, spread, 1.0)


def _problem(
    wish: DesignWish, inputs: np.ndarray, prior: np.ndarray, outputs: np.ndarray
) -> tuple[np.ndarray, WantedMeans | None]:
    weights = use_weights(wish.uses, inputs, prior)
    before, after = (np.array([use(points) for use in wish.uses]) for points in (inputs, outputs))
    if not np.isfinite(after).all():
        raise SchemaError("A use has no value at one of the outputs: choose other outputs. Nothing was drawn.")
    costs = np.zeros((len(inputs), len(outputs)))
    for weight, there, here in zip(weights, before, after, strict=True):
        costs += weight * prior[:, None] * (here[None, :] - there[:, None]) ** 2
    if wish.bias == "none":
        return costs, None
    soft = 2 * weights[:, None] * prior[None, :] + 1e-12
    return costs, WantedMeans(after, before, soft if wish.bias == "soft" else np.full_like(soft, math.inf))


def _cost(costs: np.ndarray, moments: WantedMeans | None, kept: np.ndarray, probabilities: np.ndarray) -> float:
    total = float((costs * probabilities).sum())
    if moments is None or not np.isfinite(moments.penalty).all():
        return total
    biases = probabilities @ moments.values[:, kept].T - moments.wanted.T
    return total + float((moments.penalty.T * biases**2).sum()) / 2


def _outputs(wish: DesignWish, grid: InputGrid) -> np.ndarray:
    """The values that may be published: given, or as many as asked for on the scale of the inputs."""
    given, inputs = wish.outputs, grid.inputs
    if isinstance(given, tuple):
        outputs = np.unique(np.array(given, dtype=float))
    elif wish.bias == "unbiased":
        outputs = _wide_outputs(wish, inputs, given)
    else:
        count = _fine(len(inputs)) if given is None else given
        outputs = np.interp(np.linspace(0, len(inputs) - 1, count), np.arange(len(inputs)), inputs)
    for use in wish.uses:
        outputs = use.moved(outputs, wish.domain.low, wish.domain.high, wish.guard or 0.0)
    outputs = np.unique(outputs)
    if len(outputs) < 2:
        raise InputError("All outputs are the same value: nothing would be told. Nothing was drawn.")
    return outputs


def _fine(inputs: int) -> int:
    """Several outputs between two inputs while that is cheap: at small ε the best outputs lie close together."""
    return max(1, (_FINE_OUTPUTS - 1) // max(1, inputs - 1)) * (inputs - 1) + 1


def _wide_outputs(wish: DesignWish, inputs: np.ndarray, count: int | None) -> np.ndarray:
    """Outputs beyond the domain on the scale of the one use: without them no mean could be kept.

    With ratios up to e^ε the mean at the ends needs outputs (e^ε+1)/(e^ε-1) times as far from the middle; half as
    far again, and one width, leave the optimum its choice.
    """
    use = wish.uses[0]
    if len(wish.uses) > 1 or use.inverse is None:
        raise InputError(
            "bias='unbiased' finds its outputs by itself for uses that can be undone (identity, log, inverse, tan, odd "
            "powers). Give outputs=[…] that reach beyond the domain, or take bias='soft'."
        )
    scale = np.sort(use(inputs))
    middle, half = (scale[0] + scale[-1]) / 2, (scale[-1] - scale[0]) / 2
    reach = half * max(1.6 / math.tanh(min(wish.epsilon, 50.0) / 2), 2.0)
    points = np.linspace(middle - reach, middle + reach, count or max(2 * len(inputs) + 1, _FINE_OUTPUTS))
    points = np.sort(np.append(points, scale) if count is None else points)
    with np.errstate(over="ignore"):  # told apart in the next line
        outputs = use.inverse(points[points != 0] if use.poles(-1.0, 1.0) else points)
    if not np.isfinite(outputs).all() or not np.allclose(use(outputs), use(use.inverse(use(outputs)))):
        raise InputError(f"The use {use.name!r} cannot be undone as far out as needed: take bias='soft'.")
    return np.asarray(outputs)


def _affordable(inputs: int, outputs: int) -> None:
    size = max(inputs, outputs)
    seconds, memory = _SECONDS_AT_400 * (size / 400) ** 3, 40 * 8 * inputs * outputs
    if seconds > _MOST_SECONDS or memory > 4e9:
        raise PrivacyParameterError(
            f"A channel of {inputs} inputs and {outputs} outputs would take about {seconds / 60:.0f} minutes and "
            f"{memory / 1e9:.1f} GB to design. Up to 1000 of each are practical, and the "
            "error hardly falls beyond 100. Nothing was run."
        )


def as_outputs(given: Any) -> int | tuple[float, ...] | None:
    """A number of outputs, their public values, or None."""
    if given is None:
        return None
    if isinstance(given, int):
        if isinstance(given, bool) or given < 2:
            raise InputError("outputs must be at least 2.")
        return given
    try:
        values = tuple(float(value) for value in given)
    except (TypeError, ValueError) as error:
        raise InputError("outputs must be a whole number or a list of public values.") from error
    if len(values) < 2 or not all(map(math.isfinite, values)):
        raise InputError("outputs must be at least 2 finite values.")
    return values
