"""Every test has a user of its own: the list of ledgers that commands keep is not shared."""

from __future__ import annotations

import pytest

#: Fixtures that take seconds and serve several tests: `--dist loadgroup` gives these tests to one process.
SHARED = frozenset(("fifty", "demo", "everything", "cluster"))


def pytest_collection_modifyitems(items):
    for item in items:
        for name in SHARED.intersection(_fixtures(item)):
            item.add_marker(pytest.mark.xdist_group(name))


def _fixtures(item):
    """Those a test names, and the cluster where its parameter asks for one."""
    names = getattr(item, "fixturenames", ())
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return {*names, "cluster"} if parameters.get("engine") == "dask" else names


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path_factory.mktemp("state")))
