"""Adult, replace-one: default private classifiers beside the bars and the peer.

Run: python benchmarks/learn_adult.py [draws [folds]]. Public bounds are written by hand below;
nothing is tuned on this table.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from learn_common import cross_validate, line, peer, read

from sfumato.core import Categories, Interval, Schema
from sfumato.learn import PrivateLogisticRegression, PrivateSVC, SchemaEncoder

MISSING = "missing"


def _list(words: str) -> Categories:
    values = words.split()
    return Categories([*values, MISSING], unknown=MISSING, null=MISSING)


#: From the census questionnaire. fnlwgt is a sampling weight, not an attribute of a person.
SCHEMA = Schema(
    {
        "age": Interval(17, 90),
        "workclass": _list(
            "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked"
        ),
        "education": _list(
            "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th "
            "10th Doctorate 5th-6th Preschool"
        ),
        "education_num": Interval(1, 16),
        "marital_status": _list(
            "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse"
        ),
        "occupation": _list(
            "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
            "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv "
            "Armed-Forces"
        ),
        "relationship": _list("Wife Own-child Husband Not-in-family Other-relative Unmarried"),
        "race": _list("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
        "sex": Categories(["Female", "Male"], unknown="Male", null="Male"),
        "capital_gain": Interval(0, 20_000),
        "capital_loss": Interval(0, 4_000),
        "hours_per_week": Interval(0, 100),
        "native_country": _list(
            "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece "
            "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
            "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand "
            "Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands"
        ),
    }
)

BARS = (
    (0.1, 1e-6, 0.195, None),
    (1.0, 1e-6, 0.163, 0.88),
    (0.1, 0.0, 0.225, None),
    (1.0, 0.0, 0.172, None),
)


def table() -> tuple[Any, np.ndarray]:
    rows = read("adult.parquet")
    return rows, (np.asarray(rows.column("income").to_pylist()) == ">50K").astype(int)


def load() -> tuple[np.ndarray, np.ndarray]:
    """The encoded rows, for the peer."""
    rows, labels = table()
    return SchemaEncoder(SCHEMA).fit_transform(rows), labels


def main(draws: int = 10, count: int = 10) -> bool:
    rows, labels = table()
    print(f"Adult: {rows.num_rows} rows, {SCHEMA.width} features, {count}-fold, {draws} draws, all defaults")
    met = True
    for epsilon, delta, error_bar, auc_bar in BARS:
        for name, kind in (("logistic", PrivateLogisticRegression), ("huber SVM", PrivateSVC)):
            score = cross_validate(
                lambda seed, kind=kind, epsilon=epsilon, delta=delta: kind(
                    epsilon, delta, schema=SCHEMA, random_state=seed
                ),
                rows,
                labels,
                draws,
                count,
            )
            text = peer(f"adult {epsilon:g}")
            met &= line(f"{name} ({epsilon:g}, {delta:g})", score, error_bar, auc_bar, text) or kind is PrivateSVC
    return met


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
