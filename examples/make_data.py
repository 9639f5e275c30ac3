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
CITIZENS = 3000
LOANS = 3000
HOUSEHOLDS = 2000
APPLICANTS = 8000


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


def census() -> dict[str, pa.Table]:
    """People with schooling, hours of work and an income that follows from both."""
    chance = np.random.default_rng(90)
    age = chance.integers(17, 91, CITIZENS)
    schooling = np.clip(chance.normal(10, 2.6, CITIZENS), 0, 20).round()
    hours = np.clip(chance.normal(40, 12, CITIZENS), 0, 99).round()
    score = 0.35 * (schooling - 11) + 0.05 * (hours - 42) + 0.03 * (np.minimum(age, 55) - 40)
    high = chance.random(CITIZENS) < 1 / (1 + np.exp(-score))
    columns = {"age": age, "schooling": schooling, "hours": hours, "income": np.where(high, "high", "low")}
    return {"people": pa.table({"id": [f"c{number:05d}" for number in range(CITIZENS)], **columns})}


def lending() -> dict[str, pa.Table]:
    """Loans whose rate rises with debt and falls with income, and which default more often where it is high."""
    chance = np.random.default_rng(7)
    income = np.clip(chance.lognormal(4.1, 0.5, LOANS), 8, 400).round(1)
    debt = np.clip(chance.normal(16, 7, LOANS), 0, 50).round(2)
    term = chance.choice([36, 60], LOANS, p=[0.7, 0.3])
    rate = np.clip(
        11 + 0.15 * (debt - 16) - 0.02 * (income - 65) + 0.08 * (term - 36) + chance.normal(0, 2, LOANS), 4, 29
    )
    default = chance.random(LOANS) < 1 / (1 + np.exp(-(rate - 16) / 2))
    columns = {"income": income, "debt": debt, "term": term, "rate": rate.round(2)}
    outcome = np.where(default, "defaulted", "repaid")
    return {"loans": pa.table({"id": [f"b{number:05d}" for number in range(LOANS)], **columns, "outcome": outcome})}


def sensors() -> dict[str, pa.Table]:
    """One reading of every household's meter."""
    chance = np.random.default_rng(11)
    load = np.clip(chance.lognormal(-0.2, 0.8, HOUSEHOLDS), 0.02, 12).round(3)
    return {"meters": pa.table({"id": [f"h{number:04d}" for number in range(HOUSEHOLDS)], "load": load})}


def hospitals() -> dict[str, pa.Table]:
    """Potassium in three hospitals of different size."""
    chance = np.random.default_rng(60)
    sizes = {"north": 800, "south": 500, "west": 300}
    total = sum(sizes.values())
    columns = {
        "hospital": [name for name, size in sizes.items() for _ in range(size)],
        "kalium": chance.normal(4.3, 0.55, total).round(2),
        "age": chance.integers(18, 95, total),
    }
    return {"patients": pa.table({"id": [f"k{number:04d}" for number in range(total)], **columns})}


def households() -> dict[str, pa.Table]:
    """People of a town, most of them infected together with their household or not at all; and who lives where."""
    chance = np.random.default_rng(19)
    homes = np.repeat(np.arange(HOUSEHOLDS), chance.choice([1, 2, 3, 4, 5], HOUSEHOLDS, p=[0.3, 0.3, 0.15, 0.15, 0.1]))
    together = chance.random(HOUSEHOLDS)[homes] < 0.2
    infected = np.where(chance.random(len(homes)) < 0.9, together, chance.random(len(homes)) < 0.2)
    names = [f"p{number:05d}" for number in range(len(homes))]
    ages = np.clip(chance.normal(41, 22, len(homes)), 0, 99).round().astype(int)
    people = pa.table({"id": names, "infected": np.where(infected, "yes", "no"), "age": ages})
    return {"people": people, "homes": pa.table({"person": names, "home": [f"h{home:04d}" for home in homes]})}


def smart_meter() -> dict[str, pa.Table]:
    """Whether anybody was at home, for a hundred homes and ninety days; nine days of ten are like the day before."""
    chance = np.random.default_rng(23)
    changes = chance.random((100, 90)) < np.where(np.arange(90) == 0, 0.5, 0.1)
    occupied = changes.cumsum(axis=1) % 2
    homes, days = np.repeat(np.arange(100), 90), np.tile(np.arange(90), 100)
    return {"days": pa.table({"home": homes, "day": days, "occupied": occupied.ravel()})}


def ward() -> dict[str, pa.Table]:
    """Patients of a ward, one of whom asks to be forgotten (examples/ward/study.pl)."""
    chance = np.random.default_rng(62)
    columns = {
        "age": np.clip(chance.normal(58, 16, PATIENTS), 18, 98).round().astype(int),
        "bmi": np.clip(chance.normal(27, 5, PATIENTS), 15, 55).round(1),
    }
    return {"patients": pa.table({"id": [f"p{number:04d}" for number in range(PATIENTS)], **columns})}


def fair_hiring() -> dict[str, pa.Table]:
    """Applicants; women of this invented town had a harder test."""
    chance = np.random.default_rng(35)
    sex = np.where(chance.random(APPLICANTS) < 0.5, "female", "male")
    years = np.clip(chance.gamma(2.0, 5.0, APPLICANTS), 0, 40).round(1)
    skill = chance.normal(0, 1, APPLICANTS) + 0.03 * (years - 10)
    test = np.clip(60 + 14 * skill - 8 * (sex == "female") + chance.normal(0, 6, APPLICANTS), 0, 100).round(1)
    suitable = np.where(skill + chance.normal(0, 0.3, APPLICANTS) > 0, "yes", "no")
    columns = {"test": test, "years": years, "sex": sex, "suitable": suitable}
    return {"applicants": pa.table({"id": [f"a{number:05d}" for number in range(APPLICANTS)], **columns})}


def main() -> None:
    """Write every table beside its study."""
    kinds = (oncology, university, linear_query, census, lending, sensors, hospitals, ward, households, smart_meter)
    kinds = (*kinds, fair_hiring)
    for make in kinds:
        folder, tables = make.__name__, make()
        for name, table in tables.items():
            pq.write_table(table, HERE / folder / f"{name}.parquet", compression="zstd")


if __name__ == "__main__":
    main()
