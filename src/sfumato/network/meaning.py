"""What a published number is, in words: which question, about whom, which rows count, what is done with odd cells.

In:   a Network, one of its nodes.
Out:  sentences that plan, report, explanation and README share.
Not here: the rules themselves (network/rows.py, network/cells.py), errors in words (plan/told.py).

Every sentence follows from the study's declarations. None depends on a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from sfumato.core.calendar import shown
from sfumato.core.domain import Categories, Interval
from sfumato.core.text import AnyText
from sfumato.lang.reader import goals
from sfumato.lang.term import indicator
from sfumato.network.aggregate import AggregateNode
from sfumato.network.condition import Comparison, Complete, Condition, Every, Member, Not, Present, Some
from sfumato.network.expression import Constant, Reference

if TYPE_CHECKING:
    from sfumato.lang.spec import Missing
    from sfumato.network.expression import Level
    from sfumato.network.network import Network, Node
    from sfumato.network.tables import TableLayout

__all__ = ["absent_of", "made_of", "mean_of", "meaning_of", "range_of", "rule_of", "what_of"]

#: No study declares a limit that all rows keep, so nothing can be said about those that are left out.
_NO_INTERVAL = "No interval can be given for all rows together: one person's part in them has no limit."


def meaning_of(network: Network, names: Iterable[str]) -> tuple[str, ...]:
    """Everything that must be known to read these numbers, each sentence once: first what they are, then the rules."""
    nodes = _with_aggregates(network, names)
    said = [rule(network, node) for rule in (what_of, mean_of, range_of, absent_of) for node in nodes]
    return tuple(sentence for sentence in dict.fromkeys(said) if sentence)


def made_of(network: Network, names: Iterable[str]) -> tuple[str, ...]:
    """Of rows or a model made from these variables: what was read for it, then the rules, all cells in one sentence."""
    nodes = _with_aggregates(network, names)
    cells = [node for node in nodes if not isinstance(node, AggregateNode) and node.source is not None]
    private = [node for node in cells if not node.public]
    columns = "; ".join(f"{one.name}, a column of {one.source.table}" for one in private)  # type: ignore[union-attr]
    said = [f"What it is made from is read and not published as it is: {columns}."] if columns else []
    said += [what_of(network, node) for node in nodes if node not in private]
    rules = [*map(partial(mean_of, network), nodes), range_of(network, *nodes), absent_of(network, *nodes)]
    return tuple(dict.fromkeys((*said, *filter(None, rules))))


def what_of(network: Network, node: AggregateNode | Node) -> str:
    """The question a number answers: its kind, the variable, the condition."""
    if isinstance(node, AggregateNode):
        expected = (
            " What the table does not hold counts with its expectation under the study's model."
            if node.question.expected
            else ""
        )
        return f"{node.name} is {node.question.words()}{_where(network, node)}.{expected}"
    if node.source is not None:
        known = "public" if node.public else "private"
        return f"{node.name} is the cell {node.source.told} of the {known} table {node.source.table}."
    whose = "one value for each individual, computed" if node.of_individual else "computed"
    behind = ", ".join(node.parents)
    return f"{node.name} is {whose} from {behind}." if behind else f"{node.name} is given by the study alone."


def _where(network: Network, node: AggregateNode) -> str:
    """The condition; that cells are present is said with what stands for absent ones."""
    found = _parts(node.condition)
    parts = [_said(network, part, True) for part in found if not isinstance(part, Present | Complete)]
    if not parts and found:
        return ""
    if not parts:
        return ", all that count" if node.question.rows > 1 else ", everybody in the table"
    words = f" with {' and '.join(parts)}"
    return words.replace(" with in ", " in ", 1) if words.startswith(" with in ") else words


def _said(network: Network, condition: Condition, inside: bool = False) -> str:
    """A condition in words, with brackets where and and or meet; a day as the day it is."""
    match condition:
        case Not(part=part):
            return f"not ({_said(network, part)})"
        case Every(parts=(_, _, *_)) | Some(parts=(_, _, *_)):
            kind, flat = type(condition), _flatter(condition)
            if any(isinstance(one, kind) for one in flat):
                return _said(network, kind(tuple(flat)), inside)
            joined = (" or " if kind is Some else " and ").join(_said(network, one, True) for one in flat)
            return f"({joined})" if inside else joined
        case Comparison(operator=operator, left=Reference(variable=name), right=Constant(value=number)):
            return (
                f"{name} {operator} {shown(number, _calendar(network, name)) if _calendar(network, name) else number}"
            )
    return str(condition)


def _flatter(condition: Every | Some) -> list[Condition]:
    """The parts, and instead of a part that is joined by the same word its own: the same, a level less deep."""
    kind = type(condition)
    return [one for part in condition.parts for one in (part.parts if isinstance(part, kind) else (part,))]


def _calendar(network: Network, name: str) -> str:
    """Whether a variable is a day or a time of day."""
    domains = [node.domain for node in network.variants(name)]
    return domains[0].calendar if domains and isinstance(domains[0], Interval) else ""


def _parts(condition: Condition) -> list[Condition]:
    if isinstance(condition, Every):
        return [inner for part in condition.parts for inner in _parts(part)]
    return [condition]


def rule_of(layout: TableLayout, numbers: bool = True, categories: bool = False) -> str:
    """What is done with several rows of one person, as a clause without an end; each_person looks at the kind of cell.

    >>> from sfumato.lang.spec import RowLimit
    >>> from sfumato.network.tables import TableLayout
    >>> rule_of(TableLayout("visits", False, (), (), (), RowLimit("visits", 3), False))
    'of each person at most 3 rows of visits count, a fair sample of hers'
    """
    table, limit = layout.table, layout.row_limit
    if layout.each_person:
        found = [f"with the mean of all her rows of {table}"] if numbers else []
        if categories:
            of_what = " for categories" if numbers else ""
            found.append(f"with one row of {table} drawn fairly from hers{of_what}")
        return f"each person counts once, {' and '.join(found)}"
    if limit is None:
        return f"each person counts once, with one row of {table} drawn fairly from hers"
    number = "one row" if limit.maximum == 1 else f"at most {limit.maximum} rows"
    verb = "counts" if limit.maximum == 1 else "count"
    which = {
        "sample": "drawn fairly from hers" if limit.maximum == 1 else "a fair sample of hers",
        "first": f"the first by {limit.column}",
        "last": f"the last by {limit.column}",
    }[limit.keep]
    return f"of each person {number} of {table} {verb}, {which}"


def mean_of(network: Network, node: AggregateNode | Node) -> str | None:
    """What a published number is about where people may have several rows; None where no private table feeds it.

    A number per person, one of capped rows and one of all rows differ when people with many rows differ from others;
    only the first two are published, because one person's influence on the third has no bound.
    """
    from sfumato.network.tables import layout_of  # not at the top: the words need no engine

    tables: dict[str, set[bool]] = {}
    for cell in _cells(network, node):
        tables.setdefault(cell.source.table, set()).add(isinstance(cell.domain, Categories))  # type: ignore[union-attr]
    numbered = sorted(set(tables) & network.spec.numbered_tables)
    if numbered:  # such a table is the only one that speaks of these people
        return f"Each row of {' and of '.join(numbered)} is one {_unit(network, node)}, by the author's word."
    rules = [
        rule_of(layout_of(network.spec, table), False in kinds, True in kinds)
        for table, kinds in sorted(tables.items())
    ]
    rules += [
        _looked_at(layout_of(network.spec, table)) for table in sorted({one.table for one in _members(network, node)})
    ]
    if not rules or not isinstance(node, AggregateNode):
        return f"Where a person has several rows: {'; '.join(rules)}." if rules else None
    rows = node.question.rows > 1 and not node.question.counts_persons
    kind = "rows, no more than the limit of each person" if rows else "persons, not rows"
    return f"This number and its interval are about {kind}: {'; '.join(rules)}. {_NO_INTERVAL}"


def _unit(network: Network, node: AggregateNode | Node) -> str:
    """What one of the individuals is called: by the goal of their dataset."""
    named = [one for one in network.spec.datasets if isinstance(node, AggregateNode) and one.name == node.dataset]
    return indicator(goals((named or network.spec.datasets)[0].goal)[0]).split("/", maxsplit=1)[0]


def _members(network: Network, node: AggregateNode | Node) -> list[Member]:
    """The relations of private tables that a condition asks about."""
    members = node.condition.members() if isinstance(node, AggregateNode) else ()
    return [member for member in members if member.table not in network.spec.public_tables]


def _looked_at(layout: TableLayout) -> str:
    """Which rows of a person a condition finds."""
    if layout.row_limit is None:
        return f"a condition looks at all rows of {layout.table}"
    return f"a condition looks at the rows that count: {rule_of(layout)}"


def _range_words(network: Network, cell: Node) -> Iterator[str]:
    from sfumato.network.tables import layout_of

    match cell.domain:
        case Interval(share=share) if share is not None:
            yield f"{cell.name} none, so that bounds are bought for what is summed up"
        case Interval() as domain:
            mean = layout_of(network.spec, cell.source.table).each_person  # type: ignore[union-attr]
            order = " (each row first, then the mean is taken)" if mean else ""
            low, high = (shown(end, domain.calendar) for end in (domain.low, domain.high))
            yield f"{cell.name} from {low} to {high}{order}"
        case Categories() as domain:
            if domain.unknown is not None:
                yield f"{cell.name} one of the declared categories, every other one is {domain.unknown}"
            if domain.fold:
                yield f"{cell.name} a listed word, whatever its capital letters and blanks"


def range_of(network: Network, *nodes: AggregateNode | Node) -> str | None:
    """The declared ranges of the cells behind numbers, and what happens to values outside of them."""
    cells = list(_cells(network, *nodes))
    words = [word for cell in cells for word in _range_words(network, cell)]
    if not words:
        return None
    moved = any(isinstance(cell.domain, Interval) for cell in cells)
    outside = " Numbers outside their range are moved to its nearer end." if moved else ""
    return f"Declared ranges: {'; '.join(words)}.{outside}"


def absent_of(network: Network, *nodes: AggregateNode | Node) -> str | None:
    """What stands for absent or unlisted cells behind numbers, in one sentence."""
    words = [
        f"{cell.name}: {_absence(network, node, cell, network.spec.missing_of(cell.atom))}"
        for node in nodes
        for cell in _cells(network, node)
    ]
    for member in sorted((one for node in nodes for one in _members(network, node)), key=str):
        words += [f"{column} of {member.table}: {_unsaid(listed)}" for column, listed in member.among]
        words += [f"{column} of {member.table}: {_unsaid(None)}" for column, _ in member.matches]
    return f"Cells that are absent or cannot be read: {'; '.join(dict.fromkeys(words))}." if words else None


def _unsaid(listed: tuple[Level, ...] | None) -> str:
    return f"a row without {'one' if listed is None else 'a listed one'} says nothing about its person"


def _absence(network: Network, node: AggregateNode | Node, cell: Node, said: Missing | None) -> str:
    from sfumato.network.tables import layout_of

    layout = layout_of(network.spec, cell.source.table)  # type: ignore[union-attr]
    averaged = layout.each_person and not isinstance(cell.domain, Categories | AnyText)
    if cell.skip:
        if averaged:
            return "such cells take no part in a person's mean; a person is left out only if all of hers are so"
        if isinstance(node, AggregateNode) and node.question.rows > 1 and cell.row_table == node.row_table:
            return "the row is left out, the person's other rows count"
        return "a person is left out if the cell of the row that counts is so"
    return _counted_absence(cell, said, averaged)


def _counted_absence(cell: Node, said: Missing | None, averaged: bool) -> str:
    part = "such cells take no part in a person's mean; if all of hers are so, she is " if averaged else ""
    if said is None or said.rule == "value":
        return f"{part}counted as {_placed(cell)}"
    if isinstance(cell.domain, AnyText):
        return "there are none by the author's word (one would be in no group)"
    return f"there are none by the author's word (one would count as {_placed(cell)})"


def _placed(cell: Node) -> str:
    """What stands for an absent cell; of days a day."""
    number = isinstance(cell.domain, Interval) and cell.domain.calendar and isinstance(cell.missing, int | float)
    return shown(float(cell.missing), cell.domain.calendar) if number else str(cell.missing)  # type: ignore[union-attr,arg-type]


def _cells(network: Network, *nodes: AggregateNode | Node) -> list[Node]:
    """The private cells behind nodes, by name; of several public structures the first stands for all."""
    names = [name for one in nodes for name in (one.parents if isinstance(one, AggregateNode) else (one.name,))]
    found = [variants[0] for name in sorted(_behind(network, names)) if (variants := network.variants(name))]
    return [cell for cell in found if cell.source is not None and not cell.public]


def _with_aggregates(network: Network, names: Iterable[str]) -> list[AggregateNode | Node]:
    """These nodes and the aggregates they are computed from."""
    sums = {one.name: one for one in network.aggregates}
    found: dict[str, AggregateNode | Node] = {}
    for name in names:
        if name in sums:
            found[name] = sums[name]
        elif variants := network.variants(name):
            found[name] = variants[0]
            found |= {other: sums[other] for other in sorted(_behind(network, (name,)) & set(sums))}
    return list(found.values())


def _behind(network: Network, names: Iterable[str]) -> set[str]:
    met: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in met:
            met.add(name)
            waiting += [parent for variant in network.variants(name) for parent in variant.parents]
    return met
