"""The course of a study over several institutions: one round for all its sums, then one for each stage of its acts.

In:   a Plan whose noise is shared; at an institution its evaluated rows; what every round opened.
Out:  the next round and an institution's numbers in it; at the end what every act gave.
Not here: the protocol (centres/), numbers of statistics and the release (run/over_centres.py), who waits for whom
(run/centre_part.py).
Proof: docs/proofs/centre_acts.md

Every party begins each act again after every round, with what was published so far in place of a generator
(mechanisms/elsewhere.py): it stops at the sums it needs next. Institutions take their own rows' part of them from
this, the coordinator, who has no rows, the noise alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.centres.outcome import Aggregate
from sfumato.centres.round import Block
from sfumato.centres.study_round import Cost, StudyRound
from sfumato.core import Categories, Interval, Schema, compose
from sfumato.errors import InputError, RoundFailedError, UnprovedError
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.elsewhere import Elsewhere, PublishedSum, Unanswered
from sfumato.network.evaluate import Values
from sfumato.plan.act import Act, ActKey
from sfumato.plan.plan import Plan
from sfumato.plan.shared_act import act_sharing, shared_event, together
from sfumato.plan.sharing import Sharing
from sfumato.run.over_centres import cells_of, most_individuals, people_lines, people_of, whole_cells
from sfumato.run.publish import Columns, checked, columns_for, counted_nobody, strategy_of
from sfumato.run.publish_base import Performed, column_of

__all__ = ["Course"]


@dataclass(frozen=True)
class _Asked:
    """What one act needs next: the noise of each of its sums, and what the rows at hand add to them (private)."""

    noises: tuple[Additive, ...]
    exact: tuple[np.ndarray, ...] = field(repr=False)

    @property
    def public(self) -> tuple[object, ...]:
        """What everybody must agree on."""
        return self.noises, tuple(one.size for one in self.exact)


@final
class Course:
    """Where a study over centres stands. `first` is its first round; every party moves its own course on."""

    def __init__(self, plan: Plan, first: StudyRound) -> None:
        self.plan, self.first = plan, first
        self.performed: dict[ActKey, Performed] = {}
        self.opened: list[Aggregate] = []
        self._seen: dict[ActKey, list[PublishedSum]] = {act.key: [] for act in plan.acts}
        self._records: dict[str, int] = {}
        self._next: dict[ActKey, _Asked] = {}
        self._columns: dict[ActKey, Columns] = {}

    @property
    def is_over(self) -> bool:
        return bool(self.opened) and not self._next

    @property
    def round(self) -> StudyRound:
        """What is summed next."""
        if not self.opened:
            return self.first
        centres = len(self.first.centres)
        asked = [(act, noise, exact) for act, one in self._asking() for noise, exact in _pairs(one)]
        people = tuple(one.block(centres) for one in people_lines(self.plan))
        return dataclasses.replace(
            self.first,
            summed=(*(_block(noise, exact.size, centres) for _, noise, exact in asked), *people),
            paid=tuple(
                Cost(name, tuple(noise.event() for act, noise, _ in asked if act.dataset == name))
                for name in dict.fromkeys(act.dataset for act, _, _ in asked)
            ),
            stage=len(self.opened),
            before=self._digest(),
        )

    def cells(self, values: Values) -> np.ndarray:
        """One institution's own part of the next round, in whole cells."""
        agreed = self.round
        if not self.opened:
            self._check_own(values)
            return cells_of(self.plan, values, agreed)
        if not self._columns:
            found = columns_for(self.plan, values, parts=True)
            self._columns = {one.act.key: one for one in found}
        numbers = [self._own(act, self._columns[act.key]) for act, _ in self._asking()]
        people = [one.numbers(values) for one in people_lines(self.plan)]
        return whole_cells([*(part for parts in numbers for part in parts), *people], agreed.summed)

    def _check_own(self, values: Values) -> None:
        """Whatever the others state: this institution's sums are of its own rows, and rounded by their number."""
        for name, most in most_individuals(self.plan).items():
            if (own := values.individuals[name].num_rows) > most:
                raise InputError(
                    f"{name}: there are {own:,} individuals here, and what the study makes of them is made for up to "
                    f"{most:,}. Take part with a public sample of them. Nothing left the centre and nothing was spent."
                )

    def moved(self, found: Aggregate) -> None:
        """A round was opened."""
        records, values = people_of(self.plan, found.values), found.values
        for name, most in most_individuals(self.plan).items():
            if not 0 <= (count := records[name]) <= most:
                raise RoundFailedError(
                    f"{name}: the centres state {count:,} individuals, and what the study makes of them is made for up "
                    f"to {most:,}. One of them may have told a false number. What was opened stays charged.",
                    revealed=True,
                )
        self._records = self._records or records
        for act, one in self._asking() if self.opened else ():
            sharing = act_sharing(act)
            assert sharing is not None
            times = sharing.opened(len(found.included), records[act.dataset]).times
            for exact in one.exact:
                answer = PublishedSum(values[: exact.size], times, records[act.dataset])
                self._seen[act.key].append(answer)
                values = values[exact.size :]
        self.opened.append(found)
        self._look_ahead()

    # ── acts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _asking(self) -> list[tuple[Act, _Asked]]:
        return [(act, self._next[act.key]) for act in self.plan.acts if act.key in self._next]

    def _look_ahead(self) -> None:
        self._next = {}
        for act in self.plan.acts:
            key = act.key
            if key in self.performed:
                continue
            found = self._begun(act, _nobody(act))
            if isinstance(found, _Asked):
                self._next[key] = found
            else:
                self.performed[key] = checked(act, found)

    def _own(self, act: Act, columns: Columns) -> Sequence[np.ndarray]:
        if columns.table.num_rows == 0:
            return [np.zeros(exact.size) for exact in self._next[act.key].exact]
        found, agreed = self._begun(act, columns), self._next[act.key]
        if not isinstance(found, _Asked) or found.public != agreed.public:
            raise UnprovedError(f"{act.name}: what is asked next depends on the rows. Nothing left the centre.")
        return found.exact

    def _begun(self, act: Act, columns: Columns) -> _Asked | Performed:
        """The act from its beginning: what it gives, or what it needs next."""
        sharing = act_sharing(act)
        assert sharing is not None
        records = self._records[act.dataset]
        if records == 0:
            raise InputError(f"{act.name}: {act.dataset} has no individuals. Nothing more is drawn for it.")
        seen = self._seen[act.key]
        elsewhere = Elsewhere(self._seed(act), seen, records)
        try:
            done = strategy_of(act).begin(act, columns.table, columns.identifiers, elsewhere)
        except Unanswered as asked:
            found = _Asked(tuple(together(noise, sharing) for noise in asked.noises), asked.exact)
            self._check_cost(act, (*_shared(elsewhere.asked, sharing), *found.noises))
            return found
        drawn = tuple(noise.event() for noise in _shared(elsewhere.asked, sharing))
        # Of what was drawn, never of what the plan says: who may collude follows from the shares.
        events = tuple(shared_event(event, sharing) for event in done.events) if act.events else drawn
        if compose(drawn).implies(compose(events)) is not True:
            raise UnprovedError(f"{act.name}: what was drawn is not what was planned. Nothing was published.")
        proofs = {*done.proofs, "centre_acts", *sharing.proofs} - {"gaussian"}
        return dataclasses.replace(done, events=events, proofs=tuple(sorted(proofs)))

    @staticmethod
    def _check_cost(act: Act, noises: Sequence[Additive]) -> None:
        """Before anything leaves: all sums so far and the next ones cost no more than what was charged for the act."""
        charged = compose(act.events) if act.events else act.guarantee
        if compose([noise.event() for noise in noises]).implies(charged) is not True:
            raise UnprovedError(
                f"{act.name}: its next sums would cost more than {charged.describe()}, which is charged for it. They "
                "do not leave the centre."
            )

    def _seed(self, act: Act) -> int:
        """For what is public anyway, such as the frequencies of features: the same at every party."""
        text = json.dumps([self.plan.hash, act.name, *act.observers])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for one in self.opened:
            digest.update(one.round.agreement.encode())
            digest.update(json.dumps(list(one.included)).encode())
            digest.update(np.ascontiguousarray(one.values, dtype="<f8").tobytes())
        return digest.hexdigest()


def _pairs(asked: _Asked) -> list[tuple[Additive, np.ndarray]]:
    return list(zip(asked.noises, asked.exact, strict=True))


def _shared(noises: Sequence[Additive], sharing: Sharing) -> tuple[Additive, ...]:
    return tuple(together(noise, sharing) for noise in noises)


def _block(noise: Additive, length: int, centres: int) -> Block:
    return Block("gaussian", noise.scale, noise.grid, length, (1 << 61) // centres)


def _nobody(act: Act) -> Columns:
    """A table of one invented row, or sums of nobody: what somebody who has no rows begins an act with."""
    if "question" in act.parameters:
        return counted_nobody(act)
    domains = Schema.from_toml(act.parameters["schema"]).columns
    columns = {}
    for name, domain in domains.items():
        assert isinstance(domain, Interval | Categories)
        columns[name] = column_of(np.array([None], dtype=object), domain)
    return Columns(act, pa.table(columns), ("nobody",))
