"""A random answer out of finitely many, by whole-number weights that depend on the true state.

In:   weights, one row for every state, all rows with the sum 2^62.
Out:  answers by their number, drawn exactly; ChannelEvent for the ledger.
Not here: where the weights come from (a network's own distributions, plan/discrete.py), channels for numbers
          (mechanisms/tailored/noise.py).
Proof: docs/proofs/tailored_noise.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive
from sfumato.core.events.channel import ChannelEvent, Weights
from sfumato.core.guarantee import Guarantee
from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.mechanism import Mechanism, codes_array
from sfumato.mechanisms.tailored.repair import TOTAL, TOTAL_BITS, private_weights
from sfumato.mechanisms.tailored.sampling import AliasTable, alias_table

__all__ = ["FiniteChannel"]


@dataclass(frozen=True)
class FiniteChannel(Mechanism):
    """Answers y for state x with probability weights[x][y]/2^62, drawn in whole numbers.

    `for_guarantee` takes the probabilities a model gives and mixes in their mean until the promise holds: randomness
    that the model has of its own is credited, and only what is missing is added.

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> coin = FiniteChannel.for_guarantee(PureDP(0.5), 1.0, REPLACE_ONE, probabilities=[[0.9, 0.1], [0.2, 0.8]])
    >>> coin.guarantee().eps <= 0.5
    True
    >>> coin([0, 1, 1]).shape
    (3,)
    """

    proof: ClassVar[str] = "tailored_noise"

    weights: Weights = field(repr=False)
    adjacency: Adjacency | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        self.event()
        if sum(self.weights[0]) != TOTAL:
            raise PrivacyParameterError("The weights of every state must add up to 2^62.")

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        sensitivity: float = 1.0,
        adjacency: Adjacency | None = None,
        *,
        probabilities: Any = ((1.0, 0.0), (0.0, 1.0)),
        random_state: int | None = None,
    ) -> Self:
        """The model's own answers, as random as `guarantee` needs. A state has no other sensitivity than 1."""
        if positive(sensitivity, "sensitivity") != 1:
            raise PrivacyParameterError("A state either changes or not: its sensitivity is 1.")
        chances = np.asarray(probabilities, dtype=np.float64)
        if (
            chances.ndim != 2
            or not np.all(np.isfinite(chances))
            or chances.min() < 0
            or np.any(chances.sum(axis=1) <= 0)
        ):
            raise PrivacyParameterError("probabilities must be a table of one row per state, without negative entries.")
        wanted = largest_pure_epsilon(guarantee)
        return cls(_weights(chances / chances.sum(axis=1, keepdims=True), wanted), adjacency, random_state)

    @cached_property
    def _table(self) -> AliasTable:
        return alias_table(np.array(self.weights, dtype=np.int64), TOTAL_BITS)

    @property
    def probabilities(self) -> np.ndarray:
        return np.array(self.weights, dtype=np.float64) / TOTAL

    def event(self) -> ChannelEvent:
        return ChannelEvent(self.weights, None, adjacency=self.adjacency)  # type: ignore[arg-type]  # None is refused

    def error(self) -> float:
        """Probability that the answer is not the likeliest one of its state, over all states alike."""
        return float(1 - self.probabilities.max(axis=1).mean())

    def __call__(self, values: Any) -> Any:
        answers = self._answers(self._states(values))
        return int(answers) if np.ndim(values) == 0 else answers

    def sample(self, value: Any, trials: int) -> np.ndarray:
        return self._answers(np.broadcast_to(self._states(value), (trials, *np.shape(value))))

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        chances = np.log(self.probabilities)[self._states(value)]
        picked = np.take_along_axis(
            np.broadcast_to(chances, (len(outputs), *chances.shape)), outputs[..., None].astype(np.int64), axis=-1
        )
        return picked.reshape(len(outputs), -1).sum(axis=1)

    def _states(self, values: Any) -> np.ndarray:
        states = codes_array(values, "States", "A finite channel takes the numbers of states")
        if states.min() < 0 or states.max() >= len(self.weights):
            raise DataError(f"A state lies outside 0 … {len(self.weights) - 1}. Nothing was drawn.")
        return states.astype(np.int64)

    def _answers(self, states: np.ndarray) -> np.ndarray:
        drawn = self._table.draw(states.reshape(-1), self._bits())
        return drawn.astype(np.int64).reshape(states.shape)


def _weights(chances: np.ndarray, epsilon: float) -> Weights:
    """The chances mixed with their mean just enough for ε, then repaired to whole numbers.

    The largest ratio falls with the share of the mean, so the least share is found by halving.
    """
    mean = chances.mean(axis=0)

    def ratio(share: float) -> float:
        mixed = (1 - share) * chances + share * mean
        used = mixed[:, mean > 0]
        return float(np.max(np.log(used.max(axis=0)) - np.log(np.maximum(used.min(axis=0), 1e-300))))

    low, high = 0.0, 1.0
    if ratio(0.0) > epsilon:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if ratio(middle) > epsilon * (1 - 1e-9) else (low, middle)
        chances = (1 - high) * chances + high * mean
    return tuple(tuple(int(weight) for weight in row) for row in private_weights(chances, epsilon))
