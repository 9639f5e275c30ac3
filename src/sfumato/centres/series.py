"""A series of rounds, one after the other: in one process, or over sockets.

In:   a Series; at a centre its table, key and account.
Out:  LinearClassifier, at the coordinator and at every centre that was there.
Not here: what the rounds are (newton.py), how one of them travels (memory.py, network.py).

Every round is paid for by itself: a centre that is away in one pays nothing for it, and may be back in the next.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.memory import aggregate_in_memory
from sfumato.centres.network import Tell, coordinate, take_part
from sfumato.centres.newton import LinearClassifier, Series, State
from sfumato.centres.node import Purse, Verify
from sfumato.centres.outcome import Aggregate
from sfumato.centres.round import Round
from sfumato.centres.statistic_round import StatisticRound
from sfumato.core.kept_rows import PUBLIC_KEY
from sfumato.errors import RefusedError, RoundFailedError

__all__ = ["coordinate_series", "learn_in_memory", "take_part_in_series"]

_PAUSE = 0.05
#: How long those who were not in the last round are waited for, once those who were are here.
_GONE_SECONDS = 1.0


def _cells(agreed: StatisticRound, table: Any, key: bytes) -> np.ndarray:
    return agreed.statistic.cells(table, agreed.grid, agreed.most_patients, key=key)


def learn_in_memory(
    series: Series,
    tables: Mapping[str, Any],
    keys: Mapping[str, Ed25519PrivateKey],
    *,
    leaves: Mapping[int, Mapping[str, str]] | None = None,
    random_state: int | None = None,
) -> LinearClassifier:
    """All rounds within one process; `leaves` says in which round who goes before which step."""
    state = series.start()
    while not series.is_over(state):
        agreed = series.round(state)
        cells = {name: _cells(agreed, table, PUBLIC_KEY) for name, table in tables.items()}
        seed = None if random_state is None else random_state * 1009 + state.step
        gone = (leaves or {}).get(state.step)
        state = series.moved(state, aggregate_in_memory(agreed, cells, keys, random_state=seed, leaves=gone))
    return series.result(state, publishable=random_state is None)


async def coordinate_series(
    series: Series,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    join_seconds: float = 60.0,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[str, int], Awaitable[None]] | None = None,
    tell: Tell = lambda text: None,
) -> LinearClassifier:
    """Serve all rounds at one address; `ready(host, port)` is awaited once, when centres can connect."""
    state, place = series.start(), port
    found: Aggregate | None = None
    while not series.is_over(state):

        async def opened(host: str, port: int, first: bool = found is None) -> None:
            nonlocal place
            place = port
            if first and ready is not None:
                await ready(host, port)

        agreed = series.round(state)
        found = await coordinate(
            agreed,
            host,
            place,
            join_seconds=join_seconds if found is None else agreed.step_seconds,
            tls=tls,
            ready=opened,
            tell=tell,
            late_seconds=None if found is None else _GONE_SECONDS,
            awaited=() if found is None else found.included,
        )
        state = series.moved(state, found)
        tell(f"step {state.step - 1} of {series.steps}: {len(found.included)} centres")
    return series.result(state)


async def take_part_in_series(
    host: str,
    port: int,
    *,
    series: Series,
    name: str,
    key: Ed25519PrivateKey,
    table: Any,
    account: Purse | None = None,
    row_key: bytes = PUBLIC_KEY,
    tls: ssl.SSLContext | None = None,
    verify: Verify | None = None,
    patience: float = 60.0,
) -> LinearClassifier:
    """One centre's part in all rounds: each is compared with the series, paid for and answered by itself."""
    state = series.start()
    while not series.is_over(state):
        state = await _one(series, state, host, port, name, key, table, account, row_key, tls, verify, patience)
    return series.result(state)


async def _one(
    series: Series,
    state: State,
    host: str,
    port: int,
    name: str,
    key: Ed25519PrivateKey,
    table: Any,
    account: Purse | None,
    row_key: bytes,
    tls: ssl.SSLContext | None,
    verify: Verify | None,
    patience: float,
) -> State:
    met: list[StatisticRound] = []

    def approve(offered: Round) -> Round:
        met.append(series.approves(state, offered))
        return met[-1]

    def cells(agreed: Round) -> np.ndarray:
        assert isinstance(agreed, StatisticRound)
        return _cells(agreed, table, row_key)

    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            outcome = await take_part(
                host, port, approved=approve, name=name, key=key, cells=cells, account=account, tls=tls,
                verify=verify, patience=patience,
            )  # fmt: skip
            break
        except (OSError, RefusedError, RoundFailedError) as error:
            # The last round is being closed, or the next one is not open yet; what was answered is never repeated.
            waiting = isinstance(error, OSError) or not met
            if not waiting or asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(_PAUSE)
    assert outcome.values is not None
    return series.moved(state, Aggregate(met[-1], outcome.included, np.array(outcome.values)))
