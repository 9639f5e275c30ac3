"""The sensitivity of the SVDD centre: a search over neighbours that never finds more than the claim, gaps included."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.learn.svdd import PrivateSVDD
from sfumato.learn.svdd_solver import is_mean, nearest_to_origin

SHAPES = [(4, 2, 0.4), (5, 3, 0.3), (6, 2, 0.2), (8, 4, 0.15)]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def many_centres(features, cap, exchanges=200):
    """Many small problems at once (batch × rows × width): exact exchanges of weight, and what each may be off by."""
    batch, count, _ = features.shape
    products = np.einsum("bnw,bmw->bnm", features, features)
    weights = np.full((batch, count), 1 / count)
    scores, each = products.mean(axis=2), np.arange(batch)
    for _ in range(exchanges):
        giver = np.where(weights > 0, scores, -np.inf).argmax(axis=1)
        taker = np.where(weights < cap, scores, np.inf).argmin(axis=1)
        excess = np.maximum(scores[each, giver] - scores[each, taker], 0)
        curvature = 2 - 2 * products[each, giver, taker]
        moved = np.minimum(weights[each, giver], cap - weights[each, taker])
        moved = np.minimum(moved, excess / np.maximum(curvature, 1e-15))
        weights[each, giver] -= moved
        weights[each, taker] += moved
        scores += moved[:, None] * (products[each, taker] - products[each, giver])
    centre = np.einsum("bn,bnw->bw", weights, features)
    ordered = np.sort(np.einsum("bnw,bw->bn", features, centre), axis=1)
    full = int(1 / cap)
    lowest = cap * ordered[:, :full].sum(axis=1) + (1 - cap * full) * (ordered[:, full] if full < count else 0)
    return centre, np.sqrt(np.maximum((centre**2).sum(axis=1) - lowest, 0) + 1e-14)


def distances(rows, cap):
    """For each batch of n + 1 rows: the first n against those with the last row in place of the first."""
    first, off_first = many_centres(rows[:, :-1], cap)
    second, off_second = many_centres(np.concatenate([rows[:, -1:], rows[:, 1:-1]], axis=1), cap)
    return np.linalg.norm(first - second, axis=1), off_first + off_second


def random_rows(generator, batch, count, width):
    """Clusters and scattered rows; the replacement is a fresh row, an opposite one or one orthogonal to the rest."""
    rows = generator.normal(size=(batch, count + 1, width))
    rows += 3 * generator.normal(size=(batch, 1, width)) * (generator.random((batch, 1, 1)) < 0.7)
    rows[:, -1] = np.where(generator.random((batch, 1)) < 0.5, -rows[:, 0], rows[:, -1])
    return unit(rows)


def search(count, width, cap, pairs, climbers, rounds):
    """Largest distance found, net of what the solver may be off by; asserts the claim on every pair."""
    generator = np.random.default_rng(count)
    seen, worst = 0, 0.0
    best = np.zeros(0)
    places = np.zeros((0, count + 1, width))
    for _ in range(math.ceil(pairs / 5000)):
        rows = random_rows(generator, min(pairs, 5000), count, width)
        found, off = distances(rows, cap)
        assert (found <= 2 * cap + off).all()
        order = np.argsort(off - found)[:climbers]
        places, best = np.concatenate([places, rows[order]]), np.concatenate([best, (found - off)[order]])
        seen += len(rows)
    top = np.argsort(-best)[:climbers]
    places, best = places[top], best[top]
    for turn in range(rounds):
        trial = unit(places + generator.normal(scale=0.3 * 0.97**turn, size=places.shape))
        found, off = distances(trial, cap)
        assert (found <= 2 * cap + off).all()
        better = found - off > best
        places[better], best[better] = trial[better], (found - off)[better]
        seen += len(trial)
    worst = float(best.max())
    return seen, worst


@pytest.mark.paper("004", "Alg 1", "learn/svdd.py")
@pytest.mark.parametrize(("count", "width", "cap"), SHAPES)
@pytest.mark.by_day(1)
def test_no_neighbours_move_the_centre_farther_than_claimed(count, width, cap):
    """10⁴ pairs over the four shapes: random ones, then hill climbing from the worst."""
    seen, worst = search(count, width, cap, pairs=1500, climbers=100, rounds=10)
    assert seen >= 2500
    assert worst > 1.6 * cap  # the constant √2 of the literature is broken; the search has teeth


@pytest.mark.slow
@pytest.mark.parametrize(("count", "width", "cap"), SHAPES)
def test_a_hundred_thousand_neighbours(count, width, cap):
    """More than 10⁵ pairs over the four shapes."""
    seen, worst = search(count, width, cap, pairs=15_000, climbers=200, rounds=60)
    assert 4 * seen > 100_000
    assert worst > 1.9 * cap


def test_the_search_agrees_with_the_solver_that_is_used():
    rows = random_rows(np.random.default_rng(5), 40, 6, 3)[:, :-1]
    centres, off = many_centres(rows, 0.25)
    for features, centre, slack in zip(rows, centres, off, strict=True):
        found = nearest_to_origin(features, 0.25, 1e-10)
        assert np.linalg.norm(found.centre - centre) <= math.sqrt(found.gap) + slack
    assert (off < 1e-5).mean() > 0.9


def test_a_gap_that_is_not_counted_is_found_out():
    """A solver that stops where its tolerance lets it, on the worst side of each neighbour, moves farther than 2C/n."""
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.8, 0.6], [0.8, -0.6]])
    cap, off = 0.5, 0.05
    far = [nearest_to_origin(part, cap, 1e-10).centre for part in (rows[[0, 2, 3]], rows[[1, 2, 3]])]
    apart = np.linalg.norm(far[0] - far[1])
    assert apart <= 2 * cap + 2e-5
    stopped = [far[0] + [off, 0], far[1] - [off, 0]]
    moved = np.linalg.norm(stopped[0] - stopped[1])
    assert moved > apart
    assert moved <= apart + 2 * off + 1e-12


@pytest.mark.parametrize("records", [30, 3000])
def test_the_published_sensitivity_counts_cap_and_gap(records):
    X = np.random.default_rng(0).uniform(-1, 1, (records, 2))
    for C in (1.0, 2.0):
        model = PrivateSVDD(1.0, 1e-5, C=C, n_components=20, random_state=0).fit(X)
        left_over = 0.0 if is_mean(records, model.cap_) else 2 * max(0.05 * model.cap_, 1e-5)
        assert model.sensitivity_ == pytest.approx(2 * C / records + left_over, rel=1e-9)
        assert model.noise_.sensitivity > model.sensitivity_
