"""From a study to a plan: every dataset settled with every kind of noise that can keep its promises, the cheaper kept.

In:   a study (Spec, Network, path or text), public tables, public numbers of individuals.
Out:  Plan. No private table is opened.
Not here: settling one dataset (plan/settle.py), running (run/study.py).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sfumato.core.tables import nearest
from sfumato.core.threads import calm_threads
from sfumato.errors import PlanError, PrivacyParameterError
from sfumato.lang import load
from sfumato.lang.deadline import planning
from sfumato.lang.inside import requirements_here
from sfumato.lang.spec import Spec
from sfumato.lang.term import Term, called, is_ground, show
from sfumato.network.aggregate import AggregateNode
from sfumato.network.network import Network
from sfumato.network.observations import touched
from sfumato.network.possible import why_nobody
from sfumato.network.quadrature import POINTS
from sfumato.network.remaining import PLACES, remaining_errors
from sfumato.plan.about import about_of
from sfumato.plan.act import Act
from sfumato.plan.curves import relative_losses, statistic_curve
from sfumato.plan.draw_law import LAWS, NoiseName
from sfumato.plan.either_way import settle_either_way
from sfumato.plan.mixed import Mixed, Mixing
from sfumato.plan.over_centres import assumed_of_centres, settle_over_centres
from sfumato.plan.plan import Considered, Curve, Plan, Planned
from sfumato.plan.readers import read_as_one
from sfumato.plan.request import Request, as_acted, is_pure, questions_of, requests_of, sums_behind
from sfumato.plan.sentences import with_meaning
from sfumato.plan.settle import Settled, Settling
from sfumato.plan.shared_act import strategies_for
from sfumato.plan.sharing import Sharing
from sfumato.plan.side_by_side import settle_side_by_side
from sfumato.plan.strategy import Strategy
from sfumato.plan.template import Template
from sfumato.plan.wanted import wanted_of
from sfumato.plan.wishes import forbidden_by

__all__ = ["ASSUMED_SIZE", "make_plan", "network_of"]

#: Used for predictions when nobody says how many individuals there are.
ASSUMED_SIZE = 1000.0


def network_of(study: Spec | Network | str | Path, tables: Mapping[str, Any] | None = None) -> Network:
    """The network of a study given in any form."""
    if isinstance(study, Network):
        return study
    return Network.from_spec(study if isinstance(study, Spec) else load(study), tables)


@calm_threads()
def make_plan(
    spec_or_network: Spec | Network | str | Path,
    tables: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, float] | None = None,
    strategies: Sequence[Strategy] = (),
) -> Plan:
    """The plan of least weighted expected squared error that keeps every requirement.

    `strategies` answer what is no statistic (tables, models, channels); sfumato.run.planning.make_plan has them all.

    `tables` are needed only for those declared public. `sizes` gives the number of individuals of a dataset, or of
    contributions to an aggregate, where it is public; it steers predictions and the split of the budget, never privacy.

    >>> plan = make_plan('''
    ...     source(patients, 'patients.parquet').
    ...     column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
    ...     column(patients, age, age(P)).
    ...     random(age(P)) :- patient(P).
    ...     range(age(P), 0, 110).
    ...     dataset(people, domain(P, patient(P))).
    ...     privacy_requirement(openness(public), people, dp(0.5, 0.000001)).
    ...     mean(meanAge, age(P), patient(P)).
    ...     publish(average, meanAge, openness(public)).
    ... ''', sizes={"people": 1000})
    >>> round(plan.publication("average").seen[0].half_width, 2)
    0.66
    """
    with planning(), _within_numbers():
        return _planned(spec_or_network, tables, dict(sizes or {}), strategies)


@contextmanager
def _within_numbers() -> Iterator[None]:
    """Bounds, slopes and errors of a study may be any numbers; where they leave what a float can hold it is refused."""
    try:
        # Infinite and undefined numbers are looked for where they matter; a warning would only say where they arose.
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise PlanError(
            "The numbers of this study are too far apart in scale to be planned: a bound, a slope or an error leaves "
            "what a floating-point number can hold. Declare narrower ranges, or keep intermediate values small with "
            "clip(X, Low, High). Nothing was planned and nothing was spent."
        ) from error


_Kind = TypeVar("_Kind")


def _all(parts: Iterable[tuple[_Kind, ...]]) -> tuple[_Kind, ...]:
    return tuple(itertools.chain.from_iterable(parts))


def _planned(
    spec_or_network: Spec | Network | str | Path,
    tables: Mapping[str, Any] | None,
    known: dict[str, float],
    strategies: Sequence[Strategy],
) -> Plan:
    network = network_of(spec_or_network, tables)
    _check_step(network.spec)
    _check_sizes(network, known)
    _check_named(network)
    requests = requests_of(network)
    _check_somebody(network, requests)
    assumptions: list[str] = []
    datasets = dict.fromkeys(request.requirement.dataset for request in requests)
    sizes = {dataset: _size_of(dataset, known, assumptions) for dataset in datasets}

    def settle(sharing: Sharing | None) -> list[Mixed]:
        own = {name: tuple(one for one in requests if one.requirement.dataset == name) for name in datasets}
        ways = {name: _among(sharing, network, name, sizes[name]) for name in datasets}
        return [
            settle_either_way(
                own[name],
                lambda asked, name=name: _dataset(network, name, asked, known, sizes[name], strategies, ways[name]),
                read_as_one(network, own[name]),
            )
            for name in datasets
        ]

    settled = settle_over_centres(network.spec, requests, settle)
    acts = _all(one.acts for one in settled)
    requests = as_acted(requests, _shown(acts))
    assumptions += _by_points(network, requests) + assumed_of_centres(network.spec)
    plan = Plan(
        network.spec.name,
        network.spec.digest,
        tuple(_with_meaning(planned, network, one.acts, strategies) for one in settled for planned in one.planned),
        _all(one.draws for one in settled),
        _all(one.promises for one in settled),
        tuple(assumptions),
        _statements(network) | {"about": about_of(network.spec), "sizes": sizes},
        network,
        acts,
        _all(one.curves for one in settled),
        questions_of(network, requests),
    )
    _check_derived(plan, network)
    return plan


def _shown(acts: Iterable[Act]) -> list[tuple[str, str]]:
    """(observer, name) of everything that an act makes."""
    return [(observer, act.name) for act in acts for observer in act.observers]


def _among(sharing: Sharing | None, network: Network, dataset: str, size: float) -> Sharing | None:
    return sharing and sharing.among(size, network.spec.dataset(dataset).adjacency)


def _with_meaning(planned: Planned, network: Network, acts: Iterable[Act], strategies: Sequence[Strategy]) -> Planned:
    act = next((one for one in acts if one.makes(planned.name, planned.observer)), None)
    words = next((one.words for one in strategies if act is not None and one.kind == act.kind and one.words), "")
    return with_meaning(planned, network, act, words)


def _check_step(spec: Spec) -> None:
    """One step is planned at a time: what may be published next follows from what was."""
    if not spec.steps or any(step.number == spec.step and step.publishes is not None for step in spec.steps):
        return
    publishing = sorted({step.number for step in spec.steps if step.publishes is not None})
    steps = ", ".join(map(str, publishing)) or "none"
    asked = f"step {spec.step} publishes nothing" if spec.step is not None else "the study has steps"
    rounds = ", and for the round of a step `sfumato coordinate init` with --step N" if spec.centres else ""
    raise PlanError(
        f"{spec.name}: {asked}. Say which one is planned: --at N (in Python: load(study, at=N)){rounds}. Steps that "
        f"publish: {steps}. Nothing was planned and nothing was spent."
    )


def _check_named(network: Network) -> None:
    """What a step names is there: rows of public tables, which a check does not read, may lack it."""
    spec = network.spec
    shown = {entry.name for entry in network.publications}
    shown |= {node for one in requirements_here(spec) for node in network.zone(one.name).observed}
    for name in _named_here(spec):
        if not shown & {called(name), show(name)}:
            raise PlanError(
                f"{spec.name}: step {spec.step} publishes {show(name)}, and no clause gives it with the public tables "
                "that were given. Correct the name in the step's line, or the public table. Nothing was planned and "
                "nothing was spent."
            )


def _named_here(spec: Spec) -> list[Term]:
    """What the planned step names, where it names one publication and not all that a clause gives."""
    named = (step.publishes for step in spec.steps if step.number == spec.step)
    return [name for name in named if name is not None and is_ground(name)]


def _check_somebody(network: Network, requests: Sequence[Request]) -> None:
    """A question in which nobody can count would be paid for and tell nothing."""
    sums = {node.name: node for node in network.aggregates}
    asked = {name: request for request in requests for name in sums_behind(request, network) if name in sums}
    for name, request in asked.items():
        node = sums[name]
        own = [group.nodes for group in network.groups if group.dataset == node.dataset]
        if why := why_nobody(node.condition, itertools.chain.from_iterable(own)):
            place = f"{node.position.file}:{node.position.line} " if node.position else request.position
            raise PlanError(
                f"{place}{name} is about nobody, whatever the data are: {why}. Correct the condition or what is "
                "declared of its variables, or take the question out. Nothing was planned and nothing was spent."
            )


def _by_points(network: Network, requests: Sequence[Request]) -> list[str]:
    """What is left of the error of expectations without a closed form, beside the noise."""
    known = {node.name: node for node in network.nodes}
    needed = dict.fromkeys(name for request in requests for name in request.nodes)
    for name in list(needed):
        needed |= dict.fromkeys(known[name].parents) if isinstance(known[name], AggregateNode) else {}
    return [
        f"{name} has no closed form and is averaged over {POINTS} public points, the same for everybody: an error of "
        f"about {error:.1g} is left, beside the noise (estimated at {PLACES} places of its inputs' ranges)."
        for name, error in remaining_errors(network, needed).items()
    ]


def _check_derived(plan: Plan, network: Network) -> None:
    """Nothing is promised that does not follow from the study a second time."""
    from sfumato.plan.derive import derive

    false = [finding for finding in derive(plan, network) if not finding.ok]
    if false:
        raise PlanError(
            f"No plan of {network.spec.name} could be derived again from its study ({false[0].field}: "
            f"{false[0].sentence}) This is a fault of sfumato: please report the study. Nothing was planned and "
            "nothing was spent."
        )


def _statements(network: Network) -> dict[str, Any]:
    """What the study says about whose a variable is and who learns it exactly, for who reads the plan."""
    moved = frozenset().union(*(touched(network, dataset.name) for dataset in network.spec.datasets))
    said: dict[str, list[Any]] = {
        "personal": [variable for _, variable in network.personal],
        "instances": [cell for _, cell in network.instances],
        "exact": [[observer, variable] for observer, variable in network.exact if variable in moved],
    }
    found: dict[str, Any] = {word: listed for word, listed in said.items() if listed}
    found |= {"inside": network.spec.at_home} if network.spec.at_home is not None else {}
    return found | _history(network.spec) | _parts(network) | _owners(network.spec)


def _owners(spec: Spec) -> dict[str, Any]:
    """Whose things are published: how many one owner may have, and what was promised to them."""
    most = {owner.dataset: [owner.unit, owner.most] for owner in spec.owners}
    asked = [one for one in spec.requirements if one.owner is not None]
    found = [[one.observer, one.owner, *most[str(one.owner)], one.dataset, one.owned] for one in asked]
    return {"owners": found} if found else {}


def _parts(network: Network) -> dict[str, Any]:
    """What each part of the same people holds: variables of each of them, or a public group."""
    if not network.spec.divisions:
        return {}
    found = {}
    for part in network.spec.divisions:
        cells = [cell for dataset, cell in network.instances if dataset == part.name]
        found[part.name] = [part.whole, ", ".join(map(show, part.condition)) or ", ".join(cells), bool(part.condition)]
    return {"parts": found}


def _history(spec: Spec) -> dict[str, Any]:
    """Which step this is, and of how many each promise is shared out over."""
    if spec.step is None:
        return {}
    asked = [one for one in spec.requirements if one.whole is not None and one.shares]
    promised = {show(one.name): [one.shares, str(one.whole)] for one in asked}
    return {"step": spec.step, "shares": promised}


def _size_of(dataset: str, sizes: Mapping[str, float], assumptions: list[str]) -> float:
    size = sizes.get(dataset)
    if size is None:
        assumptions.append(
            f"{dataset} has {ASSUMED_SIZE:g} individuals; if the number is public, give it with --size {dataset}=N "
            f"(in Python: sizes={{{dataset!r}: N}})."
        )
        size = ASSUMED_SIZE
    return float(size)


def _check_sizes(network: Network, known: Mapping[str, float]) -> None:
    """A number for nothing that there is would be forgotten without a word, and predictions made for another one."""
    datasets = [one.name for one in network.spec.datasets]
    aggregates = [one.name for one in network.aggregates]
    for name, size in known.items():
        if name not in datasets and name not in aggregates:
            beside = f", or of contributions to {', '.join(aggregates)}" if aggregates else ""
            raise PlanError(
                f"--size (in Python: sizes=) names {name!r}, and the study has no dataset or aggregate of that name"
                f"{nearest(name, [*datasets, *aggregates])}. A size is a number of individuals of "
                f"{', '.join(datasets)}{beside}. Nothing was planned and nothing was spent."
            )
        if not (math.isfinite(size) and size >= 1):
            words = f"The size of {name} must be a number from 1 on."
            raise PlanError(f"{words} Nothing was planned and nothing was spent.")


def _dataset(
    network: Network,
    dataset: str,
    requests: tuple[Request, ...],
    sizes: Mapping[str, float],
    size: float,
    strategies: Sequence[Strategy],
    sharing: Sharing | None,
) -> Mixed:
    # Beside tables and models, colluders' statistics are counted as versions of each other: one kind of noise for all.
    acting = any(request.is_act for request in requests)
    apart = not (acting and network.spec.collusions)

    def statistics(asked: tuple[Request, ...]) -> Settled:
        return _cheapest(network, dataset, asked, sizes, size, apart, sharing)

    if acting:
        acts = [request for request in requests if request.is_act]
        kinds = [wanted_of(request, network).kind for request in acts]
        usable = strategies_for(strategies, sharing, acts, kinds)
        return Mixing(network, dataset, requests, usable, size, sizes, statistics).settle()
    found = statistics(requests)
    losses = relative_losses((network, dataset, requests, size, sizes), found.planned)
    asked = {request.observer: request.requirement.guarantee for request in requests}

    def curves() -> tuple[Curve, ...]:
        return tuple(
            statistic_curve(planned, loss, asked[planned.observer], found.noises[planned.observer])
            for planned, loss in zip(found.planned, losses, strict=True)
        )

    return Mixed(found.planned, found.draws, found.promises, (), tuple(losses), curves)


def _cheapest(
    network: Network,
    dataset: str,
    requests: tuple[Request, ...],
    sizes: Mapping[str, float],
    size: float,
    apart: bool,
    sharing: Sharing | None,
) -> Settled:
    found, refusals = [], []
    templates: dict[tuple[int, tuple[str, ...], tuple[str, ...]], Template | None] = {}
    for noise in _noises(requests, sharing):
        try:
            found.append(Settling(network, dataset, requests, noise, size, sizes, {}, templates, sharing).settle())
        except PlanError as refusal:  # what one kind of noise cannot do another may
            refusals.append(refusal)

    def settled(own: tuple[Request, ...], noise: NoiseName, scales: Mapping[str, float]) -> Settled:
        return Settling(network, dataset, own, noise, size, sizes, scales, templates, sharing).settle()

    both = settle_side_by_side(network, dataset, requests, settled) if apart else None
    found += [both] if both is not None else []
    if not found:
        raise refusals[0]
    wished = any(request.preferred for request in requests)
    found.sort(key=lambda one: (-_followed_wishes(one, requests) if wished else 0, one.loss))
    chosen = _with_wishes(found[0], requests)
    for other in found[1:]:
        planned = tuple(_beside(mine, _same_of(other, mine), other) for mine in chosen.planned)
        chosen = dataclasses.replace(chosen, planned=planned)
    return chosen


def _followed_wishes(settled: Settled, requests: tuple[Request, ...]) -> int:
    return sum(name == settled.noises[request.observer] for request in requests for name in request.preferred)


def _with_wishes(chosen: Settled, requests: tuple[Request, ...]) -> Settled:
    """The same, saying of every publication whether its preferred kind of noise was taken."""
    wishes = {(r.name, r.observer): [name for name in r.preferred if name in LAWS] for r in requests}
    return dataclasses.replace(
        chosen,
        planned=tuple(
            dataclasses.replace(one, reason=f"{one.reason}; {_followed(chosen.noises[one.observer], wanted)}")
            if (wanted := wishes[one.name, one.observer])
            else one
            for one in chosen.planned
        ),
    )


def _followed(noise: NoiseName, wanted: Sequence[str]) -> str:
    if noise in wanted:
        return f"the study prefers {noise} noise"
    return (
        f"the {' or '.join(wanted)} noise that the study prefers cannot be used here: an observer sees one kind of "
        "noise, and every promise and publication must allow it"
    )


def _same_of(other: Settled, mine: Planned) -> Planned:
    return next(one for one in other.planned if (one.name, one.observer) == (mine.name, mine.observer))


def _beside(mine: Planned, theirs: Planned, other: Settled) -> Planned:
    ratio = f"{theirs.error / mine.error:.3g} times the error here" if mine.error > 0 else "no better"
    considered = Considered(f"{_called(other)} noise", theirs.error, ratio, theirs.cut)
    return dataclasses.replace(mine, alternatives=(*mine.alternatives, considered))


def _called(settled: Settled) -> str:
    return "for each observer the best kind of" if settled.noise is None else settled.noise


def _noises(requests: tuple[Request, ...], sharing: Sharing | None) -> list[NoiseName]:
    """Noise that costs a pure ε keeps every kind of promise; all other needs a δ somewhere, and centres need shares."""
    banned = forbidden_by(requests)
    left = [noise for noise in _allowed_noises(requests, sharing) if noise not in banned]
    if not left:
        raise _no_noise_left(requests[0], banned) if banned else _answers_need_epsilon(requests)
    return left


def _allowed_noises(requests: tuple[Request, ...], sharing: Sharing | None) -> list[NoiseName]:
    """What the promises and the centres allow, whatever the study forbids."""
    drawable = [law for law in LAWS.values() if sharing is None or law.shares is not None]
    # A random answer costs a pure ε.
    only_pure, has_pure = any(map(_needs_epsilon, requests)), _has_pure(requests)
    return [law.name for law in drawable if (has_pure if law.pure else not only_pure)]


def _needs_epsilon(request: Request) -> bool:
    return is_pure(request.requirement.guarantee) or request.sampled


def _no_noise_left(first: Request, banned: set[str]) -> PlanError:
    return PlanError(
        f"{first.position}{first.name}: no kind of noise is left ({', '.join(sorted(banned))} forbidden). A "
        "promise without δ needs Laplace noise. Nothing was planned and nothing was spent."
    )


def _answers_need_epsilon(requests: tuple[Request, ...]) -> PlanError:
    """Laplace noise is all that was left, and some promise says nothing about a pure ε."""
    first = next(filter(_needs_epsilon, requests))
    what = "is a random answer, whose cost is a pure ε" if first.sampled else "has a promise without δ"
    return PlanError(
        f"{first.position}{first.name} {what}, and another promise on {first.requirement.dataset} cannot be kept by "
        "one. State dp(ε) or dp(ε, δ) for every observer of the dataset, or publish a number instead of an answer. "
        "Nothing was planned and nothing was spent."
    )


def _has_pure(requests: tuple[Request, ...]) -> bool:
    from sfumato.mechanisms.calibrate import largest_pure_epsilon

    try:
        return all(largest_pure_epsilon(request.requirement.guarantee) > 0 for request in requests)
    except PrivacyParameterError:
        return False
