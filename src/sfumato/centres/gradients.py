"""Sums of gradients of a linear classifier at public weights: what one step of learning over institutions needs.

In:   a public description (schema, target, weights, a bound on one patient's gradient); at a centre, its own rows.
Out:  the centre's sum in whole cells.
Not here: a patient's slope and which weights come next (mechanisms/noisy_sums.py), the rounds (newton.py).

Whatever the weights are, a patient's gradient is clipped to `norm`: the promise of a round does not depend on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from sfumato.centres.clipped_sums import clipped_moves
from sfumato.centres.statistics import OfSchema
from sfumato.core.adjacency import Relation
from sfumato.core.checks import positive
from sfumato.core.domain import Categories
from sfumato.errors import InputError
from sfumato.mechanisms.noisy_sums import StepLoss, clipped, slopes
from sfumato.questions.moves import Moves

__all__ = ["GradientSums"]


@dataclass(frozen=True)
class GradientSums(OfSchema):
    """Σ of the clipped gradients of a loss at `weights`, over x = (1, encoded columns without the target).

    >>> from sfumato.core import Schema
    >>> schema = Schema({"age": Categories(["young", "old"]), "ill": Categories(["no", "yes"])})
    >>> sums = GradientSums(schema, target="ill", label="yes", weights=(0.0, 0.0, 0.0), norm=2.0)
    >>> (sums.cells({"age": ["old", "old"], "ill": ["yes", "no"]}, 0.25, 10) * 0.25).tolist()
    [0.0, 0.0, 0.0]
    """

    kind: ClassVar[str] = "gradients"
    signed: ClassVar[bool] = True

    target: str
    label: str
    weights: tuple[float, ...]
    norm: float
    loss: StepLoss = "logistic"

    def _check(self) -> None:
        super()._check()
        object.__setattr__(self, "weights", tuple(float(weight) for weight in self.weights))
        domain = self.schema.columns.get(self.target)
        if not isinstance(domain, Categories) or self.label not in domain.values or len(domain.values) != 2:
            raise InputError("The target of a classifier is a column of two categories, one of them the label.")
        if self.loss not in get_args(StepLoss):
            raise InputError("The loss is logistic or hinge. Nothing was run.")
        if len(self.weights) != self.length or not all(map(math.isfinite, self.weights)):
            raise InputError(f"{self.length} finite weights are needed. Nothing was run.")
        positive(self.norm, "norm")

    @property
    def length(self) -> int:
        return 1 + self.schema.without([self.target]).width

    @property
    def names(self) -> tuple[str, ...]:
        return ("1", *self.schema.without([self.target]).feature_names)

    @property
    def largest_entry(self) -> float:
        return self.norm

    def _row_moves(self, relation: Relation) -> Moves:
        return clipped_moves(self.norm, 2, relation)

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        place = self.schema.slices[self.target]
        domain = self.schema.columns[self.target]
        assert isinstance(domain, Categories)
        yes = rows[:, place.start + domain.values.index(self.label)]
        x = np.hstack([np.ones((len(rows), 1)), rows[:, : place.start], rows[:, place.stop :]])
        with np.errstate(over="ignore", invalid="ignore"):  # weights may be any finite numbers
            # Row by row: a patient more must not round the scores of others otherwise, which large weights would show.
            scores = np.einsum("ij,j->i", x, np.array(self.weights))
        return clipped(slopes(self.loss, scores[:, None], yes[:, None]) * x, self.norm)
