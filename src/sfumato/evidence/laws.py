"""Laws of privacy losses for the verifier: δ(ε) of many acts of different kinds.

In:   parts (evidence/losses.py).
Out:  Law with its δ(ε), an upper bound.
Not here: what one event costs (evidence/losses.py); core's way to the same number (core/loss_distribution.py).
Proof: docs/proofs/composition.md

All Gaussian acts are one exact μ. Every other act is a law of privacy losses: two or three points, the loss of Laplace
noise, or that of box noise; k acts alike are a binomial law or a power, different kinds are added on a fine grid. Then
δ(ε) = p_∞ + Σ p_l H_μ(ε - l) with H_μ the Gaussian profile. The Rényi sum and (Σε, Σδ) stand beside it, for far tails
and for sums that must not depend on a grid; the smallest of the three is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr

from sfumato.core.noise import BoxNoise
from sfumato.errors import UnprovedError
from sfumato.evidence.losses import Part, alike, written
from sfumato.evidence.plain_sums import pure_sum

__all__ = ["Concentrated", "Law", "law_of"]

_GRID, _LAPLACE_STEPS, _LAPLACE_GRID, _MOST_REPEATS = 2**16, 2**15, 2**20, 10**6
#: Into how many steps the loss of one Laplace act is cut at least, however many there are.
_FEWEST_STEPS = 256
#: Cells for the sum of laws of different kinds: splitting a loss between two cells costs the square of their width.
_FINE_GRID = 2**18
#: More acts alike than this are added up where they almost surely lie: no record makes the verifier fill the memory.
_MOST_AT_ONCE = 64
#: Into how many steps μ is cut for the loss of one training run, and for how many runs at most so finely: the error
#: of a cell is a smaller part of the sum of many.
_RUN_STEPS, _FEWEST_RUN_STEPS, _FINE_RUNS = 2000, 128, 2500
#: e^loss and what it is multiplied with leave the floats beyond this loss.
_FAR_LOSS = 600.0
#: What may lie outside of the place where a sum is looked for, on either side.
_OUTSIDE = 1e-17
#: More acts that sometimes say nothing are held to answer always.
_MOST_SILENT = 4096
#: As many as leave the Gaussian profile exact to 2e-13 (tests/evidence/test_verify.py has more digits).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
#: Cells of the box law in half a width; cells lighter than this are too far out for floating point.
_BOX_CELLS, _LIGHTEST = 20_000, 1e-24
#: A smaller shift counts as this one, which never promises more: no record makes the verifier cut endless cells.
_LEAST_SHIFT = 2.0**-17
#: How far the drawn box law may be from the law: each weight relatively, and all of them together absolutely.
_BOX_RELATIVE, _BOX_ABSOLUTE = 1e-9, 2.0**-44


class _Spectrum(NamedTuple):
    """Finite privacy losses, their probabilities given that the loss is finite, and the probability that it is not."""

    losses: np.ndarray
    masses: np.ndarray
    infinite: float


def _trimmed(losses: np.ndarray, masses: np.ndarray, infinite: float) -> _Spectrum:
    """Without the rarest losses: what they weigh, 1e-15 in all, counts as infinite loss; so does rounding noise."""
    kept = (masses > 1e-15 / len(masses)) | (len(masses) <= 64)
    lost = float(np.abs(masses[~kept]).sum()) + max(0.0, 1 - float(np.maximum(masses, 0).sum())) * (not kept.all())
    return _Spectrum(losses[kept], masses[kept], infinite + lost)


def _two_points(part: Part) -> _Spectrum:
    """The worst (ε, δ) pair, many times: a binomial law of losses (Kairouz, Oh & Viswanath 2015, Thm 3.1)."""
    up = np.arange(part.times + 1.0)
    down = part.times - up
    ways = gammaln(part.times + 1.0) - gammaln(up + 1) - gammaln(down + 1)
    masses = np.exp(ways - part.times * math.log1p(math.exp(-part.size)) - down * part.size)
    # ln Γ of many acts has lost digits, all together and one by one: chances add up to one, and then to a little more.
    masses *= (1 + 4 * 2.0**-52 * float(gammaln(part.times + 1.0))) / masses.sum()
    return _trimmed(part.size * (up - down), masses, -math.expm1(part.times * math.log1p(-part.delta)))


def _three_points(part: Part) -> _Spectrum:
    """Two points that answer with the chance `delta`: how many do is a binomial law, and so is how many are right."""
    if part.delta >= 1 or part.times > _MOST_SILENT:
        return _two_points(part._replace(delta=0.0))
    losses, chances = np.zeros(2 * part.times + 1), np.arange(part.times + 1.0)
    ways = gammaln(part.times + 1.0) - gammaln(chances + 1) - gammaln(part.times - chances + 1)
    logs = ways + chances * math.log(part.delta) + (part.times - chances) * math.log1p(-part.delta)
    for answers in np.flatnonzero(logs > logs.max() - 700):
        places = part.times + 2 * np.arange(answers + 1) - answers
        losses[places] += math.exp(logs[answers]) * _answered(int(answers), part.size)
    losses *= (1 + 8 * 2.0**-52 * float(gammaln(part.times + 1.0))) / losses.sum()  # as above
    return _trimmed(part.size * np.arange(-part.times, part.times + 1.0), losses, 0.0)


def _answered(answers: int, epsilon: float) -> np.ndarray:
    """The chances of 0, 1, … of so many answers being the true one, each with odds e^ε."""
    right = np.arange(answers + 1.0)
    ways = gammaln(answers + 1.0) - gammaln(right + 1) - gammaln(answers - right + 1)
    return np.exp(ways - answers * math.log1p(math.exp(-epsilon)) - (answers - right) * epsilon)


def _laplace(part: Part) -> _Spectrum:
    """The loss of Laplace noise on one number, many times, replaced by that of its geometric sibling.

    Geometric noise has the same profile at the grid points and a larger one in between: linear in e^ε, where that of
    Laplace noise is convex. So it is worse, alone and in any composition.
    """
    steps = min(_LAPLACE_STEPS, max(_FEWEST_STEPS, _LAPLACE_GRID // part.times))
    width = 2 * part.size / steps
    grid = width * np.arange(steps + 1) - part.size
    masses = np.exp((grid - part.size) / 2) * math.tanh(width / 4)
    masses[[0, -1]] = np.array([math.exp(-part.size), 1.0]) / (1 + math.exp(-width / 2))
    size = part.times * steps + 1
    if part.times > _MOST_AT_ONCE:
        far = math.sqrt(-2 * part.times * math.log(_OUTSIDE)) * part.size / width * (1 + 1e-9)
        found = _near_its_mean(masses, part.times, far, far)
        return found._replace(losses=width * found.losses - part.times * part.size)
    several = np.fft.irfft(np.fft.rfft(masses, _above(size)) ** part.times, _above(size))[:size]
    return _trimmed(width * np.arange(size) - part.times * part.size, several, 0.0)


def _near_its_mean(masses: np.ndarray, times: int, below: float, above: float) -> _Spectrum:
    """The sum of very many losses alike, in steps of them, from so far below its mean to so far above it.

    Beyond that lie 2e-17: of Laplace noise by Hoeffding's inequality, each loss being within ±ε, of training runs by
    Chernoff's. The transform gives the sum modulo its length. What lies elsewhere adds to what is here, and is charged
    as infinite; so is what the power of the transform may lose.
    """
    total = float(masses.sum())
    mean = times * float(np.dot(np.arange(masses.size), masses)) / total
    lowest = max(0, math.floor(mean - below) - 1)
    size = min(times * (masses.size - 1), math.ceil(mean + above) + 1) - lowest + 1
    length = _above(size)
    folded = np.bincount(np.arange(masses.size) % length, masses / total, length)
    sums = np.fft.irfft(np.fft.rfft(folded) ** times, length)
    here = np.roll(sums, -(lowest % length))[:size]
    lost = 2 * _OUTSIDE + 1e-16 * times + max(0.0, -math.expm1(times * math.log(total)))
    return _trimmed((lowest + np.arange(size)).astype(np.float64), here, lost)


def _reach(masses: np.ndarray, times: int, side: int) -> float:
    """How far on one side of its mean such a sum lies: (k·ln E e^{λ(X-mean)} + ln 1/p)/λ, true for every λ > 0."""
    met = np.flatnonzero(masses > 0)
    chances = masses[met] / masses.sum()
    apart = side * (met - float(np.dot(met, chances)))
    deviation = math.sqrt(float(np.dot(chances, apart**2)))
    rate = math.sqrt(-2 * math.log(_OUTSIDE) / times) / deviation
    grown = float(np.logaddexp.reduce(np.log(chances) + rate * apart))
    return (times * max(grown, 0.0) - math.log(_OUTSIDE)) / rate * (1 + 1e-9)


def _box(part: Part) -> _Spectrum:
    """The loss of box noise between a number and its shifted copy, cell by cell; one cell is added to the shift.

    The likelihood ratio is monotone, so the best event is a half line; moving its end to the next edge costs at most
    one cell of shift. Cells too light to be known count as given away.
    """
    if part.size >= 2:
        return _Spectrum(np.zeros(1), np.ones(1), 1.0)
    size = max(part.size, _LEAST_SHIFT)
    steps = math.ceil(size * _BOX_CELLS)
    width = size / steps
    masses = BoxNoise(1.0, part.delta).masses(np.minimum(-1 + width * np.arange(math.ceil(2 / width) + 1), 1.0))
    masses = np.where(masses > _LIGHTEST, masses / masses.sum(), 0.0)
    here, there = masses, np.concatenate([np.zeros(steps + 1), masses[: -steps - 1]])
    finite = (here > 0) & (there > 0)
    seen = here[finite]
    if not seen.size:
        return _Spectrum(np.zeros(1), np.ones(1), 1.0)
    infinite = min(1.0, float(here[~finite].sum()) + len(here) * _LIGHTEST)
    return _power(_Spectrum(np.log(seen / there[finite]), seen / seen.sum(), infinite), part.times)


def _power(one: _Spectrum, times: int) -> _Spectrum:
    """The law of so many independent losses alike, by doubling."""
    total = None
    while times:
        if times & 1:
            total = one if total is None else _sum_of([total, one])
        times >>= 1
        one = _sum_of([one, one]) if times else one
    assert total is not None
    return total


def _objective(part: Part) -> _Spectrum:
    """shift + max(0, L), L ~ N(μ²/2, μ²), many times; masses are split so that Σp and Σp e^{-loss} are kept."""
    many = part.times > _MOST_AT_ONCE
    steps = max(_FEWEST_RUN_STEPS, _RUN_STEPS * min(1.0, math.sqrt(_FINE_RUNS / part.times)))
    mu, width = part.size, part.size / steps
    edges = width * np.arange(math.ceil((mu * mu / 2 + 13 * mu) / width) + 1)
    z = (edges - mu * mu / 2) / mu
    mass, tilted = -np.diff(ndtr(-z)), -np.diff(ndtr(-z - mu))  # P(L in cell) and E(e^-L; L in cell)
    right, near = mass.copy(), edges[:-1] < _FAR_LOSS  # beyond, a loss counts as the upper end of its cell
    right[near] = (mass[near] - tilted[near] * np.exp(edges[:-1][near])) / -math.expm1(-width)
    right = np.clip(right, 0.0, mass)
    masses = np.append(mass - right, 0.0) + np.append(0.0, right)
    masses[0] += ndtr(-mu / 2)  # L < 0 costs nothing
    if many:
        found = _near_its_mean(masses, part.times, _reach(masses, part.times, -1), _reach(masses, part.times, 1))
        return found._replace(losses=width * found.losses + part.times * part.delta)
    size = part.times * (masses.size - 1) + 1
    several = np.fft.irfft(np.fft.rfft(masses, _above(size)) ** part.times, _above(size))[:size]
    infinite = part.times * float(ndtr(-z[-1]))
    return _trimmed(width * np.arange(size) + part.times * part.delta, several, infinite)


def _above(size: int) -> int:
    """A length of transforms that holds so many cells and is quick: a power of two could be nearly twice as long."""
    from scipy import fft  # needed for sums of many parts only

    return fft.next_fast_len(size, real=True)  # pyright: ignore[reportReturnType]  (its stub knows None)


def _sum_of(spectra: list[_Spectrum], cells: int = _GRID) -> _Spectrum:
    """The law of the sum of independent losses, on so many cells where there are several."""
    if len(spectra) == 1 and len(spectra[0].losses) <= _GRID:
        return spectra[0]
    if any(spectrum.infinite >= 1 for spectrum in spectra):  # nothing is left to be added up
        return _Spectrum(np.zeros(1), np.ones(1), 1.0)
    cells = cells if len(spectra) > 1 else _GRID
    width = math.fsum(float(np.ptp(spectrum.losses)) for spectrum in spectra) / cells
    size = cells + 2 * len(spectra)
    length = _above(size)
    transform = np.ones(length // 2 + 1, dtype=complex)
    for spectrum in spectra:
        transform *= np.fft.rfft(_on_grid(spectrum, width), length)
    lowest = math.fsum(float(spectrum.losses.min()) for spectrum in spectra)
    infinite = -math.expm1(math.fsum(math.log1p(-spectrum.infinite) for spectrum in spectra))
    return _trimmed(lowest + width * np.arange(size), np.fft.irfft(transform, length)[:size], infinite)


def _on_grid(spectrum: _Spectrum, width: float) -> np.ndarray:
    """Masses on multiples of `width` above the lowest loss, each loss split between its two neighbours.

    The split keeps Σp and Σp e^{-loss}. As (1 - e^{ε-loss})₊ is convex in e^{-loss} it can only raise δ, by a term
    quadratic in `width`.
    """
    position = (spectrum.losses - spectrum.losses.min()) / width
    below = np.floor(position).astype(np.int64)
    upper = np.clip(np.expm1(-width * (position - below)) / math.expm1(-width), 0.0, 1.0) * spectrum.masses
    size = int(below.max()) + 2
    return np.bincount(below, spectrum.masses - upper, size) + np.bincount(below + 1, upper, size)


def _gaussian_profile(mu: float, threshold: np.ndarray) -> np.ndarray:
    """H_μ(x) = E(1 - e^{x-L})₊ for the Gaussian loss L ~ N(μ²/2, μ²) and any real x."""
    size = np.abs(threshold)
    z = size / mu - mu / 2
    if mu >= 0.1:
        positive = ndtr(-z) - np.exp(size + log_ndtr(-z - mu))
    else:
        # The two terms cancel for small μ; μ ∫₀^∞ e^{-μt} Φ(-z-t) dt has only positive terms.
        # Far below ε it is nothing beside 1 - e^{-x}, and the first term alone is no less than it.
        positive = ndtr(-z)
        near = (z < 40) & ((z < 9) | (threshold >= 0))
        end = 40 / np.maximum(z[near], 4.2)
        t = np.multiply.outer(end / 2, _NODES + 1)
        positive[near] = mu * end / 2 * ((np.exp(-mu * t) * ndtr(-z[near][:, None] - t)) @ _WEIGHTS)
    positive = np.maximum(positive, 0.0)
    # Mirror images: H(-x) = 1 - e^{-x} + e^{-x} H(x).
    return np.where(threshold >= 0, positive, -np.expm1(-size) + np.exp(-size) * positive)


_ABOVE = np.geomspace(1e-5, 1e8, 2001)


def _best_order(log_delta: Callable[[np.ndarray], np.ndarray]) -> float:
    """exp of the smallest bound over Rényi orders 1 + x: every order gives a true bound, so zooming in is allowed."""
    above, smallest = _ABOVE, math.inf
    for _ in range(3):
        logs = log_delta(above)
        best = int(np.argmin(logs))
        smallest = float(logs[best])
        above = np.geomspace(above[max(0, best - 1)], above[min(len(above) - 1, best + 1)], 2001)
    return math.exp(min(0.0, smallest)) if not math.isnan(smallest) else 1.0


def _conversion(above: np.ndarray, renyi: np.ndarray, epsilon: float) -> np.ndarray:
    """ln δ = (α-1)(ε(α) - ε) + α ln(1-1/α) - ln(α-1) for α = 1 + above (Canonne et al. 2020, Prop. 12)."""
    order = 1 + above
    return above * (renyi - epsilon) + order * (np.log(above) - np.log1p(above)) - np.log(above)


def _renyi(part: Part, above: np.ndarray) -> np.ndarray:
    """Rényi ε of all acts of the part at the orders 1 + above; infinite where some act may fail."""
    order, size = 1 + above, part.size
    if part.kind == "gaussian":
        single = order * size**2 / 2
    elif part.kind == "objective":
        some = order * above * size**2 / 2 + log_ndtr((order - 0.5) * size)
        single = part.delta + np.logaddexp(log_ndtr(-size / 2), some) / above
    elif part.kind == "box" or part.fails:
        return np.full_like(above, math.inf)
    else:  # two points with odds e^ε, or Laplace noise (Mironov 2017, Prop. 6); never above ε or αε²/2
        if part.kind == "laplace":
            sides = np.log(order / (2 * order - 1)) + above * size, np.log(above / (2 * order - 1)) - order * size
        else:
            sides = above * size - math.log1p(math.exp(-size)), -order * size - math.log1p(math.exp(-size))
        total = np.logaddexp(*sides)
        if part.kind == "three-point" and part.delta < 1:  # where nothing is said, the laws agree
            total = np.logaddexp(math.log1p(-part.delta), math.log(part.delta) + total)
        rounding = 1e-15 * (2 + order * size + np.abs(total))
        single = np.minimum(np.minimum(size, order * size**2 / 2), (np.maximum(total, 0.0) + rounding) / above)
    return part.times * single


class Law(NamedTuple):
    """Everything together: one μ and the sum of all other losses; beside them the parts as they are."""

    mu: float
    others: _Spectrum
    parts: tuple[Part, ...]

    @property
    def largest(self) -> float:
        """The largest loss there is."""
        plain = pure_sum(self.parts)
        return math.inf if plain is None or plain[1] else float(plain[0])

    def delta(self, epsilon: float) -> float:
        """The least δ any road finds for this ε."""
        bounds = [1.0, self._renyi_delta(epsilon)]
        if self._is_one_objective:
            bounds.append(self._one_objective(epsilon))
        elif (run := self._only_run()) is not None:
            bounds.append(self._masked(*run, epsilon))
        plain = pure_sum(self.parts)
        if plain is not None and written(epsilon) >= plain[0]:
            bounds.append(float(plain[1]))
        boxes = sum(part.times for part in self.parts if part.kind == "box")
        bounds.append(self._drawn(epsilon, boxes) if boxes else self._convolved(epsilon))
        return min(bounds)

    def _convolved(self, epsilon: float) -> float:
        threshold = epsilon - self.others.losses
        excess = _gaussian_profile(self.mu, threshold) if self.mu else -np.expm1(np.minimum(threshold, 0.0))
        finite = float(np.dot(excess, self.others.masses)) * (1 - self.others.infinite)
        return min(1.0, finite + self.others.infinite)

    def _drawn(self, epsilon: float, boxes: int) -> float:
        """Box noise as drawn: (1 + r)·δ(ε - 2r) + a·(1 + e^ε), at the best ε' ≤ ε, for weights off by r and by a."""
        relative, absolute = boxes * _BOX_RELATIVE, boxes * _BOX_ABSOLUTE

        def bound(at: float) -> float:
            return (1 + 2 * relative) * self._convolved(at - 4 * relative) + absolute * (1 + math.exp(at))

        low, high = min(0.0, epsilon), min(epsilon, 35.0)  # beyond, the drawing error alone exceeds 1
        here = bound(high)
        if high < 1e-3 or bound(high - 1e-3) >= here:
            return min(1.0, here)
        ratio = (math.sqrt(5) - 1) / 2  # golden sections: convex in e^ε, so with one valley
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        first, second = bound(left), bound(right)
        for _ in range(28):
            if first <= second:
                high, right, second = right, left, first
                left = high - ratio * (high - low)
                first = bound(left)
            else:
                low, left, first = left, right, second
                right = low + ratio * (high - low)
                second = bound(right)
        return min(1.0, here, first, second)

    def _renyi_delta(self, epsilon: float) -> float:
        def logs(above: np.ndarray) -> np.ndarray:
            return _conversion(above, np.sum([_renyi(part, above) for part in self.parts], axis=0), epsilon)

        known = self.parts and not any(part.kind == "box" or part.fails for part in self.parts)
        return _best_order(logs) if known else 1.0

    @property
    def _is_one_objective(self) -> bool:
        return len(self.parts) == 1 and self.parts[0].kind == "objective" and self.parts[0].times == 1

    def _one_objective(self, epsilon: float) -> float:
        """A single run has a closed form: the Gaussian profile, raised by the shift."""
        mu, rest = self.parts[0].size, epsilon - self.parts[0].delta
        if rest >= 0:
            return float(_gaussian_profile(mu, np.array([rest]))[0])
        return 1 - 2 * math.exp(rest) * float(ndtr(-mu / 2))

    def _only_run(self) -> tuple[float, float] | None:
        """μ and shift of the one training run among Gaussian and ε-DP acts; what those lose joins the shift."""
        runs = [part for part in self.parts if part.kind == "objective"]
        others = [part for part in self.parts if part.kind not in ("objective", "gaussian")]
        plain = pure_sum(others)
        if len(runs) != 1 or runs[0].times != 1 or plain is None or plain[1]:
            return None
        return runs[0].size, math.nextafter(runs[0].delta + float(plain[0]), math.inf)

    def _masked(self, mu: float, shift: float, epsilon: float) -> float:
        """With a Gaussian loss G beside the run: as one Gaussian of both, and P(G > ε - shift). No grid."""
        rest = epsilon - shift
        if rest < 0:
            return 1.0
        beyond = float(ndtr(self.mu / 2 - rest / self.mu)) if self.mu else 0.0
        return beyond + float(_gaussian_profile(math.hypot(mu, self.mu), np.array([rest]))[0])


_SPECTRA: dict[str, Callable[[Part], _Spectrum]] = {
    "laplace": _laplace,
    "two-point": _two_points,
    "three-point": _three_points,
    "box": _box,
    "objective": _objective,
}


@lru_cache(maxsize=32)
def law_of(parts: tuple[Part, ...]) -> Law:
    """The law of the total loss of these acts."""
    others = [part for part in alike(parts) if part.kind != "gaussian"]
    if any(part.times > _MOST_REPEATS for part in others):
        raise UnprovedError(f"More than {_MOST_REPEATS} repeats of one act are not checked")
    mu = math.fsum(part.size for part in parts if part.kind == "gaussian")
    spectra = [_SPECTRA[part.kind](part) for part in others]
    return Law(mu, _sum_of(spectra or [_Spectrum(np.zeros(1), np.ones(1), 0.0)], _FINE_GRID), parts)


class Concentrated(NamedTuple):
    """ρ-zCDP as a profile: ε(α) = αρ at the best order α."""

    rho: float
    largest: float = math.inf

    def delta(self, epsilon: float) -> float:
        return _best_order(lambda above: _conversion(above, (1 + above) * self.rho, epsilon))
