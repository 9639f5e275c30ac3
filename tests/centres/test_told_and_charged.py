"""What a centre tells its people about money is what its ledger says, whatever a coordinator says at whatever step.

Coordinators that refuse or talk nonsense at any step; centres that hang up while others join, and come again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from centres.small_rounds import granted_accounts, open_account, small_round
from sfumato.centres.network import Coordination, coordinate, take_part
from sfumato.centres.wire import Frame
from sfumato.errors import RefusedError, RoundFailedError, SfumatoError

LIES = "The round was cancelled. Nothing was spent and nothing left the centre."
SAID: dict[str, Callable[[Frame], Frame]] = {
    "refused": lambda frame: Frame({"kind": "refused", "reason": LIES}, b""),
    "nonsense": lambda frame: Frame({"kind": "nonsense"}, frame.body),
    "an empty body": lambda frame: Frame(frame.head, b"[]"),
}
STEPS = ("keys", "parcels", "included", "signatures")


def liar(step: str, said: str) -> type[Coordination]:
    class Liar(Coordination):
        async def _ask(self, name, frame):
            return await super()._ask(name, SAID[said](frame) if frame.head["kind"] == step else frame)

    return Liar


async def played(agreed, keys, cells, accounts, coordination):
    """What the coordinator found, and what every centre found or was told."""
    place = asyncio.get_running_loop().create_future()

    async def ready(host, port):
        place.set_result((host, port))

    leading = asyncio.create_task(coordinate(agreed, ready=ready, coordination=coordination, join_seconds=30))
    host, port = await place
    told = await asyncio.gather(
        *(
            take_part(
                host,
                port,
                approved=agreed,
                name=name,
                key=keys[name],
                cells=cells[name],
                account=accounts[name],
                patience=30,
            )
            for name in cells
        ),
        return_exceptions=True,
    )
    return (await asyncio.gather(leading, return_exceptions=True))[0], dict(zip(cells, told, strict=True))


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("step", STEPS)
def test_words_agree_with_the_ledger(tmp_path: Path, step, said):
    agreed, keys, cells = small_round(3, 8)
    granted = granted_accounts(tmp_path, agreed)
    accounts = {name: granted(name) for name in cells}
    _, told = asyncio.run(played(agreed.fresh(), keys, cells, accounts, liar(step, said)))
    for name, answer in told.items():
        assert isinstance(answer, SfumatoError), answer
        kept = accounts[name].ledger.open_reservations("patients", "patient")
        free = "othing was spent" in str(answer) or "nothing left the centre" in str(answer)
        assert free is not bool(kept), (step, said, str(answer), kept)


@pytest.mark.parametrize("seed", range(3))
def test_who_joined_and_hung_up_is_told_so_and_nobody_waits_for_the_others(tmp_path: Path, seed):
    """Of three who are all needed one joins and dies: the round ends soon, and says of whom; nobody is charged."""
    agreed, keys, cells = small_round(3, 8)
    agreed = agreed.fresh()
    chance = np.random.default_rng(seed)
    first, second, _ = chance.permutation(list(cells)).tolist()
    granted = granted_accounts(tmp_path, agreed)
    accounts = {name: granted(name) for name in cells}
    heard: list[str] = []

    async def joined(host, port, name):
        return await take_part(
            host,
            port,
            approved=agreed,
            name=name,
            key=keys[name],
            cells=cells[name],
            account=accounts[name],
            patience=60,
        )

    async def schedule():
        place = asyncio.get_running_loop().create_future()

        async def ready(host, port):
            place.set_result((host, port))

        leading = asyncio.create_task(coordinate(agreed, ready=ready, join_seconds=100, tell=heard.append))
        host, port = await place
        waiting = asyncio.create_task(joined(host, port, second))
        dying = asyncio.create_task(joined(host, port, first))
        async with asyncio.timeout(30):
            while len(heard) < 2:
                await asyncio.sleep(0.02)
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
        again = await asyncio.gather(joined(host, port, first), return_exceptions=True)
        return again[0], *await asyncio.gather(waiting, leading, return_exceptions=True)

    again, waiting, leading = asyncio.run(asyncio.wait_for(schedule(), 60))
    assert isinstance(again, RefusedError | OSError | RoundFailedError)
    assert isinstance(waiting, RoundFailedError)
    assert isinstance(leading, RoundFailedError)
    assert any("broke off" in one and first in one for one in heard)
    for name in (first, second):
        assert not accounts[name].ledger.open_reservations("patients", "patient")


@pytest.mark.parametrize("seed", range(3))
def test_one_who_breaks_off_takes_nobody_elses_second_chance(tmp_path: Path, seed, monkeypatch):
    """One joins and dies, one refuses for want of a grant and comes again with one, one comes late: two are a sum."""
    monkeypatch.setattr(Coordination, "second_chance", 20.0)
    agreed, keys, cells = small_round(3, 8, absences=1)
    agreed, chance = agreed.fresh(), np.random.default_rng(seed)
    dying, refusing, late = chance.permutation(list(cells)).tolist()
    granted = granted_accounts(tmp_path, agreed)
    heard: list[str] = []

    async def schedule():
        place = asyncio.get_running_loop().create_future()

        async def ready(host, port):
            place.set_result((host, port))

        async def joined(name, account):
            return await take_part(
                *place.result(),
                approved=agreed,
                name=name,
                key=keys[name],
                cells=cells[name],
                account=account,
                patience=60,
            )

        async def heard_of(word):
            async with asyncio.timeout(30):
                while not any(word in one for one in heard):
                    await asyncio.sleep(0.02)

        leading = asyncio.create_task(coordinate(agreed, ready=ready, join_seconds=60, tell=heard.append))
        await place
        await asyncio.gather(joined(refusing, open_account(tmp_path, "empty")), return_exceptions=True)
        first = asyncio.create_task(joined(dying, granted(dying)))
        await heard_of(f"{dying} joined")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await heard_of(f"{dying} broke off")
        await asyncio.sleep(1.2)  # twice as long as the coordinator takes to look round
        return await asyncio.gather(joined(refusing, granted(refusing)), joined(late, granted(late)), leading)

    *_, found = asyncio.run(asyncio.wait_for(schedule(), 90))
    assert set(found.included) == {refusing, late}
