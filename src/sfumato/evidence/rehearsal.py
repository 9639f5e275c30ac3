"""Predicted against realised error where the people are invented: a dry run knows the truth and may tell it.

In:   the network, the public tables, the results of a dry run over generated tables.
Out:  the root mean squared error of each line of each publication.
Not here: anything about a real run, whose realised errors are as private as the exact values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import InputError
from sfumato.network.evaluate import ID, Values
from sfumato.network.network import Network
from sfumato.plan.plan import Plan
from sfumato.run.generate import generated_tables
from sfumato.run.study import Release

__all__ = ["Realised", "realised_errors"]

#: (publication, observer, node) → root mean squared error over the numbers of that line.
Realised = Mapping[tuple[str, str, str], float]


def realised_errors(plan: Plan, release: Release, network: Network, tables: Mapping[str, Any]) -> Realised:
    """Of every statistic in `release`, which must have been drawn from `generated_tables` of the same study."""
    values = network.evaluate(generated_tables(network.spec, tables))
    acts = {(act.name, observer) for act in plan.acts for observer in act.observers}
    found: dict[tuple[str, str, str], float] = {}
    for one in release.published:
        table = one.values
        if (one.name, one.observer) in acts and one.level != "quantile":
            continue
        lines = _sums(table, values, network) if "node" in table.column_names else _individuals(table, values)
        found |= {(one.name, one.observer, node): error for node, error in lines.items()}
    return found


def _sums(table: pa.Table, values: Values, network: Network) -> dict[str, float]:
    """Of the questions; what is computed from their answers has an error of its own, which is not told."""
    questions = {node.name: node.question for node in network.aggregates}
    shown: dict[str, list[float]] = {}
    for row in table.to_pylist():
        shown.setdefault(row["node"], []).append(row["value"])
    found = {}
    for node, numbers in shown.items():
        if node in questions:
            exact = questions[node].truth(values.aggregates[node])
            found[node] = math.sqrt(float(np.mean((np.array(numbers) - exact) ** 2)))
    return found


def _individuals(table: pa.Table, values: Values) -> dict[str, float]:
    names = [name for name in table.column_names if name != ID]
    found = {}
    for exact in values.individuals.values():
        if exact.num_rows != table.num_rows:
            continue
        order = np.argsort(np.asarray(exact[ID].to_pylist(), dtype=object))
        for name in names:
            try:
                column = np.asarray(values.column(name), dtype=object)
            except InputError:
                continue  # a category has probabilities, no value to compare with
            if len(column) == table.num_rows and _is_number(column):
                difference = table[name].to_numpy() - column[order].astype(np.float64)
                found[name] = math.sqrt(float(np.mean(difference**2)))
    return found


def _is_number(column: np.ndarray) -> bool:
    return len(column) > 0 and isinstance(column[0], int | float | np.number)
