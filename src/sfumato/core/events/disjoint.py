"""Acts on portions of people who share nobody: the record, and why the costliest portion is what all of it costs.

In:   the events of each portion, the (ε, δ) that each of them keeps.
Out:  DisjointEvent.
Not here: who is in which portion (learn/fair.py), other acts (core/events/event.py).
Proof: docs/proofs/fairness.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.core.checks import positive, probability
from sfumato.core.events.event import Event, Repeated
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.errors import PrivacyParameterError

__all__ = ["DisjointEvent"]


@dataclass(frozen=True)
class DisjointEvent(Event):
    """Events of portions fixed without the data, by public identifiers or places; replacing a record leaves it there.

    >>> from sfumato.core import REPLACE_ONE, GaussianEvent, LaplaceEvent
    >>> noise = GaussianEvent(1.0, 5.0, adjacency=REPLACE_ONE)
    >>> portions = [[noise], [LaplaceEvent(1.0, 1.0, adjacency=REPLACE_ONE)]]
    >>> both = DisjointEvent(1.0, 1e-6, portions, adjacency=REPLACE_ONE)
    >>> print(both.guarantee())
    (1, 1e-06)-DP, under replacing one record
    """

    proof: ClassVar[str] = "fairness"

    eps: float
    delta: float
    portions: Any  # tuple of tuples of events; records are read

    def _check(self) -> None:
        self._check_presence_is_public()
        object.__setattr__(self, "eps", positive(self.eps, "epsilon"))
        object.__setattr__(self, "delta", probability(self.delta))
        read = tuple(tuple(self._read(one) for one in portion) for portion in self.portions)
        object.__setattr__(self, "portions", read)
        if len(read) < 2 or not all(read):
            raise PrivacyParameterError("Portions are at least two, each with an event. Nothing was spent.")
        from sfumato.core.compose import compose  # which knows all events

        for place, portion in enumerate(read):
            if compose(portion).implies(self.guarantee()) is not True:
                raise PrivacyParameterError(
                    f"Portion {place + 1} costs more than {self.guarantee().describe()}. Nothing was spent."
                )

    def _read(self, one: Any) -> Event | Repeated:
        if isinstance(one, Mapping):
            from sfumato.core.records import event_from_dict

            one = event_from_dict(one)
        stated = (one.event if isinstance(one, Repeated) else one).adjacency
        if stated != self.adjacency:
            raise PrivacyParameterError(
                f"An act of a portion is stated {stated}, and the promise {self.adjacency}: what the one costs says "
                "nothing of the other. State both alike. Nothing was spent."
            )
        return one

    def guarantee(self) -> PureDP | ApproxDP:
        if self.delta > 0:
            return ApproxDP(self.eps, self.delta, adjacency=self.adjacency)
        return PureDP(self.eps, adjacency=self.adjacency)

    def proof_ids(self) -> frozenset[str]:
        return frozenset([self.proof_id()]).union(*(event.proof_ids() for event in self.inner()))

    def inner(self) -> Sequence[Event | Repeated]:
        """The events of all portions."""
        return [event for portion in self.portions for event in portion]

    def to_dict(self) -> dict[str, Any]:
        portions = [[event.to_dict() for event in portion] for portion in self.portions]
        return {
            "kind": "DisjointEvent",
            "adjacency": self.adjacency.to_dict(),
            "eps": self.eps,
            "delta": self.delta,
            "portions": portions,
        }
