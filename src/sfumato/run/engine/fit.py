"""Train an estimator on a table of many files, or on a Dask dataframe, on any engine.

In:   an unfitted estimator, a Parquet folder, address or Dask dataframe, the name of its label, an engine.
Out:  the same estimator, fitted: where sums suffice, each step of the training is one sum over all rows; for others the
      workers read the rows, which are gathered in the order of the table, and the fit is made here.
Not here: the training (learn/stream.py), the engines (run/engine/engine.py).

Which worker sums which rows does not show in the result: sums carry their rounding errors. Workers draw no noise; it is
added once, in this process, to the finished sums.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.core.tables import nearest
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, SchemaError
from sfumato.learn.stream import fit_by_sums, streamed_classes, sums_suffice
from sfumato.learn.stream_sums import BatchReader, SumOfRows
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation
from sfumato.run.accounts import files_sources
from sfumato.run.engine.engine import Engine, Total, open_engine
from sfumato.run.partition import PartitionedTable, PartLayout, TablePart, grouped

__all__ = ["fit_table"]

Estimator = TypeVar("Estimator")

#: A scheduler takes about a millisecond for each task of each pass; workers lose nothing by longer ones.
_MOST_TASKS = 4096
#: Numbers that are gathered for an estimator that needs its rows in memory: 4 GB of them.
_MOST_GATHERED = 1 << 29


def fit_table(
    estimator: Estimator,
    source: Any,
    label: str | None,
    *,
    columns: Sequence[str] | None = None,
    engine: str | Engine = "local",
    partitions: int | None = None,
    layout: PartLayout | None = None,
    ledger: Ledger | None = None,
    dataset: str | None = None,
) -> Estimator:
    """Fit `estimator` on the table at `source`, whose column `label` is the target; costs what its `fit` costs.

    Features are the schema's columns, or `columns`, or all columns but the label. Classifiers must declare `classes`.
    `label` is None for what learns without one. Estimators that are not fitted by sums need the rows in this process's
    memory: workers read them, and they are trained here.
    With a `ledger` the cost is reserved there for `dataset` before anything is drawn, and committed at the end; it
    refuses a table that has its budget under another name.

    >>> import tempfile
    >>> from pyarrow import parquet
    >>> from sfumato.learn import PrivateLogisticRegression
    >>> folder = tempfile.TemporaryDirectory()
    >>> x = np.random.default_rng(0).uniform(-1, 1, 5000)
    >>> parquet.write_table(pa.table({"x": x, "y": x > 0}), f"{folder.name}/0.parquet")
    >>> model = PrivateLogisticRegression(1.0, 1e-6, classes=[False, True], random_state=0)
    >>> fit_table(model, folder.name, "y").score(pa.table({"x": x}).to_pandas(), x > 0) > 0.95
    True
    >>> folder.cleanup()
    """
    classes = streamed_classes(estimator)
    schema = getattr(estimator, "schema", None)
    crew = open_engine(engine)
    try:
        table = _opened(source, crew)
        names = _feature_names(table, label, schema, columns)
        made = layout or PartLayout(PartLayout.for_columns(len(names) + 1).block_rows, 2)
        parts = table.payloads(made)
        tasks = grouped(parts, partitions or min(len(parts), _MOST_TASKS) or None)
        book = None if ledger is None else _BoundLedger(ledger, _sources(source, table))
        if label is None or not sums_suffice(estimator):
            _check_fits(estimator)
            x, y = _gathered(table, names, label, crew, tasks)
            return estimator.fit(x, y, ledger=book, dataset=dataset)  # type: ignore[attr-defined]
        reader = BatchReader(names, label, schema, classes)
        return fit_by_sums(estimator, _TablePasses(table, reader, crew, tasks), ledger=book, dataset=dataset)
    finally:
        if crew is not engine:
            crew.close()


@dataclass(frozen=True)
class _BoundLedger:
    """A ledger that is told which table is paid for, beside the rows that the fit knows of."""

    ledger: Ledger
    sources: tuple[str, ...]

    def reserve(self, dataset: str, cost: Any, *, sources: Sequence[str] = (), **words: Any) -> Reservation:
        return self.ledger.reserve(dataset, cost, sources=(*self.sources, *sources), **words)

    def commit(self, reservation: Reservation) -> None:
        self.ledger.commit(reservation)


def _sources(source: Any, table: _Files | _Frame) -> tuple[str, ...]:
    """Of files what they are known by; of a collection in a cluster's memory nothing, as it has no place."""
    return files_sources(os.fspath(source), table.files) if isinstance(table, _Files) else ()


def _check_fits(estimator: Any) -> None:
    """Refuse what is trained on more than rows and a label, or not at all."""
    known = signature(estimator.fit).parameters.values() if callable(getattr(estimator, "fit", None)) else None
    if known is None:
        raise InputError(f"A {type(estimator).__name__} has no fit: pass an estimator. Nothing was spent.")
    more = [one.name for one in known if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if more:
        raise InputError(
            f"{type(estimator).__name__} is fitted with {', '.join(more)} beside its rows: read the table and call its "
            "own fit. Nothing was spent."
        )


@dataclass(frozen=True)
class _ReadParts:
    """The task of a worker: some columns of some parts."""

    columns: tuple[str, ...]

    def __call__(self, parts: Sequence[Any]) -> pa.Table:
        return pa.concat_tables([block for part in parts for block in _blocks(part, list(self.columns))])


def _gathered(
    table: _Files | _Frame, names: tuple[str, ...], label: str | None, crew: Engine, tasks: Sequence[tuple[Any, ...]]
) -> tuple[Any, Any]:
    """Features and label of every row, in the order of the table."""
    columns = names if label is None else (*names, label)
    if table.rows == 0:
        raise DataError("The table has no rows. Nothing was spent.")
    if table.rows * len(columns) > _MOST_GATHERED:
        raise DataError(
            f"This estimator needs its rows in memory, and with {len(columns)} columns there are too many: choose "
            "fewer, or one that is fitted by sums (PrivateLogisticRegression, PrivateSVC, "
            "PrivateLinearRegression, KernelMeanClassifier). Nothing was spent."
        )
    found = dict(crew.map(_ReadParts(columns), tasks))
    rows = pa.concat_tables([found[place] for place in range(len(tasks))]).to_pandas()
    table.check_unchanged()
    return rows[list(names)], None if label is None else rows[label].to_numpy()


@dataclass(frozen=True)
class _SumParts:
    """The task of a worker: the statistic of some parts. Reading twice gives the same sums."""

    reader: BatchReader
    statistic: SumOfRows

    def __call__(self, parts: Sequence[Any]) -> Total:
        with calm_threads():  # chunks are small, however many rows there are
            return self._summed(parts)

    def _summed(self, parts: Sequence[Any]) -> Total:
        columns = [*self.reader.columns, self.reader.label]
        result = None
        for part in parts:
            for block in _blocks(part, columns):
                for matrix, target in self.reader(block):
                    piece = Total.of(self.statistic(matrix, target))
                    result = piece if result is None else result.plus(piece)
        if result is None:  # partitions of a dataframe may be empty; sums over no rows are zeros of the right shape
            width = len(self.reader.columns) if self.reader.schema is None else self.reader.schema.width
            result = Total.of(self.statistic(np.zeros((0, width)), np.zeros(0)))
        return result


def _blocks(part: Any, columns: list[str]) -> Iterator[pa.Table]:
    if isinstance(part, TablePart):
        for _, block in part.blocks(columns):
            yield block
        return
    yield pa.Table.from_pandas(part[columns], preserve_index=False)


class _TablePasses:
    """Passes over the parts of a table, by an engine."""

    def __init__(self, table: _Files | _Frame, reader: BatchReader, crew: Engine, tasks: list[tuple[Any, ...]]) -> None:
        self._table, self._reader, self._crew, self._tasks = table, reader, crew, tasks
        if table.rows == 0:
            raise DataError("The table has no rows. Nothing was spent.")

    @property
    def rows(self) -> int:
        return self._table.rows

    @property
    def columns(self) -> tuple[str, ...]:
        return self._reader.columns

    def total(self, statistic: SumOfRows) -> list[np.ndarray]:
        return self._crew.sum(_SumParts(self._reader, statistic), self._tasks).values

    def check_unchanged(self) -> None:
        self._table.check_unchanged()


class _Files:
    def __init__(self, table: PartitionedTable) -> None:
        self._table, self.rows, self.column_names = table, table.total_rows, table.column_names
        self.files = table.files

    def payloads(self, layout: PartLayout) -> list[Any]:
        return list(self._table.groups_as_parts(layout))

    def check_unchanged(self) -> None:
        self._table.check_unchanged()


class _Frame:
    """A Dask dataframe, its partitions computed once and kept where they are."""

    def __init__(self, frame: Any, crew: Engine) -> None:
        self.column_names = [str(name) for name in frame.columns]
        self._parts = crew.keep(list(frame.to_delayed()))
        lengths = crew.sum(_count, [(part,) for part in self._parts])
        self.rows = int(lengths.values[0])

    def payloads(self, layout: PartLayout) -> list[Any]:
        return self._parts

    def check_unchanged(self) -> None:
        """The partitions were computed once and are kept."""


def _count(parts: Sequence[Any]) -> Total:
    return Total.of([np.array(float(sum(len(part) for part in parts)))])


def _opened(source: Any, crew: Engine) -> _Files | _Frame:
    if isinstance(source, str | os.PathLike):
        return _Files(PartitionedTable.open(source))
    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        return _Frame(source, crew)
    raise DataError(
        f"A {type(source).__name__} is not read in parts: pass a Parquet folder, an address or a Dask dataframe, or "
        "call the estimator's own fit. Nothing was spent."
    )


def _check_there(table: _Files | _Frame, names: Iterable[str]) -> None:
    for name in names:
        if name not in table.column_names:
            raise SchemaError(
                f"The table has no column {name!r}{nearest(name, table.column_names)}. Nothing was spent."
            )


def _feature_names(
    table: _Files | _Frame, label: str | None, schema: Any, columns: Iterable[str] | None
) -> tuple[str, ...]:
    if schema is not None:
        wanted = list(schema.columns)
        if label in wanted:
            raise SchemaError(
                f"The label {label!r} is a column of the schema: schema.without([{label!r}]) leaves it out."
            )
    else:
        wanted = [name for name in table.column_names if name != label] if columns is None else list(columns)
    _check_there(table, wanted if label is None else (label, *wanted))
    if not wanted or label in wanted:
        raise SchemaError("There must be at least one feature, and the label cannot be one. Nothing was spent.")
    return tuple(wanted)
