"""Who publishes the fixture kind: the second file of the recipe, since what draws imports more than what is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, final

import pyarrow as pa
from sfumato.questions.kinds.favourite import FavouriteKind  # type: ignore[import-not-found]

from sfumato.core import Adjacency, Categories, Guarantee, Schema
from sfumato.core.events.event import Event
from sfumato.mechanisms import PermuteAndFlip
from sfumato.plan.act import Act
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.run.publish_base import Performed, Publisher

__all__ = ["Flipped"]


@final
class Flipped(Publisher):
    """PermuteAndFlip on how many people have each value: replacing one moves two counts by one."""

    name: ClassVar[str] = "flips"
    kind: ClassVar[str] = FavouriteKind.functor
    words: ClassVar[str] = "the value of {columns} that most individuals have, or one that nearly as many have"

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        return None if isinstance(wanted.domains[0], Categories) else f"{wanted.columns[0]} has no listed values"

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        error = _choice(guarantee, wanted.request.adjacency).error()
        seen = Seen(wanted.columns[0], error, error**0.5, 1, "In people who have the value drawn, and not the best.")
        return Prediction(error / size**2, (seen,))

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        return self.act(self, wanted, guarantee, {})

    def events_of(self, act: Act) -> tuple[Event, ...]:
        assert act.guarantee.adjacency is not None
        return (_choice(act.guarantee, act.guarantee.adjacency).event(),)

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        (column,) = act.parameters["columns"]
        domain = Schema.from_toml(act.parameters["schema"]).columns[column]
        assert isinstance(domain, Categories)
        assert act.guarantee.adjacency is not None
        choice = _choice(act.guarantee, act.guarantee.adjacency)
        cells = table[column].to_pylist()
        drawn = dataclasses.replace(choice, random_state=random_state)([cells.count(one) for one in domain.values])
        return Performed(pa.table({column: [domain.values[drawn]]}), {}, (choice.event(),), (choice.proof,))


def _choice(guarantee: Guarantee, adjacency: Adjacency) -> PermuteAndFlip:
    return PermuteAndFlip.for_guarantee(guarantee, 1.0, adjacency)
