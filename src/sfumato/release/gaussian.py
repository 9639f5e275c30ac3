"""Publish a whole table with the noise of least Fisher information for its variance: Gaussian.

In:   a public schema and one of (ε, δ), a wanted attacker's error, or the trade-off λ.
Out:  PreparedTable / TableRelease with both faces: (ε, δ) per record and Cramér-Rao error per column.
Not here: the acts (acts.py), the split of a budget (budget.py).
Proof: docs/proofs/table_release.md
Reference: Farokhi 2020, Thm 2.4 (the law), with the exact calibration on the public box in place of Thm 2.5.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, final

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive
from sfumato.core.compose import compose
from sfumato.core.domain import Categories
from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import PrivacyParameterError, SchemaError
from sfumato.mechanisms import Gaussian, RandomizedResponse
from sfumato.release.acts import ColumnAct, GaussianBlock, Respond, events_of
from sfumato.release.budget import Share, estimated_delta, responder, response_divergence, split
from sfumato.release.label import with_label
from sfumato.release.table import PreparedTable, TableReleaser, check_kept, feature_columns, protected

__all__ = ["GaussianRelease"]

_ENUMERATED = 16
#: How much of the total is given up, at first, where the estimate was too hopeful.
_FIRST_STEP = 5e-4
#: Floating-point slack on the sensitivity of the whitened record.
_ROUNDING = 1 + 1e-9


@final
@dataclass(frozen=True)
class GaussianRelease(TableReleaser):
    """Adds N(0, Π^(-1/2)/√λ) to each record, in units of the columns' public widths.

    Say one of: `epsilon` with `delta` (features of one record, local privacy); `adversary_error` (least squared error
    of an unbiased attacker: a number for the Π-weighted total over columns in units of their widths, or a mapping of
    columns to squared errors in their own units); `trade_off` (λ itself). `weights` is Π: a mapping of columns to
    positive weights, or a positive definite matrix over the interval columns in schema order. More weight means less
    noise.

    Categorical columns are answered at random (`categorical="response"`), get noise on their one-hot numbers
    ("one-hot"), or whichever loses less ("auto"). `label` is published as it is, or randomised with `label_epsilon` on
    top of epsilon.

    >>> from sfumato.core import Categories, Interval
    >>> schema = Schema({"age": Interval(0, 100), "ill": Categories(["no", "yes"])})
    >>> out = GaussianRelease(schema, epsilon=2.0, delta=1e-6, label="ill", label_epsilon=1.0).release(
    ...     {"age": [34.0, 61.0, 47.0], "ill": ["no", "yes", "no"]}
    ... )
    >>> sorted(out.table)
    ['age', 'ill']
    >>> print(out.attacker["age"])
    an unbiased attacker errs by at least 223.2 (root mean square); guessing ... errs by at most 50
    """

    schema: Schema
    epsilon: float | None = None
    delta: float | None = None
    adversary_error: float | Mapping[str, float] | None = None
    trade_off: float | None = None
    weights: Any = None
    label: str | None = None
    label_epsilon: float | None = None
    categorical: Literal["response", "one-hot", "auto"] = "response"
    category_epsilon: float | None = None
    clip: bool = False
    random_state: int | None = None

    def prepare(self) -> PreparedTable:
        numbers, categories = feature_columns(self.schema, self.label)
        self._check(categories)
        adjacency = protected(self.label, self.label_epsilon)
        acts, shares = self._feature_acts(numbers, categories, adjacency)
        plan = {"release": "gaussian", "schema": self.schema.to_toml(), "shares": shares}
        return with_label(self, acts, "Gaussian", plan, _share_notes(shares))

    def _check(self, categories: list[str]) -> None:
        given = [self.epsilon is not None, self.adversary_error is not None, self.trade_off is not None]
        if sum(given) != 1:
            raise PrivacyParameterError(
                "Say exactly one of epsilon (with delta), adversary_error or trade_off. Nothing was drawn or spent."
            )
        if (self.epsilon is not None) != (self.delta is not None):
            raise PrivacyParameterError("Gaussian noise needs both epsilon and delta, for instance delta=1e-6.")
        if self.epsilon is not None:
            ApproxDP(self.epsilon, self.delta)  # type: ignore[arg-type]  # checks both
            gaussian_mu(self.epsilon, self.delta)  # type: ignore[arg-type]
        if self.epsilon is None and categories and self.category_epsilon is None:
            raise PrivacyParameterError(
                f"The categorical columns {', '.join(categories)} need a budget of their own: say category_epsilon=…, "
                "or give epsilon and delta and let it be split."
            )
        if self.categorical not in ("response", "one-hot", "auto"):
            raise PrivacyParameterError("categorical is 'response', 'one-hot' or 'auto'.")

    # How much noise.

    def _feature_acts(
        self, numbers: list[str], categories: list[str], adjacency: Adjacency
    ) -> tuple[list[ColumnAct], dict[str, Any]]:
        root = self._root_of_weights(numbers)
        if self.epsilon is None:
            factor = self._factor_without_budget(numbers, root)
            share = None if not categories else positive(self.category_epsilon, "category_epsilon") / len(categories)
            acts: list[ColumnAct] = [self._responses(name, share, adjacency) for name in categories if share]
            block = [self._block(tuple(numbers), (), factor, adjacency)] if numbers else []
            return [*block, *acts], dict.fromkeys(categories, share)
        return self._acts_of_budget(numbers, categories, root, adjacency)

    def _acts_of_budget(
        self, numbers: list[str], categories: list[str], root: np.ndarray, adjacency: Adjacency
    ) -> tuple[list[ColumnAct], dict[str, Any]]:
        """Split under either guess of what a response costs, stretch each to the exact budget, keep the better."""
        assert self.epsilon is not None
        assert self.delta is not None
        mu = gaussian_mu(self.epsilon, self.delta)
        one_hot = self._one_hot_columns(numbers, categories, root, mu)
        answered = [name for name in categories if name not in one_hot]
        if not answered:
            block = self._block(tuple(numbers), one_hot, self._factor(root, one_hot, mu), adjacency)
            check_kept(block.events(), ApproxDP(self.epsilon, self.delta))
            return [block], {"numbers": mu}
        best: tuple[float, dict[str, float]] = (math.inf, {})
        for guess in ("divergence", "sum"):
            takers = self._takers(numbers, answered, one_hot, root, guess)
            shares = self._stretched(takers, numbers, one_hot, root, adjacency)
            best = min(best, (_loss(takers, shares), shares), key=lambda pair: pair[0])
        shares = best[1]
        acts = self._acts(shares, numbers, one_hot, root, adjacency)
        check_kept(events_of(acts), ApproxDP(self.epsilon, self.delta))
        return acts, {name: round(share, 6) for name, share in shares.items()}

    def _stretched(
        self, takers: list[Share], numbers: list[str], one_hot: tuple[str, ...], root: np.ndarray, adjacency: Adjacency
    ) -> dict[str, float]:
        """The largest split that keeps (ε, δ): bisection on the total by an estimate, then exact composition.

        The estimate decides where to look and nothing else: what is returned has been composed and implies the wanted.
        """
        wanted = ApproxDP(self.epsilon, self.delta, adjacency=adjacency)  # type: ignore[arg-type]
        sizes = {taker.name: self._size(taker.name) for taker in takers if taker.name != "numbers"}

        def seems(total: float) -> bool:
            return estimated_delta(split(takers, total), self.epsilon, sizes) <= self.delta  # type: ignore[arg-type,operator]

        low, step = _largest(seems), _FIRST_STEP
        while low > 1e-24:
            shares = split(takers, low)
            acts = self._acts(shares, numbers, one_hot, root, adjacency)
            if compose(events_of(acts)).implies(wanted) is True:
                return shares
            low, step = low * (1 - step), min(0.75, 2 * step)
        raise PrivacyParameterError(
            f"({self.epsilon:g}, {self.delta:g}) is too little for {len(takers)} columns. Nothing was drawn."
        )

    def _acts(
        self,
        shares: dict[str, float],
        numbers: list[str],
        one_hot: tuple[str, ...],
        root: np.ndarray,
        adjacency: Adjacency,
    ) -> list[ColumnAct]:
        acts: list[ColumnAct] = []
        if "numbers" in shares:
            factor = self._factor(root, one_hot, shares["numbers"])
            acts.append(self._block(tuple(numbers), one_hot, factor, adjacency))
        return acts + [self._responses(name, e, adjacency) for name, e in shares.items() if name != "numbers"]

    def _takers(
        self,
        numbers: list[str],
        answered: list[str],
        one_hot: tuple[str, ...],
        root: np.ndarray,
        guess: Literal["divergence", "sum"] = "divergence",
    ) -> list[Share]:
        """Everyone who wants budget. The share of the numbers is their μ, that of an answer its ε.

        Costs are guessed as squared divergences, right for many small acts, or as sums of ε, right for few at small δ.
        """
        adds = guess == "sum"
        tail = math.sqrt(2 * math.log(1 / self.delta)) if self.delta else 0.0
        takers = []
        for name in answered:
            size = self._size(name)
            takers.append(responder(name, size, (lambda e: e) if adds else partial(response_divergence, size)))
        if numbers or one_hot:
            loss = self._loss_of_numbers(root, one_hot)
            cost = (lambda m: m * tail + m**2 / 2) if adds else (lambda m: m**2)
            takers.append(Share("numbers", lambda m: loss / m**2, cost))
        return takers

    def _size(self, name: str) -> int:
        domain = self.schema.columns[name]
        assert isinstance(domain, Categories)
        return len(domain.values)

    def _one_hot_columns(
        self, numbers: list[str], categories: list[str], root: np.ndarray, mu: float
    ) -> tuple[str, ...]:
        if self.categorical == "response" or not categories:
            return ()
        if root.ndim == 2:
            raise PrivacyParameterError("One-hot noise goes with diagonal weights only: use categorical='response'.")
        clash = [n for c in categories for n in self.schema.columns[c].feature_names(c) if n in self.schema.columns]
        if clash:
            raise SchemaError(f"One-hot columns would take the name of a declared column: {', '.join(clash)}.")
        if self.categorical == "one-hot":
            return tuple(categories)
        return self._best_one_hot(numbers, categories, root, mu)

    def _best_one_hot(self, numbers: list[str], categories: list[str], root: np.ndarray, mu: float) -> tuple[str, ...]:
        best: tuple[float, tuple[str, ...]] = (math.inf, ())
        for count in range(len(categories) + 1):
            # Columns with many categories lose most by answering at random: try them first.
            chosen = tuple(sorted(categories, key=self._size)[len(categories) - count :])
            rest = [name for name in categories if name not in chosen]
            takers = self._takers(numbers, rest, chosen, root)
            best = min(best, (_loss(takers, split(takers, mu**2)), chosen))
        return best[1]

    # The shape of the noise. `root` is Π^(1/2): its diagonal, or the whole matrix.

    def _root_of_weights(self, numbers: list[str]) -> np.ndarray:
        if self.weights is None:
            return np.ones(len(numbers))
        if isinstance(self.weights, Mapping):
            unknown = set(self.weights) - set(numbers)
            if unknown:
                raise SchemaError(f"Weights are given for {', '.join(sorted(unknown))}, not interval feature columns.")
            return np.sqrt([positive(self.weights.get(name, 1.0), f"the weight of {name}") for name in numbers])
        matrix = np.asarray(self.weights, dtype=float)
        if matrix.shape != (len(numbers), len(numbers)) or not np.isfinite(matrix).all():
            raise PrivacyParameterError(f"weights must be a {len(numbers)} × {len(numbers)} matrix of finite numbers.")
        if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0):
            raise PrivacyParameterError("The weight matrix must be symmetric.")
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        if values.min() <= 1e-12 * max(values.max(), 1e-300):
            raise PrivacyParameterError("The weight matrix must be positive definite.")
        return (vectors * np.sqrt(values)) @ vectors.T

    def _loss_of_numbers(self, root: np.ndarray, one_hot: tuple[str, ...]) -> float:
        """Sum of noise variances, in squared widths, when μ = 1."""
        if root.ndim == 2:
            return float(np.trace(np.linalg.inv(root))) * _largest_square(root)
        extra = sum(self._size(name) for name in one_hot)
        return (float(root.sum()) + 2 * len(one_hot)) * (float((1 / root).sum()) + extra)

    def _factor(self, root: np.ndarray, one_hot: tuple[str, ...], mu: float) -> np.ndarray:
        """L with LLᵀ = Π^(-1/2)/√λ, λ such that the largest whitened change over the box is μ."""
        target = mu / _ROUNDING / (1 + 2.0**-11)  # room for the cost of rounding to the grid
        if root.ndim == 2:
            scale = math.sqrt(_largest_square(root)) / target
            values, vectors = np.linalg.eigh(root)
            return (vectors * (scale / np.sqrt(values))) @ vectors.T
        # One change of category moves two one-hot numbers by 1; each interval column moves by its width.
        total = float(root.sum()) + 2 * len(one_hot)
        extra = np.ones(sum(self._size(name) for name in one_hot))
        return np.sqrt(total) / target / np.sqrt(np.concatenate([root, extra]))

    def _factor_without_budget(self, numbers: list[str], root: np.ndarray) -> np.ndarray:
        if isinstance(self.adversary_error, Mapping):
            missing = set(numbers) ^ set(self.adversary_error)
            if missing or root.ndim == 2:
                raise SchemaError(f"adversary_error must name every interval feature column once: {sorted(missing)}.")
            widths = [self.schema.columns[name].width for name in numbers]  # type: ignore[union-attr]
            errors = [positive(self.adversary_error[name], f"adversary_error of {name}") for name in numbers]
            return np.sqrt(errors) / np.array(widths)
        trace = float(np.trace(root)) if root.ndim == 2 else float(root.sum())
        if self.trade_off is not None:
            strength = math.sqrt(positive(self.trade_off, "trade_off"))
        else:
            # Tr(Π·Cov) = Tr(Π^½)/√λ is the least Π-weighted error of an unbiased attacker.
            strength = trace / positive(self.adversary_error, "adversary_error")
        if root.ndim == 2:
            values, vectors = np.linalg.eigh(root)
            return (vectors / np.sqrt(values * strength)) @ vectors.T
        return 1 / np.sqrt(root * strength)

    def _block(
        self, columns: tuple[str, ...], one_hot: tuple[str, ...], factor: np.ndarray, adjacency: Adjacency
    ) -> GaussianBlock:
        """The sensitivity of the whitened record: exact over the box, or a safe bound for many correlated columns."""
        if factor.ndim == 2:
            inverse = np.linalg.inv(factor)
            largest = math.sqrt(_largest_square(inverse.T @ inverse))
        else:
            numbers, extra = factor[: len(columns)], factor[len(columns) :]
            sizes = np.array([self._size(name) for name in one_hot], dtype=int)
            first = extra[np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)] if one_hot else extra
            largest = math.sqrt(float((1 / numbers**2).sum()) + 2 * float((1 / first**2).sum()))
        sensitivity = largest * _ROUNDING
        mechanism = Gaussian(1.0, sensitivity, adjacency, max(1, factor.shape[0]), self.random_state)
        return GaussianBlock(columns, one_hot, factor, mechanism)

    def _responses(self, name: str, epsilon: float, adjacency: Adjacency) -> Respond:
        response = RandomizedResponse.for_guarantee(
            PureDP(epsilon), 1.0, adjacency, categories=max(2, self._size(name)), random_state=self.random_state
        )
        return Respond(name, response)


def _loss(takers: list[Share], shares: Mapping[str, float]) -> float:
    return sum(float(taker.loss(np.array(shares[taker.name]))) for taker in takers)


def _largest(seems: Callable[[float], bool]) -> float:
    """About the largest total that seems to be kept: by steps of four, then by halving."""
    low = 1e-2
    while not seems(low) and low > 1e-24:
        low /= 4
    high = 4 * low
    while seems(high) and high < 1e12:  # no share grows for ever
        low, high = high, 4 * high
    for _ in range(20):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if seems(middle) else (low, middle)
    return low


def _largest_square(matrix: np.ndarray) -> float:
    """Largest dᵀMd over changes d in the box [-1, 1]^p: at a vertex, since it is convex.

    All vertices up to 16 columns; beyond, the safe bound Σ|M_kl|.
    """
    size = len(matrix)
    if size > _ENUMERATED:
        return float(np.abs(matrix).sum())
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=size - 1))).reshape(2 ** (size - 1), size - 1)
    vertices = np.column_stack([np.ones(len(signs)), signs])
    return float(np.einsum("vi,ij,vj->v", vertices, matrix, vertices, optimize=True).max())


def _share_notes(shares: dict[str, Any]) -> tuple[str, ...]:
    answers = ", ".join(f"{name} ε = {share:.4g}" for name, share in shares.items() if name != "numbers" and share)
    numbers = f"numbers μ = {shares['numbers']:.4g}" if "numbers" in shares else ""
    text = "; ".join(part for part in (numbers, answers) if part)
    return (f"How the budget of one record was split: {text}.",) if answers else ()
