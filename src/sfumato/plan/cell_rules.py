"""What a study says about the cells behind a variable: the column's own name, what stands for absent and unlisted ones.

In:   the nodes of one variable, the study.
Out:  plain records that an act carries; a schema with these rules; the columns' own names.
Not here: how cells are read while a study runs (network/cells.py).

All of it is in the study's text, so that it is public and may go along with what is published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.core import Categories, Interval, Schema
from sfumato.lang.spec import Spec
from sfumato.network.network import Node

__all__ = ["Cells", "cell_rule", "own_names", "renamed", "ruled"]

#: By variable: "column", "null" and "unknown", as far as the study says them.
Cells = Mapping[str, Mapping[str, Any]]


def cell_rule(nodes: Sequence[Node], spec: Spec) -> dict[str, Any]:
    """The rule of a variable that is a plain column; nothing where it is computed, or not the same for everybody."""
    rules = [_rule(node, spec) for node in nodes]
    return rules[0] if all(rule == rules[0] for rule in rules) else {}


def _rule(node: Node, spec: Spec) -> dict[str, Any]:
    if node.source is None:
        return {}
    said = spec.missing_of(node.atom)
    # Of those left out, and of those that are said never to be, nothing stands for a cell: a prediction warns of it.
    stands = node.missing if said is not None and said.rule == "value" else getattr(node.domain, "null", None)
    found: dict[str, Any] = {"column": node.source.name, "null": stands, "unknown": None}
    if isinstance(node.domain, Interval) and stands is not None:
        found["null"] = min(max(float(stands), node.domain.low), node.domain.high)
    if isinstance(node.domain, Categories):
        found |= _listed(node.domain, stands)
    return {key: value for key, value in found.items() if value is not None}


def _listed(domain: Categories, stands: Any) -> dict[str, Any]:
    """As a run places them: a word that is not listed stands for the first that is."""
    if stands is None:
        return {"unknown": domain.unknown}
    absent = next((value for value in domain.values if value == stands), domain.values[0])
    return {"null": absent, "unknown": absent if domain.unknown is None else domain.unknown}


def ruled(schema: Schema, cells: Cells) -> Schema:
    """The schema with what stands for absent and unlisted cells.

    >>> ruled(Schema({"age(P)": Interval(0, 100)}), {"age(P)": {"column": "age", "null": 48}}).columns["age(P)"]
    Interval(low=0.0, high=100.0, null=48.0)
    """
    columns = {}
    for name, domain in schema.columns.items():
        known = ("null", "unknown") if isinstance(domain, Categories) else ("null",)
        rule = {key: value for key, value in cells.get(name, {}).items() if key in known}
        columns[name] = replace(domain, **rule) if rule else domain  # type: ignore[type-var]  # domains are data
    return Schema(columns, schema.norm, schema.impossible)


def own_names(names: Sequence[str], cells: Cells, taken: Sequence[str] = ()) -> dict[str, str]:
    """By variable the name of its column; none that two of them have, or that is taken by something else.

    >>> own_names(["age(P)", "sex(P)"], {"age(P)": {"column": "Age in years"}})
    {'age(P)': 'Age in years'}
    """
    found = {name: str(cells[name]["column"]) for name in names if "column" in cells.get(name, {})}
    times = Counter([*found.values(), *names, *taken])
    return {name: own for name, own in found.items() if times[own] == 1}


def renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """The schema with other names for some of its columns.

    >>> list(renamed(Schema({"age(P)": Interval(0, 100)}), {"age(P)": "age"}).columns)
    ['age']
    """
    columns = {names.get(name, name): domain for name, domain in schema.columns.items()}
    return Schema(columns, schema.norm)
