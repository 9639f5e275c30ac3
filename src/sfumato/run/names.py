"""File names for things that people named: never the same one twice, on any disk, and never too long.

In:   names in any writing.
Out:  one short ASCII name for each, decided for all of them together and before anything is spent.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["LEDGER_NAME", "file_stems"]

#: What a ledger is called where nobody says otherwise.
LEDGER_NAME = "sfumato-ledger.db"

_LONGEST = 48
#: Names that some systems keep for devices, whatever follows the first dot.
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}


def file_stems(names: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """A file name without its ending for each name; the parts of a name are joined by dots.

    Names that differ only in case get different files even where a disk ignores case.

    >>> file_stems([("average", "public"), ("total", "public")])[("average", "public")]
    'average.public'
    >>> len({stem.lower() for stem in file_stems([("Total",), ("total",)]).values()})
    2
    """
    given = list(dict.fromkeys(names))
    stems = {name: ".".join(map(_safe, name)) for name in given}
    for digits in (16, 64):
        often = Counter(stem.lower() for stem in stems.values())
        stems = {
            name: stem if often[stem.lower()] == 1 else f"{stem}-{_digest(json.dumps(name), digits)}"
            for name, stem in stems.items()
        }
    return stems


def _safe(part: str) -> str:
    kept = re.sub(r"[^A-Za-z0-9_-]", "_", part)
    plain = kept == part and 0 < len(part) <= _LONGEST and part.lower() not in _RESERVED and part[0] != "-"
    return kept if plain else f"{kept.lstrip('-')[:_LONGEST] or '_'}-{_digest(part, 16)}"


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
