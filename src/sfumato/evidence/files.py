"""Files of a release: written whole or not at all, and found by the folder's own index.

In:   a path, text; the folder of a release.
Out:  the file; which files hold which publication.
"""

from __future__ import annotations

import json
from pathlib import Path

from sfumato.core.whole_file import write_whole_file

__all__ = ["published_files", "write_whole"]


def write_whole(path: Path, text: str) -> Path:
    """A reader finds the old file or the new one, never half of it."""
    write_whole_file(path, text)
    return path


def published_files(folder: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Which files hold which publication, as the folder's own index says."""
    try:
        index = json.loads((folder / "results" / "index.json").read_text(encoding="utf-8"))
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for entry in index:
            stem = entry["file"].removesuffix("parquet")
            names = [entry["file"], *(f"{stem}{ending}" for ending in entry.get("documents", ("json",)))]
            names += [f"{stem}{name}.parquet" for name in entry.get("tables", ())]
            present = tuple(dict.fromkeys(f"results/{n}" for n in names if (folder / "results" / n).is_file()))
            key = (entry["publication"], entry["observer"])
            found[key] = (*found.get(key, ()), *present)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return found
