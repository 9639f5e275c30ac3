"""What somebody wishes of synthetic rows, held against what can be done: before anything is read or drawn.

In:   parameters as they were given, public sizes.
Out:  PrivacyParameterError or SchemaError that says what to write instead.
Not here: edges and levels (release/synthetic/levels.py), combinations that contradict each other (zeros.py there).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.core.gaussian import gaussian_mu
from sfumato.core.schema import Schema
from sfumato.errors import PrivacyParameterError, SchemaError
from sfumato.mechanisms.elsewhere import Elsewhere
from sfumato.release.synthetic.counts import MOST_CELLS, pairs_within
from sfumato.release.synthetic.junction_tree import Scope, cells_needed
from sfumato.release.synthetic.plans import plan_names
from sfumato.release.synthetic.start import start_scopes

__all__ = ["as_whole", "check_lists", "check_numbers", "check_people", "check_plan", "check_promise", "check_workload"]

#: More rows than anybody makes or has: beyond it memory or floating-point numbers would end after the noise was drawn.
_MOST_ROWS = 10**9
#: Of a whole promise: its smallest part is drawn exactly still.
_LEAST_MU = 1e-8
#: Cells of the model's tables: half a gigabyte for each pass over them.
_MOST_TOGETHER = 1 << 26


def as_whole(value: Any) -> Any:
    """numpy's whole numbers as Python's; everything else as it is."""
    return int(value) if isinstance(value, np.integer) else value


def check_promise(epsilon: float, delta: float) -> None:
    """Refuse what drowns everything, before the exact sampler refuses a part of it once others are drawn."""
    if gaussian_mu(epsilon, delta) < _LEAST_MU:
        raise PrivacyParameterError(
            f"With ε = {epsilon:g} and δ = {delta:g} the noise on every count would be above a hundred million, and "
            "nothing could be measured: take a larger ε or δ. Nothing was spent."
        )


def check_numbers(rows: Any, rows_per_person: Any, edges_share: Any, random_state: Any) -> None:
    """Refuse numbers that are none, or such as fail once noise is drawn."""
    for name, value in (("rows", 1 if rows is None else rows), ("rows_per_person", rows_per_person)):
        if not _is_whole(value) or not 1 <= value <= _MOST_ROWS:
            raise PrivacyParameterError(
                f"{name} must be a whole number of at least 1 and at most {_MOST_ROWS:,}. Nothing was spent."
            )
    if edges_share is not None and not _is_part(edges_share):
        raise PrivacyParameterError("edges_share must be a number from 0 to below 1. Nothing was spent.")
    if not (random_state is None or isinstance(random_state, Elsewhere) or _is_whole(random_state)):
        raise PrivacyParameterError("random_state must be a whole number or None. Nothing was spent.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_part(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


def check_lists(workload: Any, absent: Any, edges: Any, whole: Any = ()) -> None:
    """Refuse a text where several names are meant, which would be read as names of one letter."""
    if workload is not None and not (_is_list(workload) and all(_is_list(pair) for pair in workload)):
        raise SchemaError('workload lists pairs of columns, such as [["age", "job"]]. Nothing was spent.')
    for word, names in (("absent", absent), ("whole", whole)):
        if not _is_list(names):
            raise SchemaError(f'{word} lists columns, such as ["age"]. Nothing was spent.')
    if not isinstance(edges, Mapping):
        raise SchemaError('edges are given column by column, such as {"age": [0, 18, 65, 110]}. Nothing was spent.')


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def check_people(people: str | None, rows_per_person: int, schema: Schema) -> None:
    """Refuse several rows of nobody, and people who would be published."""
    if rows_per_person > 1 and people is None:
        raise SchemaError("rows_per_person needs people, the column that says whose a row is. Nothing was spent.")
    if people in schema.columns:
        raise SchemaError(f"{people} names people: leave it out of the schema. Nothing was spent.")


def check_plan(wished: str | None, sizes: Sequence[int], label: int | None) -> None:
    """Refuse a plan that does not exist, or not for so few or so many columns."""
    known = plan_names(sizes, label)
    if wished is not None and wished not in known:
        raise PrivacyParameterError(f"There is no plan {wished!r} here, only {', '.join(known)}. Nothing was spent.")


def check_workload(
    scopes: Sequence[Scope], sizes: Sequence[int], label: int | None, combinations: Sequence[Scope]
) -> None:
    """Refuse what is no pair, or too large a one; and what no memory holds together, with what cannot come together."""
    for scope in scopes:
        if len(set(scope)) != 2 or scope not in pairs_within(sizes, (), scopes):
            raise SchemaError(
                f"workload lists pairs of different columns with at most {MOST_CELLS} cells. Nothing was spent."
            )
    first = start_scopes(len(sizes), label, pairs_within(sizes, () if label is None else (label,), scopes))
    needed = cells_needed(sizes, [*first, *scopes, *combinations])
    if (scopes or combinations) and needed > _MOST_TOGETHER:
        raise SchemaError(
            f"To keep the pairs of workload and the impossible combinations together takes a table of {needed:.1g} "
            f"cells, and at most {_MOST_TOGETHER:.1g} are held: name fewer, or fewer levels. Nothing was spent."
        )
