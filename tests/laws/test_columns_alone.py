"""What single columns cost and how near they come, whatever a label stands beside them and whatever is too large."""

from __future__ import annotations

import math
import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato import ADD_REMOVE, Categories, Schema
from sfumato.core.gaussian import gaussian_mu
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic import one_way
from sfumato.release.synthetic.counts import pairs_within
from sfumato.release.synthetic.start import first_shares, start_scopes

ROWS = 4_000


def shape(source: random.Random) -> list[int]:
    """A few columns and a label, which may have so many levels that some pairs with it are not counted."""
    label = source.choice([2, 2, 5, 50, 2000, 4000])
    return [source.choice([2, 5, 20, 33, 40]) for _ in range(source.randint(1, 5))] + [label]


def made(sizes: list[int], seed: int):
    generator = np.random.default_rng(seed)
    names = [f"c{at}" for at in range(len(sizes))]
    lists = [[f"v{level}" for level in range(size)] for size in sizes]
    schema = Schema({name: Categories(levels) for name, levels in zip(names, lists, strict=True)})
    table = {name: pa.array(generator.choice(levels, ROWS)) for name, levels in zip(names, lists, strict=True)}
    release = SyntheticRelease(schema, 1.0, 1e-6, label=names[-1], adjacency=ADD_REMOVE, plan="pairs", rows=10)
    return release, release.release(pa.table(table)), names


@pytest.mark.parametrize("seed", range(200))
def test_shares_are_a_whole_and_leave_nobody_out(seed):
    sizes = shape(random.Random(seed))
    label = len(sizes) - 1
    wished = [(0, 1)] if seed % 2 and label > 1 else []  # a pair that somebody wants in any case
    scopes = list(dict.fromkeys([*start_scopes(len(sizes), label, pairs_within(sizes, (label,), wished)), *wished]))
    shares = first_shares(sizes, label, scopes)
    assert math.isclose(math.fsum(shares.values()), 1.0)
    assert set(scopes) <= set(shares)
    assert {column for scope in shares for column in scope} == set(range(len(sizes)))


@pytest.mark.parametrize("seed", range(12))
def test_every_column_comes_as_near_as_its_size_and_the_forecast_say(seed):
    """Errors by the standard errors that were published, which share no code with the forecast."""
    sizes = shape(random.Random(seed + 1000))
    release, out, names = made(sizes, seed)
    mu = math.sqrt(math.fsum(event.mu**2 for event in out.certificate.events))
    assert 0.999 * gaussian_mu(1.0, 1e-6) <= mu <= gaussian_mu(1.0, 1e-6) * (1 + 1e-9)
    errors = [one_way(out.measured, name)[2] for name in names]
    (forecast,) = (one for one in release.expected(ROWS) if one.plan.name == "pairs")
    noise = [error * math.sqrt(2 / math.pi) / ROWS for error in errors]
    typical = [np.arange(1, size + 1) ** -1.5 for size in sizes]
    told = [0.5 * np.minimum(one, law / law.sum()).sum() for one, law in zip(noise, typical, strict=True)]
    assert math.isclose(forecast.one_way, np.mean(told), rel_tol=0.02)
    # Of two columns of about one size neither is starved, though the pair of one be too large.
    alike = [error for error, size in zip(errors[:-1], sizes[:-1], strict=True) if size >= 20]
    assert not alike or max(alike) < 3 * min(alike)
