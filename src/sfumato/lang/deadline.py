"""The time a plan may take: asked for between two steps, never by interrupting one.

It is the processor time of the planning thread: a busy machine refuses nothing that an idle one plans.

In:   seconds, for a `with` block.
Out:  PlanError that names the limit, raised by whoever asks after it has passed.
Not here: the limits of a check's logic (lang/limits.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sfumato.errors import PlanError

__all__ = ["LONGEST_PLAN", "check_time", "planning"]

#: Seconds of processor time after which a study is refused as too large to plan.
LONGEST_PLAN = 30.0

_end: ContextVar[float] = ContextVar("sfumato_end_of_planning", default=math.inf)


@contextmanager
def planning(seconds: float = LONGEST_PLAN) -> Iterator[None]:
    """Within the block `check_time` refuses once so many seconds have passed; a block inside another adds no time.

    >>> with planning(0.0):
    ...     check_time("counting to ten")
    Traceback (most recent call last):
    ...
    sfumato.errors.PlanError: Planning takes more than 30 s of processor time; it was stopped while counting to ten. ...
    """
    token = _end.set(min(_end.get(), time.thread_time() + seconds))
    try:
        yield
    finally:
        _end.reset(token)


def check_time(doing: str) -> None:
    """Refuse if the time is over. `doing` names the step, in terms of the study."""
    if _end.get() <= time.thread_time():
        raise PlanError(
            f"Planning takes more than {LONGEST_PLAN:g} s of processor time; it was stopped while {doing}. Publish "
            "fewer variables of each individual, let public tables give fewer different structures, or use aggregates. "
            "Nothing was planned and nothing was spent."
        )
