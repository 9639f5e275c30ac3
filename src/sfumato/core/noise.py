"""Laws of additive noise on one number: density, variance, Fisher information.

In:   the parameters of a law.
Out:  what a reader of noisy data may know about the noise; nothing here is random.
Not here: drawing (mechanisms/), what the laws promise (core/events/event.py).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.core.checks import at_least_zero, positive
from sfumato.core.special import ndtr
from sfumato.errors import PrivacyParameterError

__all__ = ["BoxNoise", "GaussianNoise", "LaplaceNoise", "Noise", "SummedNoise"]

#: Squares of wider boxes, and of their inverses, leave the floats.
_WIDEST = 1e150


@dataclass(frozen=True)
class Noise(ABC):
    """A symmetric law with mean zero. Abstract."""

    #: Within how many standard deviations 95 of 100 draws are; taken for normal where a law does not say so itself.
    deviations_95: ClassVar[float] = 1.959963984540054

    @abstractmethod
    def variance(self) -> float: ...

    @abstractmethod
    def fisher_information(self) -> float:
        """Information about a shift: ∫ (p'/p)² p."""

    @abstractmethod
    def density(self, values: Any) -> np.ndarray: ...

    @abstractmethod
    def cdf(self, values: Any) -> np.ndarray: ...


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """N(0, scale²).

    >>> GaussianNoise(2.0).fisher_information()
    0.25
    """

    scale: float

    def __post_init__(self) -> None:
        positive(self.scale, "scale")

    def variance(self) -> float:
        return self.scale**2

    def fisher_information(self) -> float:
        return 1 / self.scale**2

    def density(self, values: Any) -> np.ndarray:
        ratio = np.asarray(values, dtype=float) / self.scale
        return np.exp(-0.5 * ratio**2) / (self.scale * math.sqrt(2 * math.pi))

    def cdf(self, values: Any) -> np.ndarray:
        return np.asarray(ndtr(np.asarray(values, dtype=float) / self.scale))


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """Density exp(-|n|/scale)/(2 scale): variance 2 scale², information 1/scale²."""

    deviations_95: ClassVar[float] = math.log(20) / math.sqrt(2)

    scale: float

    def __post_init__(self) -> None:
        positive(self.scale, "scale")

    def variance(self) -> float:
        return 2 * self.scale**2

    def fisher_information(self) -> float:
        return 1 / self.scale**2

    def density(self, values: Any) -> np.ndarray:
        return np.exp(-np.abs(np.asarray(values, dtype=float)) / self.scale) / (2 * self.scale)

    def cdf(self, values: Any) -> np.ndarray:
        ratio = np.asarray(values, dtype=float) / self.scale
        tail = 0.5 * np.exp(-np.abs(ratio))
        return np.where(ratio < 0, tail, 1 - tail)


@dataclass(frozen=True)
class BoxNoise(Noise):
    """Noise that never leaves [-half_width, half_width] and has the least information plus `stiffness`·variance.

    The density is u² with u the ground state of -u'' + (stiffness/4) n² u = E u, u = 0 at the walls: a harmonic
    oscillator in a box (Farokhi 2020, Cor. 2.7, with the eigenvalue condition put right).
    4E = information + stiffness·variance.

    >>> round(BoxNoise(1.0).fisher_information() / math.pi**2, 6)
    1.0
    """

    half_width: float
    stiffness: float = 0.0

    def __post_init__(self) -> None:
        positive(self.half_width, "half_width")
        at_least_zero(self.stiffness, "stiffness")
        if not 1 / _WIDEST <= self.half_width <= _WIDEST:
            raise PrivacyParameterError(
                f"A box of half width {self.half_width:g} has a variance that no number holds. Take one between "
                f"{1 / _WIDEST:g} and {_WIDEST:g}, or measure the column in other units. Nothing was drawn or spent."
            )

    @cached_property
    def _ground_state(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Frequencies and coefficients on cos((k-½)πt), k = 1 …, t = n/half_width, and the mean of t².

        This is the even Dirichlet basis, so the coefficients fall off exponentially.
        """
        from scipy.linalg import eigh

        strength = self.stiffness / 4 * self.half_width**4 if self.stiffness else 0.0
        size = 48 + 4 * math.ceil(strength**0.25)
        frequency = (np.arange(1, size + 1) - 0.5) * math.pi
        sums, differences = np.add.outer(frequency, frequency), np.subtract.outer(frequency, frequency)
        with np.errstate(divide="ignore", invalid="ignore"):
            # ∫_{-1}^{1} t² cos(at) dt for a a multiple of π, and 2/3 for a = 0.
            square = np.where(differences == 0, 1 / 3, 2 * np.cos(differences) / differences**2)
        square = square + 2 * np.cos(sums) / sums**2
        np.fill_diagonal(square, 1 / 3 + 2 * np.cos(2 * frequency) / (2 * frequency) ** 2)
        matrix = np.diag(frequency**2) + strength * square
        vector = eigh(matrix, subset_by_index=[0, 0])[1][:, 0]
        return frequency, vector * np.sign(vector.sum()), float(vector @ square @ vector)

    def variance(self) -> float:
        return self.half_width**2 * self._ground_state[2]

    def fisher_information(self) -> float:
        frequency, vector, _ = self._ground_state
        return 4 * float(np.sum((frequency * vector) ** 2)) / self.half_width**2

    def density(self, values: Any) -> np.ndarray:
        frequency, vector, _ = self._ground_state
        place = np.asarray(values, dtype=float) / self.half_width
        heard = np.abs(vector) > 1e-19  # the others are lost in the rounding of the largest
        state = np.cos(np.multiply.outer(place, frequency[heard])) @ vector[heard]
        return np.where(np.abs(place) < 1, state**2, 0.0) / self.half_width

    def masses(self, edges: np.ndarray) -> np.ndarray:
        """P[edge < n < next edge] for cells that are narrow beside the law: Gauss' three points of u² in each.

        Differences of `cdf` lose everything below 1e-16; squares keep the tails, down to about 1e-26 of the largest.

        >>> bool(abs(BoxNoise(1.0, 5.0).masses(np.linspace(-1, 1, 4097)).sum() - 1) < 1e-9)
        True
        """
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        outer = math.sqrt(0.6) * half
        sides = self.density(middle - outer) + self.density(middle + outer)
        return half * (5 / 9 * sides + 8 / 9 * self.density(middle))

    def cdf(self, values: Any) -> np.ndarray:
        """∫ u² term by term: products of cosines integrate to sines."""
        frequency, vector, _ = self._ground_state
        place = np.clip(np.asarray(values, dtype=float) / self.half_width, -1.0, 1.0)
        pairs = np.multiply.outer(vector, vector)
        sums, differences = np.add.outer(frequency, frequency), np.subtract.outer(frequency, frequency)
        spectrum: dict[int, float] = {}
        for multiple, weight in ((sums, pairs / 2), (differences, pairs / 2)):
            keys = np.rint(np.abs(multiple) / math.pi).astype(int)
            for key, total in enumerate(np.bincount(keys.ravel(), weights=weight.ravel())):
                spectrum[key] = spectrum.get(key, 0.0) + float(total)
        result = spectrum.pop(0) * (place + 1)
        for key, total in spectrum.items():
            result = result + total * (np.sin(key * math.pi * place) / (key * math.pi))
        return np.clip(result, 0.0, 1.0)


@dataclass(frozen=True)
class SummedNoise(Noise):
    """Σ weight·b over independent b of one box law: what one column has where box noise is drawn on sums of columns.

    Density and distribution are those of whole cells, 1/300 of a deviation wide: right to about 1e-5.

    >>> law = SummedNoise(1.0, 0.0, (0.5, -0.5))
    >>> round(law.variance() / BoxNoise(1.0).variance(), 6), round(float(law.cdf(0.0)), 6)
    (0.5, 0.5)
    """

    half_width: float
    stiffness: float
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.weights or not all(math.isfinite(weight) and weight for weight in self.weights):
            raise PrivacyParameterError("A sum of noise needs weights that are numbers other than 0.")
        self._one(self.weights[0])

    def _one(self, weight: float) -> BoxNoise:
        return BoxNoise(self.half_width * abs(weight), self.stiffness / weight**4)

    def variance(self) -> float:
        return self._one(1.0).variance() * math.fsum(weight**2 for weight in self.weights)

    @cached_property
    def _cells(self) -> tuple[float, np.ndarray]:
        """The width of a cell, and the masses of the cells -m … m."""
        deviation = math.sqrt(self.variance())
        step, total = deviation / 300, np.ones(1)
        for weight in self.weights:
            part = self._one(weight)
            reach = math.ceil(min(part.half_width, 14 * math.sqrt(part.variance())) / step)
            edges = (np.arange(-reach, reach + 2) - 0.5) * step
            masses = part.masses(np.clip(edges, -part.half_width, part.half_width))
            total = np.convolve(total, masses / masses.sum())
        return step, total

    def fisher_information(self) -> float:
        """Of the sum alone; who sees the other columns as well knows more."""
        step, masses = self._cells
        slopes, middles = np.diff(masses), (masses[1:] + masses[:-1]) / 2
        seen = middles > 0
        return float((slopes[seen] ** 2 / middles[seen]).sum()) / step**2

    def density(self, values: Any) -> np.ndarray:
        step, masses = self._cells
        places = (np.arange(len(masses)) - len(masses) // 2) * step
        return np.interp(np.asarray(values, dtype=float), places, masses / step, left=0.0, right=0.0)

    def cdf(self, values: Any) -> np.ndarray:
        step, masses = self._cells
        edges = (np.arange(len(masses) + 1) - len(masses) // 2 - 0.5) * step
        return np.interp(np.asarray(values, dtype=float), edges, np.append(0.0, np.minimum(np.cumsum(masses), 1.0)))
