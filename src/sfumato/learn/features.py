"""Random features of norm at most 1 for kernels: Fourier features for those of a difference, a sketch for polynomials.

In:   the name of a kernel, gamma, a number of components, a public norm, rows.
Out:  random_features; FourierFeatures: rows of paired cosines and sines, and the frequencies that are released with the
      model; SketchFeatures: products of random signs, shortened to norm 1.
Not here: training on them (learn/svc.py).
Proof: docs/proofs/objective_perturbation.md, "Kernels": any public map of a row into the unit ball is covered

√(2/D)·cos(ω·x + ψ) features, as published, have norms up to √2 and would break the guarantee (errata 3.4). The pairs
(cos ω·x, sin ω·x)/√(D/2) have norm exactly 1 and need no phase. Frequencies are drawn without the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from sfumato.core.checks import positive
from sfumato.core.threads import calm_threads
from sfumato.errors import InputError
from sfumato.learn.arrays import is_device_array, joined, namespace, to_device
from sfumato.learn.device_rows import DeviceRows
from sfumato.learn.rows import UnitRows, canonical, row_norms, tamed
from sfumato.learn.seeds import Seeds

__all__ = [
    "LONGEST",
    "POLYNOMIALS",
    "FourierFeatures",
    "Kernel",
    "SketchFeatures",
    "check_kernel",
    "even_components",
    "kernel_scale",
    "random_features",
    "refuse_on_device",
]

Kernel = Literal["rbf", "laplacian", "cauchy", "matern12", "matern32", "matern52", "quadratic", "cubic"]
#: Powers of the polynomial kernels ((1 + γ⟨x, x'⟩)/√((1 + γ‖x‖²)(1 + γ‖x'‖²)))^degree.
POLYNOMIALS: dict[str, int] = {"quadratic": 2, "cubic": 3}

#: Rows without a public norm are shortened to this, so that their phases are finite.
LONGEST = 1e100
#: More features than these are refused: frequencies and features are held in memory.
_MOST_COMPONENTS = 1_000_000


def _matern(degrees: int) -> Callable[[np.random.Generator, float, tuple[int, int]], np.ndarray]:
    """Student's law with 2ν degrees of freedom: the Matérn kernel of smoothness ν."""

    def draw(generator: np.random.Generator, gamma: float, shape: tuple[int, int]) -> np.ndarray:
        heavy = np.sqrt(degrees / generator.chisquare(degrees, size=shape[1]))
        return generator.normal(scale=math.sqrt(2 * gamma), size=shape) * heavy

    return draw


#: The law of frequencies whose characteristic function is the kernel (Bochner), for a difference t:
#: exp(-γ‖t‖²), exp(-γ‖t‖₁), Π 1/(1 + γt_i²), and Matérn of smoothness 1/2, 3/2, 5/2 at distance √(2γ)‖t‖.
_LAWS: dict[str, Callable[[np.random.Generator, float, tuple[int, int]], np.ndarray]] = {
    "rbf": lambda generator, gamma, shape: generator.normal(scale=math.sqrt(2 * gamma), size=shape),
    "laplacian": lambda generator, gamma, shape: gamma * generator.standard_cauchy(size=shape),
    "cauchy": lambda generator, gamma, shape: generator.laplace(scale=math.sqrt(gamma), size=shape),
    "matern12": _matern(1),
    "matern32": _matern(3),
    "matern52": _matern(5),
}


def check_kernel(kernel: Any, allowed: tuple[str, ...] = get_args(Kernel)) -> str:
    """The name of a kernel, or a refusal that lists them.

    >>> check_kernel("cubic")
    'cubic'
    """
    if not isinstance(kernel, str) or kernel not in allowed:
        raise InputError(f"kernel must be one of {', '.join(map(repr, allowed))}. Nothing was spent.")
    return kernel


def refuse_on_device(kernel: Any) -> None:
    """Raise for kernels whose features are made on the host alone: before a fit of rows on a device is paid for.

    >>> refuse_on_device("rbf")
    """
    if isinstance(kernel, str) and kernel in POLYNOMIALS:
        raise InputError(
            f"The {kernel} kernel is computed on the host, and these rows lie on a device: pass them as a NumPy array, "
            "as x.cpu().numpy() makes of a torch tensor and x.get() of a CuPy array, or choose a kernel of distances, "
            "such as 'rbf'. Nothing was spent."
        )


def kernel_scale(kernel: str, gamma: float, reach: float) -> float:
    """γ for "auto": that of the Gaussian kernel, or 1/reach² for polynomials of rows of that length: all public."""
    return 1 / reach**2 if kernel in POLYNOMIALS else gamma


def random_features(
    kernel: str, gamma: float, components: int, norm: float | None, seeds: Seeds, *, shifts: bool = False
) -> Any:
    """Features of norm at most 1 whose inner products are near the kernel; drawn without the data.

    A row's features are the same numbers whoever else is in the table and wherever it stands: on a device the latter
    holds with `shifts` only, which asks for more time there and is meant for tables to which a record may be added.

    >>> random_features("quadratic", 1.0, 8, 1.0, Seeds(1))(np.ones((2, 3))).shape
    (2, 8)
    """
    kind = SketchFeatures if check_kernel(kernel) in POLYNOMIALS else FourierFeatures
    features = kind(gamma, components, norm, seeds, kernel)
    features.shifts = shifts
    return features


class FourierFeatures:
    """x ↦ (cos ω_j·x, sin ω_j·x)_j / √pairs; the law of ω_j is the kernel's: N(0, 2γI) for exp(-γ‖x - x'‖²).

    >>> features = FourierFeatures(gamma=0.5, components=6, norm=1.0, seeds=Seeds(1))
    >>> norms = np.linalg.norm(features(np.zeros((2, 3))), axis=1)
    >>> bool(np.allclose(norms, 1.0))
    True
    """

    #: Whether rows may stand elsewhere in a neighbouring table: a device then takes more time (the host need not).
    shifts: bool = False

    def __init__(self, gamma: float, components: int, norm: float | None, seeds: Seeds, kernel: str = "rbf") -> None:
        self.kernel = check_kernel(kernel, tuple(_LAWS))
        self.gamma = positive(gamma, "gamma")
        self.components = even_components(components)
        self.pairs = self.components // 2
        self.norm = norm
        self._generator = np.random.default_rng(seeds.next())  # no privacy rests on these draws
        self.frequencies: np.ndarray | None = None

    def __call__(self, matrix: Any) -> Any:
        if self.frequencies is None:
            shape = (matrix.shape[1], self.pairs)
            self.frequencies = _LAWS[self.kernel](self._generator, self.gamma, shape)
        if is_device_array(matrix):
            return self._on_device(matrix)
        factor: Any = 1.0
        # Lengths too are added up in an order that hangs on how rows lie.
        matrix = canonical(matrix) if sparse.issparse(matrix) else np.ascontiguousarray(matrix)
        if self.norm is not None:
            rows = UnitRows(matrix, self.norm)
            matrix, factor = rows.matrix, rows.factor * self.norm
        else:
            matrix, _ = tamed(matrix, row_norms(matrix), LONGEST)
        phases = _each_alike(matrix, self.frequencies) * np.reshape(factor, (-1, 1))
        features = np.empty((matrix.shape[0], 2 * self.pairs))
        np.cos(phases, out=features[:, : self.pairs])
        np.sin(phases, out=features[:, self.pairs :])
        features /= math.sqrt(self.pairs)
        return features

    def _on_device(self, matrix: Any) -> Any:
        rows = DeviceRows(matrix, LONGEST if self.norm is None else self.norm)
        frequencies = to_device(self.frequencies, matrix)
        phases = _column_by_column(rows.matrix, frequencies) if self.shifts else rows.matrix @ frequencies
        if self.norm is not None:
            phases = phases * (rows.factor * self.norm)[:, None]
        library = namespace(matrix)
        return joined([library.cos(phases), library.sin(phases)], axis=1) / math.sqrt(self.pairs)


class SketchFeatures:
    """Polynomial kernels: products of the row's sums under random signs, shortened to norm 1 where they are longer.

    With x̃ = (1, √γ·x)/√(1 + γ‖x‖²) and independent signs s, E Π_k⟨s_k, x̃⟩⟨s_k, x̃'⟩ = ⟨x̃, x̃'⟩^degree.

    >>> features = SketchFeatures(1.0, 4, None, Seeds(1), "quadratic")
    >>> bool((np.linalg.norm(features(np.array([[3.0, -4.0], [0.0, 0.1]])), axis=1) <= 1 + 1e-12).all())
    True
    """

    def __init__(self, gamma: float, components: int, norm: float | None, seeds: Seeds, kernel: str) -> None:
        self.kernel = check_kernel(kernel, tuple(POLYNOMIALS))
        self.gamma = positive(gamma, "gamma")
        self.components = even_components(components)  # as many as Fourier features would be
        self.norm = norm
        self._generator = np.random.default_rng(seeds.next())  # no privacy rests on these draws
        self.signs: np.ndarray | None = None
        self.shifts = False  # there is no device for these

    def __call__(self, matrix: Any) -> np.ndarray:
        if is_device_array(matrix):
            refuse_on_device(self.kernel)
        if self.signs is None:
            shape = (POLYNOMIALS[self.kernel] * (matrix.shape[1] + 1), self.components)
            self.signs = self._generator.choice(np.array([-1.0, 1.0]), size=shape)
        matrix = canonical(matrix) if sparse.issparse(matrix) else np.ascontiguousarray(matrix)
        longest = LONGEST if self.norm is None else self.norm
        rows, norms = tamed(matrix, row_norms(matrix), longest)
        rows = np.asarray(rows.todense()) if sparse.issparse(rows) else np.asarray(rows, dtype=np.float64)
        rows = rows * (longest / np.maximum(norms, longest))[:, None]
        extended = np.hstack([np.ones((len(rows), 1)), math.sqrt(self.gamma) * rows])
        extended /= np.linalg.norm(extended, axis=1, keepdims=True)
        features = np.full((len(rows), self.components), 1 / math.sqrt(self.components))
        for signs in np.split(self.signs, POLYNOMIALS[self.kernel]):
            features *= _each_alike(extended, signs)
        return features / np.maximum(1.0, np.linalg.norm(features, axis=1, keepdims=True))


def _each_alike(rows: Any, columns: np.ndarray) -> np.ndarray:
    """The product of the two, a row at a time: at once, its last bits hang on where a row stands and on how many do.

    The last bits of a phase are all that counts where γ is large, and who else is in the table must not show in them.

    >>> _each_alike(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    if sparse.issparse(rows):  # whose products go row by row by themselves
        return np.asarray(rows @ columns)
    with calm_threads():  # a row is too little to share
        return np.matmul(np.ascontiguousarray(rows)[:, None, :], columns)[:, 0, :]


def _column_by_column(matrix: Any, columns: Any) -> Any:
    """The same on a device, where only what is done to single numbers is sure to be done alike.

    >>> _column_by_column(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    total = matrix[:, :1] * columns[0, :]
    for place in range(1, int(matrix.shape[1])):
        total = total + matrix[:, place : place + 1] * columns[place, :]
    return total


def even_components(components: Any) -> int:
    """A whole number of features, rounded up to even: they come in pairs of a cosine and a sine.

    >>> even_components(7)
    8
    """
    whole = isinstance(components, int | np.integer) and not isinstance(components, bool)
    if not whole or not 1 <= components <= _MOST_COMPONENTS:
        raise InputError(f"n_components must be a whole number from 1 to {_MOST_COMPONENTS}. Nothing was spent.")
    return int(components) + int(components) % 2
