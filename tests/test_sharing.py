"""How tests are shared out among processes: what is made once is made in one of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sharing import CLUSTER, LONG, by_length, file_of

ROOT = Path(__file__).parent.parent


def test_files_that_share_a_cluster_go_together():
    assert {"tests/run/test_engine_fit.py", "tests/run/test_synthesize.py", "tests/run/test_marginals.py"} <= set(
        CLUSTER
    )
    assert "tests/run/test_ledger.py" not in CLUSTER


def test_no_test_hides_an_example_that_is_not_run():
    """tests/conftest.py does not look for examples in files of tests."""
    example = re.compile(r"^\s*>>> ", re.MULTILINE)
    assert not [
        path.name for path in (ROOT / "tests").rglob("test_*.py") if example.search(path.read_text(encoding="utf-8"))
    ]


def test_what_takes_longest_comes_first():
    names = ["tests/core/test_special.py::test_a", f"{LONG[1]}::test_b[x::y]", f"{LONG[0]}::test_c"]
    assert sorted(names, key=by_length) == names[::-1]
    assert all((ROOT / name).exists() for name in LONG)
    assert file_of(names[1]) == LONG[1]


_ONCE = """
import os, pytest

@pytest.fixture(scope="module")
def made():
    with open({log!r}, "a") as log:
        log.write(__name__ + "\\n")

@pytest.mark.parametrize("number", range(3))
def test_one(made, number):
    pass
"""


@pytest.mark.timeout(900)
def test_what_a_file_makes_is_made_in_one_process(tmp_path):
    """The distribution of `make test`, over four files of three tests each: four fixtures are made, and not eight.

    Two seconds of work; but every test is announced and reported to another process, and on busy cores each of these
    words waits for its turn.
    """
    log = tmp_path / "log"
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(_ONCE.format(log=str(log)))
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    for name in ("sharing.py", "day.py"):
        (tmp_path / name).write_text((ROOT / "tests" / name).read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", "-n", "2", "--dist", "loadfile"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(command, check=False, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=800)
    assert "12 passed" in ended.stdout, ended.stdout + ended.stderr
    assert sorted(log.read_text().split()) == [f"test_{name}" for name in "abcd"]
