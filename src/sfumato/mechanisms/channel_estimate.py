"""What published values say about the people behind them, knowing the channel they went through.

In:   a channel, the values it published, a use (and, for regression, a public target for each record).
Out:  Estimate: mean, moment, histogram or regression coefficients, with confidence intervals and the naive number.
Not here: drawing anything private. All of this is post-processing: it costs no privacy and needs no permission.

Means by decoding: weights v_y with Σ_y P[y|x] v_y ≈ u(x). Of a channel with bias="unbiased" this is exact for its uses,
for every record and whatever the others are; the answer's method says "unbiased" then. Other channels lose what their
outputs do not tell: the method says "least bias", and the interval includes the largest remaining difference, but not
what values within one bin differ by beyond an even spread. Histograms by maximum likelihood (EM). Regression by
calibration: E[y|z] = θ·E[φ(x)|z], so the target is regressed on the conditional means of the features, which knows how
much each output is worth; the naive regression on use(z) is pulled towards zero. Within a bin, values count as spread
evenly.
Reference: Carroll, Ruppert, Stefanski & Crainiceanu 2006, Ch. 4 (regression calibration).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from sfumato.core.checks import number
from sfumato.errors import DataError, InputError
from sfumato.mechanisms.mechanism import finite_array
from sfumato.mechanisms.tailored.uses import Use, as_use, as_uses

if TYPE_CHECKING:
    from sfumato.mechanisms.tailored.noise import TailoredNoise

__all__ = ["Calibration", "Estimate", "bin_means", "bin_points", "calibrate", "estimate", "likeliest_histogram"]

Method = Literal["unbiased", "likelihood"]
_BOOTSTRAPS = 60
_WITHIN = (np.arange(33) + 0.5) / 33
_EM_ROUNDS = 1500
#: The other priors differ from the public one by up to e^±2.
_TILT = 2.0


@dataclass(frozen=True)
class Estimate:
    """A number or several, an interval for each, and what one would get by taking the published values at face value.

    `method` is "unbiased" only where the value is: see above. `bias` is what the channel cannot tell and is part of the
    interval: for means the worst over all possible records,
    for coefficients how far they move when the histogram behind them leans on other priors.
    """

    value: Any
    low: Any
    high: Any
    naive: Any
    method: str
    names: tuple[str, ...]
    count: int
    bias: Any = 0.0


def estimate(
    channel: TailoredNoise,
    published: Any,
    use: Any = "identity",
    *,
    target: Any = None,
    method: Method = "unbiased",
    confidence: float = 0.95,
) -> Estimate:
    """The mean of a use, `use="histogram"` for the shares of the bins, or with `target` regression coefficients.

    >>> from sfumato.core.domain import Interval
    >>> from sfumato.mechanisms import TailoredNoise
    >>> channel = TailoredNoise(Interval(0, 1), 2.0, bias="unbiased", random_state=1)
    >>> found = estimate(channel, channel(np.linspace(0, 1, 20_000) ** 2), "identity")
    >>> bool(found.low <= 1 / 3 <= found.high)
    True
    """
    if method not in ("unbiased", "likelihood"):
        raise InputError("method must be 'unbiased' or 'likelihood'.")
    if not 0.5 <= number(confidence, "confidence") < 1:
        raise InputError("confidence must lie in [0.5, 1), for instance 0.95.")
    columns = channel.columns_of(published).ravel()
    counts = np.bincount(columns, minlength=len(channel.outputs)).astype(float)
    if target is not None:
        return _regression(channel, columns, counts, as_uses(use), target, confidence)
    if isinstance(use, str) and use == "histogram":
        return _histogram(channel, counts, confidence)
    return _mean(channel, counts, as_use(use), method, confidence)


def bin_means(channel: TailoredNoise, uses: Sequence[Use]) -> np.ndarray:
    """E[use(x)] in each bin, one column per use, values spread evenly within the bin."""
    return bin_points(channel, uses).mean(axis=1)


def bin_points(channel: TailoredNoise, uses: Sequence[Use]) -> np.ndarray:
    """Values of the uses at points spread evenly within each bin: bins, points, uses.

    Of a channel with knots: at points as likely as the knot is drawn for them.
    """
    points = channel.edges[:-1, None] + np.diff(channel.edges)[:, None] * _WITHIN
    grid = channel.table.grid
    if grid.points is not None and grid.positions is not None:
        hat = np.where(_WITHIN < 0.5, np.sqrt(2 * _WITHIN) - 1, 1 - np.sqrt(2 - 2 * _WITHIN))
        places = np.clip(np.arange(len(grid.inputs))[:, None] + hat, 0, len(grid.inputs) - 1)
        points = np.interp(places, grid.positions, grid.points)
    low, high, guard = channel.domain.low, channel.domain.high, channel.guard or 0.0
    return np.stack([use(use.moved(points, low, high, guard)) for use in uses], axis=2)


# Histograms.


def likeliest_histogram(
    probabilities: np.ndarray, counts: np.ndarray, prior: np.ndarray, *, careful: bool = False
) -> np.ndarray:
    """Shares of the bins that make the counts likeliest, leaning on the public prior by one record per bin.

    The lean decides where the counts do not: a channel at small ε tells bins apart badly. `counts` may be a stack of
    samples, one to a row.

    With `careful` the climb from the prior towards the likeliest shares ends as soon as the counts are explained (χ²
    not above its mean): what the outputs do not contradict stays as the prior has it, instead of following their noise.

    >>> likeliest_histogram(np.eye(2), np.array([30.0, 10.0]), np.array([0.5, 0.5])).round(2)
    array([0.74, 0.26])
    """
    lean = prior * len(prior)
    shares = np.broadcast_to(prior, (*counts.shape[:-1], len(prior)))
    for _ in range(_EM_ROUNDS):
        expected = shares @ probabilities
        if careful and _explained(counts, expected):
            break
        fresh = shares * ((counts / np.maximum(expected, 1e-300)) @ probabilities.T) + lean
        fresh /= fresh.sum(axis=-1, keepdims=True)
        moved = float(np.abs(fresh - shares).max())
        shares = fresh
        if moved < 1e-8:
            break
    return shares


def _explained(counts: np.ndarray, expected: np.ndarray) -> bool:
    total = counts.sum(axis=-1, keepdims=True)
    wanted = np.maximum(total * expected, 1e-300)
    misfit = ((counts - wanted) ** 2 / wanted).sum(axis=-1)
    return bool(np.all(misfit <= counts.shape[-1] - 1))


def _histogram(channel: TailoredNoise, counts: np.ndarray, confidence: float) -> Estimate:
    shares = likeliest_histogram(channel.probabilities, counts, channel.table.prior)
    fitted = shares @ channel.probabilities
    each = 1 - (1 - confidence) / len(shares)  # all intervals hold together
    parts = [_decoder(channel.probabilities, unit, fitted, counts.sum()) for unit in np.eye(len(shares))]
    errors = np.array([math.sqrt(part.variance / counts.sum()) for part in parts])
    biases = np.array([part.bias for part in parts])
    reach = float(-ndtri((1 - each) / 2)) * errors + biases
    naive = np.bincount(channel.table.grid.rows_of(channel.outputs), weights=counts, minlength=len(shares))
    return Estimate(
        shares,
        np.clip(shares - reach, 0, 1),
        np.clip(shares + reach, 0, 1),
        naive / counts.sum(),
        "likelihood",
        tuple(f"[{low:g}, {high:g})" for low, high in zip(channel.edges[:-1], channel.edges[1:], strict=True)),
        int(counts.sum()),
        biases,
    )


# Means.


@dataclass(frozen=True)
class _Decoder:
    values: np.ndarray
    bias: float
    variance: float


def _decoder(probabilities: np.ndarray, wanted: np.ndarray, shares: np.ndarray, count: float) -> _Decoder:
    """v with P v near u: the exact one of least variance where there is one, else the best of truncated ones.

    Directions that the channel hardly shows are left out while what that leaves unexplained at worst, plus the
    standard error, gets smaller.
    """
    root = np.sqrt(np.maximum(shares, 1e-12))
    left, sizes, right = np.linalg.svd(probabilities / root, full_matrices=False)
    best: _Decoder | None = None
    score = math.inf
    parts = (left.T @ wanted) / np.maximum(sizes, 1e-300)
    for rank in range(1, int((sizes > 1e-9 * sizes[0]).sum()) + 1):
        values = (right[:rank].T @ parts[:rank]) / root
        explained = probabilities @ values
        middle = (np.max(wanted - explained) + np.min(wanted - explained)) / 2
        values, bias = values + middle, float(np.ptp(wanted - explained)) / 2
        variance = float(shares @ values**2 - (shares @ values) ** 2)
        found = bias + 2 * math.sqrt(max(variance, 0.0) / count)
        if found < score:
            best, score = _Decoder(values, bias, max(variance, 0.0)), found
    assert best is not None
    return best


def _mean(channel: TailoredNoise, counts: np.ndarray, use: Use, method: Method, confidence: float) -> Estimate:
    total = counts.sum()
    wanted, missed = _wanted(channel, use)
    if not np.isfinite(wanted).all():
        raise InputError(f"The use {use.name!r} has no mean in one of the bins: give the channel a guard distance.")
    # Decoding weights fitted to the counts themselves would follow their noise, and then no longer be unbiased: they
    # are fitted to the smoothest histogram that explains the counts.
    histogram = likeliest_histogram(channel.probabilities, counts, channel.table.prior, careful=method == "unbiased")
    shares, value = histogram @ channel.probabilities, float(histogram @ wanted)
    decoder = _decoder(channel.probabilities, wanted, shares, total)
    bias = decoder.bias + missed
    value = float(counts @ decoder.values / total) if method == "unbiased" else value
    reach = float(-ndtri((1 - confidence) / 2)) * math.sqrt(decoder.variance / total) + bias
    lowest, highest = float(wanted.min()), float(wanted.max())
    exact = bias <= 1e-6 * (highest - lowest)
    return Estimate(
        value,
        float(np.clip(value - reach, lowest, highest)),
        float(np.clip(value + reach, lowest, highest)),
        float(counts @ channel.face_values(use) / total),
        method if method == "likelihood" or exact else "least bias",
        (use.name,),
        int(total),
        bias,
    )


def _wanted(channel: TailoredNoise, use: Use) -> tuple[np.ndarray, float]:
    """What each row of the channel stands for, and how far a record's use can be from that on average.

    Between knots a record is treated as a mixture of two, and its mean is on the line between their values. How far the
    use is from that line on average over each piece is given to the knots at its ends: what is left has either sign.
    """
    grid = channel.table.grid
    if grid.points is None or grid.positions is None:
        return bin_means(channel, [use])[:, 0], 0.0
    numbers, knots, values = np.arange(len(grid.inputs)), use(grid.inputs), use(grid.points)
    off = values - np.interp(grid.positions, numbers, knots)
    piece = np.minimum(grid.positions.astype(np.int64), len(knots) - 2)
    means = np.bincount(piece, weights=off) / np.bincount(piece)
    ends = np.concatenate([means[:1], means, means[-1:]])
    knots = knots + (ends[1:] + ends[:-1]) / 2
    return knots, float(np.abs(values - np.interp(grid.positions, numbers, knots)).max())


# Regression.


@dataclass(frozen=True)
class Calibration:
    """What is needed of the published values for a regression: counts and sums of the target, output by output."""

    channel: TailoredNoise
    uses: tuple[Use, ...]
    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    tilt: np.ndarray | None = None
    #: A histogram found before, for whoever fits many samples at once.
    known: np.ndarray | None = None

    def features(self) -> tuple[np.ndarray, np.ndarray]:
        """E[φ(x)|output], a row per output, first column 1; and P[bin|output], a column per output."""
        prior = self.channel.table.prior if self.tilt is None else self.tilt
        histogram = self.known
        if histogram is None:
            histogram = likeliest_histogram(self.channel.probabilities, self.counts, prior, careful=True)
        joint = histogram[:, None] * self.channel.probabilities
        posterior = joint / joint.sum(axis=0)
        means = posterior.T @ bin_means(self.channel, self.uses)
        return np.column_stack([np.ones(len(means)), means]), posterior

    def coefficients(self, shrink: bool = True) -> np.ndarray:
        """Intercept and slopes, outputs weighted by how surely they tell the features.

        With `shrink` each principal direction is shrunk as if its coefficient were of the size of the target's own
        spread: a direction that the channel hardly shows is left near zero instead of being guessed.
        """
        features, posterior = self.features()
        spreads = np.ones(len(features))
        fit = _Fit.of(self, features, spreads)
        for _ in range(3):
            theta = fit.coefficients(shrink=True)
            spreads = self._target_variances(features, posterior, theta)
            fit = _Fit.of(self, features, spreads)
        return fit.coefficients(shrink)

    def _target_variances(self, features: np.ndarray, posterior: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Var(y|output): what the features still vary by, given the output, plus the target's own noise."""
        points = bin_points(self.channel, self.uses)
        predicted = theta[0] + np.tensordot(points, theta[1:], axes=1)
        fitted = features @ theta
        spread = np.maximum(posterior.T @ (predicted**2).mean(axis=1) - fitted**2, 0.0)
        total = self.counts.sum()
        residual = float((self.squares - 2 * fitted * self.sums + self.counts * fitted**2).sum()) / total
        own = max(residual - float(self.counts @ spread) / total, 1e-3 * residual)
        return spread + max(own, 1e-300)

    def unseen(self) -> np.ndarray:
        """Which coefficients the channel does not show: their direction is not spanned by the outputs."""
        features, _ = self.features()
        fit = _Fit.of(self, features, np.ones(len(features)))
        dead = fit.directions[:, ~fit.alive]
        hidden = np.abs(dead).max(axis=1, initial=0.0) > 1e-6
        return np.append(hidden.any(), hidden)

    def resampled(self, generator: np.random.Generator) -> Calibration:
        """Another sample of the same size by the fitted law of outputs and targets: for intervals."""
        total = self.counts.sum()
        counts = generator.multinomial(int(total), self.counts / total).astype(float)
        seen = np.maximum(self.counts, 1.0)
        means = self.sums / seen
        variances = np.maximum(self.squares / seen - means**2, 0.0)
        sums = counts * means + np.sqrt(counts * variances) * generator.normal(size=len(counts))
        return Calibration(self.channel, self.uses, counts, sums, counts * (variances + means**2))

    def undecided(self) -> np.ndarray:
        """How far the coefficients move when the histogram leans on other priors: what the outputs do not decide."""
        value, prior = self.coefficients(shrink=False), self.channel.table.prior
        ramp = np.linspace(-1, 1, len(prior))
        moved = np.zeros(len(value))
        for shape in (ramp, -ramp, 2 * ramp**2 - 1, 1 - 2 * ramp**2):
            tilted = prior * np.exp(_TILT * shape)
            other = replace(self, tilt=tilted / tilted.sum()).coefficients(shrink=False)
            moved = np.maximum(moved, np.abs(other - value))
        return moved


@dataclass(frozen=True)
class _Fit:
    """Weighted least squares in principal directions of the standardised features."""

    centre: np.ndarray
    middle: float
    scale: np.ndarray
    sizes: np.ndarray
    directions: np.ndarray
    products: np.ndarray
    variance: float

    @classmethod
    def of(cls, data: Calibration, features: np.ndarray, spreads: np.ndarray) -> _Fit:
        weights, slopes = data.counts / spreads, features[:, 1:]
        values, prior = bin_means(data.channel, data.uses), data.channel.table.prior
        scale = np.sqrt(prior @ (values - prior @ values) ** 2)
        scale = np.where(scale > 0, scale, 1.0)
        centre = weights @ slopes / weights.sum()
        middle = float((data.sums / spreads).sum() / weights.sum())
        scaled = (slopes - centre) / scale
        gram = (scaled * weights[:, None]).T @ scaled
        sizes, directions = np.linalg.eigh(gram)
        products = directions.T @ (scaled.T @ ((data.sums - data.counts * middle) / spreads))
        total = data.counts.sum()
        variance = float(data.squares.sum() / total - (data.sums.sum() / total) ** 2)
        return cls(centre, middle, scale, sizes, directions, products, variance)

    @property
    def alive(self) -> np.ndarray:
        return self.sizes > 1e-10 * max(float(self.sizes.max()), 1e-300)

    def coefficients(self, shrink: bool) -> np.ndarray:
        # 1/size is the variance of a coefficient; its prior variance is the target's.
        safe = np.where(self.alive, self.sizes, 1.0)
        penalty = 1 / self.variance if shrink and self.variance > 0 else 0.0
        along = np.where(self.alive, self.products / (safe + penalty), 0.0)
        slopes = self.directions @ along / self.scale
        return np.append(self.middle - self.centre @ slopes, slopes)


def calibrate(channel: TailoredNoise, published: Any, target: Any, uses: Any) -> Calibration:
    """The regression of `target` on uses of the private value, reduced to sums over each output."""
    columns = channel.columns_of(published).ravel()
    values = finite_array(target, "target").ravel()
    if values.shape != columns.shape:
        raise DataError("target needs one number for each published value.")
    size = len(channel.outputs)
    sums = [np.bincount(columns, weights=w, minlength=size) for w in (np.ones_like(values), values, values**2)]
    return Calibration(channel, as_uses(uses), *sums)


def _regression(
    channel: TailoredNoise,
    columns: np.ndarray,
    counts: np.ndarray,
    uses: tuple[Use, ...],
    target: Any,
    confidence: float,
) -> Estimate:
    published = channel.outputs[columns]
    fit = calibrate(channel, published, target, uses)
    value = fit.coefficients(shrink=False)
    # Not privacy noise: repeated samples of a fitted public law, with a fixed seed so that intervals repeat.
    generator = np.random.default_rng(0)
    draws = np.array([fit.resampled(generator).coefficients(shrink=False) for _ in range(_BOOTSTRAPS)])
    reach = float(-ndtri((1 - confidence) / 2)) * draws.std(axis=0, ddof=1)
    bias = np.where(fit.unseen(), math.inf, fit.undecided())
    reach = reach + bias
    face = np.column_stack([np.ones(len(published)), *(use(published) for use in uses)])
    naive = np.linalg.lstsq(face, np.asarray(target, dtype=float).ravel(), rcond=None)[0]
    names = ("intercept", *(use.name for use in uses))
    return Estimate(value, value - reach, value + reach, naive, "calibration", names, int(counts.sum()), bias)
