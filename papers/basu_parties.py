"""The data of Basu, §5.5.1: n parties, one attribute each, a public target that depends on transformed attributes.

In:   the name of a data set, a generator.
Out:  Dataset: public domain, uses, how a sample is drawn.
Not here: privatising and fitting (basu_methods.py), the studies (basu_channels.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.core.domain import Interval
from sfumato.mechanisms.tailored.uses import Use, as_use

__all__ = ["BUDGETS", "DATASETS", "PARTIES", "Dataset", "Sample"]

#: The thesis' twelve budgets.
BUDGETS = tuple(2.0**power for power in (-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6))
PARTIES = 10_000
#: ε* of the thesis: how near an attribute may come to a singular point.
GUARD = 1e-2


@dataclass(frozen=True)
class Sample:
    """Attributes (private), targets and what the targets are but for their own noise."""

    attributes: np.ndarray
    targets: np.ndarray
    expected: np.ndarray


@dataclass(frozen=True)
class Dataset:
    """y = expected(a) + noise·N(0, 1), a uniform on the domain; the model is linear in 1 and the uses of a."""

    id: str
    words: str
    domain: Interval
    uses: tuple[Use, ...]
    expected: Callable[[np.ndarray], np.ndarray]
    noise: float

    def draw(self, count: int, generator: np.random.Generator) -> Sample:
        attributes = generator.uniform(self.domain.low, self.domain.high, count)
        expected = self.expected(attributes)
        return Sample(attributes, expected + self.noise * generator.normal(size=count), expected)

    def features(self, attributes: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(attributes)), *(use(attributes) for use in self.uses)])


def _linear(name: str, words: str, *uses: str) -> Dataset:
    functions = tuple(as_use(use) for use in uses)

    def expected(attributes: np.ndarray) -> np.ndarray:
        return 1 + np.sum([use(attributes) for use in functions], axis=0)

    return Dataset(name, words, Interval(GUARD, 1.0), functions, expected, 1.0)


_B1, _B2, _SPREAD = 4.37e2, 3.02e-4, 2.93e-6


def _adsorption(name: str, rate: float) -> Use:
    return Use(name, lambda a: 1 / (1 + rate * a))


def _misra() -> Dataset:
    """(5.39), (5.40): two almost equal features of one attribute, little noise."""
    uses = (_adsorption("1/(1+c₁a)", _B2 + _SPREAD), _adsorption("1/(1+c₂a)", _B2 + 1.1 * _SPREAD))
    return Dataset(
        "misra1d",
        "y = b₁b₂a/(1 + b₂a) + noise",
        Interval(0.0, 1000.0),
        uses,
        lambda a: _B1 * _B2 * a / (1 + _B2 * a),
        6.85e-2,
    )


DATASETS: dict[str, Dataset] = {
    data.id: data
    for data in (
        _linear("ds0", "y = 1 + a + noise", "identity"),
        _linear("ds1a", "y = 1 + log a + noise", "log"),
        _linear("ds1b", "y = 1 + a + log a + noise", "identity", "log"),
        _linear("ds2a", "y = 1 + 1/a + noise", "inverse"),
        _linear("ds2b", "y = 1 + a + 1/a + noise", "identity", "inverse"),
        _linear("ds3a", "y = 1 + tan a + noise", "tan"),
        _linear("ds3b", "y = 1 + a + tan a + noise", "identity", "tan"),
        _misra(),
    )
}
