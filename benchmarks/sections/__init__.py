"""The sections of benchmarks/questions.py, and the line they print."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One measurement; `most` is what it may be at most, None where it only stands beside another."""

    what: str
    ours: float
    most: float | None = None
    unit: str = ""

    @property
    def holds(self) -> bool:
        return self.most is None or self.ours <= self.most

    def __str__(self) -> str:
        bar = "" if self.most is None else f"  ≤ {self.most:.4g}  {'ok' if self.holds else 'MISSED'}"
        return f"{self.what:<78}{self.ours:>10.4g}{self.unit}{bar}"
