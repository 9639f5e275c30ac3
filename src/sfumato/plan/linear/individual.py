"""Several linear answers about one individual: noise of the best covariance in place of a cut.

In:   a template whose observed nodes are linear in the individual's inputs.
Out:  LinearCandidate: the strategy matrix, its difficulty, its simulated loss; LinearDraw for the plan.
Not here: the optimisation (plan/linear/query.py), the choice between this and a cut (plan/settle.py).
Proof: docs/proofs/linear_placement.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.core import Adjacency, GaussianDP
from sfumato.core.events.linear import LinearGaussianEvent
from sfumato.core.special import ndtri
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.network.expression import combined
from sfumato.plan.template import Numbers, Template
from sfumato.questions.intervals import NoiseLaw

__all__ = ["LinearCandidate", "LinearDraw", "linear_candidate", "linear_law", "linear_refinements"]

Rows = tuple[tuple[float, ...], ...]
_POINTS = 14
_MOST_INPUTS = 12  # beyond it the sensitivity is only bounded, and a cut is usually better


@dataclass(frozen=True)
class LinearCandidate:
    """answers = reconstruction·(strategy·(inputs - low)) + constant, noise between the two products."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    low: tuple[float, ...]
    width: tuple[float, ...]
    strategy_matrix: Rows
    reconstruction: Rows
    constant: tuple[float, ...]
    clip: tuple[tuple[float, float], ...]
    difficulty: float

    strategy = "correlated noise"

    @property
    def cut(self) -> tuple[str, ...]:
        return self.outputs

    def event(self, scale: float, grid: float, adjacency: Adjacency) -> LinearGaussianEvent:
        columns = tuple(zip(*self.strategy_matrix, strict=True))
        return LinearGaussianEvent(((1, self.width, columns),), len(self.inputs), scale, grid, adjacency=adjacency)

    def apply(self, values: Mapping[str, Numbers]) -> Numbers:
        """strategy·(inputs - low) for every row, inputs clipped to their ranges."""
        moved = np.stack(
            [np.clip(np.asarray(values[name]) - low, 0.0, width) for name, low, width in self._placed()], axis=-1
        )
        return moved @ np.array(self.strategy_matrix).T

    def _placed(self) -> zip[tuple[str, float, float]]:
        return zip(self.inputs, self.low, self.width, strict=True)

    def read(self, noisy: Numbers) -> dict[str, Numbers]:
        """The published answers, clipped to where everybody knows them to be: post-processing."""
        answers = noisy @ np.array(self.reconstruction).T + np.array(self.constant)
        return {name: np.clip(answers[..., place], *self.clip[place]) for place, name in enumerate(self.outputs)}

    def simulated_errors(self, template: Template, scale: float) -> dict[str, Numbers]:
        inputs, uniform = template.points(_POINTS, len(self.strategy_matrix))
        exact = self.apply(inputs)
        truth, noisy = self.read(exact), self.read(exact + scale * ndtri(uniform))
        return {name: noisy[name] - truth[name] for name in self.outputs}

    def loss(self, template: Template, weights: Mapping[str, float], budget: float) -> float:
        errors = self.simulated_errors(template, self.unit_sensitivity / math.sqrt(budget))
        return math.fsum(weights[name] * float(np.mean(error**2)) for name, error in errors.items())

    @cached_property
    def unit_sensitivity(self) -> float:
        return self.event(1.0, 0.0, Adjacency("individual", "replace-one")).sensitivity

    def to_dict(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "low": list(self.low),
            "width": list(self.width),
            "strategy_matrix": [list(row) for row in self.strategy_matrix],
            "reconstruction": [list(row) for row in self.reconstruction],
            "constant": list(self.constant),
            "clip": [list(pair) for pair in self.clip],
            "difficulty": self.difficulty,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> LinearCandidate:
        tuples = {name: _tuples(value) for name, value in record.items()}
        return cls(**tuples)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def linear_candidate(template: Template, weights: Mapping[str, float]) -> LinearCandidate | None:
    """The matrix mechanism for these answers; None if they are fewer than two, not linear, or read unbounded inputs."""
    outputs = tuple(weights)
    found = _coefficients(template, outputs)
    if len(outputs) < 2 or found is None:
        return None
    inputs, matrix, constant = found
    if not inputs or len(inputs) > _MOST_INPUTS or not np.any(matrix):
        return None
    if not all(template.bounds[name].bounded and template.bounds[name].width > 0 for name in inputs):
        return None
    return _placed(template, weights, inputs, matrix, constant)


def _placed(
    template: Template, weights: Mapping[str, float], inputs: tuple[str, ...], matrix: np.ndarray, constant: list[float]
) -> LinearCandidate:
    outputs, bounds = tuple(weights), [template.bounds[name] for name in inputs]
    from sfumato.plan.linear.query import place_noise  # its solver is loaded where there are linear answers

    low, width = [bound.low for bound in bounds], [bound.width for bound in bounds]
    requirement = GaussianDP(1.0, adjacency=Adjacency("individual", "replace-one"))
    ranges = [(bound.low, bound.high) for bound in bounds]
    placed = place_noise(matrix, requirement, ranges, owners=[0] * len(inputs), weights=[weights[o] for o in outputs])
    return LinearCandidate(
        inputs,
        outputs,
        tuple(low),
        tuple(width),
        tuple(map(tuple, placed.strategy.tolist())),
        tuple(map(tuple, placed.reconstruction.tolist())),
        tuple((np.array(constant) + matrix @ np.array(low)).tolist()),
        tuple((template.bounds[name].low, template.bounds[name].high) for name in outputs),
        placed.error,
    )


def _coefficients(
    template: Template, outputs: tuple[str, ...]
) -> tuple[tuple[str, ...], np.ndarray, list[float]] | None:
    """Every output as a combination of private inputs, by substitution from the inputs upwards."""
    known: dict[str, tuple[dict[str, float], float]] = {}
    for name in template.order:
        formula = template.formulas.get(name)
        if formula is None:
            if name not in template.private or name in template.levels:
                return None
            known[name] = ({name: 1.0}, 0.0)
            continue
        linear = formula.linear()  # type: ignore[attr-defined]  # expressions have it
        if linear is None:
            return None
        parts = [({}, linear[1]), *(known[parent] for parent in linear[0])]
        known[name] = combined(parts, [1.0, *linear[0].values()])
    inputs = template.inputs
    matrix = np.array([[known[output][0].get(name, 0.0) for name in inputs] for output in outputs])
    return inputs, matrix, [known[output][1] for output in outputs]


@dataclass(frozen=True)
class LinearDraw:
    """Gaussian noise of `scale` on the strategy's numbers; every observer listed sees the answers read off them."""

    candidate: LinearCandidate
    scale: float
    observers: tuple[str, ...]
    adjacency: Adjacency
    dataset: str = ""
    group: int | None = None

    noise = "gaussian"

    @property
    def node(self) -> str:
        return ", ".join(self.candidate.outputs)

    @property
    def dimension(self) -> int:
        return len(self.candidate.strategy_matrix)

    def mechanism(self, random_state: int | None = None) -> Gaussian:
        sensitivity = self.candidate.unit_sensitivity
        return Gaussian(self.scale, sensitivity, self.adjacency, self.dimension, random_state)

    def event(self) -> LinearGaussianEvent:
        return self.candidate.event(self.scale, self.mechanism().grid, self.adjacency)

    @property
    def variance(self) -> float:
        return self.mechanism().error()

    def to_dict(self) -> dict[str, Any]:
        return {
            "linear": self.candidate.to_dict(),
            "scale": self.scale,
            "observers": list(self.observers),
            "adjacency": self.adjacency.to_dict(),
            "dataset": self.dataset,
            "group": self.group,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> LinearDraw:
        return cls(
            LinearCandidate.from_dict(record["linear"]),
            record["scale"],
            tuple(record["observers"]),
            Adjacency.from_dict(record["adjacency"]),
            record["dataset"],
            record["group"],
        )


def linear_law(draws: Sequence[LinearDraw], output: str) -> NoiseLaw:
    """The law of the noise in one answer, its strategy's versions combined by precision."""
    candidate = draws[0].candidate
    row = candidate.reconstruction[candidate.outputs.index(output)]
    return NoiseLaw(math.fsum(factor**2 for factor in row) / math.fsum(1 / draw.variance for draw in draws))


def linear_refinements(
    candidate: LinearCandidate, shares: Mapping[str, float], adjacency: Adjacency, dataset: str, group: int | None
) -> tuple[LinearDraw, ...]:
    """Draws by which every observer's view costs its share of μ²; see plan/draw.py::refinements."""
    draws: list[LinearDraw] = []
    reached = 0.0
    dimension = len(candidate.strategy_matrix)
    for share in sorted(set(shares.values())):
        step = share - reached
        if step <= share * 1e-4:
            continue
        mu = GaussianDP(math.sqrt(math.nextafter(step, 0.0)) * (1 - 1e-15))
        scale = Gaussian.for_guarantee(mu, candidate.unit_sensitivity, adjacency, dimension=dimension).scale
        seen_by = tuple(sorted(observer for observer, own in shares.items() if own >= share))
        draws.append(LinearDraw(candidate, scale, seen_by, adjacency, dataset, group))
        reached = share
    return tuple(draws)
