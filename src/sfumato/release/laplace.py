"""The comparator: a whole table with Laplace noise.

In:   a public schema, (ε, δ), and what shall be equal to the Gaussian release: privacy or Fisher information. Out:
PreparedTable / TableRelease. Not here: a recommendation. At equal information Laplace noise has twice the Gaussian's
variance; at equal privacy it wins for few columns and δ = 0 and loses for many. Proof: docs/proofs/table_release.md
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.compose import compose
from sfumato.core.domain import Categories
from sfumato.core.guarantee import ApproxDP, Guarantee, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms import Laplace, RandomizedResponse
from sfumato.release.acts import AdditiveColumn, ColumnAct, Respond, events_of, interval
from sfumato.release.budget import Share, responder, split
from sfumato.release.gaussian import GaussianRelease
from sfumato.release.label import with_label
from sfumato.release.table import PreparedTable, TableReleaser, check_kept, feature_columns, protected

__all__ = ["LaplaceRelease"]


@final
@dataclass(frozen=True)
class LaplaceRelease(TableReleaser):
    """Adds independent Laplace noise to each interval column and answers categories at random.

    `equalise="privacy"`: calibrated to (`epsilon`, `delta`) by exact composition over the columns.
    `equalise="fisher"`: each column has the Fisher information it has in the Gaussian release at the same (ε, δ); the
    guarantee is then whatever it is, and reported.

    >>> from sfumato.core import Interval
    >>> schema = Schema({"age": Interval(0, 100)})
    >>> round(LaplaceRelease(schema, epsilon=1.0).prepare().noise.laws[0].scale)
    100
    """

    schema: Schema
    epsilon: float
    delta: float = 0.0
    equalise: Literal["privacy", "fisher"] = "privacy"
    label: str | None = None
    label_epsilon: float | None = None
    clip: bool = False
    random_state: int | None = None

    def prepare(self) -> PreparedTable:
        numbers, categories = feature_columns(self.schema, self.label)
        adjacency = protected(self.label, self.label_epsilon)
        if self.equalise == "fisher":
            acts = self._acts_of_equal_information(adjacency)
        elif self.equalise == "privacy":
            acts = self._acts_of_budget(numbers, categories, adjacency)
        else:
            raise PrivacyParameterError("equalise is 'privacy' or 'fisher'.")
        plan = {"release": "laplace", "schema": self.schema.to_toml(), "equalise": self.equalise}
        return with_label(self, acts, "Laplace", plan)

    def _acts_of_budget(self, numbers: list[str], categories: list[str], adjacency: Adjacency) -> list[ColumnAct]:
        wanted: Guarantee = ApproxDP(self.epsilon, self.delta) if self.delta > 0 else PureDP(self.epsilon)
        takers = [Share(name, lambda e: 2 / e**2, lambda e: e) for name in numbers]
        takers += [responder(name, self._size(name), lambda e: e) for name in categories]
        # With δ > 0 the sum of ε may be larger than ε: start high and come down.
        start = self.epsilon if self.delta == 0 else self.epsilon * max(1.0, len(takers) ** 0.5)
        for attempt in itertools.count():
            shares = split(takers, max(start * 0.97**attempt, self.epsilon) * (1 - 1e-9))
            acts = self._acts(shares, adjacency)
            total = compose(events_of(acts))
            if total.implies(wanted.under(adjacency)) is True:
                return acts
            if start * 0.97**attempt < self.epsilon:
                break
        acts = self._acts(split(takers, self.epsilon * (1 - 1e-6)), adjacency)
        check_kept(events_of(acts), wanted)
        return acts

    def _acts(self, shares: dict[str, float], adjacency: Adjacency) -> list[ColumnAct]:
        return [self._act(name, share, adjacency) for name, share in shares.items()]

    def _act(self, name: str, epsilon: float, adjacency: Adjacency) -> ColumnAct:
        wanted, seed = PureDP(epsilon), self.random_state
        if isinstance(self.schema.columns[name], Categories):
            size = max(2, self._size(name))
            return Respond(
                name, RandomizedResponse.for_guarantee(wanted, 1.0, adjacency, categories=size, random_state=seed)
            )
        width = interval(self.schema, name).width
        return AdditiveColumn(name, Laplace.for_guarantee(wanted, width, adjacency, dimension=1, random_state=seed))

    def _acts_of_equal_information(self, adjacency: Adjacency) -> list[ColumnAct]:
        twin = GaussianRelease(
            self.schema, epsilon=self.epsilon, delta=self.delta, label=self.label, random_state=self.random_state
        ).prepare()
        acts: list[ColumnAct] = [act for act in twin.acts if isinstance(act, Respond)]
        for name, law in zip(twin.noise.columns, twin.noise.laws, strict=True):
            scale = float(np.sqrt(1 / law.fisher_information()))
            width = interval(self.schema, name).width
            acts.append(AdditiveColumn(name, Laplace(scale, width, adjacency, 1, self.random_state)))
        return [_under(act, adjacency) for act in acts]

    def _size(self, name: str) -> int:
        domain: Any = self.schema.columns[name]
        return len(domain.values)


def _under(act: ColumnAct, adjacency: Adjacency) -> ColumnAct:
    from dataclasses import replace

    if isinstance(act, Respond | AdditiveColumn):
        return replace(act, mechanism=replace(act.mechanism, adjacency=adjacency))
    return act
