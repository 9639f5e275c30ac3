"""Where a study is stopped: steps, depth, answers, size. Counted, never timed.

In:   Limits.
Out:  Meter, which the engine charges for everything it does; LimitReached where a limit is passed.
Not here: what the engine charges (lang/engine.py), how terms are weighed (lang/weighed.py), how the clause is named
(lang/ground.py).

A clock would refuse the same study on a busy machine and accept it on an idle one, and an interruption from outside may
land between any two instructions of any library. So everything is counted by the one who does it: a message of the
engine, a list of terms it makes, each node of a term that is walked.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEEPEST_ANSWER", "GENEROUS", "LimitReached", "Limits", "Meter"]

#: Whoever walks an answer may do so by recursion.
DEEPEST_ANSWER = 250


@dataclass(frozen=True, slots=True)
class Limits:
    """Stated in the message, so nobody has to guess. The defaults are those of a check: the engine does about 300 000
    steps in a second, and a study's symbolic individuals need a few thousand."""

    steps: int = 600_000
    depth: int = 10_000
    answers: int = 20_000
    term_size: int = 200_000


#: For a plan with rows of public tables more is fair than for a check.
GENEROUS = Limits(steps=15_000_000, answers=1_000_000)


class LimitReached(BaseException):
    """Something went beyond a limit. Not an Exception: nothing inside ProbLog may swallow it."""

    def __init__(self, reason: str = "", predicate: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.predicate = predicate


class Meter:
    """What has been done of what may be done. One for a whole study: many small programs add up.

    >>> meter = Meter(Limits(steps=10))
    >>> meter.charge(9)
    >>> meter.charge(2)
    Traceback (most recent call last):
    ...
    sfumato.lang.limits.LimitReached: it needs more than 10 steps
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.steps = 0

    @property
    def spent(self) -> bool:
        """Whether nothing more may be done."""
        return self.steps >= self.limits.steps

    def charge(self, steps: int) -> None:
        """Count work before it is done."""
        self.steps += steps
        if self.steps > self.limits.steps:
            raise LimitReached(f"it needs more than {self.limits.steps} steps")
