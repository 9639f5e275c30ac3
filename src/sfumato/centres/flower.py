"""A round over Flower: its transport, our masks and noise (extra `[federated]`).

In:   a Round; at each node what the institution brings.
Out:  a ClientApp for the nodes; `coordinate_with_flower` for a ServerApp: Aggregate, or RoundFailedError.
Not here: why not Flower's own secure aggregation (docs/centres.md), the steps (conductor.py).

Flower calls a client anew for every message, so a participant's memory lies in the node's own context in between.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.conductor import Answer, Conductor
from sfumato.centres.messages import Message, read_json
from sfumato.centres.node import Offer, Purse, Seat, Verify, declined, known_reason, reason_of
from sfumato.centres.outcome import Aggregate, Outcome
from sfumato.centres.round import Round
from sfumato.centres.wire import Frame, message_frame
from sfumato.core.waits import within
from sfumato.errors import CentreError, InputError, MessageError, SfumatoError

__all__ = ["Institution", "centre_app", "coordinate_with_flower", "respond"]

_RECORD = "sfumato"
_POLL_SECONDS = 0.2
#: What a call of the grid may take beyond the deadline it was given.
_GRID_SECONDS = 30.0


@dataclass(frozen=True)
class Institution:
    """What a node brings: the round it agreed to, its name and key, its sum, its ledger."""

    approved: Round
    name: str
    key: Ed25519PrivateKey
    cells: np.ndarray
    account: Purse | None = None
    verify: Verify | None = None


def centre_app(institution: Callable[[Any], Institution]) -> Any:
    """A Flower ClientApp; `institution(context)` is called at the node for every message."""
    app_module, client_module = _flower()
    app = client_module.ClientApp()

    @app.query()
    def query(message: Any, context: Any) -> Any:
        asked = message.content[_RECORD]
        remembered = dict(context.state[_RECORD]) if _RECORD in context.state else {}

        def remember(record: Mapping[str, Any]) -> None:
            context.state[_RECORD] = app_module.ConfigRecord(dict(record))

        try:
            frame = Frame({"kind": asked["kind"]}, asked["body"])
            head, body = respond(institution(context), frame, remembered, remember)
        except SfumatoError as error:
            head, body = {"error": reason_of(error)}, b""  # its words are for the node's own people
        record = app_module.ConfigRecord({"head": json.dumps(head), "body": body})
        return app_module.Message(content=app_module.RecordDict({_RECORD: record}), reply_to=message)

    return app


def respond(
    own: Institution, frame: Frame, remembered: Mapping[str, Any], remember: Callable[[Mapping[str, Any]], None]
) -> Frame:
    """One message in, one out. What is remembered is given up before it is used, so that it serves once.

    Flower may run two messages at the same time on the same memory: the seat's record on disk lets one of them through.
    """
    if frame.head["kind"] == "round":
        offer = Offer.from_bytes(frame.body)
        agreed = offer.round
        try:
            seat, answer = Seat.take(offer, own.approved, own.name, own.key, own.cells, own.account, own.verify)
        except SfumatoError as error:
            return message_frame(declined(agreed, own.name, own.key, error))
    else:
        if "memory" not in remembered:
            raise MessageError("This node is in no round.")
        remember({})
        agreed = Round.from_dict(json.loads(remembered["round"]))
        seat = Seat.again(agreed, own.name, own.key, own.cells, own.account, remembered["memory"])
        if frame.head["kind"] == "outcome":
            seat.charge.reserve()  # the ledger hands back what this seat's token reserved
            return Frame({"settled": seat.settle(Outcome.from_dict(read_json(frame.body, dict)))}, b"")
        answer = seat.answer(frame.head["kind"], frame.body)
    remember({"round": json.dumps(agreed.to_dict()), "memory": seat.memory()})
    return message_frame(answer)


def coordinate_with_flower(agreed: Round, grid: Any, *, join_seconds: float = 120.0) -> Aggregate:
    """Conduct a round through a Flower grid, from the main function of a ServerApp."""
    return _FlowerCoordination(agreed, grid, join_seconds).conduct()


class _FlowerCoordination:
    """The conductor's questions over Flower; which node is which centre is learned from its first signed message."""

    def __init__(self, agreed: Round, grid: Any, join_seconds: float) -> None:
        self.round, self._grid, self._join_seconds = agreed, grid, join_seconds
        self.conductor = Conductor(agreed)
        self._nodes: dict[str, int] = {}

    def conduct(self) -> Aggregate:
        self._join()
        self.conductor.begin()
        while asked := self.conductor.questions():
            self.conductor.answered(self._exchange(asked))
        self._exchange(self.conductor.farewell())
        return self.conductor.result()

    def _join(self) -> None:
        """Offers the round to every node as it appears, until all centres have answered or it is time.

        A node that says nothing is not waited for: strangers on the grid neither fill places nor cost time.
        """
        deadline = time.monotonic() + self._join_seconds
        asked: set[int] = set()
        waiting: set[str] = set()
        while not self._everybody_is_here() and time.monotonic() < deadline:
            new = [node for node in self._answered(self._grid.get_node_ids) if node not in asked]
            asked.update(new)
            offers = [self._message(node, Frame({"kind": "round"}, Offer.of(self.round).to_bytes())) for node in new]
            waiting.update(self._answered(lambda sent=offers: self._grid.push_messages(sent)) if new else ())
            for reply in self._answered(lambda: self._grid.pull_messages(waiting)) if waiting else ():
                waiting.discard(reply.metadata.reply_to_message_id)
                self._let_in(reply)
            time.sleep(_POLL_SECONDS)

    def _everybody_is_here(self) -> bool:
        return self.conductor.is_settled

    def _let_in(self, reply: Any) -> None:
        node = reply.metadata.src_node_id
        answer = "broke off" if reply.has_error() else _read(reply.content)
        try:
            if isinstance(answer, str):
                raise MessageError(answer)
            if not self.conductor.hear_first(answer.sender, answer):
                self._nodes[answer.sender] = node
        except CentreError as error:
            self.conductor.absent[f"node {node}"] = str(error)

    def _answered(self, call: Callable[[], Iterable[Any]]) -> list[Any]:
        """What the grid hands over; nothing where it does not answer: its own calls try again for ever, and a step to
        which nobody answers ends the round as it should."""
        try:
            return list(within(self.round.step_seconds + _GRID_SECONDS, call))
        except TimeoutError:
            return []

    @staticmethod
    def _message(node: int, frame: Frame) -> Any:
        app_module, _ = _flower()
        record = app_module.ConfigRecord({"kind": frame.head["kind"], "body": frame.body})
        content = app_module.RecordDict({_RECORD: record})
        return app_module.Message(content=content, dst_node_id=node, message_type="query")

    def _exchange(self, frames: Mapping[str, Frame]) -> dict[str, Answer]:
        """Asks the centres and waits for their answers, or as long as the round allows; a text says what is wrong."""
        names = {self._nodes[name]: name for name in frames}
        messages = [self._message(self._nodes[name], frame) for name, frame in frames.items()]
        answers: dict[str, Answer] = {}
        step = self.round.step_seconds
        send = self._grid.send_and_receive
        for reply in self._answered(lambda: send(messages, timeout=step)) if messages else ():
            name = names.get(reply.metadata.src_node_id)
            if name is not None:
                answers[name] = "broke off" if reply.has_error() else _read(reply.content)
        return answers


def _read(content: Any) -> Message | str:
    try:
        record = content[_RECORD]
        head = read_json(record["head"].encode(), dict)
        if "error" in head:
            return known_reason(head["error"])
        if "settled" in head:
            return str(head)
        found = Message.from_dict({**head, "body": ""})
        return Message(found.round_hash, found.sender, found.step, bytes(record["body"]), found.signature)
    except (KeyError, TypeError, AttributeError, MessageError):
        return "sent garbage"


def _flower() -> tuple[Any, Any]:
    try:
        import flwr.app  # type: ignore[import-not-found]  # the extra [federated]
        import flwr.clientapp  # type: ignore[import-not-found]
    except ImportError as error:
        raise InputError("Rounds over Flower need the extra: pip install 'sfumato[federated]'.") from error
    return flwr.app, flwr.clientapp
