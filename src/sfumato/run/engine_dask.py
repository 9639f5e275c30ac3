"""The workers of a Dask cluster, started here or joined.

In:   tasks for run/engine.py.
Out:  their results; sums added up in a tree on the workers.
Not here: what a task does. Dask may run a task twice (a lost worker, stolen work); tasks are written for it.

The key of a run and the addresses of the files travel to the workers, which see the private rows anyway. Use tls://
where the network between them is not yours alone.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from sfumato.errors import InputError, SfumatoError
from sfumato.run.engine import Engine, Function, Task, Total, guarded

__all__ = ["DaskEngine"]

#: How many partial sums one worker adds up at a time.
_FAN_IN = 16
_MEMORY_PER_WORKER = 2_000_000_000
#: Dask tells glibc to give every freed array back to the system at once (MALLOC_TRIM_THRESHOLD_=65536). Batches are
#: made and dropped all the time: that cost 3.3 µs of processor for a row of 20 columns where keeping them costs 1.2 µs.
_KEPT = str(1 << 28)
_SETTINGS = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": _KEPT,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": _KEPT,
    "distributed.comm.timeouts.connect": "120s",  # busy machines start workers slowly
    "distributed.worker.profile.enabled": False,  # looks at the working thread a hundred times a second
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

    def __init__(self, client: Any, *, owned: Sequence[Any] = ()) -> None:
        self.client = client
        self._owned = owned

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
        distributed = _distributed()
        futures = self._started(function, tasks)
        places = {future.key: position for position, future in enumerate(futures)}
        try:
            for future in distributed.as_completed(futures):
                yield places[future.key], self._result(future)
                future.release()
        finally:
            self.client.cancel(futures, force=True)

    def total(self, function: Callable[[Task], Total], tasks: Sequence[Task]) -> Total:
        level = self._started(function, tasks)
        started = list(level)
        try:
            while len(level) > 1:
                groups = [level[start : start + _FAN_IN] for start in range(0, len(level), _FAN_IN)]
                level = [self.client.submit(_added, group, pure=False) for group in groups]
                started += level
            return self._result(level[0])
        finally:
            self.client.cancel(started, force=True)

    def _started(self, function: Function, tasks: Sequence[Task]) -> list[Any]:
        # A name of our own: Dask would make one from the function's text, and log it.
        names = [f"sfumato-{uuid.uuid4().hex}" for _ in tasks]
        return self.client.map(guarded(function), list(tasks), key=names)

    def everywhere(self, function: Callable[[], Any]) -> list[Any]:
        self.client.wait_for_workers(1, timeout=30)
        return list(self.client.run(function).values())

    def kept(self, frame: Any) -> list[Any]:
        futures = self.client.compute(list(frame.to_delayed()))
        _distributed().wait(futures)
        return futures

    def _result(self, future: Any) -> Any:
        try:
            return future.result()
        except SfumatoError:
            raise
        except _distributed().KilledWorker:
            said = "Workers died again and again on the same rows, most likely of too little memory: give them more."
        except Exception as error:  # lost connections, cancelled tasks, timeouts
            said = f"The cluster gave up a task ({type(error).__name__})."
        raise SfumatoError(
            f"{said} Nothing was published. The same command run again takes up where this one stopped, at no further "
            "cost."
        )

    def close(self) -> None:
        for part in self._owned:
            part.close()


def _added(totals: Sequence[Total]) -> Total:
    result = totals[0]
    for total in totals[1:]:
        result = result.plus(total)
    return result
