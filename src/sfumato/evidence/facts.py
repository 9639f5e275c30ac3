"""What a plan and its release are, as plain values that every page and text words: computed once, said in templates/.

In:   a Plan, the folder of its release if there is one.
Out:  ReleaseFacts: publications with their errors, promises with their odds, what is learned exactly, who took part.
Not here: the words (templates/), what only a page shows (evidence/report_facts.py), deciding (plan/).

None of it is a published value or a private one, unless the reader is an observer who asks for its `own` errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sfumato.core.places import Place, place_of
from sfumato.evidence.drawn import Drawn, drawn_for
from sfumato.evidence.figures import told_of
from sfumato.evidence.files import published_files
from sfumato.evidence.folder_state import FolderState, folder_state
from sfumato.evidence.odds import Odds, odds_of, one_in
from sfumato.evidence.took_part import TookPart, as_drawn, took_part
from sfumato.lang.spec import EVERYONE
from sfumato.plan.about import decided_of, title_of, weak_promises
from sfumato.plan.beside import Beside, LearnedExactly, beside_of
from sfumato.plan.plan import Plan, Planned, Promise
from sfumato.plan.told import Told
from sfumato.plan.usefulness import verdicts_of
from sfumato.plan.whole import whole_cost

__all__ = ["PromiseFacts", "PublicationFacts", "ReleaseFacts", "gather", "promise_facts"]


@dataclass(frozen=True)
class PromiseFacts:
    """One promise with its meaning."""

    observers: tuple[str, ...]
    dataset: str
    unit: str
    requirement: str
    asked: str
    under: str  # the same with its adjacency
    kept: str
    adjacency: str
    epsilon: float
    delta: float
    odds: Odds
    decided: str  # who decided it; empty where the study does not say
    shown: tuple[str, ...]  # the publications it covers
    listed: tuple[str, ...]  # those of them that show who is in the data
    exact: tuple[LearnedExactly, ...]  # what its observers learn without noise

    @property
    def who(self) -> str:
        return " and ".join(self.observers)

    @property
    def chance(self) -> str:
        """δ as one in so many; empty where there is none."""
        return one_in(self.delta) if self.delta else ""


@dataclass(frozen=True)
class PublicationFacts:
    """One publication as its observer will find it."""

    planned: Planned
    folder: Path | None
    own: bool  # whether the reader is its observer
    files: tuple[str, ...]
    exact: bool  # everybody may know it
    act: bool  # rows or a model, whose error is no interval
    verdicts: tuple[str, ...]  # whether it is of use

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """The error of every number; read only by who tells it."""
        return told_of(self.planned, self.folder, own=self.own)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(seen.node for seen in self.planned.seen))

    @property
    def made(self) -> str:
        """Of rows or a model: what they are in words, without their name; empty for numbers, which questions word."""
        head = f"{self.planned.name} is "
        found = next((one for one in self.planned.about if one.startswith(head)), "") if self.act else ""
        return found.removeprefix(head)

    @property
    def widest(self) -> Told:
        return max(self.told, key=lambda one: max(one.below, one.above))

    @property
    def answers(self) -> bool:
        """Whether all of it are random answers, which have no squared error."""
        return all(one.wrong is not None for one in self.told)


@dataclass(frozen=True)
class ReleaseFacts:
    """Of a plan, and of its release if there is one."""

    plan: Plan
    drawn: Plan  # as it was drawn, where not every centre took part
    folder: Path | None
    publications: tuple[PublicationFacts, ...]
    promises: tuple[PromiseFacts, ...]
    beside: Beside
    centres: TookPart | None

    @cached_property
    def state(self) -> FolderState:
        """Where the folder stands: its certificates are verified once for all that is written from these facts."""
        return folder_state(self.folder)

    @property
    def title(self) -> str:
        return title_of(self.plan)

    @property
    def about(self) -> Mapping[str, Any]:
        """What the study says of itself (plan/about.py): its purpose, its columns (table, column, range, what is done
        with absent cells) and its rows (table, which of them count)."""
        return {"purpose": "", "columns": (), "rows": (), **self.plan.extras.get("about", {})}

    @property
    def observers(self) -> tuple[str, ...]:
        return tuple(sorted({planned.observer for planned in self.plan.publications}))

    @property
    def listed(self) -> tuple[Planned, ...]:
        """Publications that show who is in the data."""
        return tuple(planned for planned in self.plan.publications if planned.listed)

    @cached_property
    def costs(self) -> dict[str, str]:
        """What the ledger is charged for each dataset, as if everybody showed everything to everybody."""
        return {dataset: whole_cost(self.plan, dataset) for dataset in self.plan.datasets}

    @property
    def weak(self) -> tuple[str, ...]:
        return weak_promises(self.plan)

    @property
    def numbers(self) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
        """(publication, what its numbers are in sentences, for whom), observers who are told the same together."""
        told: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for planned in self.plan.publications:
            told.setdefault((planned.name, planned.about or (planned.reason,)), []).append(planned.observer)
        return tuple((name, sentences, tuple(observers)) for (name, sentences), observers in told.items())

    def shown_to(self, observer: str) -> tuple[PublicationFacts, ...]:
        return tuple(one for one in self.publications if one.planned.observer == observer)

    def promised_to(self, observer: str) -> tuple[PromiseFacts, ...]:
        return tuple(one for one in self.promises if observer in one.observers)

    def drawn_for(self, observer: str) -> tuple[Drawn, ...]:
        """What is drawn for an observer, tables and models apart."""
        return tuple(one for one in drawn_for(self.drawn, observer) if not one.publication)


def gather(plan: Plan, folder: Place | None = None, *, own: str | None = None) -> ReleaseFacts:
    """The facts as anybody may know them; `own` is the observer who reads them, and may know its own errors."""
    folder = place_of(folder)
    drawn = as_drawn(plan, folder)
    files = published_files(folder) if folder else {}
    beside = beside_of(plan)
    return ReleaseFacts(
        plan,
        drawn,
        folder,
        tuple(_publication(drawn, one, files, folder, one.observer == own) for one in drawn.publications),
        tuple(promise_facts(plan, promise, beside) for promise in plan.promises),
        beside,
        took_part(folder),
    )


def _publication(
    plan: Plan, planned: Planned, files: Mapping[tuple[str, str], tuple[str, ...]], folder: Path | None, own: bool
) -> PublicationFacts:
    needed = {*planned.cut, *(seen.node for seen in planned.seen)}
    noisy = any(act.serves(planned.name, needed) for act in drawn_for(plan, planned.observer))
    return PublicationFacts(
        planned,
        folder,
        own,
        files.get((planned.name, planned.observer), ()),
        planned.error == 0 and not noisy,
        plan.act_of(planned) is not None,
        verdicts_of(plan, planned),
    )


def promise_facts(plan: Plan, promise: Promise, beside: Beside) -> PromiseFacts:
    """One promise of a plan."""
    adjacency = promise.asked.adjacency
    epsilon, delta = promise.asked.stated
    # What everyone is shown each observer sees too, and the promise counts it.
    covered = [planned for planned in plan.publications if planned.observer in (*promise.observers, EVERYONE)]
    return PromiseFacts(
        promise.observers,
        promise.dataset,
        adjacency.unit if adjacency else "record",
        promise.requirement,
        promise.asked.describe(),
        str(promise.asked),
        promise.kept.describe(),
        str(adjacency) if adjacency else "",
        epsilon,
        delta,
        odds_of(promise.asked, promise.kept),
        decided_of(plan, promise.requirement),
        tuple(dict.fromkeys(planned.name for planned in covered)),
        tuple(dict.fromkeys(planned.name for planned in covered if planned.listed)),
        beside.learned_by(promise.observers),
    )
