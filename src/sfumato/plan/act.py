"""One settled act of another kind than a draw, as the Plan keeps it.

In:   decisions of a strategy (plan/strategy.py).
Out:  Act, plain and serialisable.
Not here: performing it (run/publish.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.core import Guarantee
from sfumato.core.events.event import Event, Repeated
from sfumato.core.records import event_from_dict, guarantee_from_dict

__all__ = ["Act", "ActKey"]

#: What an act is known by among those of its plan: its name, and who sees it.
ActKey = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Act:
    """One settled act of another kind than a draw: who sees it, from which dataset, within which guarantee, with what.

    `parameters` are plain values, enough to perform it. `events` are known beforehand where they do not depend on the
    number of individuals; otherwise the guarantee stands for them until the act was performed.
    """

    name: str
    kind: str
    strategy: str
    observers: tuple[str, ...]
    dataset: str
    guarantee: Guarantee
    parameters: Mapping[str, Any]
    events: tuple[Event | Repeated, ...] = ()

    @property
    def key(self) -> ActKey:
        return self.name, self.observers

    def makes(self, name: str, observer: str) -> bool:
        """Whether it makes what this observer sees under this name."""
        return self.name == name and observer in self.observers

    @property
    def readers(self) -> str:
        """Who sees it, as texts name them."""
        return " and ".join(self.observers)

    @property
    def costs(self) -> tuple[Event | Repeated | Guarantee, ...]:
        return self.events or (self.guarantee,)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "strategy": self.strategy,
            "observers": list(self.observers),
            "dataset": self.dataset,
            "guarantee": self.guarantee.to_dict(),
            "parameters": dict(self.parameters),
            "events": [event.to_dict() for event in self.events],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Act:
        return cls(
            record["name"],
            record["kind"],
            record["strategy"],
            tuple(record["observers"]),
            record["dataset"],
            guarantee_from_dict(record["guarantee"]),
            record["parameters"],
            tuple(event_from_dict(entry) for entry in record["events"]),
        )
