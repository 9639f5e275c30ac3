"""No error of a fit or a mechanism quotes a cell, neither itself nor in what caused it; and seeds stay known."""

from __future__ import annotations

import traceback
import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from laws.hostile import Hostile
from laws.test_ends import every_estimator, made
from sfumato import learn
from sfumato.core import REPLACE_ONE, PureDP
from sfumato.mechanisms import Box, FiniteChannel, Gaussian, Laplace, NormGamma, PermuteAndFlip, RandomizedResponse

SECRET = "SECRETCELL 91234"
ROWS = 60
NUMBERS = np.zeros((ROWS, 2))
LABELS = np.arange(ROWS) % 2


def with_secret(kind: str) -> tuple[Any, Any]:
    """A table and labels, one cell of which is a person's text."""
    table, labels = NUMBERS.astype(object), LABELS.astype(object)
    match kind:
        case "object":
            table[7, 1] = SECRET
        case "frame":
            table = pd.DataFrame({"a": ["0.1"] * (ROWS - 1) + [SECRET], "b": np.arange(float(ROWS))})
        case "list":
            table = [[0.0, 0.0]] * (ROWS - 1) + [[0.0, SECRET]]
        case "text":
            table = np.array([["0.1", "0.2"]] * (ROWS - 1) + [["0.1", SECRET]])
        case "flat":
            table = np.array(["0.1"] * (ROWS - 1) + [SECRET], dtype=object)
        case "ragged":
            table = [[0.0, 0.0]] * (ROWS - 1) + [[0.0, 0.0, SECRET]]
        case "complex":
            table = NUMBERS + 91234j
        case "labels":
            table, labels = NUMBERS, np.array(["0"] * (ROWS - 1) + [SECRET], dtype=object)
        case "mixed labels":
            table, labels[3] = NUMBERS, SECRET
        case "label matrix":
            table, labels = NUMBERS, np.array([[SECRET, "x"]] * ROWS, dtype=object)
    return table, labels


KINDS = ["object", "frame", "list", "text", "flat", "ragged", "complex", "labels", "mixed labels", "label matrix"]


def raised(action) -> BaseException | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action()
    except Exception as error:
        return error
    return None


def is_quoted(error: BaseException) -> bool:
    """What a person sees who reads the error, its traceback, or follows its causes and contexts."""
    texts, chain = ["".join(traceback.format_exception(error, chain=True))], error
    while chain is not None:
        texts.append(str(chain) + repr(chain.args))
        chain = chain.__cause__ or chain.__context__
    return any("SECRETCELL" in text or "91234j" in text for text in texts)


@pytest.mark.parametrize("kind", every_estimator(), ids=lambda kind: kind.__name__)
@pytest.mark.by_day(11)
def test_no_fit_quotes_a_cell(kind):
    for name in KINDS:
        table, labels = with_secret(name)
        estimator = made(kind, Hostile(NUMBERS, LABELS, REPLACE_ONE, ROWS, 1.0))
        error = raised(partial(estimator.fit, table, labels))
        if error is None and getattr(estimator, "schema", None) is not None:
            assert "label" not in name or kind is learn.PrivateAdditiveRegressor, (
                name
            )  # in a schema it is an absent cell
        elif error is None:  # an outlier detector takes no labels
            assert kind is learn.PrivateSVDD, name
            assert "label" in name, name
        else:
            assert not is_quoted(error), (name, error)


@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(1.0, 1.0, REPLACE_ONE), Laplace(1.0, 1.0, REPLACE_ONE), NormGamma(1.0, 1.0, REPLACE_ONE),
        Box(5.0, 1.0, REPLACE_ONE), PermuteAndFlip(2.0, 1.0, REPLACE_ONE),
        RandomizedResponse(7, 2, REPLACE_ONE, 3),
        FiniteChannel.for_guarantee(PureDP(0.5), 1.0, REPLACE_ONE, probabilities=[[0.9, 0.1], [0.2, 0.8]]),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)  # fmt: skip
@pytest.mark.parametrize("values", [["1.0", SECRET], SECRET, [[1.0], [1.0, SECRET]], [{SECRET: 1}]], ids=range(4))
def test_no_mechanism_quotes_a_value(mechanism, values):
    error = raised(lambda: mechanism(values))
    assert error is not None
    assert not is_quoted(error)


def test_an_error_that_keeps_its_cause_is_found():
    def careless():
        try:
            float(SECRET)
        except ValueError as error:
            raise ValueError("not a number") from error

    error = raised(careless)
    assert error is not None
    assert is_quoted(error)


@pytest.mark.parametrize("kind", every_estimator(), ids=lambda kind: kind.__name__)
@pytest.mark.by_day(9)
def test_whether_a_model_may_be_published_is_decided_at_the_draw(kind):
    draw = np.random.default_rng(0)
    table, labels = draw.uniform(-0.5, 0.5, (300, 2)), np.arange(300) % 2
    for seed, later in ((0, None), (None, 0)):
        estimator = made(kind, Hostile(table, labels, REPLACE_ONE, 300, 1.0)).set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = estimator.fit(table) if kind is learn.PrivateSVDD else estimator.fit(table, labels)
        assert model.certificate_.publishable is (seed is None)
        model.set_params(random_state=later)
        assert model.certificate_.publishable is (seed is None)
