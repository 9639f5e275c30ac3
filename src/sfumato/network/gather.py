"""Aggregates: from declarations to questions in their place, once for all groups.

In:   aggregate declarations, the nodes of every group.
Out:  AggregateNode: a Question whose bounds and cells hold in every group.
Not here: what the questions are (questions/), sums (network/totals.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.tables import nearest
from sfumato.core.text import AnyText
from sfumato.lang.asked import Named, named_in, number_in
from sfumato.lang.derivations import AggregateDeclaration
from sfumato.lang.spec import Dataset, Spec
from sfumato.lang.term import Compound, ListTerm, Term, Variable, indicator, show, substitute
from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import Bounds, as_bounds, hull
from sfumato.network.condition import Complete, Condition, Every, Present
from sfumato.network.convert import conjuncts
from sfumato.network.expression import Level, Power, Reference
from sfumato.network.goals import Goals
from sfumato.network.indicator import Indicator, has_chance
from sfumato.network.network import Group, Node, first_of_each
from sfumato.network.refusal import refusal
from sfumato.network.structure import identity_of
from sfumato.network.tables import layout_of
from sfumato.questions.axis import Axis
from sfumato.questions.bought import Bought, power_axis
from sfumato.questions.form import Place
from sfumato.questions.question import Question

__all__ = ["aggregate_bounds", "aggregates_of"]


def aggregates_of(
    spec: Spec,
    declared: Sequence[AggregateDeclaration],
    groups: Sequence[Group],
    masks: Mapping[str, Variable],
    shared: Sequence[Node] = (),
) -> tuple[AggregateNode, ...]:
    """Every aggregate once; two different ones of the same name are refused."""
    found: dict[str, AggregateNode] = {}
    for entry in declared:
        node = _aggregate(spec, entry, groups, masks, shared)
        if found.setdefault(node.name, node) != node:
            raise refusal(entry.position, f"{node.name} is declared as two different aggregates.", "Rename one.")
    return tuple(found.values())


def aggregate_bounds(aggregate: AggregateNode) -> Bounds:
    """The bounds of an aggregate where it stands for a number."""
    if not aggregate.question.is_number:
        return Bounds.unbounded(f"{aggregate.name} is a vector, not a number")
    low, high, reason = aggregate.question.limits()
    return Bounds(low, high, reason or aggregate.unbounded or None)


def _aggregate(
    spec: Spec,
    entry: AggregateDeclaration,
    groups: Sequence[Group],
    masks: Mapping[str, Variable],
    shared: Sequence[Node],
) -> AggregateNode:
    dataset, person = _whose(spec, entry)
    mask = {person: masks[dataset.name]}
    own = _fed_groups(groups, dataset, entry)
    nodes = _of_all_levels(own)
    goals = Goals(spec, identity_of(dataset), masks[dataset.name], nodes)
    condition = goals.condition(substitute(entry.condition, mask), entry.position)
    given: dict[Place, Term] = {place: substitute(term, mask) for place, term in entry.given}
    values = _names(_named(given, "value", "values"), nodes, entry)
    sorted_by = _named(given, "cells", "groups")
    groups_by = _names(sorted_by, nodes, entry)
    _check_places(values, groups_by, entry)
    names = tuple(dict.fromkeys((*values, *groups_by)))
    condition = _of_present(condition, names, own)
    _check_kinds((*names, *sorted(condition.references())), own, entry)
    _check_numbers(values, nodes, entry)
    expected = _is_expected(entry, condition, values, names, own)
    bounds = {name: _bounds(entry, name, own, shared, expected) for name in names}
    rows, table = _rows(names, condition, own, entry)
    kind, own_axes, further = _kind(spec, entry, values, nodes, own)
    question = kind(
        values=values,
        ranges=tuple((bounds[name].low, bounds[name].high) for name in values),
        axes=(*own_axes, *(_axis(entry, one, given.get("edges"), nodes, bounds) for one in sorted_by)),
        rows=rows,
        everybody=condition.trivial and table is None and _are_everywhere(names, own),
        relation=dataset.adjacency.relation,
        expected=expected,
        **_further(entry, given),
        **further,
    )
    unbounded = next((bounds[name].reason for name in values if not bounds[name].bounded), None)
    return AggregateNode(
        show(entry.atom), entry.atom, dataset.name, question, condition, table, unbounded or "", entry.position
    )


def _kind(
    spec: Spec, entry: AggregateDeclaration, values: Sequence[str], nodes: Mapping[str, Node], groups: Sequence[Group]
) -> tuple[type[Question], tuple[Axis, ...], dict[str, Any]]:
    """The question as it is written, or the one that buys bounds first where its variable has none."""
    domains = [nodes[name].domain for name in values]
    share = next((one.share for one in domains if isinstance(one, Interval) and one.share is not None), None)
    if share is not None:
        return Bought, (power_axis(values[0]),), {"kind": entry.functor, "share": share}
    further: dict[str, Any] = {"calendar": _calendar_of(domains[0])} if entry.question.locates and domains else {}
    if entry.question.has_places:
        further["listed"] = _listed_of(values[0], groups)
        further["step"] = _step_of(spec, values[0], groups)
    return entry.question, (), further


def _step_of(spec: Spec, name: str, groups: Sequence[Group]) -> float | None:
    """How far values are apart by what the study says of them: listed whole numbers, days; else None.

    Times of day have parts of a second.
    """
    listed = _listed_of(name, groups)
    if listed:
        return float(math.gcd(*map(int, listed))) or None
    forms = _read_forms(name, groups)
    averaged = any(layout_of(spec, one.source.table).each_person for one in forms if one.source is not None)
    return 1.0 if forms and all(_calendar_of(one.domain) == "date" for one in forms) and not averaged else None


def _listed_of(name: str, groups: Sequence[Group]) -> tuple[float, ...]:
    """The whole numbers that a study lists for a variable, in order; none where rows may have others."""
    domains = [one.domain for one in _read_forms(name, groups)]
    lists = [one.values for one in domains if isinstance(one, Categories) and one.scalar == "int"]
    return tuple(sorted({float(value) for one in lists for value in one})) if len(lists) == len(domains) else ()


def _read_forms(name: str, groups: Sequence[Group]) -> list[Node]:
    """A variable as each group has it, if all read it from a column; where one computes it, none."""
    forms = _forms(name, groups)
    return forms if all(one.source is not None for one in forms) else []


def _calendar_of(domain: Domain | AnyText | None) -> str:
    return domain.calendar if isinstance(domain, Interval) else ""


def _further(entry: AggregateDeclaration, given: Mapping[Place, Term]) -> dict[str, Any]:
    """The numbers a question asks for beside its variables, under the names of their places."""
    found: dict[str, Any] = {}
    if "numbers" in given:
        found["numbers"] = tuple(_numbers(given["numbers"], entry, "The numbers"))
    if "whole" in given:
        number = number_in(given["whole"])
        if number is None or number != int(number) or number < 1:
            raise refusal(
                entry.position,
                f"{show(entry.atom)} asks for {show(given['whole'])}, no whole number from 1.",
                "Correct it.",
            )
        found["whole"] = int(number)
    return found


def _bounds(
    entry: AggregateDeclaration, name: str, groups: Sequence[Group], shared: Sequence[Node], expected: bool
) -> Bounds:
    if expected:
        return _possible(entry, name, groups, shared)
    return hull(as_bounds(node.domain or node.bounds) for node in _forms(name, groups))


def _listed_levels(node: Node) -> tuple[Level, ...] | None:
    if isinstance(node.domain, Categories) and node.source is not None:
        return tuple(node.domain.values)
    return node.levels if node.levels and node.is_random else None


def _of_all_levels(groups: Sequence[Group]) -> dict[str, Node]:
    """Every node once, by its first form; its levels are those of all forms, for a law may differ by structure."""
    found = first_of_each(groups)
    for name in found:
        forms = _forms(name, groups)
        lists = [form.levels for form in forms]
        if len(set(lists)) > 1:
            found[name] = replace(next(form for form in forms if form.levels), levels=_levels_together(lists))
    return found


def _levels_together(lists: Sequence[tuple[Level, ...]]) -> tuple[Level, ...]:
    levels = dict.fromkeys(level for one in lists for level in one)
    words = tuple(level for level in levels if isinstance(level, str))
    # Numbers of which some have no list are sorted by cut points alone; beside words they are refused.
    numbers = tuple(sorted(levels, key=float)) if all(lists) and not words else ()
    return words or numbers


def _forms(name: str, groups: Sequence[Group]) -> list[Node]:
    """A variable as each structure has it that has it at all."""
    return [node for group in groups if (node := group.node(name)) is not None]


def _check_kinds(names: Sequence[str], groups: Sequence[Group], entry: AggregateDeclaration) -> None:
    """Nobody's words and numbers are sorted, compared or added up together."""
    for name in names:
        if len({_has_words(form) for form in _forms(name, groups)}) > 1:
            raise refusal(
                entry.position,
                f"{show(entry.atom)} reads {name}, which is a word of some individuals and none of others: their laws "
                "differ by public structure.",
                "Give every structure a law over words, or those with numbers a variable of another name.",
            )


def _has_words(node: Node) -> bool:
    return _is_word(node) or isinstance(node.domain, AnyText) or any(isinstance(level, str) for level in node.levels)


def _fed_groups(groups: Sequence[Group], dataset: Dataset, entry: AggregateDeclaration) -> list[Group]:
    own = [group for group in groups if group.dataset == dataset.name]
    if not any(group.representative is not None for group in own):
        raise refusal(
            entry.position,
            f"{show(entry.atom)} aggregates individuals the study itself names in facts.",
            f"Aggregates run over a table's rows: remove these facts and declare column(Table, id, {dataset.goal}).",
        )
    return own


def _named(given: Mapping[Place, Term], *places: Place) -> list[Named]:
    return [one for place in places for one in named_in(place, given.get(place))]


def _axis(
    entry: AggregateDeclaration,
    named: Named,
    edges: Term | None,
    nodes: Mapping[str, Node],
    bounds: Mapping[str, Bounds],
) -> Axis:
    """The cells of a variable: those of its own cut points, of the question's, or of its list of values."""
    name = show(named.variable)
    node, own = nodes[name], named.edges if named.edges is not None else edges
    if isinstance(node.domain, AnyText):
        return Axis(name)
    levels = _listed_levels(node)
    if own is None and levels is not None:
        return Axis(name, levels)
    cuts = trimmed(_cuts(entry, node, own), bounds[name])
    return Axis(name, (), cuts, bounds[name].low, bounds[name].high, _calendar_of(node.domain))


def _cuts(entry: AggregateDeclaration, node: Node, given: Term | None) -> list[float]:
    """The cut points of a variable, which must be there and sort it."""
    if given is not None and _is_word(node):
        raise refusal(entry.position, f"{node.name} has a list of values, which no cut points sort.", "Take these out.")
    if given is None or any(isinstance(level, str) for level in node.levels):
        way_out = "Give a list of cut points" if isinstance(node.domain, Interval) else "Declare its range"
        what = f"The {entry.functor} of {node.name} has no bins."
        raise refusal(entry.position, what, f"{way_out}, or use a column.")
    return _numbers(given, entry, f"The cut points of a {entry.functor}")


def _is_word(node: Node) -> bool:
    return isinstance(node.domain, Categories) and node.domain.scalar == "str"


def trimmed(cuts: Sequence[float], bounds: Bounds) -> tuple[float, ...]:
    """The cuts that split the range: a cut at or beyond an end would make a bin for nobody.

    >>> trimmed([0, 20, 65, 110], Bounds(0, 110))
    (20.0, 65.0)
    """
    return tuple(float(cut) for cut in cuts if bounds.low < cut < bounds.high)


def _numbers(term: Term, entry: AggregateDeclaration, what: str) -> list[float]:
    found: list[float] = []
    for item in term.items if isinstance(term, ListTerm) else ():
        value = number_in(item)
        if value is None or not math.isfinite(value) or (found and value <= found[-1]):
            raise refusal(entry.position, f"{what} are not increasing numbers.", "Write numbers, the smallest first.")
        found.append(value)
    return found


def _is_expected(
    entry: AggregateDeclaration,
    condition: Condition,
    values: Sequence[str],
    names: Sequence[str],
    groups: Sequence[Group],
) -> bool:
    """Whether contributions are expectations of more than one value: a sum of expected values needs none."""
    random = {node.name for group in groups for node in group.nodes if node.is_random}
    if condition.references() & random or has_chance(Indicator(condition)):
        return True
    sorted_by = set(names) - set(values)
    return bool(random & (sorted_by if entry.question.of_expectations else set(names)))


def _possible(entry: AggregateDeclaration, name: str, groups: Sequence[Group], shared: Sequence[Node]) -> Bounds:
    """The values an individual can add where it counts; of products of random values ±√max E[v²].

    |E[v·w]| <= √E[v²] √E[w²] (Cauchy and Schwarz), so these bounds serve for second moments as those of values do.
    """
    found = []
    for group in groups:
        node = group.node(name)
        if node is None:
            continue
        if not entry.question.of_expectations and node.is_random and entry.place("values") is not None:
            square = group.inference(shared).expected(Power(Reference(name), 2))
            nodes = (*shared, *group.nodes)
            highest = square.interval({n.name: n.domain if isinstance(n.domain, Domain) else n.bounds for n in nodes})
            root = (highest.intersect(0.0, math.inf) if highest.bounded else highest).sqrt()
            found.append(Bounds(-root.high, root.high, root.reason))
        else:
            found.append(node.support)
    return hull(found)


def _of_present(condition: Condition, names: Sequence[str], groups: Sequence[Group]) -> Condition:
    """The condition, and that every cell behind the aggregate is there where absent ones are skipped.

    A structure may compute a variable from other cells than the next one does: then it is asked for those of its own.
    """
    read = sorted({*names, *condition.references()})
    counted = [group for group in groups if _are_everywhere(read, (group,))]
    cells: set[str] = set()
    parts: list[Condition] = []
    for name in read:
        skipped = {group.skipped(name) for group in counted}
        if len(skipped) > 1:
            parts.append(Complete(name))
        else:
            cells.update(*skipped)
    parts = [*map(Present, sorted(cells)), *parts]
    return Every((condition, *parts)) if parts else condition


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


def _names(named: Sequence[Named], nodes: Mapping[str, Node], entry: AggregateDeclaration) -> tuple[str, ...]:
    names = tuple(show(one.variable) for one in named)
    unknown = next((name for name in names if name not in nodes), None)
    if unknown is not None:
        raise refusal(
            entry.position,
            f"{show(entry.atom)} aggregates {unknown}, which no individual has{nearest(unknown, list(nodes))}.",
            "Declare it with random/1 for the individuals of the dataset.",
        )
    return names


def _are_everywhere(names: Sequence[str], groups: Sequence[Group]) -> bool:
    return all(group.node(name) is not None for name in names for group in groups)


def _check_places(values: Sequence[str], groups_by: Sequence[str], entry: AggregateDeclaration) -> None:
    """What is read off places of a variable's range has these as its own cells: no groups of the same variable."""
    own = next((name for name in values if name in groups_by), None)
    if own is not None and entry.question.has_places:
        raise refusal(
            entry.position,
            f"{show(entry.atom)} is a {entry.functor} of {own} in groups of {own} itself.",
            f"Take {own} out of by([…]), or write one {entry.functor} for each group, with a condition such as "
            f"{own} < 50 in its goal.",
        )


def _check_numbers(values: Sequence[str], nodes: Mapping[str, Node], entry: AggregateDeclaration) -> None:
    for name in values:
        if isinstance(nodes[name].domain, AnyText) or _is_word(nodes[name]):
            raise refusal(
                entry.position, f"{name} is a category, and {entry.functor} needs numbers.", "Use histogram or count."
            )


def _rows(
    names: Sequence[str], condition: Condition, groups: Sequence[Group], entry: AggregateDeclaration
) -> tuple[int, str | None]:
    """How many rows of a person count, and of which table: the same for every structure that counts at all."""
    read = (*names, *condition.references())
    found = {_row_tables(read, group) for group in groups if _are_everywhere(read, (group,))}
    tables = dict(sorted(frozenset().union(*found)))
    listed = ", ".join(tables)
    if any(len(one) > 1 for one in found):
        raise refusal(
            entry.position,
            f"{show(entry.atom)} mixes tables with several rows per person: {listed}.",
            "Limit all but one with rows_per_person(Table, 1).",
        )
    if len(found) > 1:
        raise refusal(
            entry.position,
            f"{show(entry.atom)} would count rows of {listed} for some individuals and not for others: by public "
            "structure what it reads comes from different tables.",
            f"Write {' and '.join(f'rows_per_person({table}, 1)' for table in tables)}, or give what is read from rows "
            "a variable of its own and aggregate it by itself.",
        )
    return next(((rows, table) for table, rows in tables.items()), (1, None))


def _row_tables(names: Sequence[str], group: Group) -> frozenset[tuple[str, int]]:
    """The tables of which a person of this structure may have several rows, and how many."""
    nodes = [node for name in names if (node := group.node(name)) is not None]
    return frozenset((node.row_table, node.rows) for node in nodes if node.row_table is not None)
