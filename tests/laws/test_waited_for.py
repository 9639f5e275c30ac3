"""Whoever was in the last round of a study is waited for in the next, however much slower than the others it is.

Centres of every size come in any order, some of them never: who was there and comes within the deadline is in the sum,
and who was not there does not hold the others up.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import numpy as np
import pytest

from centres.small_rounds import small_round
from sfumato.centres.network import Coordination, coordinate, take_part

_LATE, _JOIN = 0.02, 20.0


class Coming(NamedTuple):
    """A round that is not the first: who was in the last one, and after how many seconds who comes now."""

    centres: int
    absences: int
    awaited: tuple[str, ...]
    after: dict[str, float]


def coming(seed: int) -> Coming:
    """Those who were there come all, one long after the other; of those who had gone some come, at once."""
    generator = np.random.default_rng(seed)
    centres = int(generator.integers(3, 6))
    absences = int(generator.integers(1, centres - 1))
    names = [str(name) for name in small_round(centres, 4, absences=absences)[2]]
    generator.shuffle(names)
    gone = int(generator.integers(0, absences + 1))
    awaited = names[gone:]
    late = {name: 0.2 * place for place, name in enumerate(awaited)}
    return Coming(centres, absences, tuple(awaited), {**late, **dict.fromkeys(names[: gone // 2], 0.0)})


async def included(round_: Coming) -> tuple[set[str], float]:
    """Who is in the sum, and how long it took."""
    agreed, keys, cells = small_round(round_.centres, 4, absences=round_.absences)
    place = asyncio.get_running_loop().create_future()

    async def ready(host: str, port: int) -> None:
        place.set_result((host, port))

    async def comes(name: str, after: float) -> None:
        host, port = await place
        await asyncio.sleep(after)
        await take_part(host, port, approved=agreed, name=name, key=keys[name], cells=cells[name], patience=_JOIN)

    begun = time.monotonic()
    leading = coordinate(agreed.fresh(), ready=ready, join_seconds=_JOIN, late_seconds=_LATE, awaited=round_.awaited)
    found, *_ = await asyncio.gather(
        leading, *(comes(name, after) for name, after in round_.after.items()), return_exceptions=True
    )
    assert not isinstance(found, BaseException), found
    return set(found.included), time.monotonic() - begun


def check(seed: int) -> None:
    round_ = coming(seed)
    found, seconds = asyncio.run(included(round_))
    assert set(round_.awaited) <= found, (round_, found)
    assert seconds < _JOIN or set(round_.after) == found


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))]


@pytest.mark.parametrize("seed", SEEDS)
def test_who_was_there_is_waited_for(seed):
    check(seed)


def test_the_law_finds_a_coordinator_that_waits_for_enough(monkeypatch):
    """Planted: once there are enough for a sum, nobody is waited for."""

    def enough(self: Coordination) -> bool:
        return len(self._members) - len(self._gone()) >= self.round.quorum

    def searched() -> None:
        for seed in range(6):
            check(seed)

    monkeypatch.setattr(Coordination, "_awaited_are_here", enough)
    with pytest.raises(AssertionError):
        searched()
