"""How far rows lie from one another, for a small part of the budget: the scale of a bandwidth.

In:   rows in the public box, a share of the promise.
Out:  KernelSpread: the noisy mean squared distance of paired rows, and the noise that paid for it.
Not here: how γ follows from it (learn/kernel_rule.py), the rest of the release (learn/kernel_base.py).
Proof: docs/proofs/kernel_mean.md, "The spread"

A box that is written down without looking is wider than the rows by an unknown factor, and γ by its square. One number
mends that. Rows are paired by a fixed public shuffle of their positions: replacing a record touches one pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ApproxDP, GaussianDP, Guarantee, PureDP
from sfumato.errors import PrivacyParameterError
from sfumato.learn.arrays import is_device_array, to_host
from sfumato.learn.features import LONGEST
from sfumato.learn.kernel_rule import SPREAD_SHARE
from sfumato.learn.rows import BLOCK, canonical, row_norms, tamed
from sfumato.learn.seeds import Seeds
from sfumato.mechanisms import Gaussian, Laplace

__all__ = ["KernelSpread", "PairSum", "pair_distances", "split_promise"]

#: Rounding of the sum of distances, in units of the sensitivity.
_ARITHMETIC = 1e-5
#: Estimates below this, or below two deviations of the noise, are taken for it.
_LEAST = 0.01
_GOLDEN = (math.sqrt(5) - 1) / 2
#: E(x - x')² for two numbers spread evenly over [-1, 1].
_EVEN = 2 / 3


@dataclass(frozen=True)
class KernelSpread:
    """`value`: the released mean of min(1, ‖x - x'‖²/columns); never 0."""

    value: float
    noise: Gaussian | Laplace

    @classmethod
    def release(cls, rows: np.ndarray, promise: Guarantee, seeds: Seeds) -> KernelSpread:
        """Spends `promise` on the rows; under replacing a record the sum of distances moves by at most 1."""
        if seeds.is_shared:
            return cls._by_moments(rows, promise, seeds)
        return cls.of_sum(float(pair_distances(rows).sum()), len(rows) // 2, promise, seeds)

    @classmethod
    def of_sum(cls, exact: float, pairs: int, promise: Guarantee, seeds: Seeds) -> KernelSpread:
        """Spends `promise` on the sum over pairs of rows."""
        noise = _noise(promise)
        total = float(seeds.released(noise, np.array([exact]))[0])
        deviation = seeds.deviation(noise)
        return cls(min(1.0, max(total, 2 * deviation, _LEAST * pairs) / max(pairs, 1)), noise)

    @classmethod
    def _by_moments(cls, rows: np.ndarray, promise: Guarantee, seeds: Seeds) -> KernelSpread:
        """The same where several institutions have rows, whose own may lie close together: 2·(mean ‖u‖² - ‖mean u‖²)
        for u = x/√columns, shortened to 1. Replacing a record moves (Σu, Σ‖u‖²) by at most 2."""
        units = rows / math.sqrt(rows.shape[1])
        lengths = np.linalg.norm(units, axis=1)
        units = units / np.maximum(1.0, lengths)[:, None]
        exact = _summed(np.column_stack([units, np.square(np.minimum(1.0, lengths))]))
        assert promise.adjacency is not None
        kind = Gaussian if isinstance(promise, GaussianDP) else Laplace
        noise = kind.for_guarantee(promise, 2.0 + _ARITHMETIC, promise.adjacency, dimension=len(exact))
        found = seeds.released(noise, exact) / max(1.0, seeds.records_of(noise, len(rows)))
        least = max(_LEAST, 2 * seeds.deviation(noise) / max(1.0, seeds.records_of(noise, len(rows))))
        return cls(float(min(1.0, max(2 * (found[-1] - np.sum(found[:-1] ** 2)), least))), noise)

    @classmethod
    def of_nothing(cls, promise: Guarantee) -> KernelSpread:
        """What rows spread evenly over the box would have, without looking."""
        return cls(_EVEN, _noise(promise))


def _summed(rows: np.ndarray) -> np.ndarray:
    """Σ of the rows: in blocks, whose totals are added exactly, so that rounding grows with a block and not with n."""
    blocks = [rows[start : start + BLOCK].sum(axis=0) for start in range(0, len(rows), BLOCK)]
    return np.array([math.fsum(column) for column in zip(*blocks, strict=True)])


def _noise(promise: Guarantee) -> Gaussian | Laplace:
    if promise.adjacency is None:
        raise PrivacyParameterError("Say who is protected. Nothing was spent.")
    kind = Gaussian if isinstance(promise, GaussianDP) else Laplace
    return kind.for_guarantee(promise, 1.0 + _ARITHMETIC, promise.adjacency, dimension=1)


@dataclass(frozen=True)
class PairSum:
    """The sum of `pair_distances` and how many pairs there are, of rows in a ball: its radius `reach` is the length of
    a corner of the box, and `norm` what longer rows are shortened to, where it is public.

    >>> PairSum(1.0, 1.0)(np.array([[1e200], [-1e200]]), None)
    [array([1.]), array([1])]
    """

    reach: float
    norm: float | None

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]:
        matrix = canonical(to_host(matrix) if is_device_array(matrix) else matrix)
        longest = LONGEST if self.norm is None else self.norm
        rows, norms = tamed(matrix, row_norms(matrix), longest)
        rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
        scale = math.sqrt(rows.shape[1]) / self.reach
        rows = rows * (scale * longest / np.maximum(norms, longest))[:, None]
        return [np.array([pair_distances(rows).sum()]), np.array([len(rows) // 2])]


def pair_distances(rows: np.ndarray) -> np.ndarray:
    """min(1, ‖x - x'‖²/columns) for pairs of rows; each row is in one pair, an odd one in none.

    >>> pair_distances(np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]])).shape
    (1,)
    """
    # Public: the same for every table of this length. Multiples of the golden ratio mix up tables that are sorted.
    order = np.argsort(np.arange(len(rows)) * _GOLDEN % 1.0, kind="stable")
    half = len(rows) // 2
    apart = rows[order[:half]] - rows[order[half : 2 * half]]
    with np.errstate(over="ignore"):  # farther than 1 either way
        return np.minimum(1.0, (apart**2).mean(axis=1))


def split_promise(promise: Guarantee) -> tuple[Guarantee, Guarantee]:
    """What the spread costs, and what is left: ε adds up, or squares of μ where there is a δ.

    >>> small, rest = split_promise(PureDP(1.0))
    >>> small.epsilon(0.0) < 0.05 < 0.95 < rest.epsilon(0.0)
    True
    """
    share = SPREAD_SHARE
    if isinstance(promise, ApproxDP):
        mu = gaussian_mu(promise.eps, promise.delta_) * (1 - 1e-6)
        parts = [GaussianDP(mu * math.sqrt(share)), GaussianDP(mu * math.sqrt(1 - share))]
    else:
        epsilon = promise.epsilon(0.0) * (1 - 1e-9)
        parts = [PureDP(epsilon * share), PureDP(epsilon * (1 - share))]
    first, rest = (part if promise.adjacency is None else part.under(promise.adjacency) for part in parts)
    return first, rest
