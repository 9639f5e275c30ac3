"""Where a folder stands: its certificates verified again, now, and what that makes of it.

In:   the folder of a release, or none.
Out:  FolderState, for everything that is written about the folder at one moment.
Not here: verifying (evidence/verify.py), what keeps a folder from being complete (evidence/report.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sfumato.evidence.verify import verify

__all__ = ["Checked", "FolderState", "folder_state"]


@dataclass(frozen=True)
class Checked:
    """A certificate of the folder and what the verifier says about it now."""

    file: str
    subject: str
    holds: bool
    publishable: bool
    entries: int
    wrong: str  # the first entry that does not hold, in a sentence


@dataclass(frozen=True)
class FolderState:
    """`word` is "planned" where there is no folder yet, else "published", "dry run" or "incomplete"."""

    word: str
    certificates: tuple[Checked, ...] = ()

    @property
    def rehearsed(self) -> bool:
        """Whether some of it is not for publication."""
        return any(not one.publishable for one in self.certificates)


def folder_state(folder: Path | None) -> FolderState:
    """What a folder holds."""
    if folder is None:
        return FolderState("planned")
    found = tuple(_checked(path) for path in sorted(folder.glob("certificate*.json")))
    if not found or not all(one.holds for one in found):
        return FolderState("incomplete", found)
    made = FolderState("published", found)
    return FolderState("dry run", found) if made.rehearsed else made


def _checked(path: Path) -> Checked:
    result = verify(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        subject, publishable = str(record["subject"]), record["publishable"] is True
    except (OSError, ValueError, KeyError, TypeError):
        subject, publishable = "cannot be read", False
    wrong = next((check.sentence for check in result.checks if not check.ok), "")
    return Checked(path.name, subject, result.ok, publishable, len(result.checks), wrong)
