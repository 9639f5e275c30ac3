"""Small rounds for the tests of several institutions."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.centres import ClippedSums, Requirement, Round, new_centres, plan_round
from sfumato.centres.network import Coordination, coordinate, take_part
from sfumato.centres.node import RoundAccount
from sfumato.core import Adjacency, ApproxDP
from sfumato.ledger.ledger import Ledger

PATIENT = Adjacency("patient", "add-remove")
PROMISE = Requirement(PATIENT, ApproxDP(1.0, 1e-6))


def small_round(centres: int = 5, length: int = 40, requirement: Requirement = PROMISE, **options: Any):
    """A round, the keys of its centres, and their sums."""
    members, keys = new_centres(f"centre {number}" for number in range(centres))
    statistic = ClippedSums(length, 1.0, 1)
    planned = {"most_patients": 100, "absences": 2 if centres == 5 else centres // 5, "step_seconds": 30.0, **options}
    agreed = plan_round("a test", members, statistic, [requirement], **planned)
    return agreed, keys, sums(agreed)


def sums(agreed: Round, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    tables = {centre.name: generator.normal(size=(20, agreed.length)) for centre in agreed.centres}
    return {name: agreed.statistic.cells(table, agreed.grid, 100) for name, table in tables.items()}


def truth(agreed: Round, cells: dict[str, np.ndarray], names) -> np.ndarray:
    return sum((cells[name] for name in names), np.zeros(agreed.length, dtype=np.int64)) * agreed.grid


def is_planned_noise(residuals: np.ndarray, deviation: float) -> bool:
    """Whether the sum of squares is what `deviation` says, at five standard errors of a normal's square."""
    ratio = residuals.ravel() / deviation
    return abs(np.mean(ratio**2) - 1) < 5 * np.sqrt(2 / ratio.size)


def open_account(folder: Path, name: str) -> RoundAccount:
    return RoundAccount(Ledger(folder / f"{name}.db"), "patients")


def granted_accounts(folder: Path, agreed: Round, eps: float = 3.0, names=None):
    """A ledger with a grant for every centre; what a process calls to open its own."""
    for name in names or agreed.places:
        open_account(folder, name).ledger.grant("patients", ApproxDP(eps, 1e-5), adjacency=PATIENT)
    return partial(open_account, folder)


def last_action(folder: Path, name: str) -> str:
    """What a centre's ledger says at the end: grant (nothing happened), reserve (still counted), commit or release."""
    return Ledger(folder / f"{name}.db").history("patients")[-1].action


def gather(
    agreed,
    keys,
    cells,
    *,
    approved=None,
    accounts=None,
    extra=(),
    before=None,
    coordination=Coordination,
    join_seconds=20.0,
    **options,
):
    """Coordinator and centres as tasks of one loop; (result or error, each centre's outcome or error).

    Joining ends when every centre has joined or gone; `join_seconds` is the limit of a machine that is busy.
    `before(host, port)` is awaited before the centres connect; the writers that it returns are closed at the end.
    """

    told, strangers = {}, []

    class Watching(coordination):
        second_chance = 3.0

        def _everybody_is_here(self):
            return bool(told) and all(name in self._members or told[name].done() for name in cells)

    async def everybody():
        here = []

        def watching(agreed, *, join_seconds, **options):
            here.append(Watching(agreed, join_seconds=join_seconds))
            return here[0]

        async def ready(host, port):
            if before is not None:
                strangers.extend(await before(host, port))
            for label, name in [*((name, name) for name in cells), *extra]:
                told[label] = asyncio.ensure_future(
                    take_part(
                        host,
                        port,
                        approved=(approved or {}).get(name, agreed),
                        name=name,
                        key=keys[name],
                        cells=cells[name],
                        account=(accounts or {}).get(name),
                        **options,
                    )
                )
                told[label].add_done_callback(lambda task: here[0]._look_round())

        serving = coordinate(agreed, ready=ready, join_seconds=join_seconds, coordination=watching)
        found = await asyncio.gather(serving, return_exceptions=True)
        await asyncio.wait_for(asyncio.gather(*told.values(), return_exceptions=True), 20)
        for writer in strangers:
            writer.close()
        return found[0], {name: task.exception() or task.result() for name, task in told.items()}

    return asyncio.run(everybody())
