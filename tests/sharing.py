"""How the tests of one run are shared out among its processes.

A file goes to one process, so that what it makes once (a fixture of the module, a function with a memory) is made
once; files that share more than that go together. What takes longest comes first, and no process is left with it at the
end. The nightly run has few and long tests: there each is handed out by itself.
"""

from __future__ import annotations

import re
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

_TESTS = Path(__file__).parent
_ON_A_CLUSTER = re.compile(r"^def test\w*\([^)]*\b(engine|cluster)\b|getfixturevalue\(\"cluster\"\)", re.MULTILINE)
#: Files whose tests use the same worker processes (tests/run/conftest.py).
CLUSTER = tuple(
    f"tests/run/{path.name}"
    for path in sorted((_TESTS / "run").glob("test_*.py"))
    if _ON_A_CLUSTER.search(path.read_text(encoding="utf-8"))
)
#: Files whose tests look at the parsed source (tests/source.py).
SOURCE = ("tests/test_architecture.py", "tests/test_words.py")
_TOGETHER = {name: files[0] for files in (CLUSTER, SOURCE) for name in files}
#: Files of five seconds and more, the longest first. Another order costs seconds at the end of a run, no more.
LONG = (
    *CLUSTER,
    "tests/laws/test_truth.py",
    "tests/laws/test_coverage.py",
    "tests/laws/test_questions.py",
    "tests/laws/test_one_cell.py",
    "tests/run/test_publish.py",
    "tests/laws/test_every_mechanism.py",
    "tests/learn/test_equilibrium.py",
    "tests/papers/test_park.py",
    "tests/test_cli.py",
    "tests/study/test_builder.py",
    "tests/test_past_holes.py",
    "tests/test_readme.py",
)
_PLACES = {name: place for place, name in enumerate(LONG)}


def file_of(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


def by_length(nodeid: str) -> int:
    """Where its file comes: those of `LONG` in their order, then all others as they are."""
    return _PLACES.get(file_of(nodeid), len(LONG))


class SharedOut(LoadFileScheduling):
    """Files in the order in which they were collected; of a nightly run, single tests."""

    def __init__(self, config, log=None):
        super().__init__(config, log)
        config.option.loadscopereorder = False
        self._nightly = config.option.markexpr == "slow"

    def _split_scope(self, nodeid: str) -> str:
        name = file_of(nodeid)
        return nodeid if self._nightly else _TOGETHER.get(name, name)
