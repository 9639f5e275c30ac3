"""One in-memory DuckDB at a time for whoever asks: opening one takes longer than most studies' queries.

In:   nothing.
Out:  Database, lent to one room at a time and handed back empty.
Not here: what is asked of it (network/tables.py), the folder for what does not fit into memory (network/spill.py).

What a room makes is in a catalogue of its own and on a connection of its own, both of which end with the room. A
database is kept for the next room only if both went away cleanly and nothing lies in its folder; if not it is closed.
One that may read files is its room's alone, since the permission cannot be taken back.
It is closed before a fork, since its threads do not follow into the child, and when the process ends.
"""

from __future__ import annotations

import atexit
import itertools
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, final

from sfumato.network.spill import SpillFolder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Database", "borrowed", "close_idle"]

#: What reasons from the least and greatest value that a Parquet file claims for a column. Such a claim knows nothing of
#: NaN, and it may be false: then a bound that this program puts on a cell would be taken for granted and left out.
_DISTRUSTED = (
    "statistics_propagation,filter_pushdown,join_filter_pushdown,row_group_pruner,compressed_materialization,"
    "aggregate_function_rewriter"
)
#: The one that nobody uses, if there is one. Whoever takes it out has it alone.
_idle: list[Database] = []
_numbers = itertools.count()


@final
class Database:
    """A database and its folder; `connection` is the present room's.

    >>> with_rows = borrowed()
    >>> _ = with_rows.connection.execute("CREATE TABLE seen AS SELECT 41 AS age")
    >>> with_rows.hand_back()
    >>> borrowed().connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    []
    """

    def __init__(self, files: Sequence[Path] = ()) -> None:
        import duckdb

        self._files = tuple(files)
        self.spill = SpillFolder()
        self._whole = duckdb.connect(
            config={
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "temp_directory": str(self.spill.path),
            }
        )
        allowed = ", ".join("'" + str(path).replace("'", "''") + "'" for path in self._files)
        self._whole.execute(f"SET allowed_paths = [{allowed}]")
        self._whole.execute("SET enable_external_access = false")
        self.connection: DuckDBPyConnection = self._whole
        self._catalogue = ""

    def open(self) -> None:
        """A connection and a catalogue for one room."""
        import duckdb

        self._catalogue = f"room{next(_numbers)}"
        self._whole.execute(f"ATTACH ':memory:' AS {self._catalogue}")
        self.connection = self._whole.cursor()
        self.connection.execute("SET ieee_floating_point_ops = true")
        self.connection.execute("SET enable_progress_bar = false")  # it would stand between the lines of a command
        self.connection.execute(f"SET disabled_optimizers = '{_DISTRUSTED}'")
        with suppress(duckdb.Error):  # an engine without zones takes a text without one for universal time anyway
            self.connection.execute("SET TimeZone = 'UTC'")  # what a cell says does not hang on where it is read
        self.connection.execute(f"USE {self._catalogue}")

    def hand_back(self) -> None:
        """Forget what the room made; the next one may have the database, unless something of it may be left."""
        if not self._files and self._forgotten() and not _idle:
            _idle.append(self)
        else:
            self.close()

    def _forgotten(self) -> bool:
        import duckdb

        with suppress(duckdb.Error):
            self.connection.close()
            self._whole.execute(f"DETACH {self._catalogue}")
            return self.spill.is_empty()
        return False

    def close(self) -> None:
        """End it, and remove its folder."""
        self.connection.close()
        self._whole.close()
        self.spill.close()


def borrowed(files: Sequence[Path] = ()) -> Database:
    """A database that nobody else uses, with nothing in it, that may read these files and no others. Hand it back."""
    try:
        found = Database(files) if files else _idle.pop()
    except IndexError:
        found = Database()
    found.open()
    return found


def close_idle() -> None:
    """Close the database that nobody uses, and remove its folder."""
    while _idle:
        _idle.pop().close()


atexit.register(close_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=close_idle)
