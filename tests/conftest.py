"""Every test has a user of its own: the list of ledgers that commands keep is not shared."""

from __future__ import annotations

import pytest

#: Fixtures that take seconds and serve several tests: `--dist loadgroup` gives these tests to one process.
SHARED = frozenset(("fifty", "demo", "everything"))


def pytest_collection_modifyitems(items):
    for item in items:
        for name in SHARED.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path_factory.mktemp("state")))
