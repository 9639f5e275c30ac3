"""The hidden folder in which a release is made, and the one step that shows it.

In:   where the release is to go, what it is, the reservations that pay for it.
Out:  the complete folder in its place, or a hidden one and a message that says where it is and how to finish.
Not here: what is written (run/study_files.py, run/tables.py), what it costs (ledger/ledger.py).

    drawing ──complete──▶ complete ──(commit)──▶ publish
       │                     └── kept, whatever happens: the next attempt commits and publishes exactly these files
       └── removed: nobody may see it, and what it cost stays counted

Everything that can fail is tried before anything is reserved: the name, the place, links and mount points, permissions,
room on the disk, and the very rename that ends the run. A folder is only ever removed if it carries this program's
marker, the marker names the same target, no process holds its lock, and it was not complete.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sfumato.errors import InputError, UnfinishedError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation
from sfumato.run.manifest import hash_of, hashes

try:
    import fcntl
except ImportError:  # without POSIX locks one process at a time is up to the user
    fcntl = None

__all__ = ["Staging", "check_target", "finish", "is_waiting"]

MARKER = ".sfumato-unfinished.json"
_SPACE = ".room"


def check_target(out: Path) -> None:
    """InputError unless `out` can become a new folder; nothing is left behind by looking."""
    if out.name in ("", ".", ".."):
        raise InputError(f"{out} is no name for a new folder: choose one with --out. Nothing was spent.")
    try:
        link, taken = out.is_symlink(), out.exists() and not (out.is_dir() and not any(out.iterdir()))
    except OSError as error:
        raise InputError(f"{out} cannot be used ({error.strerror}): choose another. Nothing was spent.") from None
    kind = "a link" if link else "a mount point" if out.is_mount() else ""
    if kind:
        raise InputError(
            f"{out} is {kind}; a release becomes a folder in one step. Choose a new one. Nothing was spent."
        )
    if taken:
        raise InputError(f"{out} exists and is not an empty folder: choose a new one with --out. Nothing was spent.")
    if not _absolute(out).parent.is_dir():
        raise InputError(f"The folder {_absolute(out).parent} does not exist. Nothing was spent.")


@dataclass
class Staging:
    """A hidden folder of one run, locked for this process.

    `run` says what is made: a plan's hash or a table's facts, and after a colon which attempt it is.
    """

    folder: Path
    out: Path
    run: str
    again: str
    _marker: int | None = None
    _complete: bool = False

    @classmethod
    @contextmanager
    def open(
        cls, out: Path, run: str, *, again: str, room: int = 0, files: Iterable[str] = (), keep: bool = False
    ) -> Iterator[Self]:
        """Make the folder, try everything that could fail later, and remove it again unless it became complete.

        `again` is the command that finishes an interrupted run; `room` is about how many bytes will be written; `files`
        are the names that will be used. With `keep` an incomplete folder of the same run is taken up and kept, which
        is right only where the same noise is drawn again.
        """
        check_target(out)
        folder = _place(out)
        _clear(folder, out, run, again, keep)
        staging = cls(folder, out, run, again)
        try:
            staging._make(room, files, resumed=keep and folder.exists())
            yield staging
        finally:
            staging._leave(keep)

    def complete(
        self, ledger: Ledger | None, reservations: Sequence[Reservation], *, paid_elsewhere: bool = False
    ) -> None:
        """Everything is written. From here on the folder is kept until it is published, whatever happens.

        `paid_elsewhere` is said of a sum over centres: each of them has paid in its own ledger.
        """
        paid = [] if ledger is None else [reservation.id for reservation in reservations]
        book = None if ledger is None else str(ledger.path.resolve())
        for path in self.folder.rglob("*"):
            _sync(path)
        self._write("complete", ledger=book, reservations=paid, files=_top(self.folder), paid_elsewhere=paid_elsewhere)
        _sync(self.folder)
        self._complete = bool(paid) or paid_elsewhere

    def publish(self) -> None:
        """Give the folder its name. What fails now loses nothing: the hidden folder stays, the message says where."""
        self._complete = True
        try:
            self._show()
        except OSError as error:
            raise UnfinishedError(
                f"The results are complete and paid for, and {self.out} could not be made ({error.strerror}). They lie "
                f"in {self.folder}: nothing is lost and nothing more will be charged. Make room at {self.out}, then "
                f"{self.again}"
            ) from error
        self._release_lock()

    def _make(self, room: int, files: Iterable[str], *, resumed: bool) -> None:
        try:
            if not resumed:
                self.folder.mkdir(mode=0o700)
                _rehearse(self.folder, self.out)
            self._marker = _locked(self.folder / MARKER)
            self._write("drawing")
            for name in files:
                path = self.folder / name
                path.parent.mkdir(mode=0o700, exist_ok=True)
                path.touch()
                path.unlink()
            _try_room(self.folder / _SPACE, room)
        except OSError as error:
            raise InputError(
                f"{self.out} cannot be made ({error.strerror}): choose another folder with --out. Nothing was drawn or "
                "spent."
            ) from None

    def _write(self, state: str, **facts: Any) -> None:
        record = {"program": "sfumato", "out": str(_absolute(self.out)), "run": self.run, "state": state, **facts}
        assert self._marker is not None
        text = json.dumps(record).encode()
        draft = self.folder / f"{MARKER}.{secrets.token_hex(4)}"
        # The lock stays on the first file; what counts is the name, which changes its content in one step.
        draft.write_bytes(text)
        _sync(draft)
        os.replace(draft, self.folder / MARKER)

    def _show(self) -> None:
        for path in (self.folder, *(inner for inner in self.folder.rglob("*") if inner.is_dir())):
            path.chmod(0o755)
        if os.name == "nt" and self.out.exists():
            self.out.rmdir()
        os.rename(self.folder, self.out)  # takes the place of an empty folder in the same step
        with suppress(OSError):  # it is shown: a marker that stays says nothing any more
            for own in (MARKER, f"{MARKER}.lock"):
                (self.out / own).unlink(missing_ok=True)
        _sync(_absolute(self.out).parent)

    def _leave(self, keep: bool) -> None:
        if not self._complete and not keep and self._marker is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._release_lock()

    def discard(self) -> None:
        """Remove what was drawn: it may not be used, and nobody has seen it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _release_lock(self) -> None:
        if self._marker is not None:
            os.close(self._marker)
            self._marker = None


def finish(
    out: Path, run: str, ledger: Ledger | None, again: str, *, before: Callable[[], None] = lambda: None
) -> bool:
    """Publish what an interrupted run left complete, exactly as it was drawn; False if it left nothing of the kind.

    `before` is called when everything is paid and before anybody can see it.
    """
    folder = _place(out)
    marker = _read(folder)
    if marker is None or not _is_paid(marker):
        return False
    if marker["run"].split(":")[0] != run:
        return False
    check_target(out)
    _check_payer(folder, marker, ledger)
    if not _intact(folder, marker):
        raise InputError(
            f"{folder} was changed after it was complete, and is not published. What it cost stays counted. Move it "
            "away to run again at a new cost."
        )
    reserved = [] if ledger is None else _still_reserved(folder, marker["reservations"], ledger)
    staging = Staging(folder, out, run, again, _marker=_locked(folder / MARKER), _complete=True)
    try:
        for identity in reserved:
            assert ledger is not None
            ledger.commit(ledger.reservation(identity))
        before()
        staging.publish()
    finally:
        staging._release_lock()
    return True


def _check_payer(folder: Path, marker: dict[str, Any], ledger: Ledger | None) -> None:
    """What was paid from a ledger is committed there and nowhere else."""
    if marker["paid_elsewhere"] is True:
        return
    paid = marker["ledger"]
    if ledger is None or str(ledger.path.resolve()) != paid:
        raise InputError(
            f"{folder} holds a complete result that was paid from {paid}. Give that ledger with --ledger "
            f"{shlex.quote(paid)} (from Python: ledger={paid!r}) to publish it. Nothing was spent."
        )


def _top(folder: Path) -> dict[str, str]:
    """The files of the folder itself: certificates, and the manifests that name all the others."""
    return {path.name: hash_of(path) for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."}


def _intact(folder: Path, marker: dict[str, Any]) -> bool:
    if _top(folder) != marker["files"]:
        return False
    try:
        listed = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    below = {path: digest for path, digest in hashes(folder).items() if "/" in path}
    return below == {path: digest for path, digest in listed.items() if "/" in path}


def _absolute(out: Path) -> Path:
    """The target with its folder resolved; its own name is taken as it stands."""
    return out.absolute().parent.resolve() / out.name


def _place(out: Path) -> Path:
    """The one hidden folder for this target: short, whatever the target is called."""
    tail = hashlib.sha256(out.name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return _absolute(out).parent / f".{out.name[:32]}.{tail}.partial"


def is_waiting(out: Path | None) -> bool:
    """Whether an earlier run left a complete result for this place, which was paid for: nothing is drawn beside it."""
    marker = None if out is None else _read(_place(out))
    return marker is not None and _is_paid(marker)


def _is_paid(marker: dict[str, Any]) -> bool:
    """Whether what lies there is complete and cost something: then it is never removed."""
    return marker["state"] == "complete" and (bool(marker["reservations"]) or marker["paid_elsewhere"] is True)


def _read(folder: Path) -> dict[str, Any] | None:
    """The marker of a folder this program made for this target; None if it has none."""
    try:
        record = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        mine = record["program"] == "sfumato" and _place(Path(record["out"])) == folder
        return (
            {"reservations": [], "paid_elsewhere": False, **record}
            if mine and record["state"] in ("drawing", "complete")
            else None
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _still_reserved(folder: Path, identities: Sequence[str], ledger: Ledger) -> list[str]:
    """What of a complete result is paid and not yet committed; refused where it was handed back."""
    states = {identity: ledger.state(identity) for identity in identities}
    if "released" in states.values():
        raise InputError(
            f"The reservation that paid for {folder} was released, so it may not be published. Move it away to run "
            "again. Nothing was spent."
        )
    return [identity for identity, state in states.items() if state == "reserved"]


def _is_fresh(folder: Path) -> bool:
    """Whether a run that was killed at its very beginning left it: empty, or its lock and half a marker."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return all(path.name.startswith(MARKER) for path in folder.iterdir())


def _clear(folder: Path, out: Path, run: str, again: str, keep: bool) -> None:
    """Make way for a new attempt, or say what stands in it."""
    if not os.path.lexists(folder):
        return
    marker = _read(folder)
    if marker is None:
        if not _is_fresh(folder):
            raise InputError(f"{folder} is in the way and was not made by sfumato: move it. Nothing was spent.")
        marker = {"state": "drawing", "run": "", "reservations": [], "paid_elsewhere": False}
    try:
        os.close(_locked(folder / MARKER))
    except BlockingIOError:
        raise InputError(f"Another process is making {out}. Wait for it, or end it. Nothing was spent.") from None
    if _is_paid(marker):
        raise InputError(
            f"{folder} holds the complete result of an earlier run into {out}: it was drawn and is counted. To publish "
            f"it at no further cost, {again} To run anew at a new cost, move it away. Nothing was spent."
        )
    if not (keep and marker["run"] == run):
        shutil.rmtree(folder)


def _locked(path: Path) -> int:
    """An open file that no other process holds; BlockingIOError if one does."""
    file = os.open(path.with_name(f"{MARKER}.lock"), os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise
    return file


def _rehearse(folder: Path, out: Path) -> None:
    """The last step of the run, done once while the folder is empty: rights, mount points and names show here."""
    mode = out.stat().st_mode & 0o7777 if out.exists() else None
    try:
        if os.name == "nt" and mode is not None:
            out.rmdir()
        os.rename(folder, out)
        os.rename(out, folder)
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        raise
    finally:
        if mode is not None and not out.exists():
            out.mkdir(mode=mode)


def _try_room(path: Path, room: int) -> None:
    """Take the room that will be needed, and give it back."""
    if room <= 0:
        return
    try:
        if hasattr(os, "posix_fallocate"):
            with path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, room)
        elif shutil.disk_usage(path.parent).free < room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # others: the file system cannot be asked
            raise
    finally:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """On the disk, not only on its way there. A file that cannot be synced is not written."""
    folder = path.is_dir()
    try:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
    except OSError:
        if not folder:  # some systems do not sync folders
            raise
