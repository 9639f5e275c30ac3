"""Where files are, as callers say it: as a Path or as text.

In:   what a caller gave for a folder or a file.
Out:  a Path, or None where nothing was given.
Not here: whether anything is there (who reads it says so).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import overload

__all__ = ["Place", "place_of"]

#: A folder or a file, as a caller may name it.
Place = str | os.PathLike[str]


@overload
def place_of(given: Place) -> Path:
    """The Path of what was given."""


@overload
def place_of(given: Place | None) -> Path | None:
    """The Path of what was given, if it was."""


def place_of(given: Place | None) -> Path | None:
    """The Path of a folder or a file.

    >>> place_of("published").name, place_of(None)
    ('published', None)
    """
    return None if given is None else Path(given)
