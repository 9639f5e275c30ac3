"""What a fit says when it is asked for what it cannot do: which cell, which word, and what to write instead."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sfumato import Interval, Schema
from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.errors import DataError, InputError
from sfumato.learn import (
    PrivacyLeakWarning,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSVC,
    TargetAtEndWarning,
)

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-0.5, 0.5, (2000, 2))
WORDS = np.where(X[:, 0] > 0, "yes", "no").astype(object)


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA, pd.NaT], ids=["None", "NaN", "NA", "NaT"])
@pytest.mark.parametrize("form", [np.array, pd.Series], ids=["numpy", "pandas"])
@pytest.mark.parametrize("place", [0, 7])
def test_absent_labels_are_called_absent(absent, form, place):
    """Wherever they stand: libraries look at the first label alone to guess what all of them are."""
    labels = WORDS.copy()
    labels[place] = absent
    with pytest.raises((DataError, TypeError), match="absent label") as refusal:
        PrivateLogisticRegression(1.0, 1e-6).fit(X, form(labels))
    assert "regression target" not in str(refusal.value)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [((WORDS == "yes").astype(int), ["no", "yes"]), (WORDS, ["no", "si"]), (WORDS, [0, 1])],
    ids=["numbers for words", "another word", "words for numbers"],
)
def test_other_labels_are_not_called_more(labels, classes):
    """There are two, as declared: what is wrong is which."""
    with pytest.raises(DataError, match="not among the 2 declared") as refusal:
        PrivateLogisticRegression(1.0, 1e-6, classes=classes).fit(X, labels)
    assert "more classes" not in str(refusal.value)


@pytest.mark.parametrize("schema", [None, Schema({"a": Interval(-1, 1), "b": Interval(-1, 1)})])
def test_targets_that_are_no_numbers_are_not_sent_to_a_schema(schema):
    """A schema says what X is; it has nothing to say of y."""
    rows = X if schema is None else pd.DataFrame(X, columns=["a", "b"])
    model = PrivateLinearRegression(1.0, 1e-6, schema=schema)
    for target, way in ((WORDS, "classifier"), (np.where(X[:, 0] > 0.4, np.nan, X[:, 1]), "public value")):
        with pytest.raises(DataError, match=way) as refusal:
            model.fit(rows, target)
        assert "schema" not in str(refusal.value)
        assert "Nothing was spent" in str(refusal.value)


def test_the_path_of_a_ledger_is_no_ledger(tmp_path):
    with pytest.raises(InputError, match=r"sfumato\.Ledger") as refusal:
        PrivateLogisticRegression(1.0, 1e-6).fit(X, WORDS, ledger=str(tmp_path / "ledger.db"), dataset="survey")
    assert "nothing was spent" in str(refusal.value)


@pytest.mark.parametrize("seed", range(12))
def test_a_target_beyond_its_interval_is_told_by_what_was_published(seed):
    """Where all of y lies beyond an end; and not where it lies inside, nor where noise alone moved the mean."""
    generator = np.random.default_rng(seed)
    low = generator.uniform(-50, 50)
    high = low + generator.uniform(1, 100)
    beyond = seed % 3
    rows = 20_000  # so many that the mean's noise reaches no hundredth of the interval
    y = [generator.uniform(low, high, rows), high + generator.exponential(9, rows), low - np.ones(rows)][beyond]
    for epsilon in (1.0, 0.001):
        model = PrivateLinearRegression(epsilon, 1e-6, target=(low, high))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(generator.uniform(-0.5, 0.5, (rows, 2)), y)
        told = any(issubclass(one.category, TargetAtEndWarning) for one in caught)
        assert told == (bool(beyond) and epsilon == 1.0)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "cubic"])
@pytest.mark.parametrize("norm", [0.3, 3.0])
def test_the_norm_that_rows_were_shortened_to_is_the_one_that_is_told(norm, kernel):
    """Features of a kernel have norm 1; a row is read as what is left of it at the norm that was declared."""
    model = PrivateSVC(1.0, 1e-6, kernel=kernel, norm=norm, random_state=0).fit(X, X[:, 0] > 0)
    assert f"Rows longer than {norm:g} were shortened to it" in model.explain()
    far = np.array([[3.0, 4.0]])
    assert model.decision_function(far) == pytest.approx(model.decision_function(far / 5 * norm))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cubic"])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_norm_that_was_bought_is_what_rows_are_shortened_to(kernel, adjacency):
    """With a kernel too, whose bandwidth is that of the same norm had it been declared."""
    ring = np.linalg.norm(X, axis=1) < 0.4
    for unit in (1e-4, 1.0, 1e6):
        model = PrivateSVC(
            4.0, 1e-6, kernel=kernel, norm=None, spend_on_bounds=1.0, adjacency=adjacency, random_state=0
        )
        model.set_params(classes=[False, True], public_size=2000).fit(X * unit, ring)
        bought = model.bounds_.norm
        assert f"Rows longer than {bought:g} were shortened to it" in model.explain()
        far = np.array([[3.0, 4.0]]) * bought
        assert model.decision_function(far) == pytest.approx(model.decision_function(far / 5))
        declared = clone(model).set_params(norm=bought, spend_on_bounds=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            declared.fit(X * unit, ring)
        np.testing.assert_array_equal(declared.features_(X * unit), model.features_(X * unit))
