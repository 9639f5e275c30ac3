"""Is what lies in a folder what its certificates were issued for? Every file is hashed again.

In:   a certificate beside the files it names.
Out:  Checks, as for a certificate.
Not here: whether the certificate's numbers are true (evidence/verify.py).

A certificate names manifests, a manifest names results. The manifest carries a random salt, so that its hash, which
everybody with the certificate sees, says nothing about results that are for somebody else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.evidence.verify import Check

__all__ = ["uncovered", "verify_files"]

#: Folders that hold nothing but published files.
_RESULTS = ("results", "table")


def verify_files(certificate: Path, *, complete: bool) -> tuple[Check, ...]:
    """Compares the files that `certificate` names, and those its manifests name.

    With `complete` a file that is not there fails; without, only what is there is compared: a certificate may travel
    alone.
    """
    try:
        named = json.loads(certificate.read_text(encoding="utf-8")).get("files")
        return tuple(_checks(certificate, named, complete))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        return (Check("files", False, f"What the certificate names cannot be compared: {type(error).__name__}."),)


def _checks(certificate: Path, named: Mapping[str, str] | None, complete: bool) -> Iterator[Check]:
    folder = certificate.parent
    if not named:
        yield _names_none(folder, named, complete)
        return
    compared = 0
    for path, digest in named.items():
        found = _compared(folder, path, digest)
        if found is None:
            yield Check(path, not complete, f"{path} is not here: the results were not compared.")
            continue
        yield Check(path, found, _sentence(found))
        if found and path.startswith("manifest"):
            manifest = json.loads((folder / path).read_text(encoding="utf-8"))
            for check in _of_manifest(folder, manifest, complete):
                compared += check.ok
                if not check.ok:
                    yield check
    yield Check("files", True, f"{compared} files were hashed again.")


def _names_none(folder: Path, named: Mapping[str, str] | None, complete: bool) -> Check:
    old = named is None and not any(folder.glob("manifest*.json"))
    if named is None and not old:
        sentence = "It names no files, and a manifest lies beside it: the two were not issued together."
        return Check("files", False, sentence)
    rest = ": it was made before certificates did, and no result was compared." if old else "."
    return Check("files", old or not complete, f"It names no files{rest}")


def _of_manifest(folder: Path, manifest: Mapping[str, Any], complete: bool) -> Iterator[Check]:
    listed: Mapping[str, str] = manifest["files"]
    for path, digest in listed.items():
        found = _compared(folder, path, digest)
        if found is None:
            yield Check(path, not complete, "It is missing.")
        else:
            yield Check(path, found, _sentence(found))
    if manifest["complete"]:
        for name in _RESULTS:
            for path in sorted((folder / name).rglob("*")) if (folder / name).is_dir() else ():
                inside = path.relative_to(folder).as_posix()
                if not path.is_dir() and inside not in listed:
                    yield Check(inside, False, "No certificate covers it.")


def uncovered(folder: Path) -> list[str]:
    """Every file of a folder that no certificate in it names, by itself or by a manifest, by name."""
    certificates = list(folder.glob("certificate*.json"))
    known = {path.name for path in certificates}
    for certificate in certificates:
        named = _files_in(certificate)
        known.update(named)
        for path in named:
            known.update(_files_in(folder / path) if path.startswith("manifest") else {})
    inside = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
    return sorted(path for path in inside if path not in known)


def _files_in(path: Path) -> Mapping[str, str]:
    """The files that a certificate or a manifest names."""
    return _record(path).get("files") or {}


def _record(path: Path) -> Mapping[str, Any]:
    """A file of JSON; nothing where it is none, which is found elsewhere."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _sentence(same: bool) -> str:
    return "Its hash is the one the certificate was issued for." if same else "It was changed after it was published."


def _compared(folder: Path, path: str, digest: str) -> bool | None:
    """Whether the file has this hash; None if there is no such file in the folder."""
    place = folder / path
    if ".." in Path(path).parts or not place.resolve().is_relative_to(folder.resolve()) or not place.is_file():
        return None
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest
