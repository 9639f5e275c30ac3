"""One individual's part of a network as a computation: how far a node can move, and what noise does to the outputs.

In:   nodes with expressions and public bounds.
Out:  sensitivities that are proved, and predictions that are simulated on points of the public ranges.
Not here: which cut to take (plan/individual.py), evaluating real rows (network/evaluate.py).
Proof: docs/proofs/cut_placement.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PlanError
from sfumato.lang.deadline import check_time
from sfumato.network.bounds import Bounds
from sfumato.network.expression import Expression
from sfumato.network.rounding import rounding
from sfumato.plan.cuts import Parents, depends_on_private
from sfumato.plan.draw_law import NoiseName, draw_law

__all__ = ["Formula", "Sensitivity", "Template"]

Numbers = NDArray[np.float64]
Answer = TypeVar("Answer")
_POINTS = 10  # log2 of the points that guide the choice
_SIMULATED = 14  # log2 of the points that predict the error


class Formula(Protocol):
    """What is asked of an expression."""

    def interval(self, ranges: Mapping[str, Bounds]) -> Bounds: ...

    def gradient_intervals(self, ranges: Mapping[str, Bounds]) -> Mapping[str, Bounds]: ...

    def evaluate(self, values: Mapping[str, Numbers]) -> Numbers: ...


@dataclass(frozen=True)
class Sensitivity:
    """By how much one individual can move a node, and by which argument that is known."""

    value: float
    rule: str


@dataclass(frozen=True, eq=False)
class Template:
    """Nodes in topological order. Nodes without a formula are inputs; `private` names those that hold private data.

    `levels` lists the values of inputs that are categories. What is computed once is kept: one template, one question.
    """

    parents: Parents
    formulas: Mapping[str, Formula]
    bounds: Mapping[str, Bounds]
    private: frozenset[str]
    order: tuple[str, ...]
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    #: Private inputs that the observer knows exactly by an observe or reveal line.
    observed: frozenset[str] = frozenset()
    #: What was computed once, by its question: many cuts and every kind of noise ask the same.
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The nodes without a formula, in order."""
        return tuple(name for name in self.order if name not in self.formulas)

    @property
    def hidden(self) -> frozenset[str]:
        """Private inputs that the observer does not know: what noise must lie in front of."""
        return self.private - self.observed

    @cached_property
    def touched(self) -> frozenset[str]:
        """Every node that private data reaches."""
        return depends_on_private(self.parents, self.private)

    def sensitivity(self, node: str, cut: Iterable[str]) -> Sensitivity:
        """The largest change of `node` before its noise, the other nodes of the cut held equal; rounded up.

        The smaller of the width of its bounds and Σ width·|derivative| over the private inputs it still sees, plus
        twice what floating point can add to its exact value.
        """
        held = frozenset(cut) - {node}
        return self._once(("sensitivity", node, held), lambda: self._sensitivity(node, held))

    def _once(self, question: Hashable, answer: Callable[[], Answer]) -> Answer:
        if question not in self._known:
            self._known[question] = answer()
        return self._known[question]

    def _sensitivity(self, node: str, held: frozenset[str]) -> Sensitivity:
        width = self.bounds[node].width
        slopes = self._slopes(node, held)
        moved = math.fsum(self.bounds[leaf].width * slope.magnitude for leaf, slope in slopes.items()) * (1 + 1e-12)
        if slopes and moved < width:
            moved += 2 * self._rounding(node, held) * (1 + 1e-12)
        if math.isnan(moved):  # an infinite slope over a range of no width
            moved = math.inf
        if moved < width:
            return Sensitivity(moved, "derivative bounds times the widths of the ranges")
        return Sensitivity(width, "width of the values it can take")

    def _rounding(self, node: str, held: frozenset[str]) -> float:
        """A bound on |computed - exact| for `node`; inputs and nodes of the cut are what they are."""
        errors: dict[str, float] = {}
        for name in self.ancestors(node):
            formula = self.formulas.get(name)
            if name in held or formula is None:
                errors[name] = 0.0
            else:
                known = isinstance(formula, Expression)
                errors[name] = rounding(formula, self.bounds, errors) if known else math.inf
        return errors[node]

    def _slopes(self, node: str, held: frozenset[str]) -> dict[str, Bounds]:
        """Enclosures of the derivatives of `node` by every private input that reaches it without passing `held`."""
        slopes: dict[str, dict[str, Bounds]] = {}
        for name in self.ancestors(node):
            if name in held:
                slopes[name] = {}
            elif name in self.private and name not in self.formulas:
                slopes[name] = {name: Bounds.point(1.0)}
            else:
                slopes[name] = self._chain(name, slopes)
        return slopes[node]

    def _chain(self, name: str, slopes: Mapping[str, dict[str, Bounds]]) -> dict[str, Bounds]:
        formula = self.formulas.get(name)
        if formula is None or not any(slopes.get(parent) for parent in self.parents.get(name, ())):
            return {}
        total: dict[str, Bounds] = {}
        steepness = self._once(("steepness", name), lambda: formula.gradient_intervals(self.bounds))
        for parent, slope in steepness.items():
            for leaf, upstream in slopes.get(parent, {}).items():
                step = slope * upstream
                total[leaf] = total[leaf] + step if leaf in total else step
        return total

    def ancestors(self, node: str) -> list[str]:
        """The node and what it is computed from, parents first."""
        needed = {node}
        for name in reversed(self.order):
            if name in needed:
                needed.update(self.parents.get(name, ()))
        return [name for name in self.order if name in needed]

    def points(self, power: int = _POINTS, more: int = 0) -> tuple[dict[str, Numbers], Numbers]:
        """Inputs spread evenly over their ranges, and `more` columns spread over (0, 1): public, always the same."""
        inputs = self.inputs
        if not inputs and not more:
            return {}, np.empty((1 << power, 0))
        # Plain points: scipy's Sobol sequences are more even, and loading them takes longer than the whole plan.
        spread = np.random.Generator(np.random.PCG64(7)).random((1 << power, len(inputs) + more))
        placed = {name: self._placed(name, column) for name, column in zip(inputs, spread.T, strict=False)}
        return placed, np.clip(spread[:, len(inputs) :], 1e-12, 1 - 1e-12)

    def _placed(self, name: str, uniform: Numbers) -> NDArray[Any]:
        if name in self.levels:
            levels = np.array(self.levels[name])
            return levels[np.minimum((uniform * len(levels)).astype(int), len(levels) - 1)]
        low, high = self.bounds[name].low, self.bounds[name].high
        if not self.bounds[name].bounded:
            raise PlanError(
                f"{name} has no range: declare range({name}, Low, High), so that its noise and its error can be "
                "planned. Nothing was planned and nothing was spent."
            )
        return low + (high - low) * uniform

    def evaluate(
        self,
        inputs: Mapping[str, Numbers],
        noise: Mapping[str, Numbers] | None = None,
        exact: Mapping[str, Numbers] | None = None,
    ) -> dict[str, Numbers]:
        """Every node's value. A node in `noise` gets it added and is clipped to its bounds before anybody reads it.

        `exact` are the values of the same inputs without noise: what no noise reaches is taken from there.

        Clipping is post-processing. It makes a published value lie where everybody knows it lies, at the price of a
        bias near the ends; a publication that must be unbiased is an aggregate, which is not clipped.
        """
        added = noise or {}
        known = exact or {}
        values: dict[str, Numbers] = {}
        moved = set(added)
        for name in self.order:
            if name not in self.formulas:
                value = inputs[name]
            elif name in known and moved.isdisjoint(self.parents[name]):
                value = known[name]
            else:
                value = self.formulas[name].evaluate(values)
                moved.add(name)
            if name in added:
                value = np.clip(value + added[name], self.bounds[name].low, self.bounds[name].high)
            values[name] = np.asarray(value)
        return values

    def squared_slopes(self, outputs: Iterable[str]) -> dict[str, dict[str, float]]:
        """Mean squared effect of a small change of each node on each output, over the public ranges. A guide only."""
        chosen = tuple(outputs)
        return self._once(("squared slopes", chosen), lambda: self._squared_slopes(chosen))

    def _squared_slopes(self, chosen: tuple[str, ...]) -> dict[str, dict[str, float]]:
        inputs, _ = self.points()
        values = self.evaluate(inputs)
        effect: dict[str, dict[str, float]] = {}
        for node in self.touched:
            width = self.bounds[node].width
            if not (math.isfinite(width) and width > 0):
                continue
            check_time(f"measuring what {len(self.touched)} variables of one individual do to what is seen")
            step = width * 1e-4
            up, down = (self._shifted(values, node, sign * step) for sign in (1, -1))
            effect[node] = {
                output: float(np.mean(((up[output] - down[output]) / (2 * step)) ** 2)) if output in up else 0.0
                for output in chosen
            }
        return effect

    def _shifted(self, values: Mapping[str, Numbers], node: str, shift: float) -> dict[str, Numbers]:
        """The node and all that is computed from it, after the node moved."""
        moved: dict[str, Numbers] = {node: values[node] + shift}
        seen = {**values, **moved}
        for name in self.order:
            if name in self.formulas and name != node and any(parent in moved for parent in self.parents[name]):
                moved[name] = seen[name] = np.asarray(self.formulas[name].evaluate(seen))
        return moved

    def predicted_errors(
        self, scales: Mapping[str, float], outputs: Iterable[str], noise: NoiseName = "gaussian"
    ) -> dict[str, float]:
        """Expected squared error of each output under noise on the cut, over inputs spread on their public ranges."""
        errors = self.simulated_errors(scales, outputs, noise)
        return {output: float(np.mean(error**2)) for output, error in errors.items()}

    def simulated_errors(
        self, scales: Mapping[str, float], outputs: Iterable[str], noise: NoiseName = "gaussian"
    ) -> dict[str, Numbers]:
        """Error of each output at every simulated point."""
        names = sorted(scales)
        inputs, uniform, exact = _spread(self, len(names))
        standard = draw_law(noise).quantile(uniform)
        added = {name: scales[name] * standard[:, i] for i, name in enumerate(names)}
        noisy = self.evaluate(inputs, added, exact)
        return {output: noisy[output] - exact[output] for output in outputs}


@lru_cache(maxsize=8)  # a few megabytes each, asked for by one cut after the other
def _spread(template: Template, more: int) -> tuple[dict[str, Numbers], Numbers, dict[str, Numbers]]:
    """Inputs, `more` columns for noise, and every node's value without it."""
    inputs, uniform = template.points(_SIMULATED, more)
    return inputs, uniform, template.evaluate(inputs)
