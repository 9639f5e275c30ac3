"""Idle against busy: small linear algebra beside four processes that never rest.

In:   made-up matrices, the oncology study, Adult (or a table of its shape where it is not at hand).
Out:  seconds idle, seconds busy, their ratio beside the bar of 3, and the ratio of processor time.

On two cores with four busy loops a process gets a third of the machine: 3 is about what fair sharing costs. Threads
that wait for each other used to make it 20 to 200. Threads that wait spin, so processor time shows them too, and
hardly depends on who else is at work: near 1 where nothing waits. On a machine that is never idle believe that column.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from sfumato.core import ApproxDP, Interval
from sfumato.learn import PrivateLogisticRegression
from sfumato.mechanisms import TailoredNoise
from sfumato.mechanisms.tailored.design import design
from sfumato.plan import place_noise
from sfumato.plan.make import make_plan

LOOPS = 4
BAR = 3.0
ONCOLOGY = Path(__file__).parents[1] / "examples" / "oncology" / "study.pl"


def spin() -> None:
    while True:
        pass


@contextmanager
def busy(loops: int = LOOPS) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=spin, daemon=True) for _ in range(loops)]
    for process in processes:
        process.start()
    time.sleep(2.0)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join(timeout=10)


def noise_of_a_query() -> None:
    place_noise(np.random.default_rng(1).normal(size=(200, 100)), ApproxDP(1.0, 1e-5), 1.0)


def channel() -> None:
    design.cache_clear()
    _ = TailoredNoise(Interval(0, 1), 2.0, bins=100).certificate


def oncology() -> None:
    make_plan(ONCOLOGY)


def adult() -> tuple[np.ndarray, np.ndarray]:
    """The encoded table, or one of its shape: 32,561 rows, 108 columns, most of them 0 or 1."""
    try:
        from learn_adult import load

        return load()
    except (ImportError, OSError):
        generator = np.random.default_rng(0)
        matrix = (generator.uniform(size=(32_561, 108)) < 0.12).astype(float)
        return matrix, (matrix[:, :5].sum(axis=1) + generator.normal(size=len(matrix)) > 0.8).astype(int)


def fit(matrix: np.ndarray, labels: np.ndarray) -> None:
    PrivateLogisticRegression(epsilon=1.0, norm=6.0, random_state=0).fit(matrix, labels)


def seconds(work: Callable[[], None], repeats: int = 5, least: float = 0.5) -> tuple[float, float]:
    """On the clock and of the processor, each the middle of a few: one alone may meet somebody else's work.

    What is over sooner is done as often as fills `least` seconds: a few hundredths of a second are one turn of the
    machine's scheduler, taken at once or waited for, and say nothing of a share.
    """
    clock, processor = [], []
    for _ in range(repeats):
        start, times = (time.perf_counter(), time.process_time()), 0
        while time.perf_counter() - start[0] < least:
            work()
            times += 1
        clock.append((time.perf_counter() - start[0]) / times)
        processor.append((time.process_time() - start[1]) / times)
    return sorted(clock)[repeats // 2], sorted(processor)[repeats // 2]


def main() -> None:
    matrix, labels = adult()
    works = {
        "place_noise of a 200 x 100 query": noise_of_a_query,
        "TailoredNoise, k = 100": channel,
        "make_plan of oncology": oncology,
        "one fit of Adult": lambda: fit(matrix, labels),
    }
    for work in works.values():
        work()  # imports and caches
    idle = {name: seconds(work) for name, work in works.items()}
    with busy():
        loaded = {name: seconds(work) for name, work in works.items()}
    shown = Table("work", "idle, s", "busy, s", "ratio", "bar", "kept", "processor ratio")
    for name in works:
        (idle_clock, idle_processor), (busy_clock, busy_processor) = idle[name], loaded[name]
        ratio, fair = busy_clock / idle_clock, busy_processor / idle_processor
        kept = str(ratio <= BAR)
        shown.add_row(name, f"{idle_clock:.3f}", f"{busy_clock:.3f}", f"{ratio:.1f}", f"{BAR:g}", kept, f"{fair:.1f}")
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
