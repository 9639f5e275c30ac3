"""What is done to the columns of a table, record by record.

In:   batches of an Arrow table and the public schema.
Out:  published columns; the events of one record; the law of the noise.
Not here: how much noise (the release classes), reading and writing files (run/).
Proof: docs/proofs/table_release.md

An act touches each record by itself (local privacy): the cost of a table is the cost of one record.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.cell_types import ARROW_TYPES
from sfumato.core.domain import Categories, Interval
from sfumato.core.events.event import Event
from sfumato.core.noise import GaussianNoise, LaplaceNoise, Noise
from sfumato.core.schema import Schema
from sfumato.errors import InputError
from sfumato.mechanisms import Box, Gaussian, Laplace, RandomizedResponse
from sfumato.mechanisms.bits import StreamKey
from sfumato.mechanisms.mechanism import Mechanism
from sfumato.release.noise import ResponseNoise

__all__ = [
    "AdditiveColumn",
    "ColumnAct",
    "Columns",
    "GaussianBlock",
    "Respond",
    "category_values",
    "events_of",
    "interval",
    "seeded",
]

Columns = dict[str, Any]


def seeded(mechanism: Any, *path: int | str) -> Any:
    """The mechanism with a seed or key of its own for this batch and column, where it has one at all."""
    if mechanism.random_state is None:
        return mechanism
    if isinstance(mechanism.random_state, StreamKey):
        return replace(mechanism, random_state=mechanism.random_state.at(*path))
    text = repr((mechanism.random_state, *path)).encode()
    return replace(mechanism, random_state=int.from_bytes(hashlib.sha256(text).digest()[:8], "little"))


def interval(schema: Schema, name: str) -> Interval:
    """The range of a column of numbers."""
    domain = schema.columns[name]
    assert isinstance(domain, Interval)
    return domain


def events_of(acts: Iterable[ColumnAct]) -> list[Event]:
    """What all the acts cost one record."""
    return [event for act in acts for event in act.events()]


class ColumnAct(ABC):
    """One random act on some columns. Abstract."""

    @abstractmethod
    def events(self) -> list[Event]:
        """What it costs one record."""

    @abstractmethod
    def apply(self, table: pa.Table, schema: Schema, batch: int) -> Columns:
        """The published columns of a batch."""

    def keyed(self, key: StreamKey) -> ColumnAct:
        """The same act with noise that is a function of the key, the block of rows and the column: safe to retry."""
        mechanism = getattr(self, "mechanism", None)
        if not isinstance(mechanism, Mechanism):
            raise InputError(
                f"{type(self).__name__} cannot repeat its noise, so a retried task would cost twice. Release this "
                "table on one machine. Nothing was drawn or spent."
            )
        return replace(self, mechanism=replace(mechanism, random_state=key))  # type: ignore[type-var]

    def laws(self, schema: Schema) -> dict[str, Noise]:
        """Marginal laws of additive noise, in the columns' own units."""
        return {}

    def responses(self, schema: Schema) -> dict[str, ResponseNoise]:
        return {}

    def shifts(self, schema: Schema) -> dict[str, float]:
        """Means of additive noise, where they are not 0."""
        return {}

    def joint(self, schema: Schema) -> tuple[tuple[str, ...], np.ndarray] | None:
        """Columns whose noise belongs together, and its covariance; None where `laws` say it all."""
        return None

    def unbiased(self, schema: Schema) -> dict[str, float]:
        """Least squared errors of unbiased attackers, where they see more than a column's own noise."""
        return {}


@dataclass(frozen=True)
class GaussianBlock(ColumnAct):
    """Jointly Gaussian noise on interval columns: x̄ = x + L z with z standard normal, in units of the public widths.

    The noise is added where it is white: L⁻¹x is rounded to the grid, exact N(0, 1) noise is added on the grid, and
    the sum is multiplied by L, which is post-processing. `mechanism` has scale 1 and the sensitivity of L⁻¹x over the
    box. `one_hot` columns take part with one number per category.
    """

    columns: tuple[str, ...]
    one_hot: tuple[str, ...]
    factor: np.ndarray
    mechanism: Gaussian

    @property
    def diagonal(self) -> bool:
        return self.factor.ndim == 1

    def events(self) -> list[Event]:
        return [self.mechanism.event()]

    def apply(self, table: pa.Table, schema: Schema, batch: int) -> Columns:
        if self.diagonal:
            return self._apply_by_column(table, schema, batch)
        white = np.linalg.solve(self.factor, self._box(table, schema).T).T
        noisy = seeded(self.mechanism, batch, "block")(white) @ self.factor.T
        return {
            name: interval(schema, name).low + interval(schema, name).width * noisy[:, position]
            for position, name in enumerate(self.columns)
        }

    def _apply_by_column(self, table: pa.Table, schema: Schema, batch: int) -> Columns:
        result: Columns = {}
        for position, name in enumerate(self.columns):
            domain = interval(schema, name)
            scale = domain.width * float(self.factor[position])
            white = domain.place(table[name], name)
            white -= domain.low
            white /= scale
            noisy = seeded(self.mechanism, batch, "block", position)(white)
            noisy *= scale
            noisy += domain.low
            result[name] = noisy
        position = len(self.columns)
        for name in self.one_hot:
            domain = schema.columns[name]
            codes = domain.place(table[name], name)
            for code, label in enumerate(domain.feature_names(name)):
                scale = float(self.factor[position])
                white = (codes == code) / scale
                result[label] = seeded(self.mechanism, batch, "block", position)(white) * scale
                position += 1
        return result

    def _box(self, table: pa.Table, schema: Schema) -> np.ndarray:
        domains = [(interval(schema, name), name) for name in self.columns]
        return np.column_stack([(d.place(table[n], n) - d.low) / d.width for d, n in domains])

    def covariance(self, schema: Schema) -> np.ndarray:
        """Of the noise on `columns`, in their own units."""
        factor = np.diag(self.factor[: len(self.columns)]) if self.diagonal else self.factor
        scaled = np.diag([interval(schema, name).width for name in self.columns]) @ factor
        return scaled @ scaled.T

    def joint(self, schema: Schema) -> tuple[tuple[str, ...], np.ndarray] | None:
        return None if self.diagonal else (self.columns, self.covariance(schema))

    def laws(self, schema: Schema) -> dict[str, Noise]:
        variances = np.diag(self.covariance(schema))
        laws: dict[str, Noise] = {
            n: GaussianNoise(float(v) ** 0.5) for n, v in zip(self.columns, variances, strict=True)
        }
        names = [label for name in self.one_hot for label in schema.columns[name].feature_names(name)]
        rest = self.factor[len(self.columns) :] if self.one_hot else []
        return laws | {name: GaussianNoise(float(scale)) for name, scale in zip(names, rest, strict=True)}


@dataclass(frozen=True)
class AdditiveColumn(ColumnAct):
    """Laplace or box noise on one interval column, in its own unit; `mechanism` has the width as its sensitivity."""

    column: str
    mechanism: Laplace | Box
    #: The mean of the noise, a public number that is added to every value: a lopsided box is a box that was moved.
    shift: float = 0.0

    def events(self) -> list[Event]:
        return [self.mechanism.event()]

    def apply(self, table: pa.Table, schema: Schema, batch: int) -> Columns:
        domain = interval(schema, self.column)
        # From the low end: the grid then starts at a public point and the numbers stay small.
        values = domain.place(table[self.column], self.column) - domain.low
        return {self.column: (domain.low + self.shift) + _by_record(self.mechanism, self.column, batch)(values)}

    def shifts(self, schema: Schema) -> dict[str, float]:
        return {self.column: self.shift} if self.shift else {}

    def laws(self, schema: Schema) -> dict[str, Noise]:
        mechanism = self.mechanism
        return {self.column: mechanism.noise if isinstance(mechanism, Box) else LaplaceNoise(mechanism.scale)}


def _by_record(mechanism: Mechanism, column: str, batch: int) -> Mechanism:
    return seeded(mechanism, batch, "column", column)


@dataclass(frozen=True)
class Respond(ColumnAct):
    """Randomised answers for one categorical column."""

    column: str
    mechanism: RandomizedResponse

    def events(self) -> list[Event]:
        return [self.mechanism.event()]

    def apply(self, table: pa.Table, schema: Schema, batch: int) -> Columns:
        domain = schema.columns[self.column]
        codes = _by_record(self.mechanism, self.column, batch)(domain.place(table[self.column], self.column))
        return {self.column: category_values(domain, codes)}

    def responses(self, schema: Schema) -> dict[str, ResponseNoise]:
        domain = schema.columns[self.column]
        assert isinstance(domain, Categories)
        return {self.column: ResponseNoise(domain.values, self.mechanism.keep / self.mechanism.total)}


def category_values(domain: Any, codes: np.ndarray) -> pa.Array:
    """Category values of the type the schema declares.

    Never of the type the column came in: a single missing value turns a column of whole numbers into floats, and a
    published type that depends on one record gives it away.
    """
    return pa.array(list(domain.values), ARROW_TYPES[domain.scalar]).take(pa.array(codes))
