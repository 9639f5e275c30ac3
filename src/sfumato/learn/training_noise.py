"""What differs between the laws of noise that a model is trained with: one final class a law.

In:   a name as events write it.
Out:  TrainingNoise: how long its vectors are, how a record's gradient is measured, its mechanism.
Not here: how much of it a run needs (learn/calibration.py), drawing (mechanisms/).
Proof: docs/proofs/objective_perturbation.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Literal, final

from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.norm_gamma import NormGamma

__all__ = ["TAIL_SHARE", "TrainingNoise", "TrainingNoiseName", "training_noise"]

TrainingNoiseName = Literal["gaussian", "norm-gamma", "laplace"]

#: What the masks' far tail and the noise too long for the solver's tolerance may take of δ, each.
TAIL_SHARE = 5e-7
#: Norms of noise beyond the planned longest have at most the probability e^-84.5.
_FAR, _FAR_EXPONENT = 13.0, 85.0


class TrainingNoise(ABC):
    """Noise of one law in every coefficient of a model. Abstract."""

    name: ClassVar[TrainingNoiseName]
    mechanism: ClassVar[type[Gaussian] | type[NormGamma] | type[Laplace]]
    #: As a sentence goes on after "the noise is".
    words: ClassVar[str]
    #: Whether gradients are measured by the sum norm, so that rows with few entries need less noise.
    counts_entries: ClassVar[bool] = False
    #: The norm of one record's joint gradient in units of its row's; Gaussian noise follows its corners instead.
    joint_gradient: ClassVar[float]

    @abstractmethod
    def length(self, size: int) -> float:
        """Expected length of a noise vector of scale 1."""

    def longest(self, size: int, delta: float) -> float:
        """A length at scale 1 exceeded with probability at most e^-84.5 and, where δ > 0, 5·10⁻⁷δ."""
        # The length of a norm-gamma vector, and the L1 norm of a Laplace one, are Gamma(size).
        return size + math.sqrt(2 * _FAR_EXPONENT * size) + _FAR_EXPONENT

    def slope(self, nonzeros: int | None) -> float:
        """The largest norm of one record's gradient, of rows of norm 1."""
        return 1.0


@final
class GaussianTraining(TrainingNoise):
    """Independent normal noise."""

    name = "gaussian"
    mechanism = Gaussian
    words = "Gaussian"
    joint_gradient = 1.0

    def length(self, size: int) -> float:
        return math.sqrt(size)

    def longest(self, size: int, delta: float) -> float:
        return math.sqrt(size) + max(_FAR, math.sqrt(-2 * math.log(TAIL_SHARE * delta)))


@final
class NormGammaTraining(TrainingNoise):
    """A random direction with a Gamma length."""

    name = "norm-gamma"
    mechanism = NormGamma
    words = "of density proportional to exp(-length)"
    joint_gradient = math.sqrt(2)

    def length(self, size: int) -> float:
        return size


@final
class LaplaceTraining(TrainingNoise):
    """Independent Laplace noise: shorter where rows have few entries."""

    name = "laplace"
    mechanism = Laplace
    words = "Laplace, since the schema makes rows sparse"
    counts_entries = True
    joint_gradient = 2.0

    def length(self, size: int) -> float:
        return math.sqrt(2 * size)

    def slope(self, nonzeros: int | None) -> float:
        return math.sqrt(nonzeros or 1)


_LAWS: dict[str, TrainingNoise] = {
    law.name: law for law in (GaussianTraining(), NormGammaTraining(), LaplaceTraining())
}


def training_noise(name: TrainingNoiseName) -> TrainingNoise:
    """The law of a name.

    >>> training_noise("laplace").counts_entries, training_noise("gaussian").length(4)
    (True, 2.0)
    """
    return _LAWS[name]
