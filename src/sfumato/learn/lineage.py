"""How often an estimator and its clones were fitted: every fit draws, and the draws add up.

In:   an estimator, at every clone and at every fit.
Out:  Lineage: what all fits so far cost together; PrivacyLeakWarning where there is more than one.
Not here: charging a ledger (learn/fitting.py), searching within one budget (learn/search.py).

`cross_val_score`, `GridSearchCV` and their like clone an estimator and fit the clones on the same people. A clone
knows its relatives, so the second fit of the family tells what both cost. What is counted are fits in one process; a
clone that is fitted in another process knows how many clones were made before it. A new object with the same parameters
begins a family of its own: for different people, make one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import clone

from sfumato.core.compose import add_exactly
from sfumato.core.guarantee import ApproxDP, Guarantee, NoGuarantee, PureDP

__all__ = ["Lineage", "PrivacyLeakWarning", "cloned", "lineage_of", "on_its_own"]


class PrivacyLeakWarning(UserWarning):
    """Something about the records leaves by a way that `guarantee_` does not cover, or that costs more than one fit."""


class Lineage:
    """What an estimator and all its clones have spent, each fit on its own guarantee.

    >>> family = Lineage()
    >>> family.add(PureDP(0.1)), family.add(PureDP(0.2))
    (PureDP(adjacency=None, eps=0.1), PureDP(adjacency=None, eps=0.3))
    """

    def __init__(self) -> None:
        self.spent: list[Guarantee] = []
        self.clones = 0
        self._process = os.getpid()

    def __deepcopy__(self, memo: Any) -> Lineage:
        """A copy of an estimator is a relative of it: what both spend is counted here."""
        return self

    def add(self, own: Guarantee, place: int = 0) -> Guarantee:
        """Counts a fit that promises `own`; what all fits promise together if all were on the same people.

        `place` is how many clones had been made when this one was: in another process nothing else is known.
        """
        if self._process != os.getpid():
            self.spent += [own] * (place - len(self.spent) - 1)
        self.spent.append(own)
        return _together(self.spent)


def _added(spent: list[Guarantee]) -> tuple[float, float]:
    epsilons, deltas = zip(*(one.stated for one in spent), strict=True)
    return add_exactly(epsilons), add_exactly(deltas)


def _together(spent: list[Guarantee]) -> Guarantee:
    """(Σε, Σδ): basic composition, which every one of the fits implies too."""
    last = spent[-1]
    if len(spent) == 1:
        return last
    for one in spent:
        if isinstance(one, NoGuarantee):
            return one
    if len({one.adjacency for one in spent}) > 1:
        return NoGuarantee("clones were fitted under different adjacencies, whose costs do not add")
    epsilon, delta = _added(spent)
    if delta >= 1:
        return NoGuarantee(f"the deltas of {len(spent)} fits add up to more than 1").under(last.adjacency)
    total = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    return total if last.adjacency is None else total.under(last.adjacency)


def lineage_of(estimator: Any) -> Lineage:
    """The family of an estimator; a new one for an estimator that has none."""
    family = vars(estimator).get("_lineage")
    if family is None:
        family = estimator._lineage = Lineage()
    return family


def cloned(estimator: Any) -> Any:
    """An unfitted estimator with the same parameters that knows its relatives: scikit-learn's clone and this word."""
    parameters = {name: clone(value, safe=False) for name, value in estimator.get_params(deep=False).items()}
    copy = type(estimator)(**parameters)
    if hasattr(estimator, "_metadata_request"):  # what set_fit_request said
        copy._metadata_request = clone(estimator._metadata_request, safe=False)
    if not vars(estimator).get("_solitary"):
        family = copy._lineage = lineage_of(estimator)
        family.clones += 1
        copy._place = family.clones
    return copy


@contextmanager
def on_its_own(estimators: list[Any]) -> Iterator[None]:
    """Within, clones of these begin families of their own: for whoever pays for all fits together."""
    for one in estimators:
        one._solitary = True
    try:
        yield
    finally:
        for one in estimators:
            del one._solitary


def count_fit(estimator: Any) -> None:
    """Called after every fit: `guarantee_` becomes that of all fits of the family, and a warning says so.

    Told at the 2nd, 4th, 8th … fit, so that a search over a hundred fits says it seven times.
    """
    own = estimator.guarantee_
    family = lineage_of(estimator)
    estimator.guarantee_ = family.add(own, vars(estimator).get("_place", 0))
    number = len(family.spent)
    if estimator.guarantee_ == own or number & (number - 1):
        return
    warnings.warn(
        f"This is fit number {number} of one {type(estimator).__name__} and its clones, as cross_val_score, "
        f"GridSearchCV and fit called again make them. Every fit draws: on the same people all of them together keep "
        f"{estimator.guarantee_.describe()}, which guarantee_ now says, and a choice by scores of private rows is in "
        "no guarantee at all. Rows drawn with replacement (BaggingClassifier without bootstrap=False) make several "
        "records of one, which is not in the sum. To choose parameters within one budget use "
        "sfumato.learn.PrivateSearch(estimator, grid, epsilon). For other people make a new estimator.",
        PrivacyLeakWarning,
        stacklevel=5,
    )
