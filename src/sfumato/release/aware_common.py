"""What every noise-aware model shares: reading published tables, and undoing a known noise in second moments.

In:   a published table with its TableNoise (or a plain covariance); labels with the odds of randomised answers.
Out:  Features (table -> matrix and the noise it carries), NoisyGram (a Gram matrix with the noise taken out again),
      class weights free of bias, the calibration of a linear rule fitted on noisy inputs.
Not here: the models themselves (release/aware_linear.py and its siblings). Nothing here draws noise.

Everything is post-processing of what was published. In the coordinates where the noise covariance Σ is the identity the
noisy Gram matrix has eigenvalues g + 1, g being signal over noise. Dividing by g + λ gives a family of answers:
λ = 1 is the plain model that ignores the noise, λ = 0 the consistent errors-in-variables correction (Fuller 1987,
ch. 2). The g are known up to about √(p/n) (the edge of Marchenko-Pastur 1967), so no divisor is taken below that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.core.tables import as_arrow
from sfumato.errors import DataError, InputError
from sfumato.release.noise import ResponseNoise, TableNoise

__all__ = [
    "RESOLVED",
    "Features",
    "Labels",
    "NoiseLike",
    "NoisyGram",
    "calibrate",
    "column_names",
    "fit_features",
    "noise_covariance",
    "numbers",
    "onto_simplex",
    "read_labels",
    "refuse_clipped",
    "unbiased_indicators",
]

Matrix = NDArray[np.float64]
#: A direction whose signal is fewer standard errors from zero is drowned by the noise.
RESOLVED = 2.0
NoiseLike = TableNoise | float | Sequence[float] | Sequence[Sequence[float]] | NDArray[Any]


def onto_simplex(values: Any) -> Matrix:
    """The nearest probability vector (Duchi et al. 2008, Fig. 1): where unbiased frequencies may be negative.

    >>> onto_simplex([0.7, 0.5, -0.2])
    array([0.6, 0.4, 0. ])
    """
    ordered = np.sort(np.asarray(values, dtype=float))[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    shift = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.maximum(np.asarray(values, dtype=float) - shift, 0.0)


def unbiased_indicators(response: ResponseNoise, codes: NDArray[Any]) -> Matrix:
    """For each published answer a row whose expectation is the one-hot vector of the true answer.

    >>> unbiased_indicators(ResponseNoise(("no", "yes"), 0.75), np.array([1]))
    array([[-0.5,  1.5]])
    """
    matrix = response.matrix
    size = len(matrix)
    if size > 1 and response.keep * size <= 1 + 1e-9:
        raise InputError(
            f"Answers kept with probability {response.keep!r} among {size} say nothing about the truth, or lie more "
            "often than not. Leave this column out."
        )
    return np.linalg.inv(matrix)[codes]


def numbers(column: pa.ChunkedArray, name: str) -> Matrix:
    """A published numeric column as it stands: noisy values are not clipped to the public interval."""
    try:
        values = column.cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException:
        raise DataError(f"Column {name!r} must hold numbers.") from None
    if not np.isfinite(values).all():
        raise DataError(f"Column {name!r} has missing or infinite values; a released table has none.")
    return values.astype(float)


def column_names(table: Any) -> list[str] | None:
    """The names a table gives its columns; None for a plain array."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    if isinstance(table, np.ndarray):
        return None if table.dtype.names is None else list(table.dtype.names)
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        return list(table.schema.names)
    names = getattr(table, "columns", None)
    return None if names is None else [str(name) for name in names]


def refuse_clipped(noise: TableNoise) -> None:
    """Clipped noise depends on the value it hides: subtracting its covariance would over-correct."""
    if noise.clipped:
        raise InputError(
            "This table was clipped to its public range after the noise was added, so the published noise depends on "
            "the true value and no correction here is valid. Release with clip=False (the guarantee is the same), or "
            "use an ordinary model."
        )
    if noise.shifts:
        raise InputError(
            f"The noise of {', '.join(noise.shifts)} does not have mean 0. Subtract noise.shifts[name] from each of "
            "these columns and pass dataclasses.replace(noise, shifts={})."
        )


def noise_covariance(noise: Any, width: int) -> Matrix:
    """A scalar variance, a vector of variances or a covariance matrix, as a checked covariance matrix.

    >>> noise_covariance(0.5, 2)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    try:
        values = np.asarray(noise, dtype=float)
    except (TypeError, ValueError):
        raise InputError("noise must be a TableNoise, a variance, or a covariance matrix.") from None
    if values.ndim < 2 and values.size in {1, width}:
        values = np.diag(np.broadcast_to(values.ravel(), width)).astype(float)
    if values.shape != (width, width):
        raise InputError(f"The noise covariance has shape {values.shape} and the table {width} columns.")
    slack = 1e-9 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    if not np.isfinite(values).all() or np.abs(values - values.T).max(initial=0.0) > slack:
        raise InputError("The noise covariance must be finite and symmetric.")
    if width and float(np.linalg.eigvalsh(values)[0]) < -slack:
        raise InputError("The noise covariance has a negative eigenvalue.")
    return (values + values.T) / 2


@dataclass(frozen=True)
class Features:
    """How a table becomes a matrix, fixed when a model is fitted.

    Numeric columns are scaled by their public interval where a schema declares one; categories become indicators of
    all but the first value. `published` undoes randomised answers without bias, `clean` reads true values.
    """

    names: tuple[str, ...]
    encoded: tuple[str, ...]
    law: TableNoise | None
    additive: Matrix
    offset: Matrix
    scale: Matrix

    def published(self, estimator: Any, table: Any) -> Matrix:
        return self._read(estimator, table, inverted=True)

    def clean(self, estimator: Any, table: Any) -> Matrix:
        return self._read(estimator, table, inverted=False)

    def _read(self, estimator: Any, table: Any, *, inverted: bool) -> Matrix:
        if self.law is None:
            return _validated(estimator, table, reset=False)
        return _encode(self.law, self.names, table, inverted=inverted, scaled=(self.offset, self.scale))

    def covariance(self, published: Matrix) -> Matrix:
        """Noise covariance of the matrix `published`, averaged over the rows.

        The noise of an inverted answer depends on the truth, but its average does not need it: E[uuᵀ] - diag(E[u]).
        """
        total = self.additive.copy()
        for place in self.response_places():
            block = published[:, place]
            shares = onto_simplex(np.append(block.mean(axis=0), 1 - block.mean(axis=0).sum()))[:-1]
            values, vectors = np.linalg.eigh(block.T @ block / len(block) - np.diag(shares))
            total[place, place] = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return total

    def response_places(self) -> list[slice]:
        """Where the indicators of randomised answers stand."""
        places: list[slice] = []
        start = 0
        for name in self.names if self.law is not None else ():
            width = _width(self.law, name) if self.law is not None else 1
            if self.law is not None and name in self.law.responses:
                places.append(slice(start, start + width))
            start += width
        return places

    def in_own_unit(self, coefficients: Matrix, intercept: float) -> tuple[Matrix, float]:
        """A linear rule on the matrix, as one on the columns in their own unit."""
        own = coefficients / self.scale
        return own, float(intercept - own @ self.offset)


def fit_features(estimator: Any, table: Any, noise: NoiseLike) -> tuple[Features, Matrix]:
    """The reading of `table` under `noise`, and the published matrix. Sets scikit-learn's `n_features_in_`."""
    if not isinstance(noise, TableNoise):
        matrix = _validated(estimator, table, ensure_min_samples=2)
        width = matrix.shape[1]
        names = tuple(str(name) for name in getattr(estimator, "feature_names_in_", range(width)))
        covariance = noise_covariance(noise, width)
        return Features(names, names, None, covariance, np.zeros(width), np.ones(width)), matrix
    refuse_clipped(noise)
    names = _chosen(noise, table)
    encoded, offset, scale = _encoding(noise, names)
    features = Features(names, encoded, noise, _additive(noise, names) / np.outer(scale, scale), offset, scale)
    matrix = _encode(noise, names, table, inverted=True, scaled=(offset, scale))
    if len(matrix) < 2:
        raise DataError(f"A model needs at least 2 rows, and the table has {len(matrix)}.")
    estimator.n_features_in_ = len(names)
    estimator.feature_names_in_ = np.array(names, dtype=object)
    return features, matrix


def _validated(estimator: Any, table: Any, **options: Any) -> Matrix:
    try:
        return np.asarray(validate_data(estimator, table, dtype=np.float64, **options), dtype=float)
    except OverflowError:  # a whole number beyond all floats
        pass
    raise DataError("X contains infinity or a value too large for dtype('float64').")


def _chosen(noise: TableNoise, table: Any) -> tuple[str, ...]:
    """The feature columns: every published column but the label, as far as a table with names has it."""
    candidates = [name for name in noise.schema.columns if name != noise.label]
    present = column_names(table)
    if present is None:
        return tuple(candidates)
    if noise.label in present:
        raise InputError(f"X holds the label {noise.label!r}. Pass it as y, and X without it.")
    chosen = tuple(name for name in candidates if name in present)
    return chosen or tuple(candidates)


def _width(noise: TableNoise, name: str) -> int:
    domain = noise.schema.columns[name]
    return len(domain.values) - 1 if isinstance(domain, Categories) else 1


def _encoding(noise: TableNoise, names: tuple[str, ...]) -> tuple[tuple[str, ...], Matrix, Matrix]:
    encoded: list[str] = []
    offset: list[float] = []
    scale: list[float] = []
    for name in names:
        domain = noise.schema.columns[name]
        labels = domain.feature_names(name)
        encoded += labels[1:] if isinstance(domain, Categories) else labels
        low, width = (domain.low, domain.width) if isinstance(domain, Interval) else (0.0, 1.0)
        offset += [low] * _width(noise, name)
        scale += [width] * _width(noise, name)
    return tuple(encoded), np.array(offset), np.array(scale)


def _additive(noise: TableNoise, names: tuple[str, ...]) -> Matrix:
    noisy = set(noise.columns)
    for name in names:
        if name in noisy and isinstance(noise.schema.columns[name], Categories):
            raise InputError(f"Column {name!r} is declared as categories but carries additive noise.")
    wide = [name for name in names for _ in range(_width(noise, name))]
    return noise.covariance_of(wide)


def _encode(
    noise: TableNoise, names: tuple[str, ...], table: Any, *, inverted: bool, scaled: tuple[Matrix, Matrix]
) -> Matrix:
    arrow = as_arrow(table, Schema({name: noise.schema.columns[name] for name in names}))
    columns = [_one_column(noise, name, arrow.column(name), inverted) for name in names]
    return (np.column_stack(columns) - scaled[0]) / scaled[1]


def _one_column(noise: TableNoise, name: str, column: pa.ChunkedArray, inverted: bool) -> Matrix:
    domain = noise.schema.columns[name]
    if not isinstance(domain, Categories):
        return numbers(column, name)[:, None]
    codes = domain.place(column, name)
    if inverted and name in noise.responses:
        return unbiased_indicators(noise.responses[name], codes)[:, 1:]
    return np.eye(len(domain.values))[codes][:, 1:]


@dataclass(frozen=True)
class NoisyGram:
    """A noisy Gram (or covariance) matrix in the coordinates of its noise.

    Directions without noise are solved exactly and taken out first (Frisch-Waugh-Lovell); what is left is diagonal
    with entries `signal` + 1. `floor` is the sampling error of `signal`, from the number of rows alone.
    """

    signal: Matrix
    basis: Matrix  # columns: directions in which noise is white and the noisy matrix diagonal
    exact: Matrix  # generalised inverse of the matrix on the directions without noise
    matrix: Matrix
    floor: float

    @classmethod
    def of(cls, matrix: Matrix, noise: Matrix, rows: int) -> NoisyGram:
        """Split `matrix` by `noise`; columns are brought to a common scale first, for the sake of rounding."""
        spread = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        unit = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 1.0)
        scaled, scaled_noise = matrix * np.outer(unit, unit), noise * np.outer(unit, unit)
        values, vectors = np.linalg.eigh(scaled_noise)
        noisy = values > 1e-12 * max(float(values.max(initial=0.0)), 1e-12)
        quiet = vectors[:, ~noisy]
        inverse = np.asarray(np.linalg.pinv(quiet.T @ scaled @ quiet, rcond=1e-12, hermitian=True), dtype=float)
        exact = quiet @ inverse @ quiet.T
        white = (vectors[:, noisy] / np.sqrt(values[noisy])) if noisy.any() else vectors[:, noisy]
        white = white - exact @ scaled @ white  # orthogonal, in the metric of the matrix, to what has no noise
        signal, rotation = np.linalg.eigh(white.T @ scaled @ white)
        floor = min(1.0, math.sqrt(signal.size / max(rows, 1)))
        return cls(signal - 1, unit[:, None] * (white @ rotation), exact * np.outer(unit, unit), matrix, floor)

    def divisors(self, shrinkage: float) -> Matrix:
        """signal + λ, repaired: never below the sampling error of `signal`."""
        return np.maximum(self.signal + shrinkage, self.floor if shrinkage else max(self.floor, 1e-12))

    def resolved(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """Divisors that make the answer unbiased to second order, and how many standard errors each `signal` is from 0.

        With A = G⁻¹ the answer A·c̄ is off by -A·E[E A ψ], E the error of G and ψ = c̄ - Ḡβ that of the equations at the
        truth. For Gaussian features this is (1/n)·A·(tr(A(G + 1))β + (G + 1)Aβ): in the coordinates here coefficient k
        is too large by the share Σ_j V_kj/(g_j(g_k + 1))/g_k, where V_kj is the sampling variance of entry kj of G.
        That is added to the divisor (compare Fuller 1987, §2.5). V is taken from the centred `rows` themselves, so that
        noise with heavier tails counts as what it is. A `signal` below its own standard error is taken for that; the
        answer stays bounded, and is no longer unbiased there.
        """
        along = rows @ self.basis
        squares = along**2
        count = max(len(rows), 1)
        variances = np.maximum(squares.T @ squares / count - (along.T @ along / count) ** 2, 0.0) / count
        errors = np.sqrt(np.maximum(np.diag(variances), 1e-300))
        known = np.maximum(self.signal, errors)
        size = np.maximum(self.signal + 1, 1e-12)
        return known + variances @ (1 / known) / size, self.signal / errors

    def solve(self, vector: Matrix, shrinkage: float) -> Matrix:
        """(matrix - (1 - λ)·noise)⁻¹ vector, repaired. λ = 1 ignores the noise.

        >>> gram = NoisyGram.of(np.array([[2.0]]), np.array([[1.0]]), 10**6)
        >>> gram.solve(np.array([1.0]), 1.0), gram.solve(np.array([1.0]), 0.0)
        (array([0.5]), array([1.]))
        """
        return self.inverse(self.divisors(shrinkage)) @ vector

    def inverse(self, divisors: Matrix) -> Matrix:
        """The inverse of the corrected matrix, with these divisors along `basis`."""
        return self.exact + (self.basis / divisors) @ self.basis.T

    def repaired(self, noise: Matrix) -> Matrix:
        """matrix - noise with negative eigenvalues, impossible in truth, put to zero (in the noise's metric)."""
        corrected = self.matrix - noise
        excess = np.minimum(self.signal, 0.0)
        if not (excess < 0).any():
            return corrected
        carried = self.matrix @ self.basis  # matrix·basis = dual vectors · (signal + 1)
        dual = carried / np.where(self.signal + 1 > 1e-12, self.signal + 1, np.inf)
        values, vectors = np.linalg.eigh(corrected - (dual * excess) @ dual.T)
        return (vectors * np.maximum(values, 0.0)) @ vectors.T


@dataclass(frozen=True)
class Labels:
    """Published labels and the odds with which they were randomised: kept, or moved to any one other class."""

    classes: NDArray[Any]
    codes: NDArray[np.int64]
    keep: float = 1.0

    @property
    def move(self) -> float:
        return (1 - self.keep) / (len(self.classes) - 1)

    @property
    def rules(self) -> Sequence[int]:
        """The classes that need a rule of their own: the second of two, every one of many."""
        return [1] if len(self.classes) == 2 else range(len(self.classes))

    def observed(self, code: int) -> Matrix:
        """1 where the published label is this class."""
        return (self.codes == code).astype(float)

    def unbiased(self, code: int) -> Matrix:
        """Numbers whose expectation is 1 where the true label is this class and 0 elsewhere."""
        return (self.observed(code) - self.move) / (self.keep - self.move)


def _codes(y: Any, response: ResponseNoise | None) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and for each label the place of its class."""
    values = column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True)
    check_classification_targets(values)
    known = np.unique(values if response is None else np.array(response.values))
    codes = np.minimum(np.searchsorted(known, values), len(known) - 1)
    if (known[codes] != values).any():
        raise DataError("y holds labels that the published odds of randomised answers do not know.")
    if len(known) < 2:
        raise DataError("The labels hold only one class; a classifier needs at least 2 classes.")
    return known, codes


def read_labels(y: Any, noise: NoiseLike, given: ResponseNoise | None) -> Labels:
    """Labels with their odds, said by hand (`given`) or by the table's noise law.

    >>> read_labels(["b", "a", "b"], 0.0, ResponseNoise(("a", "b"), 0.75)).unbiased(1)
    array([ 1.5, -0.5,  1.5])
    """
    response = given
    if response is None and isinstance(noise, TableNoise) and noise.label is not None:
        response = noise.responses.get(noise.label)
    known, codes = _codes(y, response)
    labels = Labels(known, codes, 1.0 if response is None else response.keep)
    if response is not None:
        unbiased_indicators(response, codes[:0])  # refuses odds that say nothing
        if min(labels.unbiased(code).mean() for code in range(len(known))) <= 0:
            raise DataError("Corrected for randomised answers, a class is empty; a classifier needs 2 classes.")
    return labels


def calibrate(
    rule: tuple[Matrix, float],
    published: Matrix,
    target: Matrix,
    noise: Matrix,
    shrinkage: float | Literal["auto"] = "auto",
) -> tuple[Matrix, float]:
    """A linear rule (coefficients, intercept) fitted on noisy inputs, as it should be for clean inputs.

    With classes of common covariance W the noisy rule points along (W + Σ)⁻¹(μ₁ - μ₀) and the clean one along
    W⁻¹(μ₁ - μ₀), passing through the same middle: the regression calibration of Carroll et al. 2006, ch. 4, within
    classes, which also undoes the attenuation of the logit. `target` holds chances (or 0 and 1) of the second class.
    """
    coefficients, intercept = rule
    share = float(target.mean())
    upper = target @ published / (len(published) * share)
    lower = (1 - target) @ published / (len(published) * (1 - share))
    gap = upper - lower
    centred = published - published.mean(axis=0)
    within = centred.T @ centred / max(len(published) - 2, 1) - share * (1 - share) * np.outer(gap, gap)
    gram = NoisyGram.of(within, noise, len(published))
    if not gram.signal.size:
        return coefficients, intercept
    divisors = gram.divisors(gram.floor if isinstance(shrinkage, str) else shrinkage)
    if isinstance(shrinkage, str):
        # Shrinking by the floor is right where noise drowns a direction, and a bias where it does not.
        resolved, distances = gram.resolved(centred - np.outer(target - share, gap))
        divisors = resolved if distances.min() >= RESOLVED else divisors
    change = gram.basis @ ((gram.basis.T @ within @ coefficients) / divisors - _noisy_part(gram, coefficients))
    return coefficients + change, float(intercept - (upper + lower) / 2 @ change)


def _noisy_part(gram: NoisyGram, coefficients: Matrix) -> Matrix:
    """Coordinates of the coefficients along `basis`."""
    carried = gram.basis.T @ gram.matrix @ coefficients
    size = gram.signal + 1
    return np.where(size > 1e-12, carried / np.where(size > 1e-12, size, 1.0), 0.0)
