"""Building the network: one representative per public structure, grounded, checked, put together.

In:   a Spec and its public tables.
Out:  Network. Its size depends on the study and on the public structures, never on the number of individuals.
Not here: nodes of one grounding (network/nodes.py), aggregates (network/gather.py), groups (network/structure.py).

Lifting is sound only if nobody's variables depend on who else there is. Where the form of the clauses does not show
that (lang/alone.py), every structure is grounded a second time with one more symbolic individual beside the first, and
once more beside the representatives of all other structures; nothing about the first may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar

from sfumato.lang.alone import stand_alone
from sfumato.lang.derivations import Dependency, DpRv, Grounding, Publication
from sfumato.lang.spec import Dataset, Spec
from sfumato.lang.term import Compound, Position, Term, Variable, called, indicator, match, show, substitute, walk
from sfumato.network.aggregate import AggregateNode
from sfumato.network.apart import marked_apart
from sfumato.network.cells import cell_of
from sfumato.network.gather import aggregate_bounds, aggregates_of
from sfumato.network.homes import check_homes
from sfumato.network.known import with_known
from sfumato.network.members import check_members
from sfumato.network.network import Group, Network, Node
from sfumato.network.nodes import Draft, Mask, drafts, finish, masked, mentions
from sfumato.network.observations import is_own
from sfumato.network.owners import with_owners
from sfumato.network.peers import with_peers
from sfumato.network.refusal import refusal
from sfumato.network.shown import Lines, check_shown
from sfumato.network.structure import Alike, alike, fed_datasets, individuals_of, public_facts
from sfumato.network.tables import TableRoom, naming_columns
from sfumato.network.told_in_public import public_digests, structural_tables
from sfumato.network.zones import observed_by, zones_of

__all__ = ["build"]

_Said = TypeVar("_Said")


@dataclass(frozen=True)
class _Pass:
    """One grounding: whose, with which mask, and its drafts split into the representative's and the shared."""

    dataset: Dataset | None
    alike: Alike
    symbol: Term | None
    grounding: Grounding
    mask: Mask
    own: Mapping[str, Draft]
    shared: Mapping[str, Draft]

    def named(self, term: Term) -> str:
        """What a term is called where the mask stands for the individual."""
        return show(masked(term, self.mask))

    def observed(self) -> list[DpRv]:
        return [DpRv(e.requirement, masked(e.variable, self.mask), e.position) for e in self.grounding.observed]

    def publications(self) -> list[Publication]:
        return [replace(entry, what=masked(entry.what, self.mask)) for entry in self.grounding.publications]

    def personal(self) -> list[tuple[Term, str]]:
        return [(masked(person, self.mask), self.named(cell)) for person, cell in self.grounding.personal]

    def instances(self) -> list[tuple[str, str]]:
        return [(dataset, self.named(cell)) for dataset, _, cell in self.grounding.instances]

    def exact(self) -> list[tuple[str, str]]:
        """(observer, variable) of observe and reveal lines, but for one's own."""
        others = [one for one in self.grounding.observations if not is_own(one)]
        return [(called(one.observer), self.named(one.variable)) for one in others]


def build(spec: Spec, tables: Mapping[str, Any]) -> Network:
    """The network of a study; see Network.from_spec."""
    return replace(_built(spec, tables), given=spec, public=public_digests(spec, tables))


def _built(spec: Spec, tables: Mapping[str, Any]) -> Network:
    spec = with_owners(spec, tables)
    people = individuals_of(spec)
    _check_owners(spec, people)
    check_homes(spec)
    with TableRoom(tables, structural_tables(spec), naming=naming_columns(spec)) as room:
        check_members(room, spec)
        spec = with_peers(spec, room)
        _check_peers(spec)
        facts = public_facts(room, spec, people)
        structures = [(dataset, alike(room, spec, dataset)) for dataset in fed_datasets(spec)]
    masks = _mask_names(spec.datasets)
    passes: list[_Pass] = []
    for dataset, kinds in structures:
        own = [_ground(spec, facts, dataset, kind, masks) for kind in kinds]
        for done in own:
            _check_alone(spec, facts, done, masks[dataset.name])
        _check_among_others(spec, facts, own, masks[dataset.name])
        check_shown(dataset, (Lines(done.own, done.observed(), done.publications()) for done in own))
        passes += own
    passes = passes or [_ground(spec, facts, None, Alike(None, ()), masks)]
    return with_known(_assemble(spec, passes, masks), tables)


def _check_peers(spec: Spec) -> None:
    """Both bound how many rows hold one person, each in its own way: together nothing is proved."""
    if spec.owners and spec.peers:
        raise refusal(
            spec.owners[0].position,
            "Things with owners and variables that hold other people's cells are not planned together.",
            "Write two studies.",
        )


def _check_owners(spec: Spec, people: frozenset[str]) -> None:
    """A row of a private table belongs to one individual: a second one would be moved by it and pay nothing."""
    owners: dict[str, dict[tuple[str, str], None]] = {}
    for column in spec.columns:
        predicate = indicator(column.atom)
        if predicate in people and column.table not in spec.public_tables:
            found = owners.setdefault(column.table, {})
            found[column.name, predicate] = None
            if len(found) > 1:
                names = " and ".join(f"{name} ({predicate})" for name, predicate in found)
                raise refusal(
                    column.position,
                    f"Rows of {column.table} belong to several individuals: {names} identify one each.",
                    "Keep one of them as an individual of a dataset and give the other a kind of its own. If who "
                    "belongs to whom is public, put it into a public table and say for each owner what is theirs: "
                    "instance_rv(patients, P, cost(V)) :- seen(V, P, D).",
                )


def _check_nobodys(nodes: Iterable[Node]) -> None:
    """What belongs to nobody is read by everybody without noise, so it may only come from public tables."""
    for node in nodes:
        if node.source is not None and not node.public:
            raise refusal(
                node.source.position,
                f"{node.name} belongs to nobody and is a cell of the private table {node.source.table}: no noise "
                "protects whoever's row it stands in.",
                f"Declare public({node.source.table}) if everybody may know it, or make it a variable of individuals "
                "and aggregate it.",
            )


def _mask_names(datasets: Sequence[Dataset]) -> dict[str, Variable]:
    """The variable that stands for an individual in names: the dataset's own, told apart when two use the same."""
    names: dict[str, Variable] = {}
    for dataset in datasets:
        taken = dataset.variable in {variable.name for variable in names.values()}
        names[dataset.name] = Variable(f"{dataset.variable}_{dataset.name}" if taken else dataset.variable)
    return names


def _written_individuals(spec: Spec) -> tuple[Term, ...]:
    """People the study itself names in facts, such as patient(uma)."""
    found: dict[Term, None] = {}
    for dataset in spec.datasets:
        for clause in spec.clauses:
            if clause.body is None and (bound := match(dataset.goal, clause.head)):
                person = bound[dataset.variable]
                if isinstance(person, Compound):
                    found[person] = None
    return tuple(found)


def _facts_for(dataset: Dataset, kind: Alike, symbol: Term) -> list[Term]:
    binding = {dataset.variable: symbol}
    return [substitute(dataset.goal, binding), *(substitute(fact, binding) for fact in kind.facts)]


def _ground(
    spec: Spec, facts: Sequence[Term], dataset: Dataset | None, kind: Alike, masks: Mapping[str, Variable]
) -> _Pass:
    symbol = spec.symbolic(dataset.name) if dataset else None
    extra = _facts_for(dataset, kind, symbol) if dataset and symbol else []
    grounding = spec.ground((*facts, *extra))
    mask: Mask = {symbol: masks[dataset.name]} if dataset and symbol else {}
    return _split(spec, dataset, kind, symbol, grounding, mask)


def _split(
    spec: Spec, dataset: Dataset | None, kind: Alike, symbol: Term | None, grounding: Grounding, mask: Mask
) -> _Pass:
    persons = (symbol,) if symbol is not None else _written_individuals(spec)
    _check_of_all(dataset, symbol, grounding, mask)
    names = _summaries(grounding, mask)
    everything = drafts(spec, grounding, mask, names)
    own: dict[str, Draft] = {}
    shared: dict[str, Draft] = {}
    for name, draft in everything.items():
        (own if mentions(draft.term, persons) else shared)[name] = draft
    _check_directions(own, shared, names)
    return _Pass(dataset, kind, symbol, grounding, mask, own, shared)


def _check_of_all(dataset: Dataset | None, symbol: Term | None, grounding: Grounding, mask: Mask) -> None:
    """An aggregate is one number of many: none is made for each individual, whom it would name."""
    for entry in grounding.aggregates:
        if dataset is not None and symbol is not None and symbol in walk(entry.atom):
            raise refusal(
                entry.position,
                f"{show(masked(entry.atom, mask))} would be an aggregate for each individual of {dataset.name}: a plan "
                "names nobody and does not grow with their number.",
                "Range it over things that are no individuals (:- ward(W)), or take the individual out of its name.",
            )


def _summaries(grounding: Grounding, mask: Mask) -> list[str]:
    """What the aggregates of a grounding are called."""
    return [show(masked(entry.atom, mask)) for entry in grounding.aggregates]


def _check_directions(own: Mapping[str, Draft], shared: Mapping[str, Draft], aggregates: Sequence[str]) -> None:
    for draft in shared.values():
        personal = next((parent for parent in draft.parents if parent in own), None)
        if personal is not None:
            raise refusal(
                draft.position,
                f"{draft.name} belongs to nobody and depends on {personal}, a variable of each individual.",
                "Use an aggregate (count, sum, mean, moment2, histogram): it bounds what one individual contributes.",
            )
    # What is computed from an aggregate is as much everybody's as the aggregate itself, through however many steps.
    everybodys = {*aggregates, *_descendants(shared, aggregates)}
    for draft in own.values():
        summary = next((parent for parent in draft.parents if parent in everybodys), None)
        if summary is not None:
            raise refusal(
                draft.position,
                f"{draft.name} belongs to an individual and depends on {summary}, which depends on all of them.",
                "Publish the aggregate and use it outside, or depend on the individual's own variables only.",
            )


def _check_alone(spec: Spec, facts: Sequence[Term], done: _Pass, mask: Variable) -> None:
    """Ground again with a second symbolic individual of the same structure: the first one must not notice."""
    assert done.dataset is not None
    other = replace(done, symbol=spec.symbolic(done.dataset.name, 2))
    _check_together(spec, facts, (done, other), mask)


def _check_among_others(spec: Spec, facts: Sequence[Term], passes: Sequence[_Pass], mask: Variable) -> None:
    """Ground all representatives at once: nobody may notice what others of another structure bring."""
    named = [done.dataset.name for done in passes if done.dataset is not None]
    symbols = [spec.symbolic(name, number) for number, name in enumerate(named, start=1)]
    if len(passes) > 1:
        beside = [replace(done, symbol=symbol) for done, symbol in zip(passes, symbols, strict=True)]
        _check_together(spec, facts, beside, mask)


def _check_together(spec: Spec, facts: Sequence[Term], passes: Sequence[_Pass], mask: Variable) -> None:
    """Put individuals beside each other, by the symbols of these passes: each has what it has alone, or all refuse."""
    dataset = passes[0].dataset
    assert dataset is not None
    beside = {done.symbol: done for done in passes if done.symbol is not None}
    told = [fact for symbol, done in beside.items() for fact in _facts_for(dataset, done.alike, symbol)]
    if stand_alone(spec, frozenset(map(indicator, told))):
        return
    grounding = spec.ground((*facts, *told))
    _check_related(grounding, dataset, beside.keys(), mask)
    parts = _parts(grounding, beside.keys())
    shared = {name: draft for done in passes for name, draft in done.shared.items()}
    for symbol, done in beside.items():
        part = parts.get(symbol, parts[None])
        moved = _moved(spec, {**done.own, **shared}, part, beside.keys() - {symbol}, {symbol: mask})
        if moved is not None:
            what = f"{moved[0]} depends on which other individuals {dataset.name} has."
            raise refusal(moved[1], what, _way_out(dataset))


def _way_out(dataset: Dataset) -> str:
    return f"A variable may depend on one {dataset.adjacency.unit} alone; use an aggregate for what concerns many."


def _named(term: Term, people: Set[Term]) -> list[Term]:
    """Those of these individuals whom a term names."""
    return [one for one in dict.fromkeys(walk(term)) if one in people]


def _check_related(grounding: Grounding, dataset: Dataset, people: Set[Term], mask: Variable) -> None:
    for variable in grounding.variables:
        met = _named(variable, people)
        if len(met) > 1:
            shown = show(masked(variable, {**dict.fromkeys(met, Variable("Other")), met[0]: mask}))
            raise refusal(dataset.position, f"{shown} relates two individuals of {dataset.name}.", _way_out(dataset))


def _parts(grounding: Grounding, people: Set[Term]) -> dict[Term | None, Grounding]:
    """Of each individual what names it, and what names nobody; under None what names nobody alone."""
    variables: dict[Term | None, list[Term]] = {None: []}
    dependencies: dict[Term | None, list[Dependency]] = {None: []}
    for variable in grounding.variables:
        variables.setdefault(next(iter(_named(variable, people)), None), []).append(variable)
    for one in grounding.dependencies:
        dependencies.setdefault(next(iter(_named(one.child, people)), None), []).append(one)
    return {
        who: replace(
            grounding,
            variables=tuple(dict.fromkeys((*variables.get(who, ()), *variables[None]))),
            dependencies=tuple(dict.fromkeys((*dependencies.get(who, ()), *dependencies[None]))),
        )
        for who in (None, *people)
    }


def _moved(
    spec: Spec, before: Mapping[str, Draft], part: Grounding, others: Set[Term], mask: Mask
) -> tuple[str, Position | None] | None:
    """A node that was there `before` and that others change, or that they bring, and where it is declared; or None."""
    crossing = next((d for d in part.dependencies if any(_named(one, others) for one in (*d.parents, d.cpf))), None)
    if crossing is not None:
        return show(masked(crossing.child, mask)), crossing.position
    again = drafts(spec, part, mask, _summaries(part, mask))
    moved = next(chain(_not_in(before, again), _not_in(again, before)), None)
    return None if moved is None else (moved.name, moved.position)


def _not_in(known: Mapping[str, Draft], drafted: Mapping[str, Draft]) -> Iterator[Draft]:
    """Drafts that are not known, or known otherwise."""
    return (one for name, one in drafted.items() if name not in known or not _are_alike(known[name], one))


def _are_alike(one: Draft, other: Draft) -> bool:
    """Whether two drafts say the same, whichever symbol stands for their individual."""
    return replace(one, term=one.atom) == replace(other, term=other.atom)


def _assemble(spec: Spec, passes: Sequence[_Pass], masks: Mapping[str, Variable]) -> Network:
    early, late = _merged(passes)
    shared = finish(early, {}, {}, "global")
    _check_nobodys(shared.values())
    groups = [group for done in passes for group in _groups(spec, done, shared)]
    declared = [entry for done in passes for entry in done.grounding.aggregates]
    aggregates = aggregates_of(spec, declared, groups, masks, tuple(shared.values()))
    aggregates = aggregates if spec.centres else marked_apart(aggregates, groups)
    after = finish(late, shared, {node.name: aggregate_bounds(node) for node in aggregates}, "global")
    _check_nobodys(after.values())
    _check_common(after, shared, groups, aggregates)
    network = Network(spec, tuple(groups), (*shared.values(), *after.values()), aggregates, ())
    return _with_zones(network, passes)


def _check_common(
    after: Mapping[str, Node], shared: Mapping[str, Node], groups: Sequence[Group], aggregates: Sequence[AggregateNode]
) -> None:
    """An aggregate of random variables is read as a number, its expectation: beside another that varies with the same
    shared draw, or beside that draw, the expectation of neither would do."""
    forms: dict[str, list[Node | AggregateNode]] = {node.name: [node] for node in (*shared.values(), *after.values())}
    for node in (*aggregates, *(node for group in groups for node in group.nodes)):
        forms.setdefault(node.name, []).append(node)
    known: dict[str, frozenset[str]] = {}

    def drawn_behind(name: str) -> frozenset[str]:
        """The random variables of nobody that a node varies with."""
        if name not in known:
            known[name] = frozenset()
            own = {name} if name in shared and shared[name].drawn is not None else set()
            parents = {parent for form in forms.get(name, ()) for parent in form.parents}
            known[name] = frozenset(own).union(*(drawn_behind(parent) for parent in sorted(parents)))
        return known[name]

    for node in after.values():
        met: dict[str, str] = {}
        for parent in node.parents:
            for draw in sorted(drawn_behind(parent)):
                first = met.setdefault(draw, parent)
                if first != parent:
                    raise refusal(
                        node.position,
                        f"{node.name} is computed from {first} and {parent}, which vary together with {draw}: an "
                        "aggregate of random variables is read as its expectation, and that of both at once is another "
                        "number.",
                        f"Make what is multiplied or compared a variable of each individual and aggregate it, or take "
                        f"{draw} out of one of the two.",
                    )


def _groups(spec: Spec, done: _Pass, shared: Mapping[str, Node]) -> list[Group]:
    name = done.dataset.name if done.dataset else (spec.datasets[0].name if spec.datasets else None)
    nodes = finish(done.own, shared, {}, "individual")
    _check_cells(spec, done, nodes.values())
    if not nodes and done.symbol is None:
        return []
    whose = done.grounding.personal
    own = dict.fromkeys(show(masked(cell, done.mask)) for person, cell in whose if person == done.symbol)
    return [
        Group(
            name,
            done.alike.facts,
            done.symbol,
            tuple(nodes.values()),
            done.alike.key,
            _known(done, nodes),
            tuple(one for one in own if one in nodes),
        )
    ]


def _known(done: _Pass, nodes: Mapping[str, Node]) -> tuple[tuple[str, str], ...]:
    """Who knows which cells of these individuals exactly: by public facts alone, so it may shape the plan."""
    if done.symbol is None:
        return ()
    return tuple(dict.fromkeys((who, cell) for who, cell in done.exact() if cell in nodes and nodes[cell].reads_data))


def _check_cells(spec: Spec, done: _Pass, nodes: Iterable[Node]) -> None:
    """A cell of an individual must be found by the individual's identifier."""
    people = individuals_of(spec)
    for node in nodes:
        if node.source is not None and cell_of(spec, node, people).person is None and done.symbol is not None:
            raise refusal(
                node.source.position,
                f"Nothing in {node.source.table} says whose {node.name} a row holds.",
                f"Declare column({node.source.table}, Name, {done.dataset.goal if done.dataset else 'person(P)'}).",
            )


def _merged(passes: Sequence[_Pass]) -> tuple[dict[str, Draft], dict[str, Draft]]:
    """The shared variables of all groundings, which must agree; those computed from aggregates by themselves."""
    found: dict[str, Draft] = {}
    for done in passes:
        for name, draft in done.shared.items():
            if found.setdefault(name, draft) != draft:
                raise refusal(
                    draft.position,
                    f"{name} belongs to nobody and its CPF depends on which individuals there are.",
                    "Use an aggregate.",
                )
    late = _descendants(found, (name for done in passes for name in _summaries(done.grounding, done.mask)))
    return {n: d for n, d in found.items() if n not in late}, {n: d for n, d in found.items() if n in late}


def _descendants(found: Mapping[str, Draft], roots: Iterable[str]) -> set[str]:
    reached = set(roots)
    grown = True
    while grown:
        new = {name for name, draft in found.items() if name not in reached and reached & set(draft.parents)}
        reached |= new
        grown = bool(new)
    return reached & found.keys()


def _with_zones(network: Network, passes: Sequence[_Pass]) -> Network:
    nodes = {node.name: node for node in network.nodes}
    variants = {name: network.variants(name) or (node,) for name, node in nodes.items()}
    observed, publications = _once(passes, _Pass.observed), _once(passes, _Pass.publications)
    zones = tuple(
        zones_of(r, observed_by(r, observed, publications, nodes), variants) for r in network.spec.requirements
    )
    exact = _once(passes, _Pass.exact)
    shown = {*chain.from_iterable(one.observed for one in zones), *(variable for _, variable in exact)}
    _check_skipped(network, shown | {show(one.group) for one in network.spec.fairness})
    return replace(
        network,
        zones=zones,
        publications=publications,
        personal=_once(passes, _Pass.personal),
        instances=_once(passes, _Pass.instances),
        exact=exact,
    )


def _check_skipped(network: Network, shown: Set[str]) -> None:
    """Only sums can leave people out, in whichever class their formula reads a cell that may be absent.

    A study alone does not show that (lang/cells.py): who is in which class, public tables say.
    """
    for group in network.groups:
        for name in sorted(shown & {node.name for node in group.nodes}):
            for cell in sorted(group.skipped(name)):
                said = ", ".join(show(fact) for fact in group.structure)
                whose = f"{name} of people with {said} is" if said else f"{name} is"
                raise refusal(
                    network.node(name).position,
                    f"People without {cell} are skipped, and {whose} computed from it: what is shown of it, or made "
                    "from whole rows, has a row for everybody.",
                    f"Write missing({cell}, Value), or missing({cell}, never) if it is certain that no such cell is "
                    "absent, in place of skip; or publish an aggregate, which can leave people out.",
                )


def _once(passes: Sequence[_Pass], said: Callable[[_Pass], Iterable[_Said]]) -> tuple[_Said, ...]:
    """What the groundings say, every thing once."""
    return tuple(dict.fromkeys(one for done in passes for one in said(done)))
