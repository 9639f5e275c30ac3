"""The secret of a run that may be retried or resumed: a file beside the ledger, destroyed once the run is committed.

In:   the ledger's path and what the run is bound to (plan, input, layout).
Out:  RunKey: a StreamKey, the name of the run in the ledger, whether an earlier attempt is being resumed.
Not here: streams (mechanisms/bits.py), reservations (ledger/ledger.py).
Proof: docs/proofs/keyed_streams.md

The key is on disk before the first draw, so an interrupted run can go on with the same noise and pays once. A key is
bound to one plan on one input: on any other the noise would be used twice, and the difference of the two would show the
rows. Whoever can read this file and the published table can subtract the noise: it has mode 0600, lies in a folder of
mode 0700, and is overwritten and removed when the run is over. A file system that keeps old copies (snapshots, backups)
should not hold the ledger's folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any, final

from sfumato.errors import LedgerError, LedgerLockedError
from sfumato.mechanisms.bits import StreamKey

try:
    import fcntl
except ImportError:  # without POSIX locks one process at a time is up to the user
    fcntl = None

__all__ = ["RunKey", "binding"]

_MOST_ATTEMPTS = 1000


def binding(*facts: Any) -> str:
    """One name for everything that must not change between two attempts."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@final
class RunKey:
    """An open key file, locked for this process. Use as a context; `destroy` when nothing may be drawn from it again.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with RunKey.open(Path(folder.name) / "ledger.db", binding("plan", "input")) as first:
    ...     pass
    >>> with RunKey.open(Path(folder.name) / "ledger.db", binding("plan", "input")) as again:
    ...     again.resumed, again.run == first.run
    (True, True)
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, file: int, record: dict[str, str], resumed: bool) -> None:
        self.path, self.resumed = path, resumed
        self.run = record["run"]
        self.key = StreamKey(bytes.fromhex(record["secret"]))
        self._file: int | None = file

    def __repr__(self) -> str:
        return f"RunKey({self.path.name!r}, resumed={self.resumed})"

    @classmethod
    def open(cls, ledger: Path, bound_to: str) -> RunKey:
        """The key of the run bound to these facts: an earlier attempt's if it was left, else a new one."""
        real = ledger.resolve()  # by whatever link it is named
        folder = real.with_name(f"{real.name}.keys")
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            _check_private(os.stat(folder), folder)
            path = folder / f"{bound_to[:32]}.key"
            file = _locked(path)
            _check_private(os.fstat(file), path)
        except OSError as error:
            raise LedgerError(
                f"{folder}: no key can be kept there ({os.strerror(error.errno or 0)}). Nothing was drawn or spent."
            ) from None
        record = _read(file, bound_to)
        if record is not None:
            return cls(path, file, record, resumed=True)
        return cls(path, file, _write(file, path, bound_to), resumed=False)

    def renew(self) -> None:
        """Another secret and another name: the earlier run was committed, and its noise may not be drawn again."""
        assert self._file is not None
        record = _write(self._file, self.path, _read_binding(self._file))
        self.run, self.key, self.resumed = record["run"], StreamKey(bytes.fromhex(record["secret"])), False

    def destroy(self) -> None:
        """Overwrite and remove. A crash before this leaves a key whose run is committed: it is not resumed."""
        if self._file is None:
            return
        size = os.fstat(self._file).st_size
        os.pwrite(self._file, os.urandom(size), 0)
        os.fsync(self._file)
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> RunKey:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _check_private(status: os.stat_result, path: Path) -> None:
    """A key that somebody else could have written or read protects nothing."""
    if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
        raise LedgerError(
            f"{path.name} belongs to somebody else or is open to others: a key there may be known. Remove it, or keep "
            "the ledger in a folder of your own. Nothing was drawn or spent."
        )


def _locked(path: Path) -> int:
    for _ in range(_MOST_ATTEMPTS):
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.stat(path), os.fstat(file)):
                return file
        except BlockingIOError:
            os.close(file)
            raise LedgerLockedError(
                "The same release is running in another process. Wait for it, or end it. Nothing was drawn or spent."
            ) from None
        os.close(file)  # it was removed between opening and locking: take the new one
    raise LedgerLockedError(
        "Another process makes and removes the key of the same release over and over. End it. Nothing was drawn "
        "or spent."
    )


def _content(file: int) -> dict[str, Any]:
    try:
        record = json.loads(os.pread(file, 4096, 0))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _read_binding(file: int) -> str:
    return str(_content(file).get("binding", ""))


def _read(file: int, bound_to: str) -> dict[str, str] | None:
    """What an earlier attempt left, if it is whole; half a file was never drawn from."""
    record = _content(file)
    run = str(record.get("run", ""))
    named = len(run) == 32 and all(digit in "0123456789abcdef" for digit in run)  # it becomes the name of a folder
    if record.get("binding") != bound_to or len(str(record.get("secret", ""))) != 64 or not named:
        return None
    return record


def _write(file: int, path: Path, bound_to: str) -> dict[str, str]:
    record = {"run": uuid.uuid4().hex, "secret": StreamKey.fresh().export().hex(), "binding": bound_to}
    text = json.dumps(record).encode()
    os.ftruncate(file, 0)
    os.pwrite(file, text, 0)
    os.fsync(file)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return record
