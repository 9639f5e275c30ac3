"""Which units may depend on each other, and how: the classes of laws a Pufferfish promise holds for.

In:   what a study says of its people: groups of at most so many, or series with a limited memory.
Out:  Dependence: how many units a secret may hang together with, and the flat ε paid for all others.
Not here: the promise itself (core/pufferfish.py), what a study writes (lang/correlated.py).
Proof: docs/proofs/pufferfish.md

Everything rests on one theorem. Split the units other than i into a window N around i, a border Q and the rest, so that
the rest is independent of X_i given X_Q, and let e bound ln Pr(X_Q | X_i=a)/Pr(X_Q | X_i=b). What is (ε-e, δ)-DP for
replacing all of N is (ε, δ)-Pufferfish for X_i. `together` is the size of N with i, `flat` is e.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from sfumato.core.checks import positive, round_up
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import PrivacyParameterError

__all__ = ["Chains", "Dependence", "Groups", "Known", "Reach", "border_cost", "dependence_from_dict"]

#: No window is longer: beyond that nothing useful is left of a budget.
_LONGEST = 100_000
#: Up to here every window is tried; longer ones in steps of 2 % and then around the best.
_EACH = 64


@dataclass(frozen=True)
class Dependence(ABC):
    """A declared class of laws. Abstract; the final classes below are the only ones."""

    @property
    def title(self) -> str:
        """What a promise for it is called."""
        return "Pufferfish"

    @property
    @abstractmethod
    def together(self) -> float:
        """How many units may change together: the larger unit that noise must hide; of a known law its part of one."""

    @property
    def single(self) -> bool:
        """Whether the promise is about one act alone: nothing may be added to it."""
        return False

    @property
    @abstractmethod
    def flat(self) -> float:
        """What the units beyond that may tell, in ε; paid once, however many acts there are. Rounded up."""

    @property
    @abstractmethod
    def laws(self) -> tuple[object, ...]:
        """Which laws it stands for: the same for every window."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Which units may depend on each other, after "for"."""

    @property
    @abstractmethod
    def short(self) -> str:
        """The same in two or three words."""

    @property
    @abstractmethod
    def assumed(self) -> str:
        """What must be true of the world, as a sentence."""

    def for_point(self, epsilon: float, delta: float) -> Dependence:
        """The same class of laws, with what should be hidden together for a promise of (ε, δ)."""
        return self

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """A plain record; `dependence_from_dict` reads it back."""


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PrivacyParameterError(f"{name} must be a whole number of at least 1, not {value!r}. Nothing was spent.")
    return value


@dataclass(frozen=True)
class Groups(Dependence):
    """Groups of at most `size` units, public and independent of each other; any law inside a group.

    >>> Groups(4).together, Groups(4).flat
    (4, 0.0)
    """

    size: int

    def __post_init__(self) -> None:
        _whole(self.size, "The size of a group")

    @property
    def together(self) -> int:
        return self.size

    @property
    def flat(self) -> float:
        return 0.0

    @property
    def laws(self) -> tuple[object, ...]:
        return ("Groups", self.size)

    @property
    def words(self) -> str:
        return f"groups of at most {self.size} that depend on each other in any way"

    @property
    def short(self) -> str:
        return f"groups of {self.size}"

    @property
    def assumed(self) -> str:
        return (
            f"No group has more than {self.size}, who is in which group is public, and different groups are independent"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "Groups", "size": self.size}


@dataclass(frozen=True)
class Reach(Dependence):
    """Nobody depends on anybody, but one unit's data are part of at most `rows` rows, by a public relation.

    >>> Reach(3).together
    3
    """

    rows: int

    def __post_init__(self) -> None:
        _whole(self.rows, "The number of rows")

    @property
    def title(self) -> str:
        return "DP"

    @property
    def together(self) -> int:
        return self.rows

    @property
    def flat(self) -> float:
        return 0.0

    @property
    def laws(self) -> tuple[object, ...]:
        return ("Groups", self.rows)  # what hides so many rows hides them for either reason

    @property
    def words(self) -> str:
        return f"one whose data are part of at most {self.rows} rows"

    @property
    def short(self) -> str:
        return f"{self.rows} rows"

    @property
    def assumed(self) -> str:
        return f"Nobody's data are part of more than {self.rows} rows, as the public tables say"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "Reach", "rows": self.rows}


@dataclass(frozen=True)
class Known(Dependence):
    """The joint law itself, and the one number that is published: a table's chance and the number it gives, each row.

    `distance` is the farthest a secret moves the number: over all units and pairs of values the largest step of the
    monotone coupling of its two conditional laws, which is the best there is. `move` is how far one unit alone does.

    >>> law = ((("0", "0"), "2/5"), (("1", "1"), "2/5"), (("0", "1"), "1/10"), (("1", "0"), "1/10"))
    >>> Known.of([(values, Fraction(chance)) for values, chance in law], (0.0, 2.0, 1.0, 1.0), 1.0).distance
    2.0
    """

    rows: tuple[tuple[tuple[str, ...], str], ...]
    numbers: tuple[float, ...]
    distance: float
    move: float

    def __post_init__(self) -> None:
        _check_law([Fraction(chance) for _, chance in self.rows])
        rows = tuple((tuple(map(str, values)), str(Fraction(chance))) for values, chance in self.rows)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "numbers", tuple(float(one) for one in self.numbers))
        positive(self.move, "move")
        if self.distance != farthest([(values, Fraction(chance)) for values, chance in rows], self.numbers):
            raise PrivacyParameterError("This is not how far the law moves its number. Nothing was spent.")

    @classmethod
    def of(cls, rows: Sequence[tuple[Sequence[object], Fraction]], numbers: Sequence[float], move: float) -> Known:
        _check_law([chance for _, chance in rows])
        named = [(tuple(map(str, values)), chance) for values, chance in rows]
        found = farthest(named, numbers)
        return cls(tuple((values, str(chance)) for values, chance in named), tuple(numbers), found, float(move))

    @property
    def together(self) -> float:
        # Rounding moves the number by a grid step more, as a unit's: at most 1/4096 of that (mechanisms/grid.py).
        part = self.distance / self.move
        return round_up(max(part, (part + 2.0**-12) / (1 + 2.0**-12)), 1e-15)

    @property
    def flat(self) -> float:
        return 0.0

    @property
    def single(self) -> bool:
        return True

    @property
    def laws(self) -> tuple[object, ...]:
        return ("Known", self.rows)

    @property
    def words(self) -> str:
        return f"a known joint law of {len(self.rows[0][0])} (one number, published once)"

    @property
    def short(self) -> str:
        return f"a known law of {len(self.rows[0][0])}"

    @property
    def assumed(self) -> str:
        return (
            "The joint law is the one that was declared, nothing else is known of them, and nothing more is published"
        )

    def to_dict(self) -> dict[str, Any]:
        rows = [[list(values), chance] for values, chance in self.rows]
        numbers = {"numbers": list(self.numbers), "distance": self.distance, "move": self.move}
        return {"kind": "Known", "rows": rows, **numbers}


def _check_law(chances: Sequence[Fraction]) -> None:
    if sum(chances) != 1 or min(chances) <= 0:
        raise PrivacyParameterError("Chances of a law are above 0 and add up to 1. Nothing was spent.")


def farthest(rows: Sequence[tuple[Sequence[str], Fraction]], numbers: Sequence[float]) -> float:
    """W∞ between the laws of the number given two values of one unit, the largest over units and values. Exact."""
    largest = 0.0
    for unit in range(len(rows[0][0])):
        given: dict[str, dict[float, Fraction]] = {}
        for (values, chance), number in zip(rows, numbers, strict=True):
            law = given.setdefault(values[unit], {})
            law[number] = law.get(number, Fraction(0)) + chance
        for one, other in combinations(given.values(), 2):
            largest = max(largest, _monotone(one, other))
    return largest


def _monotone(one: dict[float, Fraction], other: dict[float, Fraction]) -> float:
    """The largest step between equal quantiles of two laws, weights not yet divided by their sums."""
    first, second = (_steps(law) for law in (one, other))
    largest, i, j = 0.0, 0, 0
    while i < len(first) and j < len(second):
        largest = max(largest, abs(first[i][0] - second[j][0]))
        up = first[i][1], second[j][1]
        i, j = i + (up[0] <= up[1]), j + (up[1] <= up[0])
    return largest


def _steps(law: dict[float, Fraction]) -> list[tuple[float, Fraction]]:
    """(number, chance of no more than it), in order."""
    total, below, found = sum(law.values(), Fraction(0)), Fraction(0), []
    for number in sorted(law):
        below += law[number]
        found.append((number, below / total))
    return found


def border_cost(memory: float, before: int, after: int) -> float:
    """e(a, b) = Δτ^(a-1) + Δτ^(b-1) with τ = tanh(Δ/4): what the values a steps before and b steps after may tell.

    >>> round(border_cost(4.394449154672439, 18, 18), 3)
    0.198
    """
    contraction = min(1.0, round_up(math.tanh(memory / 4)))
    return round_up(memory * (contraction ** (before - 1) + contraction ** (after - 1)), 1e-11)


@dataclass(frozen=True)
class Chains(Dependence):
    """One Markov series a person, people independent; `memory` = ln of the largest odds ratio of one step.

    Values less than `before` steps earlier and `after` steps later belong to the window; with `before` = 0 the window
    is the whole series, of `longest` values at most.

    >>> chosen = Chains.best(4.394449154672439, 1.0, 0.0)
    >>> chosen.before, chosen.after, chosen.together
    (18, 18, 35)
    >>> Chains.best(4.394449154672439, 1.0, 0.0, longest=20).flat
    0.0
    """

    memory: float
    before: int
    after: int
    longest: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", positive(self.memory, "memory"))
        if self.longest is not None:
            _whole(self.longest, "The length of a series")
        whole = self.before == self.after == 0 and self.longest is not None
        if not whole:
            _whole(self.before, "The distance to the value before")
            _whole(self.after, "The distance to the value after")

    @property
    def together(self) -> int:
        if self.before:
            return self.before + self.after - 1
        assert self.longest is not None
        return self.longest

    @property
    def flat(self) -> float:
        return border_cost(self.memory, self.before, self.after) if self.before else 0.0

    @property
    def laws(self) -> tuple[object, ...]:
        return ("Chains", self.memory, self.longest)

    @property
    def words(self) -> str:
        if not self.before:
            return f"whole series of at most {self.longest} values that depend on each other in any way"
        length = "" if self.longest is None else f" of at most {self.longest} values"
        return (
            f"series{length} in which each value depends on the one before with memory {self.memory:.6g} "
            f"({self.together} consecutive values hidden together, {self.flat:.4g} of ε for what lies beyond)"
        )

    @property
    def short(self) -> str:
        return f"series with memory {self.memory:.6g}" if self.before else f"series of {self.longest}"

    @property
    def assumed(self) -> str:
        apart = "one row is one value of one series, and different series are independent"
        if not self.before:
            return f"No series has more than {self.longest} values, {apart}"
        return (
            f"Given one value of a series, the later ones do not depend on the earlier ones, no step multiplies odds "
            f"by more than e^{self.memory:.6g}, {apart}"
        )

    def for_point(self, epsilon: float, delta: float) -> Chains:
        return Chains.best(self.memory, epsilon, delta, self.longest)

    def to_dict(self) -> dict[str, Any]:
        numbers = {"memory": self.memory, "before": self.before, "after": self.after, "longest": self.longest}
        return {"kind": "Chains", **numbers}

    @classmethod
    def best(cls, memory: float, epsilon: float, delta: float, longest: int | None = None) -> Chains:
        """The window that needs the least noise for (ε, δ): least n/μ*(ε-e, δ), or n/(ε-e) where δ = 0."""
        memory, epsilon = positive(memory, "memory"), positive(epsilon, "epsilon")
        left = _strength(delta)
        found = cls(memory, 0, 0, longest) if longest is not None else None
        least = longest / left(epsilon) if longest is not None else math.inf
        for one in _windows(memory, epsilon, min(longest or _LONGEST, _LONGEST)):
            if one.together / left(epsilon) > least:
                break  # however little the border of a longer one costs
            needed = one.together / left(epsilon - one.flat)
            if needed < least:
                found, least = cls(memory, one.before, one.after, longest), needed
        if found is None:
            smallest = border_cost(memory, _LONGEST // 2, _LONGEST // 2)
            raise PrivacyParameterError(
                f"A memory of {memory:g} lasts too long: what lies beyond any window may tell {smallest:.3g} of ε, and "
                f"the promise has {epsilon:g}. Ask for ε above {smallest:.3g}, or say how long a series is at most: "
                "chain(T, Goal, Longest). Nothing was planned and nothing was spent."
            )
        return found


def _strength(delta: float) -> Callable[[float], float]:
    return (lambda epsilon: gaussian_mu(epsilon, delta)) if delta > 0 else (lambda epsilon: epsilon)


def _windows(memory: float, epsilon: float, most: int) -> Iterator[Chains]:
    """Windows whose border costs less than ε, the shorter ones first."""
    before = 1
    while 2 * before - 1 <= most:
        for after in (before, before + 1, before + 2):
            if before + after - 1 <= most and border_cost(memory, before, after) < epsilon:
                yield Chains(memory, before, after)
        before += 1 if before < _EACH else before // 50


_CLASSES: dict[str, Callable[..., Dependence]] = {"Groups": Groups, "Chains": Chains, "Reach": Reach, "Known": Known}


def dependence_from_dict(record: Mapping[str, Any]) -> Dependence:
    """The class a record describes.

    >>> dependence_from_dict({"kind": "Groups", "size": 3})
    Groups(size=3)
    """
    fields = dict(record)
    return _CLASSES[fields.pop("kind")](**fields)
