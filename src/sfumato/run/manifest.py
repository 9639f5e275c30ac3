"""Manifests: the hash of every file a certificate is issued for.

In:   a folder that is complete except for its certificates.
Out:  manifest*.json, and what a certificate must name.
Not here: certificates (core/certificate.py), comparing (evidence/verify_files.py).

A certificate is shown to every observer, a result only to its own. Hence a certificate names the manifest alone, and
the manifest has a random salt: its hash tells nothing about a result to somebody who does not have it.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from pathlib import Path

__all__ = ["hash_of", "hashes", "write_manifest"]


def hash_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hashes(folder: Path) -> dict[str, str]:
    """Every file below a folder except hidden ones: path with forward slashes to SHA-256."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    named = [(path.relative_to(folder), path) for path in found]
    shown = [(name, path) for name, path in named if not any(part.startswith(".") for part in name.parts)]
    from concurrent.futures import ThreadPoolExecutor  # only where files are written

    with ThreadPoolExecutor() as pool:  # a large file is hashed while others may go on
        contents = pool.map(hash_of, [path for _, path in shown])
        return {name.as_posix(): content for (name, _), content in zip(shown, contents, strict=True)}


def write_manifest(folder: Path, name: str, files: dict[str, str], only: Iterable[str] | None = None) -> dict[str, str]:
    """Write the manifest `name` for `files`, or for those of them in `only`; what a certificate names.

    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> _ = (Path(place.name) / "result.json").write_text("[1]")
    >>> list(write_manifest(Path(place.name), "manifest.json", hashes(Path(place.name))))
    ['manifest.json']
    >>> place.cleanup()
    """
    chosen = dict(files) if only is None else {path: files[path] for path in sorted(only)}
    record = {"salt": secrets.token_hex(32), "complete": only is None, "files": chosen}
    (folder / name).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return {name: hash_of(folder / name)}
