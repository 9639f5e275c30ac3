"""A linear classifier learned over institutions: one round of second moments, some rounds of gradients.

In:   who takes part, a schema with a target of two categories, what is promised in all.
Out:  Series: the rounds, one after the other; LinearClassifier, with the certificate of all of them.
Not here: a step and its part of the promise (mechanisms/noisy_sums.py), what a round is (round.py), its gradients
(gradients.py), how it travels (series.py).
Proof: docs/proofs/centre_learning.md
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.centres.gradients import GradientSums
from sfumato.centres.outcome import Aggregate
from sfumato.centres.placing import placed_rows
from sfumato.centres.plan import plan_round
from sfumato.centres.round import Centre, Coordinator, Requirement, Round
from sfumato.centres.statistic_round import StatisticRound
from sfumato.centres.statistics import SecondMoments
from sfumato.core.certificate import Certificate
from sfumato.core.compose import compose
from sfumato.core.domain import Categories
from sfumato.core.events.event import Event
from sfumato.core.guarantee import GaussianDP
from sfumato.core.schema import Schema
from sfumato.core.threads import calm_threads
from sfumato.errors import InputError, RefusedError
from sfumato.mechanisms.noisy_sums import (
    FIRST,
    RIDGE,
    STEPS,
    StepLoss,
    curvature,
    hessian_bound,
    next_weights,
    parts,
)

__all__ = ["LinearClassifier", "Series", "State"]


@dataclass(frozen=True)
class LinearClassifier:
    """Weights on (1, encoded columns without the target); scores above 0 speak for the label."""

    schema: Schema
    target: str
    label: str
    weights: np.ndarray = field(repr=False)
    certificate: Certificate = field(repr=False)

    def decision_function(self, table: Any) -> np.ndarray:
        """One score a row; above 0 it speaks for the label. Cells outside of the schema have a place, as in rounds."""
        features = placed_rows(self.schema.without([self.target]), table)
        return self.weights[0] + features @ self.weights[1:]

    def predict(self, table: Any) -> np.ndarray:
        """The label or the other category, by the sign of the score."""
        domain = self.schema.columns[self.target]
        assert isinstance(domain, Categories)
        other = next(value for value in domain.values if value != self.label)
        return np.where(self.decision_function(table) > 0, self.label, other)


@dataclass(frozen=True)
class State:
    """Where learning stands: public, as every sum it was made from. The next gradient is asked for `ahead` of it."""

    step: int
    weights: np.ndarray
    ahead: np.ndarray
    bound: np.ndarray | None = None
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Series:
    """All rounds of one classifier. `steps` gradients follow one round of moments, which gets `first` of the budget.

    A patient's gradient is clipped to `norm`; left out, to half of the largest that an encoded row can be. `strength`
    is the ridge on the weights, in patients.
    """

    subject: str
    centres: tuple[Centre, ...]
    schema: Schema
    target: str
    label: str
    requirement: Requirement
    most_patients: int
    steps: int = STEPS
    first: float = FIRST
    norm: float | None = None
    loss: StepLoss = "logistic"
    strength: float = RIDGE
    identity: str | None = None
    rows_per_person: int = 1
    colluders: int = 0
    absences: int = 0
    coordinator: Coordinator = "curious"
    step_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not isinstance(self.steps, int) or self.steps < 1 or not 0 < self.first < 1:
            raise InputError("A series needs at least one step, and a part of the budget between 0 and 1 first.")
        self.round(self.start())

    def start(self) -> State:
        """Before the first round: weights of 0, nothing drawn and nothing spent."""
        nothing = np.zeros(1 + self.schema.without([self.target]).width)
        return State(0, nothing, nothing)

    def is_over(self, state: State) -> bool:
        """Whether all rounds were made: `result` may be asked for."""
        return state.step > self.steps

    @cached_property
    def _parts(self) -> tuple[GaussianDP, GaussianDP]:
        return parts(self.requirement.guarantee, self.steps, self.first)

    def round(self, state: State) -> StatisticRound:
        """The next round."""
        part = self._parts[0] if state.step == 0 else self._parts[1]
        options = {"identity": self.identity, "rows_per_person": self.rows_per_person}
        if state.step == 0:
            statistic: Any = SecondMoments(self.schema.without([self.target]), **options)
        else:
            statistic = GradientSums(
                self.schema,
                target=self.target,
                label=self.label,
                weights=tuple(state.ahead.tolist()),
                norm=self._norm,
                loss=self.loss,
                **options,
            )
        return plan_round(
            f"{self.subject}, step {state.step} of {self.steps}",
            self.centres,
            statistic,
            [Requirement(self.requirement.adjacency, part)],
            most_patients=self.most_patients,
            colluders=self.colluders,
            absences=self.absences,
            coordinator=self.coordinator,
            step_seconds=self.step_seconds,
            law="gaussian",
        )

    @property
    def _norm(self) -> float:
        if self.norm is not None:
            return self.norm
        columns = len(self.schema.without([self.target]).columns)
        return math.sqrt(1 + columns) / 2

    def approves(self, state: State, offered: Round) -> StatisticRound:
        """What a centre agrees to at this step: its own round, at whatever weights the coordinator proposes.

        The weights are public and the promise does not depend on them. RefusedError if there are none.
        """
        own = self.round(state)
        if not isinstance(own.statistic, GradientSums):
            return own
        proposed = offered.statistic if isinstance(offered, StatisticRound) else None
        if not isinstance(proposed, GradientSums):
            raise RefusedError("The coordinator offers no gradients. Nothing left the centre and nothing was spent.")
        return dataclasses.replace(own, statistic=dataclasses.replace(own.statistic, weights=proposed.weights))

    @calm_threads()
    def moved(self, state: State, found: Aggregate) -> State:
        """The state after a round's sum."""
        agreed = found.round
        assert isinstance(agreed, StatisticRound)
        events = (*state.events, *agreed.events)
        if state.step == 0:
            assert isinstance(agreed.statistic, SecondMoments)
            moments = agreed.statistic.matrix(found.values)
            bound = hessian_bound(moments, found.deviation, curvature(self.loss), self.strength)
            return State(1, state.weights, state.ahead, bound, events)
        assert state.bound is not None
        assert isinstance(agreed.statistic, GradientSums)
        at = np.array(agreed.statistic.weights)
        weights, ahead = next_weights(state.bound, at, found.values, self.strength, state.weights, state.step)
        return State(state.step + 1, weights, ahead, state.bound, events)

    def result(self, state: State, *, publishable: bool = True) -> LinearClassifier:
        """What was learned, with the certificate of all rounds together."""
        cost = compose(state.events)
        if cost.implies(self.requirement.guarantee) is not True:
            raise InputError("The rounds cost more than was promised. Nothing is published.")
        certificate = Certificate.issue(
            subject=f"{self.subject}: a linear classifier of {self.target}",
            events=list(state.events),
            proofs=["centre_learning", "distributed_noise", "secure_aggregation"],
            plan={"subject": self.subject, "steps": self.steps, "first": self.first, "loss": self.loss},
            notes=[f"{len(self.centres)} centres; {state.step} rounds, each of which is paid for by itself."],
            publishable=publishable,
        )
        return LinearClassifier(self.schema, self.target, self.label, state.weights, certificate)

    @property
    def names(self) -> Sequence[str]:
        """The centres' names in the order of the rounds."""
        return [centre.name for centre in self.centres]
