"""Privacy loss distributions of composed acts: the only door to dp-accounting.

In:   parts.
Out:  the pessimistic distribution of their total privacy loss.
Not here: what is done with it (core/compose.py).
Proof: docs/proofs/composition.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np

from sfumato.core.events.learning import objective_loss
from sfumato.core.noise import BoxNoise
from sfumato.core.parts import (
    MANY,
    BoxPair,
    GaussianPair,
    LaplacePair,
    ObjectivePair,
    Part,
    ThreePointPair,
    TwoPointPair,
    WorstPair,
)
from sfumato.core.special import gammaln
from sfumato.core.window import added_up

__all__ = [
    "can_be_added_up",
    "drawn_delta",
    "drawn_epsilon",
    "grid_step",
    "law_delta",
    "law_epsilon",
    "transform_error",
]

#: What Fourier transforms may hide of δ, in absolute terms: at all, and for each act whose losses they add up.
_TRANSFORMS, _EACH_ACT = 1e-12, 1e-15

#: Acts that fail together with this chance promise nothing: what is left of their losses is too little to be added up.
_CERTAIN_FAILURE = 1 - 1e-9


def grid_step(parts: tuple[Part, ...]) -> float:
    """Fine against the smallest act, since losses are rounded up to multiples of it; coarse enough for the sum."""
    finest = min(part.value / part.pair.steps for part in parts)
    sums = sum(part.pair.span(part) for part in parts)
    longest = sums + 40 * max(part.pair.reach(part)[0] for part in parts)
    return max(min(1e-4, finest), longest / 1e6)


def can_be_added_up(parts: tuple[Part, ...]) -> bool:
    """Whether the losses are so small that a million steps between them are below one: beyond, simpler bounds do."""
    return grid_step(parts) <= 1.0


def transform_error(parts: tuple[Part, ...]) -> float:
    """How far below the truth the δ of these parts may be computed: a power of a transform errs by its exponent.

    Two and three points are sums of whole steps, without any transform.
    """
    acts = sum(part.count for part in parts if not isinstance(part.pair, TwoPointPair | ThreePointPair))
    return _TRANSFORMS + _EACH_ACT * acts


def _failure(parts: tuple[Part, ...]) -> float:
    """The chance that some act fails, where failing has a chance of its own."""
    failures = [(part.pair.failure(part), part.count) for part in parts]
    if any(failure >= 1 for failure, _ in failures):
        return 1.0
    kept = math.fsum(count * math.log1p(-failure) for failure, count in failures)
    return -math.expm1(kept)


def law_delta(parts: tuple[Part, ...], epsilon: float) -> float:
    """δ(ε) of all parts; 1 where they are next to certain to fail."""
    if _failure(parts) >= _CERTAIN_FAILURE:
        return 1.0
    found = float(loss_distribution(parts).get_delta_for_epsilon(epsilon))
    return 1.0 if math.isnan(found) else max(0.0, found)  # `max` alone would make 0 of what is not known


def law_epsilon(parts: tuple[Part, ...], delta: float) -> float:
    """The smallest ε with δ(ε) at most `delta`; infinite where there is none."""
    if _failure(parts) >= _CERTAIN_FAILURE:
        return math.inf
    law = loss_distribution(parts)
    return max(_epsilon_of(one.to_dense_pmf(), delta) for one in (law._pmf_remove, law._pmf_add))


def _epsilon_of(law: Any, delta: float) -> float:
    """The same of one direction: δ(ε) at every step of the grid, then the one place between two where it is `delta`.

    With U the chance of a loss of at least l and W = Σ p·e^(l - loss) over the same, δ(ε) = U - e^(ε-l)·W between
    l and the step before. dp-accounting adds up e^-loss itself, which is 0 or has lost its digits beyond losses of 700.
    """
    from scipy.signal import lfilter  # needed for compositions only

    step, masses = float(law._discretization), np.flip(law._probs)
    above = law._infinity_mass + np.cumsum(masses)
    weighed = np.asarray(lfilter([1.0], [1.0, -math.exp(-step)], masses))
    deltas = above - weighed
    if not deltas[0] <= delta:  # the largest loss there is: what is left there never ends
        return math.inf
    beyond = np.flatnonzero(~(deltas <= delta))
    place = int(beyond[0]) - 1 if beyond.size else len(deltas) - 1
    loss = (law._lower_loss + len(masses) - 1 - place) * step
    if not above[place] > delta:  # below the least loss nothing falls any more
        return max(0.0, loss - step) if beyond.size else 0.0
    return max(0.0, loss + math.log((above[place] - delta) / weighed[place]))


@lru_cache(maxsize=64)
def loss_distribution(parts: tuple[Part, ...]) -> Any:
    """The pessimistic privacy loss distribution of all parts: the only door to dp-accounting."""
    interval = grid_step(parts)
    total = None
    for part in parts:
        one = _distribution(part.pair, part, interval)
        total = one if total is None else total.compose(one)
    return total


@singledispatch
def _distribution(pair: WorstPair, part: Part, interval: float) -> Any:
    """Of all `count` acts of one part."""
    raise NotImplementedError(type(pair).__name__)


@_distribution.register
def _gaussian_distribution(pair: GaussianPair, part: Part, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_mechanism

    sigma = 1 / part.value
    law = privacy_loss_mechanism.GaussianPrivacyLoss(sigma)
    return _repeated(_connected(law, lambda losses: -0.5 - losses * (sigma**2), interval), part)


@_distribution.register
def _laplace_distribution(pair: LaplacePair, part: Part, interval: float) -> Any:
    from dp_accounting.pld import pld_pmf

    lowest, deltas = _laplace_deltas(part.value, interval)
    if part.count <= MANY:
        dots = _dots(deltas, lowest, lowest + deltas.size - 1, interval)
        return _repeated(_accounting().PrivacyLossDistribution(dots), part)
    found = added_up(_dense(deltas, interval), part.count)
    infinite = part.count * float(deltas[-1]) + found.outside
    first = part.count * lowest + found.lowest
    losses = pld_pmf.DensePLDPmf(interval, first, found.masses, infinite, pessimistic_estimate=True)
    return _accounting().PrivacyLossDistribution(losses)


@_distribution.register
def _box_distribution(pair: BoxPair, part: Part, interval: float) -> Any:
    # The law is symmetric: the losses of the moved copy are the same.
    losses = _rounded(*_box_masses(part.value, part.extra), interval)
    return _repeated(_accounting().PrivacyLossDistribution(losses), part)


@_distribution.register
def _two_point_distribution(pair: TwoPointPair, part: Part, interval: float) -> Any:
    # Not from_privacy_parameters, whose rounding of ±ε to the grid adds up over repeats.
    masses = _two_point_masses(part)
    return _accounting().from_two_probability_mass_functions(*masses, value_discretization_interval=interval)


@_distribution.register
def _three_point_distribution(pair: ThreePointPair, part: Part, interval: float) -> Any:
    masses = _three_point_masses(part)
    return _accounting().from_two_probability_mass_functions(*masses, value_discretization_interval=interval)


@_distribution.register
def _objective_distribution(pair: ObjectivePair, part: Part, interval: float) -> Any:
    """Losses shift + max(0, L) of one run on the grid, the shift rounded up (docs/proofs/objective_perturbation.md)."""
    from dp_accounting.pld import pld_pmf

    grid = objective_loss(part.value, 0.0, interval)
    if part.count > MANY:
        found = added_up(grid.masses, part.count)
        first, infinite = found.lowest, part.count * grid.infinite + found.outside
        lowest = math.ceil(part.count * part.extra / interval * (1 + 1e-15)) + first
        several = pld_pmf.DensePLDPmf(interval, lowest, found.masses, infinite, pessimistic_estimate=True)
        return _accounting().PrivacyLossDistribution(several)
    lowest = math.ceil(part.extra / interval)
    masses = pld_pmf.DensePLDPmf(interval, lowest, grid.masses, grid.infinite, pessimistic_estimate=True)
    return _repeated(_accounting().PrivacyLossDistribution(masses), part)


def _laplace_deltas(epsilon: float, interval: float) -> tuple[int, np.ndarray]:
    """The first step of the grid, and δ there and at every further one: 1 - e^((x-ε)/2) between -ε and ε.

    Differences of chances near one half have lost the digits of small ε, and what is lost adds up over many acts.
    """
    lowest, highest = math.floor(-epsilon / interval), math.ceil(epsilon / interval)
    losses = np.arange(lowest, highest + 1) * interval
    inside = -np.expm1((np.clip(losses, -epsilon, epsilon) - epsilon) / 2)
    return lowest, np.where(losses < -epsilon, -np.expm1(losses), inside)


def _connected(law: Any, place: Callable[[np.ndarray], np.ndarray], interval: float) -> Any:
    """The losses of one act, by connecting the dots: δ(ε) at every step of the grid, and a line in e^ε between them.

    What `from_gaussian_mechanism` and `from_laplace_mechanism` make (Doroshenko et al. 2022, Algorithm 1), to the last
    digit, but in whole arrays: they invert the loss and fill a table one number at a time, which took most of a plan.
    `place` says at which output the loss is a given number; `law` gives the chances up to there.
    """
    lowest, deltas = _deltas(law, place, interval)
    return _accounting().PrivacyLossDistribution(_dots(deltas, lowest, lowest + deltas.size - 1, interval))


def _deltas(law: Any, place: Callable[[np.ndarray], np.ndarray], interval: float) -> tuple[int, np.ndarray]:
    """The first step of the grid, and δ(ε) there and at every further one."""
    ends = law.connect_dots_bounds()
    lowest, highest = math.floor(ends.epsilon_lower / interval), math.ceil(ends.epsilon_upper / interval)
    losses = np.arange(lowest, highest + 1) * interval
    cut = place(losses)
    return lowest, np.clip(law.mu_upper_cdf(cut) - np.exp(losses + law.mu_lower_log_cdf(cut)), 0, 1)


#: So few dots are kept one by one, as dp-accounting does: its tables add such losses up without a Fourier transform.
_FEW_DOTS = 1000


def _dots(deltas: np.ndarray, lowest: int, highest: int, interval: float) -> Any:
    """The masses whose δ(ε) goes through these dots and is a line in e^ε between them."""
    from dp_accounting.pld import pld_pmf

    if deltas.size <= _FEW_DOTS:
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, lowest, highest, deltas)
    masses = _dense(deltas, interval)
    return pld_pmf.DensePLDPmf(interval, lowest, masses, float(deltas.min()), pessimistic_estimate=True)


def _dense(deltas: np.ndarray, interval: float) -> np.ndarray:
    deltas = np.minimum.accumulate(deltas)
    steps = np.diff(deltas)
    first = 1 - deltas[0] + steps[0] / math.expm1(interval)
    inner = (steps[1:] - steps[:-1] * math.exp(interval)) / math.expm1(interval)
    return np.maximum(0.0, np.concatenate(([first], inner, [steps[-1] / math.expm1(-interval)])))


def _accounting() -> Any:
    from dp_accounting.pld import privacy_loss_distribution  # a second to import: only when needed

    return privacy_loss_distribution


def _repeated(one: Any, part: Part) -> Any:
    return one.self_compose(part.count) if part.count > 1 else one


def _two_point_masses(part: Part) -> tuple[dict[int, float], dict[int, float]]:
    """Log masses of the worst (ε, δ)-DP pair, `count` times at once: a binomial law (Kairouz et al. 2015, Thm 3.1).

    Taking all repeats in one step rounds the losses once, not `count` times.
    """
    wins = np.arange(part.count + 1.0)
    ways = gammaln(part.count + 1.0) - gammaln(wins + 1) - gammaln(part.count - wins + 1)
    base = ways - part.count * math.log1p(math.exp(-part.value)) + part.count * math.log1p(-part.extra)
    upper, lower = base - (part.count - wins) * part.value, base - wins * part.value
    kept = np.flatnonzero(np.maximum(upper, lower) > -700)
    first = {int(k): float(lower[k]) for k in kept}
    second = {int(k): float(upper[k]) for k in kept}
    if part.extra > 0:  # not 1 - Σ: that would cancel
        second[-1] = first[-2] = math.log(-math.expm1(part.count * math.log1p(-part.extra)))
    return first, second


#: More repeats than this are held to answer always: two points are worse, and cost no table of their sums.
_MOST_SILENT = 4096


def _three_point_masses(part: Part) -> tuple[dict[int, float], dict[int, float]]:
    """Log masses of ε times the sum of `count` steps +1, 0, -1 and of its mirror image, all repeats at once."""
    if part.extra >= 1 or part.count > _MOST_SILENT:
        return _two_point_masses(Part("two-point", part.value, 0.0, part.count))
    up = part.extra / (1 + math.exp(-part.value))
    step = np.array([up * math.exp(-part.value), 1 - part.extra, up])
    total = np.ones(1)
    for digit in bin(part.count)[2:]:
        total = np.convolve(total, total)
        total = np.convolve(total, step) if digit == "1" else total
    kept = np.flatnonzero(total > 0)
    upper = {int(k): math.log(total[k]) for k in kept}
    return {k: mass - (k - part.count) * part.value for k, mass in upper.items()}, upper


#: Cells in which the box law and its shifted copy are compared.
_BOX_CELLS = 16384
#: Shifts are not told apart below this: the noise is cut into at most 2^18 cells.
_LEAST_SHIFT = 2.0**-17
#: Cells lighter than this lie where floating point no longer knows the law: they count as given away.
_LIGHTEST = 1e-24
#: The drawn whole-number weights differ from the law by so much relatively, and by so much together absolutely.
_BOX_RELATIVE, _BOX_ABSOLUTE = 1e-9, 2.0**-44
#: From here on the absolute part alone, times e^ε, exceeds 1.
_FARTHEST = 31.0


def _box_masses(shift: float, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Masses, cell by cell, of box noise and of the same moved by `shift` half widths; those of no cell are missing.

    Rounding to cells is post-processing, which could only hide something: so the cells are made a whole fraction of the
    shift, and within a cell the likelihood ratio of a log-concave law is monotone; what a cell hides is of second order
    and is covered by rounding the shift up by one cell (a larger shift never promises more for a log-concave law).
    """
    if shift >= 2:
        return np.array([1.0, 0.0]), np.array([0.0, 1.0])
    shift = max(shift, _LEAST_SHIFT)
    cells_in_shift = math.ceil(shift * _BOX_CELLS / 2)
    width = shift / cells_in_shift
    count = math.ceil(2 / width)
    edges = -1 + width * np.arange(count + 1)
    masses = BoxNoise(1.0, strength).masses(np.minimum(edges, 1.0))
    masses = masses / masses.sum()
    known = np.where(masses > _LIGHTEST, masses, 0.0)
    # What the light cells hold together is given away: it stands at a place of its own, where the other has nothing.
    light, beyond = [count * _LIGHTEST, 0.0], np.zeros(cells_in_shift + 1)
    return np.concatenate([light, known, beyond]), np.concatenate([light[::-1], beyond, known])


def _rounded(upper: np.ndarray, lower: np.ndarray, interval: float) -> Any:
    """Losses log(upper/lower) of every cell, rounded up to the grid; infinite where the other law has nothing.

    What `from_two_probability_mass_functions` makes, in whole arrays and not one number at a time.
    """
    from dp_accounting.pld import pld_pmf

    both = (upper > 0) & (lower > 0)
    infinite = float(upper[(upper > 0) & ~both].sum())
    masses = upper[both]
    places = np.ceil((np.log(masses) - np.log(lower[both])) / interval).astype(np.int64)
    lowest = int(places.min()) if places.size else 0
    found = np.bincount(places - lowest, weights=masses) if places.size else np.zeros(1)
    return pld_pmf.DensePLDPmf(interval, lowest, found, infinite, pessimistic_estimate=True)


def drawn_delta(parts: tuple[Part, ...], epsilon: float) -> float:
    """δ(ε) of the acts as drawn, where some are box noise: the whole-number weights are not quite the law.

    If every weight is within a factor 1 ± r of its cell's mass but for a in all, then
    δ(ε) ≤ (1 + r)·δ_law(ε - 2r) + a·(1 + e^ε); and δ falls with ε, so the best ε' ≤ ε counts (docs/proofs/box.md).
    """
    lowest, least = _valley(parts)
    return min(1.0, _drawn(parts, epsilon) if epsilon <= lowest else least)


def drawn_epsilon(parts: tuple[Part, ...], delta: float) -> float:
    """The smallest ε with `drawn_delta` at most δ; infinite where there is none."""
    high, least = _valley(parts)
    if least > delta:
        return math.inf
    low = 0.0
    if _drawn(parts, low) <= delta:
        return low
    for _ in range(45):  # up to the valley the bound falls
        middle = (low + high) / 2
        low, high = (low, middle) if _drawn(parts, middle) <= delta else (middle, high)
    return high


@lru_cache(maxsize=64)
def _valley(parts: tuple[Part, ...]) -> tuple[float, float]:
    """Where the bound is least, and how small: it is convex in e^ε, so golden sections find it."""
    ratio, low, high = (math.sqrt(5) - 1) / 2, 0.0, _FARTHEST
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    heights = [_drawn(parts, left), _drawn(parts, right)]
    for _ in range(32):
        if heights[0] <= heights[1]:
            high, right = right, left
            left = high - ratio * (high - low)
            heights = [_drawn(parts, left), heights[0]]
        else:
            low, left = left, right
            right = low + ratio * (high - low)
            heights = [heights[1], _drawn(parts, right)]
    return low, _drawn(parts, low)


def _drawn(parts: tuple[Part, ...], epsilon: float) -> float:
    boxes = sum(part.count for part in parts if isinstance(part.pair, BoxPair))
    relative, absolute = boxes * _BOX_RELATIVE, boxes * _BOX_ABSOLUTE
    law = law_delta(parts, epsilon - 4 * relative)
    return (1 + 2 * relative) * law + absolute * (1 + math.exp(epsilon))
