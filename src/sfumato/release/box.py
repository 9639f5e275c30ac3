"""Publish a whole table with noise that never leaves a box around each value.

In:   a public schema, the box in units of the columns' widths, the trade-off λ.
Out:  PreparedTable / TableRelease with a numeric δ(ε), which is often poor: a warning gives the Gaussian alternative.
Not here: the law (core/noise.py), drawing it (mechanisms/box.py).
Proof: docs/proofs/box.md, docs/proofs/table_release.md
Reference: Farokhi 2020, Thm 2.6 for boxes, Cor. 2.7 (lowest eigenpair; original coordinates).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from sfumato.core.checks import at_least_zero, positive
from sfumato.core.compose import compose
from sfumato.core.domain import Categories
from sfumato.core.guarantee import GaussianDP, PureDP
from sfumato.core.schema import Schema
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms import Box, RandomizedResponse
from sfumato.release.acts import AdditiveColumn, ColumnAct, Respond, events_of, interval
from sfumato.release.label import with_label
from sfumato.release.table import RECORD, PreparedTable, TableReleaser, feature_columns, protected

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
        acts: list[ColumnAct] = [
            AdditiveColumn(name, self._noise(name, adjacency), self._sides(name)[0] * interval(self.schema, name).width)
            for name in numbers
        ]
        acts += [Respond(name, self._response(name, len(categories), adjacency)) for name in categories]
        warning = self._warn(numbers, compose(events_of(acts)))
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
        plan: dict[str, object] = {"release": "box", "schema": self.schema.to_toml(), "half_width": self.half_width}
        return plan | ({"boxes": boxes} if boxes else {})

    def _response(self, name: str, count: int, adjacency) -> RandomizedResponse:
        domain = self.schema.columns[name]
        assert isinstance(domain, Categories)
        share = positive(self.category_epsilon, "category_epsilon") / count
        return RandomizedResponse.for_guarantee(
            PureDP(share), 1.0, adjacency, categories=max(2, len(domain.values)), random_state=self.random_state
        )

    def _warn(self, numbers: list[str], features) -> str:
        """Beside the box, Gaussian noise of the same variance column by column."""
        squares = [
            interval(self.schema, name).width ** 2 / self._noise(name, RECORD).noise.variance() for name in numbers
        ]
        twin = GaussianDP(math.sqrt(sum(squares))) if squares else None
        least = features.delta(30.0)
        text = f"Box noise here: δ(1) = {features.delta(1.0):.3g} and never less than {least:.3g}, whatever ε."
        if twin is not None:
            text += (
                f" Gaussian noise of the same variance: δ(1) = {twin.delta(1.0):.3g}, and at δ = 1e-6 "
                f"ε = {twin.epsilon(1e-6):.3g}. GaussianRelease(…, clip=True) keeps values in range too."
            )
        warnings.warn(text, WeakGuaranteeWarning, stacklevel=4)
        return text
