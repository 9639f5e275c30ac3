"""A refusal of an account offers a raise wherever one holds, and each command that it prints lets the same run through.

Whether a raise holds is not asked of what words the refusal: accounts are raised by larger and larger amounts, each on
a copy of the ledger, and the same reservation is tried.
"""

from __future__ import annotations

import random
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.core import ZCDP, ApproxDP, GaussianDP, GaussianEvent, Groups, Guarantee, Pufferfish, PureDP
from sfumato.core.adjacency import REPLACE_ONE
from sfumato.errors import LedgerError, OverspendError
from sfumato.ledger import Ledger

FAMILIES = Groups(3)


def drawn_cost(draw: random.Random) -> list[Any]:
    """One act or several: noise, an ε, an (ε, δ), as plans mix them."""

    def noise() -> GaussianEvent:
        scale = 10 ** draw.uniform(-0.3, 1.5)
        return GaussianEvent(scale=scale, sensitivity=1.0, grid=2.0**-30, dimension=1, adjacency=REPLACE_ONE)

    pure = PureDP(round(10 ** draw.uniform(-2, 0.5), 6), adjacency=REPLACE_ONE)
    pair = ApproxDP(round(10 ** draw.uniform(-1, 0.5), 6), 10 ** draw.uniform(-8, -6), adjacency=REPLACE_ONE)
    return draw.choice([[noise()], [pure], [pair], [noise(), pure], [noise(), noise(), pure], [noise(), pair]])


def drawn_grant(draw: random.Random) -> Guarantee:
    epsilon, delta = 10 ** draw.uniform(-0.7, 0.7), 10 ** draw.uniform(-7, -5)
    return draw.choice(
        [
            ApproxDP(epsilon, delta, adjacency=REPLACE_ONE),
            ApproxDP(epsilon, delta, adjacency=REPLACE_ONE),
            PureDP(epsilon, adjacency=REPLACE_ONE),
            GaussianDP(epsilon, adjacency=REPLACE_ONE),
            ZCDP(epsilon, adjacency=REPLACE_ONE),
            Pufferfish(epsilon, delta, FAMILIES, adjacency=REPLACE_ONE),
        ]
    )


def higher(granted: Guarantee, times: float, deltas: float) -> Guarantee:
    match granted:
        case Pufferfish(eps=eps, delta_=delta):
            return Pufferfish(eps * times, delta * deltas, FAMILIES, adjacency=REPLACE_ONE)
        case ApproxDP(eps=eps, delta_=delta):
            return ApproxDP(eps * times, delta * deltas, adjacency=REPLACE_ONE)
        case GaussianDP(mu=mu):
            return GaussianDP(mu * times, adjacency=REPLACE_ONE)
        case ZCDP(rho=rho):
            return ZCDP(rho * times, adjacency=REPLACE_ONE)
        case PureDP(eps=eps):
            return PureDP(eps * times, adjacency=REPLACE_ONE)
    raise AssertionError


def fill(path: Path, granted: Guarantee, draw: random.Random) -> None:
    """An account of which something is spent, now and then all of it at once."""
    book = Ledger(path, beside=())
    book.grant("people", granted)
    for _ in range(draw.randint(1, 3)):
        try:
            book.commit(book.reserve("people", drawn_cost(draw)))
        except OverspendError:
            continue
    # What is left of an account of dependences is left for a whole window, and not for the cost of one.
    left = None if isinstance(granted, Pufferfish) else book.balance("people").remaining
    if left is not None and draw.random() < 0.5:
        book.commit(book.reserve("people", left))


def on_a_copy(path: Path, place: Path) -> Ledger:
    """The same ledger with all that stands beside it."""
    place.mkdir()
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file():
            shutil.copy(file, place / file.name)
    return Ledger(place / path.name, beside=())


@pytest.mark.parametrize("seed", range(200))
@pytest.mark.by_day(40)
def test_every_way_out_works_and_a_raise_is_offered_where_one_holds(seed, tmp_path):
    draw = random.Random(seed)
    granted, path = drawn_grant(draw), tmp_path / "the ledger.db"
    fill(path, granted, draw)
    cost = drawn_cost(draw)
    try:
        on_a_copy(path, tmp_path / "tried").reserve("people", cost)
        return
    except OverspendError as error:
        said = str(error)
    holding = None
    for place, (times, deltas) in enumerate([(3, 1), (30, 1), (30, 3), (300, 100)]):
        book = on_a_copy(path, tmp_path / f"raised {place}")
        try:
            book.grant("people", higher(granted, times, deltas))
            book.reserve("people", cost)
            holding = (times, deltas)
            break
        except LedgerError:
            continue
    said = said.replace(str(tmp_path / "tried"), str(tmp_path))
    commands = re.findall(r"`(.+?)`", said)
    if holding:
        assert "ledger raise" in said, (holding, said)
        assert "No grant" not in said
    assert commands or "No grant holds it" in said
    for place, command in enumerate(commands):
        book = on_a_copy(path, tmp_path / f"typed {place}")
        words = [word.replace(str(path), str(book.path)) for word in shlex.split(command)]
        done = CliRunner().invoke(app, words[1:], env={"COLUMNS": "80"})
        assert done.exit_code == 0, f"{command}\n{done.output}"
        Ledger(book.path, beside=()).reserve("people", cost)
