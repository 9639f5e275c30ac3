"""Every test has a user of its own: the list of ledgers that commands keep is not shared."""

from __future__ import annotations

import gc
import itertools
from functools import cache

import pytest
import typer.testing

from day import leave_to_the_night

#: Typer makes all commands anew each time one is called in a test: a twentieth of a second.
_MAKER = "_get_command"
if hasattr(typer.testing, _MAKER):
    setattr(typer.testing, _MAKER, cache(getattr(typer.testing, _MAKER)))

gc.disable()  # what is collected stays to the end: looking through it again and again finds nothing


def pytest_collection_finish():
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # tests make much and keep little
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Examples in docstrings are those of the package and of recipes: files of tests are not searched for them."""
    found = yield
    tests = file_path.name.startswith("test_")
    return [one for one in found if not (tests and type(one).__name__ == "DoctestModule")]


def pytest_unconfigure():
    gc.unfreeze()  # libraries count at the end of a process what was not given back


@pytest.hookimpl(tryfirst=True)  # before cases are left out by their marks
def pytest_collection_modifyitems(config, items):
    """The processes of one run begin with what takes longest, so that none is left with it at the end."""
    leave_to_the_night(items)
    if named_by_place := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        # Two processes name such a test differently, and neither of them then runs any.
        raise pytest.UsageError(f"Tests named by where an object lies in memory: {named_by_place}. Give them ids.")
    if hasattr(config, "workerinput"):
        from sharing import by_length

        items.sort(key=lambda item: by_length(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """See tests/sharing.py; who asks for another distribution gets it."""
    if config.getvalue("dist") != "loadfile":
        return None
    from sharing import SharedOut

    return SharedOut(config, log)


@pytest.fixture(scope="session")
def states(tmp_path_factory):
    """A folder for every test, counted here: pytest would look through all earlier ones for the next free name."""
    parent, numbers = tmp_path_factory.mktemp("states"), itertools.count()
    return lambda: parent / str(next(numbers))


@pytest.fixture(autouse=True, scope="module")
def module_state(states):
    """What the fixtures of a module charge is known to that module, and not to the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE", str(states()))
        yield


@pytest.fixture(autouse=True)
def own_state(states, module_state, monkeypatch):
    """Named and not made: a command that has something to remember makes it."""
    monkeypatch.setenv("SFUMATO_STATE", str(states()))
