"""One channel for two attributes: both are sent together, and what the prior knows of one helps the other.

In:   two public intervals, one ε for the pair, a use for each; then pairs of values.
Out:  published pairs from a public list; ChannelEvent for the ledger; estimates of means of any function of the pair.
Not here: channels for one value (tailored/noise.py), the solver (tailored/solver.py), drawing (finite_channel.py).
Proof: docs/proofs/tailored_noise.md
Reference: Basu, §5.7.

Two channels of ε₁ + ε₂ = ε side by side are one of the channels that the design chooses from, so the pair never costs
more; where the attributes go together the prior says so, and the pair costs less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Self, final

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.checks import positive
from sfumato.core.domain import Interval
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.guarantee import Guarantee
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.finite_channel import FiniteChannel
from sfumato.mechanisms.mechanism import Mechanism, finite_array, kept
from sfumato.mechanisms.tailored.grid import InputGrid, make_grid
from sfumato.mechanisms.tailored.repair import LARGEST_EPSILON, merged, private_weights
from sfumato.mechanisms.tailored.solver import WantedMeans, optimal_channel
from sfumato.mechanisms.tailored.uses import Use, as_use, checked_uses

__all__ = ["PairEstimate", "TailoredPair"]

#: The solver's time grows with the cube of the number of pairs; 400 take seconds.
_MOST_PAIRS = 900

#: So many steps between the ends of one attribute's outputs, where its bins are fewer.
_FINE_STEPS = 12

Both = tuple[Interval, Interval]


class PairEstimate(NamedTuple):
    """The mean of a function of the pair over all people, its standard error, and the worst bias over all pairs."""

    value: float
    standard_error: float
    bias: float


@final
@dataclass(frozen=True)
class TailoredPair(Mechanism):
    """A channel from pairs of bins to published pairs, of least error for the `uses` of both, under one ε.

    Everything but the values is public. Values outside a domain are treated as its nearest end. `prior` is None
    (uniform) or a public table of probabilities, one row for each bin of the first attribute, which may say that the
    two go together. `bias` is "soft" (squared bias counts as much again as squared error) or "none".

    >>> together = np.eye(4) + 0.1
    >>> pair = TailoredPair((Interval(0, 1), Interval(0, 10)), 2.0, prior=together, bins=(4, 4), random_state=1)
    >>> print(pair.guarantee())
    2-DP, under replacing one record
    >>> pair([[0.1, 1.0], [0.9, 9.5]]).shape
    (2, 2)
    """

    proof: ClassVar[str] = "tailored_noise"

    domains: Both
    epsilon: float
    uses: Any = ("identity", "identity")
    prior: Any = field(default=None, repr=False)
    bins: tuple[int, int] = (6, 6)
    bias: Literal["soft", "none"] = "soft"
    adjacency: Adjacency | None = REPLACE_ONE
    random_state: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "uses", tuple(as_use(use) for use in self.uses))
        if self.prior is not None:
            object.__setattr__(self, "prior", tuple(tuple(float(share) for share in row) for row in self.prior))
        self._check()
        self.event()

    def _check(self) -> None:
        positive(self.epsilon, "epsilon", "With ε = 0 nothing can be published about the values. ")
        if len(self.domains) != 2 or not all(isinstance(one, Interval) for one in self.domains):
            raise PrivacyParameterError("TailoredPair needs two public Intervals. Nothing was drawn or spent.")
        if len(self.uses) != 2 or self.bias not in ("soft", "none"):
            raise InputError("TailoredPair needs one use for each attribute, and bias='soft' or 'none'.")
        self._check_bins()
        for use, domain in zip(self.uses, self.domains, strict=True):
            checked_uses((use,), domain.low, domain.high, None)

    def _check_bins(self) -> None:
        if len(self.bins) != 2 or not all(type(count) is int and count >= 2 for count in self.bins):
            raise InputError("bins must be two whole numbers of at least 2.")
        if self.bins[0] * self.bins[1] > _MOST_PAIRS:
            raise PrivacyParameterError(
                f"{self.bins[0] * self.bins[1]} pairs of bins would take minutes to design: {_MOST_PAIRS} are the "
                "limit. Take fewer bins. Nothing was run."
            )

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        sensitivity: float,
        adjacency: Adjacency,
        *,
        bins: tuple[int, int] = (3, 3),
        random_state: int | None = None,
        **wishes: Any,
    ) -> Self:
        """The channel on [0, sensitivity]² that keeps `guarantee`."""
        domain = Interval(0.0, positive(sensitivity, "sensitivity"))
        epsilon = largest_pure_epsilon(guarantee)
        made = cls((domain, domain), epsilon, bins=bins, adjacency=adjacency, random_state=random_state, **wishes)
        return kept(made, guarantee)

    @cached_property
    def _plan(self) -> _Design:
        return _design(self.domains, float(self.epsilon), self.uses, self.prior, self.bins, self.bias)

    @cached_property
    def _channel(self) -> FiniteChannel:
        return FiniteChannel(self._plan.weights, self.adjacency, self.random_state)

    @property
    def inputs(self) -> np.ndarray:
        """The pair that stands for each pair of bins."""
        return self._plan.inputs

    @property
    def outputs(self) -> np.ndarray:
        """The pairs that may be published."""
        return self._plan.outputs

    @property
    def probabilities(self) -> np.ndarray:
        """One row for each of `inputs`, one column for each of `outputs`."""
        return self._channel.probabilities

    def event(self) -> ChannelEvent:
        return self._channel.event()

    def error(self) -> float:
        """Mean squared error of one published number, over the prior and both attributes, at the representatives."""
        apart = (self.outputs[None, :, :] - self.inputs[:, None, :]) ** 2
        return float(self._plan.prior @ (self.probabilities * apart.mean(axis=2)).sum(axis=1))

    def cost(self) -> float:
        """What the design minimised, without the bias: squared errors of the uses in shares of their variances."""
        return float((self.probabilities * self._plan.costs).sum())

    def __call__(self, values: Any) -> np.ndarray:
        """Published pairs; the last axis of `values` holds the two attributes."""
        return self.outputs[self._channel(self._states(values))]

    def sample(self, value: Any, trials: int) -> np.ndarray:
        return self.outputs[self._channel.sample(self._states(value), trials)]

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        return self._channel.log_likelihood(self.columns_of(outputs), self._states(value))

    def columns_of(self, published: Any) -> np.ndarray:
        """The number of each published pair; refuses a pair that this channel cannot have published."""
        array = _pairs(published)
        known = {tuple(pair): number for number, pair in enumerate(self.outputs.tolist())}
        found = [known.get(tuple(pair), -1) for pair in array.reshape(-1, 2).tolist()]
        if min(found) < 0:
            raise DataError("A published pair is not among the outputs of this channel: another channel made it.")
        return np.array(found, dtype=np.int64).reshape(array.shape[:-1])

    def estimate(self, published: Any, function: Callable[[np.ndarray, np.ndarray], Any]) -> PairEstimate:
        """The mean of `function(first, second)` over everybody, from what they published.

        Every output gets the number whose mean over the channel is the function's value: unbiased at the
        representatives where the channel allows it, and the bias that is left is stated.

        >>> pair = TailoredPair((Interval(0, 1), Interval(0, 1)), 4.0, bins=(3, 3), random_state=2)
        >>> sent = pair(np.tile([0.5, 1 / 6], (20_000, 1)))
        >>> bool(abs(pair.estimate(sent, lambda a, b: a - b).value - 1 / 3) < 0.02)
        True
        """
        wanted = np.asarray(function(*self.inputs.T), dtype=float)
        decoded, *_ = np.linalg.lstsq(self.probabilities, wanted, rcond=1e-10)
        left = float(np.abs(self.probabilities @ decoded - wanted).max())
        seen = decoded[self.columns_of(published).reshape(-1)]
        spread = float(seen.std(ddof=1) / np.sqrt(seen.size)) if seen.size > 1 else float("inf")
        return PairEstimate(float(seen.mean()), spread, left)

    def _states(self, values: Any) -> np.ndarray:
        array = _pairs(values)
        first, second = (grid.rows_of(array[..., place]) for place, grid in enumerate(self._plan.grids))
        return first * len(self._plan.grids[1].inputs) + second


class _Design(NamedTuple):
    grids: tuple[InputGrid, InputGrid]
    inputs: np.ndarray
    outputs: np.ndarray
    prior: np.ndarray
    costs: np.ndarray
    weights: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=64)
@calm_threads()
def _design(
    domains: Both,
    epsilon: float,
    uses: tuple[Use, Use],
    prior: tuple[tuple[float, ...], ...] | None,
    bins: tuple[int, int],
    bias: str,
) -> _Design:
    """All pairs of bins in, all pairs of representatives out; solved, repaired and certified as for one value."""
    first, second = (
        make_grid(domain, (use,), count, "width", None, None)
        for domain, use, count in zip(domains, uses, bins, strict=True)
    )
    inputs, outputs = _all_pairs(first.inputs, second.inputs), _all_pairs(_fine(first.inputs), _fine(second.inputs))
    law = _law(prior, (len(first.inputs), len(second.inputs)))
    costs, moments = _problem(inputs, outputs, law, uses)
    solution = optimal_channel(costs, min(epsilon, LARGEST_EPSILON), moments if bias == "soft" else None)
    probabilities, kept_ones = merged(solution.probabilities)
    weights = private_weights(probabilities, epsilon)
    rows = tuple(tuple(int(weight) for weight in row) for row in weights)
    return _Design((first, second), inputs, outputs[kept_ones], law, costs[:, kept_ones], rows)


def _fine(inputs: np.ndarray) -> np.ndarray:
    """Several outputs between two inputs while there are few: at small ε the best outputs lie close together."""
    steps = max(1, _FINE_STEPS // (len(inputs) - 1))
    count = steps * (len(inputs) - 1) + 1
    return np.interp(np.linspace(0, len(inputs) - 1, count), np.arange(len(inputs)), inputs)


def _all_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.array([(one, other) for one in first for other in second])


def _problem(
    inputs: np.ndarray, outputs: np.ndarray, law: np.ndarray, uses: tuple[Use, Use]
) -> tuple[np.ndarray, WantedMeans]:
    """Squared errors of both uses in shares of their variances, over the prior; and the means that should be kept."""
    before, after = (
        np.array([use(column) for use, column in zip(uses, pairs.T, strict=True)]) for pairs in (inputs, outputs)
    )
    spread = ((before - (before @ law)[:, None]) ** 2) @ law
    shares = np.array([use.weight for use in uses]) / np.where(spread > 0, spread, 1.0)
    apart = (after[:, None, :] - before[:, :, None]) ** 2
    costs = law[:, None] * np.tensordot(shares, apart, axes=1)
    return costs, WantedMeans(after, before, 2 * shares[:, None] * law[None, :] + 1e-12)


def _law(prior: tuple[tuple[float, ...], ...] | None, shape: tuple[int, int]) -> np.ndarray:
    table = np.ones(shape) if prior is None else np.array(prior, dtype=float)
    if table.shape != shape or not np.isfinite(table).all() or table.min() < 0 or table.sum() <= 0:
        raise SchemaError(
            f"prior must be a public table of {shape[0]} rows and {shape[1]} columns of probabilities, one for each "
            "pair of bins. Nothing was drawn."
        )
    return (table / table.sum()).reshape(-1)


def _pairs(values: Any) -> np.ndarray:
    array = finite_array(values)
    if array.ndim == 0 or array.shape[-1] != 2:
        raise DataError("Values must be pairs: the last axis holds the two attributes. Nothing was drawn.")
    return array
