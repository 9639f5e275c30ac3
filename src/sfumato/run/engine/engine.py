"""Who does the work: this process, or the workers of a Dask cluster.

In:   a function and a list of tasks that do not depend on each other.
Out:  `map`: what each task returns, as it comes; `sum`: the sum of what they return, the same for every grouping;
      `keep`: parts that later tasks take, computed once and left where they are.
Not here: Dask itself (run/engine/dask.py), what the tasks do (run/partition_release.py, run/engine/fit.py), whether an
engine keeps its word (run/engine/conformance.py).

These three calls suffice for every study, release and fit. A function may run twice for the same task, on another
worker, at the same time: it must give the same answer and leave the same files each time. It draws no noise of its own.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from sfumato.errors import InputError, SfumatoError

__all__ = ["Engine", "LocalEngine", "Total", "computed", "guarded", "open_engine"]

Task = Any
Function = Callable[[Task], Any]


class Engine(ABC):
    """Runs independent tasks: three calls, held to their word by `check_engine` (run/engine/conformance.py). Abstract.

    Final classes are LocalEngine and DaskEngine.
    """

    name: str

    @abstractmethod
    def map(self, function: Function, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        """(position, result) of every task, in whatever order they end. The first error ends it."""

    @abstractmethod
    def sum(self, function: Callable[[Task], Any], tasks: Sequence[Task]) -> Any:
        """The sum, by their `plus`, of the results; `tasks` must not be empty."""

    @abstractmethod
    def keep(self, parts: Sequence[Any]) -> list[Any]:
        """Parts that are promised and not computed yet (`dask.delayed`), computed once; what a tuple of tasks takes."""

    def everywhere(self, function: Callable[[], Any]) -> list[Any]:
        """What the function returns in each process that would work, where the engine knows them; else in one."""
        return [answer for _, answer in self.map(_Called(function), [None])]

    @property
    def width(self) -> int:
        """How many tasks are worked on at a time: fewer leave somebody idle."""
        return 1

    def close(self) -> None:  # noqa: B027  (most engines start nothing)
        """Let go of what this engine started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@final
class LocalEngine(Engine):
    """This process, one task after the other.

    >>> dict(LocalEngine().map(abs, [-1, -2]))
    {0: 1, 1: 2}
    """

    name = "local"

    def map(self, function: Function, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        guard = guarded(function)
        for position, task in enumerate(tasks):
            yield position, guard(task)

    def sum(self, function: Callable[[Task], Any], tasks: Sequence[Task]) -> Any:
        result = None
        for _, part in self.map(function, tasks):
            result = part if result is None else result.plus(part)
        assert result is not None
        return result

    def keep(self, parts: Sequence[Any]) -> list[Any]:
        return computed(parts)


def computed(parts: Sequence[Any]) -> list[Any]:
    """Promised parts, computed in this process, what they share once."""
    if not parts:
        return []
    from dask.base import compute

    return list(compute(*parts, scheduler="synchronous"))


@dataclass(frozen=True)
class _Called:
    """A function of nothing as one of a task."""

    function: Callable[[], Any]

    def __call__(self, task: Task) -> Any:
        return self.function()


@dataclass(frozen=True)
class Total:
    """A sum of arrays with its rounding error kept beside it, so that grouping and order do not show.

    Each addition is exact in the pair (Knuth's two-sum), up to the rounding of the errors themselves: relative 2^-106
    or so for each addition. Sums over one or a thousand partitions agree to the last digit or the one before.

    >>> parts = [Total.of([np.array([x])]) for x in (1e16, 1.0, -1e16)]
    >>> float(parts[0].plus(parts[1]).plus(parts[2]).values[0][0])
    1.0
    """

    high: tuple[np.ndarray, ...]
    low: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, arrays: Sequence[Any]) -> Total:
        high = tuple(np.array(array, dtype=np.float64) for array in arrays)
        return cls(high, tuple(np.zeros_like(array) for array in high))

    @property
    def values(self) -> list[np.ndarray]:
        return [high + low for high, low in zip(self.high, self.low, strict=True)]

    def plus(self, other: Total) -> Total:
        pairs = [_two_sum(*four) for four in zip(self.high, self.low, other.high, other.low, strict=True)]
        return Total(tuple(high for high, _ in pairs), tuple(low for _, low in pairs))


def _two_sum(a: np.ndarray, a_low: np.ndarray, b: np.ndarray, b_low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    of_b = total - a
    error = (a - (total - of_b)) + (b - of_b) + (a_low + b_low)
    high = total + error
    return high, error - (high - total)


class guarded:
    """The function with errors that never quote a value: those of other libraries may, so they are not passed on."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def __call__(self, task: Task) -> Any:
        try:
            return self.function(task)
        except SfumatoError:
            raise
        except Exception as error:
            said = _described(error)
        raise SfumatoError(said)  # outside the handler: not even __context__ holds the other error


def _described(error: Exception) -> str:
    resume = "Nothing was published. The same command run again takes up where this one stopped, at no further cost."
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full. {resume}"
    if isinstance(error, MemoryError):
        return f"A worker ran out of memory. Give workers more of it, or use more partitions. {resume}"
    kind = errno.errorcode.get(error.errno or 0, "OSError") if isinstance(error, OSError) else type(error).__name__
    return f"A task failed on a worker ({kind}; its message may quote values and is not shown). {resume}"


def open_engine(engine: str | Engine = "local", *, workers: int | None = None) -> Engine:
    """ "local", "dask" (a cluster of its own on this machine) or the address of a running scheduler.

    >>> open_engine("local").name
    'local'
    """
    if isinstance(engine, Engine):
        return engine
    if engine == "local":
        return LocalEngine()
    if engine == "dask" or (isinstance(engine, str) and engine.startswith(("tcp://", "tls://", "ws://", "wss://"))):
        from sfumato.run.engine.dask import DaskEngine

        return DaskEngine.local(workers) if engine == "dask" else DaskEngine.join(engine)
    raise InputError(
        f"There is no engine {engine!r}: say local, dask, or the address of a Dask scheduler such as tcp://host:8786. "
        "Nothing was drawn or spent."
    )
