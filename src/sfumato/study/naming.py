"""What a number is about, in columns: groups and categories by the names that the study's author gave them.

In:   the network of a study.
Out:  for every aggregate the columns that tell its numbers apart.
Not here: the numbers (run/view.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.lang.reader import Clause
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, Number, Term, Text, Variable, called, indicator, match, walk
from sfumato.lang.vocabulary import AGGREGATES
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network

__all__ = ["keys_of", "table_of"]


#: What the language writes around a word with letters beyond a to z.
_QUOTE = "'"


def keys_of(network: Network) -> dict[str, list[dict[str, Any]]]:
    """For every aggregate one record for each of its numbers: {"age": "young"}, {"age": "old"}, …"""
    names = {indicator(column.atom): column.name for column in network.spec.columns}
    return {node.name: _keys(network.spec, node, names) for node in network.aggregates}


def _keys(spec: Spec, node: AggregateNode, names: Mapping[str, str]) -> list[dict[str, Any]]:
    group = next((found for clause in spec.clauses if (found := _group(clause, node, names)) is not None), {})
    labels = node.question.labels()
    told = {key for label in labels[:1] for key in label}  # a variable may be sorted into cells that are not shown
    axes = [axis for axis in node.question.axes if axis.variable in told]
    cells = {axis.variable: dict(zip(axis.cells, axis.classes, strict=True)) for axis in axes}

    def named(variable: str) -> str:
        return names.get(f"{variable.partition('(')[0].strip(_QUOTE)}/1", variable)

    def shown(label: Mapping[str, str]) -> dict[str, Any]:
        # An empty cell says that a number is about all values of that variable.
        return {named(key): cell(key, value) for key, value in label.items() if value != ""}

    def cell(key: str, value: str) -> Any:
        return cells[key].get(value, value) if key in cells else _number(named(value))

    return [group | shown(label) for label in labels]


def _number(text: str) -> float | str:
    """What stands beside a variable, such as the share of a quantile, as a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def _group(clause: Clause, node: AggregateNode, names: Mapping[str, str]) -> dict[str, Any] | None:
    """The groups of a clause that made this aggregate: a condition age(P) = G tells that G is an age."""
    if indicator(clause.head) not in AGGREGATES:
        return None
    bound = match(clause.head.arguments[0], node.atom)
    if bound is None:
        return None
    called_by: dict[str, str] = {}
    for part in (part for argument in clause.head.arguments[1:] for part in walk(argument)):
        match part:
            case Compound(functor="=", arguments=(Compound() as variable, Variable(name=letter))):
                called_by.setdefault(letter, names.get(indicator(variable), variable.functor))
    return {called_by.get(letter, letter.lower()): _value(term) for letter, term in bound.items()}


def _value(term: Term) -> Any:
    return term.value if isinstance(term, Number | Text) else called(term)


def table_of(rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, list[Any]]:
    """Columns from (key, numbers) records; a key that only some records have is empty in the others.

    A column of the study that is called as a number is, such as value, stands as value(P).
    """
    keys = list(dict.fromkeys(name for key, _ in rows for name in key))
    numbers = list(dict.fromkeys(name for _, values in rows for name in values))
    made = {
        f"{name}(P)" if name in numbers else name: _alike([_plain(key.get(name)) for key, _ in rows]) for name in keys
    }
    return {**made, **{name: [values.get(name) for _, values in rows] for name in numbers}}


def _alike(cells: list[Any]) -> list[Any]:
    """A column of one type: where classes of numbers stand beside values, all of them are text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    return cells if len(kinds) <= 1 else [None if cell is None else str(cell) for cell in cells]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
