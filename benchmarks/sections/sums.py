"""Sums of 2,000 cells beside a plain GROUP BY of the same rows by the same engine, and a whole evaluation of a study.

The bar is for a million rows. The whole evaluation also finds each person's row, places every cell into its range and
orders people: what a plain GROUP BY does not do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import duckdb
import numpy as np
import pyarrow as pa
from sections import Line

from sfumato.network import evaluate as evaluation
from sfumato.network.evaluate import evaluate
from sfumato.network.totals import totals
from sfumato.plan.make import network_of

STUDY = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, a, a(P)). random(a(P)) :- p(P). range(a(P), [{words}]).
column(t, b, b(P)). random(b(P)) :- p(P). range(b(P), [{numbers}]).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 100).
dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, dp(1)).
histogram(h, [a(P), b(P)], p(P)). publish(counts, h, r(pub)).
mean(m, x(P), p(P), by([a(P), b(P)])). publish(means, m, r(pub)).
"""
WORDS = [f"a{place}" for place in range(40)]


def rows_of(size: int) -> pa.Table:
    random = np.random.default_rng(0)
    words = pa.array(np.array(WORDS)[random.integers(0, 40, size)])
    return pa.table(
        {"id": np.arange(size), "a": words, "b": random.integers(0, 50, size), "x": random.random(size) * 100}
    )


def seconds(work: Callable[[], object], times: int = 3) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def lines(sizes: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)) -> Iterator[Line]:
    network = network_of(STUDY.format(words=", ".join(WORDS), numbers=", ".join(map(str, range(50)))))
    for size in sizes:
        taken: dict[str, float] = {}

        def measured(room, table, nodes, columns, taken=taken):
            plain = duckdb.connect()
            threads = room.run("SELECT current_setting('threads')")[0][0]
            plain.execute(f"SET threads TO {threads}")
            plain.register("rows", table)
            a, b, x = (columns[name] for name in ("a(P)", "b(P)", "x(P)"))
            query = f"SELECT {a}, {b}, count(*), sum({x}) FROM rows GROUP BY 1, 2"
            taken["plain"] = seconds(lambda: plain.execute(query).fetchall())
            taken["sums"] = seconds(lambda: totals(room, table, nodes, columns))
            return totals(room, table, nodes, columns)

        table, evaluation.totals = rows_of(size), measured
        try:
            evaluate(network, {"t": table})
        finally:
            evaluation.totals = totals
        bar = 2.0 if size == 1_000_000 else None
        yield Line(f"{size:.0e} rows × 2,000 cells, sums over GROUP BY ({taken['plain']:.3f} s)",
                   taken["sums"] / taken["plain"], bar)  # fmt: skip
        whole = seconds(lambda table=table: evaluate(network, {"t": table}), 1)
        yield Line(f"{size:.0e} rows, the whole evaluation, s", whole)
