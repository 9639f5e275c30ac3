"""What everybody knows cannot occur, as cells of tables.

In:   a schema's impossible combinations, the levels of its columns.
Out:  for every set of columns which cells hold nothing.
Not here: how rows keep away from them (release/synthetic/junction_tree.py), numbers of a bin that is impossible only in
part (release/synthetic/possible.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    """True where a cell cannot hold anything; of numbers the bins that lie wholly inside the named ranges.

    >>> from sfumato.core.domain import Interval
    >>> columns = {"age": Interval(0, 90), "job": Categories(["none", "clerk"])}
    >>> schema = Schema(columns, impossible=[{"age": [0, 14], "job": ["clerk"]}])
    >>> ages = Levels("age", schema.columns["age"], edges=(0.0, 14.0, 90.0), ranges=((0.0, 14.0),))
    >>> impossible_cells(schema, [ages, Levels("job", schema.columns["job"])])[0, 1].tolist()
    [[False, True], [False, False]]
    """
    places = {column.name: at for at, column in enumerate(levels)}
    atoms = [_Atoms.of(column) for column in levels]
    never: dict[Scope, NDArray[np.bool_]] = {}
    for entry in schema.impossible:
        scope = tuple(sorted(places[name] for name in entry))
        cells = np.array(True)
        for at in scope:
            cells = cells[..., None] & atoms[at].named(levels[at], entry[levels[at].name])
        never[scope] = never.get(scope, False) | cells
    found = {}
    for scope, cells in never.items():
        possible = ~cells
        for axis, at in enumerate(scope):
            possible = atoms[at].somewhere(possible, axis)
        found[scope] = ~possible
    return found


@dataclass(frozen=True, eq=False)
class _Atoms:
    """Levels cut once more at the ends of all named ranges: two ranges may cover a bin that neither covers alone."""

    lows: NDArray[np.float64]
    level: NDArray[np.int64]  # of each atom
    size: int

    @classmethod
    def of(cls, column: Levels) -> _Atoms:
        if isinstance(column.domain, Categories):
            return cls(np.empty(0), np.arange(column.size), column.size)
        spans = column.spans()
        ends = np.concatenate([spans, *(column.span(*pair) for pair in column.ranges)])
        lows = np.unique(np.clip(ends, spans[0], spans[-1]))[:-1]
        level = np.searchsorted(spans, lows, side="right") - 1
        return cls(lows, np.append(level, np.arange(column.listed, column.size)), column.size)

    def named(self, column: Levels, values: Sequence[Any]) -> NDArray[np.bool_]:
        listed = np.zeros(len(self.level), dtype=bool)
        if isinstance(column.domain, Categories):
            listed[[column.domain.values.index(value) for value in values]] = True
            return listed
        low, beyond = column.span(*values)
        listed[: len(self.lows)] = (self.lows >= low) & (self.lows < beyond)
        return listed

    def somewhere(self, possible: NDArray[np.bool_], axis: int) -> NDArray[np.bool_]:
        """Levels of which some atom is possible; one without atoms holds no number."""
        found = np.zeros((self.size, *np.delete(possible.shape, axis)), dtype=bool)
        np.logical_or.at(found, self.level, np.moveaxis(possible, axis, 0))
        return np.moveaxis(found, 0, axis)


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
