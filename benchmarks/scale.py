"""Two local workers beside one process: a table released, a study run, a classifier trained, from Parquet; by size.

python -m benchmarks scale                                                                a small size, minutes
python benchmarks/scale.py --rows 1000000 5000000 50000000 --fit-rows 1000000 5000000     the curve and the bars

What one process takes is measured in a process of its own, so that its memory is nobody else's; importing is left
out of the clock.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sfumato.core import Interval, Schema
from sfumato.learn import PrivateLogisticRegression
from sfumato.learn.losses import LogisticLoss
from sfumato.learn.newton import SumsAsked
from sfumato.learn.stream_sums import BatchReader, MarginSums, NormCounts, RowShape
from sfumato.ledger import Ledger
from sfumato.network.network import Network
from sfumato.plan.make import make_plan
from sfumato.release import GaussianRelease
from sfumato.run.engine import fit as engine_fit
from sfumato.run.engine.engine import Engine, LocalEngine, open_engine
from sfumato.run.engine.study import evaluate_on
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
    #: Of the process alone, in GB; the workers' is asked of them.
    peak: float = float("nan")

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


def alone(prepared: Callable[..., Callable[[], object]], *given: object) -> Cost:
    """What a function of this module prepares costs in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_alone, prepared, given).result()


def _alone(prepared: Callable[..., Callable[[], object]], given: tuple[object, ...]) -> Cost:
    work = prepared(*given)
    start, before = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - start, time.process_time() - before, peak_memory())


def compared(what: str, rows: int, local: Cost, spread: Cost, cluster: Engine, bar: float) -> None:
    worker = max(cluster.everywhere(peak_memory))
    print(
        f"{what}, {rows:,} rows: one process {local.of(rows)}, {local.peak:.2f} GB; two workers {spread.of(rows)}, "
        f"largest {worker:.2f} GB (bar 2): {spread.wall / local.wall:.2f} × by the clock (bar {bar}), "
        f"{spread.cpu / local.cpu:.2f} × by the processor",
        flush=True,
    )


# ── release ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def release_once(folder: Path, schema: Schema, engine: Engine) -> None:
    prepared = GaussianRelease(schema, epsilon=2.0, delta=1e-6).prepare()
    with tempfile.TemporaryDirectory(dir=folder) as name:
        out, ledger = Path(name) / "out", Ledger(Path(name) / "ledger.db")
        release_partitions(folder / "table", prepared, out, ledger, "table", engine=engine, grant=True)


def bench_release(folder: Path, rows: int, cluster: Engine, repeats: int) -> None:
    schema = write_folder(folder / "table", rows, COLUMNS, 4, label=False)
    local = alone(partial, release_once, folder, schema, LocalEngine())
    spread = measured(lambda: release_once(folder, schema, cluster), cluster, repeats)
    compared(f"release of {COLUMNS} columns", rows, local, spread, cluster, 0.65)
    shutil.rmtree(folder / "table")


# ── a study of twenty questions ──────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "ward": [f"a{i}" for i in range(12)],
    "sex": ["f", "m"],
    "city": [f"c{i}" for i in range(30)],
    "kind": ["x", "y", "z"],
}
COUNTS, MEASURES = [f"n{i}" for i in range(5)], [f"v{i}" for i in range(10)]


def study_text(source: str = "stays/") -> str:
    """Five means, five by twelve groups, four sums by thirty, three tables, a histogram and two counts."""
    lines = [f"source(stays, '{source}').", "column(stays, id, person(P)). rows_per_person(stays, 1)."]
    for name in (*WORDS, *COUNTS, *MEASURES):
        domain, missing = (f"[{', '.join(WORDS[name])}]", WORDS[name][0]) if name in WORDS else ("0, 100", "50")
        lines.append(f"column(stays, {name}, {name}(P)). random({name}(P)) :- person(P).")
        lines.append(f"range({name}(P), {domain}). missing({name}(P), {missing}).")
    asked = [f"mean(m{i}, n{i}(P), person(P))" for i in range(5)]
    asked += [f"mean(w{i}, v{i}(P), person(P), by([ward(P)]))" for i in range(5)]
    asked += [f"sum(s{i}, v{i}(P), person(P), by([city(P)]))" for i in range(5, 9)]
    asked += [f"histogram(h{i}, [{a}(P), {b}(P)], person(P))" for i, (a, b) in enumerate(TABLES)]
    asked += ["histogram(h3, [v9(P): [20, 40, 60, 80]], person(P))"]
    asked += ["count(c0, (person(P), n0(P) > 50))", "count(c1, (person(P), v0(P) < 10))"]
    lines += ["dataset(people, domain(P, person(P))).", "privacy_requirement(o(public), people, dp(1))."]
    for one in asked:
        name = one.split("(")[1].split(",")[0]
        lines.append(f"{one}. publish({name}, {name}, o(public)).")
    return "\n".join(lines) + "\n"


TABLES = [("sex", "kind"), ("ward", "sex"), ("city", "kind")]


def invented_stays(generator: np.random.Generator, first: int, size: int) -> pa.Table:
    columns: dict[str, object] = {"id": np.arange(first, first + size)}
    for name, words in WORDS.items():
        columns[name] = pa.array(np.array(words)[generator.integers(0, len(words), size)])
    columns |= {name: generator.integers(0, 100, size) for name in COUNTS}
    columns |= {name: generator.random(size) * 100 for name in MEASURES}
    return pa.table(columns)


def write_stays(folder: Path, rows: int, files: int = 4) -> None:
    folder.mkdir()
    generator, first = np.random.default_rng(0), 0
    for number in range(files):
        left, writer = rows // files + (number < rows % files), None
        while left:
            size = min(left, 250_000)
            table = invented_stays(generator, first, size)
            writer = writer or parquet.ParquetWriter(folder / f"{number}.parquet", table.schema)
            writer.write_table(table)
            left, first = left - size, first + size
        if writer is not None:
            writer.close()


def scan(stays: Path) -> None:
    """DuckDB's own grouped scan of the same columns."""
    summed = ", ".join(f"sum({name})" for name in (*COUNTS, *MEASURES))
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT ward, count(id), max(sex), max(city), max(kind), {summed} FROM '{stays}/*.parquet' GROUP BY 1"
        ).fetchall()


def asked_in_sql(rows: str) -> list[str]:
    """The same questions, one by one: nothing clipped, no absent cells, sums of floats."""
    asked = [f"SELECT avg(n{i}) FROM {rows}" for i in range(5)]
    asked += [f"SELECT ward, avg(v{i}) FROM {rows} GROUP BY 1" for i in range(5)]
    asked += [f"SELECT city, sum(v{i}) FROM {rows} GROUP BY 1" for i in range(5, 9)]
    asked += [f"SELECT {a}, {b}, count(*) FROM {rows} GROUP BY 1, 2" for a, b in TABLES]
    asked += [f"SELECT v9 >= 20, v9 >= 40, v9 >= 60, v9 >= 80, count(*) FROM {rows} GROUP BY 1, 2, 3, 4"]
    return [*asked, f"SELECT count(*) FROM {rows} WHERE n0 > 50", f"SELECT count(*) FROM {rows} WHERE v0 < 10"]


def answers(stays: Path) -> None:
    """What DuckDB itself answers."""
    with duckdb.connect() as connection:
        for question in asked_in_sql(f"'{stays}/*.parquet'"):
            connection.execute(question).fetchall()


@lru_cache
def planned_network() -> Network:
    network = make_plan(study_text()).network
    assert network is not None
    return network


def evaluate_stays(stays: Path) -> None:
    planned_network().evaluate({"stays": stays}, sums_only=True)


def warm(work: Callable[[Path], object], folder: Path) -> Callable[[], object]:
    """The work over all rows, after a few of them: what is imported on the way is there already."""
    work(folder / "few")
    return lambda: work(folder / "stays")


def bench_study(folder: Path, rows: int, cluster: Engine, repeats: int) -> None:
    write_stays(folder / "stays", rows)
    write_stays(folder / "few", 1000)
    network, tables = planned_network(), {"stays": folder / "stays"}
    planned = alone(partial, make_plan, study_text())
    scanned, asked, local = (alone(warm, work, folder) for work in (scan, answers, evaluate_stays))
    evaluate_on(cluster, network, {"stays": folder / "few"}, sums_only=True)
    print(
        f"study of 20 questions, {rows:,} rows × 20, processor: DuckDB's scan {scanned.cpu:.2f} s, its own 20 queries "
        f"{asked.cpu:.2f} s, the study {local.cpu:.2f} s ({local.cpu / scanned.cpu:.1f} × the scan, bar 2; "
        f"{local.cpu / asked.cpu:.1f} × the queries), {local.peak:.2f} GB (bar 2); planning {planned.cpu:.1f} s",
        flush=True,
    )
    spread = measured(lambda: evaluate_on(cluster, network, tables, sums_only=True), cluster, repeats)
    compared("study of 20 questions", rows, local, spread, cluster, 0.65)
    for name in ("stays", "few"):
        shutil.rmtree(folder / name)


# ── fits ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
        what = f"pass of a fit of {FIT_COLUMNS} columns, gradient{' and Hessian' if hessian else ''}"
        compared(what, rows, local, spread, cluster, 0.65)
    models = []
    for engine in (LocalEngine(), cluster):
        model = PrivateLogisticRegression(1.0, 1e-6, norm=10.0, classes=[False, True], random_state=0)
        start = time.perf_counter()
        models.append(engine_fit.fit_table(model, folder / "table", "y", engine=engine))
        print(f"  whole fit, {engine.name}: {time.perf_counter() - start:.1f} s, {model.n_iter_[0]} steps")
    difference = np.abs(models[0].coef_ - models[1].coef_).max() / np.abs(models[0].coef_).max()
    print(f"  largest relative difference of the two fits: {difference:.1e}   bar ≤ 1e-9")
    shutil.rmtree(folder / "table")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000], help="sizes of tables; bar at 50,000,000")
    parser.add_argument("--fit-rows", type=int, nargs="*", default=[400_000], help="training tables; bar at 5,000,000")
    parser.add_argument("--only", choices=["release", "study", "fit"], nargs="*", default=["release", "study", "fit"])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="where to keep the tables; default: a temporary one")
    chosen = parser.parse_args([] if arguments is None else arguments)
    benches = {"release": bench_release, "study": bench_study, "fit": bench_fit}
    for kind in chosen.only:
        for rows in chosen.fit_rows if kind == "fit" else chosen.rows:
            # Workers of their own for each: their memory is that of this size.
            with tempfile.TemporaryDirectory(dir=chosen.folder) as name, open_engine("dask", workers=2) as cluster:
                cluster.everywhere(peak_memory)
                benches[kind](Path(name), rows, cluster, chosen.repeats)


if __name__ == "__main__":
    main(sys.argv[1:])
