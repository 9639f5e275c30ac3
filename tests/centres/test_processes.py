"""Real processes and sockets: whatever a centre does, the round ends in time with a right result or a clean failure."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from centres.faults import announced, misbehave, never_join
from centres.small_rounds import (
    gather,
    granted_accounts,
    is_planned_noise,
    last_action,
    open_account,
    small_round,
    truth,
)
from sfumato.centres import aggregate_locally, network
from sfumato.centres.messages import STEPS
from sfumato.centres.network import Coordination, coordinate
from sfumato.centres.node import RoundAccount
from sfumato.centres.processes import run_centre
from sfumato.centres.wire import read_frame
from sfumato.errors import InputError, RefusedError, RoundFailedError


def play(agreed, keys, cells, folder, faults=None, **options):
    """One round with some processes that misbehave; the result, and the seconds it took.

    The time to join begins when every process is up, and ends when those that will join have joined: how long a busy
    machine takes for either is not the question.
    """
    absent = {name for name, main in (faults or {}).items() if never_joins(main)}

    class Knowing(Coordination):
        second_chance = 3.0

        def _everybody_is_here(self):
            return not set(cells) - absent - set(self._members)

    mains = {name: partial(announced, main=(faults or {}).get(name, run_centre), folder=folder) for name in cells}
    start = 0.0

    def wait(_):
        nonlocal start
        while any(not (folder / f"{name} is up").exists() for name in cells):
            time.sleep(0.02)
        start = time.monotonic()

    try:
        accounts = granted_accounts(folder, agreed)
        return aggregate_locally(
            agreed, cells, keys, account=accounts, mains=mains, started=wait, coordination=Knowing, **options
        ), time.monotonic() - start
    except RoundFailedError as error:
        return error, time.monotonic() - start


def never_joins(main):
    """Whether the process stays away or fails before its first answer is taken."""
    return main is never_join or main.keywords["step"] == STEPS[0]


def latest(agreed, join_seconds=60.0):
    """The end of a round by its own deadlines: joining, five steps and the goodbye, and the processes' end."""
    return join_seconds + 6 * agreed.step_seconds + 15


def check_right(found, agreed, cells, included):
    assert set(found.included) == set(included)
    assert is_planned_noise(found.values - truth(agreed, cells, included), found.deviation)


def test_five_processes_sum_ten_thousand_numbers(tmp_path):
    agreed, keys, cells = small_round(5, 10_000)
    found, seconds = play(agreed, keys, cells, tmp_path)
    check_right(found, agreed, cells, cells)
    assert seconds < latest(agreed)  # 10 on an idle machine: benchmarks/centres.py
    for name in cells:
        assert last_action(tmp_path, name) == "commit"


@pytest.mark.slow
def test_fifty_processes_sum_ten_thousand_numbers(tmp_path):
    agreed, keys, cells = small_round(50, 10_000, step_seconds=100.0)
    found, seconds = play(agreed, keys, cells, tmp_path)
    check_right(found, agreed, cells, cells)
    assert seconds < latest(agreed)  # 60 on an idle machine


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.by_day(1)
def test_two_of_five_are_killed(step, tmp_path):
    agreed, keys, cells = small_round(5, 300)
    killed = list(cells)[:2]
    faults = dict.fromkeys(killed, partial(misbehave, step=step, fault="dies"))
    found, seconds = play(agreed, keys, cells, tmp_path, faults)
    check_right(found, agreed, cells, set(cells) - (set(killed) if step in STEPS[:3] else set()))
    assert set(found.absent) == set(killed)
    for name in list(cells)[2:]:
        assert last_action(tmp_path, name) == "commit"
    assert seconds < latest(agreed)


@pytest.mark.parametrize(("step", "fault"), [("shares", "dies"), ("masked", "dies afterwards"), ("unmask", "dies")])
def test_three_of_five_are_killed_and_nobody_pays(step, fault, tmp_path):
    agreed, keys, cells = small_round(5, 300)
    killed = list(cells)[:3]
    faults = dict.fromkeys(killed, partial(misbehave, step=step, fault=fault))
    error, seconds = play(agreed, keys, cells, tmp_path, faults)
    assert isinstance(error, RoundFailedError)
    assert not error.revealed
    assert "nobody is charged" in str(error)
    for name in list(cells)[3:]:
        assert last_action(tmp_path, name) == "release"
    assert seconds < latest(agreed)


PAIRS = [
    (("keys", "garbage"), ("shares", "signed garbage")),
    (("keys", "forged"), ("masked", "wrong shape")),
    (("masked", "replay"), ("agreed", "another round")),
    (("masked", "flood"), ("unmask", "garbage")),
    (("masked", "silent"), ("keys", "silent")),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: " and ".join(f"{fault} at {step}" for step, fault in pair))
@pytest.mark.by_day(1)
def test_two_of_five_misbehave(pair, tmp_path):
    slow = any(fault == "silent" for _, fault in pair)
    agreed, keys, cells = small_round(5, 300, step_seconds=5.0 if slow else 30.0)
    faults = {
        name: partial(misbehave, step=step, fault=fault) for name, (step, fault) in zip(cells, pair, strict=False)
    }
    found, seconds = play(agreed, keys, cells, tmp_path, faults)
    assert not isinstance(found, RoundFailedError), found
    gone = {name for name, (step, _) in zip(cells, pair, strict=False) if step in STEPS[:3]}
    check_right(found, agreed, cells, set(cells) - gone)
    assert set(found.absent) == set(faults)
    assert seconds < latest(agreed)


def test_one_never_joins_and_one_sends_wrong_shares(tmp_path):
    agreed, keys, cells = small_round(5, 300)
    names = list(cells)
    faults = {names[0]: never_join, names[1]: partial(misbehave, step="unmask", fault="wrong shares")}
    found, _ = play(agreed, keys, cells, tmp_path, faults)
    check_right(found, agreed, cells, names[1:])


def test_too_large_a_value_is_not_published(tmp_path):
    """The masks hide whose it is, but not that the sum is none that honest centres make."""
    agreed, keys, cells = small_round(5, 300)
    liar = {next(iter(cells)): partial(misbehave, step="masked", fault="too large a value")}
    error, _ = play(agreed, keys, cells, tmp_path, liar)
    assert isinstance(error, RoundFailedError)
    assert error.revealed
    assert "too large a value" in str(error)
    assert last_action(tmp_path, list(cells)[1]) == "commit"  # the sum was opened


def test_too_few_join(tmp_path):
    agreed, keys, cells = small_round(5, 30)
    error, seconds = play(agreed, keys, cells, tmp_path, dict.fromkeys(list(cells)[:3], never_join))
    assert isinstance(error, RoundFailedError)
    assert seconds < latest(agreed)
    assert last_action(tmp_path, list(cells)[4]) == "release"


# Sockets within one process: what the parties say to each other.


def test_two_centres_with_the_same_name():
    """The second is turned away, whoever it is; the round goes on with the first."""
    agreed, keys, cells = small_round(3, 300, absences=0)
    found, told = gather(agreed, keys, cells, extra=[("double", "centre 0")])
    check_right(found, agreed, cells, cells)
    refused = [label for label in ("centre 0", "double") if isinstance(told[label], RefusedError)]
    assert len(refused) == 1
    assert "already" in str(told[refused[0]])


def test_the_result_is_told_to_every_centre():
    agreed, keys, cells = small_round(3, 20)
    found, told = gather(agreed, keys, cells)
    for outcome in told.values():
        assert outcome.values == tuple(found.values)


def test_a_centre_refuses_what_it_did_not_approve(caplog):
    agreed, keys, cells = small_round(5, 30)
    other = small_round(5, 30, colluders=1, absences=1)[0]
    found, told = gather(agreed, keys, cells, approved={"centre 0": other})
    assert isinstance(told["centre 0"], RefusedError)
    assert "colluders" in str(told["centre 0"])
    check_right(found, agreed, cells, list(cells)[1:])
    assert not [one for one in caplog.records if one.name == "asyncio"]  # a refusal is no fault of the coordinator's


def test_a_centre_whose_verifier_says_no_refuses():
    agreed, keys, cells = small_round(3, 30)
    found, told = gather(agreed, keys, cells, verify=lambda certificate: False)
    assert isinstance(found, RoundFailedError)
    assert all(isinstance(outcome, RefusedError) for outcome in told.values())


def test_a_centre_without_budget_stays_away(tmp_path):
    agreed, keys, cells = small_round(5, 30)
    granted = granted_accounts(tmp_path, agreed)
    accounts = {name: granted(name) for name in cells}
    accounts["centre 3"] = RoundAccount(open_account(tmp_path, "other").ledger, "patients")
    found, told = gather(agreed, keys, cells, accounts=accounts)
    assert "Nothing was ever granted" in str(told["centre 3"])
    check_right(found, agreed, cells, set(cells) - {"centre 3"})


def test_a_round_cannot_be_played_twice(tmp_path):
    """The same nonce again, by a coordinator that wants a second sum: the ledgers remember."""
    agreed, keys, cells = small_round(3, 30)
    granted = granted_accounts(tmp_path, agreed)
    accounts = {name: granted(name) for name in cells}
    assert not isinstance(gather(agreed, keys, cells, accounts=accounts)[0], RoundFailedError)
    again, told = gather(agreed, keys, cells, accounts=accounts)
    assert isinstance(again, RoundFailedError)
    assert all("already taken part" in str(error) for error in told.values())


@pytest.mark.parametrize("coordinator", ["curious", "malicious"])
def test_who_believes_that_nothing_was_revealed(coordinator, tmp_path):
    """Three of five see another round: a curious coordinator's word is enough, a malicious one's needs refusals."""
    agreed, keys, cells = small_round(5, 30, coordinator=coordinator)
    granted = granted_accounts(tmp_path, agreed)
    accounts = {name: granted(name) for name in cells}
    other = small_round(5, 30)[0]
    error, _ = gather(agreed, keys, cells, accounts=accounts, approved=dict.fromkeys(list(cells)[:3], other))
    assert isinstance(error, RoundFailedError)
    for name in cells:
        assert last_action(tmp_path, name) == ("grant" if name in list(cells)[:3] else "release")


def test_beyond_this_machine_tls_is_needed():
    agreed, _, _ = small_round(3, 5)
    with pytest.raises(InputError, match="TLS"):
        asyncio.run(coordinate(agreed, "0.0.0.0"))


def test_idle_strangers_keep_nobody_out(monkeypatch):
    """More connections than there is room for, all silent: the centres join, and the oldest strangers are dropped."""
    monkeypatch.setattr(network, "_MOST_STRANGERS", 8)
    agreed, keys, cells = small_round(3, 20, absences=0)

    async def crowd(host, port):
        return [(await asyncio.open_connection(host, port))[1] for _ in range(40)]

    found, told = gather(agreed, keys, cells, before=crowd)
    check_right(found, agreed, cells, cells)
    assert all(outcome.values == tuple(found.values) for outcome in told.values())


def test_a_stranger_is_told_nothing_of_the_round_and_refused_in_time():
    agreed, keys, cells = small_round(3, 20, absences=0)
    heard = []

    async def stranger(host, port):
        start = time.monotonic()
        reader, writer = await asyncio.open_connection(host, port)
        await network.say_hello(reader, writer, "centre 0", Ed25519PrivateKey.generate())
        heard.append((await read_frame(reader, 1 << 20)).head)
        heard.append(time.monotonic() - start)
        return [writer]

    found, _ = gather(agreed, keys, cells, before=stranger)
    assert heard[0]["kind"] == "refused"
    assert heard[1] < 30  # the round waits for its centres for a minute
    check_right(found, agreed, cells, cells)


def test_a_silent_stranger_is_dropped(monkeypatch):
    monkeypatch.setattr(network, "_HELLO_SECONDS", 0.2)
    agreed, _, _ = small_round(3, 20, absences=0)

    async def alone():
        async def ready(host, port):
            reader, writer = await asyncio.open_connection(host, port)
            kinds = [(await read_frame(reader, 1 << 20)).head["kind"] for _ in range(2)]
            assert kinds == ["hello", "refused"]
            assert await reader.read() == b""
            writer.close()

        with pytest.raises(RoundFailedError):
            await asyncio.wait_for(coordinate(agreed, ready=ready, join_seconds=0.3), 60)

    asyncio.run(alone())


def test_no_line_outlives_its_round():
    """As it was: a centre that does not read what it was sent last left a socket open with nobody to close it."""
    agreed, _, _ = small_round(3, 20, absences=0)
    lines = []

    class Watching(network.Coordination):
        def arrive(self, reader, writer):
            lines.append(writer)
            writer.transport.set_write_buffer_limits(0)
            writer.write(b"x" * (1 << 24))  # more than a line holds that nobody reads
            super().arrive(reader, writer)

    async def alone():
        async def ready(host, port):
            kept.extend(await asyncio.open_connection(host, port, limit=1 << 10))

        kept = []
        with pytest.raises(RoundFailedError):
            await asyncio.wait_for(coordinate(agreed, ready=ready, join_seconds=0.3, coordination=Watching), 60)
        assert lines
        assert all(line.transport.get_write_buffer_size() == 0 for line in lines)  # let go, not left
        assert all(line.get_extra_info("socket").fileno() < 0 for line in lines)
        kept[1].close()

    asyncio.run(alone())


@pytest.mark.parametrize("turns", range(8))
def test_who_connects_in_the_moment_of_closing_is_hung_up_on(turns):
    """As it was: whom the server had accepted and not handed over waited half a minute and missed the next round."""
    agreed, _, _ = small_round(3, 20, absences=0)
    lines = []

    class Closing(network.Coordination):
        async def conduct(self):
            lines.append(socket.create_connection(places[0], timeout=5))
            for _ in range(turns):
                await asyncio.sleep(0)
            raise RoundFailedError("over")

    async def ready(host, port):
        places.append((host, port))
        await asyncio.sleep(0.01)  # the server listens

    places = []
    with pytest.raises(RoundFailedError, match="over"):
        asyncio.run(coordinate(agreed, ready=ready, coordination=Closing))
    with lines[0], suppress(ConnectionError):  # TimeoutError is none
        while lines[0].recv(1 << 16):
            pass


def test_who_comes_too_late_is_refused_in_time():
    agreed, keys, cells = small_round(3, 20, absences=0)
    here = network.Coordination(agreed, join_seconds=5)
    here.conductor.joining = False

    async def late():
        server = await asyncio.start_server(here.welcome, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            await network.take_part(
                "127.0.0.1", port, approved=agreed, name="centre 0", key=keys["centre 0"], cells=cells["centre 0"]
            )
        finally:
            server.close()

    start = time.monotonic()
    with pytest.raises(RefusedError, match="begun"):
        asyncio.run(late())
    assert time.monotonic() - start < 60  # it would wait for ten minutes


@pytest.mark.parametrize("coordinator", ["curious", "malicious"])
def test_a_round_that_was_broken_off_is_not_answered_again(coordinator, tmp_path):
    """The coordinator opens a sum, tells nobody, and offers the round again: one sum, one reservation that stays."""
    agreed, keys, cells = small_round(3, 20, absences=0, coordinator=coordinator)
    granted = granted_accounts(tmp_path, agreed)
    accounts = {name: granted(name) for name in cells}

    class Evil(network.Coordination):
        async def _say_goodbye(self, outcome):
            self.close()

    opened = []
    for _ in range(3):
        found, told = gather(agreed, keys, cells, accounts=accounts, coordination=Evil)
        opened += [] if isinstance(found, Exception) else [found]
    assert len(opened) == 1
    assert all(isinstance(error, RefusedError) for error in told.values())
    assert all(last_action(tmp_path, name) == "reserve" for name in cells)
