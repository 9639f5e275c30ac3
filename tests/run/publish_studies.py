"""A study with numbers, categories and a label, its people, and the words of kinds that a test uses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

HEAD = """
source(patients, 'patients.parquet').
column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
column(patients, age, age(P)).
column(patients, bmi, bmi(P)).
column(patients, sex, sex(P)).
column(patients, ill, ill(P)).
random(age(P)) :- patient(P).
random(bmi(P)) :- patient(P).
random(sex(P)) :- patient(P).
random(ill(P)) :- patient(P).
range(age(P), 0, 110).
range(bmi(P), 10, 60).
range(sex(P), [f, m]).
range(ill(P), [no, yes]).
dataset(people, domain(P, patient(P))).
"""
MEAN = "mean(meanAge, age(P), patient(P)).\npublish(average, meanAge, openness(public)).\n"
TABLE = "publish(open, table([age(P), bmi(P), sex(P), ill(P)], for(svm(ill(P)))), openness(public)).\n"
NUMBERS = "publish(open, table([age(P), bmi(P)]), openness(public)).\n"
CLASSIFIER = "publish(triage, classifier(ill(P), [age(P), bmi(P)]), openness(public)).\n"
REGRESSION = "publish(line, regression(bmi(P), [age(P), sex(P)]), openness(public)).\n"
OUTLIERS = "publish(odd, outliers([age(P), bmi(P)]), openness(public)).\n"
CHANNEL = "publish(meter, channel(age(P), [identity, sqrt]), openness(public)).\n"

SIZE = 2000


def study(metric: str, body: str) -> str:
    return f"{HEAD}privacy_requirement(openness(public), people, {metric}).\n{body}"


def people(seed: int = 0, size: int = SIZE) -> pa.Table:
    """Illness follows age, and weight follows age a little."""
    generator = np.random.default_rng(seed)
    age = generator.uniform(20, 90, size)
    ill = generator.random(size) < 1 / (1 + np.exp(-(age - 55) / 4))
    return pa.table(
        {
            "id": [f"p{number}" for number in range(size)],
            "age": age,
            "bmi": 18 + 0.2 * age + generator.normal(0, 3, size),
            "sex": generator.choice(["f", "m"], size),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def features(table: pa.Table) -> dict[str, np.ndarray]:
    """Columns by the names the study gives them."""
    return {f"{name}(P)": table[name].to_numpy(zero_copy_only=False) for name in ("age", "bmi", "sex")}
