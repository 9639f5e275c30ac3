"""Classifiers that treat groups alike: what a plan expects of them, and how one is learned, measured and published.

In:   an act whose parameters ask for fairness, the base classifier, the columns.
Out:  how many people are measured, what share of answers is expected to stay; Performed.
Not here: the base classifiers (run/publish_learning.py), the measurement (learn/fair.py).
Proof: docs/proofs/fairness.md

How unfair a rule is nobody knows before it is measured. Plans assume a gap of 0.1 and groups of equal size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sfumato.core import Guarantee, Schema
from sfumato.core.fairness import NEARLY_CONSTANT, Fairness
from sfumato.learn.base import NothingLearnedWarning
from sfumato.learn.fair import FairClassifier
from sfumato.learn.model_document import model_document
from sfumato.mechanisms.gaussian import largest_mu
from sfumato.plan.act import Act
from sfumato.plan.cell_rules import own_names
from sfumato.plan.wanted import Wanted
from sfumato.run.publish_base import Performed, point_of

__all__ = ["Expected", "expected_fairness", "fair_refusal", "perform_fair"]

_ASSUMED_GAP = 0.1
_PORTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


class Expected:
    """The best portion to measure, and what is then expected to stay of the rule."""

    def __init__(self, portion: float, share: float, error: float, cell: float, least: float) -> None:
        self.portion, self.share, self.error, self.cell, self.least = portion, share, error, cell, least

    def sentence(self, fairness: Fairness) -> str:
        told = (
            f"fairness: {fairness}. The price: {100 * self.portion:.0f} % of the people are kept for measuring, and a "
            f"rule whose own gap is {_ASSUMED_GAP:g} keeps about {100 * self.share:.2g} % of its answers "
            f"({self.cell:,.0f} people measured in each group); the others are one and the same for everybody"
        )
        told = f"{told}: fair by being nearly constant" if self.share < NEARLY_CONSTANT else told
        return f"{told}. A group with fewer than about {self.least:,.0f} people{fairness.of_whom} makes it half of that"


def fair_refusal(wanted: Wanted, guarantee: Guarantee) -> str | None:
    """Why no fair rule can be made of this; None where one can."""
    if wanted.fairness is None:
        return None
    if wanted.classes != 2:
        return f"fairness is about a yes and a no, and {wanted.target} has {wanted.classes} labels"
    if not point_of(guarantee)[1]:
        return "a gap is measured with Gaussian noise, which needs a δ: state dp(ε, δ)"
    return None


def expected_fairness(
    fairness: Fairness, guarantee: Guarantee, size: float, overturned: Callable[[float], float]
) -> Expected:
    """By a search over portions: the least error, `overturned` being that of a rule learned on so many people."""
    scale = 1 / largest_mu(guarantee)
    found = []
    for portion in _PORTIONS:
        cell = size * portion / fairness.cells
        share = fairness.share_for(_ASSUMED_GAP, cell, scale)
        error = share * overturned(max(1.0, size * (1 - portion))) + (1 - share) / 2
        found.append(Expected(portion, share, error, cell, _least(fairness, share / 2, scale) / portion))
    return min(found, key=lambda one: one.error)


def _least(fairness: Fairness, share: float, scale: float) -> float:
    """How many people must be measured in each cell for this share of a rule's answers."""
    size = 1.0
    while fairness.share_for(_ASSUMED_GAP, size, scale) < share and size < 1e9:
        size *= 1.2
    return size


def perform_fair(
    act: Act,
    base: Any,
    table: pa.Table,
    identifiers: Sequence[Any],
    told_of: Callable[[Any, Mapping[str, str]], pa.Table],
) -> Performed:
    """Learn on one portion, measure on the other; the rule with its record, and the events of both."""
    asked, group = Fairness.from_dict(act.parameters["fairness"]), str(act.parameters["group"])
    columns, target = list(act.parameters["columns"]), str(act.parameters["target"])
    labels = Schema.from_toml(act.parameters["schema"]).columns[target].values  # type: ignore[union-attr]  # categories
    fair = FairClassifier(
        base,
        measure=asked.measure,
        gap=asked.gap,
        groups=asked.groups,
        labels=list(labels),
        on=asked.where,
        confidence=asked.confidence,
        portion=act.parameters["portion"],
        adjacency=act.guarantee.adjacency,  # type: ignore[arg-type]  # an act says who is protected
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NothingLearnedWarning)
        fair.fit(
            table.select(columns),
            table[target].to_numpy(zero_copy_only=False),
            who=table[group].to_numpy(zero_copy_only=False),
            names=identifiers,
        )
    told = tuple(str(one.message) for one in caught if issubclass(one.category, NothingLearnedWarning))
    certificate = fair.certificate_
    notes = (*(note for note in certificate.notes if "random_state" not in note), *told)
    names = own_names(columns, act.parameters.get("cells", {}))
    document = model_document(act.kind, act.strategy, target, fair.base_, notes, fair.measured_, names, labels)
    found = fair.measured_
    numbers = {
        "share of own answers": found.share,
        f"share that is {labels[found.constant]} whoever asks": 1 - found.share,
        "bound of the gap": found.bound,
    }
    measured = pa.table({"part": pa.array(list(numbers), pa.string()), "value": pa.array(list(numbers.values()))})
    return Performed(
        pa.concat_tables([told_of(fair.base_, names), measured]),
        {"json": document},
        certificate.events,
        certificate.proofs,
        notes,
    )
