"""Publish a whole table with noise that never leaves a box around each value.

In:   a public schema, the box in units of the columns' widths, the trade-off λ.
Out:  PreparedTable / TableRelease with a numeric δ(ε), which is often poor: a warning gives the Gaussian alternative.
Not here: the law (core/noise.py), drawing it (mechanisms/box.py), columns tied by constraints (release/tied.py).
Proof: docs/proofs/box.md, docs/proofs/table_release.md
Reference: Farokhi 2020, Thm 2.6, Cor. 2.7 (lowest eigenpair; original coordinates).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import at_least_zero, positive
from sfumato.core.compose import compose
from sfumato.core.domain import Categories
from sfumato.core.guarantee import GaussianDP, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms import Box, RandomizedResponse
from sfumato.release.acts import AdditiveColumn, ColumnAct, Respond, events_of, interval
from sfumato.release.label import with_label
from sfumato.release.table import PreparedTable, TableReleaser, feature_columns, protected
from sfumato.release.tied import Constraint, TiedColumns, constraints_of, tied_columns

__all__ = ["BoxRelease", "WeakGuaranteeWarning"]


class WeakGuaranteeWarning(UserWarning):
    """The guarantee is true and poor; the message has the numbers of a better choice."""


@final
@dataclass(frozen=True)
class BoxRelease(TableReleaser):
    """Adds noise within ±`half_width` column widths, of least Fisher information + λ·variance for its weight.

    `boxes` gives single columns a box of their own, in their widths: a half width, or (low, high) for noise that leans
    to one side; its mean (low + high)/2 is public (`noise.shifts`), and readers subtract it. `clip=True` puts published
    values back into the public range at no cost in privacy. The box bounds the noise, not the published value.
    Categorical columns are answered at random and share `category_epsilon` equally.

    `constraints` are public facts that published rows keep: names in rising order, as ("start", "end"), or
    `Constraint({"total": 1, "part": -1})` for total - part ≥ 0. Tied columns are drawn in other coordinates (middle and
    gap, each within ±`half_width` of its own public range), so that the promise is that of as many free columns; their
    noise is correlated and has a mean, which is public too (`noise.covariance`, `noise.shifts`).

    >>> from sfumato.core import Interval
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     out = BoxRelease(Schema({"age": Interval(0, 100)}), half_width=20.0).release({"age": [34.0, 61.0]})
    >>> out.guarantee.delta(1.0) < 0.001
    True
    """

    schema: Schema
    half_width: float = 20.0
    trade_off: float = 0.0
    weights: Mapping[str, float] | None = None
    label: str | None = None
    label_epsilon: float | None = None
    category_epsilon: float | None = None
    clip: bool = False
    random_state: int | None = None
    boxes: Mapping[str, float | tuple[float, float]] | None = None
    constraints: Sequence[Constraint | Sequence[str]] = ()

    def prepare(self) -> PreparedTable:
        numbers, categories = feature_columns(self.schema, self.label)
        positive(self.half_width, "half_width")
        at_least_zero(self.trade_off, "trade_off")
        if categories and self.category_epsilon is None:
            raise PrivacyParameterError(
                f"The categorical columns {', '.join(categories)} need a budget: say category_epsilon=…."
            )
        adjacency = protected(self.label, self.label_epsilon)
        self._check_boxes(numbers)
        tied = self._tied(numbers, adjacency)
        acts: list[ColumnAct] = [
            AdditiveColumn(name, self._noise(name, adjacency), self._sides(name)[0] * interval(self.schema, name).width)
            for name in numbers
            if not any(name in act.columns for act in tied)
        ]
        acts += tied
        acts += [Respond(name, self._response(name, len(categories), adjacency)) for name in categories]
        warning = self._warn(acts)
        return with_label(self, acts, "box", self._plan(), (warning,))

    def _noise(self, name: str, adjacency) -> Box:
        """In the column's own unit: stiffness θλ in units of the width becomes θλ/width⁴."""
        width, half = interval(self.schema, name).width, self._sides(name)[1]
        weight = positive((self.weights or {}).get(name, 1.0), f"the weight of {name}")
        return Box(half * width, width, adjacency, weight * self.trade_off / width**4, self.random_state)

    def _sides(self, name: str) -> tuple[float, float]:
        """Middle and half width of a column's box, in its widths.

        The well is put at the middle: there the sum of information and λ·variance is least (docs/proofs/box.md), so
        that a lopsided box is the symmetric one, moved.
        """
        given = (self.boxes or {}).get(name, self.half_width)
        low, high = given if isinstance(given, tuple) else (-given, given)
        return (low + high) / 2, (high - low) / 2

    def _tied(self, numbers: list[str], adjacency: Adjacency) -> list[TiedColumns]:
        """The columns that constraints tie together; what cannot be kept for them is refused."""
        constraints = constraints_of(self.constraints)
        if not constraints:
            return []
        noise = Box(self.half_width, 1.0, adjacency, self.trade_off, self.random_state)
        acts = tied_columns(constraints, self.schema, numbers, noise)
        own = [name for act in acts for name in act.columns if name in {**(self.boxes or {}), **(self.weights or {})}]
        if own:
            raise PrivacyParameterError(
                f"{', '.join(own)}: constraints tie these columns, so that their noise has no box or weight of their "
                "own. Leave them out of boxes and weights and say half_width. Nothing was drawn or spent."
            )
        if self.clip and not all(one.kept_by_clipping(self.schema) for one in constraints):
            raise PrivacyParameterError(
                "clip=True moves single columns and would break a constraint. It keeps only orders a ≤ b where the "
                "public range of a neither begins nor ends above that of b: say such ranges, or clip=False. "
                "Nothing was drawn or spent."
            )
        return acts

    def _check_boxes(self, numbers: list[str]) -> None:
        for name, given in (self.boxes or {}).items():
            sides = given if isinstance(given, tuple) else (0.0, given)
            if name not in numbers or len(sides) != 2 or not all(map(math.isfinite, sides)) or sides[0] >= sides[1]:
                raise PrivacyParameterError(
                    f"boxes: {name!r} needs a numeric feature of that name and a half width above 0, or (low, high) "
                    "with low below high. Nothing was drawn or spent."
                )

    def _plan(self) -> dict[str, object]:
        boxes = {name: list(self._sides(name)) for name in self.boxes or {}}
        kept = [{"terms": dict(one.terms), "least": one.least} for one in constraints_of(self.constraints)]
        plan: dict[str, object] = {"release": "box", "schema": self.schema.to_toml(), "half_width": self.half_width}
        return plan | ({"boxes": boxes} if boxes else {}) | ({"constraints": kept} if kept else {})

    def _response(self, name: str, count: int, adjacency) -> RandomizedResponse:
        domain = self.schema.columns[name]
        assert isinstance(domain, Categories)
        share = positive(self.category_epsilon, "category_epsilon") / count
        return RandomizedResponse.for_guarantee(
            PureDP(share), 1.0, adjacency, categories=max(2, len(domain.values)), random_state=self.random_state
        )

    def _warn(self, acts: Sequence[ColumnAct]) -> str:
        """Beside the box, Gaussian noise of the same variance column by column."""
        features = compose(events_of(acts))
        laws = {name: law for act in acts for name, law in act.laws(self.schema).items()}
        squares = [interval(self.schema, name).width ** 2 / law.variance() for name, law in laws.items()]
        twin = GaussianDP(math.sqrt(sum(squares))) if squares else None
        least = features.delta(30.0)
        text = f"Box noise here: δ(1) = {features.delta(1.0):.3g} and never less than {least:.3g}, whatever ε."
        if twin is not None:
            text += (
                f" Gaussian noise of the same variance: δ(1) = {twin.delta(1.0):.3g}, and at δ = 1e-6 "
                f"ε = {twin.epsilon(1e-6):.3g}. GaussianRelease(…, clip=True) keeps values in range too."
            )
        if self.constraints:
            text += " Moving its published rows to the nearest ones that keep the constraints costs nothing either."
        warnings.warn(text, WeakGuaranteeWarning, stacklevel=4)
        return text
