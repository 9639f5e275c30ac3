"""A PostgreSQL of one's own on a free port, for as long as it is needed; shared by benchmarks and tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def installed() -> Path | None:
    """The folder of the server's programs, if there is one."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    return next((path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None)


@contextmanager
def postgresql(binaries: Path) -> Iterator[str]:
    """The address of a new, empty server that is gone afterwards."""
    # Not below pytest's folder: every session of tests that starts closes it to other users again.
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgresql-"))
    command, data, port = _as_a_user(folder), folder / "data", _free_port()
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"

    def call(program: str, *words: object, check: bool = True) -> None:
        subprocess.run([*command, binaries / program, "-D", data, *words], check=check, stdout=subprocess.DEVNULL)

    call("initdb", "-U", "tester", "-E", "UTF8", "--auth=trust", "--no-sync")
    call("pg_ctl", "-w", "-t", "60", "-l", folder / "log", "-o", options, "start")
    try:
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-m", "immediate", "stop", check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _as_a_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam("postgres" if any(one.pw_name == "postgres" for one in pwd.getpwall()) else "nobody")
    for parent in (folder, *folder.parents):
        if parent == Path(parent.anchor) or not os.access(parent, os.W_OK):
            break
        parent.chmod(parent.stat().st_mode | 0o011)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
