"""What is withheld of a fitted model is in nothing that it shows or hands on: pictures, words, files, pickles."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from laws.test_saved_models import KINDS, LABELS, X, fitted
from sfumato import learn
from sfumato.errors import UnprovedError
from sfumato.learn import PrivateEstimator, shown
from sfumato.learn.published import withheld_names

#: What nobody may see, in the place of every attribute that is withheld; short, since pictures shorten words.
SECRET = "HIDDEN7"


@cache
def random_stopping() -> Any:
    inner = learn.PrivateLogisticRegression(1.0, classes=["no", "yes"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = learn.PrivateSearch(inner, {"regularization": [0.1, 1.0]}, 4.0, 1e-6, scheme="random_stopping")
        return search.fit(X, LABELS)


@cache
def model_of(kind: type) -> Any:
    return fitted(kind)


def estimators_in(model: Any) -> Iterator[Any]:
    yield model
    for part in list(vars(model).values()):
        if isinstance(part, PrivateEstimator):
            yield from estimators_in(part)


def planted(model: Any) -> set[str]:
    """The names withheld anywhere within, each given the secret."""
    names = set()
    for one in estimators_in(model):
        for name in withheld_names(one):
            vars(one)[name] = SECRET
            names.add(name)
    return names


def pictures(model: Any) -> list[str]:
    """As a notebook shows it: alone, as the last step of pipelines, frozen, in another picture's text."""
    step = Pipeline([("rows", Normalizer()), ("model", model)])
    around = [model, step, learn.PrivatePipeline(step.steps), FrozenEstimator(model)]
    bundles = [one._repr_mimebundle_() for one in around]
    return [
        *map(repr, around),
        *(one._repr_html_() for one in around),
        *(text for one in bundles for text in one.values()),
    ]


def handed_on(model: Any, folder: Any) -> list[str]:
    stream, found = io.BytesIO(), []
    try:
        model.save(folder / "model.json")
        found.append((folder / "model.json").read_text())
    except UnprovedError as refusal:
        found.append(str(refusal))
    try:
        pickle.dump(model, stream)
    except UnprovedError as refusal:
        found.append(str(refusal))
    return [*found, stream.getvalue().decode("latin-1")]


def told(model: Any, folder: Any) -> list[str]:
    """What of the withheld names and values can be seen."""
    words = {*planted(model), SECRET}
    texts = [*pictures(model), *handed_on(model, folder)]
    found = {word for word in words if any(word in text for text in texts)}
    return sorted(found | ({SECRET} if SECRET in model.explain() else set()))  # words may say of a name what it is


@pytest.mark.parametrize("kind", [*KINDS, learn.OutputSVC], ids=lambda kind: kind.__name__)
def test_no_picture_and_no_copy_tells_what_is_withheld(kind, tmp_path):
    assert told(model_of(kind), tmp_path) == []


def test_nor_does_a_search_by_random_stopping(tmp_path):
    model = random_stopping()
    assert "n_tried_" in planted(model)
    assert told(model, tmp_path) == []
    assert "no certificate" in model._repr_html_()


def test_a_picture_with_the_attributes_is_found(monkeypatch, tmp_path):
    monkeypatch.delattr(shown.SettingsShown, "_get_fitted_attr_html")
    assert told(model_of(learn.PrivateSVC), tmp_path) == ["HIDDEN7", "n_iter_"]
