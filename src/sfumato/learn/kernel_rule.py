"""Which kernel classifier, which bandwidth, how many features: a public rule.

In:   the number of records, columns and classes, ε, δ, who is protected.
Out:  KernelPlan, made without any value of the data.
Not here: the classifiers (learn/kernel_mean.py and its neighbours), the public box (learn/kernel_base.py).

The numbers were fixed on handwritten digits, breast cancer and synthetic tables. Between revisions the results of
benchmarks/kernel_supports.py were looked at: the choice of statistics was revised after the first two looks and how
fast γ grows with the signal after the third, each time on the tables named above. That benchmark is therefore no
clean held-out test of the rule. That γ may follow the spread of the rows was decided because the vowel table missed its
bar; its numbers were fixed on the tables named above, in boxes of several widths, before the benchmark ran again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from sfumato.core.gaussian import gaussian_mu

__all__ = ["SPREAD_SHARE", "KernelPlan", "Kind", "class_signal", "components_for", "plan_kernel"]

Kind = Literal["mean", "ridge", "moment", "steps"]

#: γ·columns for a box of width 2: at the reference signal, at the least and at the most.
_BANDWIDTH, _WIDEST, _NARROWEST = 8.0, 6.0, 20.0
#: Signal: records of one class for each standard deviation of noise. γ grows with its fourth root.
_REFERENCE, _GROWTH = 5.0, 0.25
#: γ·(mean squared distance of two rows), where that distance is paid for: at a signal of 10, at the least, at the most.
_BY_SPREAD, _SPREAD_REFERENCE, _WIDEST_BY_SPREAD, _NARROWEST_BY_SPREAD = 3.0, 10.0, 2.0, 7.0
#: Share of the budget (of ε, or of μ² with δ) that the distance costs, and how far it may be off to be worth it.
SPREAD_SHARE, _USEFUL_DEVIATION = 0.04, 0.05
#: Gaussian noise in a score does not grow with the features; norm-gamma noise grows with their square root.
_FOR_PURE = 60
_FOR_GAUSSIAN: dict[Kind, int] = {"mean": 2000, "ridge": 300, "moment": 200, "steps": 400}


@dataclass(frozen=True)
class KernelPlan:
    """The settings that `"auto"` stands for; `pays` says whether the spread of rows is worth its price."""

    classifier: Kind
    gamma: float
    n_components: int
    pays: bool
    gamma_by_spread: float

    def gamma_for(self, spread: float) -> float:
        """The bandwidth for rows whose mean squared distance in a column is `spread`."""
        return self.gamma_by_spread / spread


def components_for(kind: Kind, delta: float) -> int:
    """How many features `"auto"` stands for."""
    return _FOR_GAUSSIAN[kind] if delta else _FOR_PURE


def plan_kernel(
    records: int | None, columns: int, classes: int, epsilon: float, delta: float = 0.0, moved: float = 2.0
) -> KernelPlan:
    """Settings for a box of width 2; `records=None` where their number is private, `moved` is the sensitivity.

    With δ > 0 second moments won on average over the tables the rule was made on. Under pure ε noise grows with the
    number of statistics, and class means have the fewest.

    >>> plan_kernel(5000, 36, 6, 1.0, 1e-5).classifier, plan_kernel(5000, 36, 6, 1.0).classifier
    ('moment', 'mean')
    >>> plan_kernel(5000, 36, 6, 10.0, 1e-5).gamma > plan_kernel(5000, 36, 6, 0.01, 1e-5).gamma
    True
    >>> plan_kernel(5000, 36, 6, 1.0, 1e-5).pays, plan_kernel(100, 36, 6, 1.0, 1e-5).pays
    (True, False)
    """
    kind: Kind = "moment" if delta else "mean"
    signal = _REFERENCE if records is None else class_signal(records, classes, epsilon, delta, moved)
    scaled = min(_NARROWEST, max(_WIDEST, _BANDWIDTH * (signal / _REFERENCE) ** _GROWTH))
    by_spread = _BY_SPREAD * (signal / _SPREAD_REFERENCE) ** _GROWTH
    by_spread = min(_NARROWEST_BY_SPREAD, max(_WIDEST_BY_SPREAD, by_spread))
    pays = records is not None and _spread_deviation(records, epsilon, delta) <= _USEFUL_DEVIATION
    return KernelPlan(kind, scaled / columns, components_for(kind, delta), pays, by_spread / columns)


def class_signal(records: int, classes: int, epsilon: float, delta: float, moved: float) -> float:
    """Records of one class for each standard deviation of the noise in sums that a record moves by `moved`.

    >>> round(class_signal(5000, 6, 1.0, 1e-6, 2.0), 1)
    98.6
    """
    deviation = moved / gaussian_mu(epsilon, delta) if delta else moved * (_FOR_PURE * classes) ** 0.5 / epsilon
    return records / (classes * deviation)


def _spread_deviation(records: int, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise in the mean over pairs of rows, each of which counts at most 1."""
    one = gaussian_mu(epsilon, delta) * math.sqrt(SPREAD_SHARE) if delta else epsilon * SPREAD_SHARE / math.sqrt(2)
    return 1 / (one * max(records // 2, 1))
