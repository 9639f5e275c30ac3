"""A round over Flower's simulated grid: its transport, our masks. `make federated` installs Flower and runs them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from centres.flower_play import institution_from, key_of
from centres.small_rounds import PROMISE, is_planned_noise
from sfumato.centres import Centre, ClippedSums, flower, plan_round
from sfumato.centres.flower import centre_app, coordinate_with_flower
from sfumato.errors import InputError, RoundFailedError

pytestmark = [pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def answered(monkeypatch):
    """Joining ends when each of the five nodes has joined or refused; on a busy machine that may take minutes."""
    here = flower._FlowerCoordination
    monkeypatch.setattr(here, "_everybody_is_here", lambda self: len(self._nodes) + len(self.conductor.absent) == 5)


def play(tmp_path, refusing=()):
    """Five nodes; the result or the error of the server."""
    from flwr.serverapp import ServerApp
    from flwr.simulation import run_simulation

    members = [Centre(f"centre {n}", key_of(n).public_key().public_bytes_raw().hex()) for n in range(5)]
    agreed = plan_round(
        "x", members, ClippedSums(400, 1.0), [PROMISE], most_patients=100, absences=2, step_seconds=300.0
    )
    path = tmp_path / "round.json"
    path.write_text(json.dumps(agreed.to_dict()))
    found = []
    server = ServerApp()

    @server.main()
    def main(grid, context):
        try:
            found.append(coordinate_with_flower(agreed.fresh(), grid, join_seconds=600.0))
        except RoundFailedError as error:
            found.append(error)

    run_simulation(
        server_app=server,
        client_app=centre_app(institution_from(str(path), refusing)),
        num_supernodes=5,
        backend_config={"client_resources": {"num_cpus": 1}},
    )
    return agreed, found[0]


@pytest.mark.federated
def test_the_sum_arrives_exactly_with_the_planned_noise(tmp_path, answered):
    agreed, found = play(tmp_path)
    assert len(found.included) == 5
    assert is_planned_noise(found.values - 1000 * 15 * agreed.grid * np.ones(400), found.deviation)


@pytest.mark.federated
def test_two_of_five_nodes_stay_away(tmp_path, answered):
    agreed, found = play(tmp_path, refusing=(0, 3))
    assert set(found.included) == {"centre 1", "centre 2", "centre 4"}
    assert is_planned_noise(found.values - 1000 * 10 * agreed.grid * np.ones(400), found.deviation)


@pytest.mark.federated
def test_three_are_too_many(tmp_path, answered):
    _, error = play(tmp_path, refusing=(0, 2, 3))
    assert isinstance(error, RoundFailedError)


def test_without_flower_the_way_out_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "flwr.app", None)
    with pytest.raises(InputError, match="federated"):
        centre_app(lambda context: None)
