"""Random studies with their tables and what is true of them.

In:   a seed, and how large, how generous and how random the study may be.
Out:  Case: the text, the tables (pandas), and every number a reader should find, computed here.
Not here: the laws (tests/laws/test_truth.py).

The truth is computed in pandas beside the text, piece by piece: an expression is made as Prolog text and as a column at
once. Nothing of the product is used, neither to write a study nor to evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, pairwise, product
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

__all__ = ["Case", "Distributions", "Number", "make_case"]

#: none: no distribution; linear: only expectations of distributions are seen; all: squares and conditions of them too.
Distributions = Literal["none", "linear", "all"]

_LEVELS = ("north", "south", "east", "west", "centre")
_DRUGS = ("d1", "d2", "d3")
_ENDS = ("first", "last")


@dataclass(frozen=True)
class Number:
    """One number a reader finds: under `node` and `part`, within `scale` of which errors are measured.

    `known` is False where no truth exists, as of a mean over nobody. A quantile that is drawn itself is one of the
    numbers between two rows, its `ends`; one that is read off counts is a row.
    """

    node: str
    part: str
    value: float
    scale: float
    kind: str
    known: bool = True
    ends: tuple[float, float] | None = None


def drawn_ranks(shares: list[float], rows: int) -> list[set[int]]:
    """How many rows may lie below each of several quantiles that are drawn together, where hardly any noise is left.

    By the definition alone: the numbers of rows between neighbouring quantiles are as near as whole numbers can be to
    their shares of all rows, in the sum of distances. The scale of the draw is never below 1/64 row, so sums that
    differ by less than half a row, 32 times that, may each be drawn.
    """
    gaps = np.diff([0.0, *shares, 1.0]) * rows
    near = [range(max(int(share * rows) - 2, 0), min(int(share * rows) + 3, rows) + 1) for share in shares]
    scores = {
        ranks: float(np.abs(np.diff([0, *ranks, rows]) - gaps).sum())
        for ranks in product(*near)
        if list(ranks) == sorted(ranks)
    }
    best = [ranks for ranks, score in scores.items() if score <= min(scores.values()) + 0.5]
    return [set(own) for own in zip(*best, strict=True)]


@dataclass(frozen=True)
class Case:
    """A study and its truth. `expected` is by publication and observer; `each` by the same, one value per person."""

    seed: int
    text: str
    tables: dict[str, pd.DataFrame] = field(repr=False)
    expected: dict[tuple[str, str], tuple[Number, ...]] = field(repr=False)
    each: dict[tuple[str, str], tuple[str, pd.Series, float]] = field(repr=False)
    models: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Variable:
    """A variable of every person: its text, its values (expectations where it is random), bounds of them.

    A random variable is the `power`-th power of a drawn one X, of which `tail(k, cut)` is E[Xᵏ; X > cut].
    """

    text: str
    values: pd.Series
    low: float = 0.0
    high: float = 0.0
    levels: tuple = ()
    random: bool = False
    tail: Callable[[int, float], pd.Series] | None = None
    power: int = 1
    bounded: bool = True
    #: Who has the cells behind it, where people without them are skipped.
    there: pd.Series | None = None

    @property
    def span(self) -> float:
        return max(self.high - self.low, abs(self.low), abs(self.high), 1e-9)


@dataclass(frozen=True)
class _Goal:
    """A condition: its text, for whom its certain part holds, and above which cut the drawn variable has to be."""

    text: str
    holds: pd.Series
    drawn: _Variable | None = None
    cut: float = -np.inf

    def expected(self, *factors: _Variable) -> pd.Series:
        """Of every person, E[product of the factors; the condition holds]."""
        powers = [one.power if one.tail is not None else 0 for one in factors]
        source = self.drawn or next((one for one in factors if one.tail is not None), None)
        random = source.tail(sum(powers), self.cut) if source is not None and source.tail is not None else 1.0
        found = self.holds * random
        for one in factors:
            if one.tail is None:
                found = found * one.values
        return found


@dataclass
class _Study:
    """A study while it is written."""

    chance: np.random.Generator
    people: pd.DataFrame
    lines: list[str] = field(default_factory=list)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    numbers: list[_Variable] = field(default_factory=list)
    levels: list[_Variable] = field(default_factory=list)
    treated: dict[str, pd.Series] = field(default_factory=dict)
    #: aggregate text -> (its numbers, whether it is one plain number)
    aggregates: dict[str, tuple[list[Number], bool]] = field(default_factory=dict)
    #: several aggregates published under one name -> their numbers
    families: dict[str, list[Number]] = field(default_factory=dict)

    def say(self, *lines: str) -> None:
        self.lines.extend(lines)

    def pick(self, items):
        return items[int(self.chance.integers(len(items)))]

    def number(self, low: float, high: float) -> float:
        """A number with few digits that no value is likely to equal."""
        return round(float(self.chance.uniform(low, high)), 4) + 0.00003

    # ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_number(self, name: str) -> None:
        chance, size = self.chance, len(self.people)
        low, width = self.pick([(0, 1), (-5, 10), (0, 110), (-100, 50), (1000, 8), (-0.5, 1)])
        high = low + width
        shape = self.pick(["uniform", "skewed", "whole", "outside", "constant"])
        unit = {
            "uniform": lambda: chance.random(size),
            "skewed": lambda: chance.beta(0.4, 3, size),
            "whole": lambda: chance.integers(0, 5, size) / 4,
            "outside": lambda: chance.normal(0.5, 0.6, size),
            "constant": lambda: np.full(size, 0.3),
        }[shape]()
        raw = pd.Series(low + width * unit, index=self.people.index)
        self.say(f"column(people, {name}, {name}(P)).", f"random({name}(P)) :- person(P).")
        self.say(f"range({name}(P), {low}, {high}).")
        rule = self.pick(["never", "never", "value", "skip"])
        there, stand_in = None, self.pick([low, high, low + width / 2])
        if rule != "never":
            raw = raw.mask(pd.Series(chance.random(size) < 0.15, index=raw.index))
        if rule == "skip":
            there = raw.notna()
        self.say(f"missing({name}(P), {f'{stand_in:g}' if rule == 'value' else rule}).")
        self.people[name] = raw
        placed = raw.fillna(stand_in).clip(low, high)
        self.numbers.append(_Variable(f"{name}(P)", placed, low, high, there=there))

    def add_level(self, name: str) -> None:
        chance, size = self.chance, len(self.people)
        if chance.random() < 0.3:
            listed: tuple = (0, 1, 2, 3)
        else:
            listed = _LEVELS[: int(chance.integers(2, 6))]
        weights = chance.dirichlet(np.full(len(listed), 0.5))
        weights[int(chance.integers(len(listed)))] = 0.0  # a group of nobody
        weights = weights / weights.sum() if weights.sum() > 0 else np.eye(len(listed))[0]
        raw = pd.Series(np.array(listed, dtype=object)[chance.choice(len(listed), size, p=weights)], self.people.index)
        self.say(f"column(people, {name}, {name}(P)).", f"random({name}(P)) :- person(P).")
        rule = self.pick(["never", "value", "other"]) if listed != (0, 1, 2, 3) else "never"
        seen = raw
        if rule != "never":
            seen = raw.mask(chance.random(size) < 0.1, None).mask(chance.random(size) < 0.1, "elsewhere")
        stand_in = {"never": listed[0], "value": listed[-1], "other": "other"}[rule]
        if rule != "other":
            self.say(f"missing({name}(P), {stand_in if rule == 'value' else 'never'}).")
        shown = ", ".join(map(str, listed))
        self.say(f"range({name}(P), [{shown}{' | other' if rule == 'other' else ''}]).")
        levels = (*listed, "other") if rule == "other" else listed
        self.people[name] = seen.astype("int64") if listed == (0, 1, 2, 3) else seen
        placed = seen.where(seen.isin(listed), stand_in)
        self.levels.append(_Variable(f"{name}(P)", placed, levels=levels))

    def add_visits(self) -> None:
        """A table with several rows of one person: who was given which drug, and how much of each."""
        given = self.chance.random((len(self.people), len(_DRUGS))) < self.chance.uniform(0, 0.7, len(_DRUGS))
        rows = [(self.people["id"].iloc[i], drug) for i, j in np.argwhere(given) for drug in [_DRUGS[j]]]
        table = pd.DataFrame(rows, columns=["person", "drug"]).astype({"person": self.people["id"].dtype})
        table["dose"] = self.chance.uniform(-2, 12, len(table))
        # Rows that assert nothing: without a drug, or with one the study does not list.
        idle = np.flatnonzero(self.chance.random(len(self.people)) < 0.3)
        other = pd.DataFrame({"person": self.people["id"].to_numpy()[idle]})
        other["drug"] = np.where(self.chance.random(len(idle)) < 0.5, None, "d9")
        other["dose"] = 5.0
        table = pd.concat([table, other.astype({"person": table["person"].dtype})], ignore_index=True)
        self.tables["visits"] = table.sample(frac=1.0, random_state=int(self.chance.integers(1 << 30)))
        self.say(
            "source(visits, 'visits.parquet').",
            "column(visits, person, person(P)). missing(visits, never).",
            "column(visits, drug, drug(D)).",
            "column(visits, dose, dose(P, D)).",
            "relation(visits, treated(P, D)).",
            f"rows_per_person(visits, {len(_DRUGS) + 1}).",
            "".join(f"drug({drug}). " for drug in _DRUGS),
            "random(dose(P, D)) :- person(P), drug(D).",
            "range(dose(P, D), 0, 10).",
            "missing(dose(P, D), 0).",
        )
        indexed = table.set_index(["person", "drug"])["dose"]
        for drug in _DRUGS:
            own = indexed.xs(drug, level="drug") if drug in set(table["drug"]) else pd.Series(dtype=float)
            ids = self.people["id"]
            self.treated[drug] = ids.isin(own.index)
            self.numbers.append(
                _Variable(f"dose(P, {drug})", ids.map(own).astype(float).fillna(0.0).clip(0, 10), 0.0, 10.0)
            )

    def add_stays(self) -> None:
        """A table with several rows of one person, of which one counts, or their mean."""
        counts = self.chance.integers(0, 5, len(self.people))
        owners = np.repeat(np.arange(len(self.people)), counts)
        days = (
            np.concatenate([self.chance.permutation(count) for count in counts]) if len(owners) else np.array([], int)
        )
        table = pd.DataFrame({"person": self.people["id"].to_numpy()[owners], "day": days.astype("int64")})
        table["length"] = self.chance.uniform(-5, 40, len(table))
        self.tables["stays"] = table.sample(frac=1.0, random_state=int(self.chance.integers(1 << 30)))
        rule = self.pick(["each_person(stays, mean).", *(f"rows_per_person(stays, 1, {w}(day))." for w in _ENDS)])
        self.say("source(stays, 'stays.parquet').", "column(stays, person, person(P)).", rule)
        self.say("column(stays, length, stay(P)).", "random(stay(P)) :- person(P).", "range(stay(P), 0, 30).")
        self.say("missing(stay(P), 15).")
        placed = table.assign(length=table["length"].clip(0, 30)).sort_values("day").groupby("person")["length"]
        word = next((word for word in _ENDS if word in rule), "mean")
        own = placed.agg(word)
        values = self.people["id"].map(own).astype(float).fillna(15.0)
        self.numbers.append(_Variable("stay(P)", values, 0.0, 30.0))

    # ── expressions ──────────────────────────────────────────────────────────────────────────────────────────────────

    def add_computed(self, name: str) -> None:
        made = self._expression()
        self._declare(name, made)
        there = self._there(made.text)
        self.numbers.append(_Variable(f"{name}(P)", made.values, made.low, made.high, random=made.random, there=there))

    def _declare(self, name: str, made: _Variable) -> None:
        known = [*self.numbers, *self.levels]
        parents = [one.text for one in known if one.text in made.text]
        parents = [one for one in parents if f"o{one}" not in made.text or made.text.replace(f"o{one}", "").count(one)]
        self.say(f"random({name}(P)) :- person(P).")
        self.say(f"depends({name}(P), [{', '.join(dict.fromkeys(parents))}], {made.text}).")

    def _there(self, *texts: str) -> pd.Series | None:
        """Who has every cell behind some texts; None where nobody is skipped."""
        found = [one.there for one in self.numbers if one.there is not None and any(one.text in t for t in texts)]
        return np.logical_and.reduce(found) if found else None

    def _fixed(self) -> list[_Variable]:
        return [one for one in self.numbers if not one.random]

    def _expression(self) -> _Variable:
        shapes = [self._linear, self._product, self._bent, self._chosen, self._squashed, self._square]
        return self.pick(shapes)()

    def _linear(self) -> _Variable:
        one, two = self.pick(self.numbers), self.pick(self.numbers)
        a, b, c = (round(float(x), 3) for x in self.chance.uniform(-2, 2, 3))
        ends = [a * one.low, a * one.high], [b * two.low, b * two.high]
        low, high = (c + sum(f(end) for end in ends) for f in (min, max))
        text = f"{a} * {one.text} + {b} * {two.text} - {-c}" if c < 0 else f"{a} * {one.text} + {b} * {two.text} + {c}"
        text = text.replace("* -", "* - ")
        return _Variable(text, a * one.values + b * two.values + c, low, high, random=one.random or two.random)

    def _product(self) -> _Variable:
        one, two = self.pick(self._fixed()), self.pick(self._fixed())
        by = round(one.span * two.span / 4, 3) + 0.5
        corners = [x * y / by for x in (one.low, one.high) for y in (two.low, two.high)]
        return _Variable(f"{one.text} * {two.text} / {by}", one.values * two.values / by, min(corners), max(corners))

    def _bent(self) -> _Variable:
        one = self.pick(self._fixed())
        cut = self.number(one.low, one.high)
        match self.pick(["abs", "max", "clip", "root", "log"]):
            case "abs":
                return _Variable(f"abs({one.text} - ({cut}))", (one.values - cut).abs(), 0, one.high - one.low)
            case "max":
                return _Variable(f"max({one.text}, {cut})", one.values.clip(lower=cut), cut, max(one.high, cut))
            case "clip":
                high = cut + (one.high - one.low) / 3
                return _Variable(f"clip({one.text}, {cut}, {high})", one.values.clip(cut, high), cut, high)
            case "root":
                return _Variable(f"sqrt(abs({one.text}) + 1)", np.sqrt(one.values.abs() + 1), 1, 1 + one.span**0.5)
        return _Variable(f"log(abs({one.text}) + 1)", np.log(one.values.abs() + 1), 0, np.log(one.span + 1))

    def _squashed(self) -> _Variable:
        one = self.pick(self._fixed())
        by = round(one.span, 3) + 0.1
        if self.chance.random() < 0.5:
            return _Variable(f"tanh({one.text} / {by})", np.tanh(one.values / by), -1.0, 1.0)
        return _Variable(f"exp({one.text} / {by})", np.exp(one.values / by), 0.3, np.e)

    def _square(self) -> _Variable:
        one = self.pick(self._fixed())
        by = round(one.span, 3) + 0.1
        return _Variable(f"({one.text} / {by}) ** 2", (one.values / by) ** 2, 0.0, 1.0)

    def _chosen(self) -> _Variable:
        """One expression for each level of a category."""
        if not self.levels:
            return self._linear()
        by, one = self.pick(self.levels), self.pick(self._fixed())
        rows, values = [], pd.Series(0.0, index=self.people.index)
        for place, level in enumerate(by.levels):
            factor = round(float(self.chance.uniform(-1, 1)), 2) if place > 1 else float(place)
            rows.append(f"row([{level}], {factor} * {one.text})")
            values = values.mask(by.values == level, factor * one.values)
        return _Variable(f"lookup([{by.text}], [{', '.join(rows)}])", values, -one.span, one.span)

    def add_random(self, name: str) -> None:
        """A distribution whose parameters are computed from a person's own values."""
        one = self.pick(self._fixed())
        by = round(one.span, 3) + 0.1
        inner, at = f"{one.text} / {by}", one.values / by
        match self.pick(["normal", "bernoulli", "poisson", "uniform", "exponential"]):
            case "normal":
                law, tail = f"normal({inner}, 0.5)", partial(_normal_tail, at)
            case "bernoulli":
                law, tail = f"bernoulli(clip({inner}, 0.1, 0.9))", partial(_bernoulli_tail, at.clip(0.1, 0.9))
            case "poisson":
                law, tail = f"poisson(1 + abs({inner}))", partial(_poisson_tail, 1 + at.abs())
            case "uniform":
                law, tail = f"uniform({inner}, {inner} + 2)", partial(_uniform_tail, at)
            case _:
                law, tail = f"exponential(1 + abs({inner}))", partial(_exponential_tail, 1 + at.abs())
        mean = tail(1, -np.inf)
        self._declare(name, _Variable(law, mean))
        there = self._there(law)
        bounded = law.startswith(("bernoulli", "uniform"))
        made = _Variable(f"{name}(P)", mean, -2.0, 3.0, random=True, tail=tail, there=there, bounded=bounded)
        self.numbers.append(made)

    def add_square_of_random(self, name: str) -> None:
        drawn = [one for one in self.numbers if one.tail is not None]
        if drawn:
            one = self.pick(drawn)
            assert one.tail is not None
            squares = one.tail(2, -np.inf)
            self._declare(name, _Variable(f"clip({one.text}, -16, 16) ** 2", squares))
            made = replace(one, text=f"{name}(P)", values=squares, power=2, bounded=True)
            self.numbers.append(replace(made, low=0.0, high=256.0))

    # ── conditions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def condition(self, random: bool = False) -> _Goal:
        """A goal that somebody can fulfil, if perhaps nobody here; `random` ones hold by chance."""
        while True:
            goal, possible = self._goal(random)
            if possible:
                return goal

    def _goal(self, random: bool) -> tuple[_Goal, bool]:
        """A goal, and whether it is known that somebody could fulfil it."""
        everybody = pd.Series(1.0, index=self.people.index)
        if self.chance.random() < 0.3:
            return _Goal("person(P)", everybody), True
        if random and (drawn := [one for one in self.numbers if one.tail is not None and one.power == 1]):
            one = self.pick(drawn)
            cut = self.number(0.2, 1.5)
            drawn_so = bool((one.tail(0, cut) > 0).any())
            if self.chance.random() < 0.5:
                return _Goal(f"(person(P), {one.text} > {cut})", everybody, one, cut), drawn_so
            text, holds, rare = self._literal()
            goal = _Goal(f"(person(P), {text}, {one.text} > {cut})", holds.astype(float), one, cut)
            return goal, drawn_so and bool(rare or holds.any())
        text, holds, rare = self._literal()
        match self.pick(["one", "not", "and", "or"]):
            case "not":
                text, holds = f"\\+ {text}", ~holds
            case "and":
                other, also, _ = self._literal()
                text, holds, rare = f"{text}, {other}", holds & also, False
            case "or":
                other, also, rarely = self._literal()
                text, holds, rare = f"({text} ; {other})", holds | also, rare or rarely
        return _Goal(f"(person(P), {text})", holds.astype(float)), bool(rare or holds.any())

    def _literal(self) -> tuple[str, pd.Series, bool]:
        """A test, for whom it holds, and whether somebody could pass it, and somebody fail, whoever is here."""
        kinds = ["number", *(["level"] if self.levels else []), *(["treated"] if self.treated else [])]
        match self.pick(kinds):
            case "level":
                one = self.pick(self.levels)
                level = self.pick(one.levels)
                if self.chance.random() < 0.5:
                    return f"{one.text} = {level}", one.values == level, len(one.levels) > 1
                return f"{one.text} \\= {level}", one.values != level, len(one.levels) > 1
            case "treated":
                if self.chance.random() < 0.4:
                    return *self._treated_at_all(), True
                drug = self.pick(_DRUGS)
                return f"treated(P, {drug})", self.treated[drug], True
        one = self.pick(self._fixed())
        read = one.text[:-3] in self.people.columns  # of what is computed the bounds may be narrower than those here
        nobody = self.chance.random() >= 0.85
        cut = one.high - 1e-6 * one.span if nobody else self.number(one.low, one.high)
        rare = bool(read and one.low < cut < one.high)
        if self.chance.random() < 0.5:
            return f"{one.text} > {cut}", one.values > cut, rare
        return f"{one.text} < {cut}", one.values < cut, rare

    def _treated_at_all(self) -> tuple[str, pd.Series]:
        """With any of the listed drugs; a name of its own for each, because two conditions share none."""
        drug = f"D{int(self.chance.integers(1 << 30))}"
        text = self.pick([f"treated(P, {drug})", "treated(P, _)", f"(treated(P, {drug}), drug({drug}))"])
        return text, pd.concat(self.treated, axis=1).any(axis=1)

    # ── aggregates ───────────────────────────────────────────────────────────────────────────────────────────────────

    def add_aggregate(self, name: str, random: bool = False) -> None:
        goal = self.condition(random)
        kind = self.pick(["count", "sum", "mean", "moment2", "histogram", "groups", "spread", "quantile"])
        # What is multiplied, also by the chance of a condition, needs a largest value; an expectation alone does not.
        products = kind == "moment2" or goal.drawn is not None
        one = self.pick([one for one in self.numbers if one.bounded or not products])
        if kind == "quantile" and goal.drawn is None:
            self._add_quantiles(name, goal)
        elif kind in ("count", "quantile"):
            kind = "count"
            self.say(f"count({name}, {goal.text}).")
            weight = self._counted(goal.expected(), goal.text)
            self._keep(name, [Number(name, "", float(weight.sum()), float(max(weight.sum(), 1.0)), kind)], True)
        elif kind in ("sum", "mean"):
            self._add_total(name, kind, one, goal)
        elif kind == "moment2":
            self._add_products(name, one, goal, random)
        elif kind == "spread":
            self._add_spread(name, goal)
        elif kind == "groups" and self.levels:
            self._add_groups(name, one, goal)
        elif self.levels and self.chance.random() < 0.5:
            self._add_levels(name, goal)
        else:
            self._add_bins(name, goal, random)

    def add_treated(self, name: str) -> None:
        """How many were given anything that is listed."""
        text, holds = self._treated_at_all()
        self.say(f"count({name}, (person(P), {text})).")
        self._keep(name, [Number(name, "", float(holds.sum()), float(max(holds.sum(), 1)), "count")], True)

    def _counted(self, weight: pd.Series, *texts: str) -> pd.Series:
        """The weights without those who lack a cell that is skipped."""
        there = self._there(*texts)
        return weight if there is None else weight.where(there, 0.0)

    def _add_total(self, name: str, kind: str, one: _Variable, goal: _Goal) -> None:
        self.say(f"{kind}({name}, {one.text}, {goal.text}).")
        weight = self._counted(goal.expected(), goal.text, one.text)
        total = float(self._counted(goal.expected(one), goal.text, one.text).sum())
        value = total if kind == "sum" else (total / weight.sum() if weight.sum() > 0 else np.nan)
        known = kind == "sum" or bool(weight.sum() >= 1)
        scale = max(abs(value), one.span) if known else 1.0
        self._keep(name, [Number(name, "", float(value), scale, kind, known)], known)

    def _add_quantiles(self, name: str, goal: _Goal) -> None:
        """Shares that no number of rows divides, so that there is one quantile; it is told to within a bin.

        A bin is taken as a share of ten spans: the declared range may be wider. Drawn, it is any number from the last
        row that may lie below it to the first that may not.
        """
        one = self.pick([v for v in self._fixed() if v.bounded])
        shares = sorted({round(float(share), 2) + 0.00137 for share in self.chance.uniform(0.05, 0.95, 3)})
        if self.chance.random() < 0.3:
            shares = [0.5]
            self.say(f"median({name}, {one.text}, {goal.text}).")
        else:
            self.say(f"quantile({name}, {one.text}, {goal.text}, [{', '.join(f'{share:.5f}' for share in shares)}]).")
        rows = np.sort(one.values[self._counted(goal.expected(), goal.text, one.text) > 0].to_numpy(dtype=float))
        numbers, padded = [], np.concatenate([[-np.inf], rows, [np.inf]])
        ranks = drawn_ranks([round(share, 5) for share in shares], len(rows))
        for share, below in zip(shares, ranks, strict=True):
            place = max(0, int(np.ceil(round(share, 5) * len(rows) - 1e-9)) - 1)
            rank = round(share, 5) * len(rows)  # where it is nearly whole, both of its neighbours are quantiles
            known = len(rows) > 0 and (abs(rank - round(rank)) > 0.1 if share != 0.5 else len(rows) % 2 == 1)
            value = float(rows[place]) if known else np.nan
            ends = float(padded[min(below)]), float(padded[max(below) + 1])
            part = "" if len(shares) == 1 else f"{round(share, 5):g}"
            numbers.append(Number(name, part, value, 10 * one.span, "quantile", known, ends))
        self._keep(name, numbers, False)

    def _add_products(self, name: str, one: _Variable, goal: _Goal, random: bool) -> None:
        two = self.pick(self._fixed())
        single = one.text == two.text or (one.random and not (random and one.tail is not None and one.power == 1))
        pair = [two] if single else [one, two]
        self.say(f"moment2({name}, [{', '.join(part.text for part in pair)}], {goal.text}).")
        largest = max(part.span**2 for part in pair)
        numbers = []
        for x in pair:
            for y in pair:
                value = float(self._counted(goal.expected(x, y), goal.text, *(part.text for part in pair)).sum())
                numbers.append(Number(name, f"{x.text} * {y.text}", value, max(abs(value), largest), "moment2"))
        self._keep(name, numbers, False)

    def _add_groups(self, name: str, one: _Variable, goal: _Goal) -> None:
        """A number for each group, or counts of the combinations of two variables."""
        by, kind = self.pick(self.levels), self.pick(["count", "sum", "mean", "histogram"])
        names = [goal.text, by.text, *([one.text] if kind in ("sum", "mean") else [])]
        weight = self._counted(goal.expected(), *names)
        if kind == "histogram":
            self._add_combinations(name, by, goal)
            return
        value = f"{one.text}, " if kind in ("sum", "mean") else ""
        self.say(f"{kind}({name}, {value}{goal.text}, by([{by.text}])).")
        added = weight if kind == "count" else self._counted(goal.expected(one), *names)
        numbers = []
        for level in by.levels:
            here = by.values == level
            count, total = float(weight[here].sum()), float(added[here].sum())
            known = kind != "mean" or count >= 1
            number = total / count if kind == "mean" and count > 0 else total
            scale = max(abs(number), one.span if kind != "count" else 1.0)
            numbers.append(Number(name, f"{by.text} = {level}", number if known else np.nan, scale, kind, known))
        self._keep(name, numbers, False)

    def _add_combinations(self, name: str, by: _Variable, goal: _Goal) -> None:
        one = self.pick([v for v in self._fixed() if v.values.max() - v.values.min() > 0.01] or self._fixed()[:1])
        low, high = one.values.min(), one.values.max()
        edge = self.number(low, high) if low < high else one.high  # one beyond the range would make no bin
        cut = [edge] if low < edge < high else []
        self.say(f"histogram({name}, [{by.text}, {one.text}: [{', '.join(map(str, cut))}]], {goal.text}).")
        weight = self._counted(goal.expected(), goal.text, by.text, one.text)
        bins = np.digitize(one.values, cut)
        counts = [
            float(weight[(by.values == level) & (bins == place)].sum())
            for level in by.levels
            for place in range(len(cut) + 1)
        ]
        scale = float(max(weight.sum(), 1.0))
        self._keep(name, [Number(name, f"#{i}", c, scale, "histogram") for i, c in enumerate(counts)], False)

    def _add_spread(self, name: str, goal: _Goal) -> None:
        """A variance with its root, covariances, or a correlation, of numbers that are known of everybody."""
        one, two = self.pick(self._fixed()), self.pick(self._fixed())
        kind = self.pick(["variance", "covariance", "correlation"]) if one.text != two.text else "variance"
        pair = [one] if kind == "variance" else [one, two]
        texts = ", ".join(part.text for part in pair)
        self.say(f"{kind}({name}, {texts if kind == 'variance' else f'[{texts}]'}, {goal.text}).")
        weight = self._counted(goal.expected(), goal.text, *(part.text for part in pair))
        count = float(weight.sum())
        known = count >= 1
        means = [float((weight * part.values).sum()) / max(count, 1.0) for part in pair]
        matrix = [
            [
                max(
                    float((weight * (x.values - a) * (y.values - b)).sum()) / max(count, 1.0),
                    0.0 if x is y else -np.inf,
                )
                for y, b in zip(pair, means, strict=True)
            ]
            for x, a in zip(pair, means, strict=True)
        ]
        if kind == "variance":
            spread, scale = matrix[0][0], one.span
            found = [
                Number(name, "variance", spread, scale**2, kind, known),
                Number(name, "standard deviation", spread**0.5, scale, kind, known and spread > 1e-4 * scale**2),
            ]
        elif kind == "covariance":
            found = [
                Number(name, f"{x.text} with {y.text}", matrix[i][j], max(x.span, y.span) ** 2, kind, known)
                for i, x in enumerate(pair)
                for j, y in enumerate(pair)
            ]
        else:
            scale = (matrix[0][0] * matrix[1][1]) ** 0.5
            known = known and all(matrix[i][i] > 1e-4 * part.span**2 for i, part in enumerate(pair))
            found = [Number(name, "", matrix[0][1] / scale if known else 0.0, 1.0, kind, known)]
        self._keep(name, found, False)

    def _add_levels(self, name: str, goal: _Goal) -> None:
        by = self.pick(self.levels)
        self.say(f"histogram({name}, {by.text}, {goal.text}).")
        weight = self._counted(goal.expected(), goal.text)
        scale = float(max(weight.sum(), 1.0))
        counts = {level: float(weight[by.values == level].sum()) for level in by.levels}
        found = [Number(name, f"{by.text} = {level}", count, scale, "histogram") for level, count in counts.items()]
        self._keep(name, found, False)

    def _add_bins(self, name: str, goal: _Goal, random: bool) -> None:
        drawn = [one for one in self.numbers if one.tail is not None and one.power == 1]
        if random and drawn and self.chance.random() < 0.5:
            self._add_random_bins(name, drawn[0], goal)
            return
        # Edges where people are: one beyond the range would make no bin.
        one = self.pick([v for v in self._fixed() if v.values.max() - v.values.min() > 0.01] or self._fixed()[:1])
        ends = (one.values.min(), one.values.max()) if one.values.nunique() > 1 else (one.low, one.high)
        edges = sorted({self.number(*ends) for _ in range(int(self.chance.integers(1, 4)))})
        edges = [edge for edge in edges if ends[0] < edge < ends[1]]
        self.say(f"histogram({name}, {one.text}, {goal.text}, [{', '.join(map(str, edges))}]).")
        weight = self._counted(goal.expected(), goal.text, one.text)
        scale = float(max(weight.sum(), 1.0))
        bins = np.digitize(one.values, edges)
        counts = [float(weight[bins == place].sum()) for place in range(len(edges) + 1)]
        # The label of a bin is for people: the place in the list says which it is.
        self._keep(name, [Number(name, f"#{i}", c, scale, "histogram") for i, c in enumerate(counts)], False)

    def _add_random_bins(self, name: str, one: _Variable, goal: _Goal) -> None:
        """Everybody is in each bin with a probability."""
        assert one.tail is not None
        edges = sorted({self.number(0.2, 0.9) for _ in range(int(self.chance.integers(1, 4)))})
        # An edge beyond the range would make no bin: somebody is on both sides of each.
        everybody = one.tail(0, -np.inf)
        edges = [edge for edge in edges if ((above := one.tail(0, edge)) < everybody).any() and (above > 0).any()]
        edges = edges or [float(one.values.mean())]
        self.say(f"histogram({name}, {one.text}, {goal.text}, [{', '.join(map(str, edges))}]).")
        reached = [one.tail(0, max(edge, goal.cut)) * goal.holds for edge in (-np.inf, *edges)]
        reached = [*(float(self._counted(share, goal.text, one.text).sum()) for share in reached), 0.0]
        counts = [low - high for low, high in pairwise(reached)]
        scale = max(reached[0], 1.0)
        self._keep(name, [Number(name, f"#{i}", c, scale, "histogram") for i, c in enumerate(counts)], False)

    def add_tables(self, name: str) -> None:
        """All tables of some variables, and histograms of the same rows under one name."""
        chance, goal = self.chance, self.condition()
        able = [*self.levels, *(one for one in self._fixed() if one.values.max() - one.values.min() > 0.01)]
        picked = [able[place] for place in chance.permutation(len(able))[: int(chance.integers(2, 5))]]
        axes = [self._axis(one) for one in picked]
        weight = self._counted(goal.expected(), goal.text, *(one.text for one in picked))
        ways = int(chance.integers(1, len(axes) + 1)) if axes else 1
        if len(axes) < 2:
            return
        listed = ", ".join(text for text, _, _ in axes)
        self.say(f"marginals({name}, [{listed}], {ways}, {goal.text}).")
        tables = [self._table(name, table, weight) for table in combinations(axes, ways)]
        self._keep(name, [number for table in tables for number in table], False)
        family = []
        for place, table in enumerate([axes[:1], axes[:2], axes[1:][::-1]]):
            own = f"{name}_{place}"
            # Who has no cell of a variable that is not asked about is counted here all the same.
            counted = self._counted(goal.expected(), goal.text, *(text.split(":")[0] for text, _, _ in table))
            self.say(f"histogram({own}, [{', '.join(text for text, _, _ in table)}], {goal.text}).")
            family += self._table(own, table, counted)
        self.families[f"{name}_family"] = family

    def _axis(self, one: _Variable) -> tuple[str, pd.Series, list[str]]:
        """How a variable is written, the place of everybody's cell, what the cells are called."""
        if one.levels:
            place = pd.Series([one.levels.index(value) for value in one.values], one.values.index)
            return one.text, place, [f"{one.text} = {level}" for level in one.levels]
        ends = one.values.min(), one.values.max()
        edges = sorted({self.number(*ends) for _ in range(int(self.chance.integers(1, 4)))})
        edges = [edge for edge in edges if ends[0] < edge < ends[1]] or [(ends[0] + ends[1]) / 2]
        place = pd.Series(np.digitize(one.values, edges), one.values.index)
        return f"{one.text}: [{', '.join(map(str, edges))}]", place, ["#"] * (len(edges) + 1)

    def _table(self, name: str, axes, weight: pd.Series) -> list[Number]:
        scale, found = float(max(weight.sum(), 1.0)), []
        for cell in product(*(range(len(labels)) for _, _, labels in axes)):
            inside = np.logical_and.reduce([place == at for (_, place, _), at in zip(axes, cell, strict=True)])
            part = ", ".join(labels[at] for (_, _, labels), at in zip(axes, cell, strict=True))
            label = f"#{part}" if "#" in part else part
            found.append(Number(name, label, float(weight[inside].sum()), scale, "histogram"))
        return found

    def _keep(self, name: str, numbers: list[Number], plain: bool) -> None:
        alone = [replace(number, part="") for number in numbers] if len(numbers) == 1 else numbers
        self.aggregates[name] = (alone, plain)

    def add_shared(self, name: str) -> None:
        """A number of nobody, computed from means and counts."""
        plain = [found[0] for found, is_plain in self.aggregates.values() if is_plain and found[0].kind != "shared"]
        if not plain:
            return
        one, two = self.pick(plain), self.pick(plain)
        a, b = (round(float(x), 2) for x in self.chance.uniform(0.2, 2, 2))
        self.say(f"random({name}).")
        parents = ", ".join(dict.fromkeys([one.node, two.node]))
        self.say(f"depends({name}, [{parents}], {a} * {one.node} - {b} * {two.node} + 1).")
        value = a * one.value - b * two.value + 1
        scale = max(abs(value), a * one.scale + b * two.scale)
        self._keep(name, [Number(name, "", value, scale, "shared")], False)


# ── E[Xᵏ; X > cut] for k = 0, 1, 2 ───────────────────────────────────────────────────────────────────────────────────


def _normal_tail(mean: pd.Series, power: int, cut: float) -> pd.Series:
    spread, low = 0.5, max(cut, -1e3)
    above, density = stats.norm.sf(low, mean, spread), spread**2 * stats.norm.pdf(low, mean, spread)
    found = (above, mean * above + density, (mean**2 + spread**2) * above + (mean + low) * density)[power]
    return pd.Series(found, mean.index)


def _bernoulli_tail(share: pd.Series, power: int, cut: float) -> pd.Series:
    ones = share if cut < 1 else 0 * share
    return ones + (1 - share) * (power == 0 and cut < 0)


def _poisson_tail(rate: pd.Series, power: int, cut: float) -> pd.Series:
    return sum((k**power * pd.Series(stats.poisson.pmf(k, rate), rate.index) for k in range(60) if k > cut), 0 * rate)


def _uniform_tail(start: pd.Series, power: int, cut: float) -> pd.Series:
    low = start.clip(lower=cut).clip(upper=start + 2)
    return ((start + 2) ** (power + 1) - low ** (power + 1)) / (power + 1) / 2


def _exponential_tail(rate: pd.Series, power: int, cut: float) -> pd.Series:
    low = max(cut, 0.0)
    factor = (1.0, low + 1 / rate, low**2 + 2 * low / rate + 2 / rate**2)[power]
    return np.exp(-rate * low) * factor


# ── promises ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _metrics(chance: np.random.Generator, observers: int, generous: bool) -> list[str]:
    """One promise for each observer; pure ones and curves do not meet in one dataset."""
    family = ["pure", "approximate", "curves", "mixed"][int(chance.integers(4))]
    found = []
    for place in range(observers):
        epsilon = 1e6 if generous else round(float(np.exp(chance.uniform(np.log(0.1), np.log(8)))), 3)
        choices = {
            "pure": [f"dp({epsilon})"],
            "approximate": [f"dp({epsilon}, 0.000001)"],
            # A Gaussian μ is about √(2ε) and √(2ρ): at ε = 10⁶ that is noise of a thousandth, too much for the truth.
            "curves": [
                f"gdp({epsilon})",
                f"zcdp({epsilon**2 / 2 if generous else epsilon})",
                *([] if generous else [f"dp({epsilon}, 0.00001)"]),
            ],
            "mixed": [f"dp({epsilon})", f"dp({epsilon}, 0.000001)"],
        }[family]
        found.append(choices[(place + int(chance.integers(len(choices)))) % len(choices)])
    return found


def make_case(
    seed: int,
    *,
    generous: bool = False,
    most_people: int = 1500,
    distributions: Distributions = "linear",
    models: bool = False,
) -> Case:
    """The random study of a seed. `generous` promises ε = 10⁶, at which what is published is the truth.

    `models` adds a table or a classifier now and then, of which only the run is a law.
    """
    chance = np.random.default_rng(seed)
    size = int(np.exp(chance.uniform(np.log(30), np.log(most_people))))
    people = pd.DataFrame({"id": chance.permutation(size) + 1000})
    if chance.random() < 0.3:
        people["id"] = "p" + people["id"].astype(str)
    study = _Study(chance, people)
    study.say("source(people, 'people.parquet').", "column(people, id, person(P)).")
    study.say("missing(people, never).", "rows_per_person(people, 1).")
    study.say("dataset(everybody, domain(P, person(P))).")
    relation = ["replace_one", "add_remove"][int(chance.random() < 0.4)]
    study.say(f"adjacency(everybody, {relation}).")
    for place in range(int(chance.integers(1, 4))):
        study.add_number(f"x{place}")
    for place in range(int(chance.integers(0, 3))):
        study.add_level(f"c{place}")
    if chance.random() < 0.4:
        study.add_visits()
    if chance.random() < 0.3:
        study.add_stays()
    for place in range(int(chance.integers(0, 4))):
        study.add_computed(f"y{place}")
    random = distributions == "all" and chance.random() < 0.5
    if distributions != "none" and chance.random() < 0.5:
        study.add_random("r0")
        if random:
            study.add_square_of_random("q0")
    for place in range(int(chance.integers(1, 6))):
        study.add_aggregate(f"s{place}", random)
    if study.treated and chance.random() < 0.5:
        study.add_treated("u0")
    if chance.random() < 0.5:
        study.add_shared("t0")
    if chance.random() < 0.4:
        study.add_tables("w0")
    return _published(study, seed, relation, generous, models)


def _published(study: _Study, seed: int, relation: str, generous: bool, models: bool) -> Case:
    chance = study.chance
    observers = ["public", "doctor", "nurse"][: int(chance.integers(1, 4))]
    expected: dict[tuple[str, str], tuple[Number, ...]] = {}
    each: dict[tuple[str, str], tuple[str, pd.Series, float]] = {}
    made: list[tuple[str, str]] = []
    wanted = list(study.aggregates)
    for observer, metric in zip(observers, _metrics(chance, len(observers), generous), strict=True):
        study.say(f"privacy_requirement(openness({observer}), everybody, {metric}).")
        chosen = [name for name in wanted if chance.random() < 0.7] or wanted[:1]
        for name in chosen:
            study.say(f"publish(p_{name}, {name}, openness({observer})).")
            expected[f"p_{name}", observer] = tuple(study.aggregates[name][0])
        for name, numbers in study.families.items():
            for node in dict.fromkeys(number.node for number in numbers):
                study.say(f"publish(p_{name}, {node}, openness({observer})).")
            expected[f"p_{name}", observer] = tuple(numbers)
        if relation == "replace_one" and chance.random() < 0.25:
            own = [one for one in study._fixed() if one.there is None]
            one = study.pick(own or [study.numbers[0]])
        else:
            one = None
        if one is not None and one.there is None:
            study.say(f"publish(each, {one.text}, openness({observer})) :- person(P).")
            each["each", observer] = (one.text, one.values.set_axis(study.people["id"]), one.span)
        if models and relation == "replace_one" and "gdp" not in metric and "zcdp" not in metric:
            made += _model(study, observer)
    if len(observers) > 1 and chance.random() < 0.3:
        study.say(f"collude([{', '.join(observers)}]).")
    if chance.random() < 0.3:
        study.say(f"weight({next(iter(expected))[0]}, {study.pick([0.2, 3, 20])}).")
    tables = {"people": study.people, **study.tables}
    return Case(seed, "\n".join(study.lines) + "\n", tables, expected, each, tuple(made))


def _model(study: _Study, observer: str) -> list[tuple[str, str]]:
    """A table or a classifier over columns of the people, now and then."""
    columns = [one.text for one in study.numbers if one.text.startswith("x") and one.there is None]
    binary = [one.text for one in study.levels if len(one.levels) == 2]
    match study.pick(["none", "table", "classifier"]) if columns else "none":
        case "table":
            study.say(f"publish(open, table([{', '.join(columns)}]), openness({observer})).")
            return [("open", observer)]
        case "classifier" if binary:
            study.say(f"publish(triage, classifier({binary[0]}, [{', '.join(columns)}]), openness({observer})).")
            return [("triage", observer)]
    return []
