"""Which kernel classifier, which bandwidth, how many features: a public rule.

In:   the number of records, columns and classes, ε, δ, who is protected.
Out:  KernelPlan, made without any value of the data.
Not here: the classifiers (learn/kernel_mean.py and its neighbours), the public box (learn/kernel_base.py).

The numbers were fixed on handwritten digits, breast cancer and synthetic tables. Between revisions the results of
benchmarks/kernel_supports.py were looked at: the choice of statistics was revised after the first two looks and how
fast γ grows with the signal after the third, each time on the tables named above. That benchmark is therefore no
clean held-out test of the rule. That γ may follow the spread of the rows was decided because the vowel table missed its
bar; its numbers were fixed on the tables named above, in boxes of several widths, before the benchmark ran again.

How γ falls with the columns was fixed on made tables alone: 2 to 100 columns spread evenly over their box or over a
part of it, half of them coins, in groups around 15 centres, or on three directions; labels linear, additive, of two
columns together and of the distance from the middle; 2,000 to 3,000 rows, ε = 1 and 10. Regions of one class keep the
rule of before (`support_gamma`): they ask for hills, and not for scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from sfumato.core.gaussian import gaussian_mu

__all__ = [
    "SPREAD_SHARE",
    "KernelPlan",
    "Kind",
    "bandwidths",
    "components_for",
    "narrowest_by_spread",
    "plan_kernel",
    "support_gamma",
]

Kind = Literal["mean", "ridge", "moment"]

#: γ·columns for a box of width 2: at the reference signal, at the least and at the most.
_BANDWIDTH, _WIDEST, _NARROWEST = 8.0, 6.0, 20.0
#: Signal: records of one class for each standard deviation of noise. γ grows with its fourth root.
_REFERENCE, _GROWTH = 5.0, 0.25
#: γ·(mean squared distance of two rows), where that distance is paid for: at a signal of 10, at the least, at the most.
_BY_SPREAD, _SPREAD_REFERENCE, _WIDEST_BY_SPREAD, _NARROWEST_BY_SPREAD = 3.0, 10.0, 2.0, 7.0
#: In many columns all rows are about equally far apart, and a narrow kernel is as good as 0 between any two of them.
#: Both most values fall with the columns, from these numbers divided by them down to the least. Not so where the spread
#: is bought for a training, or for "wide": those are wider than sums by a quarter and a half, and were never at chance.
_NARROWING, _NARROWEST_OF_MANY = 80.0, 3.0
_NARROWING_BY_SPREAD, _NARROWEST_OF_MANY_BY_SPREAD = 40.0, 1.5
#: By the box alone, in more columns than these, features of class means and of training have two bandwidths, which are
#: these multiples of γ: how much of the box the rows fill is not known. Sums of products lose more by it than they
#: gain.
_FEW_COLUMNS = 5
_MULTIPLES: dict[str, tuple[float, ...]] = {"mean": (0.5, 4.0), "trained": (0.25, 2.0)}
#: Share of the budget (of ε, or of μ² with δ) that the distance costs, and how far it may be off to be worth it.
SPREAD_SHARE, _USEFUL_DEVIATION = 0.04, 0.05
#: Gaussian noise in a score does not grow with the features; norm-gamma noise grows with their square root.
_FOR_PURE = 60
_FOR_GAUSSIAN: dict[Kind, int] = {"mean": 2000, "ridge": 300, "moment": 200}


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
    >>> plan_kernel(5000, 4, 6, 10.0, 1e-5).gamma > plan_kernel(5000, 4, 6, 0.01, 1e-5).gamma
    True
    >>> plan_kernel(5000, 36, 6, 1.0, 1e-5).pays, plan_kernel(100, 36, 6, 1.0, 1e-5).pays
    (True, False)
    >>> [round(plan_kernel(5000, columns, 2, 10.0, 1e-5).gamma, 2) for columns in (2, 20, 80)]
    [10.0, 0.2, 0.04]
    """
    kind: Kind = "moment" if delta else "mean"
    signal = _signal(records, classes, epsilon, delta, moved)
    most = min(_NARROWEST, max(_NARROWEST_OF_MANY, _NARROWING / columns))
    by_spread = _BY_SPREAD * (signal / _SPREAD_REFERENCE) ** _GROWTH
    by_spread = min(_NARROWEST_BY_SPREAD, max(_WIDEST_BY_SPREAD, by_spread))
    pays = records is not None and _spread_deviation(records, epsilon, delta) <= _USEFUL_DEVIATION
    gamma = min(most, _scaled(signal)) / columns
    return KernelPlan(kind, gamma, components_for(kind, delta), pays, by_spread / columns)


def bandwidths(form: str, columns: int) -> tuple[float, ...]:
    """Multiples of the public rule's γ that features of `form` (a Kind, or "trained") have, by the box alone.

    >>> bandwidths("mean", 2), bandwidths("mean", 30), bandwidths("moment", 30)
    ((1.0,), (0.5, 4.0), (1.0,))
    """
    return (1.0,) if columns <= _FEW_COLUMNS else _MULTIPLES.get(form, (1.0,))


def narrowest_by_spread(columns: int, spread: float) -> float:
    """The largest γ of sums for rows whose mean squared distance in a column is `spread`.

    >>> [round(narrowest_by_spread(columns, 0.5), 2) for columns in (2, 20, 80)]
    [7.0, 0.2, 0.04]
    """
    most = min(_NARROWEST_BY_SPREAD, max(_NARROWEST_OF_MANY_BY_SPREAD, _NARROWING_BY_SPREAD / columns))
    return most / (columns * spread)


def support_gamma(records: int, columns: int, epsilon: float, delta: float = 0.0) -> float:
    """The bandwidth of one support function for all rows, in a box of width 2.

    >>> support_gamma(5000, 20, 10.0, 1e-5)
    1.0
    """
    return _scaled(_signal(records, 1, epsilon, delta, 2.0)) / columns


def _signal(records: int | None, classes: int, epsilon: float, delta: float, moved: float) -> float:
    """Records of a class for each standard deviation of noise in its sums."""
    deviation = moved / gaussian_mu(epsilon, delta) if delta else moved * (_FOR_PURE * classes) ** 0.5 / epsilon
    return _REFERENCE if records is None else records / (classes * deviation)


def _scaled(signal: float) -> float:
    """γ·columns for a box of width 2, however many columns there are."""
    return min(_NARROWEST, max(_WIDEST, _BANDWIDTH * (signal / _REFERENCE) ** _GROWTH))


def _spread_deviation(records: int, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise in the mean over pairs of rows, each of which counts at most 1."""
    one = gaussian_mu(epsilon, delta) * math.sqrt(SPREAD_SHARE) if delta else epsilon * SPREAD_SHARE / math.sqrt(2)
    return 1 / (one * max(records // 2, 1))
