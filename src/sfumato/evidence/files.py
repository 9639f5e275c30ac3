"""Files written whole or not at all.

In:   a path, text.
Out:  the file.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, text: str) -> Path:
    """A reader finds the old file or the new one, never half of it."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path
