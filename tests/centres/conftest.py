"""Rounds of tests: who refuses has a moment to come again, not half a minute."""

from __future__ import annotations

import pytest

from sfumato.centres.network import Coordination


@pytest.fixture(autouse=True)
def short_second_chance(monkeypatch):
    monkeypatch.setattr(Coordination, "second_chance", 3.0)
