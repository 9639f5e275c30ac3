"""A fit with odd parameters is refused in words before its cost is reserved; what breaks later says what stays charged.

Generated: every estimator, every parameter, odd values. A ledger that writes down what is reserved stands for the file.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import RegressorMixin

from laws.hostile import Hostile
from laws.test_ends import every_estimator, made
from laws.test_every_fit import Watch
from sfumato import learn
from sfumato.core import REPLACE_ONE, Categories, Interval, Schema
from sfumato.errors import DataError, InputError, SfumatoError
from sfumato.learn import fitting, search
from sfumato.mechanisms.bits import Bits

ROWS = 40
X = np.random.default_rng(0).uniform(-0.5, 0.5, (ROWS, 2))
LABELS = np.arange(ROWS) % 2
ODD = [
    "junk", -1, 0, 0.3, 2, float("nan"), float("inf"), 1e-310, 1e-300, 1e-120, 1e300, 1e308, True, [], {}, None, (0,),
    [1, 2], ("a", "b"), 1j, 10**400, "auto", np.float64(0.5), np.int64(3), (-1e308, 1e308), (0, 5e-324), (1, 0),
    Schema({"zz": Interval(0, 1)}), object(),
]  # fmt: skip
KINDS = [kind for kind in every_estimator() if kind is not learn.OutputSVC]


def estimator(kind: type) -> Any:
    return made(kind, Hostile(X, LABELS, REPLACE_ONE, ROWS, 1.0))


def places() -> list[tuple[type, str]]:
    own = [(kind, name) for kind in KINDS for name in inspect.signature(kind.__init__).parameters if name != "self"]
    searched = [name for name in estimator(learn.PrivateLogisticRegression).get_params() if name not in UNSEARCHED]
    return [*own, *((learn.PrivateSearch, f"grid {name}") for name in searched)]


UNSEARCHED = {"epsilon", "delta", "adjacency", "random_state", "classes"}


def with_value(kind: type, name: str, value: Any) -> Any:
    """The estimator with this value of a parameter; of one that is searched, in a later candidate."""
    if name.startswith("grid "):
        inner = name.removeprefix("grid ")
        usual = estimator(learn.PrivateLogisticRegression).get_params()[inner]
        return estimator(kind).set_params(grid={inner: [usual, value]})
    if name in inspect.signature(kind.__init__).parameters and name == "estimator":
        return kind(value, {"regularization": [0.1, 1.0]}, 1.0, 1e-6)
    return estimator(kind).set_params(**{name: value})


def failure(model: Any, watch: Watch, table: Any = X) -> BaseException | None:
    labels = X[:, 0] if isinstance(model, RegressorMixin) else LABELS
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model.fit(table, labels, ledger=watch, dataset="people")
    except Exception as error:
        return error
    return None


def wrong(error: BaseException | None, watch: Watch) -> str | None:
    """What is wrong with how a fit failed."""
    if error is None:
        return None
    said = " ".join([str(error), *getattr(error, "__notes__", [])])
    if "reserve" in watch.seen:
        if isinstance(error, SfumatoError):
            return f"charged, and then refused: {said}"
        return None if "stays charged" in said else f"charged in silence: {said}"
    if isinstance(error, SfumatoError) or (isinstance(error, TypeError) and "Nothing was spent" in said):
        return None
    return f"not in words: {error!r}"


#: Settings under which other parameters are read, and read elsewhere.
SETTINGS: list[tuple[type, dict[str, Any]]] = [
    *((learn.PrivateSVC, {"kernel": kernel}) for kernel in ("rbf", "laplacian", "matern12", "cubic")),
    (learn.PrivateSVC, {"kernel": "rbf", "gamma": "spread"}),
    (learn.PrivateSVC, {"calibration": 0.1}),
    (learn.PrivateLogisticRegression, {"method": "output"}),
    (learn.PrivateLinearRegression, {"regularization": 1.0}),
    (learn.EquilibriumClassifier, {"support": "all"}),
    (learn.EquilibriumClassifier, {"publish": "points"}),
    (learn.KernelMeanClassifier, {"priors": "divided", "kernel": "laplacian"}),
    (learn.KernelMomentClassifier, {"gamma": "spread"}),
]


def in_settings() -> list[Any]:
    found = []
    for kind, setting in SETTINGS:
        names = [name for name in inspect.signature(kind.__init__).parameters if name not in ("self", *setting)]
        found += [
            pytest.param(kind, setting, name, id=f"{kind.__name__}-{'-'.join(map(str, setting.values()))}-{name}")
            for name in names
        ]
    return found


def faults(kind: type, name: str, setting: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    found = []
    for value in ODD:
        watch = Watch()
        words = wrong(failure(with_value(kind, name, value).set_params(**setting or {}), watch), watch)
        if words is not None:
            found.append((repr(value)[:40], words[:200]))
    return found


@pytest.mark.parametrize(("kind", "name"), places(), ids=lambda one: getattr(one, "__name__", one))
@pytest.mark.by_day(8)
def test_a_failed_fit_keeps_no_money_in_silence(kind, name):
    assert faults(kind, name) == []


@pytest.mark.parametrize(("kind", "setting", "name"), in_settings())
@pytest.mark.by_day(6)
def test_nor_does_it_under_other_settings(kind, setting, name):
    assert faults(kind, name, setting) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "breaks", [KeyboardInterrupt(), ValueError("broken"), DataError("No. Nothing was spent.")], ids=repr
)
@pytest.mark.by_day(4)
def test_what_breaks_after_the_reservation_says_that_the_cost_stays(kind, breaks, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise copy.copy(breaks)

    monkeypatch.setattr(Bits, "__init__", broken)
    watch, model, caught = Watch(), estimator(kind), None
    try:
        caught = failure(model, watch)
    except KeyboardInterrupt as stopped:
        caught = stopped
    assert type(caught) is type(breaks)
    said = " ".join([str(caught), *getattr(caught, "__notes__", [])])
    assert watch.seen == ["reserve"]
    assert "for 'people' before that and stays charged" in said
    assert "Nothing was spent" not in said


def test_a_check_that_comes_after_the_reservation_is_found(monkeypatch):
    """Planted: nobody looks at the candidates beforehand, and nobody tells."""
    monkeypatch.setattr(search, "_rehearse", lambda *_: None)
    assert "charged, and then refused" in faults(learn.PrivateSearch, "grid rows")[0][1]
    monkeypatch.setattr(fitting._Charge, "tell", lambda *_: None)
    watch = Watch()
    assert "charged in silence" in str(
        wrong(failure(estimator(learn.PrivateLinearRegression).set_params(epsilon=1e308), watch), watch)
    )


def test_a_search_looks_at_every_candidate_and_every_row_before_it_pays():
    for place in (3, ROWS - 1):
        table = X.copy()
        table[place] = np.nan
        watch = Watch()
        assert isinstance(failure(estimator(learn.PrivateSearch), watch, table), DataError)
        assert watch.seen == []


def test_what_no_machine_has_room_for_is_refused_in_words():
    many = [f"c{place}" for place in range(100_000)]
    schema = Schema({"job": Categories(many)})
    table = {"job": many[:ROWS]}
    additive = learn.PrivateAdditiveClassifier(1.0, 1e-6, schema=schema)
    assert isinstance(failure(additive, Watch(), table), InputError)
    for model in (estimator(kind) for kind in (learn.PrivateLogisticRegression, learn.KernelMeanClassifier)):
        error = failure(model.set_params(classes=list(range(100_000))), Watch())
        assert isinstance(error, DataError)
        assert "100000 different labels" in str(error)
    for value in (10**9, 10**400):
        assert isinstance(
            failure(estimator(learn.KernelMomentClassifier).set_params(n_components=value), Watch()), InputError
        )
    assert isinstance(
        failure(estimator(learn.KernelMomentClassifier).set_params(n_components=10**6), Watch()), InputError
    )


@pytest.mark.parametrize("columns", [16_400, 40_000])
@pytest.mark.parametrize("rows", [5, 20_000])
def test_a_regression_refuses_more_products_than_there_is_room_for(rows, columns):
    """The table is small and its products are not; with few rows the mean would take all, with many it does not."""
    table = sparse.csr_array(([0.5], ([0], [1])), shape=(rows, columns))
    watch, target = Watch(), np.linspace(0, 1, rows)
    model = learn.PrivateLinearRegression(5.0, 1e-6, target=(0, 1))
    with pytest.raises(InputError, match="products of each two"):
        model.fit(table, target, ledger=watch, dataset="people")
    assert watch.seen == []


@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-6])
@pytest.mark.parametrize("epsilon", [1e-15, 1e-13, 1e-12, 1e-9])
def test_a_promise_too_small_for_its_noise_is_refused_first(epsilon, delta):
    for kind in KINDS:
        model = estimator(kind)
        given = {
            name: value for name, value in {"epsilon": epsilon, "delta": delta}.items() if name in model.get_params()
        }
        watch = Watch()
        assert wrong(failure(model.set_params(**given), watch), watch) is None


@pytest.mark.parametrize("kernel", ["rbf", "quadratic", "cubic"])
def test_a_distance_that_nothing_uses_is_not_bought(kernel):
    watch = Watch()
    error = failure(estimator(learn.PrivateSVC).set_params(kernel=kernel, gamma="spread"), watch)
    assert (error is None) == (kernel == "rbf") == (watch.seen != [])
    assert error is None or isinstance(error, InputError)


@pytest.mark.parametrize("norm", [3.0, None])
@pytest.mark.parametrize("gamma", ["scale", -1, 0, np.nan, 1e300, True, None, [], 10**400])
def test_a_bandwidth_that_is_none_is_refused_before_a_norm_is_bought(norm, gamma):
    watch = Watch()
    bought = {} if norm else {"spend_on_bounds": 0.3}
    error = failure(estimator(learn.PrivateSVC).set_params(kernel="rbf", norm=norm, gamma=gamma, **bought), watch)
    assert error is not None
    assert watch.seen == []


def test_two_columns_of_one_name_are_told():
    table = pd.DataFrame(X, columns=["age", "age"])
    for kind in (learn.PrivateLogisticRegression, learn.KernelMeanClassifier, learn.PrivateLinearRegression):
        error = failure(estimator(kind), Watch(), table)
        assert isinstance(error, DataError)
        assert "two columns of one name, 'age'" in str(error)
