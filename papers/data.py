"""The public data sets of the studies: where they are found, and what is publicly known about their columns.

In:   the name of a data set.
Out:  `load`: an Arrow table with the columns of its schema; `SCHEMAS`: bounds and categories written by hand.
Not here: what is learned from the data (farokhi.py …).

Bounds are round numbers from what a column means (an age, hours in a week, the lender's largest loan), not the
extremes of the file. Lists with an order are in that order, because the paper codes categories as integers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.schema import Schema
from sfumato.errors import DataError, InputError

__all__ = ["SCHEMAS", "find", "integer_coded", "load"]

_ADULT = Schema(
    {
        "age": Interval(16, 100),
        "workclass": Categories(
            (
                *("unknown", "Never-worked", "Without-pay", "Private", "Self-emp-not-inc", "Self-emp-inc"),
                *("Local-gov", "State-gov", "Federal-gov"),
            ),
            null="unknown",
        ),
        "fnlwgt": Interval(0, 1_500_000),
        "education_num": Interval(1, 16),
        "marital_status": Categories(
            (
                *("Never-married", "Widowed", "Divorced", "Separated", "Married-spouse-absent"),
                *("Married-AF-spouse", "Married-civ-spouse"),
            )
        ),
        "occupation": Categories(
            (
                *("unknown", "Priv-house-serv", "Other-service", "Handlers-cleaners", "Farming-fishing"),
                *("Machine-op-inspct", "Transport-moving", "Craft-repair", "Adm-clerical", "Armed-Forces"),
                *("Protective-serv", "Sales", "Tech-support", "Prof-specialty", "Exec-managerial"),
            ),
            null="unknown",
        ),
        "relationship": Categories(("Own-child", "Other-relative", "Unmarried", "Not-in-family", "Wife", "Husband")),
        "race": Categories(("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")),
        "sex": Categories(("Female", "Male")),
        "capital_gain": Interval(0, 100_000),
        "capital_loss": Interval(0, 5_000),
        "hours_per_week": Interval(0, 100),
        "native_country": Categories(("elsewhere", "United-States"), null="elsewhere", unknown="elsewhere"),
        "income": Categories(("<=50K", ">50K")),
    }
)

_GRADES = "ABCDEFG"
_LENDING = Schema(
    {
        "loan_amnt": Interval(0, 40_000),
        "funded_amnt_inv": Interval(0, 40_000),
        "term_months": Interval(36, 60),
        "installment": Interval(0, 1_500),
        "grade": Categories(tuple(_GRADES)),
        "sub_grade": Categories(tuple(f"{grade}{step}" for grade in _GRADES for step in range(1, 6))),
        "emp_length": Categories(
            ("unknown", "< 1 year", "1 year", *(f"{years} years" for years in range(2, 10)), "10+ years"),
            null="unknown",
        ),
        "home_ownership": Categories(("NONE", "OTHER", "ANY", "RENT", "MORTGAGE", "OWN")),
        "annual_inc": Interval(0, 300_000),
        "verification_status": Categories(("Not Verified", "Source Verified", "Verified")),
        "bad_loan": Interval(0, 1),
        "purpose": Categories(
            (
                *("car", "credit_card", "debt_consolidation", "educational", "home_improvement", "house"),
                *("major_purchase", "medical", "moving", "other", "renewable_energy", "small_business"),
                *("vacation", "wedding"),
            )
        ),
        "open_acc": Interval(0, 80),
        "total_acc": Interval(0, 150),
        "total_pymnt": Interval(0, 60_000),
        "int_rate": Interval(5, 30),
    }
)

_NUCLEUS = (
    *("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave_points"),
    *("symmetry", "fractal_dimension"),
)
_NUCLEUS_BOUNDS = {
    "mean": (35, 50, 250, 3000, 0.25, 0.5, 0.6, 0.3, 0.5, 0.15),
    "error": (4, 6, 30, 700, 0.05, 0.2, 0.5, 0.1, 0.1, 0.05),
    "worst": (45, 60, 300, 5000, 0.3, 1.5, 1.5, 0.4, 0.8, 0.3),
}
_CANCER = Schema(
    {
        f"{kind}_{part}": Interval(0, high)
        for kind, bounds in _NUCLEUS_BOUNDS.items()
        for part, high in zip(_NUCLEUS, bounds, strict=True)
    }
    | {"diagnosis": Categories(("malignant", "benign"))}
)

#: What is public about each data set. The last column is the one to predict.
SCHEMAS: dict[str, Schema] = {"adult": _ADULT, "lending_club_2007_2014": _LENDING, "breast_cancer": _CANCER}


def find(name: str) -> Path | None:
    """The Parquet file of a data set, or None: SFUMATO_DATA, then ../shared/data from here and from the checkout."""
    given = os.environ.get("SFUMATO_DATA")
    folders = [Path(given)] if given else []
    folders += [base.parent / "shared" / "data" for base in (Path.cwd(), Path(__file__).resolve().parents[3])]
    return next((path for folder in folders if (path := folder / f"{name}.parquet").is_file()), None)


def load(name: str) -> pa.Table:
    """The columns of `SCHEMAS[name]`, from the package, a file or the network."""
    if name not in SCHEMAS:
        raise InputError(f"There is no data set {name!r}. There are: {', '.join(SCHEMAS)}.")
    columns = list(SCHEMAS[name].columns)
    path = find(name)
    if name in _ELSEWHERE and path is None:
        return _ELSEWHERE[name]().select(columns)
    if path is None:
        raise _absent(name)
    try:
        return parquet.read_table(path, columns=columns).select(columns)
    except (pa.ArrowException, OSError, KeyError):
        raise DataError(
            f"{path} cannot be read as a Parquet file with the columns {', '.join(columns)}. Nothing was run."
        ) from None


def integer_coded(name: str, table: pa.Table) -> np.ndarray:
    """All columns but the last in [0, 1]: numbers by their public bounds, categories by their place in the list."""
    schema = SCHEMAS[name]
    target = list(schema.columns)[-1]
    parts = [_unit(domain, table[column], column) for column, domain in schema.columns.items() if column != target]
    return np.column_stack(parts)


def _unit(domain: Domain, column: pa.ChunkedArray, name: str) -> np.ndarray:
    if isinstance(domain, Interval):
        return (domain.place(column, name) - domain.low) / domain.width
    assert isinstance(domain, Categories)
    kind = column.type
    plain = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    return domain.place(plain, name) / (len(domain.values) - 1)


def _absent(name: str) -> DataError:
    return DataError(
        f"The data set {name} was not found. Put {name}.parquet into ../shared/data beside the checkout, or set "
        "SFUMATO_DATA to the folder that holds it. Nothing was run."
    )


def _breast_cancer() -> pa.Table:
    from sklearn.datasets import load_breast_cancer

    values, classes = load_breast_cancer(return_X_y=True)
    names = list(_CANCER.columns)
    columns: dict[str, Any] = {column: values[:, at] for at, column in enumerate(names[:-1])}
    return pa.table(columns | {names[-1]: np.array(["malignant", "benign"])[classes]})


def _adult_from_the_network() -> pa.Table:
    """OpenML's copy; it needs pandas and a network."""
    from sklearn.datasets import fetch_openml

    try:
        answer: Any = fetch_openml("adult", version=2, as_frame=True, n_retries=0)
    except Exception as error:  # the network fails in every way there is
        raise _absent("adult") from error
    frame = answer.frame.rename(columns={"class": "income"}).rename(columns=lambda column: column.replace("-", "_"))
    return pa.Table.from_pandas(frame, preserve_index=False)


_ELSEWHERE: dict[str, Callable[[], pa.Table]] = {"breast_cancer": _breast_cancer, "adult": _adult_from_the_network}
