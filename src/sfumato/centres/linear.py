"""A linear model across institutions, from noisy second moments.

In:   an Aggregate of SecondMoments, the name of the target column.
Out:  LinearFit. Post-processing: it costs nothing beyond the aggregate.
Not here: the aggregate; the solution itself (mechanisms/noisy_sums.py); the model of one table (learn/linear.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.centres.outcome import Aggregate
from sfumato.centres.statistic_round import StatisticRound
from sfumato.centres.statistics import SecondMoments
from sfumato.core.checks import positive
from sfumato.core.domain import Interval
from sfumato.core.schema import Schema
from sfumato.core.threads import calm_threads
from sfumato.errors import InputError
from sfumato.mechanisms.noisy_sums import lost_to_noise, ridge_solution

__all__ = ["LinearFit", "fit_linear"]


@dataclass(frozen=True)
class LinearFit:
    """Weights on (1, encoded columns without the target); predictions are in the target's own units."""

    schema: Schema
    target: str
    weights: np.ndarray = field(repr=False)
    strength: float

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What each weight is for; the first is the constant."""
        return ("1", *self.schema.without([self.target]).feature_names)

    def predict(self, table: Any) -> np.ndarray:
        """The target of each row in its own units; not clipped to its interval."""
        features = self.schema.without([self.target]).encode(table, extra="ignore")
        domain = self.schema.columns[self.target]
        assert isinstance(domain, Interval)
        return domain.low + domain.width * (self.weights[0] + features @ self.weights[1:])


@calm_threads()
def fit_linear(aggregate: Aggregate, target: str, *, strength: float | None = None) -> LinearFit:
    """Ridge regression of `target` on all other columns.

    Negative eigenvalues, which are noise, are put to zero. Left out, the ridge is √(2·columns) deviations of the noise:
    about its largest eigenvalue; a public rule.
    """
    agreed = aggregate.round
    statistic = agreed.statistic if isinstance(agreed, StatisticRound) else None
    if not isinstance(statistic, SecondMoments):
        raise InputError("A linear model needs second moments. Nothing was spent.")
    if not isinstance(statistic.schema.columns.get(target), Interval):
        raise InputError(f"The target {target!r} must be an interval of the schema. Nothing was spent.")
    moments = statistic.matrix(aggregate.values)
    place = 1 + statistic.schema.slices[target].start
    others = [index for index in range(len(moments)) if index != place]
    usual = lost_to_noise(len(others), aggregate.deviation)
    ridge = usual if strength is None else positive(strength, "strength")
    weights = ridge_solution(moments[np.ix_(others, others)], moments[others, place], ridge)
    return LinearFit(statistic.schema, target, weights, ridge)
