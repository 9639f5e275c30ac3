"""Which conditions some row can fulfil at once, found a second way: by deciding one test after the other.

In:   conditions by name, the individuals' nodes.
Out:  every set of them that hold at once while the others do not.
Not here: the plan's own way, by cells (network/apart.py), of which nothing is used here.
Proof: docs/proofs/disjoint_groups.md

A variable is known to lie in an interval, or to be one of some values; deciding a test narrows that down or shows that
it cannot be. A test of anything else may hold or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.core.domain import Categories
from sfumato.network.condition import Comparison, Condition, Every, LevelIs, Not, Some
from sfumato.network.expression import Constant, Reference
from sfumato.network.network import Node

__all__ = ["reached"]


@dataclass(frozen=True)
class _Within:
    """A number between two ends, each of which may be left out, and not one of some others; or `none` at all, of which
    no comparison holds."""

    low: float = -math.inf
    high: float = math.inf
    from_low: bool = False
    to_high: bool = False
    without: frozenset[float] = frozenset()
    none: bool = False

    @property
    def possible(self) -> bool:
        return self.none or self._some

    @property
    def _some(self) -> bool:
        if self.low == self.high:
            return self.from_low and self.to_high and self.low not in self.without
        return self.low < self.high

    def above(self, value: float, itself: bool) -> _Within:
        if value > self.low:
            return replace(self, low=value, from_low=itself)
        return replace(self, from_low=self.from_low and itself) if value == self.low else self

    def below(self, value: float, itself: bool) -> _Within:
        if value < self.high:
            return replace(self, high=value, to_high=itself)
        return replace(self, to_high=self.to_high and itself) if value == self.high else self

    def where(self, word: str, value: float, holds: bool) -> _Within:
        """What is left when the test has this result."""
        if holds and self.none:
            return replace(self, none=False).where(word, value, True)
        if not holds:
            word = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}[word]
        match word:
            case "<" | "<=":
                return self.below(value, word == "<=")
            case ">" | ">=":
                return self.above(value, word == ">=")
            case "=":
                return self.above(value, True).below(value, True)
        return replace(self, without=self.without | {value})


@dataclass(frozen=True)
class _Known:
    """What has been decided: of numbers, of values in lists (those left), of everything else."""

    numbers: Mapping[str, _Within] = field(default_factory=dict)
    values: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    others: Mapping[Condition, bool] = field(default_factory=dict)


def reached(conditions: Mapping[str, Condition], people: Mapping[str, Node]) -> Iterator[frozenset[str]]:
    """Every set of conditions that hold together, some of them more than once."""
    plain = {name: _plain(condition, people) for name, condition in conditions.items()}
    waiting: list[tuple[_Known, frozenset[str], tuple[str, ...]]] = [(_start(plain, people), frozenset(), tuple(plain))]
    while waiting:
        known, held, left = waiting.pop()
        open_ones, found = [], set(held)
        for name in left:
            truth = _truth(plain[name], known)
            if truth is None:
                open_ones.append(name)
            elif truth:
                found.add(name)
        if not open_ones:
            yield frozenset(found)
            continue
        test = _undecided(plain[open_ones[0]], known)
        for holds in (True, False):
            further = _decided(test, holds, known)
            if further is not None:
                waiting.append((further, frozenset(found), tuple(open_ones)))


def _plain(condition: Condition, people: Mapping[str, Node]) -> Condition:
    """Levels of a number as comparisons with it."""
    match condition:
        case LevelIs(variable=name, levels=levels) if not _listed(people[name]) and not _has_words(levels):
            return Some(tuple(Comparison("=", Reference(name), Constant(float(level))) for level in levels))
        case Not(part=part):
            return Not(_plain(part, people))
        case Every(parts=parts):
            return Every(tuple(_plain(part, people) for part in parts))
        case Some(parts=parts):
            return Some(tuple(_plain(part, people) for part in parts))
    return condition


def _listed(node: Node) -> bool:
    return isinstance(node.domain, Categories)


def _has_words(levels: Iterable[Any]) -> bool:
    return any(isinstance(level, str) for level in levels)


def _start(conditions: Mapping[str, Condition], people: Mapping[str, Node]) -> _Known:
    """Lists of values with what stands for an absent one; of texts those that are named, and another one."""
    values: dict[str, frozenset[Any]] = {}
    numbers: dict[str, _Within] = {}
    named: dict[str, set[Any]] = {}
    for condition in conditions.values():
        for variable, levels in _named(condition):
            named.setdefault(variable, set()).update(levels)
    for name in frozenset().union(*(condition.references() for condition in conditions.values())):
        node = people[name]
        if isinstance(node.domain, Categories):
            absent = () if node.missing is None else (node.missing,)
            values[name] = frozenset((*node.domain.values, *absent, *named.get(name, ())))
        elif name in named:
            values[name] = frozenset((*named[name], None))
        else:
            numbers[name] = _Within(none=node.source is None)
    return _Known(numbers, values)


def _named(condition: Condition) -> Iterator[tuple[str, tuple[Any, ...]]]:
    match condition:
        case LevelIs(variable=name, levels=levels):
            yield name, levels
        case Not(part=part):
            yield from _named(part)
        case Every(parts=parts) | Some(parts=parts):
            for part in parts:
                yield from _named(part)


def _number_test(condition: Condition) -> tuple[str, str, float] | None:
    """(variable, operator, number) of a comparison with a number, the variable on the left."""
    match condition:
        case Comparison(operator=word, left=Reference(variable=name), right=Constant(value=value)):
            return name, word, float(value)
        case Comparison(operator=word, left=Constant(value=value), right=Reference(variable=name)):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
            return name, turned.get(word, word), float(value)
    return None


def _truth(condition: Condition, known: _Known) -> bool | None:
    """Whether it holds, where that is decided."""
    match condition:
        case Not(part=part):
            truth = _truth(part, known)
            return None if truth is None else not truth
        case Every(parts=parts) | Some(parts=parts):
            return _truth_of_all([_truth(part, known) for part in parts], ends=isinstance(condition, Some))
    if condition in known.others:
        return known.others[condition]
    possible = [holds for holds in (True, False) if _decided(condition, holds, known) is not None]
    return possible[0] if len(possible) == 1 and _is_cut(condition, known) else None


def _is_cut(condition: Condition, known: _Known) -> bool:
    test = _number_test(condition)
    name = test[0] if test is not None else condition.variable if isinstance(condition, LevelIs) else ""
    return name in known.values or (test is not None and name in known.numbers)


def _undecided(condition: Condition, known: _Known) -> Condition:
    """A first test of the condition that is not decided."""
    match condition:
        case Not(part=part):
            return _undecided(part, known)
        case Every(parts=parts) | Some(parts=parts):
            return next(_undecided(part, known) for part in parts if _truth(part, known) is None)
    return condition


def _passes(value: Any, word: str, number: float) -> bool:
    return _Within(float(value), float(value), True, True).where(word, number, True).possible


def _truth_of_all(truths: list[bool | None], *, ends: bool) -> bool | None:
    """One part that is `ends` decides for all; without one every part must be known."""
    if ends in truths:
        return ends
    return None if None in truths else not ends


def _decided(condition: Condition, holds: bool, known: _Known) -> _Known | None:
    """What is known once a test has this result; None where it cannot have it."""
    name, word, number = _number_test(condition) or ("", "", 0.0)
    if isinstance(condition, LevelIs) and condition.variable in known.values:
        left, levels = known.values[condition.variable], frozenset(condition.levels)
        return _narrowed(known, condition.variable, left & levels if holds else left - levels)
    if name in known.values:
        return _narrowed(known, name, {one for one in known.values[name] if _passes(one, word, number) == holds})
    if name in known.numbers:
        within = known.numbers[name].where(word, number, holds)
        return replace(known, numbers={**known.numbers, name: within}) if within.possible else None
    return replace(known, others={**known.others, condition: holds})


def _narrowed(known: _Known, name: str, left: Set[Any]) -> _Known | None:
    return replace(known, values={**known.values, name: frozenset(left)}) if left else None
