"""A round over Flower: its transport, our masks and noise (extra `[federated]`).

In:   a Round; at each node what the institution brings.
Out:  a ClientApp for the nodes; `coordinate_with_flower` for a ServerApp: Aggregate, or RoundFailedError.
Not here: why not Flower's own secure aggregation (docs/centres.md), the protocol (participant.py, aggregator.py).

Flower calls a client anew for every message, so a participant's memory lies in the node's own context in between.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.aggregator import Aggregator
from sfumato.centres.messages import Message, read_json, write_json
from sfumato.centres.network import _answer, _offered
from sfumato.centres.node import Account, Charge, Verify, check_agreement
from sfumato.centres.outcome import Aggregate, Outcome, aggregate_of
from sfumato.centres.participant import Participant
from sfumato.centres.round import Round
from sfumato.centres.wire import Frame
from sfumato.errors import CentreError, InputError, MessageError, RoundFailedError, SfumatoError

__all__ = ["Institution", "centre_app", "coordinate_with_flower"]

_RECORD = "sfumato"


@dataclass(frozen=True)
class Institution:
    """What a node brings: the round it agreed to, its name and key, its sum, its ledger."""

    approved: Round
    name: str
    key: Ed25519PrivateKey
    cells: np.ndarray
    account: Account | None = None
    verify: Verify | None = None


def centre_app(institution: Callable[[Any], Institution]) -> Any:
    """A Flower ClientApp; `institution(context)` is called at the node for every message."""
    app_module, client_module = _flower()
    app = client_module.ClientApp()

    @app.query()
    def query(message: Any, context: Any) -> Any:
        asked = message.content[_RECORD]
        try:
            head, body = _respond(institution(context), Frame({"kind": asked["kind"]}, asked["body"]), context.state)
        except SfumatoError as error:
            head, body = {"error": f"{type(error).__name__}: {error}"[:500]}, b""
        record = app_module.ConfigRecord({"head": json.dumps(head), "body": body})
        return app_module.Message(content=app_module.RecordDict({_RECORD: record}), reply_to=message)

    return app


def _respond(own: Institution, frame: Frame, state: Any) -> Frame:
    """One message in, one out; between them the memory is taken out of the node's state, so that it serves once."""
    remembered = dict(state[_RECORD]) if _RECORD in state else {}
    kind = frame.head["kind"]
    if kind == "round":
        agreed, certificates = _offered(frame)
        check_agreement(agreed, own.approved, certificates, own.verify)
        member = Participant(agreed, own.name, own.key, own.cells)
        Charge(agreed, own.name, own.account).reserve()
        answer = member.keys()
        remembered = {"round": json.dumps(agreed.to_dict()), "sent": False}
    else:
        if "round" not in remembered:
            raise MessageError("This node is in no round.")
        agreed = Round.from_dict(json.loads(remembered["round"]))
        if kind == "outcome":
            del state[_RECORD]
            return Frame({"settled": _settle(own, agreed, remembered, read_json(frame.body, dict))}, b"")
        member = Participant(agreed, own.name, own.key, own.cells)
        member.recall(remembered.pop("memory"))
        _remember(state, remembered | {"sent": remembered["sent"] or kind == "parcels"})
        answer = _answer(kind, frame.body, member)
    sent = remembered["sent"] or answer.step == "masked"
    _remember(state, remembered | {"memory": member.memory(), "sent": sent})
    record = answer.to_dict()
    del record["body"]
    return Frame(record, answer.body)


def _settle(own: Institution, agreed: Round, remembered: Mapping[str, Any], record: dict[str, Any]) -> str:
    charge = Charge(agreed, own.name, own.account, sent=bool(remembered["sent"]))
    charge.reserve()  # the ledger hands back the open reservation of this round's key
    return charge.settle(Outcome.from_dict(record))


def _remember(state: Any, remembered: Mapping[str, Any]) -> None:
    app_module, _ = _flower()
    state[_RECORD] = app_module.ConfigRecord(dict(remembered))


def coordinate_with_flower(agreed: Round, grid: Any, *, join_seconds: float = 120.0) -> Aggregate:
    """Conduct a round through a Flower grid, from the main function of a ServerApp."""
    return _FlowerCoordination(agreed, grid, join_seconds).conduct()


class _FlowerCoordination:
    """The same steps as over sockets; which node is which centre is learned from the first signed message."""

    def __init__(self, agreed: Round, grid: Any, join_seconds: float) -> None:
        self.round, self._grid, self._join_seconds = agreed, grid, join_seconds
        self.aggregator = Aggregator(agreed)
        self.absent: dict[str, str] = {}
        self._members: dict[int, str] = {}

    def conduct(self) -> Aggregate:
        certificates = [one.to_json() for one in self.round.certificates()]
        offer = write_json({"round": self.round.to_dict(), "certificates": certificates})
        included: list[str] = []
        try:
            offers = dict.fromkeys(self._nodes(), Frame({"kind": "round"}, offer))
            self._join(self._exchange(offers, self._join_seconds))
            keys = write_json([message.to_dict() for message in self.aggregator.public_keys()])
            self._step(lambda name: Frame({"kind": "keys"}, keys))
            self._step(lambda name: Frame({"kind": "parcels"}, write_json(self.aggregator.parcels_for(name))))
            included = self.aggregator.included()
            self._step(lambda name: Frame({"kind": "included"}, write_json(included)))
            signatures = write_json([message.to_dict() for message in self.aggregator.signatures()])
            self._step(lambda name: Frame({"kind": "signatures"}, signatures))
            found = aggregate_of(self.round, self.aggregator.total(), included, self.absent)
        except RoundFailedError as error:
            self._tell(Outcome(error.revealed, str(error), None, tuple(included)))
            raise
        self._tell(Outcome(True, "", tuple(found.values.tolist()), tuple(included)))
        return found

    def _nodes(self) -> list[int]:
        """The nodes of the grid once there are enough, or when it is time."""
        deadline = time.monotonic() + self._join_seconds
        nodes = list(self._grid.get_node_ids())
        while len(nodes) < len(self.round.centres) and time.monotonic() < deadline:
            time.sleep(0.2)
            nodes = list(self._grid.get_node_ids())
        return nodes

    def _join(self, answers: Mapping[int, Message | str]) -> None:
        for node, answer in answers.items():
            if isinstance(answer, Message):
                try:
                    self.aggregator.accept(answer)
                    self._members[node] = answer.sender
                except CentreError as error:
                    self.absent[f"node {node}"] = str(error)
        for centre in self.round.centres:
            if centre.name not in self._members.values():
                self.absent[centre.name] = "never joined"
        self.aggregator.advance()

    def _step(self, offer: Callable[[str], Frame]) -> None:
        answers = self._exchange({node: offer(name) for node, name in self._members.items()})
        for node, name in list(self._members.items()):
            answer = answers.get(node, "did not answer in time")
            try:
                if isinstance(answer, str) or answer.sender != name:
                    raise MessageError(answer if isinstance(answer, str) else f"{name} spoke for somebody else.")
                self.aggregator.accept(answer)
            except MessageError as error:
                self.absent[name] = str(error)
                del self._members[node]
        self.aggregator.advance()

    def _tell(self, outcome: Outcome) -> None:
        body = write_json(outcome.to_dict())
        self._exchange(dict.fromkeys(self._members, Frame({"kind": "outcome"}, body)))

    def _exchange(self, frames: Mapping[int, Frame], seconds: float | None = None) -> dict[int, Message | str]:
        """Asks the nodes and waits for their answers, or as long as the round allows; a text says what is wrong."""
        app_module, _ = _flower()
        messages = []
        for node, frame in frames.items():
            record = app_module.ConfigRecord({"kind": frame.head["kind"], "body": frame.body})
            content = app_module.RecordDict({_RECORD: record})
            messages.append(app_module.Message(content=content, dst_node_id=node, message_type="query"))
        answers: dict[int, Message | str] = {}
        for reply in self._grid.send_and_receive(messages, timeout=seconds or self.round.step_seconds):
            node = reply.metadata.src_node_id
            answers[node] = "broke off" if reply.has_error() else _read(reply.content)
        return answers


def _read(content: Any) -> Message | str:
    try:
        record = content[_RECORD]
        head = read_json(record["head"].encode(), dict)
        if "error" in head or "settled" in head:
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
