"""Two local workers beside one process: a table released and a classifier trained, from Parquet; and what a row costs.

python -m benchmarks scale                                   a small size, minutes
python benchmarks/scale.py --rows 50000000 --fit-rows 5000000    the sizes of the bars
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sfumato.core import Interval, Schema
from sfumato.learn import PrivateLogisticRegression
from sfumato.learn.losses import LogisticLoss
from sfumato.learn.newton import SumsAsked
from sfumato.learn.stream_sums import BatchReader, MarginSums, NormCounts, RowShape
from sfumato.ledger import Ledger
from sfumato.release import GaussianRelease
from sfumato.run.engine import fit as engine_fit
from sfumato.run.engine.engine import Engine, LocalEngine, open_engine
from sfumato.run.partition import PartitionedTable, PartLayout, grouped
from sfumato.run.partition_release import release_partitions

COLUMNS, FIT_COLUMNS = 20, 100


def write_folder(folder: Path, rows: int, columns: int, files: int, *, label: bool) -> Schema:
    """Uniform numbers, some files; the label is a noisy linear rule."""
    folder.mkdir()
    names = [f"c{number:03d}" for number in range(columns)]
    direction = np.random.default_rng(1).normal(size=columns)
    for number in range(files):
        generator = np.random.default_rng(number)
        left = rows // files + (number < rows % files)
        writer = None
        while left:
            block = generator.random((columns, min(left, 100_000)))
            table = pa.table(dict(zip(names, block, strict=True)))
            if label:
                scores = direction @ (block - 0.5) + generator.logistic(size=block.shape[1]) * 0.3
                table = table.append_column("y", pa.array(scores > 0))
            path = folder / f"{number:03d}.parquet"
            writer = writer or parquet.ParquetWriter(path, table.schema, use_dictionary=False)
            writer.write_table(table)
            left -= block.shape[1]
        if writer is not None:
            writer.close()
    return Schema({name: Interval(0, 1, null=0) for name in names})


def peak_memory() -> float:
    """The largest resident size this process ever had, in GB (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e6
    return float("nan")


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, and seconds of all processors in this process and the workers."""

    wall: float
    cpu: float

    def of(self, rows: int) -> str:
        return f"{self.wall:.1f} s, {self.cpu / rows * 1e6:.2f} µs of processor a row"


def measured(action: Callable[[], object], engine: Engine, repeats: int) -> Cost:
    """The best of some runs; on shared cores processor time says more than the clock."""

    def used() -> float:
        return sum(engine.everywhere(time.process_time)) + (0.0 if engine.name == "local" else time.process_time())

    costs = []
    for _ in range(repeats):
        start, before = time.perf_counter(), used()
        action()
        costs.append(Cost(time.perf_counter() - start, used() - before))
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def release_once(folder: Path, schema: Schema, engine: Engine) -> None:
    prepared = GaussianRelease(schema, epsilon=2.0, delta=1e-6).prepare()
    with tempfile.TemporaryDirectory(dir=folder) as name:
        out, ledger = Path(name) / "out", Ledger(Path(name) / "ledger.db")
        release_partitions(folder / "table", prepared, out, ledger, "table", engine=engine, grant=True)


def bench_release(folder: Path, rows: int, cluster: Engine, repeats: int) -> None:
    schema = write_folder(folder / "table", rows, COLUMNS, 4, label=False)
    alone = LocalEngine()
    local = measured(lambda: release_once(folder, schema, alone), alone, repeats)
    spread = measured(lambda: release_once(folder, schema, cluster), cluster, repeats)
    print(
        f"release {rows:,} × {COLUMNS}, Parquet to Parquet: local {local.of(rows)}; two workers {spread.of(rows)}: "
        f"{spread.wall / local.wall:.2f} × by the clock, {spread.cpu / local.cpu:.2f} × by the processor   bar ≤ 1.3 ×"
    )
    print(f"  largest worker {max(cluster.everywhere(peak_memory)):.2f} GB   bar ≤ 2 GB")
    shutil.rmtree(folder / "table")


def pass_cost(folder: Path, engine: Engine, hessian: bool, repeats: int) -> Cost:
    """One pass over the table: gradients alone, or with the Hessian."""
    table = engine_fit._Files(PartitionedTable.open(folder / "table"))
    names = tuple(name for name in table.column_names if name != "y")
    reader = BatchReader(names, "y", None, (False, True))
    tasks = grouped(table.payloads(PartLayout(PartLayout.for_columns(len(names) + 1).block_rows, 2)), None)
    passes = engine_fit._TablePasses(table, reader, engine, tasks)
    question = SumsAsked(0, np.full(len(names) + 1, 0.1), hessian)
    passes.total(NormCounts())  # workers import what they need, and the files are in the system's cache
    statistic = MarginSums(RowShape(10.0, 0.2), LogisticLoss(), (question,), (1,))
    return measured(lambda: passes.total(statistic), engine, repeats)


def bench_fit(folder: Path, rows: int, cluster: Engine, repeats: int) -> None:
    write_folder(folder / "table", rows, FIT_COLUMNS, 4, label=True)
    for hessian in (False, True):
        local = pass_cost(folder, LocalEngine(), hessian, repeats)
        spread = pass_cost(folder, cluster, hessian, repeats)
        what = "with its Hessian" if hessian else "alone"
        print(
            f"one pass over {rows:,} × {FIT_COLUMNS}, gradient {what}: local {local.of(rows)}; two workers "
            f"{spread.of(rows)}: {spread.wall / local.wall:.2f} × by the clock, {spread.cpu / local.cpu:.2f} × by the "
            "processor   bar ≤ 1.5 ×"
        )
    models = []
    for engine in (LocalEngine(), cluster):
        model = PrivateLogisticRegression(1.0, 1e-6, norm=10.0, classes=[False, True], random_state=0)
        start = time.perf_counter()
        models.append(engine_fit.fit_table(model, folder / "table", "y", engine=engine))
        print(f"  whole fit, {engine.name}: {time.perf_counter() - start:.1f} s, {model.n_iter_[0]} steps")
    difference = np.abs(models[0].coef_ - models[1].coef_).max() / np.abs(models[0].coef_).max()
    print(f"  largest relative difference of the two fits: {difference:.1e}   bar ≤ 1e-9")
    print(f"  largest worker {max(cluster.everywhere(peak_memory)):.2f} GB   bar ≤ 2 GB")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the released table; bar at 50,000,000")
    parser.add_argument("--fit-rows", type=int, default=400_000, help="rows of the training table; bar at 5,000,000")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where to keep the tables; default: a temporary one")
    chosen = parser.parse_args([] if arguments is None else arguments)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name, open_engine("dask", workers=2) as cluster:
        cluster.everywhere(peak_memory)
        if chosen.rows:
            bench_release(Path(name), chosen.rows, cluster, chosen.repeats)
        if chosen.fit_rows:
            bench_fit(Path(name), chosen.fit_rows, cluster, chosen.repeats)


if __name__ == "__main__":
    main(sys.argv[1:])
