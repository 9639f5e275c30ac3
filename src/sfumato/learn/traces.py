"""Traces that a fitted scaler leaves in the columns it hands on.

In:   the matrix that a private fit was given.
Out:  PrivacyLeakWarning, for the curator alone, where a column is centred on its own mean or ends at its own extremes.
Not here: steps that can be asked (learn/steps.py).

An estimator inside a scikit-learn Pipeline is handed numbers and cannot see the steps before it. But a StandardScaler
leaves columns whose mean is zero to the last digit, a MinMaxScaler columns that begin and end exactly at 0 and 1: rare
in columns that were scaled by public numbers. It is a guess from the values: it finds neither every scaler nor any
encoder, and it decides about nothing that is published, since that would depend on private values.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.learn.lineage import PrivacyLeakWarning

__all__ = ["scaled_by_itself", "warn_of_centring", "warn_of_scaling"]

#: Fewer rows, or fewer different values in the first rows of a column, prove nothing: balanced designs are centred too.
_LEAST_ROWS, _LEAST_VALUES = 20, 8
#: So many rows are looked at before all are: a centred column has a small mean there as well.
_FIRST = 2048
_SIGMAS, _EXACT, _CLOSE = 8.0, 1e-11, 1e-12


def warn_of_scaling(matrix: Any) -> None:
    """A PrivacyLeakWarning if columns look as if a scaler had been fitted on these very rows."""
    if scaled_by_itself(matrix):
        warnings.warn(
            "Columns of X are centred on their own mean, or end exactly at their own extremes, as after a fitted "
            "StandardScaler, PCA or MinMaxScaler. Such a step publishes means and ends of private columns unpaid, and "
            "the guarantee does not cover it. Scale by public numbers: sfumato.learn.SchemaEncoder(schema) in "
            "sfumato.learn.make_pipeline(…), which refuses steps that learn. This is a guess from the values, for the "
            "curator alone; nothing is spent yet.",
            PrivacyLeakWarning,
            stacklevel=8,
        )


def warn_of_centring(target: np.ndarray) -> None:
    """A PrivacyLeakWarning if a target looks as if a scaler had been fitted on these very numbers."""
    if scaled_by_itself(target[:, None]):
        warnings.warn(
            "y is centred on its own mean, as after a fitted StandardScaler (TransformedTargetRegressor fits one). It "
            "publishes the mean and the spread of private targets unpaid, and the guarantee does not cover it. State "
            "target=(low, high) in the unit of y, and hand it over as it is: a private mean comes first anyway. This "
            "is a guess from the values, for the curator alone; nothing is spent yet.",
            PrivacyLeakWarning,
            stacklevel=6,
        )


def scaled_by_itself(matrix: Any) -> bool:
    """Whether some column is centred to the last digit, or all columns run exactly from 0 (or -1) to 1.

    >>> column = np.random.default_rng(0).normal(size=(50, 1))
    >>> scaled_by_itself(column), scaled_by_itself(column - column.mean())
    (False, True)
    """
    if sparse.issparse(matrix) or matrix.shape[0] < _LEAST_ROWS or not matrix.shape[1]:
        return False
    first = matrix[:_FIRST]
    with np.errstate(over="ignore", invalid="ignore"):
        many = np.array([np.unique(column[:100]).size >= _LEAST_VALUES for column in first.T])
        deviation = first.std(axis=0)
        near = many & (np.abs(first.mean(axis=0)) <= _SIGMAS * deviation / np.sqrt(len(first))) & (deviation > 0)
        return bool(near.any() and _centred(matrix, first, near)) or _end_to_end(matrix, first, many)


def _end_to_end(matrix: Any, first: Any, many: np.ndarray) -> bool:
    if many.sum() < 2 or first[:, many].min() < -1 - _CLOSE or first[:, many].max() > 1 + _CLOSE:
        return False
    lows, highs = matrix.min(axis=0)[many], matrix.max(axis=0)[many]
    low = 0.0 if abs(lows[0]) < _CLOSE else -1.0
    return bool((np.abs(highs - 1) < _CLOSE).all() and (np.abs(lows - low) < _CLOSE).all())


def _centred(matrix: np.ndarray, first: np.ndarray, near: np.ndarray) -> bool:
    """Whether the mean of one of these columns is zero to the last digits; one pass over the rows as they lie."""
    return bool((np.abs(matrix.mean(axis=0)) <= _EXACT * np.abs(first).mean(axis=0))[near].any())
