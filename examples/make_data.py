"""Invented tables for the example studies: run it to write them again, value for value.

    python examples/make_data.py

Nobody in them exists. The numbers come from a seeded generator, so the files can be checked into a repository.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
PATIENTS = 200
STUDENTS = 120
PEOPLE = 100


def oncology() -> dict[str, pa.Table]:
    """Patients, one row for each patient and gene alteration, and the drugs they were given."""
    chance = np.random.default_rng(44)
    names = [f"p{number:04d}" for number in range(PATIENTS)]
    smoking = chance.integers(0, 2, PATIENTS).astype(float)
    patients = pa.table(
        {
            "id": names,
            "age": np.clip(chance.normal(62, 14, PATIENTS), 18, 98).round().astype(int),
            # Three patients did not answer: an absent cell, for which missing/2 says what stands.
            "smoking": pa.array([None if number in (7, 70, 170) else smoking[number] for number in range(PATIENTS)]),
        }
    )
    alterations = [f"a{number}" for number in range(1, 7)]
    genes = pa.table(
        {
            "patient": [name for name in names for _ in alterations],
            "alteration": alterations * PATIENTS,
            "present": (chance.random(PATIENTS * 6) < 0.35).astype(int),
        }
    )
    given = [(name, drug) for name in names for drug in chance.permutation(4)[: chance.integers(1, 3)] + 1]
    treatments = pa.table({"patient": [name for name, _ in given], "drug": [f"d{drug}" for _, drug in given]})
    return {"patients": patients, "alterations": genes, "treatments": treatments}


def university() -> dict[str, pa.Table]:
    """Students with their IQ, and the courses everybody knows."""
    chance = np.random.default_rng(28)
    students = pa.table(
        {
            "id": [f"s{number:03d}" for number in range(STUDENTS)],
            "iq": np.where(chance.random(STUDENTS) < 0.6, "high", "low"),
        }
    )
    return {"students": students, "courses": pa.table({"id": ["ai", "db", "logic"]})}


def linear_query() -> dict[str, pa.Table]:
    """Three inputs in [0, 1] for each person; one input for each of three holders."""
    chance = np.random.default_rng(33)
    columns = {f"x{number}": chance.random(PEOPLE).round(4) for number in (1, 2, 3)}
    inputs = pa.table({"holder": ["x1", "x2", "x3"], "value": chance.random(3).round(4)})
    matrix = ((1.0, 0.5, 0.25), (0.0, 2.0, 1.0))
    entries = [(f"x{k + 1}", j + 1, row[k]) for j, row in enumerate(matrix) for k in range(3)]
    coefficients = pa.table(dict(zip(("holder", "query", "coefficient"), zip(*entries, strict=True), strict=True)))
    people = pa.table({"id": list(range(1, PEOPLE + 1)), **columns})
    return {"people": people, "inputs": inputs, "coefficients": coefficients}


def main() -> None:
    """Write every table beside its study."""
    for folder, tables in (("oncology", oncology()), ("university", university()), ("linear_query", linear_query())):
        for name, table in tables.items():
            pq.write_table(table, HERE / folder / f"{name}.parquet", compression="zstd")


if __name__ == "__main__":
    main()
