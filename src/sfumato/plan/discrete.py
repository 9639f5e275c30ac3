"""Variables with finitely many levels: one random answer per individual, its exact loss by summation.

In:   a node with levels whose law depends on finitely many private states.
Out:  SampleCandidate: states, probabilities; SampleDraw for the plan: whole-number weights.
Not here: numbers (plan/individual.py), drawing (mechanisms/finite_channel.py).
Proof: docs/proofs/tailored_noise.md

The randomness of the network's own distributions is credited: only what is missing to the promise is mixed in. The
loss is the largest ratio of two rows for the same answer, over all states an individual could be in, computed in whole
numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.core import Adjacency, Categories, PureDP
from sfumato.core.channel_event import ChannelEvent
from sfumato.errors import PlanError
from sfumato.mechanisms.finite_channel import FiniteChannel
from sfumato.network.expression import Distribution
from sfumato.network.network import Node
from sfumato.plan.template import Template

__all__ = ["SampleCandidate", "SampleDraw", "is_finite", "sample_candidate"]

_MOST_STATES = 2048
Level = str | int | float | bool


def is_finite(node: Node) -> bool:
    """Whether its values are levels rather than numbers."""
    words = isinstance(node.domain, Categories) and any(isinstance(value, str) for value in node.domain.values)
    return words or (node.expression is None and bool(node.levels))


@dataclass(frozen=True)
class SampleCandidate:
    """The answer to `node` for every state of `inputs`: states in lexicographic order, probabilities in rows."""

    node: str
    inputs: tuple[str, ...]
    states: tuple[tuple[Level, ...], ...]
    answers: tuple[Level, ...]
    probabilities: tuple[tuple[float, ...], ...] = field(repr=False)

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
            levels = sorted({state[place] for state in self.states}, key=self._order(place).index)
            column = np.broadcast_to(np.asarray(values[name]), (size,))
            code = np.zeros(size, dtype=np.int64)
            for index, level in enumerate(levels):
                code[column == level] = index
            number = number * len(levels) + code
        return number

    def _order(self, place: int) -> list[Level]:
        return list(dict.fromkeys(state[place] for state in self.states))

    def to_dict(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "inputs": list(self.inputs),
            "states": [list(state) for state in self.states],
            "answers": list(self.answers),
            "probabilities": [list(row) for row in self.probabilities],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SampleCandidate:
        return cls(
            record["node"],
            tuple(record["inputs"]),
            tuple(map(tuple, record["states"])),
            tuple(record["answers"]),
            tuple(map(tuple, record["probabilities"])),
        )


def sample_candidate(node: Node, template: Template) -> SampleCandidate:
    """Every state the node's inputs can be in, and the probabilities of its levels in each."""
    inputs = tuple(name for name in template.order if name not in template.formulas)
    lacking = [name for name in inputs if name not in template.levels]
    if lacking:
        raise PlanError(
            f"{node.name} is published as a random answer, and {lacking[0]}, on which it depends, has a range of "
            f"numbers and not a list of levels. Declare range({lacking[0]}, [level, …]), or publish a number instead: "
            "its expectation, or an aggregate. Nothing was planned and nothing was spent."
        )
    size = math.prod(len(template.levels[name]) for name in inputs)
    if size > _MOST_STATES:
        raise PlanError(f"{node.name} depends on {size} states; at most {_MOST_STATES} are summed. Nothing was spent.")
    states = tuple(itertools.product(*(template.levels[name] for name in inputs)))
    columns = {name: np.array([state[i] for state in states]) for i, name in enumerate(inputs)}
    return SampleCandidate(node.name, inputs, states, *_answers(node, template, columns, len(states)))


def _answers(
    node: Node, template: Template, columns: Mapping[str, np.ndarray], size: int
) -> tuple[tuple[Level, ...], tuple[tuple[float, ...], ...]]:
    if node.source is not None:
        assert isinstance(node.domain, Categories)
        levels = tuple(node.domain.values)
        chances = np.array([[float(value == level) for level in levels] for value in columns[node.name]])
    else:
        values = template.evaluate(columns)
        if node.probabilities:
            levels, parts = node.levels, [part.evaluate(values) for part in node.probabilities]
        elif isinstance(node.law, Distribution) and node.law.kind == "bernoulli":
            chance = np.clip(node.law.arguments[0].evaluate(values), 0.0, 1.0)
            levels, parts = (0, 1), [1 - chance, chance]
        else:
            raise PlanError(
                f"sample({node.name}): only bernoulli, discrete and lookup laws can be sampled. Publish its "
                f"expectation with publish(Name, {node.name}, Requirement). Nothing was planned and nothing was spent."
            )
        chances = np.stack([np.broadcast_to(part, (size,)) for part in parts], axis=1)
        chances = np.maximum(chances, 0.0) / np.maximum(chances, 0.0).sum(axis=1, keepdims=True)
    return tuple(levels), tuple(map(tuple, chances.tolist()))


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
