"""The strategy for means and sums of variables without a public range: bounds first, then what is clipped to them.

In:   how many rows there are of each power of two, and their sums; an (ε, δ) or an ε.
Out:  the bounds, and a line for each group: the number between them with its interval.
Not here: which bounds follow from noisy counts (questions/bought.py), noise (mechanisms/).
Proof: docs/proofs/private_ranges.md

Both draws are fixed beforehand: the second is on numbers divided by what one individual can move them by, whatever the
bounds are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa

from sfumato.core import Adjacency, Event, Guarantee
from sfumato.core.domain import Interval
from sfumato.mechanisms.additive import IndependentNoise
from sfumato.mechanisms.elsewhere import Elsewhere
from sfumato.plan.act import Act
from sfumato.plan.draw_law import DrawLaw
from sfumato.plan.plan import Seen
from sfumato.plan.settle import ARITHMETIC
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.bought import Bought
from sfumato.questions.registry import question_from_dict
from sfumato.run.publish_base import Performed, Publisher, law_for
from sfumato.run.view import tidy_rows, tidy_table

__all__ = ["BoughtBounds"]

#: The chance that a power of which there is nobody reaches the threshold. Were it 0.05, the few ranges that are far too
#: wide would make most of the error.
_WRONG = 1e-4
_BELOW = 1 - 1e-12


@final
class BoughtBounds(Publisher):
    """Noisy counts of powers, then a clipped mean or sum."""

    name: ClassVar[str] = "bounds"
    kind: ClassVar[str] = Bought.form.ways.name
    summed: ClassVar[bool] = True

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        return None

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        question = _question(wanted.question)
        counts, numbers = _noises(question, guarantee, wanted.request.adjacency)
        drawn, rows = law_for(guarantee), size * wanted.share
        law = drawn.noise(numbers.scale, numbers.error()).times(_moved(question, -0.5, 0.5, drawn))
        pairs = question.predicted(law, rows, drawn.pure)
        least = _threshold(question, counts, drawn)
        note = (
            f"In units of the width of the bounds, which are bought with {question.share:g} of the budget and not "
            f"known before: powers of two that about {least:,.3g} rows or more have. For {rows:,.6g} rows."
        )
        error = question.error(law.variance, rows, drawn.pure)
        seen = Seen(wanted.columns[0], error, pairs[0][1], question.size, note, pairs, question.parts(), "drawn")
        return Prediction(error / question.scale(rows, size) ** 2, (seen,), 0.1 + size * 1e-7)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        return self.act(self, wanted, guarantee, {})

    def events_of(self, act: Act) -> tuple[Event, ...]:
        question, adjacency = _question(question_from_dict(act.parameters["question"])), act.guarantee.adjacency
        assert adjacency is not None
        return tuple(noise.event() for noise in _noises(question, act.guarantee, adjacency))

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        question = _question(question_from_dict(act.parameters["question"]))
        assert act.guarantee.adjacency is not None
        counts, numbers = _noises(question, act.guarantee, act.guarantee.adjacency)
        law, drawing = law_for(act.guarantee), _Drawing(random_state)
        powers = drawing(counts, question.by_power(table["count"].to_numpy()))
        found = question.bounds_of(powers, _threshold(question, counts, law) * drawing.wider(counts))
        low, high = found or (-Interval.WIDEST, Interval.WIDEST)
        units, rows = ([int(one) for one in table[name].to_pylist()] for name in ("sum", "count"))
        groups = question.clipped(low, high, units, rows)
        asked, moved = question.between(low, high), _moved(question, low, high, law)
        noisy = drawing(numbers, question.encoded(asked, groups, law.pure) / moved) * moved
        # The number of rows is used exactly only where everybody knows it.
        known = float(drawing.records(numbers, sum(rows))) if question.has_public_count else None
        noise = law.noise(numbers.scale, numbers.error()).times(moved * drawing.wider(numbers))
        figures = asked.figures(noisy, noise, known, law.pure)
        told = f"[{_written(low)}, {_written(high)}]"
        bounds = {"clipped_from": float(low), "clipped_to": float(high)}
        labels = [{**label, **bounds} for label in asked.labels()]
        parts = _clipped_parts(asked.parts(), told, found is not None)
        (node,) = act.parameters["columns"]
        note = _note(node, question, told, found is not None)
        events = (counts.event(), numbers.event())
        proofs = tuple(dict.fromkeys((question.proof, *(event.proof_id() for event in events))))
        return Performed(tidy_table(tidy_rows(node, parts, labels, figures)), {}, events, proofs, (note,))


@final
class _Drawing:
    """Both draws: made here, in a dry run with a seed, or by several institutions (mechanisms/elsewhere.py)."""

    def __init__(self, source: int | Elsewhere | None) -> None:
        self._elsewhere = source if isinstance(source, Elsewhere) else None
        self._seed = None if isinstance(source, Elsewhere) else source

    def __call__(self, noise: IndependentNoise, exact: np.ndarray) -> np.ndarray:
        if self._elsewhere is not None:
            return self._elsewhere([noise], [np.asarray(exact, dtype=np.float64)])[0]
        seeded = dataclasses.replace(noise, random_state=self._seed)
        self._seed = None if self._seed is None else self._seed + 1
        return seeded(exact)

    def wider(self, noise: IndependentNoise) -> float:
        """How many times the deviation of what was drawn is that of the noise: who feared absences drew more."""
        return 1.0 if self._elsewhere is None else self._elsewhere.deviation(noise) / math.sqrt(noise.error())

    def records(self, noise: IndependentNoise, own: int) -> int:
        """How many rows the second draw is of."""
        return own if self._elsewhere is None else self._elsewhere.records_of(noise)


def _clipped_parts(parts: Sequence[str], told: str, found: bool) -> list[str]:
    """What each number is about, and between which bounds."""
    clipped = f"clipped to {told}" if found else f"no bounds were found, clipped to {told}"
    return [f"{own}, {clipped}" if own else clipped for own in parts]


def _note(node: str, question: Bought, told: str, found: bool) -> str:
    note = f"{node} is the {question.kind} of what is clipped to {told}, bounds that "
    note += f"were bought with {question.share:g} of its budget; its interval is for that clipped {question.kind}."
    note += "" if found else " No power of two had enough rows: more rows, or a larger share, would find bounds."
    return note


def _written(bound: float) -> str:
    """All digits: what was clipped to is a power of two, and rounded it would be another bound."""
    return repr(float(bound)).removesuffix(".0")


def _question(question: Any) -> Bought:
    assert isinstance(question, Bought)
    return question


def _noises(question: Bought, guarantee: Guarantee, adjacency: Adjacency) -> tuple[IndependentNoise, IndependentNoise]:
    """On the counts of powers, and on the clipped numbers over what one individual moves them by."""
    law, size = law_for(guarantee), question.powers
    numbers = question.between(0.0, 1.0).drawn_size(law.pure)
    whole = law.whole(guarantee) * _BELOW
    bought, rest = (law.guarantee(part * whole) for part in (question.share, 1 - question.share))
    return (
        law.mechanism.for_guarantee(bought, law.sensitivity(question.counted_moves), adjacency, dimension=size),
        law.mechanism.for_guarantee(rest, law.norm(ARITHMETIC), adjacency, dimension=numbers),
    )


def _moved(question: Bought, low: float, high: float, law: DrawLaw) -> float:
    return law.sensitivity(question.between(low, high).moves())


def _threshold(question: Bought, noise: IndependentNoise, law: DrawLaw) -> float:
    """What none of the empty powers reaches, but with a small chance."""
    return noise.scale * -float(law.quantile(np.array(_WRONG / question.powers)))
