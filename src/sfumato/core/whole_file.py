"""Files that are there as a whole or not at all.

In:   a path and text.
Out:  the file; a reader finds the old one or the new one, never half of it.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["write_whole_file"]


def write_whole_file(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 so that a crash leaves the old file or the new one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole_file(f"{folder}/a.txt", "whole")
    ...     Path(f"{folder}/a.txt").read_text()
    'whole'
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
