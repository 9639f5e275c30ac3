"""The bundled oncology study against draws of its own network, made in plain numpy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from sfumato.lang import load
from sfumato.network.network import Network

FOLDER = Path(__file__).parents[2] / "examples" / "oncology"
WEIGHTS = {"d1": {"a1": 0.5, "a2": 0.3, "a3": 0.2}, "d2": {"a3": 0.4, "a4": 0.3, "a5": 0.2, "a6": 0.1}}


def cells() -> dict[str, dict[str, float]]:
    """Age, reported smoking and alterations of every patient, by the study's ranges and defaults."""
    patients = parquet.read_table(FOLDER / "patients.parquet").to_pylist()
    known = {str(row["id"]): {"age": row["age"], "smoking": row["smoking"]} for row in patients}
    for row in parquet.read_table(FOLDER / "alterations.parquet").to_pylist():
        if str(row["patient"]) in known:
            known[str(row["patient"])][row["alteration"]] = row["present"]
    for person in known.values():
        for name, value in person.items():
            person[name] = float(np.clip(0.0 if value is None else value, 0.0, 110.0 if name == "age" else 1.0))
    return known


def simulated(person: dict[str, float], draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(expectedSurvivalLength, survivalMoreThan6Month), drawn from the study's laws."""
    resistances = [math.exp(-sum(w * person.get(a, 0.0) for a, w in by.items())) for by in WEIGHTS.values()]
    smoker = rng.random(draws) < 0.2 + 0.8 * person["smoking"]
    rate = 12 / (smoker * 0.5 + max([*resistances, 1.0, 1.0]) + 24 * 0.02 + person["age"] * 0.01)
    length = rng.poisson(rate)
    return length, rng.random(draws) < np.clip(length / 12, 0, 1)


def check(people: int, draws: int) -> None:
    network = Network.from_spec(load(FOLDER / "study.pl"))
    values = network.evaluate({source.table: FOLDER / source.path for source in network.spec.sources})
    known = cells()
    rng = np.random.default_rng(5)
    rows = list(enumerate(values.identifiers("patientDataset")))[:: max(1, len(known) // people)]
    gaps = []
    for place, identifier in rows:
        drawn = simulated(known[identifier], draws, rng)
        for name, column in zip(("expectedSurvivalLength(P)", "survivalMoreThan6Month(P)"), drawn, strict=True):
            error = column.std() / math.sqrt(draws)
            gaps.append((values.column(name)[place] - column.mean()) / error)
    assert np.max(np.abs(gaps)) < 4.5  # the largest of many
    assert abs(np.mean(gaps)) * math.sqrt(len(gaps)) < 3
    assert np.mean(np.abs(gaps) < 3) > 0.97


def test_oncology_agrees_with_simulated_patients():
    check(people=20, draws=100_000)


@pytest.mark.slow
def test_oncology_agrees_with_a_million_draws():
    check(people=10, draws=1_000_000)
