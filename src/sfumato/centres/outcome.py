"""What a round ends with.

In:   the opened sum in cells, the round, who was in it.
Out:  Aggregate: values, their uncertainty, certificates; Outcome: what the centres are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.centres.messages import Message
from sfumato.centres.round import Round
from sfumato.centres.statistic_round import StatisticRound
from sfumato.core.certificate import Certificate
from sfumato.errors import InputError, MessageError, RoundFailedError

__all__ = ["Aggregate", "Outcome", "aggregate_of", "proves_silence"]


@dataclass(frozen=True)
class Aggregate:
    """The published sum over the `included` centres. From here on everything is post-processing.

    `deviation` is the standard deviation of the noise in each number, excess shares included.
    """

    round: Round
    included: tuple[str, ...]
    values: np.ndarray = field(repr=False)
    absent: Mapping[str, str] = field(default_factory=dict)
    publishable: bool = True

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in each number, over the centres that are in the sum."""
        return self.round.deviation(len(self.included))

    def read(self) -> dict[str, Any]:
        """The statistic's own reading of the values."""
        if not isinstance(self.round, StatisticRound):
            raise InputError("A study reads its own sums: see the release that `sfumato run` writes.")
        return self.round.statistic.read(self.values)

    def certificates(self) -> tuple[Certificate, ...]:
        """One for each kind of unit that the round promises something to; checked by `verify` without data."""
        return self.round.certificates(publishable=self.publishable)


def aggregate_of(
    agreed: Round, cells: np.ndarray, included: Sequence[str], absent: Mapping[str, str], publishable: bool = True
) -> Aggregate:
    """The sum in its own units; refuses one that no honest centres can have made."""
    if agreed.is_beyond(cells, summed=True):
        raise RoundFailedError(
            "The sum is larger than honest centres can make it: a centre sent too large a value. The result is not "
            "published, and the round counts as spent because the sum was opened.",
            revealed=True,
        )
    return Aggregate(agreed, tuple(included), cells * agreed.grids, dict(absent), publishable)


@dataclass(frozen=True)
class Outcome:
    """What every centre is told at the end: whether the sum may have been opened, and the proof if it was not."""

    revealed: bool
    reason: str = ""
    values: tuple[float, ...] | None = field(default=None, repr=False)  # asyncio writes down what a task returns
    included: tuple[str, ...] = ()
    refusals: tuple[Message, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "revealed": self.revealed,
            "reason": self.reason,
            "values": None if self.values is None else list(self.values),
            "included": list(self.included),
            "refusals": [message.to_dict() for message in self.refusals],
        }

    def is_of(self, agreed: Round, name: str) -> bool:
        """Whether this can be the result of a round in which the centre `name` took part."""
        inside = set(self.included)
        known = name in inside and inside <= set(agreed.places) and len(inside) == len(self.included) >= agreed.quorum
        return known and len(self.values or ()) == agreed.length and bool(np.all(np.isfinite(self.values or ())))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Outcome:
        try:
            values = record["values"]
            return cls(
                record["revealed"] is not False,  # anything unclear counts as revealed
                str(record["reason"]),
                None if values is None else tuple(map(float, values)),
                tuple(map(str, record["included"])),
                tuple(Message.from_dict(item) for item in record["refusals"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise MessageError("The outcome cannot be read.") from error


def proves_silence(agreed: Round, refusals: Sequence[Message]) -> bool:
    """Whether these signed refusals leave too few centres to open the sum, even if all colluders lie."""
    refusing = set()
    for message in refusals:
        if message.sender in agreed.places:
            message.check(agreed.identity(message.sender), agreed.hash, "refuse")
            refusing.add(message.sender)
    return len(refusing) > len(agreed.centres) - agreed.threshold + agreed.colluders
