"""The ways to put Gaussian noise on a linear question, each as a strategy that can be certified.

In:   a Question.
Out:  Form: a strategy matrix B and a public matrix R with R·B = A; publishing R·(B·x + noise of scale 1) is the
      placement, up to one common scale. With it the noise at inputs and outputs and a lower bound on the price.
Not here: calibration to a requirement and the guarantee (plan/linear/query.py).

    local       every coordinate gets its own noise, enough if it were published itself       Basu (3.1)
    central     the same noise on every output                                                corrects Basu (3.2)
    output      independent noise on the outputs, of the best variances
    hybrid      independent noise on inputs and outputs, of the best variances                Basu (3.34)
    correlated  one noise vector of the best covariance: the matrix mechanism
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from sfumato.core.events.linear import Person
from sfumato.plan.linear.question import LinearQuestion, same_directions
from sfumato.plan.linear.working_set import Changes, PlacedOptimum, cheapest_covariance, cheapest_variances

__all__ = ["LinearForm", "central", "correlated", "hybrid", "local", "output"]

#: Directions in which the outputs move less than this share of the most are left unpublished.
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True, eq=False)
class LinearForm:
    """`strategy` holds a column of B for each active coordinate; one-dimensional, it is the diagonal of a square B."""

    name: str
    question: LinearQuestion
    strategy: np.ndarray
    reconstruction: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray
    bound: float

    @property
    def price(self) -> float:
        """Weighted variance of the published noise at scale 1."""
        return float(self.question.weights @ np.square(self.reconstruction).sum(axis=1))

    @property
    def covariance(self) -> np.ndarray:
        return self.reconstruction @ self.reconstruction.T

    def apply(self, moved: np.ndarray) -> np.ndarray:
        """B·x for the active coordinates."""
        return self.strategy * moved if self.strategy.ndim == 1 else self.strategy @ moved

    def people(self) -> tuple[Person, ...]:
        """What the event records of each kind of person."""
        return tuple(self._diagonal_people() if self.strategy.ndim == 1 else self._dense_people())

    def _diagonal_people(self) -> Iterator[Person]:
        position = {int(k): at for at, k in enumerate(self.question.active)}
        alike: dict[tuple[tuple[float, float], ...], int] = {}
        for person in self.question.people:
            key = tuple(sorted((float(self.question.width[k]), float(self.strategy[position[k]])) for k in person))
            alike[key] = alike.get(key, 0) + 1
        for key, count in alike.items():
            columns = np.diag([entry for _, entry in key]).tolist()
            yield count, tuple(width for width, _ in key), tuple(map(tuple, columns))

    def _dense_people(self) -> Iterator[Person]:
        number = self.question.column_of
        one_of = {number[int(k)]: at for at, k in enumerate(self.question.active)}
        singles = [(count, *next(iter(move.items()))) for count, move in self.question.kinds if len(move) == 1]
        columns = self.strategy[:, [one_of[at] for _, at, _ in singles]].T.tolist()
        for (count, _, width), column in zip(singles, columns, strict=True):
            yield count, (width,), (tuple(filter(None, column)),)
        for count, move in self.question.kinds:
            if len(move) > 1:
                own = self.strategy[:, [one_of[at] for at in move]].T
                own = own[:, (own != 0).any(axis=0)]
                yield count, tuple(move.values()), tuple(map(tuple, own.tolist()))


def local(question: LinearQuestion) -> LinearForm:
    """Noise on every coordinate, as much as if all of them were published: η_k = w_k Σ_l w_l√c_l / √c_k for one person.

    This minimises Σ c_k η_k with Σ w_k²/η_k ≤ 1 for each person (Cauchy-Schwarz); alone, η_k = w_k².
    """
    columns = question.matrix[:, question.active]
    roots = np.sqrt(question.weights @ np.square(columns))
    width = question.width[question.active]
    position = {int(k): at for at, k in enumerate(question.active)}
    variances = np.empty(len(width))
    bound = 0.0
    for person in question.people:
        own = [position[k] for k in person]
        spent = float(width[own] @ roots[own])
        variances[own] = width[own] * spent / roots[own]
        bound += spent**2
    inputs = np.zeros(len(question.width))
    inputs[question.active] = variances
    scales = np.sqrt(variances)
    return LinearForm("local", question, _clean(1 / scales), columns * scales, inputs, np.zeros(len(columns)), bound)


def central(question: LinearQuestion) -> LinearForm:
    """The same noise on every output that depends on somebody: L = m·max‖Δ‖², not Basu's (3.2)."""
    outputs = np.zeros(len(question.matrix))
    outputs[question.rows] = 1.0
    reach = float(question.changes.worst().squares.max())
    return _independent("central", question, None, outputs, reach * float(question.weights @ outputs))


def output(question: LinearQuestion, tolerance: float) -> LinearForm:
    """Independent noise on the outputs alone."""
    rows = question.rows
    best = cheapest_variances(question.changes, np.empty((len(rows), 0)), question.weights[rows], tolerance)
    return _independent("output", question, None, _spread_rows(question, best), best.bound)


def hybrid(question: LinearQuestion, tolerance: float) -> LinearForm:
    """Independent noise on inputs and outputs (3.34)."""
    columns = question.matrix[question.rows][:, question.active]
    groups = same_directions(columns)
    norms = np.linalg.norm(columns, axis=0)
    widest = [max(group, key=lambda at: float(norms[at])) for group in groups]
    weights = question.weights[question.rows]
    costs = np.append(weights @ np.square(columns[:, widest]), weights)
    best = cheapest_variances(question.changes, columns[:, widest], costs, tolerance)
    inputs = np.zeros(len(question.width))
    for group, first, variance in zip(groups, widest, best.inputs, strict=True):
        # Only the sum along a direction matters; everybody on it gets the same variance.
        inputs[question.active[group]] = variance / float(np.square(norms[group] / norms[first]).sum())
    return _independent("hybrid", question, inputs, _spread_rows(question, best), best.bound)


def correlated(question: LinearQuestion, tolerance: float) -> LinearForm:
    """The best covariance of all, in the coordinates in which the weighted error is the trace."""
    roots = np.sqrt(question.weights[question.rows])
    changes = question.changes.through(np.diag(roots)) if (roots != 1).any() else question.changes
    basis = _basis(changes)
    best = cheapest_covariance(changes.through(basis.T), tolerance)
    whitening = best.noise.whitening @ basis.T * roots
    reconstruction = np.zeros((len(question.matrix), basis.shape[1]))
    reconstruction[question.rows] = (basis @ best.noise.vectors) * np.sqrt(best.noise.roots) / roots[:, None]
    strategy = _once(question, lambda distinct: whitening @ distinct[question.rows])
    outputs = np.square(reconstruction).sum(axis=1)
    return LinearForm(
        "correlated", question, strategy, reconstruction, np.zeros(len(question.width)), outputs, best.bound
    )


def _spread_rows(question: LinearQuestion, best: PlacedOptimum) -> np.ndarray:
    outputs = np.zeros(len(question.matrix))
    outputs[question.rows] = best.outputs
    return outputs


def _independent(
    name: str, question: LinearQuestion, inputs: np.ndarray | None, outputs: np.ndarray, bound: float
) -> LinearForm:
    """Noise on inputs and outputs drawn independently; B = L⁻¹A with LLᵀ its covariance on the outputs."""
    rows = question.rows
    covariance = np.diag(outputs[rows])
    if inputs is not None:
        covariance += (question.matrix[rows] * inputs) @ question.matrix[rows].T
    factor = np.linalg.cholesky(covariance)
    strategy = _once(question, lambda distinct: solve_triangular(factor, distinct[rows], lower=True))
    reconstruction = np.zeros((len(outputs), len(rows)))
    reconstruction[rows] = factor
    given = np.zeros(len(question.width)) if inputs is None else inputs
    return LinearForm(name, question, strategy, reconstruction, given, outputs, bound)


def _once(question: LinearQuestion, whiten: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """B for all active coordinates, computed once for each different column so that equal columns stay equal."""
    distinct = _clean(whiten(question.columns))
    number = question.column_of
    return distinct[:, [number[int(k)] for k in question.active]]


def _clean(array: np.ndarray) -> np.ndarray:
    """Entries too small for the event's arithmetic are zero."""
    return np.where(np.abs(array) < 1e-100, 0.0, array)


def _basis(changes: Changes) -> np.ndarray:
    """Orthonormal columns that span everything people can change."""
    together = np.hstack([changes.singles, *changes.families])
    vectors, sizes, _ = np.linalg.svd(together, full_matrices=False)
    return vectors[:, sizes > _NEGLIGIBLE * sizes[0] * max(together.shape)]
