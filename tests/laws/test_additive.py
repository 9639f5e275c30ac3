"""Additive models: rows have norm 1 whatever the schema and the cells, and the score is the sum of what is shown.

Scores are derived again from the shapes by plain Python, cell by cell.
"""

from __future__ import annotations

import bisect
import random
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, Categories, Interval, Schema
from sfumato.evidence import verify
from sfumato.learn import PrivateAdditiveClassifier, PrivateAdditiveRegressor, PrivateSearch, additive_terms
from sfumato.learn.additive_terms import Terms


def random_schema(rng: random.Random) -> tuple[Schema, dict[str, list[float]]]:
    """Intervals of any size and sign, categories of words, numbers and truth values; some edges written down."""
    columns: dict[str, Any] = {}
    edges = {}
    for place in range(rng.randint(1, 6)):
        name = f"column {place}"
        if rng.random() < 0.6:
            low = rng.choice([0.0, -1.0, 17.0, -1e6, 1e-9])
            high = low + rng.choice([1.0, 1e-6, 83.0, 1e9])
            columns[name] = Interval(low, high)
            if rng.random() < 0.3 and high - low > 1e-3:
                edges[name] = sorted(rng.uniform(low, high) for _ in range(rng.randint(1, 4)))
        else:
            values = rng.choice([["a", "b"], [1, 2, 3], [False, True], list(map(str, range(40)))])
            columns[name] = Categories(values, unknown=values[0], null=values[-1])
    return Schema(columns), edges


def random_table(schema: Schema, rows: int, rng: random.Random) -> pd.DataFrame:
    def cell(domain: Any) -> Any:
        if isinstance(domain, Categories):
            return rng.choice(domain.values)
        wide = domain.high - domain.low
        return rng.choice([rng.uniform(domain.low, domain.high), domain.low, domain.high, domain.low - wide, 1e300])

    return pd.DataFrame({name: [cell(domain) for _ in range(rows)] for name, domain in schema.columns.items()})


def longest(terms: Terms, table: pd.DataFrame) -> float:
    return float(np.linalg.norm(terms(table), axis=1).max())


def by_hand(model: Any, row: dict[str, Any]) -> np.ndarray:
    """The score of one row from the shapes alone."""
    score = np.array(model.intercept_, dtype=float)
    for name, shape in model.shapes_.items():
        if shape.edges is None:
            place = list(shape.labels).index(row[name])
        else:
            value = min(max(row[name], shape.edges[0]), shape.edges[-1])
            place = min(bisect.bisect_right(list(shape.edges), value) - 1, len(shape.values) - 1)
        score = score + shape.values[place]
    return score


def test_rows_have_norm_one_in_every_schema():
    for seed in range(150):
        rng = random.Random(seed)
        schema, edges = random_schema(rng)
        terms = Terms(schema, rng.choice([1, 2, 7, 32, 100]), edges)
        norms = np.linalg.norm(terms(random_table(schema, 20, rng)), axis=1)
        np.testing.assert_allclose(norms, 1.0, rtol=1e-12)


def test_a_longer_row_is_found(monkeypatch):
    """Planted: features of bins whose weights do not add up to 1."""
    rng = random.Random(0)
    schema = Schema({"a": Interval(0, 1), "b": Interval(-1, 1)})
    table = random_table(schema, 20, rng)
    assert longest(Terms(schema, 16), table) < 1 + 1e-12
    whole = additive_terms._waves
    monkeypatch.setattr(additive_terms, "_waves", lambda *given: whole(*given) * 1.2)
    assert longest(Terms(schema, 16), table) > 1.1


def test_categories_are_corners_of_a_regular_simplex():
    """As far from one another as so many unit vectors can be, and their mean is 0; a single one is a constant."""
    for count in [*range(1, 40), 200]:
        corners = additive_terms._corners(count)
        np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 1.0, rtol=1e-12)
        if count > 1:
            expected = np.full((count, count), -1 / (count - 1)) + np.eye(count) * count / (count - 1)
            np.testing.assert_allclose(corners @ corners.T, expected, atol=1e-12)


def test_bins_cost_no_features():
    rng = random.Random(5)
    schema, _ = random_schema(rng)
    assert len({Terms(schema, bins).width for bins in (1, 8, 64, 1000)}) == 1


@pytest.mark.parametrize("classes", [2, 3, None], ids=["two classes", "three classes", "regression"])
@pytest.mark.by_day(1)
def test_the_score_is_the_sum_of_what_is_shown(classes):
    for seed in range(6):
        rng = random.Random(seed)
        schema, edges = random_schema(rng)
        table = random_table(schema, 120, rng)
        made: Any = PrivateAdditiveRegressor(2.0, 1e-6, schema, edges=edges, random_state=seed)
        target = np.array([rng.uniform(-1, 1) for _ in range(120)])
        if classes:
            made = PrivateAdditiveClassifier(2.0, 1e-6, schema, edges=edges, bins=9, random_state=seed)
            target = np.arange(120) % classes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = made.fit(table, target)
        given = model.decision_function(table) if classes else model.predict(table)
        mine = np.array([by_hand(model, row) for row in table.to_dict("records")])
        np.testing.assert_allclose(given.reshape(mine.shape), mine, atol=1e-9 * (1 + np.abs(mine).max()))
        for shape in model.shapes_.values():
            np.testing.assert_allclose(shape.values.mean(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_certificate_holds_by_the_second_road(adjacency, delta):
    schema, _ = random_schema(random.Random(3))
    table = random_table(schema, 300, random.Random(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [
            PrivateAdditiveClassifier(1.0, delta, schema, adjacency=adjacency, public_size=300),
            PrivateAdditiveRegressor(1.0, delta, schema, adjacency=adjacency),
        ]
        fitted = [models[0].fit(table, np.arange(300) % 2), models[1].fit(table, np.linspace(-1, 1, 300))]
    for model in fitted:
        assert verify(model.certificate_).ok
        assert "additive" in model.certificate_.proofs
        assert "one of each column" in model.explain()


def test_it_is_searched_and_charged_like_the_others():
    schema, _ = random_schema(random.Random(3))
    table = random_table(schema, 600, random.Random(4))
    label = np.arange(600) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scheme in ("split", "random_stopping"):
            search = PrivateSearch(
                PrivateAdditiveClassifier(1.0, schema=schema), {"bins": [4, 16]}, 4.0, 1e-6, scheme, expected_runs=2
            ).fit(table, label)
            assert search.predict(table).shape == (600,)
