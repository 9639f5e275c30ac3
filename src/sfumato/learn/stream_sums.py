"""What one batch of rows adds to the sums that a fit asks for. Pickled, sent to workers, and run there.

In:   a matrix (of the host or a device) and its labels or targets.
Out:  lists of arrays; the sums of the table are their sums over all batches.
Not here: reading batches (run/engine/fit.py), what is asked (learn/newton.py), noise: sums leave a worker exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from sfumato.core.schema import Schema
from sfumato.errors import DataError
from sfumato.learn.arrays import in_box, is_device_array, namespace, summed, to_device, to_host
from sfumato.learn.bounds import norm_counts
from sfumato.learn.device_features import device_class_sums
from sfumato.learn.device_rows import DeviceRows
from sfumato.learn.encoder import SchemaEncoder
from sfumato.learn.joint_loss import JointLoss
from sfumato.learn.losses import Loss
from sfumato.learn.newton import LENGTHS, SumsAsked, SumsGiven
from sfumato.learn.rows import BLOCK, UnitRows
from sfumato.learn.table import ABSENT_TARGET, label_places, unknown_labels

__all__ = [
    "BatchReader",
    "ClassSums",
    "JointSums",
    "MarginSums",
    "NormCounts",
    "Passes",
    "ProductSums",
    "RowShape",
    "SumOfRows",
    "TargetSums",
    "answers_from",
]

#: Rows whose random features are made at a time.
_FEATURE_ROWS = 1 << 16
#: Rows encoded at a time: their matrix stays in the cache of a core while it is summed.
CHUNK = 8192


class SumOfRows(Protocol):
    """A sum over rows."""

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]: ...


class Passes(Protocol):
    """A table that can be gone through again and again. `rows` is public under replace-one."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> tuple[str, ...] | int: ...

    def total(self, statistic: SumOfRows) -> list[np.ndarray]:
        """The statistic summed over all batches."""
        ...

    def check_unchanged(self) -> None:
        """Raise if the table is no longer what the first pass saw."""
        ...


@dataclass(frozen=True)
class RowShape:
    """How training sees a row: see UnitRows."""

    norm: float
    constant: float
    stretch: bool = False
    nonzeros: int | None = None

    def rows(self, matrix: Any) -> UnitRows | DeviceRows:
        kind = DeviceRows if is_device_array(matrix) else UnitRows
        return kind(matrix, self.norm, self.constant, stretch=self.stretch, nonzeros=self.nonzeros)


@dataclass(frozen=True)
class MarginSums:
    """Gradients, and Hessians where they are asked for, of a loss of the margin at one point for each question."""

    shape: RowShape
    loss: Loss
    questions: tuple[SumsAsked, ...]
    positive: tuple[int, ...]
    features: Any = None
    fine: bool = False

    def prepared(self, matrix: Any) -> UnitRows | DeviceRows:
        return self.shape.rows(matrix if self.features is None else self.features(matrix))

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]:
        return self.of(self.prepared(matrix), target)

    def of(self, rows: UnitRows | DeviceRows, target: Any) -> list[np.ndarray]:
        return [total for question in self.questions for total in self._sums(rows, target, question)]

    def _sums(self, rows: Any, target: Any, question: SumsAsked) -> Iterator[np.ndarray]:
        like = rows.matrix
        signs = _signs(target, self.positive[question.model], like)
        margins = signs * rows.times(to_device(question.point, like))
        if question.direction is not None:
            change = signs * rows.times(to_device(question.direction, like))
            slopes = (self.loss.slope(margins + float(length) * change) for length in LENGTHS)
            yield np.array([float(summed(slope * change)) for slope in slopes])
        elif question.vector is not None:
            yield rows.pull(self.loss.curvature(margins) * rows.times(to_device(question.vector, like)))
        else:
            yield rows.pull(signs * self.loss.slope(margins))
            if question.hessian:
                curvature = self.loss.curvature(margins)
                exactly = self.fine and isinstance(rows, UnitRows)
                yield rows.gram(curvature, np.float64) if exactly else rows.gram(curvature)


@dataclass(frozen=True)
class JointSums:
    """The same for a loss of all classes' scores; coefficients are outputs × width, one after the other."""

    shape: RowShape
    loss: JointLoss
    questions: tuple[SumsAsked, ...]
    features: Any = None

    def prepared(self, matrix: Any) -> UnitRows | DeviceRows:
        return self.shape.rows(matrix if self.features is None else self.features(matrix))

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]:
        return self.of(self.prepared(matrix), target)

    def of(self, rows: UnitRows | DeviceRows, target: Any) -> list[np.ndarray]:
        right = self.loss.one_hot(target, rows.matrix)
        return [total for question in self.questions for total in self._sums(rows, right, question)]

    def _sums(self, rows: Any, right: Any, question: SumsAsked) -> Iterator[np.ndarray]:
        basis = to_device(self.loss.basis, rows.matrix)
        outputs = self._outputs(rows, question.point)
        scores = outputs @ basis.T
        if question.direction is not None:
            change = self._outputs(rows, question.direction) @ basis.T
            steps = (self.loss.chances(scores + float(length) * change, right) for length in LENGTHS)
            yield np.array([float(summed((chances - right) * change)) for chances in steps])
            return
        chances = self.loss.chances(scores, right)
        if question.vector is not None:
            change = self._outputs(rows, question.vector) @ basis.T
            moved = chances * (change - summed(chances * change, 1)[:, None]) * self.loss.score_curvature
            yield self._pulled(rows, moved @ basis)
            return
        yield self._pulled(rows, (chances - right) @ basis)
        if question.hessian:
            yield self._hessian(rows, chances, basis)

    def _outputs(self, rows: Any, point: np.ndarray) -> Any:
        library = namespace(rows.matrix)
        weights = point.reshape(self.loss.outputs, -1)
        return library.stack([rows.times(to_device(one, rows.matrix)) for one in weights], axis=1)

    def _pulled(self, rows: Any, slopes: Any) -> np.ndarray:
        return np.concatenate([rows.pull(slopes[:, place]) for place in range(self.loss.outputs)])

    def _hessian(self, rows: Any, chances: Any, basis: Any) -> np.ndarray:
        """Blocks Σ (basisᵀ(diag p - ppᵀ)basis)_ab·row·rowᵀ."""
        outputs, width = self.loss.outputs, rows.width
        means, total = chances @ basis, np.empty((outputs * width, outputs * width))
        for one in range(outputs):
            for other in range(one + 1):
                product = basis[:, one] * basis[:, other]
                weights = (chances @ product - means[:, one] * means[:, other]) * self.loss.score_curvature
                block = rows.signed_gram(weights)
                total[one * width : (one + 1) * width, other * width : (other + 1) * width] = block
                total[other * width : (other + 1) * width, one * width : (one + 1) * width] = block.T
        return total


def _signs(codes: Any, positive: int, like: Any) -> Any:
    library = namespace(like)
    if library is np:
        return np.where(codes == positive, 1.0, -1.0)
    ones = library.ones_like(like[:, 0])
    return library.where(codes == positive, ones, -ones)


def answers_from(questions: Sequence[SumsAsked], sums: Sequence[np.ndarray]) -> list[SumsGiven]:
    """The sums of MarginSums or JointSums, sorted back to the questions."""
    waiting = iter(sums)
    return [SumsGiven(next(waiting), next(waiting) if question.hessian else None) for question in questions]


def _scaled_target(target: Any, low: float, high: float) -> Any:
    """Targets clipped to their public interval and scaled to [-1, 1]."""
    library, half = namespace(target), (high - low) / 2
    return library.clip((library.clip(target, low, high) - (low + half)) / half, -1.0, 1.0)


@dataclass(frozen=True)
class TargetSums:
    """Σt, Σt² and the number of records, for targets scaled to [-1, 1]; added in blocks, their totals exactly."""

    low: float
    high: float

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]:
        scaled = to_host(_scaled_target(target, self.low, self.high))
        blocks = [scaled[start : start + BLOCK] for start in range(0, len(scaled), BLOCK)]
        first, second = (math.fsum(float((block**power).sum()) for block in blocks) for power in (1, 2))
        return [np.array(first), np.array(second), np.array(float(len(scaled)))]


@dataclass(frozen=True)
class ProductSums:
    """Σ row·rowᵀ and Σ residual·row: targets in [-1, 1] less `centre`, in units of `reach`, clipped to [-1, 1]."""

    shape: RowShape
    low: float
    high: float
    centre: float = 0.0
    reach: float = 1.0

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]:
        rows, library = self.shape.rows(matrix), namespace(matrix)
        scaled = _scaled_target(target, self.low, self.high)
        residuals = library.clip((scaled - self.centre) / self.reach, -1.0, 1.0)
        return [rows.exact_gram(), rows.pull(residuals)]


@dataclass(frozen=True)
class NormCounts:
    """How many rows lie within each candidate norm, and how many there are."""

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]:
        covered, rows = norm_counts(matrix)
        return [covered.astype(np.float64), np.array(float(rows))]


@dataclass(frozen=True)
class ClassSums:
    """Σ of the features of each class, and how many rows each has; rows are clipped to a box and scaled to [-1, 1]."""

    features: Any
    classes: int
    box: tuple[np.ndarray, np.ndarray] | None

    def __call__(self, matrix: Any, target: Any) -> list[np.ndarray]:
        sums, counts = np.zeros((self.classes, self.features.components)), np.zeros(self.classes)
        for start in range(0, matrix.shape[0], _FEATURE_ROWS):
            end = min(start + _FEATURE_ROWS, int(matrix.shape[0]))
            codes = target[start:end]
            features = self.features(in_box(matrix[start:end, ...], self.box))
            sums += device_class_sums(features, codes, self.classes)
            counts += [np.count_nonzero(to_host(codes) == code) for code in range(self.classes)]
        return [sums, counts]


@dataclass(frozen=True)
class BatchReader:
    """Arrow batches as matrices and labels; the same checks as for a table in memory, by public facts only."""

    columns: tuple[str, ...]
    label: str
    schema: Schema | None
    classes: tuple[Any, ...] | None

    def __call__(self, batch: pa.Table) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, batch.num_rows, CHUNK):
            chunk = batch.slice(start, CHUNK)
            yield self._matrix(chunk), self._target(chunk[self.label])

    def _matrix(self, chunk: pa.Table) -> np.ndarray:
        if self.schema is not None:
            return SchemaEncoder(self.schema).fit(None).transform(chunk.select(list(self.columns)))
        matrix = np.empty((chunk.num_rows, len(self.columns)))
        for position, name in enumerate(self.columns):
            matrix[:, position] = _numbers(chunk[name], name)
        # One infinite or missing number makes the sum so; a finite sum that overflows is looked at again.
        if not np.isfinite(matrix.sum()) and not np.isfinite(matrix).all():
            raise DataError("X contains NaN or infinity. Nothing was spent.")
        return matrix

    def _target(self, column: pa.ChunkedArray) -> np.ndarray:
        if self.classes is None:
            target = _numbers(column, self.label)
            if not np.isfinite(target).all():
                raise DataError(ABSENT_TARGET)
            return target
        if pa.types.is_dictionary(column.type):  # which may list labels that do not occur
            column = column.cast(column.type.value_type)
        encoded = column.combine_chunks().dictionary_encode()
        places = label_places(np.asarray(self.classes), encoded.dictionary.to_pylist())
        if column.null_count or (places == len(self.classes)).any():  # a missing label is no class
            raise unknown_labels(len(self.classes))
        return places[encoded.indices.to_numpy()]


def _numbers(column: pa.ChunkedArray, name: str) -> np.ndarray:
    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise DataError(f"Column {name!r} holds no numbers: pass a schema, or leave it out. Nothing was spent.")
    if column.null_count:
        raise DataError("X contains NaN or infinity. Nothing was spent.")
    return column.to_numpy().astype(np.float64, copy=False)
