"""One SQLite file that can only grow: numbered entries, each sealed by a SHA-256 over itself and the entry before.

In:   a path; entries to append, each together with the last entry its writer has seen.
Out:  the entries in order, checked; LedgerLockedError, LedgerCorruptError or LedgerError with the way out.
Not here: what an entry means and whether a cost fits (ledger/ledger.py, ledger/balance.py).

Why an append names its predecessor: a decision such as "this cost fits" is only as good as the entries it was based on.
`append` compares under the write lock and appends nothing if somebody was faster, so slow accounting needs no lock.

Why a rollback journal and synchronous=EXTRA: FULL in this journal mode may forget the last commit after a power cut,
because the directory is not synced once the journal is deleted; EXTRA is FULL plus that sync. The ledger is then one
plain file whenever nobody is writing.

The seal finds accidents, careless edits and removed rows. It has no key: who rewrites the whole file, or puts an older
copy back, is found only by comparing `Ledger.head` with a hash kept elsewhere, for instance in a certificate.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from sfumato.core import PureDP
from sfumato.errors import LedgerCorruptError, LedgerError, LedgerLockedError
from sfumato.ledger.commands import grant_command, show_command

__all__ = ["EntryDraft", "EntryStore", "Head", "LedgerEntry"]

_APPLICATION = 0x7366756D  # "sfum" in the file header: tells a ledger from any other SQLite file
_VERSION = 1
_COLUMNS = "sequence, created, action, dataset, unit, reservation, body, hash"
_SCHEMA = {
    "entries": """CREATE TABLE entries (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        created TEXT NOT NULL,
        action TEXT NOT NULL CHECK (action IN ('grant', 'reserve', 'commit', 'release')),
        dataset TEXT NOT NULL,
        unit TEXT NOT NULL,
        reservation TEXT,
        body TEXT NOT NULL,
        hash TEXT NOT NULL
    )""",
    "entries_never_change": """CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    "entries_never_vanish": """CREATE TRIGGER entries_never_vanish BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    # INSERT OR REPLACE removes a row without firing the trigger above.
    "entries_never_replaced": """CREATE TRIGGER entries_never_replaced BEFORE INSERT ON entries
        WHEN NEW.sequence IS NOT (SELECT COALESCE(MAX(sequence), 0) + 1 FROM entries)
        BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
}
_RESTORE = "Restore the file from a backup, or start a new ledger and grant what is left."


def _checkpoint(name: str) -> None:
    """Does nothing. Tests replace it to kill the process at each step."""


class Head(NamedTuple):
    """The last entry somebody has seen."""

    sequence: int = 0
    hash: str = "0" * 64


class EntryDraft(NamedTuple):
    """An entry that was decided upon and not yet written."""

    action: str
    dataset: str
    unit: str
    reservation: str | None
    body: dict[str, Any]


@dataclass(frozen=True)
class LedgerEntry:
    """One row. `body` holds what the action needs, as plain JSON values."""

    sequence: int
    created: str
    action: str
    dataset: str
    unit: str
    reservation: str | None
    body: dict[str, Any]
    hash: str


def _seal(previous: str, *fields: Any) -> str:
    text = json.dumps([previous, *fields], ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class EntryStore:
    """The file behind a Ledger. Every call opens its own connection, so threads and forks share nothing.

    >>> folder = tempfile.TemporaryDirectory()
    >>> store = EntryStore(Path(folder.name) / "ledger.db", timeout=5.0, create=True)
    >>> draft = EntryDraft("grant", "survey", "record", None, {})
    >>> store.append(Head(), draft).sequence
    1
    >>> print(store.append(Head(), draft))  # somebody was faster
    None
    >>> store.follow(Head(), lambda entry: print(entry.sequence, entry.action))
    1 grant
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, *, timeout: float, create: bool) -> None:
        self.path = path
        self.timeout = timeout
        if not os.path.exists(path):
            self._create(allowed=create)
        with self._connection() as connection:
            self._check_identity(connection)

    def append(self, seen: Head, draft: EntryDraft) -> LedgerEntry | None:
        """Append one entry if `seen` is still the last one; None, and nothing changed, if it is not."""
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        # Copies of a ledger begin with the same entry, and others never do, even if they are made in the same moment.
        own = {} if seen.sequence else {"ledger": secrets.token_hex(16)}
        text = json.dumps({**draft.body, **own}, ensure_ascii=True, sort_keys=True, allow_nan=False)
        fields = (seen.sequence + 1, created, *draft[:4], text)
        row = (*fields, _seal(seen.hash, *fields))
        with self._writing() as connection:
            if self._last(connection) != seen:
                return None
            _checkpoint("head compared")
            connection.execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            _checkpoint("row inserted")
        _checkpoint("connection closed")
        return self._entry(row)

    def follow(self, seen: Head, visit: Callable[[LedgerEntry], None]) -> None:
        """Call `visit` on every entry after `seen`, in order, each checked against the one before."""
        previous = seen
        with self._connection() as connection:
            connection.execute("BEGIN")  # one snapshot for all queries
            highest = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
            self._check_seen(connection, seen)
            query = f"SELECT {_COLUMNS} FROM entries WHERE sequence > ? ORDER BY sequence"
            for row in connection.execute(query, (seen.sequence,)):
                self._check_row(row, previous)
                visit(self._entry(row))
                previous = Head(row[0], row[-1])
            last = highest[0] if highest else 0
        if last != previous.sequence:
            self._corrupt(f"row {previous.sequence + 1} is missing at the end (there were {last} rows)")

    def first_hash(self) -> str | None:
        """The hash of the first entry, which tells a copy of a ledger from every other; it is not checked here."""
        with self._connection() as connection:
            row = connection.execute("SELECT hash FROM entries WHERE sequence = 1").fetchone()
        return row[0] if row else None

    def check_guards(self) -> None:
        """Refuse a file whose append-only triggers were removed or changed."""
        with self._connection() as connection:
            found = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE tbl_name = 'entries'"))
        if found != _SCHEMA:
            self._corrupt("its table or its append-only triggers were changed")

    def _check_seen(self, connection: sqlite3.Connection, seen: Head) -> None:
        found = connection.execute("SELECT hash FROM entries WHERE sequence = ?", (seen.sequence,)).fetchone()
        if seen.sequence and found != (seen.hash,):
            self._corrupt(f"row {seen.sequence}, seen a moment ago, is gone; an older copy may have been put back")

    def _check_row(self, row: tuple[Any, ...], previous: Head) -> None:
        if row[0] != previous.sequence + 1:
            self._corrupt(f"row {previous.sequence + 1} is missing")
        if not all(isinstance(value, str | int | None) for value in row) or row[-1] != _seal(previous.hash, *row[:-1]):
            self._corrupt(f"row {row[0]} was changed after it was written: its hash does not match")

    def _entry(self, row: tuple[Any, ...]) -> LedgerEntry:
        sequence, created, action, dataset, unit, reservation, body, sealed = row
        try:
            return LedgerEntry(sequence, created, action, dataset, unit, reservation, json.loads(body), sealed)
        except ValueError:
            self._corrupt(f"row {sequence} cannot be read")

    def _last(self, connection: sqlite3.Connection) -> Head:
        row = connection.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
        return Head(*row) if row else Head()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection that never creates the file; SQLite's errors leave as ours."""
        address = self.path.absolute().as_uri() + "?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=self.timeout, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                yield connection
        except sqlite3.Error as error:
            self._translate(error)
        except UnicodeDecodeError:  # SQLite hands damaged text through
            self._corrupt("it contains damaged text")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            _checkpoint("transaction begun")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            _checkpoint("transaction ended")

    def _create(self, *, allowed: bool) -> None:
        """Make the whole file under another name and link it into place: the path never holds half a ledger."""
        if not allowed:
            raise LedgerError(
                f"There is no ledger at {self.path}. A first grant makes one, for example "
                f"`{grant_command('people', PureDP(1.0), self.path)}`; or name another file with --ledger or "
                "SFUMATO_LEDGER (from Python: ledger= or Ledger(path)). Nothing was spent."
            )
        if not os.path.isdir(self.path.parent):
            make = shlex.join(["mkdir", "-p", str(self.path.parent.resolve())])
            raise LedgerError(
                f"The folder {self.path.parent} does not exist, so no ledger can be made there. Make it with `{make}`, "
                "or choose another path. Nothing was spent."
            )
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", suffix=".new", dir=self.path.parent)
            os.close(handle)  # mkstemp made it 0600
            _checkpoint("file made")
            try:
                self._write_schema(name)
                _checkpoint("schema written")
                self._link(name)
            finally:
                os.unlink(name)
        except OSError as error:
            raise LedgerError(
                f"No ledger can be made at {self.path}: {error.strerror}. Choose a folder on a local disk that you "
                "may write to. Nothing was spent."
            ) from error
        _checkpoint("file in place")

    def _write_schema(self, name: str) -> None:
        with closing(sqlite3.connect(name, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.values():
                connection.execute(statement)
                _checkpoint("statement run")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")

    def _link(self, name: str) -> None:
        try:
            os.link(name, self.path)
        except FileExistsError:
            return  # another process made the ledger meanwhile; its file counts
        _checkpoint("file linked")
        if hasattr(os, "O_DIRECTORY"):
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _check_identity(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION:
            self._corrupt("it is empty or belongs to another program")
        if version > _VERSION:
            raise LedgerCorruptError(
                f"{self.path} was written by a newer sfumato (ledger version {version}, this one reads {_VERSION}). "
                "Upgrade sfumato. Nothing was spent."
            )
        if version < _VERSION:
            self._corrupt(f"its ledger version {version} never existed")

    def _corrupt(self, reason: str) -> NoReturn:
        raise LedgerCorruptError(f"{self.path} is not an intact ledger: {reason}. Nothing was spent. {_RESTORE}")

    def _translate(self, error: sqlite3.Error) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", None)
        primary = code & 0xFF if code is not None else None
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LedgerLockedError(
                f"{self.path} is held by another process (waited {self.timeout:g} s). Nothing changed in it: nothing "
                "was spent, and what was reserved stays counted. Wait until the other run is done and try again, or "
                f"wait longer with Ledger(path, timeout={max(60, 4 * self.timeout):g})."
            ) from error
        if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            raise LedgerError(
                f"{self.path} cannot be opened for writing ({error}). Nothing changed in it. Check that it is a file, "
                "and that you may write to it and to its folder."
            ) from error
        if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise LedgerError(
                f"The disk refused to read or write {self.path} ({error}). Whatever was acknowledged stays counted. "
                f"Make room or repair the disk, then look at `{show_command(None, self.path)}` before running again."
            ) from error
        raise LedgerCorruptError(
            f"{self.path} is not an intact ledger: {error}. Nothing was spent. {_RESTORE}"
        ) from error
