"""What is set on a fitted estimator is for its next fit: answers, promise, notes and file are those of the last one."""

from __future__ import annotations

import inspect
import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laws.test_saved_models import FRAME, KINDS, LABELS, SCHEMA, X, answers, fitted
from laws.test_shown_models import random_stopping
from sfumato import learn
from sfumato.core import ADD_REMOVE, Categories, Interval, Schema
from sfumato.errors import DataError, UnprovedError
from sfumato.learn import asked, fitting
from sfumato.learn.model_document import model_document
from sfumato.learn.steps import private_core

#: Where and by what an answer of OutputSVC is charged is settled when it answers.
FREE = {"ledger", "dataset"}
OTHER: dict[str, Any] = {
    "adjacency": ADD_REMOVE, "as_published": True, "bins": 3, "box": (-100.0, 100.0), "classes": ["no", "yes"],
    "edges": {"c0": [0.1]}, "gamma": 9.0, "kernel": "laplacian", "method": "output", "penalty": "junk",
    "priors": "divided", "publish": "points", "queries": 7, "rows": "stretch", "scheme": "random_stopping",
    "schema": Schema({"age": Interval(-50, 50), "job": Categories(["b", "a"], unknown="b"), "c0": Interval(-9, 9)}),
    "support": "all",
}  # fmt: skip
ROUNDS = {
    "other values": lambda name: OTHER.get(name, 7),
    "nothing": lambda _: None,
    "what means nothing": lambda _: "junk",
}


def told(model: Any, rows: Any, folder: Any) -> list[Any]:
    """All that a model answers and says."""
    said = [str(model.guarantee_), model.explain(), *model.not_covered_, model.reads_labels()]
    certificate = {} if model is SEARCHES.get("random") else json.loads(model.certificate_.to_json())
    shown = [] if isinstance(model, learn.OutputSVC) else [one.tolist() for one in answers(model, rows)]
    try:
        model.save(folder / "model.json")
        file = json.loads((folder / "model.json").read_text())
    except UnprovedError as refusal:
        file = {"refusal": str(refusal)}
    for record in (certificate, file, file.get("certificate", {})):
        for name in ("created", "digest"):
            record.pop(name, None)
    return [said, certificate, file, shown, getattr(model, "shapes_", None) is not None and shapes(model)]


def shapes(model: Any) -> Any:
    return [(name, one.names(), one.values.tolist()) for name, one in model.shapes_.items()]


SEARCHES: dict[str, Any] = {}


def all_set(model: Any, value_of: Any) -> None:
    for name in sorted(model.get_params(), key=lambda name: -name.count("__")):
        if name not in FREE:
            model.set_params(**{name: value_of(name.rpartition("__")[2])})


def models(kind: type) -> list[tuple[Any, Any]]:
    """With numbers, and with a schema where the class knows one."""
    found = [(fitted(kind), X)]
    named = "schema" in found[0][0].get_params() and kind is not learn.SemiSVC
    return [*found, (fitted(kind, FRAME, schema=SCHEMA, norm=2.0), FRAME)] if named else found


def differences(model: Any, rows: Any, folder: Any) -> list[str]:
    """The rounds after which the model tells something else than before."""
    before, found = told(model, rows, folder), []
    for words, value_of in ROUNDS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            all_set(model, value_of)
            found += [] if _tells(model, rows, folder) == before else [words]
    return found


def _tells(model: Any, rows: Any, folder: Any) -> Any:
    try:
        return told(model, rows, folder)
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("kind", [*KINDS, learn.OutputSVC], ids=lambda kind: kind.__name__)
@pytest.mark.by_day(5)
def test_what_is_set_after_a_fit_changes_nothing_about_it(kind, tmp_path):
    for model, rows in models(kind):
        assert differences(model, rows, tmp_path) == []
        if kind is not learn.OutputSVC:
            again = learn.load(tmp_path / "model.json")
            assert differences(again, rows, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, learn.OutputSVC], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("round", list(ROUNDS))
def test_nor_does_any_parameter_alone(kind, round, tmp_path):
    for model, rows in models(kind):
        before, first = told(model, rows, tmp_path), model.get_params(deep=False)
        for name in set(first) - FREE:
            model.set_params(**{name: ROUNDS[round](name)})
            assert told(model, rows, tmp_path) == before, name
            model.set_params(**{name: first[name]})


def test_nor_does_what_is_changed_in_place(tmp_path):
    edges, classes = {"c0": [-0.5, 0.5]}, ["no", "yes"]
    model = fitted(learn.PrivateAdditiveClassifier, edges=edges, classes=classes)
    before = told(model, X, tmp_path)
    edges["c0"].append(0.7)
    classes.append("perhaps")
    assert told(model, X, tmp_path) == before
    box = np.array([-1.0, 1.0])
    for kind in (learn.KernelMeanClassifier, learn.PrivateClassifier, learn.EquilibriumClassifier):
        model = fitted(kind, box=box.copy())
        before = told(model, X, tmp_path)
        model.box *= 100
        assert told(model, X, tmp_path) == before


def test_the_next_fit_has_what_was_set():
    model = fitted(learn.KernelMeanClassifier)
    model.set_params(epsilon=5.0, box=(-2.0, 2.0), classes=["no", "yes"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, LABELS)
    assert not model.reads_labels()
    assert asked.as_fitted(model).box == (-2.0, 2.0)
    assert asked.as_fitted(model).epsilon == 5.0


#: Settings under which fits leave different things behind.
SETTINGS: dict[str, tuple[Any, ...]] = {
    "calibration": ("public", 0.2), "kernel": ("linear", "rbf"), "method": ("objective", "output"),
    "priors": ("included", "divided"), "publish": ("support", "points"), "scheme": ("split", "random_stopping"),
    "support": ("classes", "all"),
}  # fmt: skip


def switches() -> list[Any]:
    """(kind, parameter, the setting of the first fit, that of the second)."""
    found = []
    for kind in [*KINDS, learn.OutputSVC]:
        takes = inspect.signature(kind.__init__).parameters
        for name in [name for name in SETTINGS if name in takes]:
            wanted = ["rbf", "cubic"] if name == "kernel" and kind is not learn.PrivateSVC else SETTINGS[name]
            found += [pytest.param(kind, name, *pair, id=f"{kind.__name__}-{name}-{pair[0]}") for pair in
                      (tuple(wanted), tuple(wanted)[::-1])]  # fmt: skip
    return found


def held(model: Any) -> set[str]:
    return set(vars(model)) - {"_lineage", "_place"}


@pytest.mark.parametrize(("kind", "name", "first", "second"), switches())
@pytest.mark.by_day(9)
def test_the_next_fit_leaves_nothing_of_the_last(kind, name, first, second):
    """Names of columns, curves, votes: what a model holds is what its own fit drew, as its certificate says."""
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = fitted(kind, table, **{name: first}, random_state=0)
    model.set_params(**{name: second})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, LABELS)
    fresh = fitted(kind, X, **{name: second}, random_state=0)
    assert held(model) == held(fresh)
    if kind is not learn.OutputSVC:
        for mine, theirs in zip(answers(model, X), answers(fresh, X), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_fit_that_fails_leaves_the_last_one():
    model = fitted(learn.PrivateSVC, calibration=0.2)
    before = dict(vars(model))
    with pytest.raises(DataError):
        model.fit(X, LABELS[:-1])
    assert held(model) == set(before) - {"_lineage", "_place"}
    assert all(vars(model)[name] is before[name] for name in held(model))


def test_fits_after_a_search_add_to_what_the_search_cost():
    """Of the best of many runs the promise is that of all of them, and what is drawn later comes to it."""
    model = private_core(random_stopping().best_estimator_)[0]
    price = model.guarantee_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, LABELS)
    assert not model.is_best_of_many
    assert model.guarantee_.under(None).eps == pytest.approx(price.under(None).eps + model.epsilon, rel=1e-9)


def test_a_search_and_what_it_hands_out(tmp_path):
    model = SEARCHES["random"] = random_stopping()
    assert differences(model, X, tmp_path) == []
    inner = private_core(fitted(learn.PrivateSearch).best_estimator_)[0]
    assert differences(inner, X, tmp_path) == []


def test_a_published_document_has_the_schema_of_the_fit():
    model = fitted(learn.PrivateLogisticRegression, FRAME, schema=SCHEMA, norm=2.0)
    before = model_document("classifier", "alone", "y", model, ())
    all_set(model, lambda _: None)
    assert model_document("classifier", "alone", "y", model, ()) == before


@pytest.mark.parametrize("kind", [learn.PrivateAdditiveClassifier, learn.KernelMeanClassifier, learn.PrivateSVC])
def test_a_fit_that_keeps_no_parameters_is_found(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(fitting, "keep_parameters", lambda _: None)
    model, rows = models(kind)[0]
    assert differences(model, rows, tmp_path)
