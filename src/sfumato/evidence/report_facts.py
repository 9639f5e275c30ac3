"""What only a page shows, as plain values, beside the facts that every text words.

In:   ReleaseFacts, a ledger if there is one, the network.
Out:  PageFacts. None of them is a published value or a private one, so the page can be shown to anybody.
Not here: how the page looks (templates/report.html), facts of all texts (evidence/facts.py), deciding (plan/).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sfumato.errors import SfumatoError
from sfumato.evidence.drawn import Drawn, deviation_of, drawn_for
from sfumato.evidence.facts import ReleaseFacts
from sfumato.evidence.frontier import Frontier, frontier_of
from sfumato.evidence.report_plots import frontier_svg
from sfumato.ledger.balance import amount_text, left_text
from sfumato.ledger.ledger import Ledger
from sfumato.network.network import Network
from sfumato.plan.plan import Plan
from sfumato.plan.whole import at_promises

__all__ = [
    "AccountFacts",
    "Accounts",
    "DrawFacts",
    "PageFacts",
    "ZoneFacts",
    "accounts_of",
    "noise_labels",
    "page_facts",
]


@dataclass(frozen=True)
class DrawFacts:
    """One draw: where, how wide, who gets to see it, and what an unbiased attacker's error is at least."""

    node: str
    law: str
    scale: float | None
    sensitivity: float | None
    dimension: int
    observers: str
    unit: str
    own: bool  # on one individual's value, not on a sum
    limit: float | None
    cost: str


@dataclass(frozen=True)
class ZoneFacts:
    """The picture as a list, for one observer: what is sensitive, what lies between, what is seen, where noise goes."""

    observer: str
    names: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class AccountFacts:
    """One dataset in the ledger, or what the plan alone says about it."""

    dataset: str
    cost: str
    granted: str = ""
    spent: str = ""
    left: str = ""


@dataclass(frozen=True)
class Accounts:
    """`source` is "dry run", "none", "unreadable" or "ledger"; `error` names what kept a ledger from being read."""

    source: str
    datasets: tuple[AccountFacts, ...]
    error: str = ""


@dataclass(frozen=True)
class PageFacts:
    """What the report shows beside ReleaseFacts."""

    accounts: Accounts
    extras: tuple[tuple[str, str], ...] = ()
    noise: tuple[DrawFacts, ...] = ()
    noise_for: Mapping[str, tuple[DrawFacts, ...]] = field(default_factory=dict)
    curves: Mapping[tuple[str, str], tuple[Frontier, Markup]] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    picture: Markup | None = None
    zones: tuple[ZoneFacts, ...] = ()


def page_facts(
    facts: ReleaseFacts,
    ledger: str | Path | None,
    findings: Iterable[str] = (),
    picture: Markup | None = None,
    graph: Network | None = None,
) -> PageFacts:
    """Everything the report shows beside the facts."""
    return PageFacts(
        accounts_of(facts, ledger),
        tuple(
            (str(key), json.dumps(value, ensure_ascii=False, default=str))
            for key, value in facts.plan.extras.items()
            if key != "about"
        ),
        _noise(drawn_for(facts.drawn)),
        {observer: _noise(drawn_for(facts.drawn, observer)) for observer in facts.observers},
        dict(_curves(facts.drawn)),
        tuple(findings),
        picture,
        _zones(facts.drawn, graph) if graph is not None else (),
    )


def _curves(plan: Plan) -> Iterable[tuple[tuple[str, str], tuple[Frontier, Markup]]]:
    for planned in plan.publications:
        frontier = frontier_of(plan, planned)
        if frontier is not None:
            yield (planned.name, planned.observer), (frontier, frontier_svg(frontier, planned.name))


def _noise(acts: Iterable[Drawn]) -> tuple[DrawFacts, ...]:
    """Groups of individuals that are alike in everything drawn appear once."""
    found = (
        DrawFacts(
            act.name,
            act.title,
            act.scale,
            act.sensitivity,
            act.dimension,
            ", ".join(act.observers),
            act.unit,
            act.group is not None,
            act.limit,
            act.cost,
        )
        for act in acts
    )
    return tuple(dict.fromkeys(found))


def noise_labels(plan: Plan) -> dict[tuple[str, str], str]:
    """For (observer, node) the standard deviation of the noise in the observer's version: for the picture."""
    seen: dict[tuple[str, str], list[Drawn]] = {}
    for act in drawn_for(plan):
        for observer in act.observers if not act.publication else ():
            for node in act.nodes:
                seen.setdefault((observer, node), []).append(act)
    labels = {}
    for key, acts in seen.items():
        deviation = deviation_of(acts)
        labels[key] = "noise" if deviation is None else f"noise σ = {deviation:.3g}"
    return labels


def _zones(plan: Plan, network: Network) -> tuple[ZoneFacts, ...]:
    labels = noise_labels(plan)
    found = []
    for zones in network.zones:
        acts = [act for act in drawn_for(plan, zones.observer) if act.publication]
        noisy = [f"{node} ({label})" for (observer, node), label in labels.items() if observer == zones.observer]
        named = {
            "sensitive": zones.sensitive,
            "between": zones.intermediate,
            "seen": _seen_by(plan, zones.observer, zones.observed),
            "noise on": [*noisy, *(f"{act.publication} ({act.title}: {act.cost})" for act in acts)],
        }
        if zones.observed:
            found.append(ZoneFacts(zones.observer, {word: tuple(sorted(names)) for word, names in named.items()}))
    return tuple(found)


def _seen_by(plan: Plan, observer: str, observed: Iterable[str]) -> set[str]:
    """What an observer sees by name; of a model or of rows their own name, for the cells they are made from are not."""
    own = [one for one in plan.publications if one.observer == observer]
    made = {one.name for one in own if plan.act_of(one)}
    shown = {seen.node for one in own if not plan.act_of(one) for seen in one.seen}
    return (set(observed) - (_made_from(plan, observer) - shown - _known_exactly(plan, observer))) | made


def _made_from(plan: Plan, observer: str) -> set[str]:
    """The cells from which an observer's models and rows are made."""
    return {node for act in drawn_for(plan, observer) if act.publication for node in act.nodes}


def _known_exactly(plan: Plan, observer: str) -> set[str]:
    return {variable for reader, variable in plan.extras.get("exact", ()) if reader == observer}


def accounts_of(facts: ReleaseFacts, ledger: str | Path | None) -> Accounts:
    """What the plan costs, and what the ledger says about its datasets."""
    costs = {dataset: at_promises(facts.plan.cost(dataset), facts.plan, dataset) for dataset in facts.plan.datasets}
    plain = tuple(AccountFacts(dataset, cost) for dataset, cost in costs.items())
    if facts.state.rehearsed:
        return Accounts("dry run", plain)
    if ledger is None or not Path(ledger).is_file():
        return Accounts("none", plain)
    try:
        book = Ledger(ledger, create=False)
        known = book.datasets()
        found = [one for dataset, cost in costs.items() for one in _account(book, known, dataset, cost)]
    except SfumatoError as error:
        return Accounts("unreadable", plain, type(error).__name__)
    return Accounts("ledger", tuple(found))


def _account(book: Ledger, known: Iterable[tuple[str, Any]], dataset: str, cost: str) -> list[AccountFacts]:
    balances = [book.balance(name, unit) for name, unit in known if name == dataset]
    return [
        AccountFacts(
            f"{dataset}, under {balance.adjacency}",
            cost,
            amount_text(balance.granted),
            amount_text(balance.spent) if balance.spent else "nothing",
            left_text(balance.remaining),
        )
        for balance in balances
    ] or [AccountFacts(dataset, cost)]
