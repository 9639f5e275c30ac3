"""One value per individual: where in the template the noise should go.

In:   a template, the observed nodes with their weights.
Out:  candidate cuts with difficulties: expected squared error is difficulty/μ² (or /ε²) before clipping.
Not here: the split of the budget over publications (plan/allocation.py), aggregates (plan/statistic.py).
Proof: docs/proofs/cut_placement.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.errors import PlanError
from sfumato.lang.deadline import check_time
from sfumato.plan.cuts import enumerate_cuts
from sfumato.plan.draw_law import NoiseName, draw_law
from sfumato.plan.template import Sensitivity, Template

__all__ = ["STRATEGIES", "CutCandidate", "best_cut", "candidates", "scales_for"]

STRATEGIES = frozenset({"input noise", "output noise", "noise on the way"})
_SIMULATED_CANDIDATES = 8
_FLAT = 1e-6  # a node that moved no output at the sampled points may still move one elsewhere


@dataclass(frozen=True)
class CutCandidate:
    """A cut, how far each of its nodes can move, and how much each one's noise matters to the outputs."""

    cut: tuple[str, ...]
    sensitivity: Mapping[str, Sensitivity]
    influence: Mapping[str, float]
    strategy: str

    def difficulty(self, node: str) -> float:
        """Expected squared error times the share of μ² (Gaussian) or ε² (Laplace, with its factor 2) for this node."""
        return self.influence[node] * self.sensitivity[node].value ** 2

    @property
    def total(self) -> float:
        """min Σ difficulty/m subject to Σ m = 1."""
        return math.fsum(math.sqrt(self.difficulty(node)) for node in self.cut) ** 2


def _influence(slopes: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return math.fsum(weight * slopes.get(output, 0.0) for output, weight in weights.items())


def _candidate(
    template: Template, cut: frozenset[str], weights: Mapping[str, float], slopes: Mapping[str, Mapping[str, float]]
) -> CutCandidate | None:
    """The cut with what noise on each of its nodes does; None where a node has no finite sensitivity or influence."""
    all_of_it = {node: _sensitivity(template, node, cut) for node in sorted(cut)}
    if not all(math.isfinite(one.value) for one in all_of_it.values()):
        return None
    sensitivity = {node: one for node, one in all_of_it.items() if one.value > 0}
    influence = {node: _influence(slopes.get(node, {}), weights) for node in sensitivity}
    if any(map(math.isnan, influence.values())):
        return None  # a root of a negative number, or a level with noise, which no lookup lists: nothing is shown
    floor = max(influence.values(), default=0.0) * _FLAT or _FLAT
    return CutCandidate(
        tuple(sensitivity),
        sensitivity,
        {node: max(value, floor) for node, value in influence.items()},
        _strategy(frozenset(sensitivity), template, frozenset(weights)),
    )


def candidates(template: Template, weights: Mapping[str, float]) -> tuple[CutCandidate, ...]:
    """All cuts whose nodes have a finite sensitivity, the most promising first."""
    observed = tuple(weights)
    slopes = template.squared_slopes(observed)
    found = []
    for cut in enumerate_cuts(template.parents, template.hidden, observed):
        if template.observed and _is_nested(template, cut):
            continue  # what is published are the noisy nodes themselves, each with its own error
        candidate = _candidate(template, cut, weights, slopes)
        if candidate is not None:
            found.append(candidate)
    if not found:
        raise PlanError(_unbounded(template, observed))
    return tuple(sorted(found, key=lambda candidate: (candidate.total, len(candidate.cut))))


def _is_nested(template: Template, cut: frozenset[str]) -> bool:
    return any(cut & set(template.ancestors(node)[:-1]) for node in cut)


def _sensitivity(template: Template, node: str, cut: frozenset[str]) -> Sensitivity:
    check_time(f"bounding how far one individual moves {node}")
    return template.sensitivity(node, cut)


def _strategy(cut: frozenset[str], template: Template, observed: frozenset[str]) -> str:
    if cut <= observed:
        return "output noise"
    if cut <= template.private:
        return "input noise"
    return "noise on the way"


def scales_for(candidate: CutCandidate, budget: float, noise: NoiseName) -> dict[str, float]:
    """Noise scales that spend `budget` (μ² or ε) on this cut alone, split best."""
    law = draw_law(noise)
    roots = {node: candidate.difficulty(node) ** (1 / law.power) for node in candidate.cut}
    total = math.fsum(roots.values())
    shares = {node: budget * root / total for node, root in roots.items()}
    return {node: law.scale(candidate.sensitivity[node].value, share) for node, share in shares.items()}


def _loss(
    candidate: CutCandidate, template: Template, weights: Mapping[str, float], budget: float, noise: NoiseName
) -> float:
    check_time(f"simulating noise on {len(candidate.cut)} variables of one individual")
    errors = template.predicted_errors(scales_for(candidate, budget, noise), weights, noise)
    return math.fsum(weights[output] * error for output, error in errors.items())


def _tried(ranked: Sequence[CutCandidate]) -> list[CutCandidate]:
    """The promising ones, and the best with noise on outputs and on inputs alone."""
    tried = list(ranked[:_SIMULATED_CANDIDATES])
    for strategy in ("output noise", "input noise"):
        tried.extend([one for one in ranked if one.strategy == strategy and one not in tried][:1])
    return tried


def best_cut(
    template: Template,
    weights: Mapping[str, float],
    budget: float,
    noise: NoiseName,
    allowed: frozenset[str] = STRATEGIES,
) -> tuple[CutCandidate, tuple[tuple[CutCandidate, float], ...]]:
    """The allowed cut of least simulated loss, and all that were simulated: promising ones, inputs and outputs."""
    ranked = candidates(template, weights)
    tried = _tried(ranked)
    simulated = [(candidate, _loss(candidate, template, weights, budget, noise)) for candidate in tried]
    # A level with noise is no level: a lookup has no row for it.
    losses = sorted((pair for pair in simulated if math.isfinite(pair[1])), key=lambda pair: pair[1])
    in_order = [*(candidate for candidate, _ in losses), *(one for one in ranked if one not in tried)]
    chosen = next((candidate for candidate in in_order if candidate.strategy in allowed), None)
    if chosen is None:
        raise PlanError(
            f"{', '.join(weights)}: {' or '.join(sorted(allowed))} is all that is allowed, and no such noise has a "
            "finite scale here. Allow another strategy, or declare ranges. Nothing was planned and nothing was spent."
        )
    return chosen, tuple(losses)


def _unbounded(template: Template, observed: tuple[str, ...]) -> str:
    unbounded = [name for name in template.order if name in template.touched and not template.bounds[name].bounded]
    reasons = "; ".join(f"{name}: {template.bounds[name].reason or 'no range is declared'}" for name in unbounded[:3])
    return (
        f"No noise can be placed for {', '.join(observed)}: on every way from private data some value has no bounds "
        f"({reasons}). Declare a range(...) for a node on the way, or guard the expression with clip(X, Low, High). "
        "Nothing was planned and nothing was spent."
    )
