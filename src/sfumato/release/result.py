"""What a whole-table release hands over.

In:   the published table with everything that may be said about it.
Out:  TableRelease; from here on everything is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.core.certificate import Certificate
from sfumato.core.fisher import AttackerError
from sfumato.core.guarantee import Guarantee
from sfumato.release.noise import TableNoise

__all__ = ["TableRelease"]


@dataclass(frozen=True)
class TableRelease:
    """The published table, of the type that was given, and the public facts about it."""

    table: Any
    noise: TableNoise
    guarantee: Guarantee
    certificate: Certificate
    attacker: dict[str, AttackerError]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"Guarantee: {self.guarantee}"]
        lines += [f"  {column}: {error}" for column, error in self.attacker.items()]
        return "\n".join([*lines, *self.notes])
