"""Distributed medical centres: add noise at every centre, or mask and add it once (Basu, section 3.4).

In:   settings. Out:  StudyResult: error of both designs over the number of centres, the choice over the price of masks.
Not here: the designs (centres/design.py), drawing (basu_centres_figure.py).

Potassium ("kalium") and two more features are invented for r centres; the statistic is the second-moment matrix (3.36).
Noise is put on the clipped statistic and not on the patients' features, whose noisy products no Gaussian bound covers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from papers.basu_centres_figure import Curves, draw
from papers.study import Cell, Study, StudyResult, StudySettings, Verdict
from sfumato.centres import (
    Aggregate,
    Requirement,
    Round,
    SecondMoments,
    Weights,
    aggregate_in_memory,
    aggregate_locally,
    choose_design,
    fit_linear,
    new_centres,
    plan_round,
)
from sfumato.centres.design import Design, designs_of
from sfumato.core import Adjacency, ApproxDP, Interval, Schema, gaussian_scale
from sfumato.mechanisms import Gaussian

__all__ = ["CENTRES", "patients"]

SCHEMA = Schema({"kalium": Interval(2.0, 8.0), "age": Interval(0, 110), "creatinine": Interval(0.2, 5.0)})
PATIENT = Requirement(Adjacency("patient", "replace-one"), ApproxDP(0.5, 1e-6))
LOCAL = ApproxDP(4.0, 1e-6)
CENTRE = Requirement(Adjacency("centre", "replace-one"), ApproxDP(2.0, 1e-6))
_PATIENTS = 400
_MOST = 2000
#: Where the weight of encryption is tried, in squared error of all entries for one second of masks.
_WEIGHTS = np.geomspace(1e-1, 1e8, 60)

Tables = Mapping[str, Mapping[str, np.ndarray]]


def patients(names: list[str], seed: int) -> Tables:
    """Invented patients: potassium near 4.2 mmol/l, a little higher with age and creatinine, shifted by centre."""
    tables = {}
    for place, name in enumerate(names):
        generator = np.random.default_rng([seed, place])
        age = generator.normal(58, 17, _PATIENTS)
        creatinine = np.exp(generator.normal(0.0, 0.35, _PATIENTS))
        shift = generator.normal(0, 0.08)
        kalium = 3.55 + 0.006 * age + 0.3 * creatinine + shift + generator.normal(0, 0.3, _PATIENTS)
        tables[name] = {"kalium": kalium, "age": age, "creatinine": creatinine}
    return tables


@dataclass(frozen=True)
class _Trial:
    """Both designs for one number of centres: predicted and measured deviation of an entry of the matrix."""

    centres: int
    apart: Design
    together: Design
    measured_apart: float
    measured_together: float


def _planned(names: list[str], requirements: list[Requirement], centre_norm: float | None = None) -> tuple[Round, dict]:
    members, keys = new_centres(names)
    statistic = SecondMoments(SCHEMA, centre_norm=centre_norm)
    agreed = plan_round("second moments of kalium", members, statistic, requirements, most_patients=_MOST)
    return agreed, keys


def _own_sums(agreed: Round, tables: Tables) -> dict[str, np.ndarray]:
    return {name: agreed.statistic.cells(table, agreed.grid, _MOST) for name, table in tables.items()}


def _noisy_sharing(apart: Design, agreed: Round, cells: Mapping[str, np.ndarray], seed: int) -> np.ndarray:
    """Every centre publishes with noise of its own; the public sum."""
    event = apart.events[0]
    total = np.zeros(agreed.length)
    for place, vector in enumerate(cells.values()):
        noise = Gaussian(event.scale, event.sensitivity, event.adjacency, event.dimension, seed + place)  # type: ignore[attr-defined]
        total += noise(vector * agreed.grid)
    return total


def _trial(centres: int, rounds: int, seed: int) -> _Trial:
    names = [f"centre {number + 1}" for number in range(centres)]
    agreed, keys = _planned(names, [PATIENT])
    cells = _own_sums(agreed, patients(names, seed))
    truth = sum(cells.values()) * agreed.grid
    apart, together = designs_of(agreed)
    first, second = [], []
    for attempt in range(rounds):
        start = ((seed * 1000 + centres) * 10_000 + attempt) * 1000
        first.append(_noisy_sharing(apart, agreed, cells, start) - truth)
        second.append(aggregate_in_memory(agreed.fresh(), cells, keys, random_state=start).values - truth)
    return _Trial(centres, apart, together, _spread(first), _spread(second))


def _spread(errors: list[np.ndarray]) -> float:
    return math.sqrt(float(np.mean(np.square(errors))))


def _noisy_features(tables: Tables, seed: int) -> tuple[float, float]:
    """Error of the matrix when every patient's features get noise first, as it comes and with Nσ² taken out."""
    generator = np.random.default_rng(seed)
    columns = len(SCHEMA.columns)
    sigma = gaussian_scale(PATIENT.guarantee.eps, PATIENT.guarantee.delta_, math.sqrt(columns))  # type: ignore[attr-defined]
    encoded = np.vstack([SCHEMA.encode(dict(table)) for table in tables.values()])
    exact = np.hstack([np.ones((len(encoded), 1)), encoded])
    noisy = exact.copy()
    noisy[:, 1:] += generator.normal(0, sigma, encoded.shape)
    error = noisy.T @ noisy - exact.T @ exact
    corrected = error - np.diag([0.0] + [len(encoded) * sigma**2] * columns)
    return float(np.sqrt(np.mean(error**2))), float(np.sqrt(np.mean(corrected**2)))


def _real_run(seed: int) -> tuple[Aggregate, float]:
    """Five processes; the result, and its squared error in units of the planned one."""
    names = [f"centre {number + 1}" for number in range(5)]
    agreed, keys = _planned(names, [PATIENT])
    cells = _own_sums(agreed, patients(names, seed))
    found = aggregate_locally(agreed, cells, keys)
    truth = sum(cells.values()) * agreed.grid
    return found, float(np.mean(np.square((found.values - truth) / found.deviation)))


def run(settings: StudySettings) -> StudyResult:
    counts = (2, 4, 9, 16) if settings.quick else (2, 4, 8, 16, 32)
    rounds = 300 if settings.quick else 1200
    trials = [_trial(count, 20 + rounds // count, settings.seed) for count in settings.track(counts, "centres")]
    curves = _choices(trials[-2])
    tables = patients([f"centre {number + 1}" for number in range(trials[-2].centres)], settings.seed)
    features = _noisy_features(tables, settings.seed)
    found, ratio = _real_run(settings.seed)
    local = Gaussian.for_guarantee(
        LOCAL, SecondMoments(SCHEMA).sensitivity(PATIENT.adjacency, "gaussian"), PATIENT.adjacency, dimension=10
    )
    both = _planned([f"centre {n}" for n in range(16)], [PATIENT, CENTRE], centre_norm=2.0 * _PATIENTS)[0]
    model = fit_linear(found, "kalium")
    rows: list[tuple[Cell, ...]] = [
        (
            one.centres,
            one.apart.deviation,
            one.measured_apart,
            one.together.deviation,
            one.measured_together,
            one.measured_together / one.measured_apart * math.sqrt(one.centres),
            one.together.seconds,
            one.together.bytes,
        )
        for one in trials
    ]
    return StudyResult(
        columns=(
            "centres", "noisy sharing, predicted", "measured", "secure aggregation, predicted", "measured ",
            "ratio times root of centres", "seconds of masks", "bytes of masks",
        ),
        rows=tuple(rows),
        verdicts=(
            _turning(curves),
            _root_law(trials),
            _features_are_worse(features, trials[-2]),
            _real_is_right(ratio, len(found.values)),
        ),
        figure=lambda figure: draw(
            figure,
            curves,
            [(one.centres, one.apart.deviation, one.measured_apart) for one in trials],
            [(one.centres, one.together.deviation, one.measured_together) for one in trials],
        ),
        notes=(
            f"Researchers within a centre see its matrix under {LOCAL.describe()}: noise {local.scale:.3g} an entry.",
            f"Protecting each centre's own figure as well, {CENTRE.guarantee}, takes noise {both.scale:.4g} instead of "
            f"{trials[0].together.deviation:.4g}: a centre changes the sum by as much as all its patients.",
        ),
        settings={"patients in a centre": _PATIENTS, "rounds": f"20 + {rounds}/r", "promise": str(PATIENT.guarantee)},
        numbers={
            "turning weight": curves.turning,
            "error with noise on the features": features[0],
            "the same with its mean taken out": features[1],
            "squared error of five processes over the planned one": ratio,
            "kalium model across centres": dict(zip(model.feature_names, model.weights.tolist(), strict=True)),
        },
    )  # fmt: skip


def _choices(trial: _Trial) -> Curves:
    """Both losses and the chosen design over the weight of a second of masks (Obj_E and Obj_C of section 3.4.3)."""
    masks, apart = [], []
    chosen = []
    for weight in _WEIGHTS:
        weights = Weights(error=trial.apart.events[0].dimension, seconds=float(weight))  # type: ignore[attr-defined]
        masks.append(weights.price(trial.together))
        apart.append(weights.price(trial.apart))
        chosen.append(choose_design((trial.apart, trial.together), weights).chosen.name)
    turns = [place for place, (a, b) in enumerate(itertools.pairwise(chosen)) if a != b]
    turning = float(_WEIGHTS[turns[0]]) if len(turns) == 1 else math.nan
    return Curves(trial.centres, _WEIGHTS, np.array(apart), np.array(masks), tuple(chosen), turning)


def _turning(curves: Curves) -> Verdict:
    lower = np.minimum(curves.apart, curves.together)
    best = np.array(
        [
            curves.together[i] if name == "secure aggregation" else curves.apart[i]
            for i, name in enumerate(curves.chosen)
        ]
    )
    holds = math.isfinite(curves.turning) and bool(np.allclose(best, lower))
    return Verdict(
        "the design variable is 0 or 1 at the optimum, and masks win until they cost too much",
        holds,
        f"{curves.centres} centres: one turn, at a weight of {curves.turning:.3g} squared error for a second",
    )


def _root_law(trials: list[_Trial]) -> Verdict:
    ratios = [one.measured_together / one.measured_apart * math.sqrt(one.centres) for one in trials]
    return Verdict(
        "with masks the error falls by the root of the number of centres",
        all(0.88 < ratio < 1.13 for ratio in ratios),
        f"measured ratio times root: {min(ratios):.3f} to {max(ratios):.3f}",
        of="sfumato",
    )


def _features_are_worse(features: tuple[float, float], trial: _Trial) -> Verdict:
    together = trial.measured_together
    return Verdict(
        "noise on every patient's features before the products (3.4.3), in its provable form, local DP, is competitive",
        features[0] < 3 * trial.measured_apart,
        f"error {features[0]:.3g} an entry, {features[1]:.3g} with its mean taken out, against "
        f"{trial.measured_apart:.3g} with noise on the sums and {together:.3g} with masks",
    )


def _real_is_right(ratio: float, entries: int) -> Verdict:
    return Verdict(
        "five real processes give the central matrix up to the planned noise",
        abs(ratio - 1) < 5 * math.sqrt(2 / entries),
        f"squared error {ratio:.2f} times the planned one, over {entries} entries",
        of="sfumato",
    )


CENTRES = Study(
    "basu-centres",
    "Medical centres: noise everywhere, or masks and noise once",
    "Basu 2024, sections 3.3.4 and 3.4",
    run,
)
