"""One group's individuals towards one observer: the settled way to noise them, and what it takes of the budget.

In:   a template, the observed nodes with their weights, a budget.
Out:  IndividualPart: CutPart or LinearPart, each with its difficulty, its draws, its simulated errors.
Not here: splitting the budget over parts and aggregates (plan/settle.py).
Proof: docs/proofs/cut_placement.md, docs/proofs/linear_placement.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from sfumato.core import Adjacency
from sfumato.errors import PlanError
from sfumato.lang.deadline import check_time
from sfumato.plan.discrete import SampleCandidate, SampleDraw
from sfumato.plan.draw import Draw, combined_variance, refinements
from sfumato.plan.draw_law import NoiseName, draw_law
from sfumato.plan.individual import CutCandidate, best_cut
from sfumato.plan.linear.individual import LinearCandidate, LinearDraw, linear_candidate, linear_refinements
from sfumato.plan.plan import Considered
from sfumato.plan.template import Numbers, Template

__all__ = [
    "CORRELATED",
    "MOST_SEEN",
    "AnyDraw",
    "CutPart",
    "IndividualPart",
    "LinearPart",
    "SamplePart",
    "SeveralParts",
    "Simulated",
    "choose_part",
    "finite_difficulty",
    "put_together",
]

AnyDraw = Draw | LinearDraw | SampleDraw
CORRELATED = "correlated noise"
#: More numbers of one individual towards one observer are not planned: ways to noise them are compared pair by pair.
MOST_SEEN = 200


@dataclass(frozen=True)
class IndividualPart(ABC):
    """What the individuals of one public group give to one observer. Abstract."""

    group: int
    template: Template
    weights: Mapping[str, float]
    alternatives: tuple[Considered, ...]

    @property
    @abstractmethod
    def strategy(self) -> str: ...

    @property
    @abstractmethod
    def cut(self) -> tuple[str, ...]:
        """Where the noise goes."""

    @property
    @abstractmethod
    def difficulty(self) -> float:
        """Expected weighted squared error times the share of μ² (or of ε²), before clipping."""

    @abstractmethod
    def key(self, reader: str) -> tuple[object, ...]:
        """Equal for readers who can be shown refinements of the same draws."""

    @abstractmethod
    def draws(self, shares: Mapping[str, float], adjacency: Adjacency, dataset: str) -> Iterable[AnyDraw]:
        """The draws by which every observer's view costs its share."""

    @abstractmethod
    def errors(self, draws: Sequence[AnyDraw], names: Iterable[str]) -> dict[str, Numbers]:
        """Errors of the observed nodes at simulated points, for who sees these draws."""


@dataclass(frozen=True)
class CutPart(IndividualPart):
    """Independent noise on the nodes of a cut."""

    candidate: CutCandidate
    noise: NoiseName

    @property
    def strategy(self) -> str:
        return self.candidate.strategy

    @property
    def cut(self) -> tuple[str, ...]:
        return self.candidate.cut

    @property
    def difficulty(self) -> float:
        return math.fsum(self._root(node) for node in self.cut) ** draw_law(self.noise).power

    def _root(self, node: str) -> float:
        law = draw_law(self.noise)
        return (law.variance * self.candidate.difficulty(node)) ** (1 / law.power)

    def fractions(self) -> dict[str, float]:
        total = math.fsum(self._root(node) for node in self.cut)
        return {node: self._root(node) / total for node in self.cut}

    def key(self, reader: str) -> tuple[object, ...]:
        # A node that reads another noisy node has another value for every reader: such draws are not shared.
        nested = any(set(self.template.ancestors(node)[:-1]) & set(self.cut) for node in self.cut)
        return (self.group, tuple(sorted(self.fractions().items())), reader if nested else "")

    def draws(self, shares: Mapping[str, float], adjacency: Adjacency, dataset: str) -> Iterable[Draw]:
        for node, fraction in self.fractions().items():
            split = {observer: share * fraction * (1 - 1e-12) for observer, share in shares.items()}
            sensitivity = self.candidate.sensitivity[node].value
            yield from refinements(node, self.noise, sensitivity, 1, split, adjacency, dataset, self.group)

    def errors(self, draws: Sequence[AnyDraw], names: Iterable[str]) -> dict[str, Numbers]:
        scales = {}
        for node in self.cut:
            own = tuple(d for d in draws if isinstance(d, Draw) and d.node == node and d.group == self.group)
            scales[node] = math.sqrt(combined_variance(own) / draw_law(self.noise).variance)
        return self.template.simulated_errors(scales, names, self.noise)


@dataclass(frozen=True)
class LinearPart(IndividualPart):
    """One noise vector of the best covariance for linear answers."""

    candidate: LinearCandidate

    @property
    def strategy(self) -> str:
        return CORRELATED

    @property
    def cut(self) -> tuple[str, ...]:
        return self.candidate.cut

    @property
    def difficulty(self) -> float:
        return self.candidate.difficulty

    def key(self, reader: str) -> tuple[object, ...]:
        return (self.group, self.candidate)

    def draws(self, shares: Mapping[str, float], adjacency: Adjacency, dataset: str) -> Iterable[LinearDraw]:
        return linear_refinements(self.candidate, shares, adjacency, dataset, self.group)

    def errors(self, draws: Sequence[AnyDraw], names: Iterable[str]) -> dict[str, Numbers]:
        own = [
            d for d in draws if isinstance(d, LinearDraw) and d.candidate == self.candidate and d.group == self.group
        ]
        scale = math.sqrt(1 / math.fsum(1 / draw.variance for draw in own))
        errors = self.candidate.simulated_errors(self.template, scale)
        return {name: errors[name] for name in names}


@dataclass(frozen=True)
class SamplePart(IndividualPart):
    """One random answer out of finitely many levels. Its cost is a pure ε."""

    candidate: SampleCandidate

    @property
    def strategy(self) -> str:
        return "random answer"

    @property
    def cut(self) -> tuple[str, ...]:
        return (self.candidate.node,)

    @property
    def difficulty(self) -> float:
        return max(math.fsum(self.weights.values()) * self.candidate.error(1.0), 1e-6)

    def key(self, reader: str) -> tuple[object, ...]:
        return (self.group, self.candidate.node, reader)  # two answers to one question are two costs

    def draws(self, shares: Mapping[str, float], adjacency: Adjacency, dataset: str) -> Iterable[SampleDraw]:
        # Those who have a share here are one reader (`key`): one answer at their common share is shown to all of them.
        epsilon = min(math.nextafter(min(shares.values()), 0.0), self.candidate.own_loss * (1 + 1e-6))
        yield SampleDraw(self.candidate, epsilon, tuple(sorted(shares)), adjacency, dataset, self.group)

    def errors(self, draws: Sequence[AnyDraw], names: Iterable[str]) -> dict[str, Numbers]:
        of_node = [d for d in draws if isinstance(d, SampleDraw) and d.node == self.candidate.node]
        (own,) = (d for d in of_node if d.group == self.group)  # one for whoever reads: see `key`
        wrong = own.candidate.error(own.epsilon)
        return {name: np.full(1, math.sqrt(wrong)) for name in names}  # a wrong answer has squared error 1


@dataclass(frozen=True)
class SeveralParts(IndividualPart):
    """Several publications of the same individuals: each gets a fixed fraction of the share."""

    parts: tuple[IndividualPart, ...]
    noise: NoiseName

    @property
    def strategy(self) -> str:
        return " and ".join(dict.fromkeys(part.strategy for part in self.parts))

    @property
    def cut(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node for part in self.parts for node in part.cut))

    @property
    def _power(self) -> int:
        return draw_law(self.noise).power

    @property
    def difficulty(self) -> float:
        return math.fsum(part.difficulty ** (1 / self._power) for part in self.parts) ** self._power

    def _fractions(self) -> list[float]:
        roots = [part.difficulty ** (1 / self._power) for part in self.parts]
        return [root / math.fsum(roots) for root in roots]

    def key(self, reader: str) -> tuple[object, ...]:
        return tuple(part.key(reader) for part in self.parts)

    def draws(self, shares: Mapping[str, float], adjacency: Adjacency, dataset: str) -> Iterable[AnyDraw]:
        for part, fraction in zip(self.parts, self._fractions(), strict=True):
            split = {observer: share * fraction * (1 - 1e-12) for observer, share in shares.items()}
            yield from part.draws(split, adjacency, dataset)

    def errors(self, draws: Sequence[AnyDraw], names: Iterable[str]) -> dict[str, Numbers]:
        found: dict[str, Numbers] = {}
        for part in self.parts:
            found |= part.errors(draws, [name for name in names if name in part.weights])
        return found


def _check_few(weights: Mapping[str, float]) -> None:
    if len(weights) > MOST_SEEN:
        raise PlanError(
            f"One observer would see {len(weights)} variables of each individual ({next(iter(weights))}, …), and no "
            f"more than {MOST_SEEN} are planned. Publish fewer of them, or aggregates. Nothing was planned and nothing "
            "was spent."
        )


def choose_part(
    group: int,
    template: Template,
    weights: Mapping[str, float],
    budget: float,
    noise: NoiseName,
    allowed: frozenset[str],
) -> IndividualPart:
    """The allowed strategy of least simulated loss at the whole budget, with what the others would have cost."""
    _check_few(weights)
    cuts_allowed = allowed - {CORRELATED}
    linear = _linear(template, weights, noise, allowed)
    chosen, losses = best_cut(template, weights, budget, noise, cuts_allowed) if cuts_allowed else (linear, ())
    entries: list[tuple[CutCandidate | LinearCandidate, float]] = [*_distinct(losses)]
    least = min((loss for candidate, loss in losses if candidate == chosen), default=math.inf)
    if linear is not None:
        entries.append((linear, linear.loss(template, weights, budget)))
        if entries[-1][1] < least:
            chosen, least = entries[-1]
    considered = tuple(
        Considered(one.strategy, loss, "chosen" if _is_same(one, chosen) else _ratio(loss, least), one.cut)
        for one, loss in sorted(entries, key=itemgetter(1))
    )
    if isinstance(chosen, CutCandidate):
        return CutPart(group, template, weights, considered, chosen, noise)
    assert chosen is not None
    return LinearPart(group, template, weights, considered, chosen)


def _linear(
    template: Template, weights: Mapping[str, float], noise: NoiseName, allowed: frozenset[str]
) -> LinearCandidate | None:
    """Correlated noise, where it is allowed and of use; it must be where nothing else is allowed."""
    # An observer who knows some of the inputs gets noisy nodes and puts the answer together (docs/proofs/observers.md).
    answers = draw_law(noise).correlates and CORRELATED in allowed and not template.observed
    linear = linear_candidate(template, weights) if answers else None
    if linear is None and allowed <= {CORRELATED}:
        raise PlanError(
            f"{', '.join(weights)}: input, output and cut are forbidden, and correlated noise is for two or more "
            "answers that are linear in bounded inputs, and Gaussian. Take one forbid(…) back. "
            "Nothing was planned and nothing was spent."
        )
    return linear


def _is_same(one: CutCandidate | LinearCandidate, other: CutCandidate | LinearCandidate | None) -> bool:
    return other is not None and (one.strategy, one.cut) == (other.strategy, other.cut)


def _ratio(loss: float, least: float) -> str:
    return f"{loss / least:.3g} times the weighted error" if least > 0 else "no better"


def _distinct(losses: Sequence[tuple[CutCandidate, float]]) -> list[tuple[CutCandidate, float]]:
    """The best of every strategy."""
    found: dict[str, tuple[CutCandidate, float]] = {}
    for candidate, loss in losses:
        found.setdefault(candidate.strategy, (candidate, loss))
    return list(found.values())


def finite_difficulty(part: IndividualPart) -> float:
    """The difficulty, or a refusal that says where a value is lost."""
    if math.isfinite(part.difficulty):
        return part.difficulty
    template = part.template
    lost = [name for name in template.order if not template.bounds[name].bounded]
    reasons = "; ".join(f"{name}: {template.bounds[name].reason or 'it has no bounds'}" for name in lost[:3])
    raise PlanError(
        f"{', '.join(part.weights)} cannot be computed everywhere in the declared ranges ({reasons}), so its error has "
        "no bound. Narrow a range, or guard the expression with clip(X, Low, High). Nothing was planned and nothing "
        "was spent."
    )


def put_together(parts: Sequence[IndividualPart], noise: NoiseName) -> IndividualPart:
    """What one group gives to one observer in all."""
    if len(parts) == 1:
        return parts[0]
    weights = {name: weight for part in parts for name, weight in part.weights.items()}
    considered = tuple(entry for part in parts for entry in part.alternatives)
    return SeveralParts(parts[0].group, parts[0].template, weights, considered, tuple(parts), noise)


class Simulated:
    """Mean squared error and half width of all that an observer sees of a part: simulated once, asked for often."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], dict[str, tuple[float, float]]] = {}

    def of(self, observer: str, part: IndividualPart, draws: Sequence[AnyDraw]) -> dict[str, tuple[float, float]]:
        key = (observer, id(part))
        if key not in self._known:
            check_time(f"simulating what {observer} sees of one individual")
            self._known[key] = {
                name: (float(np.mean(errors**2)), float(np.quantile(np.abs(errors), 0.95)))
                for name, errors in part.errors(draws, part.weights).items()
            }
        return self._known[key]
