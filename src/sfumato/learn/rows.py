"""Private rows inside the unit ball, without a copy of the table.

In:   a matrix (dense or scipy sparse), a public norm bound, the share of the norm given to a constant feature.
Out:  UnitRows: products with the rows as training sees them, each of norm at most 1.
Not here: who chose the bound (learn/bounds.py), tables with names (learn/encoder.py).

A row longer than `norm` is shortened to it. Shorter rows are left alone or, with `stretch`, lengthened to norm 1 with
their constant: the sign of a linear score does not change by that, and no part of the noise is paid for nothing.
Both are functions of the record and of public numbers only. The factors are kept beside the matrix, so no scaled copy
is ever made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["BLOCK", "UnitRows"]

#: Rows summed at a time: bounds rounding error and scratch memory.
BLOCK = 2048
_SHORTEST = 2.0**-40


class UnitRows:
    """The rows s_i·(a_i·x_i, constant), a_i = share·min(1/norm, 1/‖x_i‖), share² + constant² = 1; s_i = 1 or stretches.

    >>> rows = UnitRows(np.array([[3.0, 4.0], [0.3, 0.4]]), norm=1.0)
    >>> [round(float(m), 9) for m in rows.times(np.array([1.0, 0.0]))]
    [0.6, 0.3]
    """

    def __init__(
        self, matrix: Any, norm: float, constant: float = 0.0, *, stretch: bool = False, nonzeros: int | None = None
    ) -> None:
        self.matrix, self.constant = matrix, constant
        self.rows, self.columns = matrix.shape
        self.width = self.columns + (constant > 0)
        # Squares, their sum, the root and the quotient err by less than columns + 8 units in the last place.
        share = math.sqrt(1 - constant * constant) * (1 - (self.columns + 16) * 2.0**-52)
        self.largest = share / norm
        norms = self._norms()
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.factor = np.minimum(self.largest, share / norms)
            self._stretch = None
            if stretch:
                lengths = np.hypot(self.factor * norms, constant) * (1 + 16 * 2.0**-52)
                # Rows shorter than this stay short: far below it floating point no longer knows their length.
                self._stretch = 1 / np.maximum(lengths, _SHORTEST)
            if nonzeros is not None:
                self._clip_sums(nonzeros)

    def _norms(self) -> np.ndarray:
        if sparse.issparse(self.matrix):
            return np.sqrt(np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel())
        squares = np.einsum("ij,ij->i", self.matrix, self.matrix)
        norms = np.sqrt(squares)
        for row in np.flatnonzero(~((squares > 1e-280) & (squares < 1e280))):  # under- and overflow of the squares
            largest = float(np.abs(self.matrix[row]).max())
            norms[row] = largest and largest * np.linalg.norm(self.matrix[row] / largest)
        return norms

    def _clip_sums(self, nonzeros: int) -> None:
        """Shorten rows whose L1 norm exceeds √nonzeros; none does that has so few entries and norm 1."""
        sums = np.asarray(abs(self.matrix).sum(axis=1) if sparse.issparse(self.matrix) else self._sums()).ravel()
        sums = (sums * self.factor + self.constant) * (1 + (self.columns + 16) * 2.0**-52)
        if self._stretch is not None:
            sums = sums * self._stretch
        excess = np.minimum(1.0, math.sqrt(nonzeros) / np.maximum(sums, 1e-300))
        self._stretch = excess if self._stretch is None else self._stretch * excess

    def _sums(self) -> np.ndarray:
        return np.concatenate([np.abs(self.matrix[part]).sum(axis=1) for part in self._blocks()])

    def times(self, vector: np.ndarray) -> np.ndarray:
        """One number per row: ⟨row, vector⟩."""
        product = self.matrix @ vector[: self.columns]
        product *= self.factor
        if self.constant:
            product += self.constant * vector[-1]
        if self._stretch is not None:
            product *= self._stretch
        return product

    def pull(self, weights: np.ndarray) -> np.ndarray:
        """Σ weight·row, added block by block: the rounding error grows with BLOCK + rows/BLOCK, not with rows."""
        if self._stretch is not None:
            weights = weights * self._stretch
        scaled = weights * self.factor
        total = np.zeros(self.width)
        for part in self._blocks():
            total[: self.columns] += self.matrix[part].T @ scaled[part]
        if self.constant:
            sums = [float(weights[part].sum()) for part in self._blocks()]
            total[-1] = self.constant * math.fsum(sums)
        return total

    def gram(self, weights: np.ndarray, precision: type = np.float32) -> np.ndarray:
        """Σ weight·row·rowᵀ for weights ≥ 0; in single precision where only directions are taken from it."""
        if self._stretch is not None:
            weights = weights * self._stretch**2
        total = np.zeros((self.width, self.width))
        inner = total[: self.columns, : self.columns]
        if sparse.issparse(self.matrix):
            scaled = sparse.diags_array(weights * self.factor**2) @ self.matrix
            inner += (self.matrix.T @ scaled).toarray()
        else:
            self._dense_gram(inner, np.sqrt(weights) * self.factor, precision)
        if self.constant:
            total[: self.columns, -1] = self.constant * (self.matrix.T @ (weights * self.factor))
            total[-1, : self.columns] = total[: self.columns, -1]
            total[-1, -1] = self.constant**2 * weights.sum()
        return total

    def exact_gram(self) -> np.ndarray:
        """Σ row·rowᵀ in double precision."""
        return self.gram(np.ones(self.rows), precision=np.float64)

    def _dense_gram(self, total: np.ndarray, factors: np.ndarray, precision: type) -> None:
        scratch = np.empty((min(BLOCK, self.rows), self.columns), dtype=precision)
        for part in self._blocks():
            block = self.matrix[part]
            scaled = scratch[: block.shape[0]]
            np.multiply(block, factors[part, None], out=scaled, casting="same_kind")
            total += scaled.T @ scaled

    def _blocks(self) -> Iterator[slice]:
        return (slice(start, start + BLOCK) for start in range(0, self.rows, BLOCK))
