"""Privacy losses for the verifier: what each kind of event record costs, and how costs add up.

In:   event and guarantee records as plain dictionaries.
Out:  parts, and the law of their total privacy loss with its δ(ε).
Not here: reading a certificate (evidence/verify.py); composing guarantees (core/compose.py), which is not called.
Proof: docs/proofs/composition.md

All Gaussian acts become one exact μ. Every other act is a law of privacy losses: two points, the loss of Laplace noise,
or that of box noise; k acts alike are a binomial law or a power, different kinds are added on a fine grid. Then
δ(ε) = p_∞ + Σ p_l H_μ(ε - l) with H_μ the Gaussian profile.

To teach the verifier a new kind of event, add its row to `RULES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, log_ndtr, ndtr

from sfumato.core.noise import BoxNoise
from sfumato.errors import UnprovedError

__all__ = [
    "Concentrated",
    "Law",
    "Part",
    "event_parts",
    "guarantee_parts",
    "law_of",
    "required_proofs",
    "rule_for",
    "same",
    "unrepeated",
]

_GRID, _LAPLACE_GRID, _MOST_REPEATS = 2**16, 2**20, 10**6
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)

Record = Mapping[str, Any]


class Part(NamedTuple):
    """`times` acts alike: "gaussian" of μ = value, or "laplace" or "two-point" of ε = value, failing with `delta`.

    For "box", value is the shift in half widths and delta the strength of the oscillator.
    """

    kind: str
    value: float
    delta: float = 0.0
    times: int = 1


class Rule(NamedTuple):
    proof: Callable[[Record], str]
    loss: Callable[[Record], Part]


def _moved(event: Record, cells: float) -> float:
    """Distance of neighbours over the noise scale, when rounding to the grid may add `cells` grid steps."""
    return (event["sensitivity"] + event["grid"] * cells) / event["scale"]


def _objective_part(event: Record) -> Part:
    """Moved noise and the change of variables: losses add to ε, or raise a Gaussian loss whose negative part is cut."""
    moved = (2 if event["adjacency"]["relation"] == "replace-one" else 1) * event["slope"] / event["scale"]
    shift = math.log1p(event["curvature"] / event["strength"])
    return Part("objective", moved, shift) if event["noise"] == "gaussian" else Part("two-point", moved + shift)


def _linear_part(event: Record) -> Part:
    """Strategy noise: the worst change of one person in exact integers, then what rounding adds."""
    worst, reach, rows = Fraction(0), 0.0, 1
    for count, widths, columns in event["people"]:
        lengths, length_unit = _whole(widths)
        entries, entry_unit = _whole([entry for column in columns for entry in column])
        size, unit = len(columns[0]), length_unit * entry_unit
        moves = [[length * entry for entry in entries[k * size : (k + 1) * size]] for k, length in enumerate(lengths)]
        worst = max(worst, Fraction(_farthest(moves), unit * unit))
        reach += count * math.fsum(map(mul, widths, (math.hypot(*column) for column in columns)))
        rows = max(rows, size)
    arithmetic = 2 * (event["coordinates"] + 2) * 1.01 * 2.0**-53 * reach
    return Part("gaussian", (_root_above(worst) + arithmetic + event["grid"] * math.sqrt(rows)) / event["scale"])


def _whole(numbers: list[float]) -> tuple[list[int], int]:
    """Floats are whole numbers over a power of two: these, and the common power."""
    ratios = [number.as_integer_ratio() for number in numbers]
    unit = max(below for _, below in ratios)
    return [above * (unit // below) for above, below in ratios], unit


def _farthest(moves: list[list[int]]) -> int:
    """Largest ‖Σ ±move‖², over all signs up to 12 moves (one flip at a time), else Σ|move·move'|."""
    products = [[sum(map(mul, one, other)) for other in moves] for one in moves]
    if len(moves) > 12:
        return sum(abs(product) for row in products for product in row)
    sums = [sum(row) for row in products]  # (move_k, Σ ±move) for the current signs
    signs, square = [1] * len(moves), sum(sums)
    largest = square
    for step in range(1, 1 << (len(moves) - 1)):
        k = (step & -step).bit_length() - 1
        square += 4 * (products[k][k] - signs[k] * sums[k])
        sums = [total - 2 * signs[k] * product for total, product in zip(sums, products[k], strict=True)]
        signs[k] = -signs[k]
        largest = max(largest, square)
    return largest


def _root_above(square: Fraction) -> float:
    """The square root, rounded up in the last digits of a float."""
    shift = max(0, 128 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    root = math.isqrt((square.numerator << shift) // square.denominator) + 1
    return math.nextafter(float(Fraction(root, 1 << shift // 2)), math.inf)


def _channel_part(event: Record) -> Part:
    """From the weights alone, in whole numbers: the worst ratio of a column, or the worst excess of two rows."""
    rows, at = event["weights"], event["at"]
    if len({sum(row) for row in rows}) != 1 or min(map(min, rows)) < 0:
        raise ValueError("the weights are no probabilities")
    if at is None:
        worst = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
        return Part("two-point", max(math.log1p(float(worst - 1)), 1e-300))
    # e^ε rounded down to a multiple of 2^-200, so that δ is rounded up.
    with localcontext() as context:
        context.prec = 90 + math.ceil(at)
        factor = math.floor(Fraction(Decimal(at).exp()) * 2**200)
    excess = max(sum(max(0, (a << 200) - factor * b) for a, b in zip(x, z, strict=True)) for x in rows for z in rows)
    delta = Fraction(excess, sum(rows[0]) << 200)
    nearest = float(delta)
    return Part("two-point", at, math.nextafter(nearest, 1.0) if Fraction(nearest) < delta else nearest)


RULES: dict[str, Rule] = {
    "ChannelEvent": Rule(lambda _: "tailored_noise", _channel_part),
    "GaussianEvent": Rule(
        lambda _: "gaussian", lambda event: Part("gaussian", _moved(event, event["dimension"] ** 0.5))
    ),
    "LinearGaussianEvent": Rule(lambda _: "linear_placement", _linear_part),
    "LaplaceEvent": Rule(
        lambda _: "laplace",
        # The loss of several Laplace numbers depends on where the change falls; two points bound every case.
        lambda event: Part("laplace" if event["dimension"] == 1 else "two-point", _moved(event, event["dimension"])),
    ),
    "NormGammaEvent": Rule(
        lambda _: "norm_gamma", lambda event: Part("two-point", _moved(event, event["dimension"] ** 0.5))
    ),
    "SelectionEvent": Rule(
        lambda event: event["rule"].replace("-", "_"), lambda event: Part("two-point", 2 * _moved(event, 1.0))
    ),
    "BoxEvent": Rule(
        lambda _: "box",
        lambda event: Part(
            "box",
            (event["sensitivity"] + event["grid"]) / event["half_width"],
            event["stiffness"] * event["half_width"] ** 4,
        ),
    ),
    "ObjectivePerturbationEvent": Rule(lambda _: "objective_perturbation", _objective_part),
    "SharedGaussianEvent": Rule(
        lambda _: "distributed_noise",
        # The shares are rounded one by one: what that can tell is paid for by a relative 1e-12.
        lambda event: Part("gaussian", _moved(event, event["dimension"] ** 0.5) * (1 + 1e-12)),
    ),
    "SharedLaplaceEvent": Rule(
        lambda _: "distributed_noise", lambda event: Part("two-point", _moved(event, event["dimension"]))
    ),
    "RandomizedResponseEvent": Rule(
        lambda _: "randomized_response",
        lambda event: Part("two-point", math.log1p((event["keep"] - event["move"]) / event["move"])),
    ),
}


def unrepeated(event: Record) -> tuple[Record, int]:
    return (event["event"], event["count"]) if event["kind"] == "Repeated" else (event, 1)


def rule_for(event: Record) -> Rule:
    if event["kind"] not in RULES:
        raise UnprovedError(f"An event of kind {event['kind']!r} cannot be verified by this version of sfumato")
    return RULES[event["kind"]]


def required_proofs(events: Iterable[Record]) -> frozenset[str]:
    """The proof ids that records of these events rest on.

    >>> sorted(required_proofs([{"kind": "GaussianEvent"}, {"kind": "NormGammaEvent"}]))
    ['gaussian', 'norm_gamma']
    """
    single = [unrepeated(event)[0] for event in events]
    return frozenset(rule_for(event).proof(event) for event in single)


def event_parts(events: Iterable[Record]) -> tuple[Part, ...]:
    single = [unrepeated(event) for event in events]
    return _merged(rule_for(event).loss(event)._replace(times=count) for event, count in single)


def _merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """One Gaussian part for all, one part for each other law; the last digits do not make laws different."""
    merged: list[Part] = []
    scales = []
    for part in sorted(parts):
        if part.kind == "gaussian" and not part.delta:
            scales.append(part.value * math.sqrt(part.times))
        elif merged and same(merged[-1], part._replace(times=merged[-1].times)):
            merged[-1] = part._replace(times=merged[-1].times + part.times)
        else:
            merged.append(part)
    return tuple([Part("gaussian", math.hypot(*scales))] * bool(scales) + merged)


def same(own: Part, stated: Part) -> bool:
    """Equal but for rounding, which must not favour the issuer."""
    close = own.value * (1 - 1e-12) <= stated.value <= own.value * (1 + 1e-9)
    if own.kind == stated.kind == "objective":  # its second number is computed too
        close = close and own.delta * (1 - 1e-12) <= stated.delta <= own.delta * (1 + 1e-9)
        own, stated = own._replace(delta=0.0), stated._replace(delta=0.0)
    return close and own._replace(value=0.0) == stated._replace(value=0.0)


def guarantee_parts(record: Record) -> tuple[Part, ...]:
    match record["kind"]:
        case "GaussianDP":
            return (Part("gaussian", record["mu"]),)
        case "PureDP":
            return (Part("two-point", record["eps"]),)
        case "ApproxDP":
            return (Part("two-point", record["eps"], record["delta"]),)
        case "ObjectiveDP":
            return (Part("objective", record["mu"], record["shift"], record["count"]),)
        case "ComposedDP":
            return _merged(Part(*part) for part in record["parts"])
    raise UnprovedError(f"A guarantee of kind {record['kind']!r} cannot be verified by this version of sfumato")


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
    masses = np.exp(ways - part.times * math.log1p(math.exp(-part.value)) - down * part.value)
    return _trimmed(part.value * (up - down), masses, -math.expm1(part.times * math.log1p(-part.delta)))


def _laplace(part: Part) -> _Spectrum:
    """The loss of Laplace noise on one number, many times, replaced by that of its geometric sibling.

    Geometric noise has the same profile at the grid points and a larger one in between: linear in e^ε, where that of
    Laplace noise is convex. So it is worse, alone and in any composition.
    """
    steps = min(2**13, max(1, _LAPLACE_GRID // part.times))
    width = 2 * part.value / steps
    grid = width * np.arange(steps + 1) - part.value
    masses = np.exp((grid - part.value) / 2) * math.tanh(width / 4)
    masses[[0, -1]] = np.array([math.exp(-part.value), 1.0]) / (1 + math.exp(-width / 2))
    size = part.times * steps + 1
    several = np.fft.irfft(np.fft.rfft(masses, _above(size)) ** part.times, _above(size))[:size]
    return _trimmed(width * np.arange(size) - part.times * part.value, several, 0.0)


def _box(part: Part) -> _Spectrum:
    """The loss of box noise between a number and its shifted copy, cell by cell; one cell is added to the shift."""
    if part.value >= 2:
        return _Spectrum(np.zeros(1), np.ones(1), 1.0)
    steps = max(1, math.ceil(part.value * 10_000))
    width = part.value / steps
    edges = np.minimum(-1 + width * np.arange(math.ceil(2 / width) + 1), 1.0)
    masses = np.diff(BoxNoise(1.0, part.delta).cdf(edges))
    here, there = masses, np.concatenate([np.zeros(steps + 1), masses[: -steps - 1]])
    finite = (here > 0) & (there > 0)
    seen = here[finite]
    one = _Spectrum(np.log(seen / there[finite]), seen / seen.sum(), min(1.0, float(here[~finite].sum()) + 1e-8))
    total = one
    for _ in range(part.times - 1):
        total = _sum_of([total, one])
    return total


def _objective(part: Part) -> _Spectrum:
    """shift + max(0, L), L ~ N(μ²/2, μ²), many times; each cell's mass counts at its upper end."""
    mu, width = part.value, part.value / 2000
    edges = width * np.arange(math.ceil((mu * mu / 2 + 13 * mu) / width) + 1)
    below = ndtr((edges - mu * mu / 2) / mu)
    masses = np.append(below[0], np.diff(below))
    size = part.times * (masses.size - 1) + 1
    several = np.fft.irfft(np.fft.rfft(masses, _above(size)) ** part.times, _above(size))[:size]
    infinite = part.times * float(ndtr(-(edges[-1] - mu * mu / 2) / mu))
    return _trimmed(width * np.arange(size) + part.times * part.delta, several, infinite)


def _above(size: int) -> int:
    return 1 << size.bit_length()


def _sum_of(spectra: list[_Spectrum]) -> _Spectrum:
    """The law of the sum of independent losses."""
    if len(spectra) == 1 and len(spectra[0].losses) <= _GRID:
        return spectra[0]
    width = math.fsum(float(np.ptp(spectrum.losses)) for spectrum in spectra) / _GRID
    size = _GRID + 2 * len(spectra)
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
        positive = np.zeros_like(z)
        near = z < 40
        end = 40 / np.maximum(z[near], 4.2)
        t = np.multiply.outer(end / 2, _NODES + 1)
        positive[near] = mu * end / 2 * ((np.exp(-mu * t) * ndtr(-z[near][:, None] - t)) @ _WEIGHTS)
    positive = np.maximum(positive, 0.0)
    # Mirror images: H(-x) = 1 - e^{-x} + e^{-x} H(x).
    return np.where(threshold >= 0, positive, -np.expm1(-size) + np.exp(-size) * positive)


class Law(NamedTuple):
    """Everything together: one μ, the sum of all other losses, and the largest loss there is."""

    mu: float
    others: _Spectrum
    largest: float

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.largest:  # the grid reaches a little further
            return self.others.infinite
        threshold = epsilon - self.others.losses
        excess = _gaussian_profile(self.mu, threshold) if self.mu else -np.expm1(np.minimum(threshold, 0.0))
        finite = float(np.dot(excess, self.others.masses)) * (1 - self.others.infinite)
        return min(1.0, finite + self.others.infinite)


_SPECTRA: dict[str, Callable[[Part], _Spectrum]] = {
    "laplace": _laplace,
    "two-point": _two_points,
    "box": _box,
    "objective": _objective,
}


@lru_cache(maxsize=32)
def law_of(parts: tuple[Part, ...]) -> Law:
    others = [part for part in parts if part.kind != "gaussian"]
    if any(part.times > _MOST_REPEATS for part in others):
        raise UnprovedError(f"More than {_MOST_REPEATS} repeats of one act are not checked")
    mu = math.fsum(part.value for part in parts if part.kind == "gaussian")
    spectra = [_SPECTRA[part.kind](part) for part in others]
    pure = not mu and not any(part.delta or part.kind in ("box", "objective") for part in others)
    nothing = _Spectrum(np.zeros(1), np.ones(1), 0.0)
    return Law(
        mu, _sum_of(spectra or [nothing]), math.fsum(part.value * part.times for part in others) if pure else math.inf
    )


class Concentrated(NamedTuple):
    """ρ-zCDP: ln δ = (α-1)(αρ - ε) + α ln(1-1/α) - ln(α-1) at the best order α (Canonne et al. 2020, Prop. 12)."""

    rho: float
    largest: float = math.inf

    def delta(self, epsilon: float) -> float:
        above = np.geomspace(1e-5, 1e8, 40_001)
        order = 1 + above
        logs = above * (order * self.rho - epsilon) + order * (np.log(above) - np.log1p(above)) - np.log(above)
        return math.exp(min(0.0, float(logs.min())))
