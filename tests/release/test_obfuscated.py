"""Noise the support vector machine cannot see: it is the exact null space, it keeps the classifier, and it leaks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.linalg import null_space
from sklearn.datasets import load_breast_cancer

from sfumato.core import Categories, Interval, NoGuarantee, Schema
from sfumato.errors import DataError, PrivacyParameterError, SchemaError
from sfumato.evidence import verify
from sfumato.mechanisms.bits import Bits
from sfumato.release.obfuscated import ObfuscatedRelease
from sfumato.release.projector import NoiseStream, plain_noise, project
from sfumato.release.svm import RegularisedSVM

SCHEMA = Schema(
    {
        "age": Interval(0, 100),
        "income": Interval(0, 2e5, null=0),
        "dose": Interval(-5, 5),
        "ill": Categories(["no", "yes"]),
    }
)


def people(rows=120, seed=0):
    random = np.random.default_rng(seed)
    age, income, dose = random.uniform(20, 90, rows), random.uniform(1e4, 9e4, rows), random.normal(size=rows)
    ill = np.where(age / 20 + dose + random.normal(size=rows) > 3, "yes", "no")
    return {"age": age, "income": income, "dose": dose, "ill": ill}


def publisher(**changes):
    options = {"label": "ill", "variance": 100.0, "rho": 1e-2, "theta": 1.0, "accept_no_dp": True, **changes}
    return ObfuscatedRelease(options.pop("schema", SCHEMA), **options)


def matrix(table):
    return np.column_stack([table[name] for name in ("age", "income", "dose")])


def signs(table):
    return np.where(np.asarray(table["ill"]) == "yes", 1.0, -1.0)


def null_space_projector(weights, alpha):
    """Onto {w: Ω w = 0}, rows of W one after the other, from scipy's basis; Ω as in Prop. 2.9 with ω for its λ."""
    omega = [np.kron(weights, np.eye(len(alpha))), np.kron(np.eye(len(weights)), alpha)]
    basis = null_space(np.vstack(omega))
    return basis @ basis.T, basis.shape[1]


def vectors(rows, columns, seed, flat=False):
    random = np.random.default_rng(seed)
    weights = random.normal(size=rows) * (random.random(rows) < 0.7)
    weights[0] = 1.0
    return weights, np.zeros(columns) if flat else random.normal(size=columns)


@pytest.mark.parametrize("flat", [False, True], ids=["", "alpha=0"])
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 3), (9, 4), (4, 7)])
def test_the_projector_is_the_one_of_the_null_space(rows, columns, flat):
    weights, alpha = vectors(rows, columns, seed=rows, flat=flat)
    reference, dimension = null_space_projector(weights, alpha)
    units = np.eye(rows * columns).reshape(-1, rows, columns)
    ours = np.array([project(unit, weights, alpha).ravel() for unit in units])
    assert dimension == (rows - 1) * (columns if flat else columns - 1)
    assert np.abs(ours - reference).max() <= 1e-12
    assert round(np.trace(ours)) == dimension


@pytest.mark.parametrize("cuts", [(), (1,), (3, 4), (2, 5, 8), tuple(range(1, 9))], ids=str)
@pytest.mark.parametrize("flat", [False, True], ids=["", "alpha=0"])
def test_the_stream_has_the_same_law_in_one_pass(cuts, flat):
    """As a linear map L of white noise the stream satisfies L Lᵀ = projector: the covariance is exactly that."""
    weights, alpha = vectors(9, 4, seed=3, flat=flat)
    weights[6:8] = 0.0  # a block whose records are no support vectors
    columns = []
    for unit in np.eye(36).reshape(-1, 9, 4):
        stream = NoiseStream(weights, alpha, 1.0, Bits(seed=0))
        columns.append(np.vstack([stream.shape(np.array(part)) for part in np.split(unit, cuts)]).ravel())
    linear = np.array(columns).T
    assert np.abs(linear @ linear.T - null_space_projector(weights, alpha)[0]).max() <= 1e-12


@pytest.mark.parametrize("variance", [1e-6, 1.0, 1e8])
def test_nothing_is_left_along_the_margins_but_rounding(variance):
    weights, alpha = vectors(20_000, 30, seed=4)
    stream = NoiseStream(weights, alpha, variance, Bits(seed=1))
    noise = np.vstack([stream.take(size) for size in (7_000, 1, 12_000, 999)])
    deviation = np.sqrt(variance)
    assert np.abs(weights @ noise).max() <= 1e-15 * np.linalg.norm(weights) * deviation * 10
    assert np.abs(noise @ alpha).max() <= 1e-14 * np.linalg.norm(alpha) * deviation
    assert abs(noise.std() / deviation / np.sqrt(29 / 30) - 1) < 0.01


def test_the_stream_ends_with_its_rows():
    stream = NoiseStream(np.ones(3), np.ones(2), 1.0, Bits(seed=1))
    stream.take(3)
    with pytest.raises(DataError, match="one row for each weight"):
        stream.take(1)


def test_plain_noise_has_its_variance():
    noise = plain_noise(5_000, 20, 3.0, Bits(seed=1))
    assert abs(noise.std() / 3 - 1) < 0.02
    assert abs(noise.mean()) < 0.05


@pytest.mark.paper("000", "Thm 2.10", "release/obfuscated.py")
@pytest.mark.parametrize("variance", [1e-2, 1.0, 100.0, 1e4])
@pytest.mark.parametrize(("rho", "theta"), [(1e-3, 1.0), (1.0, 0.05), (10.0, 10.0)])
def test_retraining_returns_the_same_classifier(variance, rho, theta):
    table = people()
    out = publisher(variance=variance, rho=rho, theta=theta).release(table)
    private = RegularisedSVM(rho, theta).fit(matrix(table), signs(table))
    public = RegularisedSVM(rho, theta).fit(matrix(out.table), signs(out.table))
    assert np.abs(public.alpha_ - private.alpha_).max() <= 1e-8
    assert abs(public.beta_ - private.beta_) <= 1e-8
    assert np.abs(public.xi_ - private.xi_).max() <= 1e-8
    assert np.abs(matrix(out.table) - matrix(table)).std() > 0.3 * np.sqrt(variance)


def test_retraining_in_raw_units_of_breast_cancer():
    cancer = load_breast_cancer()
    names = [f"f{number}" for number in range(30)]
    limits = {name: Interval(0, 1e4) for name in names}
    schema = Schema({**limits, "benign": Categories([0, 1])})
    table = pd.DataFrame(cancer.data, columns=names).assign(benign=cancer.target)
    out = publisher(schema=schema, label="benign", rho=1e-3, theta=1.0).release(table)
    labels = 2.0 * cancer.target - 1
    private, public = (RegularisedSVM(1e-3, 1.0).fit(frame[names], labels) for frame in (table, out.table))
    assert np.abs(public.alpha_ - private.alpha_).max() <= 1e-8
    assert abs(public.beta_ - private.beta_) <= 1e-8
    assert np.abs(public.xi_ - private.xi_).max() <= 1e-8


def test_rounding_error_of_a_flat_classifier_is_no_direction():
    """α is 0 in theory and 1e-17 on most processors, in a direction of its own on each."""
    for dust in (0.0, 1e-17, -1e-18):
        alpha = np.array([dust, 3 * dust, -dust])
        assert np.array_equal(publisher().direction(alpha), np.zeros(3))
    small = np.array([1e-6, 0.0, 0.0])
    assert np.array_equal(publisher().direction(small), small)


def test_contradicting_records_keep_their_flat_classifier():
    """α = 0: the right factor is dropped and retraining still finds α = 0."""
    table = {"age": [50.0] * 4, "income": [1e4] * 4, "dose": [1.0] * 4, "ill": ["yes", "no", "yes", "no"]}
    out = publisher().release(table)
    public = RegularisedSVM(1e-2, 1.0).fit(matrix(out.table), signs(out.table))
    assert np.abs(public.alpha_).max() <= 1e-8
    assert np.allclose(out.noise.covariance, 100.0 * np.eye(3), rtol=1e-12, atol=0)


def test_it_leaks_every_margin():
    table = people()
    out = publisher().release(table)
    alpha = RegularisedSVM(1e-2, 1.0).fit(matrix(out.table), signs(out.table)).alpha_
    assert np.abs((matrix(out.table) - matrix(table)) @ alpha).max() <= 1e-9


def test_it_leaks_support_vectors_to_whoever_knows_the_others():
    """x_i = (α - Σ_{j≠i} ω_j y_j x_j)/(ω_i y_i), with α and ω learned from the published table alone."""
    rows = {name: column[:40] for name, column in people().items()}
    scaled = {**rows, "income": rows["income"] / 1e4}
    out = publisher(variance=1e4, rho=0.1).release(scaled)
    labels, truth = signs(out.table), matrix(scaled)
    learned = RegularisedSVM(0.1, 1.0).fit(matrix(out.table), labels)
    weights = learned.omega_ * labels
    victims = np.flatnonzero(learned.omega_ > 1e-3)
    assert len(victims) >= 3
    for victim in victims:
        others = np.delete(np.arange(len(labels)), victim)
        recovered = (learned.alpha_ - weights[others] @ truth[others]) / weights[victim]
        assert np.abs(recovered - truth[victim]).max() <= 1e-6
        assert np.abs(matrix(out.table)[victim] - truth[victim]).max() > 1


def test_without_consent_it_refuses_and_says_what_leaks():
    for consent in (False, None, 1):
        with pytest.raises(PrivacyParameterError, match="margin") as refusal:
            publisher(accept_no_dp=consent)
        for word in ("exactly", "labels", "support vector", "α, β", "ω", "No (ε, δ)", "GaussianRelease"):
            assert word in str(refusal.value)


def test_the_release_says_that_nothing_is_guaranteed():
    out = publisher().release(people())
    assert isinstance(out.guarantee, NoGuarantee)
    assert isinstance(out.certificate.guarantee, NoGuarantee)
    assert out.certificate.publishable
    assert verify(out.certificate)
    assert out.attacker == {}
    assert "returns the same classifier" in str(out)
    assert "margin" in str(out)
    assert not publisher(random_state=1).release(people()).certificate.publishable


def test_the_noise_law_is_an_upper_bound_of_each_rows_covariance():
    table = people(30)
    out = publisher(variance=4.0).release(table)
    alpha = RegularisedSVM(1e-2, 1.0).fit(matrix(table), signs(table)).alpha_
    assert out.noise.columns == ("age", "income", "dose")
    assert np.abs(out.noise.covariance @ alpha).max() <= 1e-12
    assert np.isclose(np.trace(out.noise.covariance), 8.0)
    assert [law.variance() for law in out.noise.laws] == pytest.approx(np.diag(out.noise.covariance), abs=1e-12)


@pytest.mark.parametrize(
    "kind", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=["dict", "pandas", "polars", "arrow"]
)
def test_the_table_comes_back_as_it_came(kind):
    table = people()
    given = kind({name: table[name] for name in ("ill", "dose", "age", "income")})
    published = publisher().release(given).table
    assert type(published) is type(given)
    names = published.column_names if isinstance(published, pa.Table) else [*getattr(published, "columns", published)]
    assert names == ["ill", "dose", "age", "income"]
    assert list(np.asarray(published["ill"])) == list(table["ill"])


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Categories([-1, 1]), [-1, 1]),
        (Categories([1, -1]), [-1, 1]),
        (Interval(-1, 1), [-1.0, 1.0]),
        (Categories([False, True]), [False, True]),
    ],
    ids=str,
)
def test_labels_of_every_kind(domain, values):
    table = people()
    labels = np.where(table["ill"] == "yes", values[1], values[0])
    schema = Schema({**SCHEMA.columns, "ill": domain})
    out = publisher(schema=schema, random_state=3).release({**table, "ill": labels})
    plain = publisher(random_state=3).release(table)
    assert list(out.table["ill"]) == list(labels)
    assert np.array_equal(matrix(out.table), matrix(plain.table))


def test_a_random_state_repeats_itself_and_no_other():
    table = people(20)
    first, second, other = (publisher(random_state=state).release(table) for state in (1, 1, None))
    assert np.array_equal(matrix(first.table), matrix(second.table))
    assert not np.array_equal(matrix(first.table), matrix(other.table))


def test_values_are_clipped_to_the_public_box_and_missing_ones_put_in_place():
    table = people(40)
    table["age"][0], table["income"][1] = 500.0, np.nan
    inside = {**table, "age": np.clip(table["age"], 0, 100), "income": np.nan_to_num(table["income"])}
    out, same = (publisher(random_state=5).release(rows) for rows in (table, inside))
    assert np.array_equal(matrix(out.table), matrix(same.table))


BAD_SCHEMAS = {
    "not a declared column": {"label": "illl"},
    "exactly two": {"schema": Schema({**SCHEMA.columns, "ill": Categories(["a", "b", "c"])})},
    "is an interval": {"label": "age"},
    "Categorical columns": {"schema": Schema({**SCHEMA.columns, "sex": Categories(["f", "m"])})},
    "fewer than two features": {"schema": SCHEMA.select(["age", "ill"])},
    "needs a Schema": {"schema": {"age": Interval(0, 1)}},
}


@pytest.mark.parametrize("reason", BAD_SCHEMAS)
def test_schemas_that_cannot_work_are_refused(reason):
    with pytest.raises(SchemaError, match=reason):
        publisher(**BAD_SCHEMAS[reason])


@pytest.mark.parametrize("name", ["variance", "rho", "theta"])
def test_parameters_must_be_positive(name):
    with pytest.raises(PrivacyParameterError, match=name):
        publisher(**{name: 0.0})


def test_tables_that_cannot_work_are_refused():
    table = people(20)
    with pytest.raises(DataError, match="two classes"):
        publisher().release({**table, "ill": ["yes"] * 20})
    with pytest.raises(DataError, match="type string"):
        publisher().release({**table, "age": np.full(20, "old")})
    with pytest.raises(SchemaError, match="lacks"):
        publisher().release({name: table[name] for name in ("age", "income", "ill")})
    with pytest.raises(DataError, match="-1 and 1"):
        publisher(schema=Schema({**SCHEMA.columns, "ill": Interval(-1, 1)})).release({**table, "ill": np.zeros(20)})
