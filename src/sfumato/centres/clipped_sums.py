"""Sums of any numbers of patients, each patient's vector clipped to a public length.

In:   how many numbers and how long a vector may be; at a centre, an array with one row for each patient.
Out:  ClippedSums; how far vectors of a bounded length move any sum.
Not here: sums of the columns of a schema (statistics.py), gradients of a model (gradients.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.centres.statistics import Statistic
from sfumato.core.adjacency import Relation
from sfumato.core.cell import number_of
from sfumato.core.checks import positive
from sfumato.core.norms import L1, L2
from sfumato.errors import DataError, InputError
from sfumato.mechanisms.noisy_sums import clipped
from sfumato.questions.moves import Moves

__all__ = ["ClippedSums", "clipped_moves"]

#: Squares of a million such numbers are still finite.
_HUGE = 1e150


@dataclass(frozen=True)
class ClippedSums(Statistic):
    """Sums of `size` numbers for each patient, each patient's vector scaled down to `norm` (L2 and, if asked, L1).

    For gradients and other sums that a learner asks for. The table is an array with one row for each patient.
    """

    kind: ClassVar[str] = "clipped sums"
    signed: ClassVar[bool] = True

    size: int
    norm: float
    order: Literal[1, 2] = 2

    def _check(self) -> None:
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 1 or self.order not in (1, 2):
            raise InputError("Clipped sums need a size of at least 1 and the order 1 or 2. Nothing was run.")
        positive(self.norm, "norm")

    @property
    def length(self) -> int:
        return self.size

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"sum {position}" for position in range(self.size))

    @property
    def largest_entry(self) -> float:
        return self.norm

    def _row_moves(self, relation: Relation) -> Moves:
        return clipped_moves(self.norm, self.order, relation)

    def _opened(self, table: Any) -> np.ndarray:
        found = np.asarray(table)
        if found.ndim != 2 or found.shape[1] != self.size:
            raise DataError(f"Clipped sums need rows of {self.size} numbers. Nothing was sent.")
        if found.dtype.kind not in "fiub":
            found = np.array([number_of(cell) for cell in found.ravel().tolist()]).reshape(found.shape)
        # What is no number counts as 0; an infinite one as a very long vector in its direction.
        return np.clip(np.nan_to_num(found.astype(np.float64), nan=0.0), -_HUGE, _HUGE)

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        return clipped(rows, self.norm, self.order)


def clipped_moves(norm: float, order: Literal[1, 2], relation: Relation) -> Moves:
    """How far vectors clipped to `norm` move a sum: an L1 length bounds the L2 length, an L2 length nothing else."""
    moved = norm * (2.0 if relation == "replace-one" else 1.0)
    return Moves(L1(moved if order == 1 else math.inf), L2(moved), tight=order == 2)
