"""A round through a stand-in for Flower's grid: strangers on it neither fill places nor cost time."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from centres.small_rounds import small_round
from sfumato.centres import flower
from sfumato.centres.flower import Institution, centre_app, coordinate_with_flower
from sfumato.centres.wire import Frame
from sfumato.errors import DataError, RoundFailedError


class Letter:
    """What Flower calls a Message, as far as it is used."""

    def __init__(self, content, dst_node_id=None, message_type=None, reply_to=None):
        self.content, self.to = content, dst_node_id
        self.id = id(self)
        source = reply_to.to if reply_to else None
        self.metadata = SimpleNamespace(src_node_id=source, reply_to_message_id=reply_to.id if reply_to else None)

    def has_error(self):
        return False


class Client:
    def query(self):
        return lambda function: setattr(self, "answer", function)


class Grid:
    """Nodes by number; those without an app never answer. They appear one by one."""

    def __init__(self, apps):
        self.apps, self.asked, self.sent, self.states = apps, 0, [], {}

    def get_node_ids(self):
        self.asked += 1
        return list(self.apps)[: 2 * self.asked]

    def push_messages(self, messages):
        self.sent += list(messages)
        return [message.id for message in messages]

    def pull_messages(self, ids):
        found = [message for message in self.sent if message.id in ids]
        self.sent = [message for message in self.sent if message.id not in ids]
        return [reply for message in found if (reply := self._reply(message)) is not None]

    def send_and_receive(self, messages, timeout):
        return [reply for message in messages if (reply := self._reply(message)) is not None]

    def _reply(self, message):
        app = self.apps[message.to]
        context = self.states.setdefault(message.to, SimpleNamespace(state={}))
        return None if app is None else app.answer(message, context)


@pytest.fixture
def stand_in(monkeypatch):
    app = SimpleNamespace(ConfigRecord=dict, RecordDict=dict, Message=Letter)
    monkeypatch.setattr(flower, "_flower", lambda: (app, SimpleNamespace(ClientApp=Client)))


def apps(agreed, keys, cells):
    return {
        number: centre_app(lambda context, name=name: Institution(agreed, name, keys[name], cells[name]))
        for number, name in enumerate(cells, 100)
    }


def test_strangers_on_the_grid_keep_nobody_out(stand_in):
    agreed, keys, cells = small_round(3, 50, absences=0)
    nodes = dict.fromkeys(range(7)) | apps(agreed, keys, cells)
    start = time.monotonic()
    found = coordinate_with_flower(agreed, Grid(nodes), join_seconds=100.0)
    assert set(found.included) == set(cells)
    assert np.abs(found.values - sum(cells.values()) * agreed.grid).max() < 10 * found.deviation
    assert time.monotonic() - start < 60  # who says nothing would be waited for


def test_a_round_is_not_answered_twice(stand_in):
    agreed, keys, cells = small_round(3, 50, absences=0)
    nodes = apps(agreed, keys, cells)
    coordinate_with_flower(agreed, Grid(nodes), join_seconds=5.0)
    with pytest.raises(RoundFailedError):
        coordinate_with_flower(agreed, Grid(nodes), join_seconds=1.0)


def test_why_a_node_fails_is_told_by_its_kind_alone(stand_in):
    """The words of an error are for the node's own people: the coordinator hears what kind of thing it was."""
    agreed, keys, cells = small_round(3, 50, absences=0)
    secret = "north has 17 patients in /data/ward"

    def broken(context):
        raise DataError(secret)

    grid = Grid(apps(agreed, keys, cells) | {100: centre_app(broken)})
    replies = [
        grid._reply(flower._FlowerCoordination._message(node, Frame({"kind": "keys"}, b""))) for node in grid.apps
    ]
    assert len(replies) == 3
    assert not any(secret in str(reply.content) or "This node" in str(reply.content) for reply in replies)
    with pytest.raises(RoundFailedError, match=r"node 100 \(its tables are missing") as failure:
        coordinate_with_flower(agreed, grid, join_seconds=1.0)
    assert secret not in str(failure.value)
