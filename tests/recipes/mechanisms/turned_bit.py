"""The recipe for a mechanism: the final class and its Event. Its proof note is turned_bit.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import positive, round_up
from sfumato.core.events.event import Event
from sfumato.core.guarantee import Guarantee, PureDP
from sfumato.errors import DataError, PrivacyParameterError
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.mechanism import Mechanism, finite_array

_WHOLE = 1 << 40


@final
@dataclass(frozen=True)
class TurnedBitEvent(Event):
    """A bit published as it is with weight `keep`, and as the other one with weight `turn`; whole numbers."""

    proof: ClassVar[str] = "turned_bit"

    keep: int
    turn: int

    def _check(self) -> None:
        self._check_presence_is_public()
        if type(self.keep) is not int or type(self.turn) is not int or not 0 < self.turn < self.keep <= _WHOLE:
            raise PrivacyParameterError("Weights must be whole numbers, 0 < turn < keep. Nothing was spent.")

    def guarantee(self) -> PureDP:
        return PureDP(round_up(math.log(self.keep / self.turn), 1e-15), adjacency=self.adjacency)


@final
@dataclass(frozen=True)
class TurnedBit(Mechanism):
    """One bit a person, turned round now and then.

    >>> from sfumato.core import REPLACE_ONE, PureDP
    >>> TurnedBit.for_guarantee(PureDP(1.0), 1.0, REPLACE_ONE).guarantee().eps <= 1.0
    True
    """

    proof: ClassVar[str] = "turned_bit"

    keep: int
    turn: int = 0
    adjacency: Adjacency | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        self.event()

    @classmethod
    def for_guarantee(cls, guarantee: Guarantee, sensitivity: float = 1.0, adjacency: Adjacency | None = None) -> Self:
        if positive(sensitivity, "sensitivity") != 1:
            raise PrivacyParameterError("A bit changes or it does not: its sensitivity is 1. Nothing was spent.")
        turn = math.ceil(_WHOLE * math.exp(-largest_pure_epsilon(guarantee)) * (1 + 1e-12))
        return cls(_WHOLE, turn, adjacency)

    def event(self) -> TurnedBitEvent:
        return TurnedBitEvent(self.keep, self.turn, adjacency=self.adjacency)  # type: ignore[arg-type]

    def error(self) -> float:
        return self.turn / (self.keep + self.turn)

    def __call__(self, values: Any) -> Any:
        return self._turned(self._bits_of(values))

    def sample(self, value: Any, trials: int) -> np.ndarray:
        return self._turned(np.broadcast_to(self._bits_of(value), (trials, *np.shape(value))))

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        same = (outputs == self._bits_of(value)).reshape(len(outputs), -1).sum(axis=1)
        return same * math.log(self.keep / self.turn)

    def _bits_of(self, values: Any) -> np.ndarray:
        bits = finite_array(values)
        if not np.isin(bits, (0, 1)).all():
            raise DataError("A bit is 0 or 1. Nothing was drawn and nothing was spent.")
        return bits.astype(np.int64)

    def _turned(self, bits: np.ndarray) -> np.ndarray:
        drawn = self._bits().below(self.keep + self.turn, bits.size).reshape(bits.shape)
        return np.where(drawn < self.keep, bits, 1 - bits)
