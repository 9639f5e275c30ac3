"""Files that are there as a whole or not at all.

In:   a path and text, or somebody who writes a draft.
Out:  the file; a reader finds the old one or the new one, never half of it; file_mark, by what a change is noticed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["draft_of", "file_mark", "write_whole_file"]


@contextmanager
def draft_of(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write instead: what lies there takes the place of `path` in one step, and goes where that fails."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp{target.suffix}")
    try:
        yield draft
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_whole_file(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 so that a crash leaves the old file or the new one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole_file(f"{folder}/a.txt", "whole")
    ...     Path(f"{folder}/a.txt").read_text()
    'whole'
    """
    with draft_of(path) as draft, draft.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def file_mark(path: Path) -> tuple[int, int, int]:
    """By what a changed file is noticed: size, time, place."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino
