"""What one training run may cost, and what follows from it before any data is seen.

In:   ε, δ, an adjacency, a public size, a width.
Out:  TrainingBudget: which noise it asks for, how long that is, how far neighbours can be apart.
Not here: how strong to regularise and how much to perturb (learn/calibration.py), the noise (learn/training_noise.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.adjacency import Adjacency
from sfumato.core.guarantee import ApproxDP, Guarantee, PureDP
from sfumato.learn.newton import MOST_ROWS_PER_SIZE
from sfumato.learn.training_noise import TrainingNoise, TrainingNoiseName, training_noise

__all__ = ["TrainingBudget"]


@dataclass(frozen=True)
class TrainingBudget:
    """What one training run may cost, who is protected, and the public size under which it is planned.

    `nonzeros` bounds the entries of a row that are not zero, where the schema says so. A model has `outputs`
    coefficients for each of `width` features. `constant` is the size of the feature whose coefficient starts from a
    look at the labels, 0 for none. `penalty` is what public penalties add to the rounding of gradients (PenaltyTerms).
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    size: int
    width: int
    models: int = 1
    nonzeros: int | None = None
    outputs: int = 1
    constant: float = 0.0
    penalty: float = 0.0

    @property
    def law(self) -> TrainingNoiseName:
        """Gaussian noise for δ > 0; else Laplace noise where rows are so sparse that it is shorter, else norm-gamma."""
        if self.delta:
            return "gaussian"
        return "laplace" if self.nonzeros is not None and 2 * self.nonzeros < self.width else "norm-gamma"

    @property
    def noise(self) -> TrainingNoise:
        """What noise of its law has in common."""
        return training_noise(self.law)

    @property
    def slope(self) -> float:
        """The largest norm of one record's gradient: L2, or L1 for Laplace noise (rows of norm 1, few entries)."""
        return self.noise.slope(self.nonzeros)

    def noise_length(self, scale: float) -> float:
        """Expected length of a noise vector."""
        return scale * self.noise.length(self.coefficients)

    def longest_noise(self, scale: float) -> float:
        """A length that a noise vector exceeds with probability at most e^-84.5 and, where δ > 0, 5·10⁻⁷δ."""
        return scale * self.noise.longest(self.coefficients, self.delta)

    @property
    def coefficients(self) -> int:
        """Numbers that one model consists of."""
        return self.outputs * self.width

    @property
    def most_rows(self) -> float:
        """How many rows there can be, in multiples of the size: it is their number under replace-one."""
        return 1.0 if self.adjacency.relation == "replace-one" else MOST_ROWS_PER_SIZE

    @property
    def moved(self) -> int:
        """By how many record's gradients neighbours differ."""
        return 2 if self.adjacency.relation == "replace-one" else 1

    def promise(self) -> Guarantee:
        if self.delta:
            return ApproxDP(self.epsilon, self.delta, adjacency=self.adjacency)
        return PureDP(self.epsilon, adjacency=self.adjacency)
