"""Which aggregates one row can count in at once: groups that a study writes as conditions of their own.

In:   aggregates of one dataset, the individuals' nodes.
Out:  the sets of aggregates that some row may count in together; families of which some exclude each other.
Not here: what that saves (plan/together.py), the second derivation (plan/derive.py, by plan/reached.py).
Proof: docs/proofs/disjoint_groups.md

Every tested variable's values are cut at the constants of all conditions; within a cell of the product no condition
changes. What cannot be cut (a relation, an absent cell, a comparison of two variables) may hold or not in every cell:
that only adds sets. Where there are too many cells every aggregate may meet every other one.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Categories
from sfumato.core.events.together import MOST_TOGETHER
from sfumato.network.aggregate import AggregateNode
from sfumato.network.condition import Comparison, Condition, Every, LevelIs, Not, Some
from sfumato.network.expression import Constant, Level, Reference
from sfumato.network.network import Group, Node, first_of_each

__all__ = ["COMPARE", "MOST_CELLS", "Exclusive", "deciders", "families_apart", "marked_apart"]

#: Beyond so many cells all conditions are taken to overlap.
MOST_CELLS = 100_000

Sets = tuple[frozenset[str], ...]
Flags = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Exclusive:
    """Aggregates of which some exclude each other, and the sets of them that one row may count in."""

    names: tuple[str, ...]
    sets: Sets


def families_apart(aggregates: Iterable[AggregateNode], groups: Sequence[Group]) -> tuple[Exclusive, ...]:
    """The families among these aggregates; what excludes no other one is in none."""
    people = first_of_each(groups)
    drawn = {node.name for group in groups for node in group.nodes if node.is_random}
    alike: dict[tuple[Any, ...], list[AggregateNode]] = {}
    for node in aggregates:
        if _can_exclude(node, people.keys() - drawn):
            alike.setdefault((node.dataset, node.row_table, node.question.rows), []).append(node)
    found: list[Exclusive] = []
    for own in alike.values():
        found += _families(own, people)
    return tuple(found)


def marked_apart(aggregates: tuple[AggregateNode, ...], groups: Sequence[Group]) -> tuple[AggregateNode, ...]:
    """The same aggregates; means of a family draw their counts as those of groups do."""
    apart = {name for family in families_apart(aggregates, groups) for name in family.names}
    return tuple(
        dataclasses.replace(node, question=node.question.written_apart()) if node.name in apart else node
        for node in aggregates
    )


def _can_exclude(node: AggregateNode, known: Set[str]) -> bool:
    """Whether its own rows' values alone decide who counts, and are not drawn."""
    question = node.question
    possible = question.bounded and not question.expected and not question.only_drawn
    return possible and not node.condition.trivial and node.condition.references() <= known


def _families(nodes: list[AggregateNode], people: Mapping[str, Node]) -> list[Exclusive]:
    """Of all together; where that is too much, of those that test the same variables."""
    sets = _sets(nodes, people) if len(nodes) > 1 else None
    if sets is not None:
        return _connected([node.name for node in nodes], sets)
    parts: dict[frozenset[str], list[AggregateNode]] = {}
    for node in nodes:
        parts.setdefault(node.condition.references(), []).append(node)
    if len(parts) == 1:
        return []
    return [family for own in parts.values() if len(own) > 1 for family in _families(own, people)]


def _connected(names: list[str], sets: Sets) -> list[Exclusive]:
    """Aggregates linked by excluding each other; of each link the sets."""
    found = []
    for own in _links(names, sets):
        inside = tuple(sorted({one & own for one in sets} - {frozenset()}, key=sorted))
        everywhere = frozenset().union(*inside)
        if len(own) > 1 and max(len(own), len(inside)) <= MOST_TOGETHER and everywhere == own:
            found.append(Exclusive(tuple(name for name in names if name in own), inside))
    return found


def _links(names: list[str], sets: Sets) -> Iterator[frozenset[str]]:
    """The aggregates, divided so that no two of different parts exclude each other."""
    met = {name: frozenset().union(*(one for one in sets if name in one)) for name in names}
    left = dict.fromkeys(names)
    while left:
        link, waiting = [], [next(iter(left))]
        while waiting:
            name = waiting.pop()
            if name in left:
                del left[name]
                link.append(name)
                waiting += [other for other in left if other not in met[name]]
        yield frozenset(link)


def deciders(condition: Condition) -> dict[str | Condition, set[Level]]:
    """What decides a condition: variables with the values they are compared with, and parts that may hold or not."""
    match condition:
        case Comparison(left=Reference(variable=name), right=Constant(value=value)):
            return {name: {value}}
        case Comparison(left=Constant(value=value), right=Reference(variable=name)):
            return {name: {value}}
        case LevelIs(variable=name, levels=levels):
            return {name: set(levels)}
        case Not(part=part):
            return deciders(part)
        case Every(parts=parts) | Some(parts=parts):
            found: dict[str | Condition, set[Level]] = {}
            for part in parts:
                for key, values in deciders(part).items():
                    found.setdefault(key, set()).update(values)
            return found
    return {condition: set()}


def _keys(nodes: Sequence[AggregateNode]) -> dict[str | Condition, set[Level]]:
    """What decides who counts in the aggregates, with the values that are asked for."""
    keys: dict[str | Condition, set[Level]] = {}
    for node in nodes:
        for key, values in deciders(node.condition).items():
            keys.setdefault(key, set()).update(values)
    return keys


def _sets(nodes: Sequence[AggregateNode], people: Mapping[str, Node]) -> Sets | None:
    """The aggregates that count in each cell of the product; None where there are too many cells."""
    choices = {key: _choices(key, values, people) for key, values in _keys(nodes).items()}
    size = math.prod(map(len, choices.values()))
    if size > MOST_CELLS:
        return None
    places = np.meshgrid(*(np.arange(len(one)) for one in choices.values()), indexing="ij")
    cells = _Cells(choices, {key: place.ravel() for key, place in zip(choices, places, strict=True)})
    held = np.array([np.broadcast_to(cells.holds(node.condition), size) for node in nodes])
    kinds = sorted({kind.tobytes() for kind in held.T})  # what np.unique finds, which takes longer to load
    return tuple(frozenset(node.name for node, one in zip(nodes, kind, strict=True) if one) for kind in kinds)


def _choices(key: str | Condition, values: set[Level], people: Mapping[str, Node]) -> list[Any]:
    """One value for each cell of a variable; for what cannot be cut, that it holds and that it does not."""
    if not isinstance(key, str):
        return [True, False]
    node = people[key]
    if isinstance(node.domain, Categories):
        return list(dict.fromkeys((*node.domain.values, *(() if node.missing is None else (node.missing,)), *values)))
    if any(isinstance(one, str) for one in values):
        return [*values, None]
    cuts = sorted(float(one) for one in values)
    between = [(a + b) / 2 for a, b in pairwise(cuts)]
    # A cell of a table has a number or the value that stands for none; what is computed may be none.
    return [-math.inf, *cuts, *between, math.inf, *(() if node.source is not None else (math.nan,))]


@dataclasses.dataclass(frozen=True)
class _Cells:
    """A product of values: for every variable its values, and which of them each cell has."""

    choices: Mapping[str | Condition, list[Any]]
    places: Mapping[str | Condition, NDArray[Any]]

    def holds(self, condition: Condition) -> Flags:
        match condition:
            case Comparison(operator=word, left=Reference(variable=name), right=Constant(value=value)):
                return self._each(name, lambda one: COMPARE[word](one, value))
            case Comparison(operator=word, left=Constant(value=value), right=Reference(variable=name)):
                return self._each(name, lambda one: COMPARE[word](value, one))
            case LevelIs(variable=name, levels=levels):
                return self._each(name, lambda one: one in levels)
            case Not(part=part):
                return ~self.holds(part)
            case Every(parts=parts):
                return reduce(np.logical_and, map(self.holds, parts), np.asarray(True))
            case Some(parts=parts):
                return reduce(np.logical_or, map(self.holds, parts), np.asarray(False))
        return self._each(condition, bool)

    def _each(self, key: str | Condition, test: Callable[[Any], bool]) -> Flags:
        return np.array([test(one) for one in self.choices[key]], dtype=bool)[self.places[key]]


#: What no number is compared with holds of none.
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": lambda one, other: one != other and not math.isnan(one) and not math.isnan(other),
}
