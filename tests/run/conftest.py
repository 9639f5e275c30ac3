"""A ledger in a folder of its own, with ε = 1 for the dataset "survey"; the engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.errors import SfumatoError
from sfumato.ledger import Ledger
from sfumato.run.engine.engine import LocalEngine, open_engine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    made = Ledger(path)
    made.grant("survey", 1.0)
    return made


@pytest.fixture(scope="package")  # and not longer: idle workers take a thirtieth of a core
def cluster():
    """Two worker processes, as `--engine dask` starts them."""
    pytest.importorskip("distributed")
    try:
        opened = open_engine("dask", workers=2)
    except SfumatoError as error:  # a machine that starts no workers in time says nothing about the code
        pytest.skip(f"no workers could be started here: {error}")
    with opened as engine:
        yield engine


@pytest.fixture(params=["local", "dask"])
def engine(request):
    """What holds on one engine holds on all."""
    return LocalEngine() if request.param == "local" else request.getfixturevalue("cluster")
