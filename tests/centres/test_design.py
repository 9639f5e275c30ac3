"""Two designs with their prices: predicted error, bytes and seconds are those of a real run."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from centres.small_rounds import PROMISE, gather, small_round, truth
from sfumato.centres import (
    ClippedSums,
    Means,
    SecondMoments,
    Weights,
    aggregate_in_memory,
    choose_design,
    fit_linear,
    network,
    new_centres,
    noisy_sharing,
    plan_round,
    secure_aggregation,
)
from sfumato.centres.design import designs_of
from sfumato.centres.messages import write_json
from sfumato.centres.wire import write_frame
from sfumato.core import Interval, Schema
from sfumato.errors import InputError
from sfumato.mechanisms import Gaussian


@pytest.mark.parametrize("centres", [2, 4, 9, 25])
def test_secure_aggregation_gains_the_root_of_the_number_of_centres(centres):
    statistic = ClippedSums(50, 1.0)
    apart, together = noisy_sharing(statistic, [PROMISE], centres), secure_aggregation(statistic, [PROMISE], centres)
    assert together.deviation / apart.deviation == pytest.approx(1 / math.sqrt(centres), rel=1e-6)
    for design in (apart, together):
        assert design.events[0].guarantee().implies(PROMISE.guarantee) is True


def test_the_gain_is_seen_in_a_run():
    """Measured error of both designs on the same data."""
    agreed, keys, cells = small_round(9, 3000, absences=0)
    everything = truth(agreed, cells, cells)
    together = aggregate_in_memory(agreed, cells, keys).values - everything
    event = designs_of(agreed)[0].events[0]
    noise = Gaussian(event.scale, event.sensitivity, event.adjacency, event.dimension)
    apart = sum(noise(vector * agreed.grid) for vector in cells.values()) - everything
    assert together.std() / apart.std() == pytest.approx(1 / 3, rel=0.06)


def test_predicted_error_is_that_of_a_run_with_absences_and_colluders():
    agreed, keys, cells = small_round(6, 5000, absences=1, colluders=2)
    design = designs_of(agreed)[1]
    errors = aggregate_in_memory(agreed, cells, keys).values - truth(agreed, cells, cells)
    assert errors.std() == pytest.approx(design.deviation, rel=0.05)
    assert design.deviation == pytest.approx(agreed.scale * math.sqrt(6 / 3))


@pytest.mark.parametrize("centres", [4, 10])
def test_predicted_bytes_are_those_of_a_run(centres, monkeypatch):
    """Every frame of a round over sockets is counted."""
    counted = []

    async def count(writer, head, body=b""):
        counted.append(len(write_json(head)) + len(body) + 8)
        await write_frame(writer, head, body)

    monkeypatch.setattr(network, "write_frame", count)
    agreed, keys, cells = small_round(centres, 500)
    gather(agreed, keys, cells)
    assert designs_of(agreed)[1].bytes == pytest.approx(sum(counted), rel=0.1)


def test_impossible_trust_is_refused_and_kept_as_an_alternative():
    shared = secure_aggregation(ClippedSums(5, 1.0), [PROMISE], 5, colluders=3, absences=2)
    assert shared.refused
    choice = choose_design([noisy_sharing(ClippedSums(5, 1.0), [PROMISE], 5), shared], Weights())
    assert choice.chosen.name == "noisy sharing"
    assert choice.rejected == ((shared, math.inf),)
    with pytest.raises(InputError, match="No design"):
        choose_design([shared], Weights())


@pytest.mark.paper("002", "§3.4", "centres/design.py")
def test_the_choice_turns_once_as_the_price_of_encryption_grows():
    both = noisy_sharing(ClippedSums(100, 1.0), [PROMISE], 10), secure_aggregation(ClippedSums(100, 1.0), [PROMISE], 10)
    chosen = [choose_design(both, Weights(1.0, seconds)).chosen.name for seconds in np.geomspace(1e-2, 1e6, 30)]
    turns = sum(a != b for a, b in itertools.pairwise(chosen))
    assert (chosen[0], chosen[-1], turns) == ("secure aggregation", "noisy sharing", 1)


def test_weights_must_weigh_something():
    with pytest.raises(InputError):
        Weights(0.0)


def test_a_linear_model_across_centres_comes_near_the_central_one():
    generator = np.random.default_rng(3)
    schema = Schema({"age": Interval(0, 100), "dose": Interval(0, 5), "kalium": Interval(2, 8)})
    members, keys = new_centres("abcd")
    statistic = SecondMoments(schema)
    agreed = plan_round("kalium model", members, statistic, [PROMISE], most_patients=20_000, absences=1)
    tables = {}
    for name in "abcd":
        age, dose = generator.uniform(20, 90, 4000), generator.uniform(0, 5, 4000)
        kalium = 3.5 + 0.01 * age + 0.2 * dose + generator.normal(0, 0.2, 4000)
        tables[name] = {"age": age, "dose": dose, "kalium": kalium}
    cells = {name: statistic.cells(table, agreed.grid, 20_000) for name, table in tables.items()}
    model = fit_linear(aggregate_in_memory(agreed, cells, keys), "kalium")
    table = {name: np.concatenate([tables[c][name] for c in "abcd"]) for name in schema.columns}
    errors = model.predict(table) - table["kalium"]
    assert np.sqrt((errors**2).mean()) < 0.25  # the noise in the data is 0.2, the spread of kalium 0.4
    assert model.feature_names == ("1", "age", "dose")
    with pytest.raises(InputError):
        fit_linear(aggregate_in_memory(agreed.fresh(), cells, keys), "sex")


def test_a_linear_model_needs_second_moments():
    members, keys = new_centres("ab")
    statistic = Means(Schema({"kalium": Interval(2, 8)}))
    agreed = plan_round("x", members, statistic, [PROMISE], most_patients=10)
    cells = {name: statistic.cells({"kalium": [4.0]}, agreed.grid, 10) for name in "ab"}
    with pytest.raises(InputError, match="second moments"):
        fit_linear(aggregate_in_memory(agreed, cells, keys), "kalium")
