"""The strategy for quantiles that are drawn themselves: places all together, and counts around them.

In:   a question about quantiles, a pure ε, how many rows lie at each public place.
Out:  one line a quantile: value, standard error, interval.
Not here: the draws (questions/joint.py, mechanisms/joint_quantiles.py), quantiles read off noisy sums
      (questions/quantile.py).
Proof: docs/proofs/quantiles.md

The prediction is for rows spread evenly over the range: the variance of the ranks times the squared width of one rank.
δ is left alone: the draws keep a pure ε.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa

from sfumato.core import Guarantee
from sfumato.plan.act import Act
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.joint import JointQuestion
from sfumato.questions.quantile import Quantiles
from sfumato.questions.registry import question_from_dict
from sfumato.run.publish_base import Performed, Publisher, point_of

__all__ = ["JointPlaces"]


@final
class JointPlaces(Publisher):
    """JointQuestion on the range of the variable."""

    name: ClassVar[str] = "joint"
    kind: ClassVar[str] = "quantile"

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        assert isinstance(wanted.question, Quantiles)
        return JointQuestion.refused(wanted.question) or None

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        asked = self._asked(wanted, guarantee, size)
        question, numbers = asked.question, asked.predicted()
        error = math.fsum(one**2 for one, _ in numbers)
        note = f"For {asked.size:,.6g} rows spread evenly over the range."
        widest = max(half for _, half in numbers)
        labels = question.parts() if question.size > 1 else ()
        seen = Seen(wanted.columns[0], error, widest, question.size, note, numbers, labels, "drawn")
        return Prediction(error / question.size / question.width**2, (seen,), 0.1 + size * 2e-6 * question.size)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        asked = self._asked(wanted, guarantee, size)
        parameters = {"epsilon": asked.epsilon, "size": asked.size}
        return self.act(self, wanted, guarantee, parameters, asked.events)

    @staticmethod
    def _asked(wanted: Wanted, guarantee: Guarantee, size: float) -> JointQuestion:
        question = wanted.question
        assert isinstance(question, Quantiles)
        rows = size if question.everybody else size * question.rows / 2
        return JointQuestion(question, point_of(guarantee)[0], wanted.request.adjacency, float(rows))

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        question = question_from_dict(act.parameters["question"])
        assert isinstance(question, Quantiles)
        assert act.guarantee.adjacency is not None
        asked = JointQuestion(question, act.parameters["epsilon"], act.guarantee.adjacency, act.parameters["size"])
        counts = table["count"].to_numpy()
        # The number of rows is used exactly only where everybody knows it.
        known = float(counts.sum()) if question.has_public_count else None
        figures = asked.answer(np.asarray(counts, dtype=np.int64), known, random_state)
        (node,) = act.parameters["columns"]
        rows = [
            (node, part, one.value, one.standard_error, one.low, one.high)
            for part, one in zip(question.parts(), figures, strict=True)
        ]
        names = ("node", "part", "value", "standard_error", "low", "high")
        published = pa.table({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})
        return Performed(published, {}, asked.events, tuple(event.proof_id() for event in asked.events))
