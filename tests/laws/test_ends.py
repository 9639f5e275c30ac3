"""Training ends: every estimator, on every hostile table, returns a finite model or refuses in its own words."""

from __future__ import annotations

import inspect
import time
import warnings
from typing import Any

import numpy as np
import pytest

from laws.hostile import HUGE, Hostile, hostile
from sfumato import learn
from sfumato.core import ADD_REMOVE, Interval, Schema
from sfumato.core.certificate import Certificate
from sfumato.errors import SfumatoError
from sfumato.learn import PrivateLogisticRegression, rows

SECONDS = 10.0
FEW, MANY = 20, 500


def every_estimator() -> list[type]:
    """All exported classes with a `fit` that takes rows."""
    found = [getattr(learn, name) for name in learn.__all__]
    return [kind for kind in found if inspect.isclass(kind) and hasattr(kind, "fit") and "epsilon" in _names(kind)]


def _names(kind: type) -> set[str]:
    return set(inspect.signature(kind.__init__).parameters)


def made(kind: type, case: Hostile) -> Any:
    """The estimator with what is publicly said of the table."""
    options: dict[str, Any] = {
        "adjacency": case.adjacency, "classes": [0, 1], "public_size": case.public_size, "norm": case.norm,
        "spend_on_bounds": 0.1, "n_components": 20,
    }  # fmt: skip
    known = {name: value for name, value in options.items() if name in _names(kind)}
    if kind is learn.PrivateSearch:
        base = made(PrivateLogisticRegression, case)
        return kind(base, {"regularization": [0.01, 1.0]}, 1.0, 1e-6)
    if kind is learn.SemiSVC:
        known["public"] = np.zeros((3, max(1, case.table.shape[1])))
    if kind in (learn.PrivateAdditiveClassifier, learn.PrivateAdditiveRegressor):
        columns = case.table.shape[1] if hasattr(case.table, "shape") else len(case.table[0])
        known["schema"] = Schema({f"c{place}": Interval(-1, 1) for place in range(max(1, columns))})
    required = _required(kind)
    assert required <= {"self", "epsilon", *known}, (kind, required)
    return kind(epsilon=1.0, **known, **({"delta": 1e-6} if "delta" in _names(kind) else {}))


def _required(kind: type) -> set[str]:
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {one.name for one in parameters if one.default is one.empty}


def wrong(kind: type, case: Hostile) -> str | None:
    """What is wrong with how this fit ends; None if nothing is."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = made(kind, case)
            model = (
                estimator.fit(case.table, case.labels) if kind is not learn.PrivateSVDD else estimator.fit(case.table)
            )
    except SfumatoError as refusal:
        chain: BaseException | None = refusal
        while chain is not None:
            if any(word in str(chain) for word in ("e+308", "1e+20", "1.79769")):
                return f"it quotes a value: {chain}"
            chain = chain.__cause__ or chain.__context__
    except Exception as error:
        return f"it breaks: {type(error).__name__}: {error}"
    else:
        shown = [value for name, value in vars(model).items() if name.endswith("_") and isinstance(value, np.ndarray)]
        if not all(np.isfinite(value).all() for value in shown if value.dtype.kind == "f"):
            return "it publishes what is no number"
        if not isinstance(model.certificate_, Certificate):
            return "it has no certificate"
    spent = time.process_time() - began
    return f"it takes {spent:.0f} s" if spent > SECONDS else None


def faults(kind: type, seeds: range) -> list[tuple[int, str]]:
    return [(seed, words) for seed in seeds if (words := wrong(kind, hostile(seed))) is not None]


@pytest.mark.parametrize("kind", every_estimator(), ids=lambda kind: kind.__name__)
def test_training_ends(kind):
    assert faults(kind, range(FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", every_estimator(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("part", range(10))
def test_training_ends_at_length(kind, part):
    assert faults(kind, range(part * MANY // 10, (part + 1) * MANY // 10)) == []


def test_one_huge_record_that_is_not_shortened_is_found(monkeypatch):
    generator = np.random.default_rng(0)
    table = generator.uniform(-0.4, 0.4, (60, 5))
    table[7] = HUGE * np.array([1, -1, 1, 1, -1])
    case = Hostile(table, (table[:, 0] > 0).astype(int), ADD_REMOVE, 60, 1.0)
    assert wrong(PrivateLogisticRegression, case) is None
    monkeypatch.setattr(rows, "tamed", lambda matrix, norms, length: (matrix, norms))
    with pytest.raises(SfumatoError, match="no model is published"), np.errstate(all="ignore"):
        made(PrivateLogisticRegression, case).fit(case.table, case.labels)
