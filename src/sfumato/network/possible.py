"""Whether a condition can hold for anybody, by public ranges and lists alone.

In:   a condition, the nodes of every public group: a variable may have another formula in each.
Out:  why nobody can fulfil it, in words; nothing where somebody may.
Not here: which conditions hold at once (network/apart.py), the truth of one for a row (network/condition.py).

Every variable that is compared with constants is tried at each of them, at the ends of its range and between: within
such a cell no test changes. Cells of a table lie in their range or list, what stands for an absent one included
(network/cells.py); a value that is computed may be none, of which no comparison holds, and is taken to be free of the
others. What is none of these (a relation, an absent cell) may hold or not. So whoever can fulfil a condition is found;
that somebody is found does not say that there is such a person.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.domain import Categories, Domain
from sfumato.network.apart import COMPARE, deciders
from sfumato.network.bounds import Bounds, hull
from sfumato.network.condition import Comparison, Condition, Every, LevelIs, Not, Some
from sfumato.network.expression import Constant, Level, Ranges, Reference
from sfumato.network.network import Node

__all__ = ["why_nobody"]

#: With more cells than these a condition is taken to be possible: each is tried until one holds.
_MOST_CELLS = 20_000
#: Half of the largest float: between it and an end without bounds there are numbers.
_FAR = 8.9e307
#: The forms of each variable, one for every public group that has it.
Forms = Mapping[str, Sequence[Node]]
Cell = Mapping[str | Condition, Any]


def why_nobody(condition: Condition, nodes: Iterable[Node]) -> str:
    """What keeps everybody of these groups from fulfilling a condition; empty where somebody may."""
    forms: dict[str, list[Node]] = {}
    for node in nodes:
        forms.setdefault(node.name, []).append(node)
    trial = _Trial(forms)
    if trial.may_hold(condition):
        return ""
    parts = condition.parts if isinstance(condition, Every) else (condition,)
    alone = next((part for part in parts if not trial.may_hold(part)), None)
    if alone is not None:
        return f"{alone} holds for nobody{_known(alone, forms)}"
    # The fewest parts that exclude each other, where two do.
    two = next((pair for pair in itertools.combinations(parts, 2) if not trial.may_hold(Every(pair))), parts)
    return f"{' and '.join(map(str, two))} hold for nobody at once{_known(Every(tuple(two)), forms)}"


def _known(condition: Condition, forms: Forms) -> str:
    """What is declared of the variables of a condition."""
    said = []
    for name in sorted(condition.references() & forms.keys()):
        listed = _levels(forms[name])
        bounds = _bounds(forms[name])
        if listed is not None:
            said.append(f"{name} is one of {', '.join(map(str, listed[:6]))}{', …' if len(listed) > 6 else ''}")
        elif bounds.bounded:
            said.append(f"{name} lies between {bounds.low:g} and {bounds.high:g}")
    return f" ({'; '.join(said)})" if said else ""


def _levels(forms: Sequence[Node]) -> list[Level] | None:
    """What a variable can be, where that is listed in every group."""
    found: list[Level] = []
    for node in forms:
        if isinstance(node.domain, Categories) and node.source is not None:
            found += [*node.domain.values, *(() if node.missing is None else (node.missing,))]
        elif node.source is None and node.is_random and node.levels:
            found += node.levels
        else:
            return None
    return list(dict.fromkeys(found))


def _bounds(forms: Sequence[Node]) -> Bounds:
    """Where its numbers lie: what is drawn, and not its expectation, decides who counts."""
    return hull(node.support if node.is_random else node.bounds for node in forms)


@dataclass(frozen=True)
class _Trial:
    """Conditions on variables of these forms."""

    forms: Forms

    def may_hold(self, condition: Condition) -> bool:
        choices = {key: self._choices(key, values) for key, values in deciders(condition).items()}
        if math.prod(map(len, choices.values())) > _MOST_CELLS:
            return True
        cells = (dict(zip(choices, cell, strict=True)) for cell in itertools.product(*choices.values()))
        return any(_holds(condition, cell) for cell in cells)

    def _choices(self, key: str | Condition, values: set[Level]) -> list[Any]:
        """One value for each cell of a variable; of what cannot be cut, whether it may hold, and that it may not."""
        if not isinstance(key, str):
            return [True, False] if self._may_be(key) else [False]
        forms = self.forms.get(key, ())
        listed = _levels(forms) if forms else None
        if listed is not None:
            return listed
        if any(isinstance(one, str) for one in values) or not forms:
            return [*values, None]
        return _numbers(_bounds(forms), values, all(node.source and node.missing is not None for node in forms))

    def _may_be(self, condition: Condition) -> bool:
        """Whether two expressions can compare so, by interval arithmetic."""
        if not isinstance(condition, Comparison):
            return True
        left, right = (part.interval(self._ranges(part.references())) for part in (condition.left, condition.right))
        match condition.operator:
            case "<":
                return left.low < right.high
            case "<=":
                return left.low <= right.high
            case ">":
                return left.high > right.low
            case ">=":
                return left.high >= right.low
            case "=":
                return left.low <= right.high and right.low <= left.high
        return not left.low == left.high == right.low == right.high

    def _ranges(self, names: frozenset[str]) -> Ranges:
        found: dict[str, Domain | Bounds | None] = {}
        for name in names:
            forms = self.forms.get(name, ())
            lists = [node.domain for node in forms if isinstance(node.domain, Categories)]
            found[name] = lists[0] if lists and len(lists) == len(forms) == 1 else _hull_of(forms)
        return found


def _hull_of(forms: Sequence[Node]) -> Bounds:
    return _bounds(forms) if forms else Bounds.unbounded("nothing is known of it")


def _numbers(bounds: Bounds, values: set[Level], is_read: bool) -> list[float]:
    """The ends, what is compared with inside of them, and something between each two; none, where it may be none."""
    inside = [number for number in map(float, values) if number in bounds]
    cuts = sorted({bounds.low, *inside, bounds.high})
    finite = [min(max(one, -_FAR), _FAR) for one in cuts]
    between = [one / 2 + other / 2 for one, other in itertools.pairwise(finite)]
    return [*cuts, *between, *(() if is_read else (math.nan,))]


def _holds(condition: Condition, cell: Cell) -> bool:
    match condition:
        case Comparison(operator=word, left=Reference(variable=name), right=Constant(value=value)):
            return _compared(cell[name], lambda one: COMPARE[word](one, value))
        case Comparison(operator=word, left=Constant(value=value), right=Reference(variable=name)):
            return _compared(cell[name], lambda one: COMPARE[word](value, one))
        case LevelIs(variable=name, levels=levels):
            return cell[name] in levels
        case Not(part=part):
            return not _holds(part, cell)
        case Every(parts=parts):
            return all(_holds(part, cell) for part in parts)
        case Some(parts=parts):
            return any(_holds(part, cell) for part in parts)
    return bool(cell[condition])


def _compared(value: Any, test: Callable[[Any], bool]) -> bool:
    """What is no number compares with none: the network reads it as absent."""
    return not isinstance(value, str) and value is not None and test(value)
