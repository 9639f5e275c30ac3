"""A study of twenty questions over a table in PostgreSQL beside the server's own twenty queries, by the clock.

Run: python benchmarks/databases.py [--rows 1000000]. The bar: 1.5 × at 1,000,000 rows. The server is one of our own on
a free port, with Debian's settings; the study's run is whole but for planning: rows read in one transaction, looked up
for copies, summed exactly, reserved, drawn, charged. Both in turn, after one round that nobody counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from adbc_driver_postgresql import dbapi
from own_server import installed, postgresql
from scale import asked_in_sql, invented_stays, study_text

from sfumato import Ledger, make_plan, run_plan

BAR, ROUNDS = 1.5, 5


def filled(address: str, rows: int) -> None:
    generator = np.random.default_rng(0)
    with closing(dbapi.connect(address)) as connection, closing(connection.cursor()) as cursor:
        for first in range(0, rows, 250_000):
            part = invented_stays(generator, first, min(250_000, rows - first))
            cursor.adbc_ingest("stays", part, mode="append" if first else "create")
        cursor.execute("ANALYZE stays")
        connection.commit()


def asked_of_the_server(address: str) -> None:
    with closing(dbapi.connect(address)) as connection, closing(connection.cursor()) as cursor:
        for question in asked_in_sql("stays"):
            cursor.execute(question)
            cursor.fetchall()


def clock(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(rows: int = 1_000_000) -> bool:
    binaries = installed()
    if binaries is None:
        print("PostgreSQL's server is not installed (Debian: `apt-get install postgresql`): nothing was measured.")
        return True
    plan = make_plan(study_text("postgresql:stays"))
    with postgresql(binaries) as address, tempfile.TemporaryDirectory() as name:
        filled(address, rows)
        os.environ["SFUMATO_POSTGRESQL"] = address

        def published(number: int) -> None:
            # Each time as a new user: known rows would be refused a second budget.
            os.environ["XDG_STATE_HOME"] = f"{name}/{number}"
            run_plan(plan, Path(name), Ledger(Path(name) / f"{number}.db"), grant=True)

        pairs = [
            (clock(lambda: asked_of_the_server(address)), clock(lambda number=number: published(number)))
            for number in range(1 + ROUNDS)
        ][1:]
    theirs, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(ours / theirs for theirs, ours in pairs)
    print(
        f"{'ok  ' if ratio <= BAR else 'MISS'} PostgreSQL, {rows:,} rows × 20, 20 questions: {ours:.2f} s by "
        f"the clock, the server's own 20 queries {theirs:.2f} s: {ratio:.2f} × (bar {BAR}; middle of {ROUNDS})"
    )
    return ratio <= BAR


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    sys.exit(not main(parser.parse_args().rows))
