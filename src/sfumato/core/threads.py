"""One thread for small linear algebra.

In:   how many numbers are at stake.
Out:  a block (or a function, as a decorator) in which BLAS uses one thread.
Not here: who works at the same time (run/engine/engine.py).

BLAS threads wait for each other at the end of every product. On idle cores that costs microseconds; on busy ones a
matrix of 200 × 100 took 8 to 85 s where one thread takes 0.36 s. A choice of speed: no result depends on it beyond
rounding.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["MANY_NUMBERS", "calm_threads"]

#: From here on more threads are worth their waiting.
MANY_NUMBERS = 20_000_000
#: Each of these may bring a BLAS of its own into the process.
_BRINGERS = ("numpy", "scipy.linalg", "sklearn", "torch")


@contextmanager
def calm_threads(numbers: int = 0) -> Iterator[None]:
    """One BLAS thread, unless there are many numbers.

    >>> with calm_threads(200 * 100):
    ...     pass
    """
    if numbers >= MANY_NUMBERS:
        yield
        return
    with _pools(tuple(name in sys.modules for name in _BRINGERS)).limit(limits=1, user_api="blas"):
        yield


@lru_cache
def _pools(_loaded: tuple[bool, ...]) -> Any:
    """Looking for the libraries takes milliseconds: once for every set of them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
