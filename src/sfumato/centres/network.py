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
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.aggregator import Aggregator
from sfumato.centres.messages import Message, read_json, write_json
from sfumato.centres.node import Account, Offer, Seat, Verify
from sfumato.centres.outcome import Aggregate, Outcome, aggregate_of
from sfumato.centres.round import Round
from sfumato.centres.wire import Frame, largest_body, message_frame, read_frame, read_message, write_frame
from sfumato.errors import CentreError, InputError, MessageError, RefusedError, RoundFailedError

__all__ = ["Coordination", "coordinate", "say_hello", "take_part"]

_BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError)
_LARGEST_OFFER = 1 << 26
_CHALLENGE_BYTES = 32
#: How long a stranger may take to say who it is, and how long anything waits for one who is refused.
_HELLO_SECONDS = 5.0
_CONNECT_SECONDS = 30.0
_MOST_STRANGERS = 256
#: A centre may try again while a connection that it lost still looks alive.
_MOST_GUESTS = 4


class Coordination:
    """The coordinator of one round: a server that asks every centre once for each step."""

    def __init__(self, agreed: Round, *, join_seconds: float) -> None:
        self.round, self._join_seconds = agreed, join_seconds
        self.aggregator = Aggregator(agreed)
        self.absent: dict[str, str] = {}
        self._members: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        #: Who connected and has not yet shown to be a centre of the round, oldest first; and from where.
        self._strangers: dict[asyncio.StreamWriter, str] = {}
        #: Connections of centres that were offered the round and have not answered.
        self._guests: dict[asyncio.StreamWriter, str] = {}
        self._complete = asyncio.Event()
        self._joining = True
        self._offer = Offer.of(agreed).to_bytes()

    async def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Someone connected: who signs a fresh challenge with a centre's key is offered the round, nobody else."""
        try:
            if not self._joining:
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
        if name in self._members or list(self._guests.values()).count(name) >= _MOST_GUESTS:
            raise RefusedError(f"{name} is in this round already. Nothing was spent.")
        self._guests[writer] = name
        try:
            async with asyncio.timeout(self._join_seconds):
                await write_frame(writer, {"kind": "round"}, self._offer)
                message = await read_message(reader, largest_body(self.round))
        finally:
            del self._guests[writer]
        if not self._joining:
            raise RefusedError("The round has begun; nobody joins any more. Nothing was spent.")
        if message.sender != name:
            raise MessageError(f"{name} spoke for somebody else.")
        self.aggregator.accept(message)
        self._members[name] = reader, writer
        self._look_round()

    def _look_round(self) -> None:
        """Nobody is waited for any longer once everybody is here."""
        if self._everybody_is_here():
            self._complete.set()

    def _everybody_is_here(self) -> bool:
        return len(self._members) == len(self.round.centres)

    async def conduct(self) -> Aggregate:
        """All steps; afterwards every centre that is still there knows the outcome."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._join_seconds):
                await self._complete.wait()
        self._joining = False
        for centre in self.round.centres:
            if centre.name not in self._members:
                self.absent[centre.name] = "never joined"
        included: list[str] = []
        try:
            self.aggregator.advance()
            keys = write_json([message.to_dict() for message in self.aggregator.public_keys()])
            await self._step(lambda name: Frame({"kind": "keys"}, keys))
            await self._step(lambda name: Frame({"kind": "parcels"}, write_json(self.aggregator.parcels_for(name))))
            included = self.aggregator.included()
            proposed = write_json(included)
            await self._step(lambda name: Frame({"kind": "included"}, proposed))
            signatures = write_json([message.to_dict() for message in self.aggregator.signatures()])
            await self._step(lambda name: Frame({"kind": "signatures"}, signatures))
            total = await asyncio.to_thread(self.aggregator.total)
            found = aggregate_of(self.round, total, included, self.absent)
        except RoundFailedError as error:
            await self._say_goodbye(await self._failure(error, included))
            raise
        await self._say_goodbye(Outcome(True, "", tuple(found.values.tolist()), tuple(included)))
        return found

    def close(self) -> None:
        """Hangs up on everybody."""
        for writer in [*self._strangers, *self._guests, *(writer for _, writer in self._members.values())]:
            writer.close()

    async def _step(self, offer: Callable[[str], Frame]) -> None:
        take = self.aggregator.accept
        await asyncio.gather(*(self._ask(name, offer(name), take) for name in list(self._members)))
        self.aggregator.advance()

    async def _ask(self, name: str, frame: Frame, take: Callable[[Message], None]) -> None:
        """One question, one answer from this centre; whatever goes wrong, it is absent from now on."""
        reader, writer = self._members[name]
        try:
            async with asyncio.timeout(self.round.step_seconds):
                await write_frame(writer, *frame)
                message = await read_message(reader, largest_body(self.round))
            if message.sender != name:
                raise MessageError(f"{name} spoke for {message.sender!r}.")
            take(message)
        except (*_BROKEN, MessageError) as error:
            known = {TimeoutError: "did not answer in time", asyncio.IncompleteReadError: "broke off"}
            self.absent[name] = str(error) if isinstance(error, MessageError) else known.get(type(error), "broke off")
            self._members.pop(name, None)
            writer.close()

    async def _failure(self, error: RoundFailedError, included: list[str]) -> Outcome:
        """What to tell after a failure; if nothing was opened, with the refusals of all who are there."""
        if error.revealed:
            return Outcome(True, str(error), None, tuple(included))
        refusals: list[Message] = []

        def take(message: Message) -> None:
            message.check(self.round.identity(message.sender), self.round.hash, "refuse")
            refusals.append(message)

        # Whoever has given its key shares cannot take them back.
        silent = [name for name in self._members if not self.aggregator.has_unmasked(name)]
        await asyncio.gather(*(self._ask(name, Frame({"kind": "refuse"}, b""), take) for name in silent))
        return Outcome(False, str(error), None, (), tuple(refusals))

    async def _say_goodbye(self, outcome: Outcome) -> None:
        body = write_json(outcome.to_dict())

        async def tell(name: str) -> None:
            writer = self._members[name][1]
            with suppress(*_BROKEN):
                async with asyncio.timeout(self.round.step_seconds):
                    await write_frame(writer, {"kind": "outcome"}, body)
                    writer.close()
                    await writer.wait_closed()

        await asyncio.gather(*(tell(name) for name in list(self._members)))


async def coordinate(
    agreed: Round,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    join_seconds: float = 60.0,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[str, int], Awaitable[None]] | None = None,
    coordination: type[Coordination] = Coordination,
) -> Aggregate:
    """Serve one round and return its result; `ready(host, port)` is awaited once centres can connect.

    `coordination` replaces what the coordinator does, for tests of one that misbehaves.
    """
    if tls is None and host not in ("127.0.0.1", "::1", "localhost"):
        raise InputError("Listening beyond this machine needs TLS: give a certificate and its key. Nothing was run.")
    here = coordination(agreed, join_seconds=join_seconds)
    handshake = {} if tls is None else {"ssl_handshake_timeout": _HELLO_SECONDS}
    server = await asyncio.start_server(here.welcome, host, port, ssl=tls, limit=1 << 20, **handshake)
    try:
        if ready is not None:
            await ready(*server.sockets[0].getsockname()[:2])
        return await here.conduct()
    finally:
        server.close()
        here.close()


async def take_part(
    host: str,
    port: int,
    *,
    approved: Round,
    name: str,
    key: Ed25519PrivateKey,
    cells: np.ndarray,
    account: Account | None = None,
    tls: ssl.SSLContext | None = None,
    verify: Verify | None = None,
    patience: float = 600.0,
) -> Outcome:
    """One centre's part in one round. RefusedError: it does not take part. RoundFailedError: there is no result.

    `patience` is how many seconds to wait for any one message: the coordinator's deadlines are its own.
    """
    reader, writer = await _connect(host, port, tls, patience)
    seat: Seat | None = None
    outcome: Outcome | None = None
    broken: Exception | None = None
    try:
        await say_hello(reader, writer, approved, name, key)
        async with asyncio.timeout(patience):
            offer = _offered(await read_frame(reader, _LARGEST_OFFER))
        seat, first = await asyncio.to_thread(Seat.take, offer, approved, name, key, cells, account, verify)
        outcome = await _answer_all(reader, writer, seat, first, patience)
    except (*_BROKEN, EOFError) as error:
        broken = error
    finally:
        settled = "release" if seat is None else seat.settle(outcome)
        await _close(writer)
    if outcome is None:
        sent = settled != "release"
        cost = "the cost stays reserved, because the sum may be known" if sent else "nothing left the centre"
        raise RoundFailedError(f"{name}: the coordinator broke off; {cost}.", revealed=sent) from broken
    if outcome.values is None:
        raise RoundFailedError(outcome.reason, revealed=outcome.revealed)
    return outcome


async def _connect(
    host: str, port: int, tls: ssl.SSLContext | None, patience: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection, or OSError (TimeoutError is one)."""
    async with asyncio.timeout(min(patience, _CONNECT_SECONDS)):
        return await asyncio.open_connection(host, port, ssl=tls, limit=1 << 20)


async def say_hello(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, approved: Round, name: str, key: Ed25519PrivateKey
) -> None:
    """Signs the coordinator's challenge: who asks for a place in which agreement. Nothing else is said to strangers."""
    async with asyncio.timeout(_CONNECT_SECONDS):
        head, challenge = await read_frame(reader, _CHALLENGE_BYTES)
        if head.get("kind") != "hello":
            raise _refusal(head)
        greeting = Message(approved.agreement, name, "hello", challenge).sign(key)
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
