"""Whole-table release, Parquet to Parquet, beside the same pass with numpy's plain normal noise; and its memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sfumato.core import Interval, Schema
from sfumato.ledger import Ledger
from sfumato.release import GaussianRelease
from sfumato.run.files import TableFile
from sfumato.run.tables import release_file

ROWS, COLUMNS = 890_000, 70
BATCH = (1 << 22) // COLUMNS


def write_table(path: Path, rows: int, columns: int) -> Schema:
    generator = np.random.default_rng(0)
    names = [f"c{number:02d}" for number in range(columns)]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, rows, 50_000):
            block = generator.random((columns, min(50_000, rows - start)))
            writer.write_table(pa.table(dict(zip(names, block, strict=True))))
    return Schema({name: Interval(0, 1, null=0) for name in names})


def plain_pass(source: Path, target: Path, schema: Schema) -> None:
    """The same reader and writer, unsafe noise."""
    generator = np.random.default_rng()
    file = TableFile.open(source)
    with file.writer(target) as append:
        for batch in file.batches(schema, list(schema.columns), BATCH):
            columns = {name: batch[name].to_numpy() for name in batch.column_names}
            append(pa.table({name: values + generator.normal(0, 5.0, values.size) for name, values in columns.items()}))


def seconds(action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schema = write_table(folder / "in.parquet", ROWS, COLUMNS)
        prepared = GaussianRelease(schema, epsilon=2.0, delta=1e-6).prepare()
        ours, plain = [], []
        for number in range(2):
            ledger = Ledger(folder / f"ledger{number}.db")
            out = folder / f"out{number}"
            ours.append(
                seconds(lambda o=out, k=ledger: release_file(folder / "in.parquet", prepared, o, k, "in", grant=True))
            )
            plain.append(seconds(lambda: plain_pass(folder / "in.parquet", folder / "plain.parquet", schema)))
        ratio = min(ours) / min(plain)
        print(
            f"{ROWS:,} × {COLUMNS}: ours {min(ours):.1f} s, plain numpy {min(plain):.1f} s: {ratio:.2f} ×   bar ≤ 3 ×"
        )
    print(f"peak memory for 5,000,000 × 120: {memory():.2f} GB   bar < 1 GB")


def memory(rows: int = 5_000_000, columns: int = 120) -> float:
    """Peak resident memory of the command in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "in.parquet", rows, columns).write(folder / "s.toml")
        arguments = ["release", "in.parquet", "--schema", "s.toml", "--epsilon", "2", "--delta", "1e-6", "--out", "out"]
        subprocess.run([sys.executable, "-m", "sfumato", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
