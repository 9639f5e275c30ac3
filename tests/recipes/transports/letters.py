"""The recipe for a transport: questions lie as letters in a folder, and a centre answers those it finds there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.conductor import Answer, Conductor
from sfumato.centres.messages import Message, read_json
from sfumato.centres.node import Offer, RoundAccount, Seat, declined
from sfumato.centres.outcome import Aggregate, Outcome
from sfumato.centres.round import Round
from sfumato.centres.wire import Frame, message_frame
from sfumato.errors import MessageError, SfumatoError


def post(path: Path, frame: Frame) -> None:
    path.write_text(json.dumps({"head": frame.head, "body": frame.body.hex()}), encoding="utf-8")


def opened(path: Path) -> Frame:
    letter = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return Frame(letter["head"], bytes.fromhex(letter["body"]))


@dataclass
class Desk:
    """A centre: it opens a letter if one lies there, and leaves its answer beside it."""

    folder: Path
    approved: Round
    name: str
    key: Ed25519PrivateKey
    cells: np.ndarray
    account: RoundAccount | None = None
    seat: Seat | None = None
    settled: str = ""

    def look(self) -> None:
        if (self.folder / f"to {self.name}").exists():
            frame = self._answer(opened(self.folder / f"to {self.name}"))
            if frame is not None:
                post(self.folder / f"from {self.name}", frame)

    def _answer(self, frame: Frame) -> Frame | None:
        if frame.head["kind"] == "round":
            offer = Offer.from_bytes(frame.body)
            try:
                self.seat, first = Seat.take(offer, self.approved, self.name, self.key, self.cells, self.account, None)
            except SfumatoError as error:
                return message_frame(declined(offer.round, self.name, self.key, error))
            return message_frame(first)
        assert self.seat is not None
        if frame.head["kind"] == "outcome":
            self.settled = self.seat.settle(Outcome.from_dict(read_json(frame.body, dict)))
            return None
        try:
            return message_frame(self.seat.answer(frame.head["kind"], frame.body))
        except SfumatoError as error:
            return Frame({"error": str(error)}, b"")


def conduct(agreed: Round, folder: Path, wait: Callable[[], None]) -> Aggregate:
    """The coordinator: lays out letters, waits, and hands the conductor what came back."""

    def exchange(frames: Mapping[str, Frame]) -> dict[str, Answer]:
        for name, frame in frames.items():
            post(folder / f"to {name}", frame)
        wait()
        return {name: _read(opened(folder / f"from {name}")) for name in frames if (folder / f"from {name}").exists()}

    conductor = Conductor(agreed)
    offer = Frame({"kind": "round"}, Offer.of(agreed).to_bytes())
    for name, answer in exchange(dict.fromkeys(agreed.places, offer)).items():
        if isinstance(answer, Message):
            conductor.hear_first(name, answer)
    conductor.begin()
    while asked := conductor.questions():
        conductor.answered(exchange(asked))
    exchange(conductor.farewell())
    return conductor.result()


def _read(frame: Frame) -> Answer:
    if "error" in frame.head:
        return str(frame.head["error"])
    try:
        found = Message.from_dict({**frame.head, "body": ""})
    except MessageError as error:
        return str(error)
    return Message(found.round_hash, found.sender, found.step, frame.body, found.signature)
