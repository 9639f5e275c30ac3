"""The settled plan: what will be drawn, for whom, at what predicted error, and what else was considered.

In:   decisions of plan/make.py.
Out:  Plan, printable, serialisable, with a hash. No data, no random numbers.
Not here: deciding (plan/make.py), executing (run/study.py), explaining (evidence/explain.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.card import Card, Shown
from sfumato.core import Guarantee, NoGuarantee, Pufferfish, Reach, compose
from sfumato.core.digest import plan_digest
from sfumato.core.events.event import Event, Repeated
from sfumato.core.records import guarantee_from_dict
from sfumato.errors import InputError
from sfumato.lang.spec import EVERYONE
from sfumato.plan.act import Act
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.draw import Draw, events_of
from sfumato.plan.draw_law import draw_law
from sfumato.plan.linear.individual import LinearDraw
from sfumato.questions.question import Question
from sfumato.questions.registry import question_from_dict

if TYPE_CHECKING:
    from sfumato.network import Network

__all__ = ["Basis", "Considered", "Curve", "Plan", "Planned", "Promise", "Seen"]

VERSION = 6

#: Where no promise names a δ and the cost needs one.
_DELTA = 1e-6

#: What the error of a number rests on before it is drawn: nothing but the noise; the number of individuals, which will
#: be public; what will be drawn itself, such as the noisy size of a group, so that only its file can tell it; or it is
#: a random answer, which is wrong with the probability `error`; or a column of invented rows, of which the shares of
#: levels are about so far off in all, and no value stands for anybody.
Basis = Literal["known", "people", "drawn", "answer", "shares"]


@dataclass(frozen=True)
class Considered:
    """A strategy that was considered: what it would have cost and why it was not taken (or that it was)."""

    strategy: str
    error: float | None
    reason: str
    cut: tuple[str, ...] = ()
    seconds: float = 0.0
    bytes_sent: float = 0.0


@dataclass(frozen=True)
class Seen:
    """One number (or vector) as an observer will see it, with what is known before anything is spent."""

    node: str
    error: float  # expected squared error, all numbers of the node together
    half_width: float  # of the widest 95 % interval of its numbers
    size: int = 1
    note: str = ""
    #: (standard error, half width) of each number, in the order of `labels`; one pair if all are alike. Where there are
    #: `counts`, a pair is for so many numbers.
    numbers: tuple[tuple[float, float], ...] = ()
    labels: tuple[str, ...] = ()
    basis: Basis = "known"
    counts: tuple[int, ...] = ()

    @property
    def standard_error(self) -> float:
        """Of the widest of its numbers."""
        return max((one[0] for one in self.numbers), default=math.sqrt(self.error / max(self.size, 1)))


@dataclass(frozen=True)
class Planned:
    """One publication towards one observer: the settled strategy, what is seen, and the alternatives.

    `about` says in sentences what the numbers are (network/meaning.py), for every text about them.
    """

    name: str
    requirement: str
    observer: str
    strategy: str
    cut: tuple[str, ...]
    seen: tuple[Seen, ...]
    alternatives: tuple[Considered, ...]
    weight: float
    reason: str
    position: str = ""
    listed: bool = False  # every row stands beside its individual's identifier, which gets no noise
    about: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Expected squared error of everything this publication shows."""
        return math.fsum(seen.error for seen in self.seen)


@dataclass(frozen=True)
class Promise:
    """What one observer, or a group that colludes, may learn: asked for and kept."""

    observers: tuple[str, ...]
    dataset: str
    requirement: str
    asked: Guarantee
    kept: Guarantee


@dataclass(frozen=True)
class Curve:
    """Predicted loss of one publication against the ε of its requirement, the shares of the budget kept.

    `points` are (ε, loss) in ascending order of ε, loss being the expected squared error over a squared scale; the
    settled plan is `points[chosen]`.
    """

    publication: str
    observer: str
    points: tuple[tuple[float, float], ...]
    chosen: int


@dataclass(frozen=True)
class Plan(Shown):
    """One settled strategy per publication. `network` is carried along for running and takes no part in the hash.

    `draws` are noisy nodes, `questions` what the sums among them ask; `acts` are all other random acts: tables, models,
    channels.
    """

    study: str
    study_digest: str
    publications: tuple[Planned, ...]
    draws: tuple[Draw | LinearDraw | SampleDraw, ...]
    promises: tuple[Promise, ...]
    assumptions: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    network: Network | None = field(default=None, compare=False, repr=False)
    acts: tuple[Act, ...] = ()
    frontier: tuple[Curve, ...] = ()
    questions: Mapping[str, Question] = field(default_factory=dict)

    def _card(self) -> Card:
        from sfumato.plan.beforehand import said_beforehand

        rows = [
            [planned.name, planned.observer, planned.strategy, seen.node, seen.half_width, seen.standard_error]
            for planned in self.publications
            for seen in planned.seen
        ]
        facts = {f"promise to {' and '.join(one.observers)}": str(one.asked) for one in self.promises}
        head = ["publication", "observer", "strategy", "of", "95 % within ±", "standard error"]
        said = [str(one) for one in said_beforehand(self)]
        return Card(self.study, facts, head, rows, said, "a plan; no data were read")

    @cached_property
    def hash(self) -> str:
        """Of everything the plan says, as its certificates name it (`plan_hash`); computed once."""
        return plan_digest(self.to_dict())

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(sorted({draw.dataset for draw in self.draws} | {act.dataset for act in self.acts}))

    def events(self, dataset: str, observers: Iterable[str] | None = None) -> tuple[Event | Repeated | Guarantee, ...]:
        """What lies behind all that these observers together see of one individual; of everything if nobody is named.

        Events, and for an act whose events depend on the number of individuals the guarantee that it will keep.
        """
        names = None if observers is None else tuple(observers)
        acts = self.acts_of(dataset, names)
        return (*self.draw_events(dataset, names), *(cost for act in acts for cost in act.costs))

    def acts_of(self, dataset: str, observers: Iterable[str] | None = None) -> tuple[Act, ...]:
        """The acts on a dataset that these observers see; all of them if nobody is named."""
        names = None if observers is None else {*observers, EVERYONE}
        own = (act for act in self.acts if act.dataset == dataset)
        return tuple(act for act in own if names is None or names.intersection(act.observers))

    def draw_events(self, dataset: str, observers: Iterable[str] | None = None) -> tuple[Event, ...]:
        """The events of the draws alone.

        An individual belongs to one public group, so of groups only the costliest counts.
        """
        chosen = [draw for draw in self.draws if draw.dataset == dataset]
        if observers is not None:
            names = {*observers, EVERYONE}  # what everyone sees, these observers see too
            chosen = [draw for draw in chosen if names & set(draw.observers)]
        common = [draw for draw in chosen if draw.group is None]
        groups: dict[int, list[Draw | LinearDraw | SampleDraw]] = {}
        for draw in chosen:
            if draw.group is not None:
                groups.setdefault(draw.group, []).append(draw)
        worst = max(groups.values(), key=_spent, default=[])
        return events_of((*common, *worst))

    def cost(self, dataset: str) -> Guarantee:
        """What the plan costs one individual, as if every observer showed everything to everybody."""
        return self.for_individuals(dataset, self.row_cost(dataset))

    def row_cost(self, dataset: str) -> Guarantee:
        """The same for one row, as events say it: what the ledger is charged, which knows how many change together."""
        return compose(self.events(dataset))

    def for_individuals(self, dataset: str, cost: Guarantee) -> Guarantee:
        """What a cost for one row is for one individual, whose data may be part of several rows."""
        asked = [one.asked for one in self.promises if one.dataset == dataset and isinstance(one.asked, Pufferfish)]
        reaching = [one for one in asked if isinstance(one.dependence, Reach)]
        if not reaching:
            return cost
        most = max(reaching, key=lambda one: one.dependence.together)
        delta = max(one.delta_ for one in reaching) or _DELTA
        none = NoGuarantee(f"for {most.dependence.words} nothing is known", adjacency=cost.adjacency)
        return Pufferfish.kept_by(cost, most.dependence, delta) or none

    def publication(self, name: str, observer: str | None = None) -> Planned:
        for planned in self.publications:
            if planned.name == name and observer in (None, planned.observer):
                return planned
        known = ", ".join(sorted({planned.name for planned in self.publications}))
        raise InputError(f"The plan has no publication {name!r}. It has: {known}.")

    def act_of(self, planned: Planned) -> Act | None:
        """What publishes rows, a model or drawn numbers; None of what is read off draws, or is public."""
        return next((act for act in self.acts if act.makes(planned.name, planned.observer)), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "study": self.study,
            "study_digest": self.study_digest,
            "publications": [_planned_record(planned) for planned in self.publications],
            "draws": [draw.to_dict() for draw in self.draws],
            "promises": [
                {
                    "observers": list(promise.observers),
                    "dataset": promise.dataset,
                    "requirement": promise.requirement,
                    "asked": promise.asked.to_dict(),
                    "kept": promise.kept.to_dict(),
                }
                for promise in self.promises
            ],
            "assumptions": list(self.assumptions),
            "extras": dict(self.extras),
            "questions": {name: question.to_dict() for name, question in self.questions.items()},
            "acts": [act.to_dict() for act in self.acts],
            "frontier": [
                {
                    "publication": c.publication,
                    "observer": c.observer,
                    "points": [list(p) for p in c.points],
                    "chosen": c.chosen,
                }
                for c in self.frontier
            ],
        }

    def to_json(self) -> str:
        return json.dumps({**self.to_dict(), "hash": self.hash}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan in `text`, to be explained or compared; running one needs its study (`make_plan`)."""
        try:
            record = json.loads(text)
            stated = record.pop("hash")
            plan = cls._from_record(record)
        except InputError:
            raise
        except (AttributeError, KeyError, LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"This is not a plan: {error}. Make one with `sfumato plan STUDY.pl -o plan.json`."
            ) from error
        if plan.hash != stated:
            raise InputError("This plan was changed after it was made: its hash is another. Make it again.")
        return plan

    @classmethod
    def _from_record(cls, record: Mapping[str, Any]) -> Plan:
        if record["version"] != VERSION:
            raise InputError(
                f"This plan has version {record['version']} and this sfumato reads {VERSION}. Make it again with "
                "`sfumato plan STUDY.pl -o plan.json`: nothing is lost, and nothing was spent."
            )
        return cls(
            record["study"],
            record["study_digest"],
            tuple(_planned(entry) for entry in record["publications"]),
            tuple(_draw(entry) for entry in record["draws"]),
            tuple(
                Promise(
                    tuple(entry["observers"]),
                    entry["dataset"],
                    entry["requirement"],
                    guarantee_from_dict(entry["asked"]),
                    guarantee_from_dict(entry["kept"]),
                )
                for entry in record["promises"]
            ),
            tuple(record["assumptions"]),
            record["extras"],
            None,
            tuple(Act.from_dict(entry) for entry in record["acts"]),
            tuple(
                Curve(
                    entry["publication"],
                    entry["observer"],
                    tuple((epsilon, loss) for epsilon, loss in entry["points"]),
                    entry["chosen"],
                )
                for entry in record["frontier"]
            ),
            {name: question_from_dict(entry) for name, entry in record["questions"].items()},
        )

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {_unread(Path(path), error)}") from error
        return cls.from_json(text)


def _unread(path: Path, error: Exception) -> str:
    """Why there is no plan here, and what there is instead."""
    if not isinstance(error, FileNotFoundError):
        return f"the plan cannot be read: {error}."
    if (path.parent / "certificate.json").exists():
        folder = path.parent
        return (
            f"there is no such plan: {folder} was published without a study. How, and what it is good for, says "
            f"{folder / 'README.txt'}; `sfumato verify {folder}` checks it."
        )
    return "there is no such plan. Give plan.json, a folder written by `sfumato run`, or a study file."


def _spent(draws: Iterable[Draw | LinearDraw | SampleDraw]) -> float:
    """μ² for Gaussian noise, ε for Laplace noise; a dataset has one kind."""
    return math.fsum(draw_law(draw.noise).spent(draw.event().guarantee()) for draw in draws)


def _draw(entry: Mapping[str, Any]) -> Draw | LinearDraw | SampleDraw:
    if "linear" in entry:
        return LinearDraw.from_dict(entry)
    return SampleDraw.from_dict(entry) if "sample" in entry else Draw.from_dict(entry)


def _planned_record(planned: Planned) -> dict[str, Any]:
    return {
        "name": planned.name,
        "requirement": planned.requirement,
        "observer": planned.observer,
        "strategy": planned.strategy,
        "cut": list(planned.cut),
        "weight": planned.weight,
        "reason": planned.reason,
        "position": planned.position,
        "listed": planned.listed,
        "about": list(planned.about),
        "seen": [
            {
                "node": seen.node,
                "error": seen.error,
                "half_width": seen.half_width,
                "size": seen.size,
                "note": seen.note,
                "numbers": [list(pair) for pair in seen.numbers],
                "labels": list(seen.labels),
                "basis": seen.basis,
                "counts": list(seen.counts),
            }
            for seen in planned.seen
        ],
        "alternatives": [
            {
                "strategy": other.strategy,
                "error": other.error,
                "reason": other.reason,
                "cut": list(other.cut),
                "seconds": other.seconds,
                "bytes_sent": other.bytes_sent,
            }
            for other in planned.alternatives
        ],
    }


def _seen(entry: Mapping[str, Any]) -> Seen:
    numbers = tuple((float(error), float(width)) for error, width in entry["numbers"])
    return Seen(**{**entry, "numbers": numbers, "labels": tuple(entry["labels"]), "counts": tuple(entry["counts"])})


def _planned(entry: Mapping[str, Any]) -> Planned:
    return Planned(
        entry["name"],
        entry["requirement"],
        entry["observer"],
        entry["strategy"],
        tuple(entry["cut"]),
        tuple(_seen(seen) for seen in entry["seen"]),
        tuple(Considered(**{**other, "cut": tuple(other["cut"])}) for other in entry["alternatives"]),
        entry["weight"],
        entry["reason"],
        entry["position"],
        entry["listed"],
        tuple(entry["about"]),
    )
