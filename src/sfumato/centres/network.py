"""A round over sockets: the coordinator's server and a centre's client.

In:   a Round, an address, deadlines; at a centre its sum, key and account.
Out:  Aggregate at the coordinator, Outcome at the centres; RoundFailedError after the deadlines at the latest.
Not here: the protocol (participant.py, aggregator.py), who pays (node.py), frames (wire.py).

TLS hides from outsiders who takes part and keeps them from disturbing; what protects the data are the masks and the
noise. Without a context the connection is plain: for one machine only.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.aggregator import Aggregator
from sfumato.centres.messages import Message, read_json, write_json
from sfumato.centres.node import Account, Charge, Verify, check_agreement
from sfumato.centres.outcome import Aggregate, Outcome, aggregate_of
from sfumato.centres.participant import Participant
from sfumato.centres.round import Round
from sfumato.centres.wire import Frame, largest_body, message_frame, read_frame, read_message, write_frame
from sfumato.errors import CentreError, InputError, MessageError, RefusedError, RoundFailedError, SfumatoError

__all__ = ["Coordination", "coordinate", "take_part"]

_BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError)
_LARGEST_OFFER = 1 << 26


class Coordination:
    """The coordinator of one round: a server that asks every centre once for each step."""

    def __init__(self, agreed: Round, *, join_seconds: float) -> None:
        self.round, self._join_seconds = agreed, join_seconds
        self.aggregator = Aggregator(agreed)
        self.absent: dict[str, str] = {}
        self._members: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._strangers: set[asyncio.StreamWriter] = set()
        self._complete = asyncio.Event()
        self._joining = True
        self._offer = write_json(
            {"round": agreed.to_dict(), "certificates": [one.to_json() for one in agreed.certificates()]}
        )

    async def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Someone connected: offer the round, and let in whoever answers with the keys of a registered centre."""
        if not self._joining or len(self._strangers) > 4 * len(self.round.centres):
            writer.close()
            return
        self._strangers.add(writer)
        try:
            async with asyncio.timeout(self._join_seconds):
                await write_frame(writer, {"kind": "round"}, self._offer)
                message = await read_message(reader, largest_body(self.round))
            if not self._joining:
                raise MessageError("The round has begun.")
            self.aggregator.accept(message)
            self._members[message.sender] = reader, writer
            if len(self._members) == len(self.round.centres):
                self._complete.set()
        except (*_BROKEN, CentreError) as error:
            with suppress(*_BROKEN):
                reason = str(error) if isinstance(error, CentreError) else "The connection was too slow."
                await write_frame(writer, {"kind": "refused", "reason": reason[:500]})
            writer.close()
        finally:
            self._strangers.discard(writer)

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
) -> Aggregate:
    """Serve one round and return its result; `ready(host, port)` is awaited once centres can connect."""
    if tls is None and host not in ("127.0.0.1", "::1", "localhost"):
        raise InputError("Listening beyond this machine needs TLS: give a certificate and its key. Nothing was run.")
    here = Coordination(agreed, join_seconds=join_seconds)
    server = await asyncio.start_server(here.welcome, host, port, ssl=tls, limit=1 << 20)
    try:
        if ready is not None:
            await ready(*server.sockets[0].getsockname()[:2])
        return await here.conduct()
    finally:
        server.close()
        for writer in [*here._strangers, *(writer for _, writer in here._members.values())]:
            writer.close()


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
    reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=1 << 20)
    charge: Charge | None = None
    outcome: Outcome | None = None
    try:
        async with asyncio.timeout(patience):
            offer = await read_frame(reader, _LARGEST_OFFER)
        agreed, certificates = _offered(offer)
        check_agreement(agreed, approved, certificates, verify)
        member = Participant(agreed, name, key, cells)
        charge = Charge(agreed, name, account)
        charge.reserve()
        await write_frame(writer, *message_frame(member.keys()))
        outcome = told = await _answer_all(reader, writer, member, charge, patience)
    except (*_BROKEN, EOFError) as error:
        sent = charge is not None and charge.sent
        cost = "the cost stays reserved, because the sum may be known" if sent else "nothing left the centre"
        raise RoundFailedError(f"{name}: the coordinator broke off; {cost}.", revealed=sent) from error
    finally:
        if charge is not None:
            charge.settle(outcome)
        writer.close()
        with suppress(*_BROKEN):
            await writer.wait_closed()
    if told.values is None:
        raise RoundFailedError(told.reason, revealed=told.revealed)
    return told


def _offered(frame: Frame) -> tuple[Round, list[str]]:
    if frame.head.get("kind") != "round":
        raise RefusedError(str(frame.head.get("reason", "The coordinator offers no round."))[:500])
    offer = read_json(frame.body, dict)
    try:
        return Round.from_dict(offer["round"]), list(offer["certificates"])
    except (KeyError, TypeError, SfumatoError) as error:
        raise RefusedError("The coordinator's round cannot be read. Nothing left the centre.") from error


async def _answer_all(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, member: Participant, charge: Charge, patience: float
) -> Outcome:
    """Answers until the outcome comes. Whatever is asked out of turn makes the participant leave (MessageError)."""
    while True:
        async with asyncio.timeout(patience):
            head, body = await read_frame(reader, _LARGEST_OFFER)
        kind = head.get("kind")
        if kind == "outcome":
            return Outcome.from_dict(read_json(body, dict))
        if kind == "refused":
            raise RefusedError(str(head.get("reason", ""))[:500])
        answer = await asyncio.to_thread(_answer, kind, body, member)
        # From here on the data may be on its way: first the mark, then the message.
        charge.sent = charge.sent or answer.step == "masked"
        await write_frame(writer, *message_frame(answer))


def _answer(kind: Any, body: bytes, member: Participant) -> Message:
    match kind:
        case "keys":
            return member.shares([Message.from_dict(item) for item in read_json(body, list)])
        case "parcels":
            return member.masked(read_json(body, dict))
        case "included":
            return member.agreed(read_json(body, list))
        case "signatures":
            return member.unmask([Message.from_dict(item) for item in read_json(body, list)])
        case "refuse":
            return member.refuse()
    raise MessageError("The coordinator asks for something that is no step of the protocol.")
