"""Tables and labels as training needs them, or a refusal that quotes no value.

In:   numpy, pandas, polars, Arrow, scipy sparse; labels; what was declared about them.
Out:  a float64 matrix; labels as whole numbers with their public list.
Not here: public bounds (learn/bounds.py), one-hot encoding (learn/encoder.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_n_features, column_or_1d, validate_data

from sfumato.errors import DataError
from sfumato.learn.asked import as_fitted
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.rows import canonical
from sfumato.learn.traces import warn_of_scaling

__all__ = [
    "checked_labels",
    "checked_matrix",
    "declared_classes",
    "knows_its_size",
    "label_above_zero",
    "label_places",
    "plain_cells",
    "refuse_extras",
    "unknown_labels",
    "without_values",
]


def checked_matrix(estimator: Any, table: Any, *, reset: bool) -> Any:
    """A float64 matrix, C-contiguous or CSR, without NaN; with a schema the encoded table."""
    schema = getattr(as_fitted(estimator), "schema", None)
    if schema is not None:
        matrix = SchemaEncoder(schema).fit(None).transform(table)
        if reset and not len(matrix) and knows_its_size(estimator):
            raise DataError("X has no rows, so there is nothing to learn from. Nothing was spent.")
        _check_n_features(estimator, matrix, reset=reset)
    else:
        matrix = _validated(estimator, table, reset)
    return matrix


def _refuse_double_names(table: Any) -> None:
    seen: set[Any] = set()
    for name in getattr(table, "columns", ()) if hasattr(table, "iloc") else ():
        if name in seen:
            raise DataError(
                f"X has two columns of one name, {str(name)!r}, and a model is told its columns by name. Give each a "
                "name of its own. Nothing was spent."
            )
        seen.add(name)


def _validated(estimator: Any, table: Any, reset: bool) -> Any:
    _refuse_double_names(table)

    def read() -> Any:
        with np.errstate(over="ignore", invalid="ignore"):  # a sum that looks for NaN: no warning tells of large cells
            least = 1 if reset and knows_its_size(estimator) else 0
            kept: Any = {"accept_sparse": "csr", "dtype": np.float64, "order": "C", "ensure_min_samples": least}
            return validate_data(estimator, table, reset=reset, **kept)

    matrix = canonical(without_values("X", read))
    if sparse.issparse(matrix) and matrix.nnz and not np.isfinite(matrix.data).all():
        raise DataError("X contains NaN or infinity. Nothing was spent.")
    if reset and not vars(estimator).get("_inside"):  # features that another estimator made are no columns
        warn_of_scaling(matrix)
    return matrix


def knows_its_size(estimator: Any) -> bool:
    """Whether a fit of no rows may be refused: where their number is private, somebody may have been the only one."""
    return getattr(getattr(estimator, "adjacency", None), "relation", "replace-one") == "replace-one"


Read = TypeVar("Read")

#: More classes than these are refused.
_MOST_CLASSES = 10_000
_NO_NUMBER = "holds a cell that is not a number: clean it, or declare a schema."
NO_TARGET = "holds a cell that is not a number: a target is a number in every row. Of words learn a classifier."
ABSENT_TARGET = (
    "y contains NaN or infinity: a target is a number in every row. Replace such cells by a public value, or leave "
    "rows out by a rule that looks at one row alone. Nothing was spent."
)
_NO_LABEL = (
    "holds an absent label, or labels of different kinds such as words and numbers. Give every row a label, absent "
    "ones a word of their own, and write them all as one kind."
)

#: How scikit-learn's messages begin that name shapes, kinds or public names, and no value.
_ABOUT_SHAPES = (
    "Found array with",
    "Found input variables",
    "Input ",
    "X has ",
    "X does not ",
    "The feature names should match",
    "Feature names",
    "y should be a 1d array",
    "Unknown label type",
    "Supported target types",
    "This ",
    "Sparse data was passed",
    "Dense data was passed",
)


def without_values(what: str, read: Callable[[], Read], unreadable: str = _NO_NUMBER) -> Read:
    """What `read` returns; its errors about `what` in words of our own, since other libraries quote the cell.

    `unreadable` is said of a cell of the wrong kind. The new error is raised after the handler, so that not even its
    context holds the old one.
    """
    kind: type[Exception] = DataError
    try:
        return read()
    except ValueError as error:
        words = _words(what, str(error), unreadable)
    except OverflowError:  # a whole number beyond all floats
        words = f"{what} contains NaN or infinity."
    except TypeError as error:
        kind = TypeError
        words = str(error) if str(error).startswith(_ABOUT_SHAPES) else _words(what, str(error), unreadable)
    raise kind(f"{words} Nothing was spent.")


def _words(what: str, text: str, unreadable: str) -> str:
    if text.startswith("Expected 2D array"):
        return (
            "Expected 2D array, got another shape instead. Reshape your data either using array.reshape(-1, 1) if your "
            "data has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    if text.startswith("Complex data not supported"):
        return "Complex data not supported."
    if text.startswith("Input ") and "contains" in text and ("NaN" in text or "infinity" in text):
        return (
            f"{what} contains NaN or infinity. Declare a schema, where Interval(low, high, null=…) says what stands "
            "for an absent cell, or replace such cells by a public value first. Leaving out rows because a cell is "
            "absent is a decision about people: make it by a rule that looks at one row alone."
        )
    if text.startswith("Unknown label type: unknown"):  # scikit-learn guesses at a regression
        return (
            f"Unknown label type: {what} is a column of Python objects that are no words: it {unreadable} Where none "
            "is absent give it a type (astype(int), astype(str)), or declare classes=[…]."
        )
    if text.startswith(_ABOUT_SHAPES):
        return text
    if "argument must be" in text:
        return f"{what} holds an object that is no number: the argument must be a string or a number in every cell."
    return f"{what} {unreadable}"


def plain_cells(column: Any) -> Any:
    """Labels or targets of pandas, polars or Arrow as numpy knows them; everything else as it is.

    >>> import pyarrow as pa
    >>> plain_cells(pa.array(["yes", "no"])).tolist()
    ['yes', 'no']
    """
    if isinstance(column, pa.Array):  # which hands words over only when it may copy them
        return column.to_numpy(zero_copy_only=False)
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def declared_classes(classes: Any) -> np.ndarray | None:
    """The declared list of labels as an array, checked to be a list of at least two different ones."""
    if classes is None:
        return None
    declared = np.asarray(classes)
    if declared.ndim != 1 or declared.size < 2 or np.unique(declared).size != declared.size:
        raise DataError("classes must list at least two different labels. Nothing was spent.")
    _check_number(declared.size)
    return np.sort(declared)


def label_above_zero(classes: Any) -> Any:
    """The label that a score above 0 speaks for: the later of two in the order of their values, however declared.

    None of more than two, where each has its own score.

    >>> label_above_zero(["no", "ja"]), label_above_zero(["ja", "no"]), label_above_zero([1, 2, 3])
    ('no', 'no', None)
    """
    declared = declared_classes(classes)
    return declared.tolist()[1] if declared is not None and declared.size == 2 else None


def _check_number(classes: int) -> None:
    if classes > _MOST_CLASSES:
        raise DataError(
            f"There are {classes} different labels, and at most {_MOST_CLASSES} can be learned: all of them are held "
            "in memory for every row. Group them into fewer. Nothing was spent."
        )


def checked_labels(labels: Any, rows: int, declared: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Labels as positions in the public list of classes, and that list.

    Without `classes=` the labels that occur are taken to be public. With it, a missing class is no error: to say that
    it is missing would tell something about the data.
    """
    if labels is None:
        raise DataError("fit requires y to be passed, but the target y is None. Nothing was spent.")

    def read() -> np.ndarray:
        column = column_or_1d(plain_cells(labels), warn=True)
        if declared is None:  # with declared classes nothing may depend on which labels occur, not even a warning
            check_classification_targets(column)
        return column

    column = without_values("y", read, _NO_LABEL)
    if column.shape[0] != rows:
        raise DataError(f"X has {rows} rows and y has {column.shape[0]} labels. Nothing was spent.")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise DataError("y contains NaN or infinity. Nothing was spent.")
    found, positions = _different(column)
    if declared is None:
        if found.size < 2:
            raise DataError(
                "Classifier can't train when only one class is present: y holds a single label. Declare all labels "
                "with classes=[…] if others are possible. Nothing was spent."
            )
        _check_number(found.size)
        return positions, found
    places = label_places(declared, found.tolist())
    known = places < declared.size
    if not known.all():
        raise unknown_labels(declared.size)
    return places[positions], declared


def _different(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels that occur, sorted, and which one each row has; labels of different kinds have no order."""
    try:
        return np.unique(column, return_inverse=True)
    except TypeError:
        pass
    raise DataError(f"y {_NO_LABEL} Nothing was spent.")


def label_places(declared: np.ndarray, found: Iterable[Any]) -> np.ndarray:
    """Where each label stands in the declared list, or the list's length for a stranger."""
    places = {label: place for place, label in enumerate(declared.tolist())}
    known = (places.get(label, declared.size) if isinstance(label, Hashable) else declared.size for label in found)
    return np.fromiter(known, dtype=np.intp)


def unknown_labels(declared: int) -> DataError:
    """The error for a label that was not declared."""
    return DataError(
        f"y holds a label that is not among the {declared} declared in classes=, or that is written otherwise there: "
        "the number 1 is not the word '1'. Declare all labels as y writes them, or map unknown ones to a declared one "
        "first. Nothing was spent."
    )


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
