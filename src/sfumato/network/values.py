"""What forward inference gives: everybody's values, or the sums over them alone.

In:   nothing.
Out:  Values.
Not here: how it is found (network/evaluate.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.questions.sums import Sums

__all__ = ["GROUP", "ID", "Values"]

#: The name of the column of identifiers.
ID = "id"
#: The name of the column that says which of the network's groups an individual belongs to; groups are public.
GROUP = "$group"


@dataclass(frozen=True)
class Values:
    """What forward inference gives. Private: its text shows names only.

    `individuals` maps a dataset to a table with the column `id` and one column per node (for an unobserved categorical
    node one per level, `name=level`); a node that an individual's structure does not have is null. `rows` maps a
    table with several rows per person to such a table by row. `shared` holds what belongs to nobody. `whole` are nodes
    whose numbers are whole, by the type that their column has: that much is public.
    """

    individuals: Mapping[str, pa.Table] = field(repr=False)
    rows: Mapping[str, pa.Table] = field(repr=False)
    shared: Mapping[str, float | str] = field(repr=False)
    aggregates: Mapping[str, Sums] = field(repr=False)
    whole: frozenset[str] = frozenset()
    #: Nodes of which every cell was met and is a listed word, so that nobody has to look at them again. Private.
    listed: frozenset[str] = field(default=frozenset(), repr=False)

    def column(self, name: str) -> NDArray[Any]:
        """A node's value for every individual, in the order of the identifiers."""
        for table in (*self.individuals.values(), *self.rows.values()):
            if name in table.column_names:
                return table[name].to_numpy()
        if name in self.shared:
            return np.asarray(self.shared[name])
        raise InputError(f"There is no value for a node named {name!r}.")

    def membership(self, dataset: str) -> NDArray[np.int64]:
        """The place of each individual's group in `Network.groups`."""
        return self.individuals[dataset][GROUP].to_numpy()

    def identifiers(self, dataset: str) -> NDArray[Any]:
        """Who the rows of `individuals` are."""
        return self.individuals[dataset][ID].to_numpy()
