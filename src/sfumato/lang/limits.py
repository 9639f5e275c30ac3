"""Where a study is stopped: steps, depth, answers, size, time.

In:   Limits.
Out:  LimitReached, raised by the engine's step counter or by a TimeGuard.
Not here: what the engine counts (lang/engine.py), how the clause is named (lang/ground.py).
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["DEEPEST_ANSWER", "GENEROUS", "LimitReached", "Limits", "TimeGuard"]

#: Whoever walks an answer may do so by recursion.
DEEPEST_ANSWER = 250


@dataclass(frozen=True, slots=True)
class Limits:
    """Stated in the message, so nobody has to guess. The defaults are those of a check: ProbLog does about 5000 steps
    in a second, and one symbolic individual needs a few hundred."""

    seconds: float = 3.0
    steps: int = 100_000
    depth: int = 10_000
    answers: int = 20_000
    term_size: int = 200_000


#: For a plan with rows of public tables more time is fair than for a check.
GENEROUS = Limits(seconds=60.0, steps=5_000_000, answers=1_000_000)


class LimitReached(BaseException):
    """Something went beyond a limit. Not an Exception: nothing inside ProbLog may swallow it."""

    def __init__(self, reason: str = "", predicate: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.predicate = predicate


class TimeGuard:
    """Raises LimitReached inside the `with` block when its time is over, wherever the block is at that moment.

    A step counter cannot stop a single step that does not end, such as comparing two terms that doubled in size sixty
    times. Only code made of Python steps is interrupted; there is none other here, because arithmetic is bounded.

    >>> with TimeGuard(60.0):
    ...     print("done in time")
    done in time
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._sent = False
        self._asking = 0

    def __enter__(self) -> None:
        self._asking = threading.get_ident()
        threading.Thread(target=self._watch, name="sfumato-time-guard", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._over.set()
        if self._sent:
            # One that was sent and not yet delivered is taken here, at the first jump of this loop. Withdrawing it
            # would leave CPython's interpreter on its slow path for good.
            with suppress(LimitReached):
                for _jump in range(100):
                    pass

    def _watch(self) -> None:
        wait = self._seconds
        # Again and again: an exception that lands in a finaliser is dropped by Python.
        while not self._over.wait(wait):
            with self._lock:
                if not self._over.is_set():
                    self._sent = True
                    _raise_in(self._asking)
            wait = 0.25


def _raise_in(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(LimitReached))
