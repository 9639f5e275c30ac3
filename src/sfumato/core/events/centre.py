"""Records of noise that several institutions draw together, so that no one of them knows all of it.

In:   what the shares of the honest centres add up to, and how many centres may be dishonest.
Out:  SharedGaussianEvent, SharedLaplaceEvent.
Not here: drawing a share (mechanisms/shares.py), who sends what to whom (centres/).
Proof: docs/proofs/distributed_noise.md
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.checks import round_up
from sfumato.core.events.event import AdditiveEvent
from sfumato.core.guarantee import GaussianDP, Guarantee, PureDP
from sfumato.core.norms import L1, L2, Norm
from sfumato.errors import PrivacyParameterError

__all__ = ["LARGEST_CENTRES", "SharedEvent", "SharedGaussianEvent", "SharedLaplaceEvent"]

LARGEST_CENTRES = 4096
#: The least standard deviation of one Gaussian share, in cells of its grid, for which the proof note's bound is used.
_LEAST_CELLS = 1024.0


@dataclass(frozen=True)
class SharedEvent(AdditiveEvent):
    """The sum of noise shares, of which any `honest` make up the law of this `scale`. Abstract.

    `centres` take part in all; up to `colluders` of them, and everybody who reads the result, may pool what they know.
    """

    honest: int = 1
    centres: int = 1
    colluders: int = 0

    def _check(self) -> None:
        super()._check()
        for name, least in (("honest", 1), ("centres", 1), ("colluders", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise PrivacyParameterError(f"{name} must be a whole number of at least {least}. Nothing was spent.")
        if self.centres > LARGEST_CENTRES:
            raise PrivacyParameterError(f"More than {LARGEST_CENTRES} centres are not proved. Nothing was spent.")
        if self.honest + self.colluders > self.centres:
            raise PrivacyParameterError(
                f"{self.honest} honest centres and {self.colluders} colluders are more than the {self.centres} there "
                "are. Nothing was spent."
            )

    @abstractmethod
    def guarantee(self) -> Guarantee: ...

    @abstractmethod
    def seen_by(self, knowing: int, unknown: int) -> SharedEvent:
        """What a sum costs towards an observer who knows `knowing` of its shares and not the other `unknown`."""


@dataclass(frozen=True)
class SharedGaussianEvent(SharedEvent):
    """Shares round(N(0, scale²/honest)) from each centre, on integers of joint L2 `sensitivity` in cells of `grid`.

    The sum of `honest` of them is within e^-5000000 of a function of N(0, scale²); a relative 1e-12 on μ pays for it.
    """

    proof: ClassVar[str] = "distributed_noise"
    norm: ClassVar[Norm] = L2
    law: ClassVar[str] = "Gaussian noise"

    def _check(self) -> None:
        super()._check()
        if self.grid <= 0 or self.scale < _LEAST_CELLS * self.grid * math.sqrt(self.honest):
            raise PrivacyParameterError(
                f"A Gaussian share must span at least {_LEAST_CELLS:g} cells of its grid: take a finer grid. "
                "Nothing was spent."
            )

    @property
    def mu(self) -> float:
        return round_up(self._ratio(math.sqrt(self.dimension)), 1e-12)

    def guarantee(self) -> GaussianDP:
        return GaussianDP(self.mu, adjacency=self.adjacency)

    def seen_by(self, knowing: int, unknown: int) -> SharedGaussianEvent:
        """More unknown shares than promised are wider noise."""
        wider = math.sqrt(unknown / self.honest) * (1 - 1e-15)
        scale = max(self.scale, self.scale * wider)
        return dataclasses.replace(self, scale=scale, honest=unknown, colluders=knowing)


@dataclass(frozen=True)
class SharedLaplaceEvent(SharedEvent):
    """Pólya shares: `honest` of them sum exactly to two-sided geometric noise of this scale; L1 `sensitivity`."""

    proof: ClassVar[str] = "distributed_noise"
    norm: ClassVar[Norm] = L1
    law: ClassVar[str] = "Laplace noise"

    @property
    def eps(self) -> float:
        return self._ratio(self.dimension)

    def guarantee(self) -> PureDP:
        return PureDP(self.eps, adjacency=self.adjacency)

    def seen_by(self, knowing: int, unknown: int) -> SharedLaplaceEvent:
        """Of Pólya shares only the promise itself is claimed."""
        return self
