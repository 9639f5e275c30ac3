"""Arrays of other libraries: numpy on the host, torch, CuPy and any library of the array API standard on a device.

In:   an array of any of them.
Out:  the library's namespace, a copy on the host, the few functions whose names differ.
Not here: arithmetic that only numpy needs. No library is imported here: an array of it can only exist if its owner
      imported it.

The names used elsewhere (abs, clip, cos, exp, full_like, minimum, sin, sqrt, stack, where, zeros_like, …) mean the same
in all of them; sums, shapes and joins go through the functions below, because methods are no part of the standard. A
library that has nothing but the standard (array-api-strict) runs this path in the tests of every machine. Privacy noise
is never drawn on a device: mechanisms take and give numpy arrays.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import special

from sfumato.errors import DataError

__all__ = [
    "all_hold",
    "as_matrix",
    "expit",
    "in_box",
    "is_device_array",
    "joined",
    "largest",
    "namespace",
    "place_of_largest",
    "shaped",
    "summed",
    "taken",
    "to_device",
    "to_host",
    "turned",
]


def _library(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def is_device_array(array: Any) -> bool:
    """Whether this is a torch tensor, a CuPy array or another array of the standard, wherever it lies.

    >>> is_device_array(np.zeros(3))
    False
    """
    if isinstance(array, np.ndarray | np.generic):
        return False
    return (_library(array) == "torch" and hasattr(array, "detach")) or hasattr(type(array), "__array_namespace__")


def namespace(array: Any) -> Any:
    """The module that computes with this array.

    >>> namespace(np.zeros(3)).__name__
    'numpy'
    """
    if not is_device_array(array):
        return np
    return sys.modules[_library(array)] if _library(array) in ("torch", "cupy") else array.__array_namespace__()


def to_host(array: Any) -> np.ndarray:
    """A numpy array of the same numbers."""
    if not is_device_array(array):
        return np.asarray(array)
    if _library(array) == "torch":
        return array.detach().cpu().numpy()
    return array.get() if _library(array) == "cupy" else np.array(np.from_dlpack(array))


def to_device(values: Any, like: Any) -> Any:
    """Numbers of the host as an array of double precision beside `like`."""
    if not is_device_array(like):
        return np.asarray(values, dtype=np.float64)
    library = namespace(like)
    if _library(like) == "cupy":
        with like.device:
            return library.asarray(values, dtype=library.float64)
    return library.asarray(np.ascontiguousarray(values, dtype=np.float64), dtype=library.float64, device=like.device)


def summed(array: Any, axis: int | None = None) -> Any:
    """Σ along an axis, or of everything."""
    return namespace(array).sum(array) if axis is None else namespace(array).sum(array, axis=axis)


def largest(array: Any, axis: int) -> Any:
    """The largest number along an axis."""
    library = namespace(array)
    return library.amax(array, axis) if _library(array) == "torch" else library.max(array, axis=axis)


def place_of_largest(array: Any, axis: int) -> Any:
    """Where the largest number along an axis stands."""
    library = namespace(array)
    return library.argmax(array, axis) if _library(array) == "torch" else library.argmax(array, axis=axis)


def all_hold(conditions: Any) -> bool:
    """Whether every condition holds."""
    return bool(namespace(conditions).all(conditions))


def shaped(array: Any, *shape: int) -> Any:
    """The same numbers in the same order, cut otherwise."""
    return namespace(array).reshape(array, shape)


def taken(array: Any, places: Any) -> Any:
    """Some rows, by their places."""
    library = namespace(array)
    return array[places] if _library(array) == "torch" else library.take(array, places, axis=0)


def turned(array: Any) -> Any:
    """The last two axes changed places."""
    return namespace(array).swapaxes(array, -1, -2) if _library(array) == "cupy" else array.mT


def joined(arrays: list[Any], axis: int = 0) -> Any:
    """One after the other."""
    library = namespace(arrays[0])
    return (library.concatenate if _library(arrays[0]) == "cupy" else library.concat)(arrays, axis=axis)


def expit(values: Any) -> Any:
    """1/(1 + e^-z), within a few units in the last place.

    >>> float(expit(np.array([0.0]))[0])
    0.5
    """
    if not is_device_array(values):
        return special.expit(values)
    if _library(values) == "torch":
        return values.sigmoid()
    with np.errstate(over="ignore"):  # e^-z may overflow to infinity, whose reciprocal is right
        return 1 / (1 + namespace(values).exp(-values))


def as_matrix(array: Any, *, some_rows: bool = False) -> Any:
    """A device matrix of double precision without NaN or infinity, and with rows where it has to have some."""
    library = namespace(array)
    if array.ndim != 2 or not array.shape[1] or (some_rows and not array.shape[0]):
        raise DataError("X must be a matrix with at least one row and one column. Nothing was spent.")
    matrix = array.detach() if _library(array) == "torch" else array
    matrix = library.asarray(matrix, dtype=library.float64)
    if not all_hold(library.isfinite(matrix)):
        raise DataError("X contains NaN or infinity. Nothing was spent.")
    return matrix


def in_box(matrix: Any, box: tuple[np.ndarray, np.ndarray] | None) -> Any:
    """Rows clipped to the box and scaled to [-1, 1]; as they are without a box."""
    if box is None:
        return matrix
    low, high = (to_device(end, matrix) for end in box)
    return (namespace(matrix).clip(matrix, low, high) - (low + (high - low) / 2)) / ((high - low) / 2)
