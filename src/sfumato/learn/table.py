"""Tables and labels as training needs them, or a refusal that quotes no value.

In:   numpy, pandas, polars, Arrow, scipy sparse; labels; what was declared about them.
Out:  a float64 matrix; labels as whole numbers with their public list.
Not here: public bounds (learn/bounds.py), one-hot encoding (learn/encoder.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_n_features, column_or_1d, validate_data

from sfumato.errors import DataError
from sfumato.learn.encoder import SchemaEncoder

__all__ = ["checked_labels", "checked_matrix", "declared_classes", "refuse_extras"]


def checked_matrix(estimator: Any, table: Any, *, reset: bool) -> Any:
    """A float64 matrix, C-contiguous or CSR, without NaN; with a schema the encoded table."""
    schema = getattr(estimator, "schema", None)
    if schema is not None:
        matrix = SchemaEncoder(schema).fit(None).transform(table)
        _check_n_features(estimator, matrix, reset=reset)
    elif type(table).__module__.startswith("polars"):
        matrix = _validated(estimator, table.to_numpy(), reset)
    else:
        matrix = _validated(estimator, table, reset)
    return matrix


def _validated(estimator: Any, table: Any, reset: bool) -> Any:
    try:
        matrix: Any = validate_data(estimator, table, reset=reset, accept_sparse="csr", dtype=np.float64, order="C")
    except (ValueError, TypeError) as error:
        if isinstance(error, TypeError):
            raise
        # scikit-learn's texts name shapes and kinds, never values.
        raise DataError(f"{error} Nothing was spent.") from error
    if sparse.issparse(matrix) and matrix.nnz and not np.isfinite(matrix.data).all():
        raise DataError("X contains NaN or infinity. Nothing was spent.")
    return matrix


def declared_classes(classes: Any) -> np.ndarray | None:
    """The declared list of labels as an array, checked to be a list of at least two different ones."""
    if classes is None:
        return None
    declared = np.asarray(classes)
    if declared.ndim != 1 or declared.size < 2 or np.unique(declared).size != declared.size:
        raise DataError("classes must list at least two different labels. Nothing was spent.")
    return np.sort(declared)


def checked_labels(labels: Any, rows: int, declared: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Labels as positions in the public list of classes, and that list.

    Without `classes=` the labels that occur are taken to be public. With it, a missing class is no error: to say that
    it is missing would tell something about the data.
    """
    if labels is None:
        raise DataError("fit requires y to be passed, but the target y is None. Nothing was spent.")
    try:
        column = column_or_1d(labels.to_numpy() if hasattr(labels, "to_numpy") else labels, warn=True)
        if declared is None:  # with declared classes nothing may depend on which labels occur, not even a warning
            check_classification_targets(column)
    except ValueError as error:
        raise DataError(f"{error} Nothing was spent.") from error
    if column.shape[0] != rows:
        raise DataError(f"X has {rows} rows and y has {column.shape[0]} labels. Nothing was spent.")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise DataError("y contains NaN or infinity. Nothing was spent.")
    found, positions = np.unique(column, return_inverse=True)
    if declared is None:
        if found.size < 2:
            raise DataError(
                "Classifier can't train when only one class is present: y holds a single label. Declare all labels "
                "with classes=[…] if others are possible. Nothing was spent."
            )
        return positions, found
    places = np.searchsorted(declared, found)
    known = (places < declared.size) & (declared[np.minimum(places, declared.size - 1)] == found)
    if not known.all():
        raise DataError(
            f"y holds more classes than the {declared.size} declared in classes=. Declare them all, or map unknown "
            "labels to a declared one first. Nothing was spent."
        )
    return places[positions], declared


def refuse_extras(given: dict[str, Any]) -> None:
    """`sample_weight` and anything else that `fit` does not take."""
    if given.get("sample_weight") is not None:
        raise DataError(
            "sample_weight is not supported: a record of weight w moves the solution w times as far, and weights "
            "computed from the data are themselves private. Nothing was spent."
        )
    unknown = sorted(set(given) - {"sample_weight"})
    if unknown:
        raise TypeError(f"fit takes X and y only, not {', '.join(unknown)}. Nothing was spent.")
