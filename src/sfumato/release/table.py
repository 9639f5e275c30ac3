"""A prepared release: what will be done to each record, before any data is seen.

In:   a schema and the acts a release class decided on.
Out:  published batches, the guarantee, the noise law, the certificate.
Not here: the decision (gaussian.py, laplace.py, box.py), files and ledgers (run/).
Proof: docs/proofs/table_release.md
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core.adjacency import Adjacency
from sfumato.core.certificate import Certificate
from sfumato.core.compose import compose
from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.events.event import Event
from sfumato.core.fisher import AttackerError, attacker_error
from sfumato.core.guarantee import Guarantee
from sfumato.core.noise import Noise
from sfumato.core.schema import Schema
from sfumato.core.tables import as_arrow, like, nearest
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError
from sfumato.mechanisms.bits import StreamKey
from sfumato.release.acts import ColumnAct, category_values, events_of
from sfumato.release.noise import TableNoise
from sfumato.release.result import TableRelease

__all__ = ["RECORD", "PreparedTable", "TableReleaser", "check_kept", "feature_columns", "features_beside", "protected"]

#: Each record is protected as a whole; how many there are is public.
RECORD = Adjacency("record", "replace-one")


def features_beside(label: str) -> Adjacency:
    """The label is published as it is: only the other columns are protected.

    The label is part of the unit, so that releases with different raw labels never add up to one promise.
    """
    return Adjacency(f"record's features (its {label} is published as it is)", "replace-one")


#: Widths between these leave room for variances, fourth powers and information of the noise.
_NARROWEST, _WIDEST = 1e-70, 1e70


def _check_feature(name: str, domain: Domain) -> None:
    if isinstance(domain, Categories) and len(domain.values) < 2:
        raise SchemaError(f"{name} has a single category and says nothing: leave it out of schema and table.")
    if isinstance(domain, Interval) and not _NARROWEST <= domain.width <= _WIDEST:
        extent = "narrow" if domain.width < 1 else "wide"
        raise SchemaError(
            f"The interval of {name} is too {extent} for floating-point numbers, whose squares must be numbers "
            f"too: change its unit, so that its width is from {_NARROWEST:g} to {_WIDEST:g}. Nothing was spent."
        )


def feature_columns(schema: Schema, label: str | None) -> tuple[list[str], list[str]]:
    """Interval and categorical feature columns, the label left out."""
    if label is not None and label not in schema.columns:
        raise SchemaError(f"The label {label!r} is not a column of the schema.{nearest(label, schema.columns)}")
    features = schema.columns if label is None else schema.without(label).columns
    if not features:
        raise SchemaError("Nothing is left to publish besides the label.")
    for name, domain in features.items():
        _check_feature(name, domain)
    numbers = [name for name, domain in features.items() if isinstance(domain, Interval)]
    return numbers, [name for name in features if name not in numbers]


def protected(label: str | None, label_epsilon: float | None) -> Adjacency:
    """Who is protected: the whole record, or its features beside a label published as it is."""
    return RECORD if label is None or label_epsilon is not None else features_beside(label)


def check_kept(events: list[Event], wanted: Guarantee) -> None:
    """The last word on a split: what was asked for is what the events compose to, or nothing is done."""
    if compose(events).implies(wanted) is not True:
        raise PrivacyParameterError(
            f"{wanted.describe()} cannot be kept by this release: too little for its columns to share. "
            "Nothing was drawn or spent."
        )


@dataclass(frozen=True)
class PreparedTable:
    """Everything decided, nothing drawn. Safe to print, and the same for every batch."""

    schema: Schema
    acts: tuple[ColumnAct, ...]
    label: str | None
    label_is_raw: bool
    clip: bool
    subject: str
    plan: dict[str, Any]
    notes: tuple[str, ...] = ()
    publishable: bool = True

    @property
    def events(self) -> list[Event]:
        """What one record costs."""
        return events_of(self.acts)

    @cached_property
    def guarantee(self) -> Guarantee:
        return compose(self.events)

    def keyed(self, key: StreamKey) -> PreparedTable:
        """The same release with noise that is a function of the key and the number of the batch: safe to retry.

        Each batch number must stand for one set of rows for as long as the key lives.
        """
        if not self.publishable:
            raise InputError("A release with a random_state repeats itself already and is for experiments only.")
        acts = (act.keyed(key.at("act", position)) for position, act in enumerate(self.acts))
        return replace(self, acts=tuple(acts))

    def apply(self, table: pa.Table, batch: int = 0) -> pa.Table:
        """The published version of a batch; `batch` tells the draws of a seed or key apart and nothing else."""
        published: dict[str, Any] = {}
        for act in self.acts:
            published |= act.apply(table, self.schema, batch)
        if self.clip:
            for name, values in published.items():
                domain = self.schema.columns.get(name)
                if isinstance(domain, Interval):
                    published[name] = np.clip(values, domain.low, domain.high)
        ordered: dict[str, Any] = {}
        for name in table.column_names:
            if name in published:
                ordered[name] = published[name]
            elif name == self.label:
                ordered[name] = self._raw_label(table)
            else:  # one-hot noise puts several numbers in the place of a category
                ordered |= {new: published[new] for new in self.schema.columns[name].feature_names(name)}
        return pa.table(ordered)

    def _raw_label(self, table: pa.Table) -> Any:
        assert self.label is not None
        domain = self.schema.columns[self.label]
        if isinstance(domain, Interval):
            return domain.place(table[self.label], self.label)
        return category_values(domain, domain.place(table[self.label], self.label))

    @cached_property
    def noise(self) -> TableNoise:
        laws = {name: law for act in self.acts for name, law in act.laws(self.schema).items()}
        responses = {name: noise for act in self.acts for name, noise in act.responses(self.schema).items()}
        rows = tuple(tuple(map(float, row)) for row in self._covariance(laws))
        shifts = {name: shift for act in self.acts for name, shift in act.shifts(self.schema).items()}
        names, kinds = tuple(laws), tuple(laws.values())
        return TableNoise(self.schema, names, kinds, rows, responses, self.label, self.clip, shifts)

    def _covariance(self, laws: Mapping[str, Noise]) -> np.ndarray:
        covariance = np.diag([law.variance() for law in laws.values()])
        for act in self.acts:
            if (joint := act.joint(self.schema)) is not None:
                columns, block = joint
                start = list(laws).index(columns[0])
                covariance[start : start + len(columns), start : start + len(columns)] = block
        return covariance

    @cached_property
    def attacker(self) -> dict[str, AttackerError]:
        """Cramér-Rao error per column, in its own unit."""
        errors = {}
        for name, law in zip(self.noise.columns, self.noise.laws, strict=True):
            domain = self.schema.columns.get(name)
            errors[name] = attacker_error(law, domain if isinstance(domain, Interval) else None)
        for act in self.acts:
            for name, least in act.unbiased(self.schema).items():
                errors[name] = replace(errors[name], unbiased=least)
        return errors

    def certificate(self) -> Certificate:
        return Certificate.issue(
            subject=self.subject,
            events=self.events,
            plan=self.plan,
            proofs=["table_release", *dict.fromkeys(event.proof_id() for event in self.events)],
            notes=self.notes,
            publishable=self.publishable,
        )


class TableReleaser(ABC):
    """What the release classes share: `prepare` decides, `release` does. Abstract."""

    schema: Schema

    @abstractmethod
    def prepare(self) -> PreparedTable:
        """Decide everything from public facts."""

    def release(self, table: Any) -> TableRelease:
        """Publish `table`: same columns, same kind of container, one noisy record for each."""
        arrow = as_arrow(table, self.schema)
        if arrow.num_rows == 0:
            raise DataError("The table has no rows. Nothing was drawn and nothing was spent.")
        prepared = self.prepare()
        published = prepared.apply(arrow)
        return TableRelease(
            table=like(table, published),
            noise=prepared.noise,
            guarantee=prepared.guarantee,
            certificate=prepared.certificate(),
            attacker=prepared.attacker,
            notes=prepared.notes,
        )
