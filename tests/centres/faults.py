"""Centres that misbehave: what their processes run."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.messages import Message, read_json, write_json
from sfumato.centres.network import say_hello
from sfumato.centres.node import Charge, Seat
from sfumato.centres.participant import Participant
from sfumato.centres.processes import CentreTask
from sfumato.centres.round import Round
from sfumato.centres.wire import message_frame, read_frame, write_frame


def misbehave(task: CentreTask, step: str, fault: str) -> None:
    """Takes part properly until `step`, then does what `fault` says."""
    asyncio.run(_misbehave(task, step, fault))


def announced(task: CentreTask, main: Callable[[CentreTask], None], folder: Path) -> None:
    """Says that its process is up, and goes on."""
    (folder / f"{task.name} is up").touch()
    main(task)


def never_join(task: CentreTask) -> None:
    pass


async def _misbehave(task: CentreTask, step: str, fault: str) -> None:
    reader, writer = await asyncio.open_connection(task.host, task.port)
    await say_hello(reader, writer, task.name, Ed25519PrivateKey.from_private_bytes(task.key))
    offer = read_json((await read_frame(reader, 1 << 26)).body, dict)
    member = Participant(
        Round.from_dict(offer["round"]), task.name, Ed25519PrivateKey.from_private_bytes(task.key), task.cells
    )
    if fault == "too large a value":
        member._cells = np.full_like(task.cells, 1 << (task.round.bits - 2))
    seat = Seat(member, Charge(member.round, task.name, None))
    said: list[Message] = []
    answer = member.keys()
    while True:
        if answer.step == step:
            await _fault(fault, answer, said, task, writer)
            if fault != "too large a value":
                await reader.read(-1)  # until the coordinator has had enough
                return
        await write_frame(writer, *message_frame(answer))
        said.append(answer)
        frame = await read_frame(reader, 1 << 26)
        if frame.head["kind"] in ("outcome", "refused"):
            return
        answer = seat.answer(frame.head["kind"], frame.body)


async def _fault(fault: str, answer: Message, said: list[Message], task: CentreTask, writer) -> None:
    key = Ed25519PrivateKey.from_private_bytes(task.key)
    match fault:
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "dies afterwards":
            await write_frame(writer, *message_frame(answer))
            os.kill(os.getpid(), signal.SIGKILL)
        case "garbage":
            writer.write(secrets.token_bytes(5000))
            await writer.drain()
        case "signed garbage":
            await write_frame(writer, *message_frame(replace(answer, body=b"\xff" * 60).sign(key)))
        case "wrong shape":
            await write_frame(writer, *message_frame(replace(answer, body=answer.body[:-3]).sign(key)))
        case "forged":
            await write_frame(writer, *message_frame(replace(answer, signature=bytes(64))))
        case "replay":
            await write_frame(writer, *message_frame(said[-1]))
        case "another round":
            old = Message("0" * 64, task.name, answer.step, answer.body).sign(key)
            await write_frame(writer, *message_frame(old))
        case "wrong shares":
            body = read_json(answer.body, dict)
            changed = {kind: {name: "1" + share for name, share in given.items()} for kind, given in body.items()}
            shorter = {k: {n: s[:130] for n, s in given.items()} for k, given in changed.items()}
            await write_frame(writer, *message_frame(replace(answer, body=write_json(shorter)).sign(key)))
        case "flood":
            writer.write((4096).to_bytes(4, "big") + (1 << 31).to_bytes(4, "big"))
            await writer.drain()
