"""Variables with finitely many levels: one random answer per individual, its exact loss by summation.

In:   a node that is drawn: of finitely many levels, or a number, which is rounded to a public grid.
Out:  SampleCandidate: states, probabilities; SampleDraw for the plan: whole-number weights.
Not here: numbers (plan/individual.py), drawing (mechanisms/finite_channel.py).
Proof: docs/proofs/tailored_noise.md

The randomness of the network's own distributions is credited: only what is missing to the promise is mixed in. The
loss is the largest ratio of two rows for the same answer, over all states an individual could be in, computed in whole
numbers. Numbers a law depends on are rounded to public values first, which is a function of one person's own cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.core import Adjacency, Categories, PureDP
from sfumato.core.events.channel import ChannelEvent
from sfumato.errors import PlanError
from sfumato.mechanisms.finite_channel import FiniteChannel
from sfumato.network.bounds import Bounds
from sfumato.network.condition import Comparison, Condition, Every
from sfumato.network.discrete import level_probability
from sfumato.network.expression import Call, Constant, Distribution, Expression, Reference
from sfumato.network.indicator import Indicator
from sfumato.network.inference import Inference
from sfumato.network.network import Node
from sfumato.plan.template import Template

__all__ = ["SampleCandidate", "SampleDraw", "SampleLaw", "is_finite", "sample_candidate", "sample_law"]

_MOST_STATES = 2048
#: Values a number is rounded to, states that come of several, answers a drawn number is rounded to.
_MOST_VALUES = 65
_MOST_ROUNDED = 256
_MOST_ANSWERS = 33
Level = str | int | float | bool


def is_finite(node: Node) -> bool:
    """Whether its values are levels rather than numbers."""
    words = isinstance(node.domain, Categories) and any(isinstance(value, str) for value in node.domain.values)
    return words or (node.expression is None and bool(node.levels))


@dataclass(frozen=True)
class SampleCandidate:
    """The answer to `node` for every state of `inputs`: states in lexicographic order, probabilities in rows.

    `steps` is, of an input with a range of numbers, the distance of the public values it is rounded to; 0 of others.
    """

    node: str
    inputs: tuple[str, ...]
    states: tuple[tuple[Level, ...], ...]
    answers: tuple[Level, ...]
    probabilities: tuple[tuple[float, ...], ...] = field(repr=False)
    steps: tuple[float, ...] = ()

    @property
    def rounding(self) -> str:
        """What is rounded before and after an answer is drawn, in words."""
        numbers = [name for name, step in zip(self.inputs, self.steps, strict=True) if step > 0]
        said = ""
        if numbers:
            place = self.inputs.index(numbers[0])
            values = len({state[place] for state in self.states})
            said = f"; drawn for {' and '.join(numbers)} rounded to {values} public values each"
        return said + (f"; answered by the nearest of {len(self.answers)} numbers" if len(self.answers) > 2 else "")

    def channel(self, epsilon: float, adjacency: Adjacency, random_state: int | None = None) -> FiniteChannel:
        promise = PureDP(epsilon)
        return FiniteChannel.for_guarantee(
            promise, 1.0, adjacency, probabilities=self.probabilities, random_state=random_state
        )

    def error(self, epsilon: float) -> float:
        """How often the answer is not the one the network itself would have drawn, over all states alike."""
        made = self.channel(epsilon, Adjacency("individual", "replace-one")).probabilities
        return float(np.abs(made - np.array(self.probabilities)).sum(axis=1).mean() / 2)

    @cached_property
    def own_loss(self) -> float:
        """ε of the network's own randomness; infinite where an answer is impossible in one state and not in another."""
        chances = np.array(self.probabilities)
        used = chances[:, chances.max(axis=0) > 0]
        least = used.min(axis=0)
        return math.inf if np.any(least == 0) else float(np.max(np.log(used.max(axis=0) / least)))

    def rows(self, values: Mapping[str, np.ndarray], size: int) -> np.ndarray:
        """The state of every individual, by number."""
        number = np.zeros(size, dtype=np.int64)
        for place, name in enumerate(self.inputs):
            levels = self._order(place)
            column = np.broadcast_to(np.asarray(values[name]), (size,))
            number = number * len(levels) + self._places(column, levels, self.steps[place])
        return number

    @staticmethod
    def _places(column: np.ndarray, levels: list[Level], step: float) -> np.ndarray:
        if step > 0:
            nearest = np.rint((np.nan_to_num(column.astype(np.float64)) - float(levels[0])) / step)
            return np.clip(nearest, 0, len(levels) - 1).astype(np.int64)
        code = np.zeros(len(column), dtype=np.int64)
        for index, level in enumerate(levels):
            code[column == level] = index
        return code

    def _order(self, place: int) -> list[Level]:
        return list(dict.fromkeys(state[place] for state in self.states))

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "inputs": list(self.inputs),
            "states": [list(state) for state in self.states],
            "answers": list(self.answers),
            "probabilities": [list(row) for row in self.probabilities],
            "steps": list(self.steps),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SampleCandidate:
        return cls(
            record["node"],
            tuple(record["inputs"]),
            tuple(map(tuple, record["states"])),
            tuple(record["answers"]),
            tuple(map(tuple, record["probabilities"])),
            tuple(record["steps"]),
        )


def _values_of_inputs(node: Node, template: Template) -> tuple[dict[str, tuple[Any, ...]], dict[str, float]]:
    """The values that each input is taken at, and for numbers the step between them."""
    inputs = template.inputs
    numbers = [name for name in inputs if name not in template.levels]
    listed = math.prod(len(template.levels[name]) for name in inputs if name in template.levels)
    if listed > _MOST_STATES:
        raise PlanError(
            f"{node.name} depends on {listed} states; at most {_MOST_STATES} are summed. Nothing was spent."
        )
    count = _values_of_numbers(node, template, numbers, listed)
    steps = {name: template.bounds[name].width / (count - 1) for name in numbers}
    values = {
        name: template.levels[name]
        if name in template.levels
        else tuple(template.bounds[name].low + steps[name] * place for place in range(count))
        for name in inputs
    }
    return values, steps


def sample_candidate(node: Node, template: Template, law: SampleLaw) -> SampleCandidate:
    """Every state the node's inputs can be in, and the probabilities of its answers in each."""
    inputs = template.inputs
    values, steps = _values_of_inputs(node, template)
    states = tuple(itertools.product(*(values[name] for name in inputs)))
    columns = {name: np.array([state[i] for state in states]) for i, name in enumerate(inputs)}
    if node.source is not None:
        chances = np.array([[float(value == level) for level in law.answers] for value in columns[node.name]])
    else:
        known = template.evaluate(columns)
        parts = [np.broadcast_to(part.evaluate(known), (len(states),)) for part in law.probabilities]
        chances = np.maximum(np.stack(parts, axis=1), 0.0)
        chances = chances / chances.sum(axis=1, keepdims=True)
    return SampleCandidate(
        node.name,
        inputs,
        states,
        law.answers,
        tuple(map(tuple, chances.tolist())),
        tuple(steps.get(name, 0.0) for name in inputs),
    )


def _values_of_numbers(node: Node, template: Template, numbers: list[str], listed: int) -> int:
    """To how many values each number is rounded before an answer is drawn: a function of one person's own cells."""
    if not numbers:
        return 2
    unbounded = next((name for name in numbers if not template.bounds[name].bounded), None)
    count = min(_MOST_VALUES, int((_MOST_ROUNDED / listed) ** (1 / len(numbers)) + 1e-9))
    if unbounded is not None or count < 2:
        lacking = unbounded or numbers[0]
        raise PlanError(
            f"{node.name} is published as a random answer, and {lacking}, on which it depends, "
            f"{'has no range' if unbounded else 'is one of too many numbers'}: declare range({lacking}, [level, …]) or "
            "bounds, or publish a number instead: its expectation, or an aggregate. Nothing was planned and nothing "
            "was spent."
        )
    return count


@dataclass(frozen=True)
class SampleLaw:
    """The answers a draw may give and the probability of each, given what is not random."""

    answers: tuple[Level, ...]
    probabilities: tuple[Expression, ...]


def sample_law(node: Node, inference: Inference) -> SampleLaw:
    """Levels as they are; numbers rounded to the nearest of a public grid, counts to whole numbers."""
    if node.source is not None and isinstance(node.domain, Categories):
        return SampleLaw(tuple(node.domain.values), ())
    if node.probabilities:
        return SampleLaw(node.levels, node.probabilities)
    drawn = node.drawn
    if drawn is None:
        raise PlanError(
            f"sample({node.name}): nothing about it is random. Publish it itself, with publish(Name, {node.name}, "
            "Requirement). Nothing was planned and nothing was spent."
        )
    if isinstance(drawn, Distribution) and drawn.kind in ("bernoulli", "discrete"):
        levels = (0, 1) if drawn.kind == "bernoulli" else drawn.levels
        return SampleLaw(levels, tuple(inference.expected(level_probability(drawn, level)) for level in levels))
    answers = _grid(node, drawn, inference)
    return SampleLaw(answers, tuple(inference.expected(Indicator(one)) for one in _nearest(node.name, answers)))


def _nearest(name: str, answers: Sequence[float]) -> list[Condition]:
    """For each answer when a number is nearest to it."""
    ends = [Constant((a + b) / 2) for a, b in itertools.pairwise(answers)]
    value = Reference(name)
    between = [Every((Comparison(">=", value, a), Comparison("<", value, b))) for a, b in itertools.pairwise(ends)]
    return [Comparison("<", value, ends[0]), *between, Comparison(">=", value, ends[-1])]


def _counts(drawn: Expression) -> bool:
    inner = drawn.arguments[0] if isinstance(drawn, Call) and drawn.function == "clip" else drawn
    return isinstance(inner, Distribution) and inner.kind == "poisson"


def _grid(node: Node, drawn: Expression, inference: Inference) -> tuple[float, ...]:
    """The values a drawn number is rounded to: evenly over where all but a millionth of its law lies."""
    reach = node.support
    if not reach.bounded and isinstance(drawn, Distribution):
        reach = _nearly_all(drawn, [inference.support(part) for part in drawn.arguments])
    if not reach.bounded or reach.width == 0.0:
        raise PlanError(
            f"sample({node.name}): its values have no bounds, so that no finite list of answers can be given. Declare "
            f"range({node.name}, Low, High) or clip its CPF. Nothing was planned and nothing was spent."
        )
    if _counts(drawn) and float(reach.low).is_integer() and float(reach.high).is_integer():
        step = math.ceil((reach.high - reach.low) / (_MOST_ANSWERS - 1))
        return tuple(float(value) for value in np.arange(reach.low, reach.high + step, step))
    return tuple(np.linspace(reach.low, reach.high, _MOST_ANSWERS).tolist())


def _nearly_all(law: Distribution, parameters: list[Bounds]) -> Bounds:
    if not all(one.bounded for one in parameters):
        return Bounds.unbounded("a parameter of the law has no bounds")
    match law.kind:
        case "normal":
            away = 5 * parameters[1].magnitude
            return Bounds(parameters[0].low - away, parameters[0].high + away)
        case "exponential" if parameters[0].low > 0:
            return Bounds(0.0, 14 / parameters[0].low)
        case "poisson":
            rate = max(parameters[0].high, 0.0)
            return Bounds(0.0, math.ceil(rate + 5 * math.sqrt(rate) + 10))
    return Bounds.unbounded("the law has no bounds")


@dataclass(frozen=True)
class SampleDraw:
    """One random answer per individual at this ε, for these observers."""

    candidate: SampleCandidate
    epsilon: float
    observers: tuple[str, ...]
    adjacency: Adjacency
    dataset: str = ""
    group: int | None = None

    noise = "laplace"  # counted in ε

    @property
    def node(self) -> str:
        return self.candidate.node

    @property
    def scale(self) -> float:
        """How often the answer is not the network's own."""
        return self.candidate.error(self.epsilon)

    def mechanism(self, random_state: int | None = None) -> FiniteChannel:
        return self.candidate.channel(self.epsilon, self.adjacency, random_state)

    def event(self) -> ChannelEvent:
        return self.mechanism().event()

    def to_dict(self) -> dict[str, Any]:
        return {
            "sample": self.candidate.to_dict(),
            "epsilon": self.epsilon,
            "observers": list(self.observers),
            "adjacency": self.adjacency.to_dict(),
            "dataset": self.dataset,
            "group": self.group,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SampleDraw:
        return cls(
            SampleCandidate.from_dict(record["sample"]),
            record["epsilon"],
            tuple(record["observers"]),
            Adjacency.from_dict(record["adjacency"]),
            record["dataset"],
            record["group"],
        )
