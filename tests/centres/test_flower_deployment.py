"""A round on a real SuperLink with SuperNodes, each a process of its own on this machine. Run by `make federated`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from centres.flower_play import key_of
from centres.small_rounds import PROMISE, is_planned_noise
from sfumato.centres import Centre, ClippedSums, plan_round

TESTS = Path(__file__).parents[1]
PROGRAMS = Path(sys.executable).parent
NODES = 3
PROJECT = """
[project]
name = "hospitals"
version = "1.0.0"
dependencies = []
[tool.hatch.build.targets.wheel]
packages = ["."]
[tool.flwr.app]
publisher = "sfumato"
[tool.flwr.app.components]
serverapp = "hospitals.apps:server"
clientapp = "hospitals.apps:client"
[tool.flwr.app.config]
place = "nowhere"
"""
APPS = """
import json
from pathlib import Path
from flwr.serverapp import ServerApp
from centres.flower_play import institution_from
from sfumato.centres import Round
from sfumato.centres.flower import centre_app, coordinate_with_flower

PLACE = Path({place!r})
client = centre_app(institution_from(str(PLACE / "round.json")))
server = ServerApp()

@server.main()
def main(grid, context):
    agreed = Round.from_dict(json.loads((PLACE / "round.json").read_text())).fresh()
    found = coordinate_with_flower(agreed, grid, join_seconds=300.0)
    text = json.dumps({{"included": list(found.included), "values": found.values.tolist()}})
    (PLACE / "found.tmp").write_text(text)
    (PLACE / "found.tmp").rename(PLACE / "found.json")
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextmanager
def programs(tmp_path, commands):
    """All of them in the background; ended afterwards, whatever happened, each by its own handle."""
    home = tmp_path / "flower"
    home.mkdir()
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")])
    own = {**os.environ, "FLWR_HOME": str(home), "PYTHONPATH": paths, "FLWR_TELEMETRY_ENABLED": "0"}
    own["PATH"] = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    started, logs = [], []
    try:
        for number, (name, *words) in enumerate(commands):
            logs.append(tmp_path / f"{number} {name}.log")
            with logs[-1].open("w") as log:
                program = [str(PROGRAMS / name), *map(str, words)]
                started.append(subprocess.Popen(program, env=own, stdout=log, stderr=log, start_new_session=True))
        yield own, logs
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


@pytest.mark.federated
def test_a_round_on_a_superlink_with_supernodes(tmp_path):
    members = [Centre(f"centre {n}", key_of(n).public_key().public_bytes_raw().hex()) for n in range(NODES)]
    agreed = plan_round("x", members, ClippedSums(400, 1.0), [PROMISE], most_patients=100, step_seconds=120.0)
    (tmp_path / "round.json").write_text(json.dumps(agreed.to_dict()))
    app = tmp_path / "app"
    (app / "hospitals").mkdir(parents=True)
    (app / "pyproject.toml").write_text(PROJECT)
    (app / "hospitals" / "__init__.py").write_text("")
    (app / "hospitals" / "apps.py").write_text(APPS.format(place=str(tmp_path)))
    port = free_port()
    address = f"127.0.0.1:{port}"
    link = ["flower-superlink", "--insecure", "--port", port, "--disable-runtime-dependency-installation"]
    nodes = [
        ["flower-supernode", "--insecure", "--superlink", address, "--port", free_port(),
         "--node-config", f"partition-id={number} num-partitions={NODES}"]
        for number in range(NODES)
    ]  # fmt: skip
    with programs(tmp_path, [link, *nodes]) as (own, logs):
        config = Path(own["FLWR_HOME"]) / "config.toml"
        config.write_text(f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{address}"\ninsecure = true\n')
        start = time.monotonic()
        submitted = submit(app, own, deadline=start + 120)
        while not (tmp_path / "found.json").exists() and time.monotonic() < start + 500:
            time.sleep(0.5)
        told = "\n".join(f"{log.name}:\n{log.read_text()[-3000:]}" for log in logs)
        assert (tmp_path / "found.json").exists(), f"{submitted}\n{told}"
        spent = time.monotonic() - start
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["included"] == [centre.name for centre in members]
    exact = 1000 * sum(range(1, NODES + 1)) * agreed.grid * np.ones(400)
    assert is_planned_noise(np.array(found["values"]) - exact, agreed.deviation(NODES))
    print(f"{NODES} SuperNodes, 400 numbers: {spent:.1f} s from `flwr run` to the sum")


def submit(app, own, deadline):
    """`flwr run`, as soon as the SuperLink answers."""
    while True:
        words = [str(PROGRAMS / "flwr"), "run", str(app), "here"]
        done = subprocess.run(words, env=own, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode == 0 or time.monotonic() > deadline:
            return done.stdout + done.stderr
        time.sleep(1)
