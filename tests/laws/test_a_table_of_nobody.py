"""A table of nobody: where a record may be added a fit of none ends as a fit of one does; asked about nobody, a model
answers nothing.

Generated: every estimator, tables of numbers, sparse ones and such with a schema, with and without δ. Compared: how the
fit of no row ends with how that of a single row does, refusals and warnings by their words.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import ClassifierMixin

from laws.hostile import Hostile
from laws.test_ends import every_estimator, made
from laws.test_every_fit import Watch
from sfumato import learn
from sfumato.core import ADD_REMOVE, REPLACE_ONE, Adjacency, Interval, Schema
from sfumato.errors import SfumatoError
from sfumato.learn import table

try:
    import array_api_strict as strict
except ImportError:
    strict = None

KINDS = every_estimator()
ADDITIVE = (learn.PrivateAdditiveClassifier, learn.PrivateAdditiveRegressor)
NAMES = ["a", "b"]
ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))
SCHEMA = Schema({name: Interval(-1, 1) for name in NAMES})
#: What learns where the rows lie, on a device.
THERE = (
    *(learn.KernelMeanClassifier, learn.PrivateLinearRegression, learn.PrivateLogisticRegression, learn.PrivateSVC),
    *(learn.PrivateClassifier, learn.PrivateSVDD),
)
FORMS: dict[str, Any] = {
    "numbers": lambda rows: rows,
    "device": lambda rows: strict.asarray(rows, copy=True),
    "sparse": sparse.csr_array,
    "schema": lambda rows: dict(zip(NAMES, rows.T, strict=True)),
}


def cases() -> list[tuple[type, str]]:
    """Estimators with the forms of tables that they take."""
    found = []
    for kind in KINDS:
        takes = "schema" in estimator(kind, "numbers", REPLACE_ONE).get_params()
        lies = {"schema": takes, "device": strict is not None and kind in THERE}
        found += [(kind, form) for form in FORMS if lies.get(form, kind not in ADDITIVE)]
    return found


def estimator(kind: type, form: str, adjacency: Adjacency, delta: float = 1e-6) -> Any:
    model = made(kind, Hostile(ROWS, np.zeros(len(ROWS)), adjacency, 50, 1.0))
    known = model.get_params()
    model.set_params(**({"delta": delta} if "delta" in known else {}))
    return model.set_params(schema=SCHEMA) if form == "schema" and "schema" in known else model


def fitted(model: Any, form: str, rows: int, watch: Watch | None = None) -> Any:
    labels = np.arange(rows) % 2 if isinstance(model, ClassifierMixin) else ROWS[:rows, 0]
    charged = {} if watch is None or isinstance(model, learn.OutputSVC) else {"ledger": watch, "dataset": "people"}
    return model.fit(FORMS[form](ROWS[:rows]), labels, **charged)


def ending(kind: type, form: str, rows: int, delta: float) -> list[str]:
    """How a fit ends where records may be added, in all that somebody who waits for it sees."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            model = fitted(estimator(kind, form, ADD_REMOVE, delta), form, rows)
            ends = [f"{type(model).__name__} {model.guarantee_}", str(model.predict(FORMS[form](ROWS)).shape)]
        except Exception as error:
            ends = [f"{type(error).__name__}: {error}"]
    return [*ends, *sorted(re.sub(r"[0-9.e-]+", "#", str(one.message)) for one in told)]


def unlike(delta: float) -> list[tuple[str, str, list[str]]]:
    """Fits of nobody that end otherwise than those of one person."""
    return [
        (kind.__name__, form, nobody)
        for kind, form in cases()
        if (nobody := ending(kind, form, 0, delta)) != ending(kind, form, 1, delta)
    ]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_fit_of_nobody_ends_as_that_of_one_person(delta):
    assert unlike(delta) == []


def test_a_fit_that_asks_for_somebody_is_found(monkeypatch):
    monkeypatch.setattr(table, "knows_its_size", lambda estimator: True)
    assert {kind for kind, _, _ in unlike(1e-6)} >= {"KernelMeanClassifier", "PrivateAdditiveRegressor", "PrivateSVC"}


@pytest.mark.parametrize(("kind", "form"), cases(), ids=lambda one: getattr(one, "__name__", one))
@pytest.mark.by_day(5)
def test_where_the_number_of_rows_is_public_none_is_refused_in_words(kind, form):
    watch = Watch()
    with pytest.raises(SfumatoError, match="Nothing was spent"):
        fitted(estimator(kind, form, REPLACE_ONE), form, 0, watch)
    assert watch.seen == []


@pytest.mark.parametrize(("kind", "form"), cases(), ids=lambda one: getattr(one, "__name__", one))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.by_day(5)
def test_asked_about_nobody_a_model_answers_nothing(kind, form):
    model = fitted(estimator(kind, form, REPLACE_ONE), form, len(ROWS))
    for name in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, name):
            nothing, something = (getattr(model, name)(FORMS[form](ROWS[:rows])) for rows in (0, 3))
            assert np.shape(nothing) == (0, *np.shape(something)[1:])
