"""A small study with its table, on a desk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

STUDY = """% Potassium in three hospitals
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, kalium, kalium(P)). column(patients, age, age(P)). column(patients, sex, sex(P)).
random(kalium(P)) :- patient(P). random(age(P)) :- patient(P). random(sex(P)) :- patient(P).
range(kalium(P), 2, 8). range(age(P), 0, 110). range(sex(P), [f, m]).
dataset(everybody, domain(P, patient(P))).
privacy_requirement(care(doctor), everybody, dp(1, 1e-6)).
privacy_requirement(care(public), everybody, dp(0.5, 1e-6)).
mean(meanKalium, kalium(P), patient(P)). histogram(sexes, sex(P), patient(P)).
mean(older, kalium(P), (patient(P), age(P) > 65)).
publish(average, meanKalium, care(doctor)). publish(average, meanKalium, care(public)).
publish(bySex, sexes, care(doctor)). publish(old, older, care(doctor)).
"""


def make_study(folder: Path, people: int = 400) -> Path:
    source = np.random.default_rng(3)
    table = pa.table(
        {
            "id": np.arange(people),
            "kalium": source.uniform(3, 6, people),
            "age": source.integers(0, 100, people),
            "sex": source.choice(["f", "m"], people),
        }
    )
    parquet.write_table(table, folder / "patients.parquet")
    study = folder / "potassium.pl"
    study.write_text(STUDY, encoding="utf-8")
    return study
