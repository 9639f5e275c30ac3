"""A ledger in a folder of its own, with ε = 1 for the dataset "survey"."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.run import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    made = Ledger(path)
    made.grant("survey", 1.0)
    return made
