"""Classes found by looking: a file with a final class in a package is all it takes.

In:   a package, what its classes are below.
Out:  every class there that is not abstract.
Not here: what they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

__all__ = ["found_in", "made_in"]

Noun = TypeVar("Noun")


def found_in(package: str, noun: type[Noun]) -> Iterator[type[Noun]]:
    """The classes below `noun` in the modules of a package, abstract ones left out."""
    for module in iter_modules(import_module(package).__path__):
        for one in tuple(vars(import_module(f"{package}.{module.name}")).values()):
            if inspect.isclass(one) and issubclass(one, noun) and one is not noun and not inspect.isabstract(one):
                yield one


def made_in(package: str, noun: type[Noun]) -> Iterator[Noun]:
    """One of each of these classes, which take no arguments."""
    final: Any
    for final in found_in(package, noun):
        yield final()
