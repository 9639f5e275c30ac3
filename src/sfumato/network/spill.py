"""A private folder for what does not fit into memory: nobody else may look into it, and it does not outlive its use.

In:   nothing.
Out:  SpillFolder, a folder of mode 0700 in the system's place for temporary files, removed when it is closed.
Not here: what is written into it (the engine of network/tables.py).

A process that is killed removes nothing. Its lock ends with it, so the next process that opens a folder sees which
folders are nobody's and removes these first.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import IO

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows: a file that is open cannot be removed, which tells the same
    fcntl = None

__all__ = ["SpillFolder", "remove_abandoned"]

_PREFIX = "sfumato-spill-"
_LOCK = "in-use"


class SpillFolder:
    """One folder. Close it, or let it go: both remove it.

    >>> folder = SpillFolder()
    >>> oct(folder.path.stat().st_mode & 0o777)
    '0o700'
    >>> folder.close()
    >>> folder.path.exists()
    False
    """

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._process = os.getpid()
        fresh = self.path / "new"
        self._lock: IO[bytes] = fresh.open("wb")
        if fcntl is not None:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody else knows the file yet
        # Under its name the lock is never seen free while its process lives.
        fresh.rename(self.path / _LOCK)

    def is_empty(self) -> bool:
        """Whether nothing was written into it, or all of that was removed."""
        return [path.name for path in self.path.iterdir()] == [_LOCK]

    def close(self) -> None:
        """Remove the folder with everything in it; a second time nothing happens, nor in a forked child."""
        if os.getpid() != self._process:
            return
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()


def remove_abandoned() -> None:
    """Remove the folders of this user's processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if _is_mine(folder) and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_mine(folder: Path) -> bool:
    status = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and (fcntl is None or status.st_uid == os.getuid())


def _is_abandoned(folder: Path) -> bool:
    lock = folder / _LOCK
    if not lock.exists():  # being made, or being removed
        return False
    if fcntl is None:
        with suppress(OSError):
            lock.unlink()
            return True
        return False
    with lock.open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
