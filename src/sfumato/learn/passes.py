"""Tables that are gone through by sums: what every fit asks of its rows, wherever they lie.

In:   a matrix of the host or a device with its target; or anything else that can sum a statistic over its rows.
Out:  ArrayPasses; bounds and names that fits take from Passes.
Not here: files and clusters (run/engine/fit.py), the statistics (learn/stream_sums.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.learn.arrays import as_matrix
from sfumato.learn.bounds import NormBound, settle_bounds
from sfumato.learn.features import refuse_on_device
from sfumato.learn.seeds import Seeds
from sfumato.learn.stream_sums import JointSums, MarginSums, NormCounts, Passes, SumOfRows
from sfumato.learn.table import knows_its_size

__all__ = ["ArrayPasses", "Passes", "bounds_by_sums", "device_matrix", "remember_columns"]


class ArrayPasses:
    """A matrix on the host or a device and its labels or targets, gone through at once."""

    def __init__(self, matrix: Any, target: Any) -> None:
        self._matrix, self._target = matrix, target
        self._prepared: tuple[Any, Any] | None = None

    @property
    def rows(self) -> int:
        return int(self._matrix.shape[0])

    @property
    def columns(self) -> int:
        return int(self._matrix.shape[1])

    def total(self, statistic: SumOfRows) -> list[np.ndarray]:
        if not isinstance(statistic, MarginSums | JointSums):
            return statistic(self._matrix, self._target)
        # Norms and random features are the same in every pass: rows are prepared once.
        key = (statistic.shape, statistic.features)
        if self._prepared is None or self._prepared[0] != key:
            self._prepared = (key, statistic.prepared(self._matrix))
        return statistic.of(self._prepared[1], self._target)

    def check_unchanged(self) -> None:
        """Whoever holds the matrix does not change it during a fit, as for any array."""


def bounds_by_sums(estimator: Any, passes: Passes, epsilon: float, seeds: Seeds) -> NormBound:
    """The norm of rows: declared, or bought by counting rows in one pass."""

    def counts() -> tuple[np.ndarray, int]:
        covered, rows = passes.total(NormCounts())
        passes.check_unchanged()
        return covered, int(rows)

    return settle_bounds(
        counts, estimator.norm, estimator.schema, epsilon, estimator.spend_on_bounds, estimator.adjacency, seeds
    )


def remember_columns(estimator: Any, passes: Passes) -> int:
    """How many numbers a row has; and their names, where training saw a table of plain numbers."""
    schema, columns = getattr(estimator, "schema", None), passes.columns
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if schema is not None:
        estimator.n_features_in_ = schema.width
    elif isinstance(columns, int):
        estimator.n_features_in_ = columns
    else:
        estimator.n_features_in_ = len(columns)
        estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    return estimator.n_features_in_


def device_matrix(estimator: Any, X: Any) -> Any:
    """A checked matrix on its device, its columns remembered by the estimator."""
    if getattr(estimator, "schema", None) is not None:
        raise InputError(
            "A schema describes tables with names, and an array on a device has none. Encode first (SchemaEncoder), "
            "then pass norm= and the encoded array. Nothing was spent."
        )
    refuse_on_device(getattr(estimator, "kernel", None))
    matrix = as_matrix(X, some_rows=knows_its_size(estimator))
    remember_columns(estimator, ArrayPasses(matrix, None))
    return matrix
