"""What is wrong with a study, said so that its author can mend it.

In:   a place, a finding, what was expected, a way out.
Out:  Problem, one readable paragraph or one record for an editor.
Not here: how problems are found (lang/reader.py, lang/safety.py, lang/declare.py, lang/check.py).
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.lang.term import Position

__all__ = ["Problem", "Severity", "in_order", "nearest"]

Severity = Literal["error", "warning"]

_LONGEST_CLAUSE = 240


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. `code` is a stable short name for editors and tests.

    >>> place = Position("study.pl", 2, 1)
    >>> print(Problem("error", "unknown-predicate", "paitent/1 is not defined", place, "a :- paitent(P).",
    ...               nearest="patient/1", way_out="Define it, or correct the name.").describe())
    study.pl:2:1: error: paitent/1 is not defined [unknown-predicate]
        a :- paitent(P).
      did you mean: patient/1
      way out: Define it, or correct the name.
    """

    severity: Severity
    code: str
    message: str
    position: Position
    clause: str = ""
    expected: str = ""
    nearest: str | None = None
    way_out: str = ""

    def describe(self) -> str:
        """The paragraph `sfumato check` prints."""
        message = "".join(c if c.isprintable() else " " for c in self.message)
        lines = [f"{self.position}: {self.severity}: {message} [{self.code}]"]
        lines += [f"    {line.strip()}" for line in self._shown_clause().splitlines() if line.strip()]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.nearest:
            lines.append(f"  did you mean: {self.nearest}")
        if self.way_out:
            lines.append(f"  way out: {self.way_out}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The same fields for editors."""
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "file": self.position.file,
            "line": self.position.line,
            "column": self.position.column,
            "clause": self._shown_clause(),
            "expected": self.expected,
            "nearest": self.nearest,
            "way_out": self.way_out,
        }

    def _shown_clause(self) -> str:
        shown = self.clause if len(self.clause) <= _LONGEST_CLAUSE else self.clause[:_LONGEST_CLAUSE] + " …"
        # A study may come from anywhere: no escape sequence of it reaches a terminal.
        return "".join(c if c.isprintable() or c == "\n" else " " for c in shown)


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, from the top of the file to its end, errors before warnings at one place."""
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda p: (p.position.line, p.position.column, p.severity, p.code, p.message)))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like a misspelled one.

    >>> nearest("dependz/3", ["depends/3", "random/1"])
    'depends/3'
    """
    # Comparing is slow: a misspelling among thousands of names is shown without a suggestion.
    names = sorted(itertools.islice(known, 500))
    found = difflib.get_close_matches(name[:80], names, n=1, cutoff=0.6)
    return found[0] if found else None
