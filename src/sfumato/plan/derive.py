"""A plan derived again from its study: every promise, every sensitivity, every cut. No optimisation is repeated.

In:   a Plan, the Network of its study.
Out:  Findings. Running refuses a plan with a false one; `sfumato verify FOLDER --study` prints them.
Not here: making plans (plan/make.py), certificates (evidence/verify.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sfumato.core import Guarantee, compose
from sfumato.network.network import Network
from sfumato.plan.cuts import is_cut
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.draw import Draw
from sfumato.plan.linear_individual import LinearDraw
from sfumato.plan.plan import Plan
from sfumato.plan.request import Request, requests_of, sample_answers, template_of
from sfumato.plan.settle import ARITHMETIC
from sfumato.plan.statistic import statistic_of
from sfumato.plan.template import Template
from sfumato.plan.wanted import follows_study

__all__ = ["Finding", "derive"]


class Finding(NamedTuple):
    """One thing that was derived again, and whether the plan says the same or less."""

    field: str
    ok: bool
    sentence: str


def derive(plan: Plan, network: Network) -> Iterator[Finding]:
    """The plan's promises and sensitivities from the study's own words."""
    same = plan.study_digest == network.spec.digest
    yield Finding(
        "study", same, "The plan was made for this study." if same else "The plan was made for another study."
    )
    if not same:
        return
    yield from _promises(plan, network)
    for act in plan.acts:
        yield _found(f"{act.observer}: {act.name}", follows_study(act, network), "it reads what the study says")
    requests = requests_of(network)
    for observer in sorted({planned.observer for planned in plan.publications}):
        yield from _observer(plan, network, observer, [r for r in requests if r.observer == observer])


def _promises(plan: Plan, network: Network) -> Iterator[Finding]:
    """What the study asks, not what the plan says it asks, against what is drawn."""
    asked: dict[str, dict[str, Guarantee]] = {}
    for request in requests_of(network):
        asked.setdefault(request.requirement.dataset, {})[request.observer] = request.requirement.guarantee
    stated = {(promise.dataset, promise.observers): promise.asked for promise in plan.promises}
    for dataset, wanted in asked.items():
        for observer, guarantee in wanted.items():
            same = stated.get((dataset, (observer,))) == guarantee
            yield _kept(plan, dataset, (observer,), [guarantee], same)
        for collusion in network.spec.collusions:
            group = tuple(sorted(set(collusion.observers) & wanted.keys()))
            if len(group) > 1:
                yield _kept(plan, dataset, group, [wanted[observer] for observer in group], True)


def _kept(plan: Plan, dataset: str, observers: tuple[str, ...], asked: list[Guarantee], stated: bool) -> Finding:
    """A group keeps the loosest of its members' promises."""
    events = plan.events(dataset, observers)
    cost = compose(events) if events else None
    holds = stated and (cost is None or any(cost.implies(guarantee) is True for guarantee in asked))
    finding = (
        f"{_held(cost, asked)}." if holds else "What is drawn costs more than the study promises, or the plan promises less."
    )
    return Finding(f"promise to {' and '.join(observers)}", holds, finding)


def _held(cost: Guarantee | None, asked: list[Guarantee]) -> Guarantee:
    """The loosest of the promises that hold: a group is not promised what one member alone is."""
    kept = [one for one in asked if cost is None or cost.implies(one) is True]
    return next((one for one in kept if all(other.implies(one) is True for other in kept)), kept[0])


def _observer(plan: Plan, network: Network, observer: str, requests: list[Request]) -> Iterator[Finding]:
    draws = [draw for draw in plan.draws if observer in draw.observers]
    yield from _sums(draws, network, observer)
    asked = [request for request in requests if request.level == "individual"]
    numbers = [name for request in asked if not request.sampled for name in request.nodes]
    for index, group in enumerate(network.groups):
        own = [draw for draw in draws if draw.group == index]
        template = template_of(network, group, numbers) if numbers else None
        if template is not None:
            yield from _numbers(own, template, [n for n in numbers if n in template.order], observer)
        for draw in own:
            if isinstance(draw, SampleDraw):
                node = group.node(draw.node)
                law = sample_answers(network, group, node)[1] if node is not None else None
                yield _found(f"{observer}: {draw.node}", law == draw.candidate, "the answers' law is the study's")


def _sums(draws: list[Any], network: Network, observer: str) -> Iterator[Finding]:
    sums = {node.name: node for node in network.aggregates}
    for draw in draws:
        if draw.group is None and isinstance(draw, Draw):
            node = sums.get(draw.node)
            if node is None:
                yield Finding(f"{observer}: {draw.node}", False, "The study has no such aggregate.")
                continue
            statistic = statistic_of(node, network)
            least = (statistic.l2 if draw.noise == "gaussian" else statistic.l1) * ARITHMETIC
            fine = draw.sensitivity >= least and draw.dimension >= statistic.dimension
            yield _found(f"{observer}: {draw.node}", fine, f"one individual moves it by at most {least:.6g}")


def _numbers(draws: list[Any], template: Template, observed: list[str], observer: str) -> Iterator[Finding]:
    linear = [draw for draw in draws if isinstance(draw, LinearDraw)]
    if linear:
        for draw in linear:
            ranges = {name: (b.low, b.width) for name, b in template.bounds.items()}
            stated = zip(draw.candidate.inputs, draw.candidate.low, draw.candidate.width, strict=True)
            fine = all(name in ranges and ranges[name] == (low, width) for name, low, width in stated)
            private = frozenset(template.private) <= set(draw.candidate.inputs)
            yield _found(f"{observer}: {draw.node}", fine and private, "inputs and their ranges are the study's")
        return
    cut = frozenset(draw.node for draw in draws if isinstance(draw, Draw))
    covered = is_cut(cut, template.parents, template.private, observed)
    yield _found(f"{observer}: {', '.join(observed)}", covered, "noise lies on every way from private data")
    for draw in draws:
        if isinstance(draw, Draw):
            least = template.sensitivity(draw.node, cut)
            fine = draw.sensitivity >= least.value
            yield _found(f"{observer}: {draw.node}", fine, f"{least.value:.6g} by {least.rule}")


def _found(what: str, fine: bool, finding: str) -> Finding:
    return Finding(what, fine, f"{finding[0].upper()}{finding[1:]}." if fine else "The study does not say so.")
