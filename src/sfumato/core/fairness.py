"""Fairness of a yes-or-no rule, measured with noise: how large the gap between groups may be, and what must give way.

In:   noisy sums of a rule's answers by group (and by label), the noise, a confidence.
Out:  Fairness (what is asked), MeasuredGap: a bound of the gap, the share of answers that may stay, a constant.
Not here: the rule and the noise (learn/fair.py); the verifier's own road (evidence/fairness.py).
Proof: docs/proofs/fairness.md

A rule r gives a chance of yes; its gap is the largest difference of its mean between two groups: of everybody
(demographic parity), of those whose label is yes (equal opportunity), of those with either label (equalized odds).
Mixing it with a constant c, s·r + (1-s)·c, multiplies every gap by s: constants drop out of differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, get_args

from sfumato.core.checks import number, positive
from sfumato.core.special import ndtri
from sfumato.errors import PrivacyParameterError

__all__ = ["Fairness", "Measure", "MeasuredGap", "Where"]

Measure = Literal["demographic_parity", "equal_opportunity", "equalized_odds"]
Where = Literal["population", "rows"]

_WORDS = {
    "demographic_parity": "the chance of a yes",
    "equal_opportunity": "the chance of a yes for those whose label is yes",
    "equalized_odds": "the chance of a yes for those whose label is yes, and for those whose label is no,",
}
#: Noise lives on a grid of powers of two: what that may add to it, relatively.
_GRID = 1e-5
#: Below this a rule is told to be fair by saying next to nothing.
NEARLY_CONSTANT = 0.5


@lru_cache(maxsize=64)
def _quantile(chance: float) -> float:
    return float(ndtri(chance))


@dataclass(frozen=True)
class Fairness:
    """What is asked of a rule: no gap above `gap` between any two of `groups`, with this confidence.

    `where`: of the population the rows are drawn from, or of the measured rows themselves.

    >>> print(Fairness("demographic_parity", 0.05, ("f", "m"), "population", 0.95))
    the chance of a yes differs between f, m by at most 0.05 in the population, with confidence 95 %
    """

    measure: Measure
    gap: float
    groups: tuple[str, ...]
    where: Where
    confidence: float

    def __post_init__(self) -> None:
        if self.measure not in get_args(Measure):
            raise PrivacyParameterError(f"{self.measure!r} is none of {', '.join(get_args(Measure))}.")
        if self.where not in get_args(Where):
            raise PrivacyParameterError("A gap is that of the 'population' or of the 'rows'.")
        object.__setattr__(self, "groups", tuple(map(str, self.groups)))
        if len(set(self.groups)) < 2 or len(set(self.groups)) < len(self.groups):
            raise PrivacyParameterError("Fairness is between at least two groups, each listed once.")
        object.__setattr__(self, "gap", positive(self.gap, "gap", "Only a constant rule has a gap of 0. "))
        if self.gap >= 1:
            raise PrivacyParameterError("A gap of 1 or more asks for nothing: every rule has it.")
        if not 0.5 <= number(self.confidence, "confidence") < 1:
            raise PrivacyParameterError("confidence must lie in [0.5, 1), for instance 0.95.")

    @property
    def by_label(self) -> bool:
        """Whether people are counted by their label too."""
        return self.measure != "demographic_parity"

    @property
    def cells(self) -> int:
        """How many cells there are: a group, or a group and a label (no first)."""
        return len(self.groups) * (2 if self.by_label else 1)

    def cell(self, group: int, label: int) -> int:
        return 2 * group + label if self.by_label else group

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The cells that are compared."""
        labels = {"demographic_parity": (0,), "equal_opportunity": (1,), "equalized_odds": (0, 1)}[self.measure]
        groups = combinations(range(len(self.groups)), 2)
        return tuple((self.cell(a, y), self.cell(b, y)) for a, b in groups for y in labels)

    @property
    def compared(self) -> int:
        return len({cell for pair in self.pairs for cell in pair})

    def allowance(self, first: float, second: float, scale: float) -> float:
        """By how much two measured means may differ by chance: noise, and the draw of people for a population.

        `first` and `second` are noisy sizes; infinite where one of them may be nobody.
        """
        beta = 1 - self.confidence
        each, drawn = beta / (4 * self.compared), beta / (2 * len(self.pairs))
        noise = scale * (1 + _GRID)
        least = [size + 2 * noise * _quantile(each) for size in (first, second)]
        if min(least) <= 0 or min(first, second) <= 0:
            return math.inf
        allowed = -noise * math.sqrt(2) * _quantile(each / 2) * (1 / first + 1 / second)
        if self.where == "population":
            allowed += math.sqrt(math.log(2 / drawn) / 2 * (1 / least[0] + 1 / least[1]))
        return allowed * (1 + 1e-12)

    def share_for(self, gap: float, size: float, scale: float) -> float:
        """The share of its answers that a rule with this gap may keep, when each cell has `size` people."""
        bound = min(1.0, gap + self.allowance(size, size, scale))
        return min(1.0, self.gap / bound) if bound > 0 else 1.0

    @property
    def of_whom(self) -> str:
        """Which people of a group are measured, after "people"; empty where all are."""
        return {"demographic_parity": "", "equal_opportunity": " whose label is yes"}.get(self.measure, " of a label")

    def __str__(self) -> str:
        place = "in the population" if self.where == "population" else "among the people it was measured on"
        return (
            f"{_WORDS[self.measure]} differs between {', '.join(self.groups)} by at most {self.gap:g} {place}, with "
            f"confidence {100 * self.confidence:g} %"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            "gap": self.gap,
            "groups": list(self.groups),
            "where": self.where,
            "confidence": self.confidence,
        }

    @classmethod
    def from_dict(cls, record: Any) -> Fairness:
        return cls(record["measure"], record["gap"], tuple(record["groups"]), record["where"], record["confidence"])


@dataclass(frozen=True)
class MeasuredGap:
    """Noisy sums of r - ½ and noisy sizes, cell by cell, with noise of `scale` on the sums and twice that on the sizes.

    >>> asked = Fairness("demographic_parity", 0.05, ("f", "m"), "rows", 0.95)
    >>> found = MeasuredGap(asked, (100.0, -100.0), (1000.0, 1000.0), 4.0)
    >>> round(found.bound, 3), round(found.share, 3), found.constant
    (0.231, 0.217, 1)
    """

    asked: Fairness
    sums: tuple[float, ...]
    sizes: tuple[float, ...]
    scale: float

    @property
    def bound(self) -> float:
        """The gap of the rule is no larger, with the confidence that is asked for."""
        found = 0.0
        for a, b in self.asked.pairs:
            allowed = self.asked.allowance(self.sizes[a], self.sizes[b], self.scale)
            if math.isinf(allowed):
                return 1.0
            found = max(found, abs(self.sums[a] / self.sizes[a] - self.sums[b] / self.sizes[b]) + allowed)
        return min(1.0, found * (1 + 1e-12))

    @property
    def share(self) -> float:
        """Of all answers that stay the rule's own; the others are the constant."""
        return min(1.0, self.asked.gap / self.bound * (1 - 1e-12))

    @property
    def constant(self) -> int:
        """The better constant: the label that more people have, or the answer that the rule itself gives most."""
        if not self.asked.by_label:
            return int(math.fsum(self.sums) >= 0)
        return int(math.fsum(self.sizes[1::2]) >= math.fsum(self.sizes[::2]))

    def price(self, labels: Sequence[Any] = ("no", "yes")) -> str:
        """What fairness costs, in a sentence; `labels` are the answers, no first and yes second."""
        kept = 100 * self.share
        told = (
            f"{kept:.3g} % of all answers are the rule's own, the others are {labels[self.constant]} "
            f"whoever asks: its error is {self.share:.3g} times the rule's and {1 - self.share:.3g} times that of "
            "always giving this answer"
        )
        return f"{told}. Fair by being nearly constant." if self.share < NEARLY_CONSTANT else f"{told}."

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.asked.to_dict(),
            "sums": list(self.sums),
            "sizes": list(self.sizes),
            "scale": self.scale,
            "bound": self.bound,
            "share": self.share,
            "constant": self.constant,
        }

    @classmethod
    def of(cls, asked: Fairness, noisy: Sequence[float], scale: float) -> MeasuredGap:
        """From the numbers as they were drawn: sums of r - ½, then halves of sizes."""
        numbers = [float(one) for one in noisy]
        return cls(asked, tuple(numbers[: asked.cells]), tuple(2 * one for one in numbers[asked.cells :]), scale)
