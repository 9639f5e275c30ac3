"""ObfuscatedRelease for a table of many files: the noise is projected by two global sums. It is not private.

In:   a Parquet folder or address, an ObfuscatedRelease, an engine.
Out:  a new folder with table/part-00000.parquet …, the law of the noise, the certificate (no guarantee), a note.
Not here: what leaks (release/obfuscated.py), the machine (release/svm.py), private releases (run/partition_release.py).

With v = ω∘y the noise is W = (I - vvᵀ/|v|²) G (I - ααᵀ/|α|²). Each block of G is a function of the run's key and the
block's number, so it can be drawn twice: a first pass sums vᵀG and |v|², a second one subtracts v·(vᵀG)/|v|² from the
same G and writes. Training the machine itself takes the whole table: that is done here, in the memory of this process.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sfumato.core.guarantee import Guarantee, NoGuarantee
from sfumato.core.places import Place, place_of
from sfumato.errors import DataError, InputError
from sfumato.mechanisms.bits import Bits, StreamKey
from sfumato.release.obfuscated import ObfuscatedRelease, signed_labels
from sfumato.release.projector import plain_noise, unit_vector
from sfumato.release.svm import RegularisedSVM
from sfumato.run.engine.engine import Engine, Total, open_engine
from sfumato.run.partition import PartitionedTable, PartLayout, Piece, TablePart, grouped
from sfumato.run.partition_release import check_columns, check_workers, part_name
from sfumato.run.staging import check_target
from sfumato.run.tables import Progress
from sfumato.wording import text

__all__ = ["release_obfuscated"]

#: Numbers of a table whose machine is trained in memory: 2 GB, and about three times that while it is solved.
MOST_NUMBERS = 1 << 28


def release_obfuscated(
    source: str | os.PathLike[str],
    release: ObfuscatedRelease,
    out: Place,
    *,
    engine: str | Engine = "local",
    partitions: int | None = None,
    layout: PartLayout | None = None,
    progress: Progress = lambda rows: None,
) -> Guarantee:
    """Publish the obfuscated table into the new folder `out`; the promise is none.

    Nothing is charged, because nothing is promised, and there is nothing to resume: a failed run leaves no output.
    """
    if release.random_state is not None:
        raise InputError("A release with a random_state is for experiments and is not written. Nothing was published.")
    table, out = PartitionedTable.open(source), place_of(out)
    check_columns(table, release)
    check_target(out)
    if table.total_rows * len(table.column_names) > MOST_NUMBERS:
        raise InputError(
            f"The machine is trained in memory, on at most {MOST_NUMBERS:,} numbers, and this table has more. Train on "
            "a sample, or publish by GaussianRelease. Nothing was published."
        )
    layout = layout or PartLayout.for_columns(len(table.column_names))
    parts = table.parts(layout)
    values, labels = _read(release, table, parts)
    machine = RegularisedSVM(release.rho, release.theta).fit(values, labels)
    shares = _RowShares.of(parts, unit_vector(machine.omega_ * labels))
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.resolve().parent))
    crew = open_engine(engine)
    try:
        (folder / "table").mkdir(mode=0o700)
        check_workers(crew, folder)
        _draw(crew, release, machine, table, grouped(shares.of_parts, partitions), folder / "table", progress)
        published = _published(parts, folder / "table")
        release.check_same_classifier(_features(release, table, published), labels, machine)
        table.check_unchanged()
        _write_facts(release, machine, folder)
        if out.exists():
            out.rmdir()
        for made in (folder / "table", folder):
            made.chmod(0o755)
        folder.rename(out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if crew is not engine:
            crew.close()
    return _promise(release, machine)


@dataclass(frozen=True)
class _RowShares:
    """Each part with its share of the unit vector v."""

    of_parts: list[tuple[TablePart, np.ndarray]]

    @classmethod
    def of(cls, parts: Sequence[TablePart], unit: np.ndarray) -> _RowShares:
        ends = np.cumsum([part.rows for part in parts])
        return cls([(part, unit[end - part.rows : end]) for part, end in zip(parts, ends, strict=True)])


@dataclass(frozen=True)
class _Noise:
    """The independent noise of a block, the same whenever it is asked for."""

    key: StreamKey
    deviation: float
    columns: int

    def blocks(self, part: TablePart) -> Any:
        """(first row, noise) of each block of a part."""
        size = part.layout.block_rows
        for start in range(0, part.rows, size):
            bits = Bits(self.key.at("obfuscate", part.first_block + start // size))
            yield start, plain_noise(min(size, part.rows - start), self.columns, self.deviation, bits)


@dataclass(frozen=True)
class _WeighNoise:
    """First pass: vᵀG and |v|²."""

    noise: _Noise

    def __call__(self, shares: Sequence[tuple[TablePart, np.ndarray]]) -> Total:
        result = Total.of([np.zeros(self.noise.columns), np.array(0.0)])
        for part, weights in shares:
            for start, drawn in self.noise.blocks(part):
                own = weights[start : start + len(drawn)]
                result = result.plus(Total.of([np.einsum("i,ij->j", own, drawn), np.array(float(own @ own))]))
        return result


@dataclass(frozen=True)
class _WriteParts:
    """Second pass: the same noise, projected and added; writing twice gives the same files."""

    release: ObfuscatedRelease
    noise: _Noise
    pulled: np.ndarray
    direction: np.ndarray
    columns: tuple[str, ...]
    folder: str

    def __call__(self, shares: Sequence[tuple[TablePart, np.ndarray]]) -> int:
        return sum(self._write(part, weights) for part, weights in shares)

    def _write(self, part: TablePart, weights: np.ndarray) -> int:
        blocks = []
        for (start, drawn), (_, block) in zip(self.noise.blocks(part), part.blocks(self.columns), strict=True):
            noise = drawn - weights[start : start + len(drawn), None] * self.pulled
            noise -= np.einsum("ij,j->i", noise, self.direction)[:, None] * self.direction
            values, label, _ = _values(self.release, block)
            blocks.append(self.release.table_of(values + noise, label, list(self.columns)))
        handle, unfinished = tempfile.mkstemp(prefix=".", dir=self.folder)
        os.close(handle)
        parquet.write_table(pa.concat_tables(blocks), unfinished)
        os.replace(unfinished, Path(self.folder) / part_name(part))
        return part.rows


def _draw(
    crew: Engine,
    release: ObfuscatedRelease,
    machine: RegularisedSVM,
    table: PartitionedTable,
    tasks: list[Any],
    folder: Path,
    progress: Progress,
) -> None:
    noise = _Noise(StreamKey.fresh(), math.sqrt(release.variance), len(release.features))
    sums, squares = crew.sum(_WeighNoise(noise), tasks).values
    pulled = sums / squares if squares > 0 else np.zeros_like(sums)
    columns = tuple(table.column_names)
    write = _WriteParts(release, noise, pulled, unit_vector(release.direction(machine.alpha_)), columns, str(folder))
    for _, rows in crew.map(write, tasks):
        progress(rows)


def _values(release: ObfuscatedRelease, block: pa.Table) -> tuple[np.ndarray, pa.Array, np.ndarray]:
    """Features within their intervals, the label as it is published, and as -1 and +1; a block may hold one class."""
    columns = [release.schema.columns[name].place(block[name], name) for name in release.features]
    domain = release.schema.columns[release.label]
    label, signs = signed_labels(domain, block[release.label], release.label, both=False)
    return np.column_stack(columns), label, signs


def _read(
    release: ObfuscatedRelease, table: PartitionedTable, parts: Sequence[TablePart]
) -> tuple[np.ndarray, np.ndarray]:
    """The whole table, once into one matrix."""
    values, labels, at = np.empty((table.total_rows, len(release.features))), np.empty(table.total_rows), 0
    for part in parts:
        for _, block in part.blocks(table.column_names):
            rows = slice(at, at + block.num_rows)
            values[rows], _, labels[rows] = _values(release, block)
            at += block.num_rows
    if at == 0 or labels.min() == labels.max():
        raise DataError(f"Column {release.label!r} has fewer than two classes. Nothing was published.")
    return values, labels


def _features(release: ObfuscatedRelease, table: PartitionedTable, parts: Sequence[TablePart]) -> np.ndarray:
    """The published features as they stand in the files: noise leads out of the intervals, and nobody puts it back."""
    values, at = np.empty((table.total_rows, len(release.features))), 0
    for part in parts:
        for _, block in part.blocks(table.column_names):
            for place, name in enumerate(release.features):
                values[at : at + block.num_rows, place] = block[name].to_numpy()
            at += block.num_rows
    return values


def _published(parts: Sequence[TablePart], folder: Path) -> list[TablePart]:
    return [
        TablePart(part.number, part.rows, (Piece(str(folder / part_name(part)), 0, part.rows),), part.layout)
        for part in parts
    ]


def _promise(release: ObfuscatedRelease, machine: RegularisedSVM) -> NoGuarantee:
    guarantee = release.facts(machine.alpha_).guarantee
    assert isinstance(guarantee, NoGuarantee)
    return guarantee


def _write_facts(release: ObfuscatedRelease, machine: RegularisedSVM, folder: Path) -> None:
    facts = release.facts(machine.alpha_)
    (folder / "noise.json").write_text(facts.noise.to_json(), encoding="utf-8")
    facts.certificate.write(folder / "certificate.json")
    (folder / "README.txt").write_text(text("obfuscated_readme.txt", notes=facts.notes), encoding="utf-8")
