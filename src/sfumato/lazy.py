"""Names of a room that are imported when they are first used.

In:   a package and where each of its names lives.
Out:  the package's `__getattr__`.
Not here: anything else. Like `errors`, open to every room.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """A module `__getattr__` that fetches each name from its home (relative to the package) and keeps it.

    >>> lazily("sfumato.core", {"PureDP": "guarantee"})("PureDP").__name__
    'PureDP'
    """

    def fetch(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return fetch
