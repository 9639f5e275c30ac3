"""The estimators as scikit-learn knows them, and the laws they promise."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from sfumato.core import ADD_REMOVE, Categories, Interval, PureDP, Schema
from sfumato.core.guarantee import ApproxDP
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError, SfumatoError
from sfumato.evidence import Certificate, verify
from sfumato.learn import (
    NothingLearnedWarning,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSVC,
    SchemaEncoder,
    sample_size,
)
from sfumato.learn.rows import UnitRows

EXPECTED = {
    "check_parameters_default_constructible": "the default adjacency is an Adjacency, which says who is protected",
}
SCHEMA = Schema({"age": Interval(0, 100), "job": Categories(["a", "b", "c"]), "dose": Interval(-1, 1)})


def data(rows=2000, columns=3, classes=2, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-0.5, 0.5, (rows, columns))
    if classes == 2:
        return X, (X[:, 0] - 0.5 * X[:, 1] > 0).astype(int)
    return X, np.argmax(X[:, :classes], axis=1)


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateLogisticRegression(1e3, random_state=0),
        PrivateLogisticRegression(1e3, 1e-6, method="output", random_state=0),
        PrivateSVC(1e3, 1e-6, random_state=0),
        PrivateSVC(1e3, kernel="rbf", loss="smoothed_hinge", n_components=20, random_state=0),
        PrivateLinearRegression(1e3, 1e-6, target=(-300, 300), random_state=0),
    ],
    ids=["logistic", "output", "huber", "rbf", "ridge"],
)
@pytest.mark.by_day(1)
def test_scikit_learn_finds_nothing_to_complain_about(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(estimator, expected_failed_checks=EXPECTED)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("method", ["objective", "output"])
def test_much_budget_learns_and_little_does_not(method, delta):
    """Accuracy is near perfect at ε = 50 and the guarantee is what was asked for."""
    X, y = data()
    model = PrivateLogisticRegression(50.0, delta, method, random_state=1).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.guarantee_ == (ApproxDP(50.0, delta) if delta else PureDP(50.0)).under(model.adjacency)
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert model.regularization_ > 0
    assert "replacing one record" in model.explain()


def test_scores_are_linear_inside_the_norm():
    X, y = data()
    model = PrivateLogisticRegression(5.0, 1e-6, random_state=1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_, atol=1e-9)
    far = X * 100
    assert not np.allclose(model.decision_function(far), far @ model.coef_[0] + model.intercept_)


def test_without_noise_it_is_ridge_logistic_regression():
    """As ε grows the solution is scikit-learn's, in the same parametrisation."""
    from sklearn.linear_model import LogisticRegression

    X, y = data(500)
    ours = PrivateLogisticRegression(1e7, regularization=0.01, fit_intercept=False, random_state=0).fit(X, y)
    theirs = LogisticRegression(C=1 / (0.01 * 500), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_several_classes_share_the_budget(delta):
    X, y = data(3000, 4, 3)
    model = PrivateLogisticRegression(60.0, delta, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.coef_.shape == (3, 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert "3 classes were trained together" in model.explain()


def test_the_law_ignores_row_order_dtype_and_container():
    """With the same seed the published coefficients agree to the solver's tolerance."""
    X, y = data(600)
    X = np.round(X, 2).astype(np.float32)
    make = lambda: PrivateLogisticRegression(1.0, 1e-6, random_state=3)  # noqa: E731
    expected = make().fit(X.astype(float), y).coef_
    order = np.random.default_rng(0).permutation(600)
    variants = [
        (X[order], y[order]),
        (X, y.astype(bool)),
        (np.asfortranarray(X), y),
        (sparse.csr_array(X), y),
        (sparse.csc_matrix(X), y),
        (pd.DataFrame(X, columns=list("abc")), pd.Series(y)),
        (pl.DataFrame(X, schema=["a", "b", "c"]), pl.Series(y)),
        (X.tolist(), y.tolist()),
    ]
    for rows, labels in variants:
        np.testing.assert_allclose(make().fit(rows, labels).coef_, expected, atol=2e-5)


def test_other_units_with_their_norm_are_the_same_model():
    X, y = data(600)
    one = PrivateLogisticRegression(1.0, 1e-6, random_state=3).fit(X, y)
    ten = PrivateLogisticRegression(1.0, 1e-6, norm=10.0, random_state=3).fit(X * 10, y)
    np.testing.assert_allclose(one.coef_, ten.coef_ * 10, rtol=1e-6, atol=1e-5)


def frame(rows=1500, seed=0):
    generator = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": generator.uniform(0, 100, rows),
            "job": generator.choice(["a", "b", "c"], rows),
            "dose": generator.uniform(-1, 1, rows),
        }
    )
    return table, ((table.age > 50) ^ (table.job == "a")).to_numpy()


@pytest.mark.parametrize("convert", [lambda t: t, pl.from_pandas], ids=["pandas", "polars"])
def test_tables_and_pipelines(convert):
    table, y = frame()
    inside = PrivateLogisticRegression(20.0, 1e-6, schema=SCHEMA, random_state=0).fit(convert(table), y)
    piped = make_pipeline(SchemaEncoder(SCHEMA), PrivateSVC(20.0, 1e-6, random_state=0)).fit(convert(table), y)
    for model in (inside, piped):
        assert model.score(convert(table), y) > 0.7
    assert inside.intercept_[0] == 0  # the one-hot columns carry it
    assert inside.n_features_in_ == SCHEMA.width
    assert list(SchemaEncoder(SCHEMA).fit().get_feature_names_out())[:2] == ["age", "job=a"]


def test_wide_one_hot_tables_take_laplace_noise():
    """At pure ε sparse rows are hidden by Laplace noise, which is shorter there."""
    wide = Schema({"city": Categories([f"c{i}" for i in range(40)]), "age": Interval(0, 100)})
    generator = np.random.default_rng(0)
    table = {"city": [f"c{i}" for i in generator.integers(40, size=500)], "age": generator.uniform(0, 100, 500)}
    model = PrivateLogisticRegression(5.0, schema=wide, random_state=0).fit(table, np.asarray(table["age"]) > 50)
    assert model.plan_.budget.law == "laplace"
    assert model.plan_.events[0].slope == pytest.approx(np.sqrt(2))


@given(
    arrays.arrays(np.float64, (4, 3), elements=st.floats(-1e150, 1e150)),
    st.floats(1e-6, 1e6),
    st.sampled_from([0.0, 0.2]),
    st.booleans(),
    st.sampled_from([None, 2]),
)
@settings(max_examples=300, deadline=None)
def test_no_row_leaves_the_unit_ball(matrix, norm, constant, stretch, nonzeros):
    rows = UnitRows(matrix, norm, constant, stretch=stretch, nonzeros=nonzeros)
    seen = np.stack([rows.times(axis) for axis in np.eye(rows.width)], axis=1).astype(np.longdouble)
    assert (np.sqrt((seen**2).sum(axis=1)) <= 1).all()
    if nonzeros:
        assert (np.abs(seen).sum(axis=1) <= np.sqrt(np.longdouble(nonzeros))).all()


def test_add_remove_needs_a_public_size():
    X, y = data(300)
    with pytest.raises(PrivacyParameterError, match="public_size"):
        PrivateLogisticRegression(1.0, adjacency=ADD_REMOVE).fit(X, y)
    make = lambda: PrivateLogisticRegression(  # noqa: E731
        9.0, 1e-6, adjacency=ADD_REMOVE, public_size=300, random_state=0
    )
    assert make().fit(X, y).regularization_ == make().fit(X[:200], y[:200]).regularization_


BAD = [
    (lambda X, y: PrivateLogisticRegression(1.0).fit(X, np.zeros(len(y))), DataError, "one class"),
    (
        lambda X, y: PrivateLogisticRegression(1.0, classes=[0, 1]).fit(X, y + (X[:, 0] > 0.4)),
        DataError,
        "not among the 2 declared",
    ),
    (lambda X, y: PrivateLogisticRegression(1.0).fit(np.where(X > 0.4, np.nan, X), y), DataError, "NaN"),
    (lambda X, y: PrivateLogisticRegression(1.0, norm=0.0).fit(X, y), PrivacyParameterError, "norm"),
    (lambda X, y: PrivateLogisticRegression(1.0, norm=-2).fit(X, y), PrivacyParameterError, "norm"),
    (lambda X, y: PrivateLogisticRegression(1.0, norm=None).fit(X, y), SchemaError, "spend_on_bounds"),
    (lambda X, y: PrivateLogisticRegression(1.0).fit(X, y, sample_weight=np.ones(len(y))), DataError, "sample_weight"),
    (lambda X, y: PrivateLogisticRegression(0.0).fit(X, y), PrivacyParameterError, "epsilon"),
    (lambda X, y: PrivateLogisticRegression(1.0, 1.5).fit(X, y), PrivacyParameterError, "delta"),
    (lambda X, y: PrivateLogisticRegression(1.0, regularization=-1).fit(X, y), PrivacyParameterError, "regularization"),
    (lambda X, y: PrivateLogisticRegression(1.0, method="magic").fit(X, y), PrivacyParameterError, "method"),
    (lambda X, y: PrivateLogisticRegression(1.0).fit(X, y[:-1]), DataError, "labels"),
    (lambda X, y: PrivateLogisticRegression(1.0).fit(X, X[:, 0]), DataError, "continuous"),
    (lambda X, y: PrivateSVC(1.0, kernel="septic").fit(X, y), InputError, "kernel"),
    (lambda X, y: PrivateSVC(1.0, h=0).fit(X, y), PrivacyParameterError, "h"),
    (lambda X, y: PrivateLinearRegression(1.0, target=None).fit(X, y), SchemaError, "target"),
    (lambda X, y: PrivateLinearRegression(1.0, target=(1, 1)).fit(X, y), SchemaError, "target"),
]


@pytest.mark.parametrize(("action", "error", "word"), BAD, ids=[item[2] + str(at) for at, item in enumerate(BAD)])
def test_bad_input_is_refused_with_nothing_spent(action, error, word):
    with pytest.raises(error, match=word) as caught:
        action(*data(100))
    assert isinstance(caught.value, SfumatoError)
    assert "Nothing was spent" in str(caught.value)


def test_a_declared_class_may_be_absent():
    X, _ = data(100)
    model = PrivateLogisticRegression(5.0, classes=["no", "yes"], random_state=0).fit(X, np.full(100, "no"))
    assert list(model.classes_) == ["no", "yes"]


def test_a_hopeless_budget_warns_before_spending():
    X, y = data(50)
    with pytest.warns(NothingLearnedWarning, match="nothing is spent yet"):
        PrivateLogisticRegression(0.01, random_state=0).fit(X, y)


def test_a_norm_can_be_bought():
    X, y = data(4000)
    model = PrivateLogisticRegression(2.0, 1e-6, norm=None, spend_on_bounds=0.2, random_state=0).fit(X * 37, y)
    assert 5 < model.bounds_.norm < 60
    assert model.plan_.budget.epsilon == pytest.approx(1.8)
    with pytest.raises(PrivacyParameterError, match="leaves nothing"):
        PrivateLogisticRegression(0.1, norm=None, spend_on_bounds=0.2).fit(X, y)


def test_ridge_regression_and_its_sensitivity():
    """√4.5 is the largest distance of two records' statistics, and is attained."""
    generator = np.random.default_rng(0)

    def statistics(x, y):
        return np.concatenate([np.outer(x, x).ravel(), y * x])

    x = generator.standard_normal((4000, 2, 2))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    distances = [np.linalg.norm(statistics(a, s) - statistics(b, -s)) for (a, b) in x for s in (1.0,)]
    assert max(distances) <= np.sqrt(4.5) + 1e-12
    assert max(distances) > np.sqrt(4.5) - 1e-4
    X = generator.uniform(-0.5, 0.5, (5000, 3))
    target = 3 + X @ [1.0, 2.0, -1.0]
    model = PrivateLinearRegression(5.0, 1e-6, target=(0, 6), random_state=0).fit(X, target)
    assert model.score(X, target) > 0.8
    assert model.noise_.sensitivity >= np.sqrt(4.5)


@pytest.mark.paper("003", "§5", "learn/features.py")
def test_fourier_features_have_norm_one():
    X, y = data(50)
    model = PrivateSVC(100.0, kernel="rbf", n_components=7, random_state=0).fit(X, y)
    norms = np.linalg.norm(model.features_(X * 100), axis=1)
    np.testing.assert_allclose(norms, 1.0, atol=1e-12)
    assert model.coef_.shape == (1, 8)


@pytest.mark.paper("003", "Thm 3, 4", "learn/sample_size.py")
def test_more_features_and_less_budget_need_more_records():
    base = sample_size(0.1, 1.0, 1e-6, features=10)
    assert sample_size(0.1, 0.1, 1e-6, features=10) > base
    assert sample_size(0.1, 1.0, 1e-6, features=100) > base
    assert sample_size(0.2, 1.0, features=3, length=3.0, simulate=True, trials=2) >= 64


@pytest.mark.paper("003", "Alg 2", "learn/base.py")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("method", ["objective", "output"])
def test_certificates_verify(method, delta):
    X, y = data(3000, 4, 3)
    for labels in (y, y == 0):
        model = PrivateLogisticRegression(3.0, delta, method, random_state=0).fit(X, labels)
        certificate = model.certificate_
        assert not certificate.publishable
        assert verify(Certificate.from_json(certificate.to_json())).ok


def test_hardly_regularised_problems_end_without_an_error():
    """A factorisation that fails for some data and not for other data would be an output that depends on the data."""
    generator = np.random.default_rng(0)
    base = generator.normal(size=(400, 3)) / 3
    X = np.hstack([base, base[:, :1], base[:, 1:2]])  # collinear columns
    y = (base[:, 0] > 0).astype(int)
    with warnings.catch_warnings(action="ignore"):
        model = PrivateLogisticRegression(1.0, method="output", regularization=1e-9, random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
