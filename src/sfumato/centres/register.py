"""What a centre has said in which round, on disk before it is said: each step of a round is taken once, for ever.

In:   a round's hash (it covers participants, keys, statistic, noise, purpose and the nonce), a centre, a step.
Out:  nothing, or RefusedError: this step was taken before, by whatever process, for whatever reason.
Not here: what a step is (participant.py), what it costs (node.py).
Proof: docs/proofs/secure_aggregation.md, "Charging"

The record lies in the ledger's own file, in a table beside the entries: whoever moves, copies or restores the ledger
moves what was paid and what was said together. A centre without a ledger has no budget that a second sum could break;
it is held to the same rule within its process.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sfumato.errors import LedgerError, RefusedError

__all__ = ["Register"]

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS rounds (
        round TEXT NOT NULL, centre TEXT NOT NULL, step TEXT NOT NULL, created TEXT NOT NULL,
        PRIMARY KEY (round, centre, step))""",
    """CREATE TRIGGER IF NOT EXISTS rounds_never_change BEFORE UPDATE ON rounds
        BEGIN SELECT RAISE(ABORT, 'what was said stays said'); END""",
    """CREATE TRIGGER IF NOT EXISTS rounds_never_vanish BEFORE DELETE ON rounds
        BEGIN SELECT RAISE(ABORT, 'what was said stays said'); END""",
)
_FOUND = "SELECT 1 FROM rounds WHERE round = ? AND centre = ? AND step = ?"
_INSERT = "INSERT OR IGNORE INTO rounds VALUES (?, ?, ?, ?)"
#: The step in which a centre's data leaves it, and the word that it never will.
_SENT, _WITHDRAWN = "masked", "withdrawn"
_WAIT_SECONDS = 5.0
_spoken: set[tuple[str, str, str]] = set()
_lock = threading.Lock()


class Register:
    """Which steps one centre has taken in which rounds. Processes and threads may share the file.

    >>> register = Register(None)
    >>> register.claim("a hash", "north", "keys")
    >>> register.holds("a hash", "north", "keys")
    True
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def holds(self, round_hash: str, centre: str, step: str) -> bool:
        """Whether this step was taken."""
        key = (round_hash, centre, step)
        if self.path is None:
            with _lock:
                return key in _spoken
        with self._transaction() as connection:
            return connection.execute(_FOUND, key).fetchone() is not None

    def claim(self, round_hash: str, centre: str, step: str) -> None:
        """Takes the step, durably; RefusedError if it was taken. Of several that try at once, one succeeds."""
        if not self.try_claim(round_hash, centre, step):
            raise RefusedError(
                f"{centre} has already taken part in this round (step {step!r}): a round is answered once, whoever "
                "offers it again. Nothing more left the centre and nothing was spent. Start a new round."
            )

    def try_claim(self, round_hash: str, centre: str, step: str) -> bool:
        """Takes the step if nobody has; whether it was free."""
        key = (round_hash, centre, step)
        if self.path is None:
            with _lock:
                free = key not in _spoken
                _spoken.add(key)
                return free
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction() as connection:
            return connection.execute(_INSERT, (*key, now)).rowcount == 1

    def try_withdraw(self, round_hash: str, centre: str) -> bool:
        """Sees to it that no masked sum leaves any more; False if one may have left.

        That it was withdrawn is written together with the step, so that whoever asks after a crash hears the same.
        """
        if self.path is None:
            with _lock:
                if (round_hash, centre, _SENT) not in _spoken:
                    _spoken.update(((round_hash, centre, _SENT), (round_hash, centre, _WITHDRAWN)))
                return (round_hash, centre, _WITHDRAWN) in _spoken
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction() as connection:
            if connection.execute(_INSERT, (round_hash, centre, _SENT, now)).rowcount == 1:
                connection.execute(_INSERT, (round_hash, centre, _WITHDRAWN, now))
            return connection.execute(_FOUND, (round_hash, centre, _WITHDRAWN)).fetchone() is not None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """It is on the disk when the block has ended, or nothing of it happened."""
        assert self.path is not None
        address = self.path.absolute().as_uri() + "?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)) as connection:
                # EXTRA: the folder is synced too, so that a power cut cannot take the last record back.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                for statement in _SCHEMA:
                    connection.execute(statement)
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(
                f"{self.path}: what was said in a round cannot be recorded there ({type(error).__name__}). Nothing "
                "left the centre. See that the ledger is on a local disk that may be written to, and join again."
            ) from error
