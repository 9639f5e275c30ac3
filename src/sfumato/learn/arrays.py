"""Arrays of other libraries: numpy on the host, torch and CuPy on a device.

In:   an array of any of them.
Out:  the library's namespace, a copy on the host, the few functions whose names differ.
Not here: arithmetic that only numpy needs. No library is imported here: an array of it can only exist if its owner
      imported it.

The names used elsewhere (abs, clip, cos, exp, full_like, hypot, minimum, sin, sqrt, where, zeros_like, …) mean the same
in all three. Privacy noise is never drawn on a device: mechanisms take and give numpy arrays.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import special

from sfumato.errors import DataError

__all__ = ["as_matrix", "expit", "in_box", "is_device_array", "namespace", "to_device", "to_host"]


def _library(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def is_device_array(array: Any) -> bool:
    """Whether this is a torch tensor or a CuPy array, wherever it lies.

    >>> is_device_array(np.zeros(3))
    False
    """
    return (_library(array) == "torch" and hasattr(array, "detach")) or (
        _library(array) == "cupy" and hasattr(array, "get")
    )


def namespace(array: Any) -> Any:
    """The module that computes with this array.

    >>> namespace(np.zeros(3)).__name__
    'numpy'
    """
    return sys.modules[_library(array)] if is_device_array(array) else np


def to_host(array: Any) -> np.ndarray:
    """A numpy array of the same numbers."""
    if not is_device_array(array):
        return np.asarray(array)
    return array.get() if _library(array) == "cupy" else array.detach().cpu().numpy()


def to_device(values: Any, like: Any) -> Any:
    """Numbers of the host as an array of double precision beside `like`."""
    if not is_device_array(like):
        return np.asarray(values, dtype=np.float64)
    library = namespace(like)
    if _library(like) == "cupy":
        with like.device:
            return library.asarray(values, dtype=library.float64)
    return library.asarray(np.ascontiguousarray(values), dtype=library.float64, device=like.device)


def expit(values: Any) -> Any:
    """1/(1 + e^-z), within a few units in the last place.

    >>> float(expit(np.array([0.0]))[0])
    0.5
    """
    if not is_device_array(values):
        return special.expit(values)
    if _library(values) == "torch":
        return values.sigmoid()
    return 1 / (1 + namespace(values).exp(-values))  # e^-z may overflow to infinity, whose reciprocal is right


def as_matrix(array: Any) -> Any:
    """A device matrix of double precision without NaN or infinity."""
    library = namespace(array)
    if array.ndim != 2 or 0 in tuple(array.shape):
        raise DataError("X must be a matrix with at least one row and one column. Nothing was spent.")
    matrix = array.detach() if _library(array) == "torch" else array
    matrix = matrix.double() if _library(array) == "torch" else matrix.astype(library.float64)
    if not bool(library.isfinite(matrix).all()):
        raise DataError("X contains NaN or infinity. Nothing was spent.")
    return matrix


def in_box(matrix: Any, box: tuple[np.ndarray, np.ndarray] | None) -> Any:
    """Rows clipped to the box and scaled to [-1, 1]; as they are without a box."""
    if box is None:
        return matrix
    low, high = (to_device(end, matrix) for end in box)
    return (namespace(matrix).clip(matrix, low, high) - (low + (high - low) / 2)) / ((high - low) / 2)
