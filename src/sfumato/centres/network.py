"""A round over sockets: the coordinator's server and a centre's client.

In:   a Round, an address, deadlines; at a centre its sum, key and account.
Out:  Aggregate at the coordinator, Outcome at the centres; RoundFailedError after the deadlines at the latest.
Not here: the protocol (participant.py, aggregator.py), who pays (node.py), frames (wire.py).

TLS hides from outsiders who takes part and keeps them from disturbing; what protects the data are the masks and the
noise. Without a context the connection is plain: for one machine only.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.conductor import Answer, Conductor
from sfumato.centres.messages import Message, read_json
from sfumato.centres.node import Offer, Purse, Seat, Verify, can_be_mended, declined
from sfumato.centres.outcome import Aggregate, Outcome
from sfumato.centres.round import Round
from sfumato.centres.wire import Frame, largest_body, message_frame, read_frame, read_message, write_frame
from sfumato.errors import CentreError, InputError, MessageError, RefusedError, RoundFailedError, SfumatoError

__all__ = ["Coordination", "coordinate", "say_hello", "take_part", "turn_down"]

_BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError)
_LARGEST_OFFER = 1 << 26
_CHALLENGE_BYTES = 32
#: How long a stranger may take to say who it is, and how long anything waits for one who is refused.
_HELLO_SECONDS = 5.0
_CONNECT_SECONDS = 30.0
#: How long a refusal may take that is told out of courtesy.
_TOLD_SECONDS = 1.5
_MOST_STRANGERS = 256
#: Turns of the loop in which an accepted line is handed over; it takes two.
_TURNS = 8
#: How long those have, once the round is over, who do not read what they were sent last.
_LEAVE_SECONDS = 1.0
#: How often the coordinator looks who has hung up, while others join.
_LOOK_SECONDS = 0.5
#: How long others still have to speak for themselves once so many refused that there can be no sum.
_SECOND_THOUGHTS = 3.0
Tell = Callable[[str], None]
#: A centre may try again while a connection that it lost still looks alive.
_MOST_GUESTS = 4


class Coordination:
    """The coordinator of one round as a server: it carries the conductor's questions to the centres."""

    #: How long a centre that refused may come back before the round goes on, or ends, without it.
    second_chance: ClassVar[float] = 30.0

    def __init__(
        self,
        agreed: Round,
        *,
        join_seconds: float,
        late_seconds: float | None = None,
        awaited: Collection[str] = (),
        tell: Tell = lambda text: None,
    ) -> None:
        self.round, self._join_seconds, self._tell = agreed, join_seconds, tell
        self._late_seconds, self._awaited = late_seconds, frozenset(awaited)
        self.conductor = Conductor(agreed)
        self._members: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        #: Who connected and has not yet shown to be a centre of the round, oldest first; and from where.
        self._strangers: dict[asyncio.StreamWriter, str] = {}
        #: Connections of centres that were offered the round and have not answered.
        self._guests: dict[asyncio.StreamWriter, str] = {}
        self._complete = asyncio.Event()
        self._last_chance = 0.0
        self._visits: set[asyncio.Task[None]] = set()
        self._lines: WeakSet[asyncio.StreamWriter] = WeakSet()
        self._left = False
        self._offer = Offer.of(agreed).to_bytes()

    def arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Welcomes in a task of our own: one of asyncio's that is still waiting at the end prints a traceback."""
        self._lines.add(writer)
        if self._left:
            writer.close()
            return
        visit = asyncio.get_running_loop().create_task(self.welcome(reader, writer))
        self._visits.add(visit)

        def over(visit: asyncio.Task[None]) -> None:
            self._visits.discard(visit)
            if visit.cancelled():  # maybe before it was welcomed at all
                writer.close()

        visit.add_done_callback(over)

    async def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Someone connected: who signs a fresh challenge with a centre's key is offered the round, nobody else."""
        try:
            if not self.conductor.joining:
                raise RefusedError("The round has begun; nobody joins any more. Nothing was spent.")
            name = await self._greet(reader, writer)
            await self._seat(name, reader, writer)
        except (*_BROKEN, CentreError) as error:
            reason = str(error) if isinstance(error, CentreError) else "The connection was too slow."
            with suppress(*_BROKEN):
                async with asyncio.timeout(_HELLO_SECONDS):
                    await write_frame(writer, {"kind": "refused", "reason": reason[:500]})
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """The name of the centre at the other end. Strangers have a few seconds and no claim to a place."""
        self._make_room()
        self._strangers[writer] = str((writer.get_extra_info("peername") or ("",))[0])
        challenge = secrets.token_bytes(_CHALLENGE_BYTES)
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                await write_frame(writer, {"kind": "hello"}, challenge)
                message = await read_message(reader, _CHALLENGE_BYTES)
        finally:
            self._strangers.pop(writer, None)
        if message.sender not in self.round.places:
            raise RefusedError("This is no centre of the round. Nothing was spent.")
        message.check(self.round.identity(message.sender), message.round_hash, "hello")
        if message.body != challenge:
            raise MessageError(f"{message.sender}: the greeting answers another challenge.")
        return message.sender

    def _make_room(self) -> None:
        """Never turns a newcomer away: the oldest stranger of the busiest address goes. An honest hello takes one
        round trip, so a crowd delays only itself."""
        if len(self._strangers) < _MOST_STRANGERS:
            return
        crowd = Counter(self._strangers.values())
        busiest = crowd.most_common(1)[0][0]
        oldest = next(writer for writer, place in self._strangers.items() if place == busiest)
        del self._strangers[oldest]
        oldest.close()

    async def _seat(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if name in self._gone():
            raise RefusedError(
                f"{name} joined this round and broke off, and a round is answered once. When the coordinator has "
                "started its command again, join again by yours. Nothing was spent."
            )
        if name in self._members or list(self._guests.values()).count(name) >= _MOST_GUESTS:
            raise RefusedError(
                f"{name} is in this round already, by a command that is still running: let that one end. Nothing was "
                "spent."
            )
        self._guests[writer] = name
        try:
            async with asyncio.timeout(self._join_seconds):
                await write_frame(writer, {"kind": "round"}, self._offer)
                message = await read_message(reader, largest_body(self.round))
        finally:
            del self._guests[writer]
        if reason := self.conductor.hear_first(name, message):
            await self._let_go(name, reason, writer)
            return
        self._members[name] = reader, writer
        self._tell(f"{name} joined ({len(self._members)} of {len(self.round.centres)})")
        self._look_round()

    async def _let_go(self, name: str, reason: str, writer: asyncio.StreamWriter) -> None:
        """A centre that was offered the round does not want it. It may come again for a while."""
        mended = can_be_mended(reason)
        chance = self.second_chance if mended else _SECOND_THOUGHTS
        later = f"; it may come again within {chance:.0f} s" if mended and self.conductor.joining else ""
        self._tell(f"{name} {self.conductor.absent.get(name, 'came too late')}{later}")
        writer.close()
        self._last_chance = max(self._last_chance, asyncio.get_running_loop().time() + chance)
        self._look_round()

    def _look_round(self) -> None:
        """Nobody is waited for any longer once everybody is here, or those who are not had their second chance."""
        if self._everybody_is_here():
            self._complete.set()
        elif self.conductor.is_settled:
            left = self._last_chance - asyncio.get_running_loop().time()
            if left > 0:
                asyncio.get_running_loop().call_later(left, self._look_round)
            else:
                self._complete.set()
        elif self._late_seconds is not None and self._awaited_are_here():
            asyncio.get_running_loop().call_later(self._late_seconds, self._complete.set)

    def _awaited_are_here(self) -> bool:
        """Whoever is waited for has come, stays or not, or has declined; and there are enough for a sum."""
        enough = len(self._members) - len(self._gone()) >= self.round.quorum
        return enough and self._awaited <= {*self._members, *self.conductor.declined}

    def _gone(self) -> list[str]:
        """Who joined and hung up."""
        lost = {name: one for name, (one, _) in self._members.items() if one.at_eof() or one.exception() is not None}
        return list(lost)

    async def _gather(self) -> None:
        """Until nobody is waited for any longer, or so many who joined hung up that there can be no sum."""
        told: set[str] = set()
        while not self._complete.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._complete.wait()
            for name in sorted({*self._gone()} - told):
                self._tell(f"{name} broke off: it is in no sum of this round")
                told.add(name)
            final = asyncio.get_running_loop().time() >= self._last_chance  # nobody who refused may come again
            if told and final and len(self.round.centres) - len(told | {*self.conductor.declined}) < self.round.quorum:
                return

    def _everybody_is_here(self) -> bool:
        return len(self._members) == len(self.round.centres)

    async def conduct(self) -> Aggregate:
        """All steps; afterwards every centre that is still there knows the outcome."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._join_seconds):
                await self._gather()
        self.conductor.begin()
        while asked := self.conductor.questions():
            answers = await self._exchange(asked)
            await asyncio.to_thread(self.conductor.answered, answers)
            self._hang_up()
        await self._say_goodbye(self.conductor.farewell())
        return self.conductor.result()

    async def leave(self) -> None:
        """Hangs up on everybody, and waits a moment for those who do not read what they were sent last."""
        self._left = True
        self.close()
        visits = tuple(self._visits)
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)
        lines = tuple(self._lines)
        for line in lines:
            line.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await asyncio.gather(*(line.wait_closed() for line in lines), return_exceptions=True)
        for line in lines:  # a line that is left open would outlive the round
            line.transport.abort()
        await asyncio.sleep(0)

    def close(self) -> None:
        """Hangs up on everybody."""
        for writer in [*self._strangers, *self._guests, *(writer for _, writer in self._members.values())]:
            writer.close()

    def _hang_up(self) -> None:
        """On whom the conductor gave up."""
        for name in [name for name in self._members if name not in self.conductor.members]:
            self._members.pop(name)[1].close()

    async def _exchange(self, asked: Mapping[str, Frame]) -> dict[str, Answer]:
        answers = await asyncio.gather(*(self._ask(name, frame) for name, frame in asked.items()))
        return dict(zip(asked, answers, strict=True))

    async def _ask(self, name: str, frame: Frame) -> Answer:
        """One question, one answer from this centre; or in words what went wrong."""
        reader, writer = self._members[name]
        try:
            async with asyncio.timeout(self.round.step_seconds):
                await write_frame(writer, *frame)
                return await read_message(reader, largest_body(self.round))
        except TimeoutError:
            return "did not answer in time"
        except (*_BROKEN, MessageError) as error:
            return str(error) if isinstance(error, MessageError) else "broke off"

    async def _say_goodbye(self, frames: Mapping[str, Frame]) -> None:
        async def tell(name: str, frame: Frame) -> None:
            writer = self._members[name][1]
            with suppress(*_BROKEN):
                async with asyncio.timeout(self.round.step_seconds):
                    await write_frame(writer, *frame)
                    writer.close()
                    await writer.wait_closed()

        await asyncio.gather(*(tell(name, frame) for name, frame in frames.items()))


async def coordinate(
    agreed: Round,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    join_seconds: float = 60.0,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[str, int], Awaitable[None]] | None = None,
    coordination: type[Coordination] = Coordination,
    tell: Tell = lambda text: None,
    late_seconds: float | None = None,
    awaited: Collection[str] = (),
) -> Aggregate:
    """Serve one round and return its result; `ready(host, port)` is awaited once centres can connect.

    `tell` hears who joined and who refused. Nobody is waited for longer than `join_seconds`. If `late_seconds` is
    given, those who are not `awaited` are waited for only so long once the awaited are here and enough for a sum.
    `coordination` replaces what the coordinator does, for tests of one that misbehaves.
    """
    if tls is None and host not in ("127.0.0.1", "::1", "localhost"):
        raise InputError("Listening beyond this machine needs TLS: give a certificate and its key. Nothing was run.")
    here = coordination(agreed, join_seconds=join_seconds, late_seconds=late_seconds, awaited=awaited, tell=tell)
    handshake = {} if tls is None else {"ssl_handshake_timeout": _HELLO_SECONDS}
    try:
        server = await asyncio.start_server(here.arrive, host, port, ssl=tls, limit=1 << 20, **handshake)
    except OSError as error:
        raise InputError(
            f"{host}:{port} cannot be listened on: another program has it, or it is no address of this machine. Say "
            "another one with --listen HOST:PORT, and tell the centres (--at HOST:PORT). Nothing was run."
        ) from error
    try:
        if ready is not None:
            await ready(*server.sockets[0].getsockname()[:2])
        return await here.conduct()
    finally:
        await _stop_listening(server)
        await here.leave()


async def _stop_listening(server: asyncio.Server) -> None:
    """Whom asyncio has accepted and not yet handed over when a server closes keeps an open line with nobody at its end:
    such a centre waited half a minute and missed the next round. So nobody is accepted any more, those who were are
    handed over, and then it closes."""
    for one in server.sockets:
        asyncio.get_running_loop().remove_reader(one.fileno())
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    server.close()


async def take_part(
    host: str,
    port: int,
    *,
    approved: Round | Callable[[Round], Round],
    name: str,
    key: Ed25519PrivateKey,
    cells: np.ndarray | Callable[[Round], np.ndarray],
    account: Purse | None = None,
    tls: ssl.SSLContext | None = None,
    verify: Verify | None = None,
    patience: float = 600.0,
) -> Outcome:
    """One centre's part in one round. RefusedError: it does not take part. RoundFailedError: there is no result.

    Where rounds follow from each other, `approved` says of what is offered what this centre agrees to, and `cells` what
    its sum is then. `patience` is how many seconds to wait for any one message: the coordinator's deadlines are its
    own.
    """
    reader, writer = await _connect(host, port, tls, patience)
    seat: Seat | None = None
    outcome: Outcome | None = None
    broken: Exception | None = None
    try:
        await say_hello(reader, writer, name, key)
        async with asyncio.timeout(patience):
            offer = _offered(await read_frame(reader, _LARGEST_OFFER))
        try:
            seat, first = await asyncio.to_thread(_seat, offer, approved, name, key, cells, account, verify)
        except SfumatoError as error:
            async with asyncio.timeout(_HELLO_SECONDS):
                await write_frame(writer, *message_frame(declined(offer.round, name, key, error)))
            raise
        try:
            outcome = await _answer_all(reader, writer, seat, first, patience)
        except CentreError as error:  # in words that know nothing of this centre's ledger
            broken = error
    except (*_BROKEN, EOFError) as error:
        broken = error
    finally:
        settled = "release" if seat is None else seat.settle(outcome)
        await _close(writer)
    if outcome is None:
        sent = settled != "release"
        if isinstance(broken, RefusedError) and not sent:
            raise broken
        cost = "the cost stays reserved, because the sum may be known" if sent else "nothing left the centre"
        why = f" ({str(broken).rstrip('.')})" if isinstance(broken, MessageError) else ""
        raise RoundFailedError(f"{name}: the coordinator broke off{why}; {cost}.", revealed=sent) from broken
    if outcome.values is None:
        raise RoundFailedError(outcome.reason, revealed=outcome.revealed)
    assert seat is not None  # nothing else makes an outcome
    _check_told(outcome, seat.member.round, name, settled)
    return outcome


def _check_told(outcome: Outcome, agreed: Round, name: str, settled: str) -> None:
    """A sum is believed where this centre is in it and has paid: what comes after the round rests on both."""
    if settled == "release":
        raise RoundFailedError(
            f"{name}: the coordinator tells of a sum that this centre has no part in. Nothing of this round was spent "
            "here, and nothing more leaves the centre.",
            revealed=False,
        )
    if not outcome.is_of(agreed, name):
        raise RoundFailedError(
            f"{name}: what the coordinator tells is no result of this round. The cost stays charged here, because its "
            "sum may be known.",
            revealed=True,
        )


async def turn_down(
    host: str, port: int, *, name: str, key: Ed25519PrivateKey, error: SfumatoError, tls: ssl.SSLContext | None = None
) -> None:
    """Tells the coordinator that this centre does not take part and the kind of reason; if it can be told."""
    with suppress(*_BROKEN, EOFError, SfumatoError):
        async with asyncio.timeout(_TOLD_SECONDS):
            reader, writer = await _connect(host, port, tls, _TOLD_SECONDS)
            try:
                await say_hello(reader, writer, name, key)
                offer = _offered(await read_frame(reader, _LARGEST_OFFER))
                await write_frame(writer, *message_frame(declined(offer.round, name, key, error)))
            finally:
                await _close(writer)


def _seat(
    offer: Offer,
    approved: Round | Callable[[Round], Round],
    name: str,
    key: Ed25519PrivateKey,
    cells: np.ndarray | Callable[[Round], np.ndarray],
    account: Purse | None,
    verify: Verify | None,
) -> tuple[Seat, Message]:
    own = approved(offer.round) if callable(approved) else approved
    return Seat.take(offer, own, name, key, cells(own) if callable(cells) else cells, account, verify)


async def _connect(
    host: str, port: int, tls: ssl.SSLContext | None, patience: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, or OSError (TimeoutError is one)."""
    async with asyncio.timeout(min(patience, _CONNECT_SECONDS)):
        return await asyncio.open_connection(host, port, ssl=tls, limit=1 << 20)


async def say_hello(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str, key: Ed25519PrivateKey
) -> None:
    """Signs the coordinator's challenge: who asks for a place. Nothing else is said to strangers."""
    async with asyncio.timeout(_CONNECT_SECONDS):
        head, challenge = await read_frame(reader, _CHALLENGE_BYTES)
        if head.get("kind") != "hello":
            raise _refusal(head)
        greeting = Message("", name, "hello", challenge).sign(key)
        await write_frame(writer, *message_frame(greeting))


def _refusal(head: dict[str, Any]) -> RefusedError:
    return RefusedError(str(head.get("reason", "The coordinator offers no round. Nothing left the centre."))[:500])


def _offered(frame: Frame) -> Offer:
    if frame.head.get("kind") != "round":
        raise _refusal(frame.head)
    return Offer.from_bytes(frame.body)


async def _answer_all(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seat: Seat, answer: Message, patience: float
) -> Outcome:
    """Answers until the outcome comes. Whatever is asked out of turn makes the participant leave (MessageError)."""
    while True:
        async with asyncio.timeout(patience):
            await write_frame(writer, *message_frame(answer))
            head, body = await read_frame(reader, _LARGEST_OFFER)
        kind = head.get("kind")
        if kind == "outcome":
            return Outcome.from_dict(read_json(body, dict))
        if kind == "refused":
            raise _refusal(head)
        answer = await asyncio.to_thread(seat.answer, kind, body)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(*_BROKEN):
        async with asyncio.timeout(_HELLO_SECONDS):
            await writer.wait_closed()
