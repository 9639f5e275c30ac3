"""A question about many individuals, in its place in the network.

In:   a Question, the condition that chooses rows.
Out:  AggregateNode.
Not here: what the question is (questions/), its sums (network/totals.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.lang.term import Position, Term
from sfumato.network.condition import Condition
from sfumato.questions.question import Question

__all__ = ["AggregateNode"]


@dataclass(frozen=True, slots=True)
class AggregateNode:
    """Numbers that sum up individuals of `dataset`: a question over the rows that fulfil a condition.

    `unbounded` says why a value has no bounds, where it has none. Where random variables decide who counts, or are
    multiplied or sorted into cells, the question is `expected`: every row adds its expected contribution
    (network/expected.py), a mean of contributions that are possible.
    """

    name: str
    atom: Term
    dataset: str
    question: Question
    condition: Condition
    row_table: str | None = None
    unbounded: str = field(default="", compare=False)
    position: Position | None = field(default=None, compare=False, repr=False)

    level = "aggregate"

    @property
    def parents(self) -> tuple[str, ...]:
        """The nodes of an individual it reads."""
        return tuple(dict.fromkeys((*self.question.variables, *sorted(self.condition.references()))))
