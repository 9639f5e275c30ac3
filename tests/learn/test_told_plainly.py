"""What a fit says when it is asked for what it cannot do: which cell, which word, and what to write instead."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from sfumato import Interval, Schema
from sfumato.errors import DataError, InputError
from sfumato.learn import PrivateLinearRegression, PrivateLogisticRegression, TargetAtEndWarning

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
    y = [generator.uniform(low, high, 2000), high + generator.exponential(9, 2000), low - np.ones(2000)][beyond]
    for epsilon in (1.0, 0.001):
        model = PrivateLinearRegression(epsilon, 1e-6, target=(low, high))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y)
        told = any(issubclass(one.category, TargetAtEndWarning) for one in caught)
        assert told == (bool(beyond) and epsilon == 1.0)
