"""Taking part in a study's round, and coordinating it: from folders to a release.

In:   a round's folder; at a centre its own folder and tables.
Out:  the release, at the coordinator and, if it wants one, at every centre; the centre's ledger charged.
Not here: the protocol (centres/), the folders (run/centre_home.py), the numbers (run/over_centres.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.centres.card import client_tls, server_tls
from sfumato.centres.network import coordinate, take_part
from sfumato.centres.outcome import Aggregate
from sfumato.centres.round import Round
from sfumato.core.certificate import Certificate
from sfumato.errors import InputError, RefusedError
from sfumato.ledger.ledger import Ledger
from sfumato.network.stores.store import StoredRows
from sfumato.plan.plan import Plan
from sfumato.run.accounts import Grant, sources_of
from sfumato.run.centre_home import Home, RoundFolder
from sfumato.run.charges import check_balance, reserve_plan
from sfumato.run.forget import without_forgotten
from sfumato.run.held_tables import check_sizes, own_tables
from sfumato.run.over_centres import cells_of, published_over_centres
from sfumato.run.row_key import row_key
from sfumato.run.study import Release
from sfumato.run.study_file import public_tables

__all__ = ["StudyPurse", "address_of", "coordinate_study", "join_study"]

#: How long a centre waits for a coordinator that is not there yet.
_CONNECT_SECONDS = 4.0
_PAUSE = 0.25


def address_of(text: str) -> tuple[str, int]:
    """HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise InputError(f"{text!r} is not an address: write HOST:PORT. Nothing was run.")
    return host.strip("[]"), int(port)


@dataclass(frozen=True)
class StudyPurse:
    """The accounts of a centre's own data, which pay for what the plan draws from it."""

    ledger: Ledger
    plan: Plan
    sources: Mapping[str, tuple[str, ...]]
    grant: Grant

    def reserve(self, agreed: Round, key: str, made: list[Any]) -> None:
        reserve_plan(self.plan, self.ledger, self.sources, self.grant, made, key)


def join_study(
    shared: RoundFolder,
    home: Home,
    data: Path,
    *,
    at: str | None = None,
    ledger: Ledger | None = None,
    grant: Grant = False,
    out: Path | None = None,
    verify: Callable[[Certificate], bool] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Release:
    """One centre's part: plan the study again, add up its own rows, pay, take part. RefusedError: nothing left it."""
    if home.name not in shared.round.places:
        known = ", ".join(shared.round.places)
        raise RefusedError(f"{home.name} is no centre of this round, which has {known}. Nothing left the centre.")
    if home.card().identity != shared.round.identity(home.name):
        raise RefusedError(
            f"{home.name} is in this round with another key than that in {home.folder}. Send the coordinator "
            f"{home.card_file} and ask for `sfumato coordinate init` again. Nothing left the centre."
        )
    plan = shared.plan()
    network = plan.network
    assert network is not None
    public = public_tables(network.spec, shared.folder)
    tables = own_tables(network.spec, home.name, data)
    book = ledger or Ledger(home.ledger_file)
    sources = sources_of(network, {**tables, **public}, book)
    check_balance(plan, book, sources)
    key = row_key(book.path)
    cells = _own_cells(plan, shared, {**tables, **public}, key)
    tell(f"{home.name}: this round costs {', '.join(str(plan.cost(name)) for name in plan.datasets)}")
    purse = StudyPurse(book, plan, sources, grant)
    outcome = asyncio.run(_take_part(shared, home, at, cells, purse, verify))
    assert outcome.values is not None
    found = Aggregate(shared.round, outcome.included, np.array(outcome.values))
    return published_over_centres(plan, found, public, out)


def _own_cells(plan: Plan, shared: RoundFolder, tables: Mapping[str, Path | StoredRows], key: bytes) -> np.ndarray:
    network = plan.network
    assert network is not None
    read = without_forgotten(network.spec, tables) if network.spec.forgotten else tables
    values = network.evaluate(read, dict.fromkeys((one.name for one in network.spec.datasets), key))
    check_sizes(network.spec, {name: table.num_rows for name, table in values.individuals.items()})
    return cells_of(plan, values, shared.round)


async def _take_part(
    shared: RoundFolder,
    home: Home,
    at: str | None,
    cells: np.ndarray,
    purse: StudyPurse,
    verify: Callable[[Certificate], bool] | None,
) -> Any:
    where = at or shared.coordinator.address
    host, port = address_of(where)
    tls = client_tls(home.key_file, home.card(), shared.coordinator)
    await _wait_for(host, port, where)
    try:
        return await take_part(
            host,
            port,
            approved=shared.round,
            name=home.name,
            key=home.key(),
            cells=cells,
            account=purse,
            tls=tls,
            verify=verify,
        )
    except OSError as error:
        raise RefusedError(
            f"{where}: whoever answers there is not the coordinator of the cards, or does not know this centre's card "
            f"({type(error).__name__}). Nothing left the centre and nothing was spent."
        ) from error


async def _wait_for(host: str, port: int, where: str) -> None:
    """A coordinator that is about to start is waited for, a few seconds."""
    deadline = asyncio.get_running_loop().time() + _CONNECT_SECONDS
    while True:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return
        except OSError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise RefusedError(
                    f"Nobody answers at {where}. The coordinator starts with `sfumato run STUDY.pl --centres FOLDER "
                    "--out published`; if it sits elsewhere, say so with --at HOST:PORT. Nothing left the centre and "
                    "nothing was spent."
                ) from error
            await asyncio.sleep(_PAUSE)


def coordinate_study(
    shared: RoundFolder,
    home: Home,
    out: Path | None,
    *,
    listen: str | None = None,
    join_seconds: float = 600.0,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Plan, Release]:
    """The coordinator's part: wait for the centres, open one sum, write the release."""
    plan = shared.plan()
    network = plan.network
    assert network is not None
    if out is not None and out.exists():
        raise InputError(f"{out} exists: give a new folder. Nothing was run.")
    host, port = address_of(listen or shared.coordinator.address)
    tls = server_tls(home.key_file, home.card(), shared.cards)
    names = ", ".join(shared.round.places)

    async def ready(host: str, port: int) -> None:
        command = f"sfumato centre join {shared.folder} --as NAME --data FOLDER --grant"
        tell(f"Waiting on {host}:{port} for {names}. Each of them: {command}")

    agreed = shared.round.fresh()
    found = asyncio.run(coordinate(agreed, host, port, join_seconds=join_seconds, tls=tls, ready=ready, tell=tell))
    for name, reason in found.absent.items():
        tell(f"{name} is not in the sum: {reason}")
    return plan, published_over_centres(plan, found, public_tables(network.spec, shared.folder), out)
