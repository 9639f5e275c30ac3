"""The strategy for groups(Atom, RV, Goal): values that nobody listed, named where enough people have them.

In:   how many people have each value that occurs, an (ε, δ).
Out:  one line a named value: its noisy count and its interval, in the order of the names.
Not here: the draw (mechanisms/group_counts.py), what counts (questions/groups.py).
Proof: docs/proofs/partition_selection.md
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa

from sfumato.core import Event, Guarantee
from sfumato.mechanisms import GroupCounts
from sfumato.plan.act import Act
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.groups import FoundGroups
from sfumato.questions.intervals import Figure
from sfumato.questions.question import Question
from sfumato.questions.registry import question_from_dict
from sfumato.run.publish_base import Performed, Publisher, point_of
from sfumato.run.view import COLUMNS, tidy_rows, tidy_table

__all__ = ["NamedGroups"]


@final
class NamedGroups(Publisher):
    """GroupCounts on the values that occur."""

    name: ClassVar[str] = "named"
    kind: ClassVar[str] = FoundGroups.form.ways.name

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        if point_of(guarantee)[1] > 0:
            return None
        return "a promise without δ names no group: whoever is alone in one would be seen. State dp(ε, δ)"

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        assert wanted.question is not None
        counter = _counter(wanted.question, guarantee)
        half = int(np.argmax(counter.chances >= 0.5))
        certain = int(np.argmax(counter.chances >= 0.999))
        note = f"A value that {half} people have is named with a chance of one half, one that {certain} have in 999 of "
        note += "1000 cases; which values occur is not known before."
        deviation = math.sqrt(counter.error())
        low, high = counter.interval(np.array([10 * len(counter.weights)]))
        width = float(high[0] - low[0]) / 2
        seen = Seen(wanted.columns[0], counter.error(), width, 1, note, ((deviation, width),), (), "drawn")
        return Prediction(counter.error() / size**2, (seen,), 0.1 + size * 1e-6)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        return self.act(self, wanted, guarantee, {})

    def events_of(self, act: Act) -> tuple[Event, ...]:
        return (_counter(question_from_dict(act.parameters["question"]), act.guarantee).event(),)

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        question = question_from_dict(act.parameters["question"])
        counter = dataclasses.replace(_counter(question, act.guarantee), random_state=random_state)
        texts, sizes = table["text"].to_pylist(), table["count"].to_numpy().astype(np.int64)
        counts = counter(sizes) if sizes.size else sizes
        named = sorted((texts[place], int(counts[place])) for place in np.flatnonzero(counts))
        low, high = counter.interval(np.array([count for _, count in named], dtype=np.int64))
        deviation = math.sqrt(counter.error())
        figures = [
            Figure(float(count), deviation, min(float(a), count), max(float(b), count))
            for (_, count), a, b in zip(named, low, high, strict=True)
        ]
        variable = question.axes[0].variable
        (node,) = act.parameters["columns"]
        labels = [{variable: text} for text, _ in named]
        rows = tidy_rows(node, [text for text, _ in named], labels, figures)
        published = tidy_table(rows) if rows else _nobody(variable)
        return Performed(published, {}, (counter.event(),), (counter.proof,))


def _counter(question: Question, guarantee: Guarantee) -> GroupCounts:
    assert guarantee.adjacency is not None
    return GroupCounts.for_guarantee(guarantee, question.rows, guarantee.adjacency)


def _nobody(variable: str) -> pa.Table:
    """No group was named: the columns without a line."""
    text, number = pa.array([], pa.string()), pa.array([], pa.float64())
    return pa.table({**dict.fromkeys((*COLUMNS[:2], variable), text), **dict.fromkeys(COLUMNS[2:], number)})
