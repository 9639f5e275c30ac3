"""A round on one machine with one operating-system process for each centre: the default for tests and demonstrations.

In:   a Round, the centres' sums and keys.
Out:  Aggregate, or RoundFailedError; all processes are gone afterwards.
Not here: the sockets between them (network.py).
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.network import Coordination, coordinate, take_part
from sfumato.centres.node import Purse
from sfumato.centres.outcome import Aggregate
from sfumato.centres.round import Round
from sfumato.errors import CentreError

__all__ = ["CentreTask", "aggregate_locally", "run_centre"]


#: What every centre would otherwise import by itself, at its first message or key.
_NEEDED = (
    "sfumato.centres.statistic_round",
    "sfumato.centres.study_round",
    "sfumato.centres.gradients",
    "cryptography.hazmat.backends.openssl.backend",
    "concurrent.futures.thread",
)


@dataclass(frozen=True)
class CentreTask:
    """What a centre's process is given; keys travel as bytes because key objects cannot."""

    host: str
    port: int
    round: Round
    name: str
    key: bytes
    cells: np.ndarray
    account: Callable[[str], Purse] | None = None


def run_centre(task: CentreTask) -> None:
    """The main function of a centre's process. It ends quietly when the round fails: the coordinator tells."""
    try:
        asyncio.run(
            take_part(
                task.host,
                task.port,
                approved=task.round,
                name=task.name,
                key=Ed25519PrivateKey.from_private_bytes(task.key),
                cells=task.cells,
                account=task.account(task.name) if task.account else None,
            )
        )
    except CentreError as error:
        raise SystemExit(3) from error


def aggregate_locally(
    agreed: Round,
    cells: Mapping[str, np.ndarray],
    keys: Mapping[str, Ed25519PrivateKey],
    *,
    account: Callable[[str], Purse] | None = None,
    join_seconds: float = 60.0,
    mains: Mapping[str, Callable[[CentreTask], None]] | None = None,
    started: Callable[[Mapping[str, BaseProcess]], None] = lambda _: None,
    coordination: type[Coordination] = Coordination,
) -> Aggregate:
    """Run the round with a process for each centre in `cells`, over sockets of this machine.

    `account` is called in each process with the centre's name. `mains` replaces what a process runs, for tests of
    centres that misbehave, `coordination` what the coordinator does.
    """
    context = _context()
    processes: dict[str, BaseProcess] = {}

    def start(host: str, port: int) -> None:
        for name, vector in cells.items():
            task = CentreTask(host, port, agreed, name, keys[name].private_bytes_raw(), vector, account)
            main = (mains or {}).get(name, run_centre)
            processes[name] = context.Process(target=main, args=(task,), daemon=True, name=f"centre {name}")
            processes[name].start()
        started(processes)

    async def ready(host: str, port: int) -> None:
        await asyncio.to_thread(start, host, port)

    try:
        return asyncio.run(coordinate(agreed, join_seconds=join_seconds, ready=ready, coordination=coordination))
    finally:
        _end(processes)


def _context() -> Any:
    """Processes forked from a clean server that has the imports already; elsewhere, new interpreters."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sfumato.centres.processes", *_NEEDED])
    return context


def _end(processes: Mapping[str, BaseProcess]) -> None:
    deadline = time.monotonic() + 5
    for process in processes.values():
        process.join(timeout=max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join(timeout=5)
        with suppress(ValueError):  # one that not even a kill ends is left to the system
            process.close()
