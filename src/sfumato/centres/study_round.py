"""A round that sums all that a study asks of several institutions, at once.

In:   the study's text, the plan's name, one block of numbers for each of its draws.
Out:  StudyRound.
Not here: which numbers those are (run/over_centres.py), what every round has (round.py).

The round travels with the study itself: every institution derives its plan again from the text, and compares. Where a
table or a model needs more sums after the first, each stage is a round of its own; what was published before it is part
of what is agreed on, so nobody is shown another history.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from sfumato.centres.round import Block, Round, check_whole
from sfumato.core.events.event import Event
from sfumato.core.records import event_from_dict
from sfumato.errors import InputError

__all__ = ["Cost", "StudyRound"]


@dataclass(frozen=True)
class Cost:
    """What the round costs the individuals of one dataset."""

    dataset: str
    events: tuple[Event, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "events": [event.to_dict() for event in self.events]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Cost:
        events = tuple(event_from_dict(entry) for entry in record["events"])
        if not all(isinstance(event, Event) for event in events):
            raise InputError("An event is repeated")
        return cls(str(record["dataset"]), events)  # type: ignore[arg-type]  # checked above


@final
@dataclass(frozen=True, kw_only=True)
class StudyRound(Round):
    """All sums of one stage. `text` is the study's, `sizes` what was said about its numbers of individuals, `before` a
    digest of all that the earlier stages published."""

    kind: ClassVar[str] = "study"

    text: str
    sizes: Mapping[str, float]
    summed: tuple[Block, ...]
    paid: tuple[Cost, ...]
    with_masks: bool = True
    stage: int = 0
    before: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not isinstance(self.with_masks, bool) or not self.summed:
            raise InputError("A study's round needs its text and what is summed. Nothing was run.")
        check_whole(self.stage, "stage", 0)
        super().__post_init__()

    @property
    def why_awaited(self) -> str:
        return f"did not come to round {self.stage}" if self.stage else super().why_awaited

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.summed

    @property
    def costs(self) -> tuple[tuple[Event, ...], ...]:
        return tuple(cost.events for cost in self.paid if cost.events)

    @property
    def proofs(self) -> tuple[str, ...]:
        named = {event.proof_id() for events in self.costs for event in events}
        return tuple(sorted(named | {"centre_sums"} | ({"secure_aggregation"} if self.masked else set())))

    @property
    def masked(self) -> bool:
        return self.with_masks

    def _own_record(self) -> dict[str, Any]:
        return {
            "sizes": dict(self.sizes),
            "summed": [dataclasses.asdict(block) for block in self.summed],
            "paid": [cost.to_dict() for cost in self.paid],
        }

    @classmethod
    def _own_fields(cls, record: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "sizes": {str(name): float(number) for name, number in record["sizes"].items()},
            "summed": tuple(Block(**entry) for entry in record["summed"]),
            "paid": tuple(Cost.from_dict(entry) for entry in record["paid"]),
        }
