"""A plan carried out over several institutions: one round for all sums, each institution's part, the release.

In:   a Plan whose draws are shared; at an institution its tables; at the coordinator the opened sum.
Out:  StudyRound, an institution's numbers in whole cells, Release.
Not here: the protocol (centres/), files and ledgers at an institution (run/centre_home.py), what a question adds up
(questions/).
Proof: docs/proofs/centre_sums.md

Every number that the plan draws is linear in sums over individuals. So each institution evaluates the study on its own
rows, encodes its own sums by the question's own rule, and what is opened is the noisy number of all: no question needs
anything of its own here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.centres.outcome import Aggregate
from sfumato.centres.round import Block, Centre, Coordinator
from sfumato.centres.study_round import Cost, StudyRound
from sfumato.errors import InputError, PlanError
from sfumato.network.evaluate import Values
from sfumato.network.network import Network
from sfumato.plan.act import ActKey
from sfumato.plan.draw import Draw
from sfumato.plan.plan import Plan
from sfumato.plan.shared_act import sharing_of
from sfumato.plan.sharing import Masks, NoiseAtEveryone, Sharing, centres_of
from sfumato.questions.question import Question
from sfumato.run.held_tables import empty_tables
from sfumato.run.publish_base import Performed
from sfumato.run.row_key import key_digest
from sfumato.run.staging import Staging, finish
from sfumato.run.study import Release, assembled
from sfumato.run.study_files import certificates_of, file_names, read_release
from sfumato.run.study_files import write as write_files
from sfumato.run.view import Draws

__all__ = [
    "PeopleLine",
    "Publish",
    "cells_of",
    "left_complete",
    "most_individuals",
    "people_lines",
    "people_of",
    "published_over_centres",
    "publishing",
    "sharing_of",
    "study_round",
    "whole_cells",
]

_AGAIN = "run the same command again: it publishes what was opened and costs nothing more."
_BITS = 64
#: The unit of numbers that nobody can move: they need no noise, and are told this far.
_PUBLIC_GRID = 2.0**-20


@dataclass(frozen=True)
class _Line:
    """Some numbers of the sum: those of a draw, or public ones of a question (how many rows; its values)."""

    node: str
    question: Question
    draw: Draw | None = None
    counts: bool = False

    @property
    def length(self) -> int:
        if self.draw is not None:
            return self.draw.dimension
        return 1 if self.counts else self.question.dimension

    def block(self, centres: int) -> Block:
        largest = (1 << (_BITS - 3)) // centres
        if self.draw is None:
            return Block(None, 0.0, 1.0 if self.counts else _PUBLIC_GRID, self.length, largest)
        grid = self.draw.mechanism().grid
        return Block(self.draw.noise, self.draw.scale, grid, self.length, largest)

    def numbers(self, values: Values) -> np.ndarray:
        """This institution's own, before noise."""
        sums = values.aggregates[self.node]
        if self.counts:
            return np.array([float(sums.count)])
        return self.question.encode(sums, self.draw is not None and self.draw.pure)


@dataclass(frozen=True)
class PeopleLine:
    """How many individuals a dataset has in all: public, and what its acts are tuned by."""

    dataset: str
    length: int = 1

    def block(self, centres: int) -> Block:
        return Block(None, 0.0, 1.0, 1, (1 << (_BITS - 3)) // centres)

    def numbers(self, values: Values) -> np.ndarray:
        return np.array([float(values.individuals[self.dataset].num_rows)])


def _lines(plan: Plan) -> Iterator[_Line | PeopleLine]:
    yield from _sums(plan)
    yield from people_lines(plan)


def people_lines(plan: Plan) -> list[PeopleLine]:
    """How many individuals each dataset has that has acts, or noise at everybody: the last numbers of every round."""
    every = [
        draw.dataset for draw in plan.draws if isinstance(draw, Draw) and isinstance(draw.sharing, NoiseAtEveryone)
    ]
    return [PeopleLine(name) for name in dict.fromkeys((*(act.dataset for act in plan.acts), *every))]


def _blocks(plan: Plan, centres: int) -> tuple[Block, ...]:
    """The lines of a study as they are summed; noise at everybody is drawn as often as the centre's own count says."""
    sums, people = list(_sums(plan)), people_lines(plan)
    counted = sum(line.length for line in sums)
    places = {line.dataset: counted + place for place, line in enumerate(people)}

    def block(line: _Line) -> Block:
        everybody = line.draw is not None and isinstance(line.draw.sharing, NoiseAtEveryone)
        often = places[line.draw.dataset] if line.draw is not None and everybody else None
        return dataclasses.replace(line.block(centres), often=often)

    return (*map(block, sums), *(line.block(centres) for line in people))


def _sums(plan: Plan) -> Iterator[_Line]:
    for draw in plan.draws:
        if not isinstance(draw, Draw) or draw.sharing is None:
            raise PlanError(f"{draw.node} is no sum over centres. Nothing was run and nothing was spent.")
        yield _Line(draw.node, plan.questions[draw.node], draw)
    for name, question in plan.questions.items():
        if question.is_public:
            yield _Line(name, question)
        if question.is_public or question.has_public_count:
            yield _Line(name, question, counts=True)


def most_individuals(plan: Plan) -> dict[str, int]:
    """By dataset with acts: of how many individuals all of them can be made."""
    from sfumato.run.publish import strategy_of  # estimators, for whoever has acts

    names = dict.fromkeys(act.dataset for act in plan.acts)
    return {name: min(strategy_of(act).most_shared for act in plan.acts if act.dataset == name) for name in names}


def study_round(
    plan: Plan, centres: Sequence[Centre], sizes: Mapping[str, float] | None = None, *, step_seconds: float = 30.0
) -> StudyRound:
    """The round by which the centres answer all questions of the study."""
    spec, sharing = _network(plan).spec, sharing_of(plan)
    if sharing is None:
        raise PlanError(
            "This plan has no noise to share among centres: it is drawn where all rows are. Declare centre(Name) for "
            "every institution, and forbid central where trusted(Party) stands. Nothing was run."
        )
    for name, most in most_individuals(plan).items():
        if (size := plan.extras["sizes"].get(name, 0.0)) > most:
            raise InputError(
                f"{name}: what this study makes over several centres is made for up to {most:,} individuals, and it is "
                f"planned for {size:,.0f}. Publish sums, or train on a part. Nothing was run."
            )
    declared, given = set(centres_of(spec)), {centre.name for centre in centres}
    if declared != given:
        raise InputError(
            f"The study's centres are {', '.join(sorted(declared))}, and the cards are those of "
            f"{', '.join(sorted(given)) or 'nobody'}. Each centre makes its card with `sfumato centre init NAME`. "
            "Nothing was run."
        )
    return StudyRound(
        subject=plan.study,
        centres=tuple(sorted(centres, key=lambda centre: centre.name)),
        bits=_BITS,
        colluders=sharing.colluders,
        absences=sharing.absences,
        coordinator=_coordinator(sharing),
        step_seconds=step_seconds,
        plan_hash=plan.hash,
        text=spec.text,
        sizes=dict(sizes or {}),
        summed=_blocks(plan, len(centres)),
        paid=tuple(Cost(name, plan.draw_events(name)) for name in plan.datasets),
        with_masks=isinstance(sharing, Masks),
    )


def _coordinator(sharing: Sharing) -> Coordinator:
    """One that may send anything costs nothing to bear where that can be borne."""
    return "malicious" if isinstance(sharing, Masks) and sharing.bears_liars else "curious"


def cells_of(plan: Plan, values: Values, agreed: StudyRound) -> np.ndarray:
    """One institution's sums in whole cells (int64).

    What is beyond any honest sum is cut, number by number: that moves no two neighbours further apart.
    """
    return whole_cells([line.numbers(values) for line in _lines(plan)], agreed.summed)


def whole_cells(numbers: Sequence[np.ndarray], blocks: Sequence[Block]) -> np.ndarray:
    """An institution's numbers in cells of their blocks' grids, each cut at what an honest sum can be."""
    found = [np.zeros(0, dtype=np.int64)]
    for own, block in zip(numbers, blocks, strict=True):
        cells = np.rint(np.asarray(own, dtype=np.float64).ravel() * (1 / block.grid))
        found.append(np.clip(cells, -float(block.largest), float(block.largest)).astype(np.int64))
    return np.concatenate(found)


def people_of(plan: Plan, values: np.ndarray) -> dict[str, int]:
    """How many individuals each dataset has that is counted, from a round's sums, of which they are the last."""
    names = [line.dataset for line in people_lines(plan)]
    return {name: round(float(number)) for name, number in zip(names, values[len(values) - len(names) :], strict=True)}


def published_over_centres(
    plan: Plan,
    found: Aggregate,
    tables: Mapping[str, Any],
    out: Path | None,
    *,
    performed: Mapping[ActKey, Performed] | None = None,
    later: Sequence[Aggregate] = (),
) -> Release:
    """The release that the opened sum makes; `tables` are the public ones. The centres have paid, nobody pays here.

    `performed` are tables and models, made in the `later` rounds.
    """
    with publishing(plan, tables, out) as publish:
        return publish(found, performed or {}, later)


Publish = Callable[[Aggregate, Mapping[ActKey, Performed], Sequence[Aggregate]], Release]


def left_complete(plan: Plan, out: Path | None) -> Release | None:
    """The release of a sum that was opened and written, and not shown: it is shown now, and nobody is asked again."""
    return read_release(out) if out is not None and finish(out, plan.hash, None, _AGAIN) else None


@contextmanager
def publishing(plan: Plan, tables: Mapping[str, Any], out: Path | None) -> Iterator[Publish]:
    """All that can fail without the sums is tried here, before a centre pays for them; what comes out writes them."""
    network = _network(plan)
    values = network.evaluate({**empty_tables(network.spec), **tables})
    if out is None:
        yield lambda found, acts, later: _release(plan, values, found, acts, None)
        return
    with Staging.open(out, plan.hash, again=_AGAIN, room=1 << 20, files=file_names(plan)) as staging:

        def publish(found: Aggregate, acts: Mapping[ActKey, Performed], later: Sequence[Aggregate]) -> Release:
            release = _release(plan, values, found, acts, out)
            record = {"centres": _record(found) | ({"later": list(map(_record, later))} if later else {})}
            everybody = isinstance(sharing_of(plan), NoiseAtEveryone)
            record["centres"] |= {"individuals": people_of(plan, found.values)} if everybody else {}
            release = write_files(release, plan, staging.folder, False, key_digest(bytes(32)), record)
            staging.complete(None, [], paid_elsewhere=True)
            staging.publish()
            return release

        yield publish


def _release(
    plan: Plan, values: Values, found: Aggregate, acts: Mapping[ActKey, Performed], out: Path | None
) -> Release:
    drawn = Draws(None)
    people = people_of(plan, found.values)

    def seen(draw: Any) -> Any:
        """The draw with the noise of those who were in the sum."""
        opened = draw.sharing.opened(len(found.included), people.get(draw.dataset, 0))
        return dataclasses.replace(draw, sharing=opened)

    counts: dict[str, int] = {}
    start = 0
    for line in _sums(plan):
        numbers = found.values[start : start + line.length]
        start += line.length
        if line.draw is not None:
            drawn.done[seen(line.draw)] = numbers
        elif line.counts:
            counts[line.node] = round(float(numbers[0]))
        else:
            drawn.public[line.node] = numbers
    sums = {
        name: dataclasses.replace(one, count=counts[name]) if name in counts else one
        for name, one in values.aggregates.items()
    }
    shown = dataclasses.replace(plan, draws=tuple(map(seen, plan.draws)))
    release = assembled(shown, _network(plan), dataclasses.replace(values, aggregates=sums), drawn, acts, out)
    return dataclasses.replace(release, plan_hash=plan.hash, certificates=certificates_of(plan, acts, True))


def _record(found: Aggregate) -> dict[str, Any]:
    """Who was in the sum, who was not and why, in which round: public."""
    away = [centre.name for centre in found.round.centres if centre.name not in found.included]
    return {
        "round": found.round.hash,
        "agreement": found.round.agreement,
        "included": list(found.included),
        "absent": {name: found.absent.get(name, "not in the sum") for name in away},
    }


def _network(plan: Plan) -> Network:
    if plan.network is None:
        raise InputError("A plan read from a file has no network: make it again from its study.")
    return plan.network
