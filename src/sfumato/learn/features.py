"""Random Fourier features of norm exactly 1 for the Gaussian kernel.

In:   gamma, a number of components, a public norm, rows.
Out:  FourierFeatures: rows of paired cosines and sines, and the frequencies that are released with the model.
Not here: training on them (learn/svc.py).
Proof: docs/proofs/objective_perturbation.md, "Kernels"

√(2/D)·cos(ω·x + ψ) features, as published, have norms up to √2 and would break the guarantee (errata 3.4). The pairs
(cos ω·x, sin ω·x)/√(D/2) have norm exactly 1 and need no phase. Frequencies are drawn without the data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.core.checks import positive
from sfumato.errors import InputError
from sfumato.learn.arrays import is_device_array, joined, namespace, to_device
from sfumato.learn.device_rows import DeviceRows
from sfumato.learn.rows import UnitRows, canonical, row_norms, tamed
from sfumato.learn.seeds import Seeds

__all__ = ["FourierFeatures"]

#: Rows without a public norm are shortened to this, so that their phases are finite.
_LONGEST = 1e100


class FourierFeatures:
    """x ↦ (cos ω_j·x, sin ω_j·x)_j / √pairs with ω_j ~ N(0, 2γI), for k(x, x') = exp(-γ‖x - x'‖²).

    >>> features = FourierFeatures(gamma=0.5, components=6, norm=1.0, seeds=Seeds(1))
    >>> norms = np.linalg.norm(features(np.zeros((2, 3))), axis=1)
    >>> bool(np.allclose(norms, 1.0))
    True
    """

    def __init__(self, gamma: float, components: int, norm: float | None, seeds: Seeds) -> None:
        self.gamma = positive(gamma, "gamma")
        if not isinstance(components, int | np.integer) or isinstance(components, bool) or components < 1:
            raise InputError("n_components must be a whole number of at least 1. Nothing was spent.")
        self.pairs = (int(components) + 1) // 2
        self._norm = norm
        self._generator = np.random.default_rng(seeds.next())  # no privacy rests on these draws
        self.frequencies: np.ndarray | None = None

    def __call__(self, matrix: Any) -> Any:
        if self.frequencies is None:
            shape = (matrix.shape[1], self.pairs)
            self.frequencies = self._generator.normal(scale=math.sqrt(2 * self.gamma), size=shape)
        if is_device_array(matrix):
            return self._on_device(matrix)
        factor: Any = 1.0
        if self._norm is not None:
            rows = UnitRows(matrix, self._norm)
            matrix, factor = rows.matrix, rows.factor * self._norm
        else:
            matrix = canonical(matrix)
            matrix, _ = tamed(matrix, row_norms(matrix), _LONGEST)
        phases = matrix @ self.frequencies
        phases = np.asarray(phases.todense() if sparse.issparse(phases) else phases) * np.reshape(factor, (-1, 1))
        features = np.empty((matrix.shape[0], 2 * self.pairs))
        np.cos(phases, out=features[:, : self.pairs])
        np.sin(phases, out=features[:, self.pairs :])
        features /= math.sqrt(self.pairs)
        return features

    def _on_device(self, matrix: Any) -> Any:
        rows = DeviceRows(matrix, _LONGEST if self._norm is None else self._norm)
        phases = rows.matrix @ to_device(self.frequencies, matrix)
        if self._norm is not None:
            phases = phases * (rows.factor * self._norm)[:, None]
        library = namespace(matrix)
        return joined([library.cos(phases), library.sin(phases)], axis=1) / math.sqrt(self.pairs)
