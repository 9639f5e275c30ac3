"""What a unit consists of, held against what is published: instance_rv, and datasets that divide the same people.

In:   a Network, the Requests of its study.
Out:  a PlanError where something published rests on what its requirement does not protect.
Not here: which datasets are parts of which (lang/divisions.py).
Proof: docs/proofs/units.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sfumato.errors import PlanError
from sfumato.lang.reader import goals
from sfumato.lang.term import Compound, Term, Variable, indicator, match, show, substitute, variables
from sfumato.lang.vocabulary import AGGREGATES
from sfumato.lang.whose import Division
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network, Node
from sfumato.network.parts import check_parts
from sfumato.network.structure import identity_of
from sfumato.plan.reads import read_by
from sfumato.questions.registry import QUESTIONS

if TYPE_CHECKING:
    from sfumato.plan.request import Request

__all__ = ["cells_behind", "check_units"]


def check_units(network: Network, requests: Iterable[Request]) -> None:
    """Every publication rests on cells of its own unit, and every cell belongs to one."""
    asked = tuple(requests)
    _check_observers(network)
    _check_things(network)
    whose = _owners(network)
    check_parts(network)
    _check_personal(network)
    for request in asked:
        _check_request(network, request, whose)


def _check_request(network: Network, request: Request, whose: Mapping[str, str]) -> None:
    part = next((one for one in network.spec.divisions if one.name == request.requirement.division), None)
    if part is not None and part.condition:
        _check_group(network, request, part)
    of = request.requirement.dataset if part is None else part.name
    listed = {cell for dataset, cell in network.instances if dataset == of}
    if listed:
        _check_cells(network, request, part, frozenset(listed), whose)


def _owners(network: Network) -> Mapping[str, str]:
    """The part each cell belongs to; a cell of two parts would be under two promises at once."""
    names = {part.name for part in network.spec.divisions}
    found: dict[str, str] = {}
    for dataset, cell in network.instances:
        other = found.setdefault(cell, dataset) if dataset in names else dataset
        if other != dataset:
            raise PlanError(
                f"{cell} belongs to {other} and to {dataset}: what rests on it would have to keep both promises at "
                "once. Give it to one of them, or use one dataset for both. Nothing was planned and nothing was spent."
            )
    return found


def _check_things(network: Network) -> None:
    """What owners are said to have are cells of the things that their promises are planned on."""
    for owner in network.spec.owners:
        for group in network.groups:
            cells = [node.name for node in group.nodes if match(owner.cell, node.atom) is not None]
            if cells and group.dataset != owner.whole:
                raise PlanError(
                    f"{owner.position}{show(owner.cell)} of {owner.dataset} is a cell of individuals of "
                    f"{group.dataset}, and {owner.table} says who owns which of {owner.whole}. Name the column "
                    f"{owner.thing} after the individuals that have {show(owner.cell)}, or take the instance_rv line "
                    "out. Nothing was planned and nothing was spent."
                )


def _check_personal(network: Network) -> None:
    """What belongs to a person is protected from everybody else: a list of what is protected must have it."""
    listed = {cell for _, cell in network.instances}
    for group in network.groups if listed else ():
        for name in group.personal:
            node = group.node(name)
            if node is not None and node.reads_data and name not in listed:
                raise PlanError(
                    f"{name} is personal and belongs to no instance of a dataset: it would be unprotected. Write "
                    f"instance_rv(Dataset, Instance, {name}). Nothing was planned and nothing was spent."
                )


def _check_observers(network: Network) -> None:
    """Whoever colludes or knows something does so whatever the dataset is called; parts are not told apart for them."""
    spec = network.spec
    divided = {one.observer.rsplit(" (", 1)[0] for one in spec.requirements if one.division is not None}
    named = {observer for one in spec.collusions for observer in one.observers} | {who for who, _ in network.exact}
    if divided & named:
        who = ", ".join(sorted(divided & named))
        raise PlanError(
            f"{who}: a collude, observe or reveal line speaks of an observer whose promises are about parts of the "
            "same people. Use one dataset for these people, or take the line out. Nothing was planned and nothing was "
            "spent."
        )


def _check_cells(
    network: Network, request: Request, part: Division | None, listed: frozenset[str], whose: Mapping[str, str]
) -> None:
    unit = part.name if part else request.requirement.dataset
    for cell in cells_behind(network, read_by(network, request)):
        if cell not in listed:
            other = f"it belongs to {whose[cell]}" if cell in whose else "it belongs to no instance of it"
            raise PlanError(
                f"{request.position}{request.name} rests on {cell}, and {show(request.requirement.name)} is about "
                f"{unit}: {other}, so nothing would be promised about it. Write instance_rv({unit}, Instance, {cell}), "
                f"or publish {request.name} under a requirement on a dataset that has it. Nothing was planned and "
                "nothing was spent."
            )
    tables = _tables_behind(network, read_by(network, request))
    if part is not None and tables:
        raise PlanError(
            f"{request.position}{request.name} counts rows of {', '.join(sorted(tables))}, which belong to the whole "
            f"person and to no part of it. Publish it under a requirement on all of the person's data. Nothing was "
            "planned and nothing was spent."
        )


def _check_group(network: Network, request: Request, part: Division) -> None:
    """A statistic of a group counts people of that group alone, by the study's own words."""
    nodes = [node for node in network.aggregates if node.name in _behind(network, read_by(network, request))]
    if not request.of_sums or not nodes:
        raise PlanError(
            f"{request.position}{request.name} is no statistic, and {show(request.requirement.name)} is about the "
            f"group {part.name}. Publish statistics of the group, or use one dataset for everybody. Nothing was "
            "planned and nothing was spent."
        )
    for node in nodes:
        said_by, people = _goals(network, node), identity_of(network.spec.dataset(node.dataset))
        for wanted in part.condition:
            _check_wanted(part, wanted)
            if not said_by or not all(_contains(goal, wanted, part, people) for goal in said_by):
                said = " and ".join(map(show, part.condition))
                raise PlanError(
                    f"{request.position}{request.name} counts people outside of {part.name}: the goal of {node.name} "
                    f"does not say {said}. Write it into the goal. Nothing was planned and nothing was spent."
                )


def _check_wanted(part: Division, wanted: Term) -> None:
    """A condition of a group is about its individual alone: goals are compared with it word for word."""
    if variables(wanted) != (Variable(part.variable),):
        raise PlanError(
            f"{part.position}: the group {part.name} are the people with {show(wanted)}, which is about more than the "
            "individual: whether a goal says the same cannot be told. Write a condition of the individual alone, "
            "such as in(P, vip), with a column of the public table for what the group is. Nothing was planned and "
            "nothing was spent."
        )


def _goals(network: Network, node: AggregateNode) -> list[Term]:
    """The goals of all clauses that may have made it: of several heads that fit, any may be its own."""
    found = []
    for clause in network.spec.clauses:
        if indicator(clause.head) in AGGREGATES and match(clause.head.arguments[0], node.atom) is not None:
            places = QUESTIONS[clause.head.functor].form.places(len(clause.head.arguments))
            found.append(dict(zip(places, clause.head.arguments, strict=True))["goal"])
    return found


def _contains(goal: Term, wanted: Term, part: Division, people: str) -> bool:
    """Whether a conjunction has this goal of its own individual: whom its first goal of `people` names, wherever."""
    parts = goals(goal)
    named = [arguments[0] for part in parts if indicator(part) == people and (arguments := _arguments(part))]
    individual = next((one for one in named if isinstance(one, Variable)), None)  # as network/gather.py has it
    return individual is not None and substitute(wanted, {part.variable: individual}) in parts


def _arguments(term: Term) -> tuple[Term, ...]:
    return term.arguments if isinstance(term, Compound) else ()


# ── what lies behind ─────────────────────────────────────────────────────────────────────────────────────────────────


def _forms(network: Network, name: str) -> list[Node | AggregateNode]:
    return [*network.variants(name), *(node for node in network.aggregates if node.name == name)]


def _behind(network: Network, names: Iterable[str]) -> dict[str, list[Node | AggregateNode]]:
    found: dict[str, list[Node | AggregateNode]] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _forms(network, name)
            read = [form for form in found[name] if not (isinstance(form, Node) and form.source is not None)]
            waiting += [parent for form in read for parent in form.parents]
    return found


def cells_behind(network: Network, names: Iterable[str]) -> Iterator[str]:
    """The private cells that these nodes are computed from."""
    for name, forms in _behind(network, names).items():
        if any(isinstance(form, Node) and form.reads_data for form in forms):
            yield name


def _tables_behind(network: Network, names: Iterable[str]) -> set[str]:
    """Private tables whose rows decide who counts."""
    sums = [form for forms in _behind(network, names).values() for form in forms if isinstance(form, AggregateNode)]
    tables = {member.table for node in sums for member in node.condition.members()}
    return tables - network.spec.public_tables
