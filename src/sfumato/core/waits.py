"""A bound for calls that know none of their own.

In:   a call into a library that may wait for ever, and how long to wait for it.
Out:  what it returns, or TimeoutError.
Not here: waits that take a time limit themselves; they are given one where they stand.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["within"]

Answer = TypeVar("Answer")


def within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """What a call returns, or TimeoutError. A call that is given up runs on beside the program and does not hold it.

    >>> within(60, lambda: 1 + 1)
    2
    >>> within(0.01, threading.Event().wait)
    Traceback (most recent call last):
    ...
    TimeoutError: no answer in 0.01 s
    """
    answer: queue.Queue[tuple[Answer | None, BaseException | None]] = queue.Queue()

    def run() -> None:
        try:
            answer.put((work(), None))
        except BaseException as error:
            answer.put((None, error))

    threading.Thread(target=run, name="sfumato-call", daemon=True).start()
    try:
        result, error = answer.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer in {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
