"""How privacy adds up: the one place where costs are composed.

In:   events and guarantees, in any order, nested or repeated.
Out:  one Guarantee for all of them together; the cost of a public partition.
Not here: what one act costs (core/event.py), who spends (run/ledger.py).
Proof: docs/proofs/composition.md

Gaussian acts compose exactly (μ² adds). Mixtures are composed as privacy loss distributions by dp-accounting, behind
`_loss_distribution` alone; counts are expanded here, because dp-accounting 0.6 forgets the count of a repeated
RandomizedResponseDpEvent. The Rényi sum and plain addition are computed beside it and the smallest true bound wins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import repeat
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import gammaln, ndtri

from sfumato.core.adjacency import Adjacency
from sfumato.core.checks import at_least_zero, probability, round_up
from sfumato.core.event import BoxEvent, Event, GaussianEvent, LaplaceEvent, Repeated
from sfumato.core.guarantee import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    NoGuarantee,
    PureDP,
    RenyiDP,
    _order,
)
from sfumato.core.learning_event import ObjectiveDP, objective_curve, objective_loss
from sfumato.core.noise import BoxNoise
from sfumato.core.renyi import delta_from_curve, epsilon_from_curve, laplace_curve, two_point_curve
from sfumato.errors import PrivacyParameterError

__all__ = ["ComposedDP", "Part", "Partition", "WorstOf", "add_exactly", "compose", "parallel"]

PartKind = Literal["gaussian", "laplace", "two-point", "box", "objective", "concentrated", "renyi"]


@dataclass(frozen=True, order=True)
class Part:
    """The worst pair of outputs of one act, and how often it happened.

    `value` is μ, ε, ε, the shift, μ, ρ or ε by kind; `extra` is δ for "two-point", the strength for "box", the shift
    for "objective" and the order for "renyi".
    """

    kind: PartKind
    value: float
    extra: float = 0.0
    count: int = 1

    def __post_init__(self) -> None:
        if not _valid(self):
            raise PrivacyParameterError("This is not the cost of any act.")

    def rho(self) -> float:
        """The zCDP of all `count` acts; ε-DP has ε²/2 (Bun & Steinke 2016, Prop. 3.3)."""
        match self.kind:
            case "gaussian" | "laplace":
                return self.count * self.value**2 / 2
            case "two-point" if self.extra == 0:
                return self.count * self.value**2 / 2
            case "concentrated":
                return self.count * self.value
        return math.inf

    def square_of_mu(self) -> float:
        """μ² of all `count` acts; ε-DP has the μ whose curve meets the kink of its own (squares of μ add)."""
        match self.kind:
            case "gaussian":
                return self.count * self.value**2
            case "laplace" | "two-point" if self.extra == 0:
                return self.count * (2 * float(ndtri(1 / (1 + math.exp(-self.value))))) ** 2
        return math.inf

    def curve(self, alpha: np.ndarray) -> np.ndarray:
        """Rényi ε of all `count` acts at these orders."""
        match self.kind:
            case "gaussian":
                single = alpha * (self.value**2 / 2)
            case "laplace":
                single = laplace_curve(self.value, alpha)
            case "two-point":
                single = np.full_like(alpha, math.inf) if self.extra > 0 else two_point_curve(self.value, alpha)
            case "box":
                single = np.full_like(alpha, math.inf)
            case "objective":
                single = objective_curve(self.value, self.extra, alpha)
            case "concentrated":
                single = alpha * self.value
            case "renyi":
                single = np.where(alpha <= self.extra, self.value, math.inf)
        return self.count * single


def _valid(part: Part) -> bool:
    return (
        part.kind in get_args(PartKind)
        and all(isinstance(number, float | int) and math.isfinite(number) for number in (part.value, part.extra))
        and part.value > 0
        and part.extra >= 0
        and type(part.count) is int
        and part.count >= 1
    )


def add_exactly(values: Iterable[float], counts: Iterable[int] | None = None) -> float:
    """Sum of numbers (each `counts` times) read as the decimals they are written as, rounded up: five times 0.2 is 1.0.

    >>> add_exactly([0.1] * 3)
    0.3
    """
    with localcontext() as context:
        context.prec = 400
        terms = zip(values, repeat(1) if counts is None else counts, strict=False)
        total = sum((Decimal(repr(float(value))) * count for value, count in terms), Decimal(0))
        rounded = float(total)
        return math.nextafter(rounded, math.inf) if Decimal(repr(rounded)) < total else rounded


@dataclass(frozen=True)
class ComposedDP(Guarantee):
    """Several acts of different kinds together; made by `compose`, canonical in order and counts."""

    parts: tuple[Part, ...]

    def rdp(self, alpha: float) -> float:
        if math.isinf(_order(alpha)):
            return self.epsilon(0.0)  # the order of the largest loss itself
        return round_up(float(self._curve(np.array(float(alpha)))))

    def _curve(self, alpha: np.ndarray) -> np.ndarray:
        return np.sum([part.curve(alpha) for part in self.parts], axis=0) * (1 + 1e-12)

    def delta(self, epsilon: float) -> float:
        epsilon = at_least_zero(epsilon, "epsilon")
        bounds = [delta_from_curve(self._curve, epsilon)] if self._has_curve else [1.0]
        if self._has_pair:
            bounds.append(round_up(_loss_distribution(self.parts).get_delta_for_epsilon(epsilon), 1e-9))
            plain = self._plain()
            if plain is not None and epsilon >= plain[0]:
                bounds.append(plain[1])
        return min(1.0, *bounds)

    def epsilon(self, delta: float) -> float:
        delta = probability(delta)
        bounds = [epsilon_from_curve(self._curve, delta)] if self._has_curve else [math.inf]
        if self._has_pair:
            plain = self._plain()
            if plain is not None and delta >= plain[1]:
                bounds.append(plain[0])
            if delta > 0:
                bounds.append(round_up(float(_loss_distribution(self.parts).get_epsilon_for_delta(delta)), 1e-9))
        return max(0.0, min(bounds))

    @property
    def _has_pair(self) -> bool:
        return all(part.kind in ("gaussian", "laplace", "two-point", "box", "objective") for part in self.parts)

    @property
    def _has_curve(self) -> bool:
        return not any(part.kind == "box" or (part.kind == "two-point" and part.extra > 0) for part in self.parts)

    def _plain(self) -> tuple[float, float] | None:
        """(Σε, Σδ) where every act has an ε of its own."""
        if any(part.kind not in ("laplace", "two-point") for part in self.parts):
            return None
        counts = [part.count for part in self.parts]
        return (
            add_exactly((part.value for part in self.parts), counts),
            min(1.0, add_exactly((part.extra for part in self.parts), counts)),
        )

    def _implies(self, other: Guarantee) -> bool | None:
        match other:
            case ZCDP(rho=rho):
                return True if math.fsum(part.rho() for part in self.parts) <= rho else None
            case GaussianDP(mu=mu):
                return True if math.sqrt(math.fsum(part.square_of_mu() for part in self.parts)) <= mu else None
            case RenyiDP(alpha=alpha, eps=eps) if all(part.kind == "renyi" for part in self.parts):
                reaches = all(alpha <= part.extra for part in self.parts)
                total = add_exactly((part.value for part in self.parts), [part.count for part in self.parts])
                return True if reaches and total <= eps else None
        return super()._implies(other)

    def describe(self) -> str:
        acts = sum(part.count for part in self.parts)
        plain = self._plain()
        if plain is not None:
            total = f"({plain[0]:.6g}, {plain[1]:.6g})-DP" if plain[1] else f"{plain[0]:.6g}-DP"
            return f"{total} ({acts} acts composed)"
        known = [(self.epsilon(delta), delta) for delta in (1e-6, 1e-3, 0.01, 0.1)]
        epsilon, delta = next((pair for pair in known if math.isfinite(pair[0])), known[-1])
        return f"({epsilon:.6g}, {delta:g})-DP ({acts} act{'s' if acts > 1 else ''} composed)"

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "ComposedDP",
            "adjacency": self.adjacency.to_dict() if self.adjacency else None,
            "parts": [[part.kind, part.value, part.extra, part.count] for part in self.parts],
        }


def _interval(parts: tuple[Part, ...]) -> float:
    """Fine against the smallest act, since losses are rounded up to multiples of it; coarse enough for the sum."""
    finest = min(part.value / (400 if part.kind == "two-point" else 50) for part in parts)
    reach = [40.0 if part.kind == "box" else part.value for part in parts]  # near a wall box noise loses tens of ε
    longest = sum(size * part.count for size, part in zip(reach, parts, strict=True)) + 40 * max(reach)
    return max(min(1e-4, finest), longest / 1e6)


@lru_cache(maxsize=64)
def _loss_distribution(parts: tuple[Part, ...]) -> Any:
    """The pessimistic privacy loss distribution of all parts: the only door to dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution  # a second to import: only when needed

    interval = _interval(parts)
    total = None
    for part in parts:
        match part.kind:
            case "gaussian":
                one = privacy_loss_distribution.from_gaussian_mechanism(
                    1 / part.value, value_discretization_interval=interval
                )
            case "laplace":
                one = privacy_loss_distribution.from_laplace_mechanism(
                    1 / part.value, value_discretization_interval=interval
                )
            case "box":
                one = privacy_loss_distribution.from_two_probability_mass_functions(
                    *_box_masses(part.value, part.extra), value_discretization_interval=interval
                )
            case "objective":
                one = _objective_distribution(part, interval)
            case _:
                # Not from_privacy_parameters, whose rounding of ±ε to the grid adds up over repeats.
                one = privacy_loss_distribution.from_two_probability_mass_functions(
                    *_two_point_masses(part), value_discretization_interval=interval
                )
        several = one.self_compose(part.count) if part.count > 1 and part.kind != "two-point" else one
        total = several if total is None else total.compose(several)
    return total


def _objective_distribution(part: Part, interval: float) -> Any:
    """Losses shift + max(0, L) of one run on the grid, the shift rounded up (docs/proofs/objective_perturbation.md)."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    grid = objective_loss(part.value, 0.0, interval)
    lowest = math.ceil(part.extra / interval)
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.DensePLDPmf(interval, lowest, grid.masses, grid.infinite, pessimistic_estimate=True)
    )


def _two_point_masses(part: Part) -> tuple[dict[int, float], dict[int, float]]:
    """Log masses of the worst (ε, δ)-DP pair, `count` times at once: a binomial law (Kairouz et al. 2015, Thm 3.1).

    Taking all repeats in one step rounds the losses once, not `count` times.
    """
    wins = np.arange(part.count + 1.0)
    ways = gammaln(part.count + 1.0) - gammaln(wins + 1) - gammaln(part.count - wins + 1)
    base = ways - part.count * math.log1p(math.exp(-part.value)) + part.count * math.log1p(-part.extra)
    upper, lower = base - (part.count - wins) * part.value, base - wins * part.value
    kept = np.flatnonzero(np.maximum(upper, lower) > -700)  # what is left out is added to the mass at infinity
    lost = max(0.0, 1 - float(np.exp(upper[kept]).sum()))
    first = {int(k): float(lower[k]) for k in kept}
    second = {int(k): float(upper[k]) for k in kept}
    if lost > 1e-15 or part.extra > 0:
        second[-1] = first[-2] = math.log(max(lost, 1e-300))
    return first, second


#: Cells in which the box law and its shifted copy are compared.
_BOX_CELLS = 16384


def _box_masses(shift: float, strength: float) -> tuple[dict[int, float], dict[int, float]]:
    """Log masses, cell by cell, of box noise and of the same moved by `shift` half widths.

    Rounding to cells is post-processing, which could only hide something: so the cells are made a whole fraction of the
    shift, and within a cell the likelihood ratio of a log-concave law is monotone; what a cell hides is of second order
    and is covered by rounding the shift up by one cell (a larger shift never promises more for a log-concave law).
    """
    if shift >= 2:
        return {0: 0.0}, {1: 0.0}
    cells_in_shift = max(1, math.ceil(shift * _BOX_CELLS / 2))
    width = shift / cells_in_shift
    count = math.ceil(2 / width)
    edges = -1 + width * np.arange(count + 1)
    masses = np.diff(BoxNoise(1.0, strength).cdf(np.minimum(edges, 1.0)))
    known = np.flatnonzero(masses > 0)
    logs = np.log(masses[known] / masses[known].sum())
    here = {int(k): float(v) for k, v in zip(known, logs, strict=True)}
    moved = {k + cells_in_shift + 1: v for k, v in here.items()}
    return moved, here


@dataclass(frozen=True)
class WorstOf(Guarantee):
    """The worst of several guarantees at every point: what a public partition costs."""

    guarantees: tuple[Guarantee, ...]

    def delta(self, epsilon: float) -> float:
        return max(guarantee.delta(epsilon) for guarantee in self.guarantees)

    def epsilon(self, delta: float) -> float:
        return max(guarantee.epsilon(delta) for guarantee in self.guarantees)

    def rdp(self, alpha: float) -> float:
        return max(guarantee.rdp(alpha) for guarantee in self.guarantees)

    def describe(self) -> str:
        return "the worst of " + " and ".join(guarantee.describe() for guarantee in self.guarantees)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": "WorstOf",
            "adjacency": self.adjacency.to_dict() if self.adjacency else None,
            "guarantees": [guarantee.to_dict() for guarantee in self.guarantees],
        }


Composable = Event | Guarantee | Repeated


def compose(items: Iterable[Composable]) -> Guarantee:
    """The guarantee of doing all of `items` on the same data, each chosen freely in the light of the earlier ones.

    >>> compose([GaussianDP(0.3), GaussianDP(0.4)])
    GaussianDP(adjacency=None, mu=0.5)
    >>> compose([PureDP(0.2)] * 5).epsilon(0.0)
    1.0
    """
    given = list(items)
    if not given:
        raise PrivacyParameterError("compose needs at least one event or guarantee.")
    adjacency = _common_adjacency(given)
    for item in given:
        if isinstance(item, NoGuarantee):
            return item.under(adjacency)
    if len(given) == 1 and isinstance(given[0], Guarantee):
        return given[0]
    return _from_parts([part for item in given for part in _parts(item)], adjacency)


def _common_adjacency(items: Sequence[Composable]) -> Adjacency | None:
    stated = set()
    for item in items:
        adjacency = item.event.adjacency if isinstance(item, Repeated) else item.adjacency
        if adjacency is not None:
            stated.add(adjacency)
    if len(stated) > 1:
        names = " and ".join(sorted(str(adjacency) for adjacency in stated))
        raise PrivacyParameterError(
            f"Costs under different adjacencies do not add: {names}. State all events under one adjacency. "
            "Nothing was spent."
        )
    return stated.pop() if stated else None


def _parts(item: Composable) -> list[Part]:
    match item:
        case Repeated(event=event, count=count):
            return [Part(p.kind, p.value, p.extra, p.count * count) for p in _parts(event)]
        case GaussianEvent():
            return [Part("gaussian", item.mu)]
        case LaplaceEvent(dimension=1):
            return [Part("laplace", item.eps)]
        case BoxEvent():
            return [Part("box", item.shift, item.strength)]
        case Event():
            return _parts(item.guarantee())
        case PureDP(eps=eps):
            return [Part("two-point", eps)]
        case ApproxDP(eps=eps, delta_=delta):
            return [Part("two-point", eps, delta)]
        case GaussianDP(mu=mu):
            return [Part("gaussian", mu)]
        case ObjectiveDP(mu=mu, shift=shift, count=count):
            return [Part("objective", mu, shift, count)]
        case ZCDP(rho=rho):
            return [Part("concentrated", rho)]
        case RenyiDP(alpha=alpha, eps=eps):
            return [Part("renyi", eps, alpha)]
        case ComposedDP(parts=parts):
            return list(parts)
    raise PrivacyParameterError(
        f"A {type(item).__name__} cannot be composed further. Compose inside each part of the partition first, "
        "then take `parallel` last."
    )


def _from_parts(parts: list[Part], adjacency: Adjacency | None) -> Guarantee:
    counts: Counter[Part] = Counter()
    for part in parts:
        counts[Part(part.kind, part.value, part.extra)] += part.count
    gaussian = [key.value**2 * count for key, count in sorted(counts.items()) if key.kind == "gaussian"]
    others = [Part(k.kind, k.value, k.extra, n) for k, n in sorted(counts.items()) if k.kind != "gaussian"]
    concentrated = [part.value * part.count for part in others if part.kind == "concentrated"]
    if not others and len(parts) == 1 and parts[0].count == 1:
        return GaussianDP(parts[0].value, adjacency=adjacency)
    if not others:
        return GaussianDP(_root_of_sum(gaussian), adjacency=adjacency)
    if len(concentrated) == len(others) and not gaussian:
        return ZCDP(add_exactly(concentrated), adjacency=adjacency)
    if gaussian:
        others.append(Part("gaussian", _root_of_sum(gaussian)))
    if len(others) == 1 and others[0].kind == "objective":
        return ObjectiveDP(others[0].value, others[0].extra, others[0].count, adjacency=adjacency)
    if len(others) == 1 and others[0].count == 1:
        return _single(others[0], adjacency)
    return ComposedDP(tuple(sorted(others)), adjacency=adjacency)


def _root_of_sum(squares: list[float]) -> float:
    root = math.sqrt(math.fsum(squares))
    # Decimal inputs such as 0.3 and 0.4 should read 0.5; anything not that close is rounded up.
    short = float(f"{root:.14g}")
    return short if short >= root else round_up(root, 1e-15)


def _single(part: Part, adjacency: Adjacency | None) -> Guarantee:
    if part.kind == "box":
        return ComposedDP((part,), adjacency=adjacency)
    if part.kind == "renyi":
        return RenyiDP(part.extra, part.value, adjacency=adjacency)
    if part.extra:
        return ApproxDP(part.value, part.extra, adjacency=adjacency)
    return PureDP(part.value, adjacency=adjacency)


@dataclass(frozen=True)
class Partition:
    """A split of the records fixed without looking at the data, and by what rule a record finds its part.

    rule "position": by row number or an outside list; replacing a record changes one part.
    rule "attribute": by a public function of the record itself; replacing a record may change two parts.
    """

    rule: Literal["position", "attribute"]
    description: str

    def __post_init__(self) -> None:
        if self.rule not in ("position", "attribute"):
            raise PrivacyParameterError(
                f"Partition rule {self.rule!r} is not known: use 'position' or 'attribute'. A partition chosen by "
                "looking at the data has no parallel composition."
            )
        if not self.description.strip():
            raise PrivacyParameterError("Say in words how the partition was fixed without looking at the data.")


def parallel(items: Iterable[Composable], partition: Partition) -> Guarantee:
    """The cost of one act on each part of a public partition: the worst part, or the two worst (see Partition).

    >>> split = Partition("position", "first and second half by row number")
    >>> parallel([PureDP(1.0), PureDP(0.5)], split)
    PureDP(adjacency=None, eps=1.0)
    """
    if not isinstance(partition, Partition):
        raise PrivacyParameterError(
            "Parallel composition needs a Partition that was fixed without looking at the data. Nothing was spent."
        )
    given = list(items)
    adjacency = _common_adjacency(given)
    costs = [compose([item]) for item in given]
    moves = partition.rule == "attribute" and (adjacency is None or adjacency.relation == "replace-one")
    if moves and len(costs) > 1:
        costs = [compose([a, b]) for i, a in enumerate(costs) for b in costs[:i]]
    unique = list(dict.fromkeys(costs))
    for cost in unique:
        if all(cost is other or other.implies(cost) for other in unique):
            return cost
    return WorstOf(tuple(unique), adjacency=adjacency)
