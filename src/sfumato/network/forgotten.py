"""Which rows and cells of a table are forgotten, in SQL.

In:   forget lines, the layout of a table.
Out:  conditions that are true of a forgotten row, or of a forgotten cell.
Not here: taking them out (run/forget.py), the lines themselves (lang/).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.errors import DataError
from sfumato.lang.spec import Forgotten, Spec
from sfumato.lang.term import Compound, Number, Term, Text, indicator, match
from sfumato.network.cells import equals, named_so
from sfumato.network.tables import TableLayout

__all__ = ["forgotten_cells", "forgotten_name", "forgotten_rows", "of_forgotten"]


def forgotten_name(term: Term) -> str:
    """An individual's identifier as it stands in the tables."""
    match term:
        case Number(value=value) | Text(value=value):
            return str(value)
        case Compound(functor=functor, arguments=()):
            return functor
    raise DataError("forget(P) names one individual, for example forget(uma). Nothing was read.")


def forgotten_rows(column: str, forgotten: Sequence[Forgotten]) -> str:
    """SQL that is true of rows whose individual, by this column, is forgotten as a whole."""
    entries = [entry for entry in forgotten if entry.variable is None]
    named = [same for entry in entries for same in _same(column, entry.individual)]
    return " OR ".join(f"coalesce({same}, FALSE)" for same in named) or "FALSE"


def forgotten_cells(spec: Spec, layout: TableLayout) -> dict[str, str]:
    """Column -> SQL that is true where its cell is forgotten."""
    found: dict[str, list[str]] = {}
    for variable in (entry.variable for entry in spec.forgotten if entry.variable is not None):
        for column in layout.values:
            tests = _tests(layout, match(column.atom, variable) or {})
            if tests:
                found.setdefault(column.name, []).append(f"coalesce({' AND '.join(tests)}, FALSE)")
    return {column: " OR ".join(tests) for column, tests in found.items()}


def _tests(layout: TableLayout, bound: Mapping[str, Term]) -> list[str]:
    """SQL that holds for the rows of the individuals that are named."""
    known = [(layout.bound(variable), value) for variable, value in bound.items()]
    return [f"({' OR '.join(_same(column.name, value))})" for column, value in known if column is not None]


def of_forgotten(spec: Spec, layout: TableLayout, column: str) -> str:
    """SQL that is true where a cell of this column is forgotten, alone or with its whole row."""
    if not spec.forgotten:
        return "FALSE"
    owners = [layout.identity(indicator(dataset.goal)) for dataset in spec.datasets]
    rows = [forgotten_rows(owner.name, spec.forgotten) for owner in owners if owner is not None]
    cell = forgotten_cells(spec, layout).get(column)
    return " OR ".join(f"({one})" for one in (*rows, *([cell] if cell else [])) if one != "FALSE") or "FALSE"


def _same(column: str, individual: Term) -> tuple[str, ...]:
    """By the text, as a number where the line has one; a floating-point 3.0 is published as 3, and is either."""
    name = forgotten_name(individual)
    if isinstance(individual, Number):
        return equals(column, name), equals(column, individual.value)
    return named_so(column, name)
