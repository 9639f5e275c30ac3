"""What scikit-learn users do without thinking: scalers, cross-validation, grids, pipelines, ledgers."""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from sfumato.core import ApproxDP, Categories, GaussianDP, Interval, PureDP, Schema
from sfumato.errors import DataError, InputError, LedgerError, OverspendError, PrivacyParameterError
from sfumato.evidence import verify
from sfumato.learn import (
    KernelMeanClassifier,
    PrivacyLeakWarning,
    PrivateAdditiveRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePipeline,
    PrivateSearch,
    PrivateSVDD,
    SchemaEncoder,
    make_pipeline,
    uncovered,
)
from sfumato.learn.fitting import fitting
from sfumato.learn.lineage import Lineage, lineage_of
from sfumato.learn.steps import private_core
from sfumato.ledger import Ledger

X = np.random.default_rng(0).uniform(0, 3, (1200, 3))
Y = (X[:, 0] > X[:, 1]).astype(int)
SCHEMA = Schema({"age": Interval(0, 3), "job": Categories(["a", "b"], unknown="a")})
FRAME = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 1, "a", "b")})


def logistic(**options):
    return PrivateLogisticRegression(1.0, 1e-6, random_state=0, **options)


# Refits


def test_cross_validation_tells_what_all_folds_cost():
    model = logistic()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        cross_val_score(model, X, Y, cv=5)
    said = [str(word.message) for word in told if word.category is PrivacyLeakWarning]
    assert ["fit number 2" in said[0], "fit number 4" in said[1], "(4, 4e-06)-DP" in said[1]] == [True] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # told at 2, 4, 8, …
        assert model.fit(X, Y).guarantee_ == ApproxDP(6.0, 6e-6, adjacency=model.adjacency)
    assert verify(model.certificate_).ok


def test_a_bag_of_clones_says_what_its_sum_does_not_know():
    """With replacement somebody is many records of a fit, and a promise for one record is a weaker one for them."""
    with pytest.warns(PrivacyLeakWarning, match="make several records of one, which is not in the sum"):
        bag = BaggingClassifier(logistic(), n_estimators=2, random_state=0).fit(X, Y)
    assert np.bincount(bag.estimators_samples_[0]).max() > 1


def test_a_grid_search_by_scikit_learn_leaves_the_sum_in_the_guarantee():
    with pytest.warns(PrivacyLeakWarning, match="PrivateSearch"):
        search = GridSearchCV(logistic(), {"regularization": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert search.best_estimator_.guarantee_.under(None) == ApproxDP(7.0, 7e-6)


def test_pipelines_are_counted_by_their_last_step():
    pipeline = plain_pipeline(Normalizer(), logistic())
    with pytest.warns(PrivacyLeakWarning, match="fit number 2"):
        cross_val_score(pipeline, X, Y, cv=2)
    assert len(lineage_of(pipeline[-1]).spent) == 2


def test_a_clone_in_another_process_knows_how_many_were_made_before_it():
    from sklearn.base import clone

    model = logistic()
    clones = [clone(model) for _ in range(4)]
    sent = pickle.loads(pickle.dumps(clones[-1]))
    lineage_of(sent)._process = -1  # as seen from a worker
    with pytest.warns(PrivacyLeakWarning, match="fit number 4"):
        sent.fit(X, Y)
    assert sent.guarantee_.under(None) == ApproxDP(4.0, 4e-6)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, clone], ids=lambda one: one.__name__)
def test_copies_are_relatives_however_they_are_made(copied):
    model = logistic().fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="fit number 2"):
        other = copied(model).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    assert other.guarantee_.under(None) == ApproxDP(2.0, 2e-6)
    assert model.guarantee_.under(None) == ApproxDP(3.0, 3e-6)


def test_different_promises_do_not_add_up_silently():
    family = Lineage()
    family.add(PureDP(1.0))
    assert family.add(ApproxDP(0.5, 1e-6)) == ApproxDP(1.5, 1e-6)
    from sfumato.core import ADD_REMOVE, NoGuarantee

    assert isinstance(family.add(PureDP(1.0).under(ADD_REMOVE)), NoGuarantee)


# Scalers


@pytest.mark.parametrize(
    "scaler",
    [StandardScaler(), StandardScaler(with_std=False), MinMaxScaler(), MinMaxScaler((-1, 1)), PCA(2)],
    ids=["standard", "centred", "minmax", "minmax -1", "PCA"],
)
def test_a_fitted_scaler_is_noticed_inside_a_pipeline_and_outside(scaler):
    with pytest.warns(PrivacyLeakWarning, match="SchemaEncoder"):
        plain_pipeline(scaler, logistic(norm=5.0)).fit(X, Y)
    with pytest.warns(PrivacyLeakWarning, match="guess"):
        PrivateLinearRegression(1.0, 1e-6, random_state=0).fit(scaler.fit_transform(X), X[:, 0])


@pytest.mark.parametrize("additive", [False, True])
def test_a_fitted_scaler_of_the_target_is_noticed(additive):
    price = X @ [7.0, 1.0, 0.5] + 20
    model = PrivateLinearRegression(1.0, 1e-6, target=(-5, 5), norm=6.0, random_state=0)
    if additive:
        schema = Schema({name: Interval(0, 3) for name in "abc"})
        model = PrivateAdditiveRegressor(1.0, 1e-6, schema, target=(-5, 5), random_state=0)
    with pytest.warns(PrivacyLeakWarning, match="y is centred on its own mean"):
        TransformedTargetRegressor(model, transformer=StandardScaler(), check_inverse=False).fit(X, price)
    public = FunctionTransformer(lambda y: (y - 35) / 10, lambda y: 10 * y + 35)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        TransformedTargetRegressor(clone_of(model), transformer=public, check_inverse=False).fit(X, price)


def clone_of(model):
    """Another one, of a family of its own."""
    return type(model)(**model.get_params())


@pytest.mark.parametrize("rows", [20, 300, 5000])
def test_columns_scaled_by_public_numbers_are_not_accused(rows):
    """Uniform, normal, skewed, binary, centred by a public number, balanced designs: no warning in 200 tables."""
    from sfumato.learn.traces import scaled_by_itself

    for seed in range(200 if rows < 5000 else 20):
        draw = np.random.default_rng(seed)
        table = np.column_stack(
            [
                draw.uniform(-1, 1, rows),
                draw.normal(size=rows),
                draw.exponential(size=rows).clip(0, 1),
                draw.integers(0, 2, rows),
                np.tile([-1.0, 1.0], rows)[:rows],
                draw.integers(0, 101, rows) / 100 - 0.5,
            ]
        )
        assert not scaled_by_itself(table)
        assert scaled_by_itself(StandardScaler().fit_transform(table))


def test_the_guess_changes_nothing_that_is_published():
    """Two fits with one seed, warned of and not: the same guarantee, certificate events and words."""
    centred = StandardScaler().fit_transform(X) / 10
    moved = centred + 1e-9
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        one, other = logistic().fit(centred, Y), logistic().fit(moved, Y)
    assert len([word for word in told if word.category is PrivacyLeakWarning]) == 1
    assert one.guarantee_ == other.guarantee_
    assert one.certificate_.events == other.certificate_.events
    assert one.explain() == other.explain()
    assert "fitted scaler" in " ".join(one.not_covered_)


# Which steps are public


def test_what_is_not_covered_is_said_step_by_step():
    table = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age"]),
            ("words", OneHotEncoder(), ["job"]),
            ("typed", "passthrough", make_column_selector(dtype_include="number")),
        ]
    )
    found = uncovered(Pipeline([("table", table), ("model", logistic())]))
    assert len(found) == 3
    assert "'tablenumbers' is a StandardScaler" not in found[0]
    assert "'table/numbers' is a StandardScaler" in found[0]
    assert "categories=[…]" in found[1]
    assert "List the columns" in found[2]
    assert "promises nothing" in uncovered(plain_pipeline(Normalizer(), LogisticRegression()))[0]
    assert "GridSearchCV around PrivateLogisticRegression" in uncovered(GridSearchCV(logistic(), {}))[0]
    assert uncovered(logistic()) == []


PUBLIC = ColumnTransformer(
    [
        ("numbers", FunctionTransformer(lambda part: part / 3), ["age"]),
        ("words", OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore"), ["job"]),
    ]
)


def test_public_steps_are_let_through_and_certified(tmp_path):
    model = make_pipeline(PUBLIC, PolynomialFeatures(2, include_bias=False), logistic(norm=3.0)).fit(FRAME, Y)
    assert model.score(FRAME, Y) > 0.6
    assert verify(model.certificate_).ok
    assert any("your function" in word for word in model.not_covered_)
    assert "public" in model.explain()
    frozen = FrozenEstimator(StandardScaler().fit(X[:50]))
    union = FeatureUnion([("frozen", frozen), ("rows", Normalizer())])
    other = make_pipeline(union, logistic(norm=5.0)).fit(X[50:], Y[50:])
    assert any("your word" in word for word in other.not_covered_)
    encoded = make_pipeline(SchemaEncoder(SCHEMA), logistic(norm=3.0)).fit(FRAME, Y)
    assert encoded.predict(FRAME).shape == (1200,)


@pytest.mark.parametrize("step", [StandardScaler(), OneHotEncoder(), PCA(1), MinMaxScaler()], ids=repr)
def test_steps_that_learn_are_refused_before_anything(step):
    with pytest.raises(PrivacyParameterError, match=r"FrozenEstimator.*Nothing was drawn"):
        make_pipeline(step, logistic()).fit(X, Y)


def test_a_function_that_mixes_rows_is_refused():
    with pytest.raises(DataError, match="other rows come with it"):
        make_pipeline(FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), logistic()).fit(X, Y)
    with pytest.raises(DataError, match="more or fewer rows"):
        make_pipeline(FunctionTransformer(lambda rows: rows[rows[:, 0] > 1]), logistic()).fit(X, Y)


def test_a_step_that_quotes_a_cell_is_not_quoted():
    def careless(rows):
        raise ValueError(f"cannot read SECRET {rows[0, 0]}")

    with pytest.raises(DataError) as caught:
        make_pipeline(FunctionTransformer(careless), logistic()).fit(X, Y)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert "SECRET" not in str(chain)
        chain = chain.__cause__ or chain.__context__


def test_a_pipeline_is_a_pipeline():
    model = make_pipeline(Normalizer(), logistic())
    assert isinstance(model, PrivatePipeline)
    assert model.set_params(privatelogisticregression__epsilon=2.0).fit(X, Y).guarantee_.under(None).eps == 2.0
    nested = make_pipeline(FunctionTransformer(), make_pipeline(Normalizer(), logistic())).fit(X, Y)
    assert nested.predict(X).shape == (1200,)


# Search


@pytest.mark.parametrize("scheme", ["split", "random_stopping"])
@pytest.mark.parametrize("make", [plain_pipeline, make_pipeline], ids=["scikit-learn's", "ours"])
@pytest.mark.by_day(1)
def test_a_pipeline_is_searched_within_one_budget(scheme, make):
    pipeline = make(PUBLIC, PolynomialFeatures(2), logistic(norm=3.0))
    grid = {"privatelogisticregression__regularization": [0.01], "polynomialfeatures__degree": [1, 2]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        search = PrivateSearch(pipeline, grid, 6.0, 1e-6, scheme, expected_runs=3, random_state=0).fit(FRAME, Y)
    assert search.guarantee_.under(None) == ApproxDP(6.0, 1e-6)
    assert search.predict(FRAME).shape == (1200,)
    if scheme == "split":
        assert verify(search.certificate_).ok
        with pytest.warns(PrivacyLeakWarning):  # a second search is a second cost
            search.fit(FRAME, Y)
        assert search.guarantee_.under(None) == ApproxDP(12.0, 2e-6)


def test_a_search_refuses_what_no_budget_covers():
    grid = {"privatelogisticregression__regularization": [0.001, 1.0]}
    with pytest.raises(PrivacyParameterError, match="StandardScaler, which learns"):
        PrivateSearch(plain_pipeline(StandardScaler(), logistic()), grid, 1.0).fit(X, Y)
    swapped = {"normalizer": [Normalizer(), StandardScaler()]}
    with pytest.raises(PrivacyParameterError, match="StandardScaler, which learns"):
        PrivateSearch(plain_pipeline(Normalizer(), logistic()), swapped, 1.0).fit(X, Y)
    with pytest.raises(PrivacyParameterError, match="epsilon is not searched"):
        PrivateSearch(
            plain_pipeline(Normalizer(), logistic()), {"privatelogisticregression__epsilon": [1, 2]}, 1.0
        ).fit(X, Y)
    with pytest.raises(InputError, match="begin with privatelogisticregression__"):
        PrivateSearch(plain_pipeline(Normalizer(), logistic()), {"regularization": [1]}, 1.0).fit(X, Y)
    with pytest.raises(PrivacyParameterError, match="promises nothing"):
        PrivateSearch(LogisticRegression(), {"C": [1.0]}, 1.0).fit(X, Y)
    with pytest.raises(PrivacyParameterError, match="GridSearchCV around"):
        PrivateSearch(GridSearchCV(logistic(), {}), {}, 1.0).fit(X, Y)


# Ledger


def test_fits_are_charged_until_the_grant_is_gone(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("survey", ApproxDP(2.5, 1e-5))
    for number in range(2):
        logistic().fit(X, Y, ledger=ledger, dataset="survey")
        assert ledger.balance("survey").spent.under(None).eps == pytest.approx(number + 1, abs=1e-6)
    refused = logistic()
    with pytest.raises(OverspendError):
        refused.fit(X, Y, ledger=ledger, dataset="survey")
    assert not [name for name in vars(refused) if name.endswith("_") and not name.startswith("_")]
    assert not ledger.open_reservations("survey")
    with pytest.raises(InputError, match="belong together"):
        logistic().fit(X, Y, ledger=ledger)


def test_gaussian_acts_are_charged_in_a_gaussian_account(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("survey", GaussianDP(1.0))
    model = KernelMeanClassifier(1.0, 1e-6, box=(0, 3), n_components=20, random_state=0)
    model.fit(X, Y, ledger=ledger, dataset="survey")
    assert ledger.balance("survey").spent.under(None).mu < 0.5
    assert ledger.history("survey")[-1].action == "commit"


def test_pipelines_and_searches_are_charged_once(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("survey", ApproxDP(10.0, 1e-5))
    make_pipeline(Normalizer(), logistic()).fit(X, Y, ledger=ledger, dataset="survey")
    search = PrivateSearch(logistic(), {"regularization": [0.01, 1.0]}, 3.0, 1e-6, random_state=0)
    search.fit(X, Y, ledger=ledger, dataset="survey")
    assert ledger.balance("survey").spent.under(None).eps == pytest.approx(4.0, abs=1e-6)
    plain_pipeline(Normalizer(), logistic()).fit(
        X, Y, privatelogisticregression__ledger=ledger, privatelogisticregression__dataset="survey"
    )
    assert ledger.balance("survey").spent.under(None).eps == pytest.approx(5.0, abs=1e-6)


def test_a_fit_by_parts_is_charged_too(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    from sfumato.run.engine.fit import fit_table

    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": Y}), tmp_path / "0.parquet")
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("survey", ApproxDP(1.5, 1e-5))
    fit_table(logistic(classes=[0, 1]), tmp_path / "0.parquet", "y", ledger=ledger, dataset="survey")
    with pytest.raises(OverspendError):
        fit_table(logistic(classes=[0, 1]), tmp_path / "0.parquet", "y", ledger=ledger, dataset="survey")


def doors(pipeline: type) -> list[str]:
    """Every way into a fit that a pipeline has."""
    return sorted(name for name in dir(pipeline) if name.startswith("fit"))


@pytest.mark.parametrize("door", doors(PrivatePipeline))
def test_no_way_into_a_pipeline_lets_a_step_learn_unpaid(door):
    scaler = StandardScaler()
    steps = scaler, Normalizer() if door == "fit_transform" else PrivateSVDD(1.0, 1e-6, n_components=10)
    with pytest.raises(PrivacyParameterError, match="'standardscaler' is a StandardScaler, which learns"):
        getattr(make_pipeline(*steps), door)(X)
    assert not hasattr(scaler, "mean_")


def test_the_other_ways_into_a_pipeline_do_what_they_say():
    model = make_pipeline(Normalizer(), PrivateSVDD(1.0, 1e-6, n_components=10, random_state=0))
    assert (model.fit_predict(X) == model.predict(X)).all()
    assert (model[:-1].fit_transform(X) == Normalizer().fit_transform(X)).all()
    assert doors(PrivatePipeline) == ["fit", "fit_predict", "fit_transform"]  # a new one wants to be looked at


@pytest.mark.parametrize("inner", [lambda last: last, lambda last: make_pipeline(Normalizer(), last)])
def test_a_ledger_handed_to_the_last_step_is_charged(inner, tmp_path):
    """scikit-learn writes parameters of a step's fit with its name before them."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant("survey", ApproxDP(1.5, 1e-5))
    prefix = private_core(make_pipeline(Normalizer(), inner(logistic())))[1]
    handed = {f"{prefix}ledger": ledger, f"{prefix}dataset": "survey"}
    for again in (False, True):
        model = make_pipeline(Normalizer(), inner(logistic()))
        with pytest.raises(OverspendError) if again else contextlib.nullcontext():
            model.fit(X, Y, **handed)
        assert hasattr(model, "guarantee_") is not again
    with pytest.raises(InputError, match="given twice"):
        make_pipeline(Normalizer(), inner(logistic())).fit(X, Y, ledger=ledger, dataset="survey", **handed)
    with pytest.raises(InputError, match="belong together"):
        make_pipeline(Normalizer(), inner(logistic())).fit(X, Y, **{f"{prefix}ledger": ledger})


def test_a_ledger_inside_another_fit_is_not_lost(tmp_path):
    model = logistic()
    with pytest.raises(InputError, match="the fit around it"), fitting(model):
        model.fit(X, Y, ledger=Ledger(tmp_path / "ledger.db"), dataset="survey")


def test_rows_under_another_name_are_not_told_to_be_granted_a_budget(tmp_path):
    """That grant would be refused for these rows: the name they have comes first."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(200, 2)), np.arange(200) % 2
    book = Ledger(tmp_path / "book.db")
    book.grant("visits", ApproxDP(1.0, 1e-6))
    PrivateLogisticRegression(0.1, 1e-6, norm=1.0).fit(X, y, ledger=book, dataset="visits")
    with pytest.raises(LedgerError, match="under the name 'visits'") as refused:
        PrivateLogisticRegression(0.1, 1e-6, norm=1.0).fit(X, y, ledger=book, dataset="other")
    assert "ledger grant" not in str(refused.value)
