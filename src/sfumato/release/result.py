"""What a whole-table release hands over.

In:   the published table with everything that may be said about it.
Out:  TableRelease; from here on everything is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.card import Card, Shown
from sfumato.core.certificate import Certificate
from sfumato.core.fisher import AttackerError
from sfumato.core.guarantee import Guarantee
from sfumato.release.noise import TableNoise

__all__ = ["TableRelease"]


@dataclass(frozen=True)
class TableRelease(Shown):
    """The published table, of the type that was given, and the public facts about it."""

    table: Any
    noise: TableNoise
    guarantee: Guarantee
    certificate: Certificate
    attacker: dict[str, AttackerError]
    notes: tuple[str, ...] = ()

    def _card(self) -> Card:
        rows = [[column, str(error)] for column, error in self.attacker.items()]
        head = ["column", "how wrong an attacker must be"]
        return Card("A published table", {"promise": str(self.guarantee)}, head, rows, self.notes)

    def __str__(self) -> str:
        lines = [f"Guarantee: {self.guarantee}"]
        lines += [f"  {column}: {error}" for column, error in self.attacker.items()]
        return "\n".join([*lines, *self.notes])
