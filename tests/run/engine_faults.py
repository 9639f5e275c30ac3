"""Tasks that misbehave on purpose; workers import them by name."""

from __future__ import annotations

import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.run.engine.engine import Total
from sfumato.run.partition_release import ReleaseParts


@dataclass(frozen=True)
class DiesHalfWay:
    """Publishes its parts, and kills its own process after the first part, as often as `marks` has room."""

    task: ReleaseParts
    marks: str
    deaths: int = 1

    def __call__(self, parts: Any) -> tuple[int, frozenset[str]]:
        rows, told = self.task(parts[:1])
        for number in range(self.deaths):
            try:
                (Path(self.marks) / f"death-{parts[0].number}-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
        more, also = self.task(parts[1:])
        return rows + more, told | also


@dataclass(frozen=True)
class FullDisk:
    """Fails like a full disk at one part, until `marks` says that somebody made room."""

    task: ReleaseParts
    marks: str

    def __call__(self, parts: Any) -> tuple[int, frozenset[str]]:
        rows, told = 0, frozenset[str]()
        for part in parts:
            if part.number == 2 and not (Path(self.marks) / "room").exists():
                raise OSError(errno.ENOSPC, "No space left on device", "/secret/path/of/ada")
            more, also = self.task([part])
            rows, told = rows + more, told | also
        return rows, told


def counts_and_sums(batch: Any) -> list[Any]:
    """How many rows, how many in each of ten bins of the first column, and the sum of it."""
    values = batch.column(0).to_numpy()
    return [len(values), np.histogram(values, bins=10, range=(-2, 2))[0], values.sum()]


def slow_square(value: int) -> int:
    time.sleep(0.05)
    return value * value


def as_total(value: float) -> Total:
    return Total.of([np.array([value])])


def quotes_a_value(value: int) -> int:
    raise ValueError(f"could not convert {value} of Ada")


@dataclass(frozen=True)
class DiesOnce:
    """Any task, whose process is killed after the work, once: a machine starts another worker in seconds."""

    task: Any
    marks: str

    def __call__(self, parts: Any) -> Any:
        result = self.task(parts)
        try:
            (Path(self.marks) / "death").touch(exist_ok=False)
        except FileExistsError:
            return result
        os.kill(os.getpid(), signal.SIGKILL)
        return None


@dataclass(frozen=True)
class WaitsToBeKilled:
    """Any task; says that it began, and rests until whoever it belongs to is gone."""

    task: Any
    marks: str

    def __call__(self, parts: Any) -> Any:
        (Path(self.marks) / f"began-{_number(parts)}").touch()
        time.sleep(120)
        return self.task(parts)


def _number(task: Any) -> int:
    """Which of several tasks it is: a share's place, a part, some parts."""
    first = task[0] if isinstance(task, tuple | list) else task
    return first if isinstance(first, int) else first.number
