"""How the network says no: the place in the study, the finding, the way out.

In:   a position and two sentences.
Out:  SchemaError with the usual ending.
Not here: the study's own checks (lang/check.py).
"""

from __future__ import annotations

from sfumato.errors import SchemaError
from sfumato.lang.spec import Spec
from sfumato.lang.term import Position, indicator

__all__ = ["check_fed_by_tables", "refusal"]


def refusal(position: Position | None, finding: str, way_out: str) -> SchemaError:
    """An error that names the clause and what to do; nothing private is known here.

    >>> print(refusal(Position("study.pl", 7, 1), "bmi(P) has no range.", "Declare range(bmi(P), Low, High)."))
    study.pl:7:1: bmi(P) has no range. Declare range(bmi(P), Low, High). Nothing was run and nothing was spent.
    """
    place = f"{position}: " if position else ""
    return SchemaError(f"{place}{finding} {way_out} Nothing was run and nothing was spent.")


def check_fed_by_tables(spec: Spec, name: str, position: Position | None) -> None:
    """Refuse a relation that clauses or facts of the study add to: whoever reads its tables would not see all of it."""
    if any(indicator(clause.head) == name for clause in spec.clauses):
        raise refusal(
            position,
            f"{name} is fed by a table and by clauses of the study.",
            "Give one of them a new name; what is public can be written into the table.",
        )
