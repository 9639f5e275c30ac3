"""What is expected of invented rows never sounds better than it is.

Where noise leaves a number few bins, its rows are spread within them by guess, and that is said with the column's name;
and no forecast says that tables of two columns are nearer to the real ones than tables of one.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Categories, Interval, Schema
from sfumato.release import SyntheticRelease
from sfumato.release.synthetic.plans import Forecast, RowPlan, forecasts

NUMBERS = re.compile(r"about (\d\.\d{3}) for one column, about (\d\.\d{3}) for two")


def drawn(seed: int):
    """A release of a few numbers and a list, the numbers near one end of a wide interval; some columns have edges."""
    generator = np.random.default_rng(seed)
    rows = int(generator.choice([60, 200, 900, 4000]))
    columns: dict[str, pa.Array] = {}
    domains: dict[str, Interval | Categories] = {}
    for number in range(int(generator.integers(1, 5))):
        name = f"x{number}"
        columns[name] = pa.array(generator.exponential(generator.uniform(1, 30), rows))
        domains[name] = Interval(0, 200)
    domains["kind"] = Categories([f"k{one}" for one in range(int(generator.integers(2, 9)))])
    columns["kind"] = pa.array(generator.choice(domains["kind"].values, rows))
    edges = {"x0": [0, 100, 200]} if generator.random() < 0.4 else {}
    epsilon = float(generator.choice([0.2, 1.0, 4.0]))
    release = SyntheticRelease(Schema(domains), epsilon, 1e-6, label="kind", edges=edges, random_state=seed)
    return release.release(pa.table(columns)), set(domains) - {"kind", *edges}


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(40))
def test_numbers_with_few_bins_are_named(seed):
    """By the published counts: their levels are the bins, whoever made them."""
    out, bought = drawn(seed)
    bins = {name: len(one.levels[at]) for one in out.measured for at, name in enumerate(one.columns)}
    few = {name for name in bought if bins[name] < 4}
    said = " ".join(out.notes)
    if "next to nothing could be measured" in said:
        return
    assert {name for name in bought if f"{name} (" in said} == few
    assert all(f"{name} ({bins[name]})" in said for name in few)
    assert ("hardly better than a guess" in said) == bool(few)


def test_the_law_meets_both_kinds():
    said = [" ".join(drawn(seed)[0].notes) for seed in (0, 1, 2, 3, 4, 5, 6, 7)]
    assert 0 < sum("hardly better than a guess" in one for one in said) < len(said)


@pytest.mark.parametrize("seed", range(40))
def test_two_columns_are_not_told_to_be_nearer_than_one(seed):
    """The distance of a pair of columns is at least that of each of the two, so means over all pairs are too."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 30, int(generator.integers(2, 14))).tolist()
    label = None if seed % 2 else 0
    deviation = float(generator.uniform(1, 60))
    rows = float(10 ** generator.uniform(2, 6))
    for one in forecasts(sizes, label, rows, lambda share: deviation / max(share, 1e-9) ** 0.5):
        found = NUMBERS.search(str(one))
        assert found is None or float(found[2]) >= float(found[1])


def test_a_forecast_of_two_below_one_is_found():
    assert NUMBERS.search(str(Forecast(RowPlan("pairs", "", 1.0), 0.3, 0.1, True))).groups() == ("0.300", "0.300")
