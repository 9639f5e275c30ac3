"""Aggregates: from declarations to AggregateNode, once for all groups.

In:   aggregate declarations, the nodes of every group.
Out:  AggregateNode with value bounds that hold in every group.
Not here: contributions (network/aggregate.py), sums (network/evaluate.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sfumato.core.domain import Categories, Interval
from sfumato.core.tables import nearest
from sfumato.lang.spec import AggregateDeclaration, Dataset, Spec
from sfumato.lang.term import Compound, ListTerm, Number, Term, Variable, indicator, show, substitute
from sfumato.network.aggregate import AggregateNode, trimmed
from sfumato.network.bounds import Bounds, as_bounds, hull
from sfumato.network.condition import Condition, Every, Present
from sfumato.network.convert import conjuncts
from sfumato.network.expression import Power, Reference
from sfumato.network.goals import Goals
from sfumato.network.indicator import Indicator, has_chance
from sfumato.network.network import Group, Node
from sfumato.network.refusal import refusal
from sfumato.network.structure import identity_of

__all__ = ["aggregate_bounds", "aggregates_of"]


def aggregates_of(
    spec: Spec,
    declared: Sequence[tuple[Dataset | None, AggregateDeclaration]],
    groups: Sequence[Group],
    masks: Mapping[str, Variable],
    shared: Sequence[Node] = (),
) -> tuple[AggregateNode, ...]:
    """Every aggregate once; two different ones of the same name are refused."""
    found: dict[str, AggregateNode] = {}
    for _, entry in declared:
        node = _aggregate(spec, entry, groups, masks, shared)
        if found.setdefault(node.name, node) != node:
            raise refusal(entry.position, f"{node.name} is declared as two different aggregates.", "Rename one.")
    return tuple(found.values())


def aggregate_bounds(aggregate: AggregateNode) -> Bounds:
    """The bounds of an aggregate where it stands for a number."""
    match aggregate.kind:
        case "mean":
            return aggregate.bounds[0]
        case "count":
            return Bounds(0.0, math.inf, "the number of individuals has no public bound")
        case "sum":
            return Bounds.unbounded("the number of individuals has no public bound")
    return Bounds.unbounded(f"{aggregate.name} is a vector, not a number")


def _aggregate(
    spec: Spec,
    entry: AggregateDeclaration,
    groups: Sequence[Group],
    masks: Mapping[str, Variable],
    shared: Sequence[Node],
) -> AggregateNode:
    dataset, person = _whose(spec, entry)
    mask = {person: masks[dataset.name]}
    own = [group for group in groups if group.dataset == dataset.name]
    if not any(group.representative is not None for group in own):
        raise refusal(
            entry.position,
            f"{show(entry.atom)} aggregates individuals the study itself names in facts.",
            f"Aggregates run over a table's rows: remove these facts and declare column(Table, id, {dataset.goal}).",
        )
    nodes = _representatives(own)
    goals = Goals(spec, identity_of(dataset), masks[dataset.name], nodes)
    condition = goals.condition(substitute(entry.condition, mask), entry.position)
    values = tuple(_value(substitute(term, mask), nodes, entry) for term in _value_terms(entry))
    condition = _of_present(condition, values, nodes)
    variants = [[node for group in own if (node := group.node(name))] for name in values]
    expected = _is_expected(entry, condition, values, own)
    bounds = tuple(hull(as_bounds(node.domain or node.bounds) for node in forms) for forms in variants)
    if expected:
        bounds = tuple(_possible(entry.kind, name, own, shared) for name in values)
    rows, table = _rows(values, condition, nodes, entry)
    cuts, levels = _bins(entry, values, nodes, bounds)
    if entry.kind in ("sum", "mean", "moment2"):
        _check_numbers(values, nodes, entry)
    everywhere = all(len(forms) == len(own) for forms in variants)
    name = show(entry.atom)
    return AggregateNode(
        name,
        entry.atom,
        entry.kind,
        dataset.name,
        values,
        bounds,
        condition,
        rows,
        condition.trivial and everywhere and table is None,
        cuts,
        levels,
        table,
        entry.position,
        expected,
    )


def _is_expected(
    entry: AggregateDeclaration, condition: Condition, values: Sequence[str], groups: Sequence[Group]
) -> bool:
    """Whether contributions are expectations of more than one value: a sum of expected values needs none."""
    random = {node.name for group in groups for node in group.nodes if node.is_random}
    if condition.references() & random or has_chance(Indicator(condition)):
        return True
    return entry.kind in ("moment2", "histogram") and bool(random & set(values))


def _possible(kind: str, name: str, groups: Sequence[Group], shared: Sequence[Node]) -> Bounds:
    """The values an individual can add where it counts; of products of random values ±√max E[v²].

    |E[v·w]| <= √E[v²] √E[w²] (Cauchy and Schwarz), so these bounds serve for second moments as those of values do.
    """
    found = []
    for group in groups:
        node = group.node(name)
        if node is None:
            continue
        if kind == "moment2" and node.is_random:
            square = group.inference(shared).expected(Power(Reference(name), 2))
            highest = square.interval({n.name: n.domain or n.bounds for n in (*shared, *group.nodes)})
            root = (highest.intersect(0.0, math.inf) if highest.bounded else highest).sqrt()
            found.append(Bounds(-root.high, root.high, root.reason))
        else:
            found.append(node.support)
    return hull(found)


def _of_present(condition: Condition, values: Sequence[str], nodes: Mapping[str, Node]) -> Condition:
    """The condition, and that every cell behind the aggregate is there where absent ones are skipped."""
    met: set[str] = set()
    waiting = [*values, *condition.references()]
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in met:
            met.add(name)
            waiting += nodes[name].inputs
    skipped = sorted(name for name in met if nodes[name].skip)
    return Every((condition, *map(Present, skipped))) if skipped else condition


def _whose(spec: Spec, entry: AggregateDeclaration) -> tuple[Dataset, str]:
    """The dataset whose individuals are aggregated, and the variable that stands for them in the goal."""
    for literal in conjuncts(entry.condition):
        for dataset in spec.datasets:
            match literal:
                case Compound(arguments=(Variable(name=name),)) if indicator(literal) == identity_of(dataset):
                    return dataset, name
    known = ", ".join(show(dataset.goal) for dataset in spec.datasets) or "none is declared"
    raise refusal(
        entry.position,
        f"The goal of {show(entry.atom)} does not say whose values are aggregated.",
        f"Begin it with the domain of a dataset ({known}).",
    )


def _representatives(groups: Sequence[Group]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for group in groups:
        for node in group.nodes:
            found.setdefault(node.name, node)
    return found


def _value_terms(entry: AggregateDeclaration) -> tuple[Term, ...]:
    if entry.value is None:
        return ()
    return entry.value.items if isinstance(entry.value, ListTerm) else (entry.value,)


def _value(term: Term, nodes: Mapping[str, Node], entry: AggregateDeclaration) -> str:
    name = show(term)
    if name not in nodes:
        raise refusal(
            entry.position,
            f"{show(entry.atom)} aggregates {name}, which no individual has{nearest(name, list(nodes))}.",
            "Declare it with random/1 for the individuals of the dataset.",
        )
    return name


def _check_numbers(values: Sequence[str], nodes: Mapping[str, Node], entry: AggregateDeclaration) -> None:
    for name in values:
        domain = nodes[name].domain
        if isinstance(domain, Categories) and domain.scalar == "str":
            raise refusal(
                entry.position, f"{name} is a category, and {entry.kind} needs numbers.", "Use histogram or count."
            )


def _rows(
    values: Sequence[str], condition: Condition, nodes: Mapping[str, Node], entry: AggregateDeclaration
) -> tuple[int, str | None]:
    tables = {
        nodes[name].row_table: nodes[name].rows
        for name in (*values, *condition.references())
        if name in nodes and nodes[name].row_table
    }
    if len(tables) > 1:
        raise refusal(
            entry.position,
            f"{show(entry.atom)} mixes tables with several rows per person: {', '.join(sorted(map(str, tables)))}.",
            "Limit all but one with rows_per_person(Table, 1).",
        )
    return next(((rows, table) for table, rows in tables.items()), (1, None))


def _bins(
    entry: AggregateDeclaration, values: Sequence[str], nodes: Mapping[str, Node], bounds: Sequence[Bounds]
) -> tuple[tuple[float, ...], tuple]:
    if entry.kind != "histogram":
        return (), ()
    node = nodes[values[0]]
    if isinstance(node.domain, Categories) and node.source is not None and entry.edges is None:
        return (), tuple(node.domain.values)
    if node.levels and node.is_random and entry.edges is None:
        return (), node.levels
    words = any(isinstance(level, str) for level in node.levels)
    if entry.edges is None or words:
        way_out = "Give a list of cut points" if isinstance(node.domain, Interval) else "Declare its range"
        raise refusal(entry.position, f"The histogram of {node.name} has no bins.", f"{way_out}, or use a column.")
    cuts = []
    for item in entry.edges.items:
        value = item.value if isinstance(item, Number) else math.nan
        if isinstance(item, Compound) and item.functor == "-" and isinstance(item.arguments[0], Number):
            value = -item.arguments[0].value
        if not math.isfinite(value) or (cuts and value <= cuts[-1]):
            raise refusal(entry.position, "The cut points of a histogram are not increasing numbers.", "Sort them.")
        cuts.append(value)
    return trimmed(cuts, bounds[0]), ()
