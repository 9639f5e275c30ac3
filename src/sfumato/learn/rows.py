"""Private rows inside the unit ball, without a copy of the table.

In:   a matrix (dense or scipy sparse), a public norm bound, the share of the norm given to a constant feature.
Out:  UnitRows: products with the rows as training sees them, each of norm at most 1.
Not here: who chose the bound (learn/bounds.py), tables with names (learn/encoder.py).

A row longer than `norm` is shortened to it. Shorter rows are left alone or, with `stretch`, lengthened to norm 1 with
their constant: the sign of a linear score does not change by that, and no part of the noise is paid for nothing.
Both are functions of the record and of public numbers only. The factors are kept beside the matrix, so no scaled copy
is made, with one exception: rows so long that a product with them could overflow are shortened in a copy first. A
sparse matrix is brought to its canonical form, in a copy if need be: entries that are stored twice are one number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

__all__ = [
    "BLOCK",
    "DEVICE_BLOCKS",
    "FAR",
    "SHORTEST",
    "SUMMING",
    "RunningSum",
    "UnitRows",
    "canonical",
    "row_norms",
    "tamed",
]

#: Rows summed at a time: bounds rounding error and scratch memory.
BLOCK = 2048
#: Blocks that a device may add in an order of its own.
DEVICE_BLOCKS = 128
#: How far a sum over rows can be off, in units in the last place of the sum of its terms' sizes, however many rows:
#: terms inside a block, blocks of a device, and totals of blocks with their errors kept (RunningSum, engine totals).
SUMMING = BLOCK + DEVICE_BLOCKS + 14
SHORTEST = 2.0**-40
#: Rows longer than this are shortened before anything is multiplied with them.
FAR = 1e100


class RunningSum:
    """A sum of arrays with its rounding errors beside it: two-sum, elementwise, on the host or a device.

    >>> total = RunningSum()
    >>> for term in (1e16, 1.0, -1e16):
    ...     total.add(np.array([term]))
    >>> float(total.value()[0])
    1.0
    """

    def __init__(self) -> None:
        self._high: Any = None
        self._low: Any = None

    def add(self, term: Any) -> None:
        if self._high is None:
            self._high, self._low = term, 0.0 * term
            return
        total = self._high + term
        of_term = total - self._high
        self._low = self._low + ((self._high - (total - of_term)) + (term - of_term))
        self._high = total

    def value(self) -> Any:
        """The sum; zero, the number, if nothing was added."""
        return 0.0 if self._high is None else self._high + self._low


def canonical(matrix: Any) -> Any:
    """A CSR matrix in which no entry is stored twice; the caller's is left alone. Dense matrices as they are.

    >>> twice = sparse.csr_array((np.array([1e20, -1e20]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    >>> canonical(twice).nnz, twice.nnz
    (1, 2)
    """
    if not sparse.issparse(matrix):
        return matrix
    given = matrix.tocsr()
    # A fresh object looks for itself whether entries repeat; the given one may carry a flag that says they do not.
    fresh = sparse.csr_array((given.data, given.indices, given.indptr), shape=given.shape)
    if not fresh.has_canonical_format:
        fresh = fresh.copy()
        fresh.sum_duplicates()
    return fresh


def row_norms(matrix: Any) -> np.ndarray:
    """Euclidean lengths of the rows; squares that would under- or overflow are taken of a scaled row."""
    with np.errstate(over="ignore", under="ignore"):
        if sparse.issparse(matrix):
            squares = np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", matrix, matrix)
        norms = np.sqrt(squares)
        odd = np.flatnonzero(~((squares > 1e-280) & (squares < 1e280)))
        if odd.size:
            part = matrix[odd]
            largest, unit = _scaled(part)
            norms[odd] = largest * unit
    return norms


def _scaled(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """The largest entry of each row, and the row's length in units of it."""
    if sparse.issparse(matrix):
        largest = np.asarray(abs(matrix).max(axis=1).todense()).ravel()
        safe = np.where(largest > 0, largest, 1.0)
        scaled = matrix.data / np.repeat(safe, np.diff(matrix.indptr))
        places = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return largest, np.sqrt(np.bincount(places, scaled * scaled, matrix.shape[0]))
    largest = np.abs(matrix).max(axis=1, initial=0.0)
    scaled = matrix / np.where(largest > 0, largest, 1.0)[:, None]
    return largest, np.sqrt(np.einsum("ij,ij->i", scaled, scaled))


def tamed(matrix: Any, norms: np.ndarray, length: float) -> tuple[Any, np.ndarray]:
    """The matrix with rows longer than 1e100 shortened to `length`, in a copy if there are any; and the new norms.

    So every product of a row with coefficients is finite, whatever finite numbers somebody's row holds.
    """
    far = np.flatnonzero(~(norms <= FAR))
    if not far.size:
        return matrix, norms
    matrix, norms = matrix.copy(), norms.copy()
    largest, unit = _scaled(matrix[far])
    if sparse.issparse(matrix):
        for row, most, units in zip(far, largest, unit, strict=True):
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            matrix.data[part] = matrix.data[part] / most * (length / units)
    else:
        matrix[far] = matrix[far] / largest[:, None] * (length / unit)[:, None]
    norms[far] = length * (1 + 16 * 2.0**-52)
    return matrix, norms


class UnitRows:
    """The rows s_i·(a_i·x_i, constant), a_i = share·min(1/norm, 1/‖x_i‖), share² + constant² = 1; s_i = 1 or stretches.

    >>> rows = UnitRows(np.array([[3.0, 4.0], [0.3, 0.4]]), norm=1.0)
    >>> [round(float(m), 9) for m in rows.times(np.array([1.0, 0.0]))]
    [0.6, 0.3]
    """

    def __init__(
        self, matrix: Any, norm: float, constant: float = 0.0, *, stretch: bool = False, nonzeros: int | None = None
    ) -> None:
        self.constant = constant
        self.rows, self.columns = matrix.shape
        self.width = self.columns + (constant > 0)
        # Squares, their sum, the root and the quotient err by less than columns + 8 units in the last place.
        share = math.sqrt(1 - constant * constant) * (1 - (self.columns + 16) * 2.0**-52)
        self.largest = share / norm
        matrix = canonical(matrix)
        self.matrix, norms = tamed(matrix, row_norms(matrix), norm)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.factor = np.minimum(self.largest, share / norms)
            self._stretch = None
            if stretch:
                # A computed length may be short by as much as above, and what is divided by it that much too long.
                lengths = np.hypot(self.factor * norms, constant) * (1 + (self.columns + 16) * 2.0**-52)
                # Rows shorter than this stay short: far below it floating point no longer knows their length.
                self._stretch = 1 / np.maximum(lengths, SHORTEST)
            if nonzeros is not None:
                self._clip_sums(nonzeros)

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

    def times(self, vector: np.ndarray, *, alike: bool = False) -> np.ndarray:
        """One number per row: ⟨row, vector⟩; `alike`: the same wherever the row stands, for vectors of any length."""
        inner = vector[: self.columns]
        at_once = sparse.issparse(self.matrix) or not alike
        product = self.matrix @ inner if at_once else np.einsum("ij,j->i", self.matrix, inner)
        product *= self.factor
        if self.constant:
            product += self.constant * vector[-1]
        if self._stretch is not None:
            product *= self._stretch
        return product

    def pull(self, weights: np.ndarray) -> np.ndarray:
        """Σ weight·row, block by block and their totals with the errors kept: off by SUMMING units, not by rows."""
        if self._stretch is not None:
            weights = weights * self._stretch
        scaled, inner = weights * self.factor, RunningSum()
        for part in self._blocks():
            inner.add(self.matrix[part].T @ scaled[part])
        total = np.zeros(self.width)
        total[: self.columns] = inner.value()
        if self.constant:
            total[-1] = self.constant * self._sum(weights)
        return total

    def _sum(self, weights: np.ndarray) -> float:
        return math.fsum(float(weights[part].sum()) for part in self._blocks())

    def gram(self, weights: np.ndarray, precision: type = np.float32) -> np.ndarray:
        """Σ weight·row·rowᵀ for weights ≥ 0; in single precision where only directions are taken from it."""
        if self._stretch is not None:
            weights = weights * self._stretch**2
        total = np.zeros((self.width, self.width))
        inner = total[: self.columns, : self.columns]
        if sparse.issparse(self.matrix):
            # Directions may be summed at a stroke; sums that are published go by blocks like all others.
            whole = [slice(0, self.rows)] if precision is np.float32 else self._blocks()
            roots = np.sqrt(weights) * self.factor  # factors may be as large as 1e100: never squared alone
            for part in whole:
                scaled = sparse.diags_array(roots[part]) @ self.matrix[part]
                inner += (scaled.T @ scaled).toarray()
        else:
            self._dense_gram(inner, np.sqrt(weights) * self.factor, precision)
        if self.constant:
            scaled = weights * self.factor
            for part in self._blocks():
                total[: self.columns, -1] += self.matrix[part].T @ scaled[part]
            total[: self.columns, -1] *= self.constant
            total[-1, : self.columns] = total[: self.columns, -1]
            total[-1, -1] = self.constant**2 * self._sum(weights)
        return total

    def signed_gram(self, weights: np.ndarray) -> np.ndarray:
        """Σ weight·row·rowᵀ for weights of either sign, for directions only."""
        if self._stretch is not None:
            weights = weights * self._stretch**2
        total, scaled = np.zeros((self.width, self.width)), weights * self.factor
        for part in self._blocks():
            block = self.matrix[part]
            if sparse.issparse(block):
                left = sparse.diags_array(self.factor[part]) @ block
                inner = (left.T @ (sparse.diags_array(weights[part]) @ left)).toarray()
            else:
                left = block * self.factor[part, None]
                inner = left.T @ (left * weights[part, None])
            total[: self.columns, : self.columns] += inner
            if self.constant:
                total[: self.columns, -1] += self.constant * (block.T @ scaled[part])
        if self.constant:
            total[-1, : self.columns] = total[: self.columns, -1]
            total[-1, -1] = self.constant**2 * self._sum(weights)
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
