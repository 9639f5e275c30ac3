"""What is asked for: publications by requirement, in terms of nodes.

In:   a Network.
Out:  Requests: observer, budget, nodes, weight, what was preferred or forbidden; the templates they need.
Not here: how they are answered (plan/make.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from sfumato.core import Adjacency, ApproxDP, Categories, Guarantee, Pufferfish, PureDP
from sfumato.core.domain import Scalar
from sfumato.errors import PlanError
from sfumato.lang.derivations import Publication
from sfumato.lang.inside import requirements_here
from sfumato.lang.spec import Forbidden, Nonnegative, Preference, PrivacyRequirement, Whole
from sfumato.lang.term import Compound, Position, Term, indicator, match, show
from sfumato.lang.vocabulary import published_kind
from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import Bounds
from sfumato.network.expression import Expression
from sfumato.network.network import Group, Network, Node
from sfumato.network.zones import seen
from sfumato.plan.cuts import topological_order
from sfumato.plan.discrete import SampleCandidate, SampleLaw, is_finite, sample_candidate, sample_law
from sfumato.plan.readers import are_apart
from sfumato.plan.template import Template
from sfumato.plan.units import check_units
from sfumato.questions.question import Question

__all__ = [
    "Request",
    "as_acted",
    "asked_of",
    "is_pure",
    "questions_of",
    "requests_of",
    "sample_answers",
    "shared_template",
    "sums_behind",
    "template_of",
]


@dataclass(frozen=True)
class Request:
    """One publication towards one observer. `nodes` are what it shows, `term` is how the study writes it."""

    name: str
    term: Term
    requirement: PrivacyRequirement
    nodes: tuple[str, ...]
    level: str  # "individual", "aggregate", or "other" for tables, classifiers and channels
    weight: float = 1.0
    preferred: tuple[str, ...] = ()
    forbidden: frozenset[str] = frozenset()
    position: str = ""
    sampled: bool = False  # a random answer is asked for, not an expectation
    either: bool = False  # its answer may be drawn itself as well as read off noisy sums: the plan says which
    bound: bool = False  # it is drawn because the study prefers that: noisy sums would do

    @property
    def observer(self) -> str:
        return self.requirement.observer

    @property
    def of_individuals(self) -> bool:
        """Whether it shows one value for each individual."""
        return self.level == "individual"

    @property
    def of_sums(self) -> bool:
        """Whether it shows sums, or what is computed from them."""
        return self.level == "aggregate"

    @property
    def is_act(self) -> bool:
        """Whether one random act of its own makes it: a table, a model, a channel."""
        return self.level == "other"

    @property
    def adjacency(self) -> Adjacency:
        adjacency = self.requirement.guarantee.adjacency
        if adjacency is None:
            raise PlanError(f"{self.position}{self.name}: the requirement does not say who is protected.")
        return adjacency


def is_pure(guarantee: Guarantee) -> bool:
    """Whether a promise has no δ."""
    return isinstance(guarantee, PureDP) or (isinstance(guarantee, ApproxDP | Pufferfish) and guarantee.delta_ == 0)


def asked_of(node: AggregateNode) -> Question:
    """The question of a node, or a PlanError if no noise could hide what one individual adds to it."""
    question, place = node.question, _line_of(node.position)
    if not question.bounded:
        raise PlanError(
            f"{place}{node.name}: a {question.form.functor} needs bounded contributions, and {node.unbounded}. Declare "
            "range(...) for what is aggregated, or guard the expression with clip(X, Low, High). Nothing was planned "
            "and nothing was spent."
        )
    if refused := question.refusal():
        raise PlanError(f"{place}{node.name}: {refused}. Nothing was planned and nothing was spent.")
    return question


def requests_of(network: Network) -> tuple[Request, ...]:
    """Every publish(…), and every dp_rv that no publish shows, each towards its own observer."""
    requests: dict[tuple[str, str], Request] = {}
    for requirement in requirements_here(network.spec):
        asked = [entry for entry in network.publications if entry.requirement == requirement.name]
        shown: set[str] = set()
        for entry in asked:
            request = _request(network, requirement, entry)
            shown.update(request.nodes)
            key = (request.name, show(requirement.name))
            requests[key] = _joined(requests[key], request) if key in requests else request
        for node in sorted(network.zone(requirement.name).observed - shown):
            entry = Publication(node, network.node(node).atom, requirement.name)
            requests[node, show(requirement.name)] = _request(network, requirement, entry)
    apart = _datasets_apart(network, tuple(requests.values()))
    requests = {key: _by_its_ways(request, network, apart) for key, request in requests.items()}
    _check_apart(network, tuple(requests.values()))
    if not requests:
        raise PlanError("The study publishes nothing. Add publish(Name, What, Requirement) or dp_rv(Requirement, RV).")
    return tuple(requests.values())


def _datasets_apart(network: Network, requests: Sequence[Request]) -> set[str]:
    """The datasets of which answers may be drawn: acts of several readers add up, noisy sums are refinements of each
    other, so not where readers collude, and not over centres."""
    own: dict[str, list[Request]] = {}
    for request in requests:
        own.setdefault(request.requirement.dataset, []).append(request)
    return set() if network.spec.centres else {name for name, asked in own.items() if are_apart(network, asked)}


def _by_its_ways(request: Request, network: Network, apart: Set[str]) -> Request:
    """The request as an act of its own, where its answer has to be drawn; marked, where it may be."""
    question = _asked(request, network)
    if question is not None and question.only_drawn:
        return _only_drawn(request, network, question)
    if question is None or request.requirement.dataset not in apart:
        return request
    if not question.may_be_drawn or question.drawn_way in request.forbidden:
        return request
    if question.drawn_way in request.preferred:
        return replace(request, level="other", bound=True)
    return replace(request, either=not request.preferred)


def as_acted(requests: Sequence[Request], acts: Iterable[tuple[str, str]]) -> tuple[Request, ...]:
    """The requests with those drawn themselves that may be and are among `acts`, (observer, name)."""
    drawn = set(acts)
    return tuple(
        replace(one, level="other") if one.either and (one.observer, one.name) in drawn else one for one in requests
    )


def _only_drawn(request: Request, network: Network, question: Question) -> Request:
    if network.spec.centres and (refused := question.apart_refusal(request.requirement.dataset)):
        raise PlanError(f"{request.position}{request.name}: {refused}. Nothing was planned and nothing was spent.")
    return replace(request, level="other")


def _asked(request: Request, network: Network) -> Question | None:
    """The question, where a publication is the answer to one."""
    found = {node.name: node.question for node in network.aggregates if node.name in request.nodes}
    if len(request.nodes) > 1 and any(question.only_drawn for question in found.values()):
        raise PlanError(
            f"{request.position}{request.name} shows several questions under one name, of which each finds out more "
            "than a number (groups, bounds). Give each its own name and clause. Nothing was planned and nothing was "
            "spent."
        )
    return found.get(request.nodes[0]) if request.of_sums and len(request.nodes) == 1 else None


def sums_behind(request: Request, network: Network) -> list[str]:
    """The aggregates, and the private cells of nobody, that a publication is computed from."""
    shared = {node.name: node for node in network.shared}
    sums = {node.name for node in network.aggregates}
    found, waiting, met = [], list(request.nodes), set()
    while waiting:
        name = waiting.pop()
        if name in met:
            continue
        met.add(name)
        node = shared.get(name)
        if name in sums or node is None or (node.source is not None and not node.public):
            found.append(name)
        else:
            waiting += node.inputs
    return found


def questions_of(network: Network, requests: Iterable[Request]) -> dict[str, Question]:
    """What the sums behind these publications ask."""
    asked = [request for request in requests if request.of_sums]
    needed = {name for request in asked for name in sums_behind(request, network)}
    return {node.name: node.question for node in network.aggregates if node.name in needed}


def _check_apart(network: Network, requests: tuple[Request, ...]) -> None:
    """What would mix up two publications, two datasets or two people is refused."""
    seen: dict[tuple[str, str], Request] = {}
    for request in requests:
        other = seen.setdefault((request.name, request.observer), request)
        if other is not request:
            raise PlanError(
                f"{request.position}{request.observer} sees two publications called {request.name}, under two "
                "requirements. Give them different names. Nothing was planned and nothing was spent."
            )
        _check_named(network, request)
        if request.of_individuals:
            _check_rows(network, request)
            _check_known(network, request)
    check_units(network, requests)
    _check_columns(network)


def _check_named(network: Network, request: Request) -> None:
    """Rows without an identifier are known by their place in the file, and that place is nobody's to publish."""
    goal = network.spec.dataset(request.requirement.dataset).goal
    homes = {column.table for column in network.spec.columns if indicator(column.atom) == indicator(goal)}
    kind = published_kind(request.term)
    listed = request.of_individuals or (kind is not None and kind.row_by_row)
    if listed and homes & network.spec.numbered_tables:
        raise PlanError(
            f"{request.position}{request.name} shows a row for each individual, and these have no identifier: the "
            "place of a row in its file may tell what stands in it. Give the table an identity column, or publish "
            "statistics or a model. Nothing was planned and nothing was spent."
        )


def _check_rows(network: Network, request: Request) -> None:
    """One value per individual needs one row per individual behind it."""
    spec = network.spec
    goal = spec.dataset(request.requirement.dataset).goal
    if not isinstance(goal, Compound) or indicator(goal) not in spec.table_predicates:
        raise PlanError(
            f"{request.position}{request.name} shows one value per individual of {request.requirement.dataset}, whose "
            "members the study lists itself. Give them a source and an identity column. Nothing was planned."
        )
    for group in network.groups:
        template = template_of(network, group, request.nodes)
        for name in template.order if template is not None else ():
            node = group.node(name)
            if node is not None and node.row_table is not None:
                raise PlanError(
                    f"{request.position}{request.name} shows {name}, of which one individual may have several rows in "
                    f"{node.row_table}. Publish an aggregate of it, or keep one row: write "
                    f"rows_per_person({node.row_table}, 1, sample). Nothing was planned and nothing was spent."
                )


def _check_known(network: Network, request: Request) -> None:
    """No promise is stated about what its observer knows exactly."""
    for group in network.groups:
        for name in request.nodes:
            template = template_of(network, group, [name], request.observer)
            if template is not None and template.private and not template.hidden:
                known = ", ".join(sorted(template.observed))
                raise PlanError(
                    f"{request.position}{request.observer} learns {known} exactly, by an observe or reveal line, and "
                    f"with it {name}: {show(request.requirement.name)} cannot promise anything about it. Take "
                    f"{request.name} out (sfumato view gives {request.observer} the exact values), or take the observe "
                    "line out. Nothing was planned and nothing was spent."
                )


def _check_columns(network: Network) -> None:
    """A variable is read from one table: a second one would be left out without a word."""
    tables: dict[str, str] = {}
    for column in network.spec.columns:
        name = indicator(column.atom)
        if name not in network.spec.table_predicates and any(match(column.atom, n.atom) for n in network.nodes):
            other = tables.setdefault(name, column.table)
            if other != column.table:
                raise PlanError(
                    f"{name} is read from {other} and from {column.table}: only one table can feed a variable. Put "
                    "the rows into one table, or use two variables. Nothing was planned and nothing was spent."
                )


def _sampled(what: Term) -> tuple[bool, Term]:
    """Whether one random answer is asked for, and of what."""
    kind = published_kind(what)
    if kind is not None and kind.is_answer and isinstance(what, Compound):
        return True, what.arguments[0]
    return False, what


def _line_of(position: Position | None) -> str:
    """Where a refusal begins: the file and line of what is refused, if it stands in one."""
    return f"{position.file}:{position.line} " if position else ""


def _ways(wishes: Iterable[Preference | Forbidden], publication: str) -> list[str]:
    return [name for one in wishes if one.publication == publication for name in one.strategies]


def _request(network: Network, requirement: PrivacyRequirement, entry: Publication) -> Request:
    spec = network.spec
    known = {node.name: node for node in network.nodes}
    sampled, what = _sampled(entry.what)
    direct = known.get(show(what))
    nodes = (direct.name,) if direct else tuple(sorted(seen(entry.what, known)))
    _check_counts(network, entry, nodes)
    _check_whole(network, entry, nodes)
    level = _level(direct, network) if direct is not None else "other"
    return Request(
        entry.name,
        entry.what,
        requirement,
        nodes,
        level,
        next((weight.value for weight in spec.weights if weight.publication == entry.name), 1.0),
        tuple(_ways(spec.preferences, entry.name)),
        frozenset(_ways(spec.forbidden, entry.name)),
        _line_of(entry.position),
        sampled or (isinstance(direct, Node) and direct.of_individual and is_finite(direct)),
    )


def _line_about(entry: Publication, lines: Iterable[Nonnegative | Whole]) -> Nonnegative | Whole | None:
    return next((one for one in lines if one.publication == entry.name), None)


def _check_counts(network: Network, entry: Publication, nodes: Iterable[str]) -> None:
    """nonnegative(Name) is about counts of cells alone."""
    said = _line_about(entry, network.spec.nonnegative)
    if said is None:
        return
    tables = {node.name for node in network.aggregates if node.question.counts_cells}
    others = [name for name in nodes if name not in tables] or ([] if nodes else [entry.name])
    if others:
        place = _line_of(said.position)
        raise PlanError(
            f"{place}nonnegative({entry.name}): {', '.join(others)} is no table of counts, and only those can be moved "
            "to numbers that are not below 0. Publish the tables under a name of their own, or take the line out. "
            "Nothing was planned and nothing was spent."
        )


def _check_whole(network: Network, entry: Publication, nodes: Iterable[str]) -> None:
    """whole(Name) is about numbers that sum up many individuals."""
    said = _line_about(entry, network.spec.whole)
    own = {node.name for group in network.groups for node in group.nodes}
    numbers = {node.name for node in (*network.aggregates, *network.shared)} - own
    if said is None or (nodes and show(entry.what) in numbers):
        return
    place = _line_of(said.position)
    raise PlanError(
        f"{place}whole({entry.name}): only numbers about many individuals (counts, sums, means, quantiles) are "
        f"rounded, and {show(entry.what)} is something else. Take the line out. Nothing was planned and nothing was "
        "spent."
    )


def _level(node: Node | AggregateNode, network: Network) -> str:
    return "individual" if isinstance(node, Node) and node.of_individual else "aggregate"


def _joined(first: Request, second: Request) -> Request:
    """Answers of one publish clause: survivalByDrug(d1), survivalByDrug(d2), …"""
    nodes = tuple(dict.fromkeys((*first.nodes, *second.nodes)))
    level = first.level if first.level == second.level else "other"
    return Request(
        first.name,
        first.term,
        first.requirement,
        nodes,
        level,
        first.weight,
        first.preferred,
        first.forbidden,
        first.position,
        first.sampled,
    )


def template_of(
    network: Network, group: Group, observed: Iterable[str], observer: str | None = None
) -> Template | None:
    """What one individual of the group computes up to the observed nodes; None if the group has none of them.

    For an observer it says which of the cells behind them this observer knows exactly.
    """
    found: dict[str, Node] = {node.name: node for node in network.shared}
    found.update({node.name: node for node in group.nodes})
    targets = [name for name in observed if name in found]
    if not targets:
        return None
    template = _template(found, targets, {})
    known = template.private & group.known_to(observer) if observer is not None else frozenset()
    return replace(template, observed=known) if known else template


def sample_answers(network: Network, group: Group, node: Node) -> tuple[Template, SampleCandidate]:
    """What the probabilities of a node's answers are computed from, and what they are in every state of it."""
    law = sample_law(node, group.inference(network.shared))
    template = _sample_template(network, group, node, law)
    return template, sample_candidate(node, template, law)


def _sample_template(network: Network, group: Group, node: Node, law: SampleLaw) -> Template:
    found: dict[str, Node] = {other.name: other for other in network.shared}
    found.update({other.name: other for other in group.nodes})
    if node.source is not None:
        return _template(found, [node.name], {})
    return _template(found, sorted(frozenset().union(*(part.references() for part in law.probabilities))), {})


def shared_template(network: Network, observed: Iterable[str], sums: Mapping[str, Bounds]) -> Template:
    """What is computed from aggregates up to the observed nodes; `sums` gives the aggregates' public bounds."""
    return _template({node.name: node for node in network.shared}, list(observed), sums)


def _needed(found: Mapping[str, Node], targets: list[str], sums: Mapping[str, Bounds]) -> dict[str, tuple[str, ...]]:
    """Everything that the targets are computed from, with its own inputs; sums and unknown names have none."""
    needed: dict[str, tuple[str, ...]] = {}
    waiting = list(targets)
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed[name] = found[name].inputs if name in found and name not in sums else ()
        waiting.extend(needed[name])
    return needed


def _formulas_of(found: Mapping[str, Node], order: Iterable[str]) -> dict[str, Expression]:
    """Of what is computed its formula; a cell that is read needs none."""
    nodes = {name: found[name] for name in order if name in found}
    return {
        name: node.expression for name, node in nodes.items() if node.source is None and node.expression is not None
    }


def _template(found: Mapping[str, Node], targets: list[str], sums: Mapping[str, Bounds]) -> Template:
    needed = _needed(found, targets, sums)
    order = topological_order(needed)
    formulas = _formulas_of(found, order)
    inputs = [name for name in order if name not in formulas]
    return Template(
        needed,
        formulas,
        {name: sums[name] if name in sums else found[name].bounds for name in order},
        frozenset(name for name in inputs if name in sums or not found[name].public),
        order,
        _values_of_categories(found, inputs),
    )


def _values_of_categories(found: Mapping[str, Node], inputs: Iterable[str]) -> dict[str, tuple[Scalar, ...]]:
    domains = {name: found[name].domain for name in inputs if name in found}
    return {name: domain.values for name, domain in domains.items() if isinstance(domain, Categories)}
