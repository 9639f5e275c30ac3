"""Seeds for experiments: one random_state, as many independent streams as there are draws.

In:   random_state as scikit-learn knows it.
Out:  Seeds.seeded: the same mechanism with the next stream, or with fresh bits where no state was given;
      Seeds.released: noisy numbers, drawn here or published elsewhere.
Not here: the bits (mechanisms/bits.py).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from sfumato.errors import InputError, UnprovedError
from sfumato.mechanisms.elsewhere import Elsewhere

__all__ = ["Seeds", "seed_from"]

AnyMechanism = TypeVar("AnyMechanism")


class Seeds:
    """A sequence of seeds, or of None for results that may be published."""

    def __init__(self, entropy: int | None, elsewhere: Elsewhere | None = None) -> None:
        self._sequence = None if entropy is None else np.random.SeedSequence(entropy)
        self._elsewhere = elsewhere

    @property
    def publishable(self) -> bool:
        """Whether nobody can repeat the draws: what a certificate says is decided here, at the draw."""
        return self._sequence is None or self._elsewhere is not None

    def next(self) -> int | None:
        if self._sequence is None:
            return None
        words = self._sequence.spawn(1)[0].generate_state(2, np.uint64)
        return int(words[0]) << 64 | int(words[1])

    def seeded(self, mechanism: AnyMechanism) -> AnyMechanism:
        if self._elsewhere is not None:  # the seed is public there
            raise UnprovedError("This method draws noise where several institutions would have to. Nothing was drawn.")
        return dataclasses.replace(mechanism, random_state=self.next())  # type: ignore[type-var]

    @property
    def is_shared(self) -> bool:
        """Whether others have records too, and all draw together."""
        return self._elsewhere is not None

    def released(self, mechanism: Any, exact: np.ndarray | Callable[[], np.ndarray]) -> np.ndarray:
        """The numbers with noise: drawn here, or where several institutions draw it together what they published."""
        if self._elsewhere is not None:
            return self._elsewhere([mechanism], [exact])[0]
        return self.seeded(mechanism)(exact() if callable(exact) else exact)

    def deviation(self, mechanism: Any) -> float:
        """The standard deviation of the noise in one of those numbers."""
        return math.sqrt(mechanism.error()) if self._elsewhere is None else self._elsewhere.deviation(mechanism)

    def records(self, here: int) -> int:
        """How many records there are in all; `here`, unless others have some too."""
        return here if self._elsewhere is None else self._elsewhere.records

    def records_of(self, mechanism: Any, here: float) -> float:
        """How many records released numbers are of."""
        return here if self._elsewhere is None else float(self._elsewhere.records_of(mechanism))


def seed_from(random_state: Any) -> Seeds:
    """From None, a whole number, or a numpy RandomState or Generator (of which one number is drawn)."""
    if random_state is None:
        return Seeds(None)
    if isinstance(random_state, Elsewhere):
        return Seeds(random_state.seed, random_state)
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return Seeds(abs(int(random_state)) * 2 + int(random_state < 0))
    if isinstance(random_state, np.random.RandomState):
        return Seeds(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return Seeds(int(random_state.integers(2**62)))
    raise InputError(
        "random_state must be None, a whole number, or a numpy RandomState or Generator. Nothing was spent."
    )
