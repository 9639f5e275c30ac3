"""One requirement's budget over publications of several kinds: portions of (ε, δ) that add up to no more than it.

In:   predicted losses at the whole budget, weights, requirements, groups of observers who collude.
Out:  for every observer and publication a portion, as an exact fraction, and the guarantee it stands for.
Not here: what a publication makes of its portion (plan/strategy.py, plan/settle.py).
Proof: docs/proofs/portions.md

A publication with the portion φ of (ε, δ) is predicted to lose about κ/φ², κ its loss at the whole budget: the variance
of noise is proportional to 1/ε². Σ wκ/φ² subject to Σφ = 1 is least at φ ∝ ∛(wκ). But losses of a model and of a count
have no common scale, and a count's is always the smaller one: so nobody gets so little that it becomes more than 1.2
times as noisy as in an even split (`even_floors`). All statistics of an observer together are one publication here; how
they share their portion is plan/allocation.py's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato.core import ApproxDP, Guarantee, Pufferfish, PureDP
from sfumato.errors import PlanError, PrivacyParameterError
from sfumato.mechanisms.calibrate import largest_pure_epsilon

__all__ = [
    "FAIR",
    "SPENT",
    "STATISTICS",
    "Portions",
    "add_up",
    "as_point",
    "collude",
    "even_floors",
    "portion_of",
    "split_portions",
]

#: The name of an observer's statistics among the publications.
STATISTICS = "\0statistics"
#: The part that is handed out. Whoever composes acts on a grid, such as the verifier, rounds up: the rest is for that.
SPENT = Fraction(255, 256)
#: How much noisier than in an even split a publication may become for the sake of the others.
FAIR = 1.2

Portions = dict[str, dict[str, Fraction]]


def as_point(guarantee: Guarantee, where: str = "") -> PureDP | ApproxDP:
    """The requirement as (ε, δ). A curve (μ, ρ, Rényi) is replaced by the largest pure ε that implies it.

    No (ε, δ) with δ > 0 implies a curve.

    >>> from sfumato.core import GaussianDP
    >>> as_point(ApproxDP(1.0, 1e-6)).delta_, round(as_point(GaussianDP(1.0)).eps, 3)
    (1e-06, 0.806)
    """
    if isinstance(guarantee, PureDP):
        return guarantee
    if isinstance(guarantee, ApproxDP):
        return guarantee if guarantee.delta_ > 0 else PureDP(guarantee.eps, adjacency=guarantee.adjacency)
    if isinstance(guarantee, Pufferfish):
        return guarantee.for_one()
    try:
        # Several pure acts may compose to a little more of a curve than one act of their sum: a thousandth less.
        return PureDP(largest_pure_epsilon(guarantee) * 0.999, adjacency=guarantee.adjacency)
    except PrivacyParameterError as error:
        raise PlanError(
            f"{where}: {guarantee.describe()} leaves nothing for tables and models. State dp(ε) or dp(ε, δ). "
            f"Nothing was planned and nothing was spent. ({error})"
        ) from error


def even_floors(acts: Mapping[str, float], statistics: Sequence[float]) -> dict[str, Fraction]:
    """What each publication gets at least, from the weights of acts by name and of all statistics.

    An even split gives each the part ∛weight/Σ∛weight of ε. Several statistics have all of their parts together, since
    among themselves each may lose the factor 1.2 again.

    >>> found = even_floors({"rows": 1.0}, [1.0, 1.0])
    >>> round(float(found["rows"]), 3), round(float(found[STATISTICS]), 3)
    (0.278, 0.667)
    """
    parts = {name: weight ** (1 / 3) for name, weight in acts.items()}
    numbers = [weight ** (1 / 3) for weight in statistics]
    whole = math.fsum(parts.values()) + math.fsum(numbers)
    found = {name: _floor_of(part / whole / FAIR) for name, part in parts.items()}
    if numbers:
        found[STATISTICS] = _floor_of(math.fsum(numbers) / whole / (FAIR if len(numbers) == 1 else 1.0))
    return found


def _floor_of(part: float) -> Fraction:
    return Fraction(math.floor(part * 2**30), 2**30)


def split_portions(losses: Mapping[str, float], floors: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Portions of one budget, proportional to the cube roots of weighted losses, none below its floor.

    They add up to 255/256 at most, exactly.

    >>> found = split_portions({"table": 8.0, "triage": 1.0}, {})
    >>> round(float(found["table"]), 3), sum(found.values()) <= 1
    (0.664, True)
    >>> found = split_portions({"table": 8.0, "triage": 1.0}, {"triage": Fraction(2, 5)})
    >>> round(float(found["table"]), 3)
    0.598
    """
    roots = {name: _root(loss) for name, loss in losses.items()}
    least = {name: floors.get(name, Fraction(0)) for name in losses}
    held: set[str] = set()
    while True:
        found = least | _shared_by_roots(roots, least, held)
        low = [name for name, portion in found.items() if portion < least[name]]
        if not low:
            return {name: portion * SPENT for name, portion in found.items()}
        held.update(low)


def _shared_by_roots(
    roots: Mapping[str, Fraction], least: Mapping[str, Fraction], held: set[str]
) -> dict[str, Fraction]:
    """What those that are not held at their floors get of what these leave."""
    free = {name: root for name, root in roots.items() if name not in held}
    left = 1 - sum((least[name] for name in held), Fraction(0))
    total = sum(free.values(), Fraction(0))
    return {name: left * root / total for name, root in free.items()}


def _root(loss: float) -> Fraction:
    """A fraction near ∛loss; what it is off by changes the split and nothing else."""
    bounded = min(max(loss, 1e-12), 1e12) if not math.isnan(loss) else 1e12
    return Fraction(round(bounded ** (1 / 3) * 2**30), 2**30)


def portion_of(point: PureDP | ApproxDP, portion: Fraction, wider: Fraction = Fraction(1)) -> PureDP | ApproxDP:
    """φ·(ε, δ), ε multiplied by `wider`, each number rounded down.

    >>> portion_of(ApproxDP(1.0, 1e-6), Fraction(1, 4)).eps
    0.25
    """
    epsilon = _down(Fraction(point.eps) * portion * wider)
    if isinstance(point, PureDP):
        return PureDP(epsilon, adjacency=point.adjacency)
    return ApproxDP(epsilon, _down(Fraction(point.delta_) * portion), adjacency=point.adjacency)


def _down(value: Fraction) -> float:
    nearest = float(value)
    return math.nextafter(nearest, 0.0) if Fraction(nearest) > value else nearest


def _pair(point: PureDP | ApproxDP) -> tuple[Fraction, Fraction]:
    epsilon, delta = point.stated
    return Fraction(epsilon), Fraction(delta)


def add_up(parts: Sequence[PureDP | ApproxDP], whole: PureDP | ApproxDP) -> bool:
    """Whether Σε ≤ ε and Σδ ≤ δ as fractions: plain composition.

    >>> add_up([PureDP(0.5), PureDP(0.5)], PureDP(1.0)), add_up([PureDP(0.5), ApproxDP(0.4, 1e-9)], PureDP(1.0))
    (True, False)
    """
    epsilon, delta = _pair(whole)
    pairs = [_pair(part) for part in parts]
    return sum(e for e, _ in pairs) <= epsilon and sum(d for _, d in pairs) <= delta


def _seen_together(
    portions: Portions, points: Mapping[str, PureDP | ApproxDP], members: Sequence[str], index: int
) -> Fraction:
    """ε or δ of all that the members see: the most of any for statistics, the sum of all else."""
    whole = {observer: _pair(points[observer])[index] for observer in members}
    statistics = [portions[o].get(STATISTICS, Fraction(0)) * whole[o] for o in members]
    others = [p * whole[o] for o in members for name, p in portions[o].items() if name != STATISTICS]
    return sum(others, Fraction(0)) + max(statistics, default=Fraction(0))


def collude(
    portions: Portions, points: Mapping[str, PureDP | ApproxDP], group: frozenset[str], loosest: str
) -> Portions:
    """The same portions, those of the group's members shrunk alike until all they see together is within the loosest's
    own budget. Statistics are refinements of each other and count once, at the most of any member; all else adds up.
    """
    members = sorted(group & portions.keys())
    totals = [_seen_together(portions, points, members, index) for index in (0, 1)]
    factor = Fraction(1)
    for total, own in zip(totals, _pair(points[loosest]), strict=True):
        if total > own * SPENT:
            factor = min(factor, own * SPENT / total)
    if factor == 0:
        raise PlanError(
            f"{' and '.join(members)} collude and {loosest}'s requirement has no δ while another one has: state "
            "requirements of colluding observers in one currency, all dp(ε) or all dp(ε, δ). Nothing was spent."
        )
    shrunk = {
        observer: {name: portion * factor for name, portion in own.items()} if observer in group else own
        for observer, own in portions.items()
    }
    return shrunk
