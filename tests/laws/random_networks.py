"""Random networks as studies, and the same networks simulated in plain numpy: a second opinion that shares no code."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Draws = dict[str, Numbers]
Drawn = Callable[[Draws, np.random.Generator], Numbers]

HEAD = """
source(items, 'items.parquet').
column(items, id, item(I)).
column(items, x, x(I)).
column(items, z, z(I)).
column(items, kind, kind(I)).
rows_per_person(items, 1). missing(items, never).
random(x(I)) :- item(I). random(z(I)) :- item(I). random(kind(I)) :- item(I).
range(x(I), 0.05, 1). range(z(I), -1, 1). range(kind(I), [a, b, c]).
dataset(ds, domain(I, item(I))).
privacy_requirement(p(obs), ds, dp(1000000.0)).
"""


@dataclass
class Written:
    """A study under construction: its lines, its variables, and how each is simulated from those before it."""

    generator: random.Random
    lines: list[str] = field(default_factory=list)
    drawn: dict[str, Drawn] = field(default_factory=dict)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return HEAD + "\n".join(self.lines)

    @property
    def numbers(self) -> list[str]:
        return ["x", "z", *(name for name in self.drawn if name not in self.words)]

    def add(self, name: str, parents: set[str], cpf: str, drawn: Drawn, clipped: tuple[float, float] | None = None):
        listed = ", ".join(f"{parent}(I)" for parent in sorted(parents))
        self.lines += [f"random({name}(I)) :- item(I).", f"depends({name}(I), [{listed}], {cpf})."]
        if clipped:
            self.lines.append(f"range({name}(I), {clipped[0]}, {clipped[1]}).")
            self.drawn[name] = lambda values, rng: np.clip(drawn(values, rng), *clipped)
        else:
            self.drawn[name] = drawn

    def number(self, depth: int = 1) -> tuple[str, set[str], Drawn]:
        """A bounded-growth expression of the variables so far."""
        g = self.generator
        if depth == 0 or g.random() < 0.4:
            name = g.choice(self.numbers)
            return f"{name}(I)", {name}, lambda values, rng: values[name]
        a, first, one = self.number(depth - 1)
        b, second, two = self.number(depth - 1)
        c = round(g.uniform(-1.5, 1.5), 2)
        forms: list[tuple[str, Drawn]] = [
            (f"({a} + {b})", lambda v, r: one(v, r) + two(v, r)),
            (f"({c} * {a})", lambda v, r: c * one(v, r)),
            (f"({a} * {b})", lambda v, r: one(v, r) * two(v, r)),
            (f"({a}) ** 2", lambda v, r: one(v, r) ** 2),
            (f"exp(-abs({a}))", lambda v, r: np.exp(-np.abs(one(v, r)))),
            (f"tanh({a} - {b})", lambda v, r: np.tanh(one(v, r) - two(v, r))),
            (f"max({a}, {c})", lambda v, r: np.maximum(one(v, r), c)),
            (f"min({a}, {b})", lambda v, r: np.minimum(one(v, r), two(v, r))),
            (f"clip({a}, -1, 1.5)", lambda v, r: np.clip(one(v, r), -1, 1.5)),
            (f"sqrt(abs({a}))", lambda v, r: np.sqrt(np.abs(one(v, r)))),
        ]
        text, made = g.choice(forms)
        return text, first | (second if b in text else set()), made

    def law(self, name: str) -> None:
        """A variable that is drawn."""
        g = self.generator
        a, parents, one = self.number(1)
        c = round(g.uniform(0.2, 1.5), 2)
        calm, steady = f"tanh({a})", lambda v, r: np.tanh(one(v, r))
        kinds: list[tuple[str, Drawn]] = [
            (f"normal({calm}, {c})", lambda v, r: r.normal(steady(v, r), c)),
            (f"poisson(1.5 + {calm})", lambda v, r: r.poisson(1.5 + steady(v, r)).astype(float)),
            (f"exponential(1.5 + {calm})", lambda v, r: r.exponential(1 / (1.5 + steady(v, r)))),
            (f"uniform({calm}, 2)", lambda v, r: r.uniform(steady(v, r), 2.0)),
            (f"bernoulli(0.5 + 0.4 * {calm})", lambda v, r: 1.0 * (r.random(v["x"].shape) < 0.5 + 0.4 * steady(v, r))),
            (
                f"discrete([0: 0.2, 1: 0.4 - 0.3 * {calm}, 3: 0.4 + 0.3 * {calm}])",
                lambda v, r: _levels(r.random(v["x"].shape), [0.2 + 0 * v["x"], 0.4 - 0.3 * steady(v, r)], (0, 1, 3)),
            ),
            (f"2 * normal(0, {c}) + {calm}", lambda v, r: 2 * r.normal(0, c, v["x"].shape) + steady(v, r)),
        ]
        text, made = g.choice(kinds)
        bounded = (-0.5, 1.5) if g.random() < 0.3 else None
        if bounded and text.startswith("bernoulli"):
            bounded = g.choice([(0.25, 0.5), (0.4, 2.0), (0.0, 1.0)])
        if bounded and text.startswith("discrete"):
            bounded = g.choice([(-0.5, 1.5), (0.5, 0.75), (1.0, 2.0)])
        self.add(name, parents, text, made, bounded)

    def mood(self, name: str) -> None:
        """A category that nobody observes, and a number that depends on it."""
        p = round(self.generator.uniform(0.1, 0.9), 2)
        self.add(
            name,
            {"kind"},
            f"lookup([kind(I)], [row([a], discrete([low: {p}, high: {1 - p:.2f}])), "
            "row([b], discrete([low: 1.0, high: 0.0])), row([c], discrete([low: 0.5, high: 0.5]))])",
            lambda v, r: 1.0 * (r.random(v["x"].shape) >= np.select([v["kind"] == 0, v["kind"] == 1], [p, 1.0], 0.5)),
        )
        self.words[name] = ("low", "high")
        self.add(
            f"{name}_felt",
            {name, "x"},
            f"lookup([{name}(I)], [row([low], normal(x(I), 0.5)), row([high], 2 + x(I))])",
            lambda v, r: np.where(v[name] == 0, r.normal(v["x"], 0.5), 2 + v["x"]),
        )

    def table(self, name: str) -> None:
        """A number drawn from one law or another, as an observed category decides; sometimes put into a range."""
        g = self.generator
        rows: list[tuple[str, Drawn]] = [
            ("normal(x(I), 0.5)", lambda v, r: r.normal(v["x"], 0.5)),
            ("exponential(1 + x(I))", lambda v, r: r.exponential(1 / (1 + v["x"]))),
            ("uniform(z(I), 2)", lambda v, r: r.uniform(v["z"], 2.0)),
            ("poisson(1 + x(I))", lambda v, r: r.poisson(1 + v["x"]).astype(float)),
            ("bernoulli(x(I))", lambda v, r: 1.0 * (r.random(v["x"].shape) < v["x"])),
            ("discrete([-2: 0.3, 4: 0.7])", lambda v, r: np.where(r.random(v["x"].shape) < 0.3, -2.0, 4.0)),
            ("x(I) - z(I)", lambda v, r: v["x"] - v["z"]),
        ]
        chosen = [g.choice(rows) for _ in range(3)]
        if g.random() < 0.3:  # finitely many levels, some of which a range moves
            chosen = [rows[4], rows[5], rows[5]]
        listed = ", ".join(f"row([{kind}], {text})" for kind, (text, _) in zip("abc", chosen, strict=True))

        def drawn(v: Draws, r: np.random.Generator) -> Numbers:
            return np.select([v["kind"] == k for k in range(3)], [made(v, r) for _, made in chosen])

        self.add(name, {"kind", "x", "z"}, f"lookup([kind(I)], [{listed}])", drawn, g.choice([None, (-1.0, 3.0)]))

    def condition(self) -> tuple[str, Drawn]:
        """A goal beside item(I), about random variables or not."""
        g = self.generator
        name, c = g.choice(self.numbers), round(g.uniform(-0.5, 2.0), 2)
        other, d = g.choice(self.numbers), round(g.uniform(-0.5, 1.0), 2)
        forms: list[tuple[str, Drawn]] = [
            (f"{name}(I) >= {c}", lambda v, r: 1.0 * (v[name] >= c)),
            (f"{name}(I) < {c}, {other}(I) > {d}", lambda v, r: 1.0 * ((v[name] < c) & (v[other] > d))),
            (f"({name}(I) > {c} ; {other}(I) =< {d})", lambda v, r: 1.0 * ((v[name] > c) | (v[other] <= d))),
            (f"\\+ {name}(I) > {c}, kind(I) = b", lambda v, r: 1.0 * (~(v[name] > c) & (v["kind"] == 1))),
            (f"{name}(I) + {other}(I) > {c}", lambda v, r: 1.0 * (v[name] + v[other] > c)),
        ]
        forms += [(f"{word}(I) = high, x(I) > 0.2", _is_high(word)) for word in self.words]
        return g.choice(forms)

    def simulate(self, x: Numbers, z: Numbers, kind: NDArray[np.int64], rng: np.random.Generator) -> Draws:
        """One draw of everything for every entry of the given arrays."""
        values: Draws = {"x": x, "z": z, "kind": kind}
        for name, drawn in self.drawn.items():
            values[name] = drawn(values, rng)
        return values


def _is_high(word: str) -> Drawn:
    return lambda v, r: 1.0 * ((v[word] == 1) & (v["x"] > 0.2))


def _levels(uniform: Numbers, chances: list[Numbers], levels: tuple[float, ...]) -> Numbers:
    reached, found = np.zeros_like(uniform), np.full_like(uniform, levels[0])
    for chance, level in zip(chances, levels[1:], strict=True):
        reached = reached + chance
        found = np.where(uniform >= reached, level, found)
    return found


def random_network(seed: int) -> Written:
    """Three to five variables: drawn ones first, then functions of them."""
    made = Written(random.Random(seed))
    for k in range(made.generator.randint(1, 3)):
        made.law(f"r{k}")
    if made.generator.random() < 0.3:
        made.mood("mood")
    if made.generator.random() < 0.4:
        made.table("t")
    for k in range(made.generator.randint(1, 2)):
        text, parents, drawn = made.number(2)
        made.add(f"f{k}", parents, text, drawn, (-2.0, 3.0) if made.generator.random() < 0.5 else None)
    return made
