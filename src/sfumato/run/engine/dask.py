"""The workers of a Dask cluster, started here or joined.

In:   tasks for run/engine/engine.py.
Out:  their results; sums added up in a tree on the workers.
Not here: what a task does. Dask may run a task twice (a lost worker, stolen work); tasks are written for it.

Nothing here waits for ever. While some worker works, its task may take as long as it takes; where nothing comes back
and nobody works for a while, unfinished tasks are handed out once more, and if that does not help either, what was seen
is said in an error. The same command takes up there. (Dask's own `as_completed` listens at the client made last in this
process: where that one failed to come up, nobody is ever told.)

The key of a run and the addresses of the files travel to the workers, which see the private rows anyway. Use tls://
where the network between them is not yours alone.
"""

from __future__ import annotations

import logging
import os
import queue
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, final

from sfumato.core.waits import within
from sfumato.errors import InputError, SfumatoError
from sfumato.run.engine.engine import Engine, Function, Task, guarded

__all__ = ["DaskEngine"]

#: How many partial sums one worker adds up at a time.
_FAN_IN = 16
_MEMORY_PER_WORKER = 2_000_000_000
#: Seconds without a result and without a worker at work.
_PATIENCE = 120.0
#: Seconds for an answer of the scheduler, and for the workers to end.
_ANSWER, _GOODBYE = 60.0, 30.0
_RESUME = "Nothing was published. The same command run again takes up where this one stopped, at no further cost."
#: Dask tells glibc to give every freed array back to the system at once (MALLOC_TRIM_THRESHOLD_=65536). Batches are
#: made and dropped all the time: that cost 3.3 µs of processor for a row of 20 columns where keeping them costs 1.2 µs.
_KEPT = str(1 << 28)
_SETTINGS = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": _KEPT,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": _KEPT,
    "distributed.comm.timeouts.connect": "120s",  # busy machines start workers slowly
    "distributed.worker.profile.enabled": False,  # looks at the working thread a hundred times a second
    "distributed.admin.tick.interval": "1s",  # each process would look fifty times a second whether it is awake
    "distributed.admin.system-monitor.interval": "5s",  # for a dashboard that nobody opens
}


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "The engine dask needs Dask: pip install 'sfumato[dask]'. Nothing was drawn or spent."
        ) from None
    return distributed


@final
class DaskEngine(Engine):
    """Tasks on a Dask cluster. `DaskEngine.local()` starts one here, `DaskEngine.join(address)` uses a running one."""

    name = "dask"

    def __init__(self, client: Any, *, owned: Sequence[Any] = (), patience: float = _PATIENCE) -> None:
        self.client = client
        self._owned = owned
        self._patience = patience

    @classmethod
    def local(cls, workers: int | None = None, *, memory: int = _MEMORY_PER_WORKER) -> DaskEngine:
        """Worker processes on this machine, one thread and `memory` bytes each."""
        distributed = _distributed()
        from dask import config

        if workers is not None and (not isinstance(workers, int) or workers < 1):
            raise InputError("workers must be a whole number of at least 1. Nothing was drawn or spent.")
        try:
            with config.set(_SETTINGS):
                cluster = distributed.LocalCluster(
                    n_workers=workers or os.cpu_count() or 1,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=memory,
                    dashboard_address="127.0.0.1:0",  # None would still take the usual port, which others may hold
                    silence_logs=logging.CRITICAL,  # errors come back as errors; nothing else is for the user
                    host="127.0.0.1",
                    protocol="tls://",  # with certificates of its own: nobody else, here or on the network, may join
                    security=True,
                )
                client = distributed.Client(cluster)
        except (OSError, RuntimeError) as error:  # a timeout is an OSError
            raise SfumatoError(
                f"The workers did not start ({type(error).__name__}): is the machine busy? Nothing was drawn or spent."
            ) from None
        return cls(client, owned=(client, cluster))

    @classmethod
    def join(cls, address: str) -> DaskEngine:
        """The cluster whose scheduler listens at `address`."""
        distributed = _distributed()
        try:
            client = distributed.Client(address, timeout="10s")
        except (OSError, ValueError) as error:
            raise SfumatoError(
                f"No Dask scheduler answers at {address} ({type(error).__name__}). Start one with `dask scheduler`, or "
                "use --engine dask. Nothing was drawn or spent."
            ) from None
        return cls(client, owned=(client,))

    def map(self, function: Function, tasks: Sequence[Task]) -> Iterator[tuple[int, Any]]:
        tasks = list(tasks)
        open_places = list(range(len(tasks)))
        for _again in (False, True):
            futures = self._started(function, [tasks[place] for place in open_places])
            places = {future.key: place for place, future in zip(open_places, futures, strict=True)}
            try:
                for future in self._finished(futures):
                    yield places[future.key], self._result(future)
                    open_places.remove(places[future.key])
                    future.release()
            finally:
                self._drop(futures)
            if not open_places:
                return
        raise self._stalled(len(open_places), len(tasks))

    def sum(self, function: Callable[[Task], Any], tasks: Sequence[Task]) -> Any:
        for _again in (False, True):
            level = self._started(function, tasks)
            started = list(level)
            try:
                while len(level) > 1:
                    groups = [level[start : start + _FAN_IN] for start in range(0, len(level), _FAN_IN)]
                    level = [self.client.submit(_added, group, pure=False) for group in groups]
                    started += level
                for future in self._finished(level):
                    return self._result(future)
            finally:
                self._drop(started)
        raise self._stalled(len(tasks), len(tasks))

    def everywhere(self, function: Callable[[], Any]) -> list[Any]:
        try:
            self.client.wait_for_workers(1, timeout=_ANSWER)
        except TimeoutError:
            raise self._stalled(1, 1) from None
        names = list(self._asked(self.client.nthreads))
        futures = [self.client.submit(function, workers=[name], pure=False) for name in names]
        try:
            answers = [self._result(future) for future in self._finished(futures)]
        finally:
            self._drop(futures)
        if len(answers) < len(names):
            raise self._stalled(len(names) - len(answers), len(names))
        return answers

    def keep(self, parts: Sequence[Any]) -> list[Any]:
        futures = self.client.compute(list(parts))
        done = len(list(self._finished(futures)))
        if done < len(futures):
            self._drop(futures)
            raise self._stalled(len(futures) - done, len(futures))
        return futures

    @property
    def width(self) -> int:
        return max(1, sum(self._asked(self.client.nthreads).values()))

    def close(self) -> None:
        for part in self._owned:
            with suppress(TimeoutError):
                within(_GOODBYE, part.close)

    def _started(self, function: Function, tasks: Sequence[Task]) -> list[Any]:
        # A name of our own: Dask would make one from the function's text, and log it.
        names = [f"sfumato-{uuid.uuid4().hex}" for _ in tasks]
        return self.client.map(guarded(function), list(tasks), key=names)

    def _drop(self, futures: Sequence[Any]) -> None:
        with suppress(TimeoutError):
            within(_GOODBYE, lambda: self.client.cancel(futures, force=True))

    def _finished(self, futures: Sequence[Any]) -> Iterator[Any]:
        """The futures as they end. It stops early where nothing came and nobody worked for the whole patience."""
        ended: queue.Queue[Any] = queue.Queue()
        for future in futures:
            future.add_done_callback(ended.put)
        left, quiet_since = len(futures), time.monotonic()
        while left:
            try:
                future = ended.get(timeout=min(1.0, self._patience / 4))
            except queue.Empty:
                if self._at_work():
                    quiet_since = time.monotonic()
                elif time.monotonic() - quiet_since > self._patience and ended.empty():  # none ended while it was asked
                    return
                continue
            left, quiet_since = left - 1, time.monotonic()
            yield future

    def _at_work(self) -> int:
        """How many workers have a task in hand; 0 where the scheduler does not answer either."""
        try:
            return len([tasks for tasks in self._asked(self.client.processing).values() if tasks])
        except SfumatoError:
            return 0

    def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return within(_ANSWER, question)
        except Exception as error:
            said = f"The scheduler does not answer ({type(error).__name__})."
        raise SfumatoError(f"{said} {_RESUME}")

    def _stalled(self, left: int, number: int) -> SfumatoError:
        try:
            workers = f"{len(self._asked(self.client.nthreads))} workers are there and {self._at_work()} work"
        except SfumatoError:
            workers = "the scheduler does not answer"
        return SfumatoError(
            f"For {self._patience:g} s no task ended and nobody worked: {left} of {number} tasks are open, {workers}. "
            f"{_RESUME}"
        )

    def _result(self, future: Any) -> Any:
        while True:
            try:
                return future.result(timeout=self._patience)
            except SfumatoError:
                raise
            except TimeoutError:  # its worker was lost after the work was done, and it is done again
                if self._at_work():
                    continue
                said = "A result was lost with its worker, and nobody works on it again."
            except _distributed().KilledWorker:
                said = (
                    "Workers died again and again on the same rows, most likely of too little memory: give them more."
                )
            except Exception as error:  # lost connections, cancelled tasks
                said = f"The cluster gave up a task ({type(error).__name__})."
            break
        raise SfumatoError(f"{said} {_RESUME}")


def _added(totals: Sequence[Any]) -> Any:
    result = totals[0]
    for total in totals[1:]:
        result = result.plus(total)
    return result
