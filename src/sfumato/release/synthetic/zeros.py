"""What everybody knows cannot occur, as cells of tables.

In:   a schema's impossible combinations, the levels of its columns.
Out:  for every set of columns which cells hold nothing.
Not here: how rows keep away from them (release/synthetic/junction_tree.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Categories
from sfumato.core.schema import Schema
from sfumato.errors import SchemaError
from sfumato.release.synthetic.junction_tree import JunctionTree, Scope
from sfumato.release.synthetic.levels import Levels

__all__ = ["impossible_cells", "refuse_contradictions"]


def impossible_cells(schema: Schema, levels: Sequence[Levels]) -> dict[Scope, NDArray[np.bool_]]:
    """True where a cell cannot hold anything; of numbers the bins that lie wholly inside the named range.

    >>> from sfumato.core.domain import Interval
    >>> columns = {"age": Interval(0, 90), "job": Categories(["none", "clerk"])}
    >>> schema = Schema(columns, impossible=[{"age": [0, 14], "job": ["clerk"]}])
    >>> ages = Levels("age", schema.columns["age"], edges=(0.0, 14.0, 90.0))
    >>> impossible_cells(schema, [ages, Levels("job", schema.columns["job"])])[0, 1].tolist()
    [[False, True], [False, False]]
    """
    places = {column.name: at for at, column in enumerate(levels)}
    found: dict[Scope, NDArray[np.bool_]] = {}
    for entry in schema.impossible:
        scope = tuple(sorted(places[name] for name in entry))
        parts = [_named(levels[at], entry[levels[at].name]) for at in scope]
        cells = parts[0]
        for part in parts[1:]:
            cells = cells[..., None] & part
        found[scope] = found.get(scope, False) | cells
    return found


def refuse_contradictions(schema: Schema, levels: Sequence[Levels]) -> None:
    """SchemaError where no row is possible: by one combination, or by all of them together.

    Before anything is drawn; later, between edges that were bought, a schema that contradicts itself rules nothing out.
    """
    found = impossible_cells(schema, levels)
    for scope, cells in found.items():
        if cells.all():
            names = ", ".join(levels[at].name for at in scope)
            raise SchemaError(f"By the schema no value of {names} can occur with the others. Nothing was spent.")
    left = JunctionTree.over([column.size for column in levels], (), found).allowed
    if any(cells.any() for cells in found.values()) and all(cells.all() for cells in left):
        raise SchemaError("By the schema's impossible combinations together no row can occur. Nothing was spent.")


def _named(column: Levels, values: Sequence[Any]) -> NDArray[np.bool_]:
    listed = np.zeros(column.size, dtype=bool)
    if isinstance(column.domain, Categories):
        listed[[column.domain.values.index(value) for value in values]] = True
        return listed
    edges = np.array(column.edges)
    listed[: column.listed] = (edges[:-1] >= values[0]) & (edges[1:] <= values[1])
    return listed
