"""A question about many individuals, in its place in the network.

In:   a Question, the condition that chooses rows.
Out:  AggregateNode.
Not here: what the question is (questions/), its sums (network/totals.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from sfumato.lang.term import Position, Term
from sfumato.network.condition import Complete, Condition, Every
from sfumato.questions.family import Family, families
from sfumato.questions.question import Question

__all__ = ["AggregateNode", "tables_together"]


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

    @property
    def complete(self) -> tuple[Complete, ...]:
        """Where structures differ in what is skipped: the variables behind which every individual needs her cells."""
        parts = self.condition.parts if isinstance(self.condition, Every) else ()
        return tuple(part for part in parts if isinstance(part, Complete))

    @property
    def assumed_share(self) -> float:
        """Contributions a person is taken to make: 1, or √N of at most N rows; half of that under a condition.

        √N is a factor of √N from both ends, one row each and N rows each. For predictions only.
        """
        rows = math.sqrt(self.question.rows)
        return rows if self.question.everybody or (self.row_table and self.condition.trivial) else rows / 2


def tables_together(nodes: Iterable[AggregateNode]) -> tuple[Family, ...]:
    """Tables of the same rows of the same people that are published together and can be made consistent."""
    drawn = {node.name: node for node in nodes if not node.question.is_public}
    rows = {name: (node.dataset, node.row_table, node.condition) for name, node in drawn.items()}
    found = families({name: node.question for name, node in drawn.items()}, rows)
    return tuple(family for family in found if len(family.members) > 1)
