"""The key that decides which rows of a person with many rows are kept, one per ledger, stored beside it.

In:   a ledger.
Out:  32 bytes, the same for every study that is charged to the ledger.
Not here: what the key does (network/rows.py).

The words of a study do not enter: whoever renames a dataset, a table or a variable meets the same rows, so that every
study keeps the same ones and nothing averages out over repeated releases. Data has one ledger (run/accounts.py). The
key is drawn at random and never comes from data. No promise rests on its secrecy; the file is readable by its owner
alone all the same.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from sfumato.errors import LedgerError

__all__ = ["KEY_SUFFIX", "key_digest", "row_key"]

#: The key file of ledger.db is ledger.db.rows.
KEY_SUFFIX = ".rows"
_BYTES = 32


def row_key(ledger: str | os.PathLike[str]) -> bytes:
    """The ledger's key; the first call draws it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = row_key(Path(folder) / "ledger.db")
    ...     again = row_key(Path(folder) / "ledger.db")
    ...     other = row_key(Path(folder) / "other.db")
    >>> len(first), first == again, first == other
    (32, True, False)
    """
    path = Path(f"{Path(ledger).expanduser().resolve()}{KEY_SUFFIX}")  # by whatever link the ledger is named
    try:
        if not path.exists():
            _draw(path)
        key = path.read_bytes()
    except OSError as error:
        failed = type(error).__name__
    else:
        if len(key) == _BYTES:
            return key
        failed = f"it does not hold {_BYTES} bytes"
    raise LedgerError(
        f"The key file {path} beside the ledger cannot be used ({failed}). Restore it from a backup; if it is lost, "
        "remove it, and a new one is drawn: studies with rows_per_person then keep other rows. Nothing was spent."
    )


def key_digest(key: bytes) -> str:
    """A name for a key that does not give it away: releases of one name kept the same rows.

    >>> key_digest(bytes(32))[:8]
    '7a38ab45'
    """
    return hashlib.sha256(b"sfumato row key\0" + key).hexdigest()


def _draw(path: Path) -> None:
    """Write the key in one step: of two processes at once the first wins, and both read the same."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not path.exists():
                os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
