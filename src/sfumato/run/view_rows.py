"""Numbers about single individuals with their errors: all rows at once.

In:   the noisy nodes of a group of individuals, the law of the noise in each, the formulas above them.
Out:  RowFigures: value, standard error, low, high for every individual.
Not here: drawing (run/view.py), one number alone (questions/intervals.py).
Proof: docs/proofs/intervals.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.plan.linear.individual import LinearCandidate, LinearDraw, linear_law
from sfumato.plan.template import Numbers, Template
from sfumato.questions.intervals import NoiseLaw, body

__all__ = ["RowFigures", "linear_rows", "template_rows"]

_CLIMBS = 2
_STARTS = 16
_BLOCK = 4096


@dataclass(frozen=True)
class RowFigures:
    """One number for each individual."""

    value: Numbers
    standard_error: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def around(
        cls, free: Numbers, deviation: float, half_width: float, low: float, high: float, value: Numbers | None = None
    ) -> RowFigures:
        """Free = exact + noise, put into the range that the exact number is known to lie in; as Figure.within does."""
        shown = np.clip(free, low, high) if value is None else value
        middle = np.where((free - half_width > high) | (free + half_width < low), np.clip(free, low, high), free)
        error = np.full(free.shape, min(deviation, (high - low) / 2))
        return cls(shown, error, np.clip(middle - half_width, low, high), np.clip(middle + half_width, low, high))

    @classmethod
    def exact(cls, value: Numbers) -> RowFigures:
        return cls(value, np.zeros(value.shape), value, value)

    def columns(self, name: str) -> dict[str, Numbers]:
        """As a published table has them: the value under its own name, its errors beside it."""
        if self.value.dtype.kind in "OUS":
            return {name: self.value}
        return {
            name: self.value,
            f"{name} standard_error": self.standard_error,
            f"{name} low": self.low,
            f"{name} high": self.high,
        }


def linear_rows(candidate: LinearCandidate, noisy: Numbers, draws: Sequence[LinearDraw]) -> dict[str, RowFigures]:
    """Answers read off a noisy strategy: Gaussian, of the variance that the reconstruction gives them."""
    answers = noisy @ np.array(candidate.reconstruction).T + np.array(candidate.constant)
    found = {}
    for place, name in enumerate(candidate.outputs):
        law = linear_law(draws, name)
        found[name] = RowFigures.around(answers[..., place], law.deviation, law.half_width, *candidate.clip[place])
    return found


def template_rows(
    template: Template,
    values: Mapping[str, Numbers],
    free: Mapping[str, Numbers],
    laws: Mapping[str, NoiseLaw],
    inputs: Mapping[str, Any],
    guesses: Mapping[str, tuple[float, float]],
) -> dict[str, RowFigures]:
    """Of every published node. `free` are the noisy nodes before they were put into their ranges.

    Where one noisy node reads another, the exact value behind the second is not its own noise away: then the error that
    was simulated for the plan (`guesses`) is stated.
    """
    nested = any(set(template.ancestors(node)[:-1]) & set(free) for node in free)
    found: dict[str, RowFigures] = {}
    for name, value in values.items():
        bounds = template.bounds[name]
        if value.dtype.kind in "OUS" or name not in template.touched:
            found[name] = RowFigures.exact(value)
        elif nested:
            error, half_width = guesses[name]
            found[name] = RowFigures.around(value, error, half_width, bounds.low, bounds.high)
        elif name in free:
            law = laws[name]
            found[name] = RowFigures.around(free[name], law.deviation, law.half_width, bounds.low, bounds.high)
        else:
            found[name] = _computed(_Above(template, name, frozenset(free)), value, free, laws, inputs)
    return found


@dataclass(frozen=True)
class _Above:
    """A published node as a function of the noisy nodes below it and of what is public."""

    template: Template
    name: str
    cut: frozenset[str]

    @property
    def order(self) -> list[str]:
        needed = {self.name}
        for node in reversed(self.template.order):
            if node in needed and node not in self.cut:
                needed.update(self.template.parents.get(node, ()))
        return [node for node in self.template.order if node in needed]

    def __call__(self, noisy: Mapping[str, Numbers], inputs: Mapping[str, Any]) -> Numbers:
        known: dict[str, Any] = {}
        for node in self.order:
            if node in self.cut:
                bounds = self.template.bounds[node]
                known[node] = np.clip(noisy[node], bounds.low, bounds.high)
            elif node in self.template.formulas:
                known[node] = np.asarray(self.template.formulas[node].evaluate(known))
            else:
                known[node] = np.asarray(inputs[node])
        return np.asarray(known[self.name], dtype=np.float64)


def _computed(
    above: _Above, value: Numbers, free: Mapping[str, Numbers], laws: Mapping[str, NoiseLaw], inputs: Mapping[str, Any]
) -> RowFigures:
    own = [node for node in above.order if node in above.cut]
    pieces = []
    for start in range(0, len(value), _BLOCK):
        rows = slice(start, start + _BLOCK)
        size = len(value[rows])
        near = {node: np.stack([free[node][rows]]) for node in own}
        given = {node: data[rows] if np.shape(data) == value.shape else data for node, data in inputs.items()}

        def at(offsets: Numbers, near: Mapping[str, Numbers] = near, given: Any = given, size: int = size) -> Numbers:
            """Offsets of shape (points, rows or 1, noisy nodes)."""
            moved = {node: near[node] + offsets[..., place] for place, node in enumerate(own)}
            return np.broadcast_to(above(moved, given), (offsets.shape[0], size))

        pieces.append(_block(at, value[rows], [laws[node] for node in own]))
    return RowFigures(value, *(np.concatenate(parts) for parts in zip(*pieces, strict=True)))


def _block(at: Any, value: Numbers, laws: Sequence[NoiseLaw]) -> tuple[Numbers, Numbers, Numbers]:
    surface = body(laws)
    steps = np.diag([law.deviation for law in laws])[:, None, :]
    error = np.sqrt(np.sum(((at(steps) - at(-steps)) / 2) ** 2, axis=0))
    spread = surface[:: max(1, len(surface) // _STARTS)]
    points = np.concatenate([spread, spread / 2])[:, None, :]
    heights = at(points)
    ends = [value, value]
    for place, sign in enumerate((-1.0, 1.0)):
        best = np.argmax(sign * heights, axis=0)
        where = points[best, 0, :]
        ends[place] = _further(sign, ends[place], heights[best, np.arange(value.size)])
        for _ in range(_CLIMBS):
            slope = _slopes(at, where, laws)
            where = surface[np.argmax(sign * slope @ surface.T, axis=1)]
            ends[place] = _further(sign, ends[place], at(where[None])[0])
    return error, ends[0], ends[1]


def _further(sign: float, first: Numbers, second: Numbers) -> Numbers:
    return np.maximum(first, second) if sign > 0 else np.minimum(first, second)


def _slopes(at: Any, where: Numbers, laws: Iterable[NoiseLaw]) -> Numbers:
    columns = []
    for place, law in enumerate(laws):
        step = np.zeros(where.shape[-1])
        step[place] = 1e-3 * law.deviation
        columns.append((at((where + step)[None])[0] - at((where - step)[None])[0]) / (2e-3 * law.deviation))
    return np.stack(columns, axis=1)
