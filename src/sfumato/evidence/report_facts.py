"""What the report says, as plain values: the same facts that `explain` tells in words.

In:   a Plan, the folder of a release if there is one, a ledger if there is one.
Out:  Facts for the page. None of them is a published value or a private one, so the page can be shown to anybody.
Not here: how the page looks (evidence/templates/report.html), deciding (plan/).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from sfumato.errors import SfumatoError
from sfumato.evidence.drawn import Drawn, deviation_of, drawn_for
from sfumato.evidence.figures import told_of
from sfumato.evidence.files import published_files
from sfumato.evidence.frontier import Frontier, frontier_of
from sfumato.evidence.odds import odds_of, odds_sentence, one_in, stated_point
from sfumato.evidence.report_plots import frontier_svg
from sfumato.evidence.took_part import as_drawn, took_part
from sfumato.evidence.verify import verify
from sfumato.ledger.balance import amount_text, left_text
from sfumato.ledger.ledger import Ledger
from sfumato.network.network import Network
from sfumato.plan.about import decided_of, title_of, weak_promises
from sfumato.plan.plan import Plan, Planned, Promise
from sfumato.plan.sentences import exact_sentences, history_sentences, part_sentences
from sfumato.plan.told import Told
from sfumato.plan.usefulness import verdicts_of

__all__ = [
    "AccountFacts",
    "Checked",
    "DrawFacts",
    "Facts",
    "ObserverFacts",
    "PromiseFacts",
    "PublicationFacts",
    "gather",
    "noise_labels",
    "state_of",
]

#: So many nodes of a zone are named in words.
_LISTED = 12
_LAWS = {"gaussian": "Gaussian", "laplace": "Laplace"}


@dataclass(frozen=True)
class PromiseFacts:
    """One promise with its meaning."""

    who: str
    dataset: str
    requirement: str
    asked: str
    kept: str
    adjacency: str
    epsilon: float
    delta: float
    odds: str  # what happens to them, in words
    sure: float  # per cent of right guesses of the best attacker who starts at 50
    sentence: str
    chance: str  # δ as one in so many; empty where there is none
    decided: str  # who decided it; empty where the study does not say

    @property
    def delta_text(self) -> str:
        return f"{self.delta:g}"


@dataclass(frozen=True)
class PublicationFacts:
    """One publication as its observer will find it."""

    planned: Planned
    told: tuple[Told, ...]
    about: tuple[str, ...]
    files: tuple[str, ...]
    exact: bool
    act: bool  # rows or a model, whose error is no interval
    frontier: Frontier | None
    plot: Markup | None


@dataclass(frozen=True)
class DrawFacts:
    """One draw: where, how wide, who gets to see it, and what an unbiased attacker's error is at least."""

    node: str
    law: str
    scale: float | None
    sensitivity: float | None
    dimension: int
    observers: str
    limit: str
    cost: str


@dataclass(frozen=True)
class ObserverFacts:
    """Everything about one observer."""

    name: str
    anchor: str
    shown: tuple[PublicationFacts, ...]
    promises: tuple[PromiseFacts, ...]
    noise: tuple[DrawFacts, ...]


@dataclass(frozen=True)
class AccountFacts:
    """One dataset in the ledger, or what the plan alone says about it."""

    dataset: str
    cost: str
    granted: str = ""
    spent: str = ""
    left: str = ""


@dataclass(frozen=True)
class Checked:
    """A certificate of the folder and what the verifier says about it now."""

    file: str
    subject: str
    holds: bool
    publishable: bool
    finding: str


@dataclass(frozen=True)
class Facts:
    """The whole report."""

    study: str
    title: str
    purpose: str
    plan_hash: str
    study_digest: str
    state: str  # "planned", "published", "dry run" or "incomplete"
    observers: tuple[ObserverFacts, ...]
    promises: tuple[PromiseFacts, ...]
    noise: tuple[DrawFacts, ...]
    accounts: tuple[AccountFacts, ...]
    ledger_note: str
    certificates: tuple[Checked, ...]
    assumptions: tuple[str, ...]
    findings: tuple[str, ...]
    picture: Markup | None
    extras: tuple[tuple[str, str], ...]
    exact: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]  # table, column, public range, what is done with absent cells
    rows: tuple[tuple[str, ...], ...]  # table, which rows count
    weak: tuple[str, ...]
    drawn: tuple[str, ...]  # the picture in words
    centres: str  # who took part in a sum over centres; empty where there are none


def gather(
    plan: Plan,
    folder: Path | None,
    ledger: str | Path | None,
    findings: Iterable[str] = (),
    picture: Markup | None = None,
    network: Network | None = None,
    graph: Network | None = None,
) -> Facts:
    """Everything the page shows."""
    promises = tuple(_promise(plan, promise) for promise in plan.promises)
    about = plan.extras.get("about", {})
    certificates = _checked(folder) if folder else ()
    files = published_files(folder) if folder else {}
    names = sorted({planned.observer for planned in plan.publications})
    drawn = as_drawn(plan, folder)
    observers = tuple(
        ObserverFacts(
            name,
            f"observer-{number}",
            tuple(_shown(drawn, one, files, network, folder) for one in drawn.publications if one.observer == name),
            tuple(_promise(plan, promise) for promise in plan.promises if name in promise.observers),
            _noise(drawn_for(drawn, name)),
        )
        for number, name in enumerate(names, 1)
    )
    accounts, note = _accounts(plan, ledger, certificates)
    return Facts(
        plan.study,
        title_of(plan),
        str(about.get("purpose", "")),
        plan.hash,
        plan.study_digest,
        _state(folder, certificates),
        observers,
        promises,
        _noise(drawn_for(drawn)),
        accounts,
        note,
        certificates,
        plan.assumptions,
        tuple(findings),
        picture,
        tuple(
            (str(key), json.dumps(value, ensure_ascii=False, default=str))
            for key, value in plan.extras.items()
            if key != "about"
        ),
        (*history_sentences(plan), *part_sentences(plan), *exact_sentences(plan)),
        tuple(tuple(map(str, one)) for one in about.get("columns", ())),
        tuple(tuple(map(str, one)) for one in about.get("rows", ())),
        weak_promises(plan),
        _zones_in_words(drawn, graph) if graph is not None else (),
        took_part(folder),
    )


def state_of(folder: Path | None) -> str:
    """What a folder holds: nothing yet ("planned"), "published", a "dry run", or something "incomplete"."""
    return _state(folder, _checked(folder) if folder else ())


def _state(folder: Path | None, certificates: tuple[Checked, ...]) -> str:
    if folder is None:
        return "planned"
    if not certificates or not all(one.holds for one in certificates):
        return "incomplete"
    return "published" if all(one.publishable for one in certificates) else "dry run"


def _promise(plan: Plan, promise: Promise) -> PromiseFacts:
    epsilon, delta = stated_point(promise.asked)
    odds = odds_of(promise.asked, promise.kept)
    adjacency = promise.asked.adjacency
    return PromiseFacts(
        " and ".join(promise.observers),
        promise.dataset,
        promise.requirement,
        promise.asked.describe(),
        promise.kept.describe(),
        str(adjacency) if adjacency else "",
        epsilon,
        delta,
        odds.bound,
        odds.sure,
        odds_sentence(promise.asked, promise.kept),
        one_in(delta) if delta else "",
        decided_of(plan, promise.requirement),
    )


def _shown(
    plan: Plan,
    planned: Planned,
    files: dict[tuple[str, str], tuple[str, ...]],
    network: Network | None,
    folder: Path | None,
) -> PublicationFacts:
    frontier = frontier_of(plan, planned, network)
    needed = {*planned.cut, *(seen.node for seen in planned.seen)}
    drawn = [act for act in drawn_for(plan, planned.observer) if act.serves(planned.name, needed)]
    return PublicationFacts(
        planned,
        told_of(planned, folder),
        (*verdicts_of(plan, planned), *planned.about),
        files.get((planned.name, planned.observer), ()),
        planned.error == 0 and not drawn,
        any((act.name, act.observer) == (planned.name, planned.observer) for act in plan.acts),
        frontier,
        frontier_svg(frontier, planned.name) if frontier else None,
    )


def _noise(acts: Iterable[Drawn]) -> tuple[DrawFacts, ...]:
    """Groups of individuals that are alike in everything drawn appear once."""
    found: dict[DrawFacts, None] = {}
    for act in acts:
        what = f"what one {act.unit} adds to it" if act.group is None else f"one {act.unit}'s value"
        limit = f"{what}: error at least {act.deviation:.4g}" if act.deviation else ""
        law, who = _LAWS.get(act.law, act.law), ", ".join(act.observers)
        found[DrawFacts(act.name, law, act.scale, act.sensitivity, act.dimension, who, limit, act.cost)] = None
    return tuple(found)


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


def _zones_in_words(plan: Plan, network: Network) -> tuple[str, ...]:
    """The picture as a list: for each observer what is sensitive, what lies between, what is seen, where noise goes."""
    labels = noise_labels(plan)
    found = []
    for zones in network.zones:
        noisy = [f"{node} ({label})" for (observer, node), label in labels.items() if observer == zones.observer]
        parts = (
            ("sensitive", zones.sensitive),
            ("between", zones.intermediate),
            ("seen", zones.observed),
            ("noise on", noisy),
        )
        told = [f"{word}: {_some(sorted(names))}" for word, names in parts if names]
        found += [f"For {zones.observer}, {'; '.join(told)}."] if zones.observed else []
    return tuple(found)


def _some(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _checked(folder: Path) -> tuple[Checked, ...]:
    """Every certificate verified again, now."""
    found = []
    for path in sorted(folder.glob("certificate*.json")):
        result = verify(path)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            subject, publishable = str(record["subject"]), record["publishable"] is True
        except (OSError, ValueError, KeyError, TypeError):
            subject, publishable = "cannot be read", False
        wrong = [check.sentence for check in result.checks if not check.ok]
        said = wrong[0] if wrong else f"{len(result.checks)} entries recomputed without the data"
        found.append(Checked(path.name, subject, result.ok, publishable, said))
    return tuple(found)


def _accounts(
    plan: Plan, ledger: str | Path | None, certificates: tuple[Checked, ...]
) -> tuple[tuple[AccountFacts, ...], str]:
    costs = {dataset: plan.cost(dataset).describe() for dataset in plan.datasets}
    plain = tuple(AccountFacts(dataset, cost) for dataset, cost in costs.items())
    if certificates and not all(one.publishable for one in certificates):
        return plain, "A dry run charges nothing."
    if ledger is None or not Path(ledger).is_file():
        return plain, "No ledger was given: this is what the plan costs, not what was charged."
    try:
        book = Ledger(ledger, create=False)
        known = book.datasets()
        found = []
        for dataset, cost in costs.items():
            balances = [book.balance(name, unit) for name, unit in known if name == dataset]
            found += [
                AccountFacts(
                    f"{dataset}, under {balance.adjacency}",
                    cost,
                    amount_text(balance.granted),
                    amount_text(balance.spent) if balance.spent else "nothing",
                    left_text(balance.remaining),
                )
                for balance in balances
            ] or [AccountFacts(dataset, cost)]
    except SfumatoError as error:
        return plain, f"The ledger could not be read: {type(error).__name__}."
    return tuple(found), "Granted, spent and left as the ledger stood when this page was written."
