"""A published folder checked against its study: every sensitivity derived again, no optimisation repeated, no data.

In:   a folder written by `sfumato run`, optionally the study (and its public tables).
Out:  Checks, as for a certificate.
Not here: certificates alone (evidence/verify.py, which knows nothing but core).

What a certificate cannot say is why a node moves by no more than its stated sensitivity. That follows from the study:
ranges, expressions, contribution bounds, and the fact that the noisy nodes cut every way from private data to what is
seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.core import compose
from sfumato.core.certificate import Certificate
from sfumato.errors import SfumatoError
from sfumato.evidence.verify import Check, verify
from sfumato.network.network import Network
from sfumato.plan.cuts import is_cut
from sfumato.plan.discrete import SampleDraw, sample_candidate
from sfumato.plan.draw import Draw
from sfumato.plan.linear_individual import LinearDraw
from sfumato.plan.make import network_of
from sfumato.plan.plan import Plan
from sfumato.plan.request import Request, requests_of, sample_template, template_of
from sfumato.plan.settle import ARITHMETIC, statistic_of
from sfumato.plan.template import Template

__all__ = ["verify_folder", "verify_plan"]


def verify_folder(
    folder: Path, study: Path | None = None, tables: Mapping[str, Any] | None = None
) -> tuple[Check, ...]:
    """All checks of a published folder; with the study also those that need it."""
    try:
        plan = Plan.read(folder / "plan.json")
    except SfumatoError as error:
        return (Check("plan.json", False, str(error)),)
    checks = [Check("plan.json", True, f"It is the plan {plan.hash[:12]} and was not changed.")]
    files = sorted(folder.glob("certificate*.json"))
    if not files:
        checks.append(Check("certificate.json", False, "There is no certificate here."))
    for path in files:
        checks.extend(_certificate(path, plan))
    if study is not None:
        checks.extend(verify_plan(plan, network_of(study, tables)))
    return tuple(checks)


def _certificate(path: Path, plan: Plan) -> Iterator[Check]:
    result = verify(path, plan=plan.to_dict())
    if not result.ok:
        yield from (Check(f"{path.name}: {field}", False, sentence) for field, _, sentence in result.failures)
        return
    yield Check(path.name, True, f"{Certificate.read(path).guarantee}.")


def verify_plan(plan: Plan, network: Network) -> Iterator[Check]:
    """The plan's promises and sensitivities from the study's own words."""
    same = plan.study_digest == network.spec.digest
    yield Check("study", same, "The plan was made for this study." if same else "The plan was made for another study.")
    if not same:
        return
    for promise in plan.promises:
        events = plan.events(promise.dataset, promise.observers)
        holds = not events or compose(events).implies(promise.asked) is True
        who = " and ".join(promise.observers)
        finding = f"{promise.asked}." if holds else "The draws cost more than was promised."
        yield Check(f"promise to {who}", holds, finding)
    requests = requests_of(network)
    for observer in sorted({planned.observer for planned in plan.publications}):
        yield from _observer(plan, network, observer, [r for r in requests if r.observer == observer])


def _observer(plan: Plan, network: Network, observer: str, requests: list[Request]) -> Iterator[Check]:
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
                law = sample_candidate(node, sample_template(network, group, node)) if node is not None else None
                yield _found(f"{observer}: {draw.node}", law == draw.candidate, "the answers' law is the study's")


def _sums(draws: list[Any], network: Network, observer: str) -> Iterator[Check]:
    sums = {node.name: node for node in network.aggregates}
    for draw in draws:
        if draw.group is None and isinstance(draw, Draw):
            node = sums.get(draw.node)
            if node is None:
                yield Check(f"{observer}: {draw.node}", False, "The study has no such aggregate.")
                continue
            statistic = statistic_of(node, network)
            least = (statistic.l2 if draw.noise == "gaussian" else statistic.l1) * ARITHMETIC
            fine = draw.sensitivity >= least and draw.dimension >= statistic.dimension
            yield _found(f"{observer}: {draw.node}", fine, f"one individual moves it by at most {least:.6g}")


def _numbers(draws: list[Any], template: Template, observed: list[str], observer: str) -> Iterator[Check]:
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


def _found(what: str, fine: bool, finding: str) -> Check:
    return Check(what, fine, f"{finding[0].upper()}{finding[1:]}." if fine else "The study does not say so.")
