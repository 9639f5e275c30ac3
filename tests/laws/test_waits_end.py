"""Every wait of the product has a bound, or stands below with the reason why it needs none.

Read from the text: a call that may wait for somebody else says for how long, a lock on a file is asked for without
waiting, and what is awaited from a connection is awaited under a time limit.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"

#: Methods that wait for ever unless they are told how long; `get` and `join` of a dict or a text take other arguments.
WAITING = frozenset(("wait", "result", "acquire", "communicate", "join", "get", "wait_for_workers"))
#: What waits for the other end of a connection; those that only pass it on are named here themselves.
AWAITED = frozenset(
    (
        *("wait", "wait_closed", "drain", "readexactly", "readline", "read", "open_connection"),
        *("read_frame", "read_message", "write_frame"),
    )
)
STARTED = frozenset(("run", "call", "check_call", "check_output"))
#: Unbounded on purpose: the place, what stands there, why it ends.
ENDS = {
    ("run/tables.py", "waiting.get()"): "a daemon thread, ended by its reader's `finally`, which waits only so long",
    ("lang/deadline.py", "_end.get()"): "a context variable",
    ("core/curator.py", "_told.get()"): "a context variable",
    ("learn/arrays.py", "array.get()"): "an array leaves its device",
    ("centres/flower.py", "self.conductor.result()"): "the sum of a round, computed here",
    ("centres/network.py", "self.conductor.result()"): "the sum of a round, computed here",
    ("centres/memory.py", "conductor.result()"): "the sum of a round, computed here",
}
#: Files of helpers whose callers hold the time limit.
HELPERS = frozenset(("centres/wire.py",))
#: Most modules have nothing of the kind and need not be parsed.
_MAY_WAIT = re.compile(r"[.](" + "|".join(sorted(WAITING)) + r")\(\s*\)|\b(await|recv|flock|lockf|subprocess)\b")


def unbounded(text: str, helper: bool = False) -> list[str]:
    """The calls of a module that may wait for ever, as they are written."""
    tree = ast.parse(text)
    limited = {
        id(part)
        for block in ast.walk(tree)
        if isinstance(block, ast.AsyncWith) and any("timeout" in ast.unparse(item) for item in block.items)
        for part in ast.walk(block)
    }
    awaited = {id(node.value): node for node in ast.walk(tree) if isinstance(node, ast.Await)}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [ast.unparse(call) for call in calls if _waits(call, id(call) in awaited, helper or id(call) in limited)]


def _waits(call: ast.Call, is_awaited: bool, is_limited: bool) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if is_awaited:
        return name in AWAITED and not is_limited
    if name in ("flock", "lockf"):
        return "LOCK_NB" not in ast.unparse(call) and "LOCK_UN" not in ast.unparse(call)
    if name in STARTED and ast.unparse(call.func).startswith("subprocess."):
        return not any(word.arg == "timeout" for word in call.keywords)
    if name == "recv":
        return True
    return isinstance(call.func, ast.Attribute) and name in WAITING and not (call.args or call.keywords)


def modules() -> list[str]:
    found = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    return sorted(path.relative_to(SOURCE).as_posix() for path, text in found.items() if _MAY_WAIT.search(text))


def test_every_wait_of_the_product_is_bounded():
    found = {
        (name, call)
        for name in modules()
        for call in unbounded((SOURCE / name).read_text(encoding="utf-8"), name in HELPERS)
    }
    assert found == set(ENDS)


RELATIVES = {
    "a result": "def f(future):\n    return future.result()",
    "a process": "import subprocess\nsubprocess.run(['dot'], check=True)",
    "a child": "def f(child):\n    child.wait()",
    "a socket": "def f(socket):\n    return socket.recv(9)",
    "a thread": "def f(thread):\n    thread.join()",
    "a queue": "def f(queue):\n    return queue.get()",
    "a lock": "def f(lock):\n    lock.acquire()",
    "a lock on a file": "import fcntl\nfcntl.flock(1, fcntl.LOCK_EX)",
    "a message": "async def f(reader):\n    return await reader.readexactly(4)",
    "a frame beside the limit": (
        "async def f(reader):\n    async with asyncio.timeout(3):\n        pass\n    await read_frame(reader, 9)"
    ),
}
BOUNDED = (
    "import asyncio, fcntl, subprocess\n"
    "async def f(reader, future, thread, words, table):\n"
    "    async with asyncio.timeout(3):\n        await read_frame(reader, 9)\n"
    "    subprocess.run(['dot'], timeout=9)\n"
    "    fcntl.flock(1, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    "    return future.result(timeout=2), thread.join(5), ', '.join(words), table.get('key')\n"
)


@pytest.mark.parametrize("kind", RELATIVES)
def test_the_law_finds(kind):
    assert _MAY_WAIT.search(RELATIVES[kind])
    assert len(unbounded(RELATIVES[kind])) == 1
    assert unbounded(BOUNDED) == []
