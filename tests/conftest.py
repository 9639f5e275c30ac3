"""Every test has a user of its own: the list of ledgers that commands keep is not shared."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

#: Fixtures that take seconds and serve several files: `--dist loadgroup` gives these tests to one process.
SHARED = frozenset(("fifty", "demo", "everything", "cluster"))


def pytest_collection_modifyitems(items):
    """What is made once for several tests is made in one process: the others of a file go to any."""
    for item in items:
        names = SHARED.intersection(_fixtures(item)) or ({item.path.name} if _keeps(item) else ())
        for name in names:
            item.add_marker(pytest.mark.xdist_group(name))


def _fixtures(item):
    """Those a test names, and the cluster where its parameter asks for one."""
    names = getattr(item, "fixturenames", ())
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return {*names, "cluster"} if parameters.get("engine") == "dask" else names


def _keeps(item):
    """Whether its file keeps something between tests: a fixture of the module, or a function with a memory."""
    fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(made[-1].scope == "module" for made in fixtures.values()) or _remembers(getattr(item, "module", None))


@cache
def _remembers(module):
    return any(
        hasattr(one, "cache_info") and one.__module__ == module.__name__ for one in vars(module or object).values()
    )


@pytest.fixture(scope="session")
def states(tmp_path_factory):
    """A folder for every test, counted here: pytest would look through all earlier ones for the next free name."""
    parent, numbers = tmp_path_factory.mktemp("states"), itertools.count()
    return lambda: parent / str(next(numbers))


@pytest.fixture(autouse=True)
def own_state(states, monkeypatch):
    folder = states()
    folder.mkdir()
    monkeypatch.setenv("SFUMATO_STATE", str(folder))
