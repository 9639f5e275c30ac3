"""README.txt: how recipients use noisy results correctly.

In:   a Plan, the folder of its release.
Out:  plain text: what is in the folder, the law of the noise, intervals, and the mistakes that bias conclusions.
Not here: the words (templates/readme.txt), the promise in three registers (evidence/explain.py), the page
(evidence/report.py).

Like the report it shows no result: one folder may hold numbers for several observers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core import Categories, Schema
from sfumato.core.places import Place
from sfumato.evidence.drawn import Drawn, deviation_of, drawn_for
from sfumato.evidence.facts import PublicationFacts, ReleaseFacts, gather
from sfumato.evidence.fairness import fairness_records
from sfumato.evidence.files import write_whole
from sfumato.learn.table import label_above_zero
from sfumato.plan.act import Act
from sfumato.plan.draw_law import LAWS, draw_law
from sfumato.plan.plan import Plan, Planned, Seen
from sfumato.plan.told import Told, digits
from sfumato.questions.registry import kind_called
from sfumato.wording import text

__all__ = ["StatedLaw", "noise_law", "readme_text", "recipient_text", "write_recipient_readme"]

_WIDTH = 92


@dataclass(frozen=True)
class StatedLaw:
    """What was added to one line of a publication: enough for an estimator.

    `kind` is "act", "public", "said" (the planner or the question has its own sentence), "correlated", "row" or
    "computed".
    """

    kind: str
    said: str = ""
    act: str = ""
    guarantee: str = ""
    noise: str = ""
    deviation: str = ""
    #: Of a classifier with two labels: the one that a score above 0 speaks for, and the one below.
    label: str = ""
    other: str = ""


@dataclass(frozen=True)
class _Section:
    """One publication: its lines by the law of their noise, and what a fair rule costs."""

    shown: PublicationFacts
    laws: tuple[tuple[StatedLaw, tuple[Told, ...]], ...]
    fairness: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _Examples:
    """A file of each kind to start from; empty where there is none."""

    aggregates: str
    individuals: str
    model: str


def write_recipient_readme(plan: Plan, folder: str | Path) -> Path:
    """Write README.txt into the folder of a release."""
    return write_whole(Path(folder) / "README.txt", recipient_text(plan, Path(folder)))


def recipient_text(plan: Plan, folder: Place | None = None) -> str:
    """The text for a plan, with the files of its release if there is one."""
    return readme_text(gather(plan, folder))


def readme_text(facts: ReleaseFacts) -> str:
    """The text from facts that are known already."""
    fairness = fairness_records(facts.folder) if facts.folder else {}
    drawn = {act.law for act in drawn_for(facts.plan)}
    return text(
        "readme.txt",
        _WIDTH,
        facts=facts,
        sections=[_section(facts, one, fairness) for one in facts.publications],
        cautions=[law.caution for law in LAWS.values() if law.name in drawn and law.caution],
        files=_examples(facts),
    )


def _section(facts: ReleaseFacts, shown: PublicationFacts, fairness: Mapping[str, Mapping[str, Any]]) -> _Section:
    laws: dict[StatedLaw, set[str]] = {}
    for seen in shown.planned.seen:
        laws.setdefault(noise_law(facts.drawn, shown.planned, seen), set()).add(seen.node)
    return _Section(
        shown,
        tuple((law, tuple(one for one in shown.told if one.node in nodes)) for law, nodes in laws.items()),
        tuple(record for name, record in fairness.items() if name in shown.files),
    )


def noise_law(plan: Plan, planned: Planned, seen: Seen) -> StatedLaw:
    """What was added to one line of a publication."""
    if act := plan.act_of(planned):
        below, above = _sides(act)
        return StatedLaw("act", act=act.kind, guarantee=str(act.guarantee), label=above, other=below)
    visible = [one for one in drawn_for(plan, planned.observer) if not one.publication]
    if own := [act for act in visible if seen.node in act.nodes]:
        return _law_of_own(plan, planned, seen, own)
    if any(set(act.nodes) & set(planned.cut) for act in visible):
        return StatedLaw("computed")
    return StatedLaw("public") if seen.error == 0 else _said(planned)


def _sides(act: Act) -> tuple[str, str]:
    """The labels that scores below and above 0 speak for, where there are two."""
    target = act.parameters.get("target")
    domain = Schema.from_toml(act.parameters["schema"]).columns.get(target) if target is not None else None
    label = label_above_zero(domain.values) if isinstance(domain, Categories) else None
    if not isinstance(domain, Categories) or label is None:
        return "", ""
    (other,) = (value for value in domain.values if value != label)
    return str(other), str(label)


def _law_of_own(plan: Plan, planned: Planned, seen: Seen, own: list[Drawn]) -> StatedLaw:
    if own[0].law not in LAWS:
        return _said(planned)
    if any(act.deviation is None for act in own):
        return StatedLaw("correlated")
    deviation = deviation_of(own) or 0.0
    if own[0].group is None:
        question, pure = plan.questions[seen.node], draw_law(own[0].law).pure
        return StatedLaw("said", question.law_words(_noise(own), deviation, seen.standard_error, pure))
    if set(planned.cut) <= {one.node for one in planned.seen}:
        return StatedLaw("row", noise=_noise(own), deviation=digits(deviation))
    return StatedLaw("computed")


def _said(planned: Planned) -> StatedLaw:
    return StatedLaw("said", f"{planned.reason.strip().rstrip('.') or 'See plan.json for its noise'}.")


def _noise(draws: list[Drawn]) -> str:
    law = draw_law(draws[0].law)
    return law.title if len(draws) == 1 or law.closed else f"a weighted mean of {len(draws)} {law.title} variables"


def _examples(facts: ReleaseFacts) -> _Examples:
    found: dict[str, list[str]] = {"aggregates": [], "individuals": [], "model": [], "": []}
    for one in facts.publications:
        if one.files:
            kind = _kind_of_file(facts, one)
            found[kind].append(one.files[-1 if kind == "model" else 0])
    if not any(found.values()):
        found["aggregates"].append("results/FILE.parquet")
    if all(act.group is None for act in drawn_for(facts.plan)):
        found["individuals"].clear()
    return _Examples(*("".join(found[kind][:1]) for kind in ("aggregates", "individuals", "model")))


def _kind_of_file(facts: ReleaseFacts, shown: PublicationFacts) -> str:
    """Aggregates come as JSON too, a file of individuals as Parquet alone; other rows and numbers have no example."""
    if act := facts.plan.act_of(shown.planned):
        return "model" if kind_called(act.kind).is_model else ""
    return "aggregates" if any(name.endswith(".json") for name in shown.files) else "individuals"
