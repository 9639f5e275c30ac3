"""Two strategies for quantiles with a portion of their own: drawn all together, or read off noisy cumulative counts.

In:   a question about quantiles, a guarantee, how many rows lie at each public place.
Out:  one line a quantile: value, standard error, interval.
Not here: the draws (questions/joint.py, mechanisms/joint_quantiles.py), quantiles that share their noise's budget with
      other sums (questions/quantile.py, plan/settle.py).
Proof: docs/proofs/quantiles.md

The prediction is for rows spread evenly over the range: the variance of the ranks times the squared width of one rank.
δ is left alone: the draws keep a pure ε.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa

from sfumato.core import Adjacency, Event, Guarantee
from sfumato.mechanisms.additive import IndependentNoise
from sfumato.plan.act import Act
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.intervals import Figure, NoiseLaw
from sfumato.questions.joint import JointQuestion
from sfumato.questions.quantile import Quantile, Quantiles
from sfumato.questions.registry import question_from_dict
from sfumato.questions.sums import Sums
from sfumato.run.publish_base import Performed, Publisher, law_for, point_of
from sfumato.run.view import tidy_rows, tidy_table

__all__ = ["CumulativeCounts", "JointPlaces"]


@final
class JointPlaces(Publisher):
    """JointQuestion on the range of the variable."""

    name: ClassVar[str] = "joint"
    kind: ClassVar[str] = Quantile.form.ways.name

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
        return self.act(self, wanted, guarantee, parameters)

    def events_of(self, act: Act) -> tuple[Event, ...]:
        return self._settled(act).events

    @staticmethod
    def _settled(act: Act) -> JointQuestion:
        assert act.guarantee.adjacency is not None
        epsilon, size = act.parameters["epsilon"], act.parameters["size"]
        return JointQuestion(_question(act), epsilon, act.guarantee.adjacency, size)

    @staticmethod
    def _asked(wanted: Wanted, guarantee: Guarantee, size: float) -> JointQuestion:
        question = wanted.question
        assert isinstance(question, Quantiles)
        rows = size * wanted.share
        return JointQuestion(question, point_of(guarantee)[0], wanted.request.adjacency, float(rows))

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        asked = self._settled(act)
        question = asked.question
        counts = np.asarray(table["count"].to_numpy(), dtype=np.int64)
        # The number of rows is used exactly only where everybody knows it.
        known = float(counts.sum()) if question.has_public_count else None
        return _performed(act, asked.answer(counts, known, random_state), asked.events)


@final
class CumulativeCounts(Publisher):
    """The same question by noise on its sums."""

    name: ClassVar[str] = "central"
    kind: ClassVar[str] = Quantile.form.ways.name

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        return None

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        question = wanted.question
        assert isinstance(question, Quantiles)
        _, law = _noise(question, guarantee, wanted.request.adjacency)
        rows, pure = size * wanted.share, law_for(guarantee).pure
        numbers = question.predicted(law, rows, pure)
        error = question.error(law.variance, rows, pure)
        note = f"For {rows:,.6g} rows spread evenly over the range."
        labels = question.parts() if question.size > 1 else ()
        widest = max(half for _, half in numbers)
        seen = Seen(wanted.columns[0], error, widest, question.size, note, numbers, labels, "drawn")
        return Prediction(error / question.size / question.width**2, (seen,), 0.1 + size * 1e-7)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        return self.act(self, wanted, guarantee, {})

    def events_of(self, act: Act) -> tuple[Event, ...]:
        assert act.guarantee.adjacency is not None
        noise, _ = _noise(_question(act), act.guarantee, act.guarantee.adjacency)
        return (noise.event(),)

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        question = _question(act)
        assert act.guarantee.adjacency is not None
        noise, law = _noise(question, act.guarantee, act.guarantee.adjacency)
        pure = law_for(act.guarantee).pure
        counts = table["count"].to_numpy().astype(object)
        exact = question.encode(Sums(question.entries(), (counts,), (counts,), int(counts.sum())), pure)
        noisy = dataclasses.replace(noise, random_state=random_state)(exact)
        return _performed(act, question.figures(noisy, law, None, pure), (noise.event(),))


def _question(act: Act) -> Quantiles:
    question = question_from_dict(act.parameters["question"])
    assert isinstance(question, Quantiles)
    return question


def _noise(question: Quantiles, guarantee: Guarantee, adjacency: Adjacency) -> tuple[IndependentNoise, NoiseLaw]:
    """What is added to the cumulative counts, and its law in one of them."""
    law, size = law_for(guarantee), question.dimension
    noise = law.mechanism.for_guarantee(guarantee, law.sensitivity(question.moves()), adjacency, dimension=size)
    return noise, law.noise(noise.scale, law.variance * noise.scale**2)


def _performed(act: Act, figures: Sequence[Figure], events: Sequence[Event]) -> Performed:
    (node,) = act.parameters["columns"]
    question = _question(act)
    published = tidy_table(tidy_rows(node, question.parts(), question.labels(), figures, question.calendar))
    return Performed(published, {}, tuple(events), tuple(dict.fromkeys(("quantiles", *(e.proof_id() for e in events)))))
