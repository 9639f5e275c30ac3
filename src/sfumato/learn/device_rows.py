"""Private rows inside the unit ball, on a GPU: UnitRows for torch and CuPy.

In:   a device matrix of double precision, a public norm bound, the share of the norm given to a constant feature.
Out:  DeviceRows: products stay on the device, sums come to the host.
Not here: tables of the host (learn/rows.py), whose text says what is done to a row and why.

A device adds in an order of its own. Blocks of the size learn/rows.py uses are multiplied by themselves, the sums of up
to DEVICE_BLOCKS of them are added by the device, and those of such parts with their errors, one elementwise call after
the other: so the bound SUMMING holds in whatever order a device adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sfumato.learn.arrays import all_hold, joined, largest, namespace, shaped, summed, to_host, turned
from sfumato.learn.rows import BLOCK, DEVICE_BLOCKS, FAR, SHORTEST, RunningSum

__all__ = ["DeviceRows"]


class DeviceRows:
    """UnitRows on a device; see there."""

    def __init__(
        self, matrix: Any, norm: float, constant: float = 0.0, *, stretch: bool = False, nonzeros: int | None = None
    ) -> None:
        self.constant = constant
        self.library = library = namespace(matrix)
        self.rows, self.columns = (int(size) for size in matrix.shape)
        self.width = self.columns + (constant > 0)
        share = math.sqrt(1 - constant * constant) * (1 - (self.columns + 16) * 2.0**-52)
        self.largest = share / norm
        self.matrix, norms = self._tamed(matrix, norm)
        # A row of zeros has an infinite share/norm; the clip makes it `largest`, as the minimum does on the host.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.factor = library.clip(share / norms, None, self.largest)
        self._stretch = None
        if stretch:
            lengths = library.sqrt((self.factor * norms) ** 2 + constant**2) * (1 + (self.columns + 16) * 2.0**-52)
            self._stretch = 1 / library.clip(lengths, SHORTEST, None)
        if nonzeros is not None:
            sums = (summed(abs(self.matrix), 1) * self.factor + constant) * (1 + (self.columns + 16) * 2.0**-52)
            sums = sums if self._stretch is None else sums * self._stretch
            excess = library.clip(math.sqrt(nonzeros) / library.clip(sums, 1e-300, None), None, 1.0)
            self._stretch = excess if self._stretch is None else self._stretch * excess

    def _tamed(self, matrix: Any, norm: float) -> tuple[Any, Any]:
        """The matrix with rows longer than 1e100 shortened to `norm`, and the rows' norms; see learn/rows.py."""
        library = self.library
        squares = library.empty_like(matrix[:, 0])
        with np.errstate(over="ignore"):
            for part in self._parts():
                squares[part] = _each_summed(matrix[part, ...] ** 2)
        usual = (squares > 1e-280) & (squares < 1e200)
        if all_hold(usual):
            return matrix, library.sqrt(squares)
        # Under- and overflow of the squares: by the largest entry of each row, as on the host.
        peaks = largest(library.clip(abs(matrix), 1e-300, None), 1)
        unit = library.sqrt(_each_summed((matrix / peaks[:, None]) ** 2))
        norms = library.where(usual, library.sqrt(squares), peaks * unit)  # one odd row leaves the others as they are
        far = ~(norms <= FAR)
        if all_hold(~far):
            return matrix, norms
        short = matrix / peaks[:, None] * (norm / library.clip(unit, 1.0, None))[:, None]  # zeros stay
        lengths = library.full_like(norms, norm * (1 + 16 * 2.0**-52))
        return library.where(far[:, None], short, matrix), library.where(far, lengths, norms)

    def times(self, vector: Any) -> Any:
        """One number per row, on the device: ⟨row, vector⟩."""
        product = (self.matrix @ vector[: self.columns]) * self.factor
        if self.constant:
            product = product + self.constant * vector[-1]
        return product if self._stretch is None else product * self._stretch

    def pull(self, weights: Any) -> np.ndarray:
        """Σ weight·row, on the host."""
        if self._stretch is not None:
            weights = weights * self._stretch
        total = np.zeros(self.width)
        total[: self.columns] = self._pull_given(weights * self.factor)
        if self.constant:
            total[-1] = self.constant * math.fsum(self._block_sums(weights))
        return total

    def gram(self, weights: Any) -> np.ndarray:
        """Σ weight·row·rowᵀ for weights ≥ 0, on the host, in double precision."""
        if self._stretch is not None:
            weights = weights * self._stretch**2
        total = np.zeros((self.width, self.width))
        factors = self.library.sqrt(weights) * self.factor
        inner: Any = 0.0  # added up on the device: waiting for it after each part would take longer than the sum
        for part in self._parts():
            stack, blocks = self._stacked(part)
            scaled = stack * shaped(factors[part], blocks, -1, 1)
            inner = inner + summed(turned(scaled) @ scaled, 0)
        total[: self.columns, : self.columns] = to_host(inner)
        if self.constant:
            cross = self._pull_given(weights * self.factor)
            total[: self.columns, -1] = total[-1, : self.columns] = self.constant * cross
            total[-1, -1] = self.constant**2 * math.fsum(self._block_sums(weights))
        return total

    def signed_gram(self, weights: Any) -> np.ndarray:
        """Σ weight·row·rowᵀ for weights of either sign, on the host."""
        positive = self.library.clip(weights, 0.0, None)
        return self.gram(positive) - self.gram(positive - weights)

    def exact_gram(self) -> np.ndarray:
        """Σ row·rowᵀ."""
        return self.gram(self.library.ones_like(self.factor))

    def _pull_given(self, weights: Any) -> np.ndarray:
        """Σ weight·x over the rows as they were given; parts are added on the device, with their errors kept."""
        total = RunningSum()
        for part in self._parts():
            stack, blocks = self._stacked(part)
            total.add(summed(shaped(weights[part], blocks, 1, -1) @ stack, 0)[0, :])
        return to_host(total.value())

    def _stacked(self, part: slice) -> tuple[Any, int]:
        """The rows of a part as whole blocks, or as one if they are fewer than a block."""
        rows = self.matrix[part, ...]
        blocks = max(1, rows.shape[0] // BLOCK)
        return shaped(rows, blocks, rows.shape[0] // blocks, self.columns), blocks

    def _block_sums(self, weights: Any) -> list[float]:
        sums = []
        for part in self._parts():
            _, blocks = self._stacked(part)
            sums.append(summed(shaped(weights[part], blocks, -1), 1))
        return to_host(joined(sums)).tolist() if sums else []

    def _parts(self) -> Iterator[slice]:
        """Runs of whole blocks, then the rest."""
        whole = self.rows // BLOCK * BLOCK
        for start in range(0, whole, BLOCK * DEVICE_BLOCKS):
            yield slice(start, min(whole, start + BLOCK * DEVICE_BLOCKS))
        if whole < self.rows:
            yield slice(whole, self.rows)


def _each_summed(matrix: Any) -> Any:
    """The sum of each row, by halves: a device may add rows of one length otherwise where there are more of them.

    >>> _each_summed(np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 8.0]]))
    array([7., 8.])
    """
    while (width := int(matrix.shape[1])) > 1:
        half = width // 2
        pairs = matrix[:, :half] + matrix[:, half : 2 * half]
        matrix = pairs if width == 2 * half else joined([pairs, matrix[:, 2 * half :]], axis=1)
    return matrix[:, 0]
