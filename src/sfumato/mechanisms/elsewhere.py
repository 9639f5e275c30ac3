"""Noise that is drawn elsewhere: a method that asks for noisy sums, carried out where nobody has all the rows.

In:   what was published so far, the public number of records.
Out:  the published numbers, one request after the other; Unanswered at the first request that has no answer yet.
Not here: who adds up and draws (centres/, run/course.py).
Proof: docs/proofs/centre_acts.md

A method is begun again after every round: with the same public seed and the same answers it asks the same questions, so
every institution knows what is summed next and by how much noise it is protected, and nobody has to hold its state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import numpy as np

from sfumato.mechanisms.additive import Additive

__all__ = ["Elsewhere", "PublishedSum", "Unanswered"]


class Unanswered(Exception):
    """The next numbers that a method asks for: the noise of each, and what the rows at hand add to them (private)."""

    def __init__(self, noises: Sequence[Additive], exact: Sequence[np.ndarray]) -> None:
        super().__init__("These sums are not published yet.")
        self.noises, self.exact = tuple(noises), tuple(exact)


class PublishedSum(NamedTuple):
    """Published sums: how often the variance of their noise is in them, and how many records they are of."""

    values: np.ndarray
    times: float = 1.0
    records: int = 0


@final
class Elsewhere:
    """Takes the place of a random_state: `seen` answers requests in order, `seed` draws what is public anyway.

    `records` is how many records all parts had together at the beginning.

    >>> from sfumato.core import ADD_REMOVE
    >>> from sfumato.mechanisms.gaussian import Gaussian
    >>> noise = Gaussian(1.0, 1.0, ADD_REMOVE, 1)
    >>> Elsewhere(0, [PublishedSum(np.array([3.0]))])([noise], [np.array([0.0])])
    [array([3.])]
    """

    def __init__(self, seed: int, seen: Sequence[PublishedSum] = (), records: int = 0) -> None:
        self.seed, self.records = seed, records
        self.asked: list[Additive] = []
        self._seen = list(seen)

    def __call__(
        self, noises: Sequence[Additive], exact: Sequence[np.ndarray | Callable[[], np.ndarray]]
    ) -> list[np.ndarray]:
        """What was published of these sums; all requests of one call are answered at once.

        Sums that are given as functions are added up only where they are asked for; their answers are flat.
        """
        start = len(self.asked)
        if start + len(noises) > len(self._seen):
            raise Unanswered(noises, [own() if callable(own) else own for own in exact])
        self.asked += noises
        answers = [one.values for one in self._seen[start : start + len(noises)]]
        return [one if callable(own) else np.reshape(one, own.shape) for one, own in zip(answers, exact, strict=True)]

    def deviation(self, noise: Additive) -> float:
        """Of one number of an answer, with the noise of everybody who took part."""
        return math.sqrt(noise.error() * self._answer(noise).times)  # type: ignore[attr-defined]

    def records_of(self, noise: Additive) -> int:
        """How many records an answer is of: those of everybody who took part."""
        return self._answer(noise).records

    def _answer(self, noise: Additive) -> PublishedSum:
        return self._seen[next(place for place, one in enumerate(self.asked) if one is noise)]
