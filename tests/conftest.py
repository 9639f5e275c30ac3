"""Every test has a user of its own: the list of ledgers that commands keep is not shared."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SFUMATO_STATE", str(tmp_path_factory.mktemp("state")))
