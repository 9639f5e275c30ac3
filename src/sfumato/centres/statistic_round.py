"""A round that sums one statistic of a schema, with one law of noise for all its numbers.

In:   a Statistic, what is promised to whom, the noise that keeps it.
Out:  StatisticRound.
Not here: choosing the numbers (plan.py), what every round has (round.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from sfumato.centres.round import Block, Requirement, Round, check_whole
from sfumato.centres.statistics import Statistic, statistic_from_dict
from sfumato.core.adjacency import Adjacency
from sfumato.core.events.centre import SharedEvent
from sfumato.core.events.event import Event
from sfumato.core.records import guarantee_from_dict
from sfumato.errors import InputError, PrivacyParameterError
from sfumato.mechanisms import GaussianShares, LaplaceShares
from sfumato.mechanisms.grid_law import Law, grid_law
from sfumato.mechanisms.shares import Shares

__all__ = ["SHARES", "StatisticRound"]

#: The noise that centres draw together, by the name of its law.
SHARES: dict[str, type[Shares]] = {shares.law: shares for shares in (GaussianShares, LaplaceShares)}


@final
@dataclass(frozen=True, kw_only=True)
class StatisticRound(Round):
    """One statistic of all patients; `honest` shares of noise of this scale keep every requirement."""

    kind: ClassVar[str] = "statistic"

    statistic: Statistic
    requirements: tuple[Requirement, ...]
    law: Law
    scale: float
    grid: float
    most_patients: int

    def __post_init__(self) -> None:
        check_whole(self.most_patients, "most_patients", 1)
        if not self.requirements:
            raise PrivacyParameterError("A round needs a requirement: who is protected, and how well.")
        grid_law(self.law)
        super().__post_init__()
        self._check_scaling()
        for event, requirement in zip(self.events, self.requirements, strict=True):
            if event.guarantee().implies(requirement.guarantee) is not True:
                raise PrivacyParameterError(
                    f"Noise of scale {self.scale:g} does not keep {requirement.guarantee}. Plan the round again. "
                    "Nothing was run and nothing was spent."
                )

    def _check_scaling(self) -> None:
        """What `centre_norm` charges for scaling a centre's vector in floating point (statistics.py) must be enough."""
        if self.statistic.centre_norm is None:
            return
        for requirement in self.requirements:
            moved = self.statistic.sensitivity(requirement.adjacency, self.law)
            if 2 * self.grid * math.sqrt(self.length) > moved * 2.0**-11 or self.largest_part > 1 << 52:
                raise InputError("The grid does not fit the centre_norm: plan the round again. Nothing was run.")

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (Block(self.law, self.scale, self.grid, self.statistic.length, self.largest_part),)

    @property
    def largest_part(self) -> int:
        """The largest number, in cells, that an honest centre's figure can have without noise."""
        return self.statistic.largest_part(self.grid, self.most_patients)

    @property
    def events(self) -> tuple[SharedEvent, ...]:
        """What the round costs each kind of unit."""
        return tuple(
            SHARES[self.law].event_class(
                self.statistic.sensitivity(requirement.adjacency, self.law),
                self.scale,
                self.grid,
                self.length,
                self.honest,
                len(self.centres),
                self.colluders,
                adjacency=requirement.adjacency,
            )
            for requirement in self.requirements
        )

    @property
    def costs(self) -> tuple[tuple[Event, ...], ...]:
        return tuple((event,) for event in self.events)

    def events_for(self, knowing: int, included: int) -> tuple[SharedEvent, ...]:
        """What a sum over `included` centres costs towards an observer who knows `knowing` of the shares in it.

        The public knows none, a centre its own, a coalition its members'.
        """
        unknown = included - knowing
        if not 0 <= knowing <= self.colluders or included < self.quorum or included > len(self.centres):
            raise InputError("Observers know the shares of at most `colluders` centres in a sum of a quorum.")
        return tuple(event.seen_by(knowing, unknown) for event in self.events)

    def _own_record(self) -> dict[str, Any]:
        return {
            "statistic": self.statistic.to_dict(),
            "requirements": [requirement.to_dict() for requirement in self.requirements],
        }

    @classmethod
    def _own_fields(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "statistic": statistic_from_dict(record["statistic"]),
            "requirements": tuple(
                Requirement(Adjacency.from_dict(item["adjacency"]), guarantee_from_dict(item["guarantee"]))
                for item in record["requirements"]
            ),
        }
