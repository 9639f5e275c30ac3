"""A table on which the support vector machine trains to the same classifier. It is not private.

In:   a schema of intervals and one label with two classes, a table, the variance m, the machine's ρ and θ.
Out:  TableRelease with NoGuarantee: every record moved by noise that problem (2) cannot see (Thm 2.10).
Not here: the noise (release/projector.py), the machine (release/svm.py), releases that protect (release/gaussian.py).

What leaks is in `LEAKS` and in every release: this is obfuscation for looking at data side by side, not protection.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato.core.certificate import Certificate
from sfumato.core.checks import positive
from sfumato.core.domain import Categories, Interval
from sfumato.core.guarantee import NoGuarantee
from sfumato.core.noise import GaussianNoise
from sfumato.core.schema import Schema
from sfumato.core.tables import as_arrow, like, nearest
from sfumato.errors import DataError, PrivacyParameterError, SchemaError, SfumatoError
from sfumato.mechanisms.bits import Bits
from sfumato.release.noise import TableNoise
from sfumato.release.projector import NoiseStream
from sfumato.release.result import TableRelease
from sfumato.release.svm import RegularisedSVM, kkt_residual

__all__ = ["LEAKS", "ObfuscatedRelease", "signed_labels"]

LEAKS = (
    "Every margin α·x of every record is published exactly, and so are all labels.",
    "Whoever trains the machine on the published table learns α, β and all multipliers ω of the private one.",
    "Any support vector is recovered exactly by whoever knows the other records: "
    "x_i = (α - Σ_{j≠i} ω_j y_j x_j) / (ω_i y_i).",
    "No (ε, δ) with δ < 1 holds: two tables with different margins never produce the same publication.",
)
_REASON = "obfuscation for an unchanged classifier: all margins, labels, α, β and ω are published exactly"
#: How far the published table may be from having the private machine as its optimum. KKT conditions are sufficient.
_SAME_CLASSIFIER = 1e-10
#: Margins that differ by so little do not differ.
_ROUNDING = 1e-12
_NUMBERS_IN_A_BLOCK = 1 << 16


@final
@dataclass(frozen=True)
class ObfuscatedRelease:
    """Publishes a table that trains to the same support vector machine, with noise of variance m wherever it may be.

    `schema` declares an Interval for each feature; values are clipped to it and stay in its unit. `label` is a column
    of two Categories (the second is +1; -1 and 1 mean themselves) and is published as it is. Since nothing is
    protected, `accept_no_dp=True` must be said. A `random_state` makes the result repeatable and not for publication.

    >>> schema = Schema({"age": Interval(0, 100), "dose": Interval(0, 9), "ill": Categories(["no", "yes"])})
    >>> release = ObfuscatedRelease(schema, label="ill", variance=25.0, rho=0.1, theta=1.0, accept_no_dp=True)
    >>> out = release.release({"age": [30, 42, 60, 71], "dose": [1, 5, 3, 4], "ill": ["no", "no", "yes", "yes"]})
    >>> print(out.guarantee)
    NO PRIVACY GUARANTEE (obfuscation for an unchanged classifier: all margins, ...), adjacency not stated
    """

    schema: Schema
    label: str
    variance: float
    rho: float
    theta: float
    accept_no_dp: bool = False
    random_state: int | None = None

    def __post_init__(self) -> None:
        if self.accept_no_dp is not True:
            raise PrivacyParameterError(
                "ObfuscatedRelease protects nobody. "
                + " ".join(LEAKS)
                + " Use GaussianRelease for a table with a guarantee, or say accept_no_dp=True. Nothing was published."
            )
        for name in ("variance", "rho", "theta"):
            positive(getattr(self, name), name)
        Bits(self.random_state)
        _check_schema(self.schema, self.label)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that receive noise."""
        return tuple(name for name in self.schema.columns if name != self.label)

    def release(self, table: Any) -> TableRelease:
        """The obfuscated table: columns, their order and its type as given."""
        arrow = as_arrow(table, self.schema)
        values = np.column_stack([self.schema.columns[name].place(arrow.column(name), name) for name in self.features])
        column, labels = signed_labels(self.schema.columns[self.label], arrow.column(self.label), self.label)
        machine = RegularisedSVM(self.rho, self.theta).fit(values, labels)
        published = self._obfuscated(values, machine.omega_ * labels, self.direction(machine.alpha_))
        self.check_same_classifier(published, labels, machine)
        return self.facts(machine.alpha_, like(table, self.table_of(published, column, _order_of(table, self.schema))))

    def direction(self, alpha: np.ndarray) -> np.ndarray:
        """α, or 0 where it is nothing but rounding error of the fit.

        Contradicting records have α = 0, and a processor leaves 1e-17 of it: noise must not avoid that direction, and
        the published law must not show it.
        """
        moved = np.sqrt(self.variance) * float(np.linalg.norm(alpha))  # by how much noise along α changes a margin
        return np.zeros_like(alpha) if moved <= _ROUNDING else alpha

    def facts(self, alpha: np.ndarray, table: Any = None) -> TableRelease:
        """A published table, where it is at hand, and everything that may be said about it."""
        notes = self._notes()
        return TableRelease(
            table=table,
            noise=self._noise(alpha),
            guarantee=NoGuarantee(_REASON),
            certificate=Certificate.issue(
                subject=f"obfuscated table ({len(self.schema.columns)} columns), label {self.label}",
                events=(),
                proofs=(),
                guarantee=NoGuarantee(_REASON),
                notes=notes,
                publishable=self.random_state is None,
            ),
            attacker={},
            notes=notes,
        )

    def _obfuscated(self, values: np.ndarray, weights: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        stream = NoiseStream(weights, alpha, self.variance, Bits(self.random_state))
        published = np.empty_like(values)
        height = max(1, _NUMBERS_IN_A_BLOCK // values.shape[1])
        for start in range(0, len(values), height):
            part = values[start : start + height]
            np.add(part, stream.take(len(part)), out=published[start : start + height])
        return published

    def check_same_classifier(self, published: np.ndarray, labels: np.ndarray, machine: RegularisedSVM) -> None:
        """SfumatoError unless the published features train to the same machine.

        The optimality conditions are sufficient: if they hold, retraining must give it.
        """
        found = machine.alpha_, machine.beta_, machine.xi_, machine.omega_
        residual = kkt_residual(published, labels, *found, self.rho, self.theta)
        if not residual <= _SAME_CLASSIFIER:
            raise SfumatoError(
                "The obfuscated table would train to another classifier: floating point cannot hold noise this large "
                f"exactly enough (optimality fails by {residual:.1e}). Lower the variance. Nothing was published."
            )

    def table_of(self, published: np.ndarray, label: pa.Array, order: list[str]) -> pa.Table:
        """Obfuscated features and their labels as a table with the columns in this order."""
        columns: dict[str, Any] = {name: published[:, at] for at, name in enumerate(self.features)}
        columns[self.label] = label
        return pa.table({name: columns[name] for name in order})

    def _noise(self, alpha: np.ndarray) -> TableNoise:
        """m(I - αα^T/|α|²): the covariance of one row's noise is this times 1 - v_i²/|v|², which is not stated."""
        seen = self.direction(alpha)
        length = float(np.linalg.norm(seen))
        unit = seen / length if length > 0 else seen
        covariance = self.variance * (np.eye(len(alpha)) - np.outer(unit, unit))
        # A feature along α receives no noise at all; a law needs a positive scale, and this is an upper bound.
        scales = np.sqrt(np.maximum(np.diag(covariance), self.variance * 2.0**-52))
        laws = tuple(GaussianNoise(float(scale)) for scale in scales)
        rows = tuple(tuple(float(cell) for cell in row) for row in covariance)
        return TableNoise(self.schema, self.features, laws, rows, label=self.label)

    def _notes(self) -> tuple[str, ...]:
        return (
            *LEAKS,
            f"Training problem (2) with rho={self.rho:g} and theta={self.theta:g} on the published columns, in their "
            "own units and not standardised again, returns the same classifier.",
            "The noise law states the upper bound m(I - αα^T/|α|²) of each row's covariance; it shows α, and the exact "
            "covariance would also show each ω.",
            "There is no Cramér-Rao error to report: along α nothing was added, so the Fisher information is infinite.",
        )


def _check_schema(schema: Any, label: str) -> None:
    if not isinstance(schema, Schema):
        raise SchemaError(f"ObfuscatedRelease needs a Schema, not a {type(schema).__name__}.")
    if label not in schema.columns:
        raise SchemaError(f"The label {label!r} is not a declared column{nearest(str(label), schema.columns)}.")
    _check_label(label, schema.columns[label])
    features = {name: domain for name, domain in schema.columns.items() if name != label}
    categorical = [name for name, domain in features.items() if not isinstance(domain, Interval)]
    if categorical:
        listed = ", ".join(map(repr, categorical))
        raise SchemaError(
            f"Categorical columns cannot be obfuscated: {listed}. Drop them with schema.without(…), or publish the "
            "table by GaussianRelease, which can. Nothing was published."
        )
    if len(features) < 2:
        raise SchemaError(
            "With fewer than two features there is no direction in which a record could move without changing its "
            "margin: the table would be published as it is. Nothing was published."
        )


def _check_label(label: str, domain: Any) -> None:
    if isinstance(domain, Interval) and (domain.low, domain.high) != (-1, 1):
        raise SchemaError(f"The label {label!r} is an interval. Declare Categories with its two classes.")
    if isinstance(domain, Categories) and len(domain.values) != 2:
        raise SchemaError(f"The label {label!r} has {len(domain.values)} categories and needs exactly two.")


def signed_labels(domain: Any, column: pa.ChunkedArray, name: str, *, both: bool = True) -> tuple[pa.Array, np.ndarray]:
    """The label column as it will be published, and as -1 and +1; `both` of them, unless it is a part of a table."""
    if isinstance(domain, Interval):
        labels = domain.place(column, name)
        if not np.isin(labels, (-1.0, 1.0)).all():
            raise DataError(f"Column {name!r} must hold the labels -1 and 1 only. Nothing was published.")
        published = pa.array(labels)
    else:
        codes = domain.place(column, name)
        signs = np.array(domain.values if set(domain.values) == {-1, 1} else (-1, 1), dtype=np.float64)
        labels, published = signs[codes], pa.array(list(domain.values)).take(pa.array(codes))
    if both and (len(labels) == 0 or labels.min() == labels.max()):
        raise DataError(f"Column {name!r} has fewer than two classes; a classifier needs both. Nothing was published.")
    with suppress(pa.ArrowException):  # a place declared for missing values may not fit the column's own type
        published = published.cast(column.type)
    return published, labels


def _order_of(table: Any, schema: Schema) -> list[str]:
    """The column names in the order of the given table; a stream or a plain array has the schema's."""
    if isinstance(table, Mapping):
        given = list(table)
    else:
        given = getattr(table, "column_names", None) or getattr(getattr(table, "dtype", None), "names", None)
        given = getattr(table, "columns", None) if given is None else given
    names = list(schema.columns) if given is None else [str(name) for name in given]
    return names if set(names) == set(schema.columns) else list(schema.columns)
