"""Where to put the noise when A·x is published: at the inputs, at the outputs, at both, or correlated.

In:   the matrix A, a wanted Guarantee, the range of every input, who owns which input, weights of the outputs.
Out:  Placement: the least expected squared error with a certified gap, the noise, the alternatives, the event.
Not here: the optimisation (plan/linear/solver.py), networks and non-linear parts, drawing (mechanisms/gaussian.py).
Proof: docs/proofs/linear_placement.md

Whatever the placement, what is drawn is B·x plus independent exact noise of one scale, and what is published is
R·(B·x + noise) with R·B = A. The solver's answer enters only through B, which is then a public matrix of floats: its
sensitivity is computed from it with all rounding errors added, so that no tolerance is part of the guarantee.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.linalg import LinAlgError

from sfumato.core.adjacency import Adjacency
from sfumato.core.events.event import Event
from sfumato.core.events.linear import LinearGaussianEvent, Person, linear_sensitivity
from sfumato.core.guarantee import ApproxDP, Guarantee, NoGuarantee, PureDP
from sfumato.core.threads import calm_threads
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.lang.deadline import check_time
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.plan.linear import forms as linear_forms
from sfumato.plan.linear.forms import LinearForm
from sfumato.plan.linear.question import LinearQuestion, read_question

__all__ = ["Alternative", "Placement", "PlacementKind", "place_noise"]

PlacementKind = Literal["input", "output", "correlated"]

_WORDS = {
    "local": "noise on every input as if it were published itself (local privacy)",
    "central": "the same noise on every output (central privacy)",
    "output": "independent noise on the outputs, best variances",
    "hybrid": "independent noise on inputs and outputs, best variances (3.34)",
    "correlated": "one noise vector of the best covariance (matrix mechanism)",
}


@dataclass(frozen=True)
class Alternative:
    """A placement that was considered: its expected squared error, its own gap, and whether it was allowed."""

    name: str
    error: float
    gap: float
    allowed: bool

    def __str__(self) -> str:
        refused = "" if self.allowed else ", not allowed here"
        return f"{self.name}: {self.error:.6g} ({_WORDS[self.name]}{refused})"


@dataclass(frozen=True, eq=False)
class Placement:
    """The noise to publish A·x with. Made by `place_noise`.

    `error` is the expected weighted squared error, rounding to the grid included. `gap` says how much of it a better
    placement of the same kind could save at most, relatively, before that rounding; `bound` is what none can go below.
    `covariance` is that of the published noise. For "local", "central", "output" and "hybrid" it is
    A·diag(input_variances)·Aᵀ + diag(output_variances); for "correlated" `output_variances` is its diagonal.
    """

    name: str
    error: float
    gap: float
    bound: float
    covariance: np.ndarray
    input_variances: np.ndarray
    output_variances: np.ndarray
    alternatives: tuple[Alternative, ...]
    requirement: Guarantee
    event: LinearGaussianEvent
    _form: LinearForm = field(repr=False)

    @property
    def mu(self) -> float:
        """The bound on μ that the event certifies; it keeps the requirement."""
        return self.event.mu

    @property
    def sensitivity_rule(self) -> Literal["vertices", "safe bound"]:
        """Whether the worst change of every person was found exactly or, for large families, bounded from above."""
        return self.event.rule

    @property
    def strategy(self) -> np.ndarray:
        """B, one column for each coordinate; the noise is added to B·(x - low)."""
        active = self._form.question.active
        dense = np.diag(self._form.strategy) if self._form.strategy.ndim == 1 else self._form.strategy
        result = np.zeros((len(dense), len(self.input_variances)))
        result[:, active] = dense
        return result

    @property
    def reconstruction(self) -> np.ndarray:
        """R, with R·B = A: applied to what was drawn, it gives what is published."""
        return self._form.reconstruction

    def events(self) -> tuple[Event, ...]:
        """What a certificate lists for one publication."""
        return (self.event,)

    def guarantee(self) -> Guarantee:
        return self.event.guarantee()

    def publish(self, values: Any, random_state: int | None = None) -> np.ndarray:
        """A·x with noise, for whoever holds the data. Values outside their range are clipped.

        Only B·(x - low) meets the noise; R and A·low are public.
        """
        return self._published(self._mechanism(random_state)(self._prepared(values)))

    def sample(self, values: Any, trials: int, random_state: int | None = None) -> np.ndarray:
        """`trials` independent publications of the same values, one a row; for audits."""
        return self._published(self._mechanism(random_state).sample(self._prepared(values), trials))

    def _mechanism(self, random_state: int | None) -> Gaussian:
        event = self.event
        return Gaussian(event.scale, event.sensitivity, event.adjacency, event.dimension, random_state)

    def _prepared(self, values: Any) -> np.ndarray:
        question = self._form.question
        try:
            given = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != question.width.shape or np.isnan(given).any():
            raise DataError(
                f"Give one number for each of the {len(question.width)} coordinates, none missing. "
                "Nothing was drawn and nothing was spent."
            )
        with np.errstate(over="ignore"):  # far outside its range a value is clipped all the same
            moved = np.clip(given - question.low, 0.0, question.width)
        return self._form.apply(moved[question.active])

    def _published(self, drawn: np.ndarray) -> np.ndarray:
        question = self._form.question
        return drawn @ self._form.reconstruction.T + question.matrix @ question.low

    def describe(self) -> str:
        lines = [
            f"{self.name}: expected squared error {self.error:.6g}, at most {self.gap:.2g} above the best "
            f"({_WORDS[self.name]})",
            f"{self.event.guarantee()}; sensitivity by {self.sensitivity_rule}",
            *(f"  instead of {other}" for other in self.alternatives),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """A plain record for a Plan."""
        return {
            "placement": self.name,
            "error": self.error,
            "gap": self.gap,
            "bound": self.bound,
            "mu": self.mu,
            "sensitivity_rule": self.sensitivity_rule,
            "requirement": self.requirement.to_dict(),
            "input_variances": self.input_variances.tolist(),
            "output_variances": self.output_variances.tolist(),
            "covariance": self.covariance.tolist(),
            "alternatives": [dataclasses.asdict(other) for other in self.alternatives],
        }


def _chosen(candidates: Sequence[_Candidate]) -> _Candidate:
    """They come from the simplest on: of equals but for the last digits the first is taken."""
    if not candidates:
        raise InputError("The outputs differ too much in scale to be solved. Allow output noise. Nothing was spent.")
    least = min(one.error for one in candidates)
    return next(one for one in candidates if one.error <= least * (1 + 1e-9))


@calm_threads()
def place_noise(
    A: Any,
    requirement: Guarantee,
    ranges: Any,
    owners: Any = None,
    weights: Any = None,
    placements: tuple[PlacementKind, ...] = ("input", "output", "correlated"),
    *,
    tolerance: float = 2e-5,
) -> Placement:
    """The least noise that lets A·x be published under `requirement`.

    `ranges` gives every coordinate of x a width w, meaning [0, w], or (low, high). `owners` names the person behind
    each coordinate; without it everyone owns one. A change is any other values of one person's coordinates within
    their ranges. `weights` are those of the outputs' squared errors. `placements` says where noise may go: "input"
    alone is local privacy, "output" alone central privacy, both allow the hybrid (3.34), and "correlated" the best
    covariance.

    Gaussian noise never gives δ = 0: pure privacy is refused. Basu, Program (3.34), with the exact μ of Balle & Wang
    (2018) in place of its constant.

    >>> from sfumato.core import ApproxDP
    >>> sums = [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    >>> placed = place_noise(sums, ApproxDP(1.0, 1e-5), ranges=1.0)
    >>> placed.name, round(placed.error, 1)
    ('correlated', 51.9)
    >>> [(other.name, round(other.error, 1)) for other in placed.alternatives]
    [('hybrid', 55.7), ('output', 81.1), ('central', 83.5), ('local', 111.3)]
    """
    question = read_question(A, ranges, owners, weights)
    adjacency = _adjacency(requirement, owners)
    allowed = _allowed(placements)
    candidates: list[_Candidate] = []
    for build in _builders(allowed, tolerance):
        check_time(f"placing noise for {len(question.matrix)} linear answers")
        try:
            candidates.append(_no_worse(_calibrated(build(question), requirement, adjacency), candidates))
        except LinAlgError:  # too far apart in scale for the solver; the simpler placements stand
            continue
    chosen = _chosen([one for one in candidates if one.name in allowed])
    others = sorted((one for one in candidates if one is not chosen), key=lambda one: one.error)
    alternatives = tuple(Alternative(one.name, one.error, one.gap, one.name in allowed) for one in others)
    return _placement(chosen, requirement, alternatives)


def _allowed(placements: Any) -> set[str]:
    given = (placements,) if isinstance(placements, str) else tuple(placements)
    if not given or any(name not in get_args(PlacementKind) for name in given):
        raise InputError(f"placements must name some of {', '.join(get_args(PlacementKind))}. Nothing was spent.")
    allowed = {"local"} if "input" in given else set()
    allowed |= {"central", "output"} if "output" in given else set()
    allowed |= {"hybrid"} if {"input", "output"} <= set(given) else set()
    return allowed | ({"correlated"} if "correlated" in given else set())


def _builders(allowed: set[str], tolerance: float) -> list[Callable[[LinearQuestion], LinearForm]]:
    """The allowed forms from the simplest on, and the two classical ones in any case: they cost nothing to compute."""
    optimised = (
        ("output", linear_forms.output),
        ("hybrid", linear_forms.hybrid),
        ("correlated", linear_forms.correlated),
    )
    wanted = [partial(build, tolerance=tolerance) for name, build in optimised if name in allowed]
    return [linear_forms.local, linear_forms.central, *wanted]


class _Candidate(NamedTuple):
    """A form scaled to the requirement: sensitivity from B itself, calibration by the mechanism that draws."""

    name: str
    form: LinearForm
    people: tuple[Person, ...]
    adjacency: Adjacency
    mechanism: Gaussian
    value: float
    bound: float

    @property
    def error(self) -> float:
        return self.mechanism.error() * self.form.price

    @property
    def gap(self) -> float:
        return max(0.0, self.value / self.bound - 1)


def _calibrated(form: LinearForm, requirement: Guarantee, adjacency: Adjacency) -> _Candidate:
    people = form.people()
    sensitivity, _, rows = linear_sensitivity(people, len(form.question.width))
    mechanism = Gaussian.for_guarantee(requirement, sensitivity, adjacency, dimension=rows)
    return _Candidate(form.name, form, people, adjacency, mechanism, sensitivity**2 * form.price, form.bound)


def _no_worse(candidate: _Candidate, simpler: list[_Candidate]) -> _Candidate:
    """The candidate, or what a simpler placement does where that is no worse: the wider one can do it as well.

    A solver's tolerance must not make the wider placement worse, nor the last digits of the grid make it look better.
    """
    within = {"output": {"central"}, "hybrid": {"local", "central", "output"}, "correlated": set(_WORDS)}
    instead = [one for one in simpler if one.name in within.get(candidate.name, ())]
    best = min(instead, key=lambda one: one.error, default=candidate)
    if candidate.error < best.error and candidate.value < best.value * (1 - 1e-9):
        return candidate
    return best._replace(name=candidate.name, bound=candidate.bound)


def _adjacency(requirement: Guarantee, owners: Any) -> Adjacency:
    if not isinstance(requirement, Guarantee):
        raise PrivacyParameterError("requirement must be a Guarantee, for example ApproxDP(1.0, 1e-6).")
    if isinstance(requirement, PureDP | NoGuarantee) or (isinstance(requirement, ApproxDP) and requirement.delta_ == 0):
        raise PrivacyParameterError(
            f"Gaussian noise cannot give {requirement.describe()}. Allow a small delta, as in ApproxDP(eps, 1e-6), or "
            "ask for GaussianDP, ZCDP or RenyiDP. Nothing was spent."
        )
    if requirement.adjacency is None:
        return Adjacency("coordinate" if owners is None else "person", "replace-one")
    if requirement.adjacency.relation != "replace-one":
        raise PrivacyParameterError(
            "A linear question hides which values a person has within the ranges, not whether there is such a person: "
            "state the requirement under replace-one. Nothing was spent."
        )
    return requirement.adjacency


def _placement(chosen: _Candidate, requirement: Guarantee, alternatives: tuple[Alternative, ...]) -> Placement:
    form, mechanism = chosen.form, chosen.mechanism
    coordinates = len(form.question.width)
    event = LinearGaussianEvent(chosen.people, coordinates, mechanism.scale, mechanism.grid, adjacency=chosen.adjacency)
    if event.guarantee().implies(requirement) is not True:
        raise PrivacyParameterError(
            f"{requirement.describe()} cannot be reached exactly at this scale. Nothing was spent."
        )
    variance = mechanism.error()
    return Placement(
        name=chosen.name,
        error=chosen.error,
        gap=chosen.gap,
        bound=chosen.bound / (event.mu * (1 + 1e-12)) ** 2,
        covariance=variance * form.covariance,
        input_variances=variance * form.inputs,
        output_variances=variance * form.outputs,
        alternatives=alternatives,
        requirement=requirement,
        event=event,
        _form=form,
    )
