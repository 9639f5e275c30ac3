"""A matrix of features on a device that solvers of the host can use: only products travel.

In:   a device matrix.
Out:  DeviceFeatures: products with vectors of the host, weighted Gram matrices; sums of the features of each class.
Not here: rows of norm 1 for linear models (learn/device_rows.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.learn.arrays import namespace, shaped, summed, taken, to_device, to_host, turned
from sfumato.learn.rows import BLOCK

__all__ = ["DeviceFeatures", "Features", "device_class_sums", "weighted_gram"]


class DeviceFeatures:
    """Looks like a numpy matrix to code that multiplies it with vectors, slices rows and asks for its size.

    >>> there = DeviceFeatures(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> there @ np.array([1.0, 0.0]), np.array([1.0, 0.0]) @ there, len(there)
    (array([1., 3.]), array([1., 2.]), 2)
    """

    __array_ufunc__ = None  # numpy's own @ then leaves the product to us

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape = tuple(int(size) for size in matrix.shape)
        self.size = self.shape[0] * self.shape[1]
        self.dtype = np.dtype(str(matrix.dtype).rpartition(".")[2])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Some rows stay on the device; a single one comes to the host."""
        if isinstance(rows, int | np.integer):
            return to_host(self.matrix[int(rows), ...])
        if isinstance(rows, slice):
            return DeviceFeatures(self.matrix[slice(*rows.indices(len(self))), ...])
        places = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        library = namespace(self.matrix)
        chosen = places if library is np else library.asarray(places, device=self.matrix.device)
        return DeviceFeatures(taken(self.matrix, chosen))

    def astype(self, kind: Any) -> DeviceFeatures:
        library = namespace(self.matrix)
        wanted = library.float32 if np.dtype(kind) == np.float32 else library.float64
        return DeviceFeatures(library.asarray(self.matrix, dtype=wanted))

    def _there(self, vector: np.ndarray) -> Any:
        return namespace(self.matrix).asarray(to_device(vector, self.matrix), dtype=self.matrix.dtype)

    def __matmul__(self, vector: np.ndarray) -> np.ndarray:
        return to_host(self.matrix @ self._there(vector))

    def __rmatmul__(self, vector: np.ndarray) -> np.ndarray:
        return to_host(self._there(vector) @ self.matrix)

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """Σ weight·row·rowᵀ for weights ≥ 0, in the matrix's precision, on the host."""
        scaled = self.matrix * namespace(self.matrix).sqrt(self._there(weights))[:, None]
        return to_host(turned(scaled) @ scaled)


#: What the solvers of the host multiply with vectors. `Any`: numpy's types do not know the products above.
Features = Any


def weighted_gram(features: Features, weights: np.ndarray) -> np.ndarray:
    """Σ weight·row·rowᵀ for weights ≥ 0."""
    if isinstance(features, DeviceFeatures):
        return features.weighted_gram(weights)
    scaled = features * np.sqrt(weights)[:, None]
    return scaled.T @ scaled  # one matrix twice: half the work of a general product


def device_class_sums(features: Any, codes: Any, classes: int) -> np.ndarray:
    """Σ of the features of each class, on the host; blocks as learn/rows.py cuts them bound the rounding."""
    library, rows = namespace(features), int(features.shape[0])
    members = library.stack([library.asarray(codes == code, dtype=features.dtype) for code in range(classes)])
    total = np.zeros((classes, int(features.shape[1])))
    whole = rows // BLOCK * BLOCK
    if whole:
        stack = shaped(features[:whole, :], whole // BLOCK, BLOCK, -1)
        chosen = library.moveaxis(shaped(members[:, :whole], classes, whole // BLOCK, BLOCK), 0, 1)
        total += to_host(summed(chosen @ stack, 0))
    if whole < rows:
        total += to_host(members[:, whole:] @ features[whole:, :])
    return total
