"""Sums of 2,000 cells beside a plain GROUP BY of the same rows by the same engine, and a whole evaluation of a study.

The bar is for a million rows. The whole evaluation also finds each person's row, places every cell into its range and
orders people: what a plain GROUP BY does not do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
from sections import Line

from sfumato.network import evaluate as evaluation
from sfumato.network.evaluate import evaluate
from sfumato.network.network import Network
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


def plain_seconds(table: pa.Table) -> float:
    """A GROUP BY of the same rows by the engine alone, with as many threads as it takes by itself."""
    with duckdb.connect() as plain:
        plain.register("rows", table)
        query = "SELECT a, b, count(*), sum(x) FROM rows GROUP BY 1, 2"
        return seconds(lambda: plain.execute(query).fetchall())


def sums_seconds(network: Network, table: pa.Table, times: int = 3) -> tuple[float, float]:
    """What adding up takes within an evaluation, and the whole of it: the least of some runs."""
    found = []
    for _ in range(times):
        taken = 0.0

        def measured(*given):
            nonlocal taken
            start = time.perf_counter()
            sums = totals(*given)
            taken += time.perf_counter() - start
            return sums

        with mock.patch.object(evaluation, "totals", measured):
            whole = seconds(lambda: evaluate(network, {"t": table}), 1)
        found.append((taken, whole))
    return min(found)


def lines(sizes: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)) -> Iterator[Line]:
    network = network_of(STUDY.format(words=", ".join(WORDS), numbers=", ".join(map(str, range(50)))))
    for size in sizes:
        table = rows_of(size)
        plain, (sums, whole) = plain_seconds(table), sums_seconds(network, table)
        bar = 2.0 if size == 1_000_000 else None
        yield Line(f"{size:.0e} rows × 2,000 cells, sums over GROUP BY ({plain:.3f} s)", sums / plain, bar)
        yield Line(f"{size:.0e} rows, the whole evaluation, s", whole)
