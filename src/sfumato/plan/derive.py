"""A plan derived again from its study: every promise, every sensitivity, every cut. No optimisation is repeated.

In:   a Plan, the Network of its study.
Out:  Findings. Running refuses a plan with a false one; `sfumato verify FOLDER --study` prints them.
Not here: making plans (plan/make.py), certificates (evidence/verify.py).

What is asked for comes from the study, never from the plan: a node that is seen needs its random act, so a plan from
which an act was taken out is as false as one whose act is too quiet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sfumato.core import Guarantee, compose
from sfumato.errors import SfumatoError
from sfumato.lang.spec import EVERYONE
from sfumato.lang.term import show
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network, Node
from sfumato.plan.cuts import is_cut
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.draw import Draw
from sfumato.plan.individual_part import AnyDraw
from sfumato.plan.linear.individual import LinearDraw
from sfumato.plan.plan import Plan, Promise
from sfumato.plan.reached import reached
from sfumato.plan.readers import read_as_one
from sfumato.plan.request import Request, as_acted, asked_of, requests_of, sample_answers, sums_behind, template_of
from sfumato.plan.settle import ARITHMETIC
from sfumato.plan.shared_act import act_sharing, is_shared_as_stated
from sfumato.plan.sharing import ways_of
from sfumato.plan.template import Template
from sfumato.plan.wanted import follows_study

__all__ = ["Finding", "derive", "is_alike"]

#: Two derivations of one number agree this far; a plan that says more or less was changed.
_SAME = 1e-6
#: A sum of costs depends this much on their order.
_ORDER = 1e-9
#: Noise of several sums is as even as their grids, of at most 1/4096 of a sensitivity, let it be.
_EVEN = 1e-3


class Finding(NamedTuple):
    """One thing that was derived again, and whether the plan says the same or less."""

    field: str
    ok: bool
    sentence: str


def derive(plan: Plan, network: Network) -> Iterator[Finding]:
    """The plan's publications, promises, acts and sensitivities from the study's own words."""
    same = plan.study_digest == network.spec.digest
    yield Finding("study", same, f"The plan was made for {'this' if same else 'another'} study.")
    if not same:
        return
    # Of what may be drawn itself or read off sums the plan says which; either way all of it is derived.
    requests = as_acted(requests_of(network), _shown(plan))
    yield from _publications(plan, network, requests)
    placed = [*(_placed(draw, network, requests) for draw in plan.draws), _shared(plan, network), _once(plan.draws)]
    placed += _alike_for_readers(plan, network, requests)
    yield from placed
    if not all(finding.ok for finding in placed):
        return  # whose they are and who sees them decides all that follows
    yield from _promises(plan, network, requests)
    yield from _acts(plan, network, requests)
    seen: dict[str, list[Request]] = {}
    for request in requests:
        seen.setdefault(request.observer, []).append(request)
    for observer, own in seen.items():
        yield from _observer(plan, network, observer, own)


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


def _publications(plan: Plan, network: Network, requests: Sequence[Request]) -> Iterator[Finding]:
    """Each thing the study publishes once, and nothing else."""
    stated = [(planned.name, planned.requirement, planned.observer) for planned in plan.publications]
    asked = [(request.name, show(request.requirement.name), request.observer) for request in requests]
    yield _found("publications", sorted(stated) == sorted(asked), "each of the study's, and no other")
    for request in (request for request in requests if not request.is_act):
        nodes = _nodes_of(request, network)
        for planned in plan.publications:
            if (planned.name, planned.observer) == (request.name, request.observer):
                shown = {seen.node for seen in planned.seen}
                yield _found(f"{request.observer}: {request.name}", shown == nodes, "it shows what the study says")


def _nodes_of(request: Request, network: Network) -> set[str]:
    if not request.of_individuals:
        return set(request.nodes)
    return {node.name for group in network.groups for node in group.nodes}.intersection(request.nodes)


def _owner_of(draw: AnyDraw, network: Network) -> str | None:
    """The dataset whose individuals a draw is about, by the study."""
    if draw.group is not None:
        return network.groups[draw.group].dataset if 0 <= draw.group < len(network.groups) else None
    sums = {node.name: node.dataset for node in network.aggregates}
    return sums.get(draw.node) if isinstance(draw, Draw) else None


def _placed(draw: AnyDraw, network: Network, requests: Sequence[Request]) -> Finding:
    """Whose a draw is, under which adjacency, and towards whom: what its cost is counted by."""
    owner = _owner_of(draw, network)
    observers = {request.observer for request in requests if request.requirement.dataset == owner}
    fine = owner is not None and draw.dataset == owner and draw.adjacency == network.spec.dataset(owner).adjacency
    known = bool(draw.observers) and set(draw.observers) <= observers
    return _found(f"draw of {draw.node}", fine and known, "it is about the study's own individuals")


def _drawn_sums(plan: Plan) -> list[Draw]:
    return [draw for draw in plan.draws if isinstance(draw, Draw) and draw.group is None]


def _shared(plan: Plan, network: Network) -> Finding:
    """All sums go one way, by the study's own centres and by whom it trusts."""
    drawn = _drawn_sums(plan)
    alone = len(drawn) < len(plan.draws)  # what is about single individuals is drawn in one place
    try:
        acting = [act_sharing(act) for act in plan.acts]
    except SfumatoError:  # a plan may hold any words
        return _found("sharing", False, "")
    stated = (*(draw.sharing for draw in drawn), *acting, *((None,) if alone else ()))
    ways = {one and one.declared for one in stated}
    kept = all(draw.sharing is None or draw.sharing.keeps(draw.adjacency) for draw in drawn)
    fine = len(ways) <= 1 and ways <= set(ways_of(network.spec)) and kept
    return _found("sharing", fine, "the noise is drawn by whom the study trusts with it")


def _once(draws: Sequence[AnyDraw]) -> Finding:
    """Whatever some observers see of a node is one draw: equal ones would be drawn once (run/view.py), be paid for
    twice, and have the errors of two. Versions of a sum are seen by fewer observers, the more exact they are."""
    keys = [(*_drawn_of(draw), tuple(sorted(draw.observers))) for draw in draws]
    fine = len(set(keys)) == len(keys)
    versions: dict[tuple[object, ...], list[set[str]]] = {}
    for draw in draws:
        if draw.group is None:
            versions.setdefault(_drawn_of(draw), []).append(set(draw.observers))
    fine = fine and all(one <= other or other <= one for own in versions.values() for one in own for other in own)
    return _found("draws", fine, "each is drawn once, for all who see it")


def _drawn_of(draw: AnyDraw) -> tuple[object, ...]:
    return type(draw), draw.dataset, draw.group, draw.node, draw.noise


def _alike_for_readers(plan: Plan, network: Network, requests: Sequence[Request]) -> Iterator[Finding]:
    """Observers who are answered like one have the same draws of what both see."""
    for dataset, asked in _by_dataset(requests).items():
        drawn = [draw for draw in plan.draws if draw.dataset == dataset]
        for other, reader in read_as_one(network, asked).items():
            if other != reader:
                alike = _alike(_seen(drawn, reader), _seen(drawn, other))
                yield _found(f"draws for {reader} and {other}", alike, "they are answered like one observer")


def _seen(drawn: Iterable[AnyDraw], observer: str) -> list[AnyDraw]:
    return [draw for draw in drawn if observer in draw.observers]


def _alike(mine: list[AnyDraw], theirs: list[AnyDraw]) -> bool:
    both = {_drawn_of(draw) for draw in mine} & {_drawn_of(draw) for draw in theirs}
    return [draw for draw in mine if _drawn_of(draw) in both] == [draw for draw in theirs if _drawn_of(draw) in both]


# ── promises ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _promises(plan: Plan, network: Network, requests: Sequence[Request]) -> Iterator[Finding]:
    """What the study asks, not what the plan says it asks, against what is drawn."""
    asked: dict[tuple[str, tuple[str, ...]], list[Guarantee]] = {}
    wanted: dict[str, dict[str, Guarantee]] = {}
    for request in requests:
        wanted.setdefault(request.requirement.dataset, {})[request.observer] = request.requirement.guarantee
    for dataset, own in wanted.items():
        asked |= {(dataset, (observer,)): [guarantee] for observer, guarantee in own.items()}
        for collusion in network.spec.collusions:
            group = set(collusion.observers) & own.keys()
            if len(group) > 1:
                together = tuple(sorted(group | ({EVERYONE} & own.keys())))
                asked[dataset, together] = [own[observer] for observer in sorted(group - {EVERYONE})]
    stated = {(promise.dataset, promise.observers): promise for promise in plan.promises}
    one_each = len(stated) == len(plan.promises) and stated.keys() == asked.keys()
    yield _found("promises", one_each, "one to every observer and to every group that colludes")
    for (dataset, observers), guarantees in asked.items():
        yield _kept(plan, dataset, observers, guarantees, stated.get((dataset, observers)))


def _is_promised(stated: Guarantee, asked: list[Guarantee], *, together: bool) -> bool:
    """Whether what is stated is one of what is asked, or, of several observers together, keeps one."""
    return stated in asked or (together and any(stated.implies(one) is True for one in asked))


def _kept(
    plan: Plan, dataset: str, observers: tuple[str, ...], asked: list[Guarantee], stated: Promise | None
) -> Finding:
    """A group keeps the loosest of its members' promises; the plan says what is asked, and what its draws cost."""
    field = f"promise to {' and '.join(observers)}"
    if stated is None or not _is_promised(stated.asked, asked, together=len(observers) > 1):
        return Finding(field, False, "The study asks for it, and the plan does not promise it.")
    events = plan.events(dataset, observers)
    cost = compose(events) if events else None
    if cost is not None and not any(cost.implies(guarantee) is True for guarantee in asked):
        return Finding(field, False, "What is drawn costs more than the study promises.")
    if not _same_cost(stated.kept, stated.asked if cost is None else cost):
        return Finding(field, False, "What is drawn does not cost what the plan says it does.")
    return Finding(field, True, f"{_held(cost, asked)}.")


def _same_cost(stated: Guarantee, cost: Guarantee) -> bool:
    """ε where there is no δ, else every number, up to the order of a sum: what a faint draw costs is seen as well."""
    if math.isfinite(pure := cost.epsilon(0.0)):
        return math.isclose(stated.epsilon(0.0), pure, rel_tol=_ORDER)
    return is_alike(stated.to_dict(), cost.to_dict())


def is_alike(one: object, other: object) -> bool:
    """Whether two records say the same, their floats up to rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(is_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_ORDER)
    return one == other


# ── acts and draws ───────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(plan: Plan) -> list[tuple[str, str]]:
    """(observer, name) of everything that is made by an act."""
    return [(observer, act.name) for act in plan.acts for observer in act.observers]


def _acts(plan: Plan, network: Network, requests: Sequence[Request]) -> Iterator[Finding]:
    """One act for every table, model and channel, reading what the study says within the guarantee it was given."""
    wanted = sorted((request.observer, request.name) for request in requests if request.is_act)
    settled = sorted(_shown(plan))
    if wanted or settled:
        yield _found("acts", settled == wanted, "one for every table, model and channel")
    readers = _readers(network, requests)
    for act in plan.acts:
        shown = readers.get((act.dataset, act.name, act.observers[0])) if act.observers else None
        fine = follows_study(act, network) and set(act.observers) == shown
        within = not act.events or compose(act.events).implies(act.guarantee) is True
        yield _found(f"{act.readers}: {act.name}", fine and within, "it reads what the study says")
        shared = is_shared_as_stated(act)
        yield _found(f"{act.readers}: noise of {act.name}", shared, "those draw it whom the study trusts with it")


def _readers(network: Network, requests: Sequence[Request]) -> dict[tuple[str, str, str], set[str]]:
    """By dataset, name and observer: with whom an observer shares the act of that name."""
    readers = {dataset: read_as_one(network, asked) for dataset, asked in _by_dataset(requests).items()}
    shown: dict[tuple[str, str, str], set[str]] = {}
    acts = [(one.requirement.dataset, one.name, one.observer) for one in requests if one.is_act]
    for dataset, name, observer in acts:
        shown.setdefault((dataset, name, readers[dataset][observer]), set()).add(observer)
    return {(dataset, name, who): shown[dataset, name, readers[dataset][who]] for dataset, name, who in acts}


def _by_dataset(requests: Sequence[Request]) -> dict[str, list[Request]]:
    own: dict[str, list[Request]] = {}
    for request in requests:
        own.setdefault(request.requirement.dataset, []).append(request)
    return own


def _held(cost: Guarantee | None, asked: list[Guarantee]) -> Guarantee:
    """The loosest of the promises that hold: a group is not promised what one member alone is."""
    kept = [one for one in asked if cost is None or cost.implies(one) is True]
    return next((one for one in kept if all(other.implies(one) is True for other in kept)), kept[0])


def _observer(plan: Plan, network: Network, observer: str, requests: list[Request]) -> Iterator[Finding]:
    draws = [draw for draw in plan.draws if observer in draw.observers]
    yield from _sums(plan, draws, network, observer, requests)
    yield from _individuals(draws, network, observer, [request for request in requests if request.of_individuals])


def _individuals(draws: list[AnyDraw], network: Network, observer: str, asked: list[Request]) -> Iterator[Finding]:
    numbers, answers = _names(asked, sampled=False), _names(asked, sampled=True)
    for index in range(len(network.groups)):
        own = [draw for draw in draws if draw.group == index]
        sampled = [draw for draw in own if isinstance(draw, SampleDraw)]
        yield from _of_group([draw for draw in own if draw not in sampled], network, index, observer, numbers)
        yield from _answers(sampled, network, index, observer, dict.fromkeys(answers))


def _names(asked: list[Request], *, sampled: bool) -> list[str]:
    return [name for request in asked if bool(request.sampled) == sampled for name in request.nodes]


def _of_group(
    draws: Sequence[AnyDraw], network: Network, index: int, observer: str, numbers: list[str]
) -> Iterator[Finding]:
    """The numbers that an observer sees of the individuals of one group."""
    template = template_of(network, network.groups[index], numbers, observer) if numbers else None
    if template is not None:
        yield from _numbers(draws, template, [name for name in numbers if name in template.order], observer)
    elif draws:
        yield Finding(f"{observer}: group {index}", False, "It is drawn, and nothing of it is seen.")


def _answers(
    draws: list[SampleDraw], network: Network, index: int, observer: str, asked: dict[str, None]
) -> Iterator[Finding]:
    """One random answer for every such node that the individuals of a group have, by the study's own law."""
    group = network.groups[index]
    nodes = {name: node for name in asked if (node := group.node(name)) is not None}
    for name, node in nodes.items():
        stated = [draw.candidate for draw in draws if draw.node == name]
        fine = bool(stated) and stated == [sample_answers(network, group, node)[1]] * len(stated)
        yield _found(f"{observer}: {name}", fine, "the answers' law is the study's")
    for name in dict.fromkeys(draw.node for draw in draws if draw.node not in nodes):
        yield Finding(f"{observer}: {name}", False, "The study asks for no such answer.")


def _sums(
    plan: Plan, draws: list[AnyDraw], network: Network, observer: str, requests: list[Request]
) -> Iterator[Finding]:
    """Noise on every sum that lies behind something seen and that somebody can move."""
    sums = {node.name: node for node in network.aggregates}
    behind = _behind(network, sums, requests)
    drawn = [draw for draw in draws if draw.group is None and isinstance(draw, Draw)]
    for name, protected in behind.items():
        if protected:
            yield from _sum([draw for draw in drawn if draw.node == name], plan, sums[name], observer)
        else:
            yield Finding(f"{observer}: {name}", False, "Its requirement protects nobody behind it.")
    yield from _unseen(drawn, behind, observer)
    yield from _families(drawn, sums, network, observer)


def _unseen(drawn: list[Draw], behind: Mapping[str, bool], observer: str) -> Iterator[Finding]:
    for name in dict.fromkeys(draw.node for draw in drawn if draw.node not in behind):
        yield Finding(f"{observer}: {name}", False, "It is drawn, and nothing of it is seen.")


def _behind(network: Network, sums: Mapping[str, AggregateNode], requests: list[Request]) -> dict[str, bool]:
    """The sums behind what is seen, and whether the requirement protects the people in each."""
    return {
        name: name in sums and sums[name].dataset == request.requirement.dataset
        for request in requests
        if request.of_sums
        for name in sums_behind(request, network)
    }


def _sum(draws: list[Draw], plan: Plan, node: AggregateNode, observer: str) -> Iterator[Finding]:
    """Noise on one sum: as much as one individual can move it."""
    name, question = node.name, asked_of(node)
    yield _found(f"{name}", plan.questions.get(name) == question, "the plan asks what the study asks")
    if question.is_public:
        yield _found(f"{observer}: {name}", not draws, "nobody can move it")
    elif not draws:
        yield Finding(f"{observer}: {name}", False, "It is seen, and nothing is drawn for it.")
    for draw in draws:
        least = draw.kind.sensitivity(question.moves()) * ARITHMETIC
        fine = _is_stated(draw.sensitivity, least) and draw.dimension == question.drawn_size(draw.pure)
        yield _found(f"{observer}: {name}", fine, f"one individual moves it by at most {least:.6g}")


def _families(
    drawn: list[Draw], sums: Mapping[str, AggregateNode], network: Network, observer: str
) -> Iterator[Finding]:
    """Of sums priced together: that nobody is part of more of them at once than the plan says."""
    people = {node.name: node for group in network.groups for node in group.nodes}
    for name, own in _by_family(drawn).items():
        nodes = [sums[node] for node in own if node in sums]
        fine = len(nodes) == len(own) and not network.spec.centres
        fine = fine and _are_met(own, nodes) and _is_reached(own, nodes, people) and _is_even(drawn, own)
        yield _found(f"{observer}: {name}", fine, f"nobody is part of all of {', '.join(own)} at once")


def _is_even(drawn: Sequence[Draw], own: Mapping[str, Draw]) -> bool:
    """Sums priced together have noise in proportion to their moves: one without a draw would cost no less."""
    levels = [sorted(draw.scale / draw.sensitivity for draw in drawn if draw.node == name) for name in own]
    return all(
        len(one) == len(levels[0]) and all(map(partial(math.isclose, rel_tol=_EVEN), one, levels[0])) for one in levels
    )


def _by_family(drawn: list[Draw]) -> dict[str, dict[str, Draw]]:
    families: dict[str, dict[str, Draw]] = {}
    for draw in drawn:
        if draw.apart is not None:
            families.setdefault(draw.apart.family, {})[draw.node] = draw
    return families


def _are_met(own: Mapping[str, Draw], nodes: Sequence[AggregateNode]) -> bool:
    alike = len({(node.dataset, node.row_table, node.question.rows) for node in nodes}) == 1
    return alike and all(_is_met(own[node.name], node) for node in nodes)


def _is_met(draw: Draw, node: AggregateNode) -> bool:
    apart, (alone, inside) = draw.apart, node.question.met()
    assert apart is not None
    met = (apart.alone, alone), (apart.inside, inside)
    moves = all(_is_stated(stated, draw.kind.sensitivity(one) * ARITHMETIC) for stated, one in met)
    return moves and not node.question.expected and (node.question.rows == 1 or not draw.pure)


def _is_reached(own: Mapping[str, Draw], nodes: Sequence[AggregateNode], people: Mapping[str, Node]) -> bool:
    """Every set of sums that one row can be part of is a cell of the plan."""
    conditions = {node.name: node.condition for node in nodes}
    read = frozenset().union(*(condition.references() for condition in conditions.values()))
    if any(name not in people or people[name].is_random for name in read):
        return False
    cells: dict[int, set[str]] = {}
    for name, draw in own.items():
        for cell in draw.apart.cells if draw.apart is not None else ():
            cells.setdefault(cell, set()).add(name)
    stated = {frozenset(), *map(frozenset, cells.values())}
    return all(one in stated for one in reached(conditions, people))


def _is_stated(sensitivity: float, least: float) -> bool:
    """No less than what follows from the study, and no more than rounding adds."""
    return least <= sensitivity <= least * (1 + _SAME)


def _numbers(draws: Sequence[AnyDraw], template: Template, observed: list[str], observer: str) -> Iterator[Finding]:
    linear = [draw for draw in draws if isinstance(draw, LinearDraw)]
    if linear and not template.observed:
        alone = all(draw.candidate == linear[0].candidate for draw in linear)
        alone = alone and not any(isinstance(draw, Draw) for draw in draws)
        seen = set(observed) <= set(linear[0].candidate.outputs)
        yield _found(f"{observer}: {', '.join(observed)}", alone and seen, "noise lies on all that is seen")
        for draw in linear:
            fine = _has_the_inputs(draw, template)
            yield _found(f"{observer}: {draw.node}", fine, "inputs and their ranges are the study's")
        return
    yield from _on_a_cut(draws, template, observed, observer)


def _has_the_inputs(draw: LinearDraw, template: Template) -> bool:
    ranges = {name: (bound.low, bound.width) for name, bound in template.bounds.items()}
    stated = zip(draw.candidate.inputs, draw.candidate.low, draw.candidate.width, strict=True)
    fine = all(name in ranges and ranges[name] == (low, width) for name, low, width in stated)
    return fine and frozenset(template.private) <= set(draw.candidate.inputs)


def _on_a_cut(draws: Sequence[AnyDraw], template: Template, observed: list[str], observer: str) -> Iterator[Finding]:
    linear = any(isinstance(draw, LinearDraw) for draw in draws)
    cut = frozenset(draw.node for draw in draws if isinstance(draw, Draw))
    covered = not linear and is_cut(cut, template.parents, template.hidden, observed)
    yield _found(f"{observer}: {', '.join(observed)}", covered, "noise lies on every way from private data")
    for draw in (draw for draw in draws if isinstance(draw, Draw)):
        if draw.node not in template.order:
            yield Finding(f"{observer}: {draw.node}", False, "It is drawn, and nothing of it is seen.")
            continue
        least = template.sensitivity(draw.node, cut)
        fine = _is_stated(draw.sensitivity, least.value) and draw.dimension == 1
        yield _found(f"{observer}: {draw.node}", fine, f"{least.value:.6g} by {least.rule}")


def _found(what: str, fine: bool, finding: str) -> Finding:
    return Finding(what, fine, f"{finding[0].upper()}{finding[1:]}." if fine else "The study does not say so.")
