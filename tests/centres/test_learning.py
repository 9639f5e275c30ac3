"""Learning over institutions: gradients, what one patient moves, what all rounds cost, what is learned."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from centres.small_rounds import PATIENT, open_account
from sfumato.centres import (
    GradientSums,
    Requirement,
    Series,
    coordinate_series,
    learn_in_memory,
    new_centres,
    take_part_in_series,
)
from sfumato.centres.round import Round
from sfumato.core import ApproxDP, Categories, GaussianDP, Interval, Schema
from sfumato.errors import InputError, LedgerError, RefusedError, SfumatoError
from sfumato.evidence import verify
from sfumato.ledger.ledger import Ledger

SCHEMA = Schema({"age": Interval(0, 100), "sex": Categories(["f", "m"]), "ill": Categories(["no", "yes"])})
NAMES = ("north", "south", "west")


def people(size: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    age, sex = generator.uniform(0, 100, size), generator.choice(["f", "m"], size)
    chance = 1 / (1 + np.exp(-((age - 50) / 12 + (sex == "m"))))
    return {"age": age, "sex": sex, "ill": np.where(generator.random(size) < chance, "yes", "no")}


def series(guarantee=None, **options) -> tuple[Series, dict]:
    members, keys = new_centres(NAMES)
    requirement = Requirement(PATIENT, guarantee or ApproxDP(1.0, 1e-6))
    given = {"most_patients": 10_000, "steps": 6, **options}
    given = {"target": "ill", "label": "yes", **given}
    return Series(subject="illness", centres=members, schema=SCHEMA, requirement=requirement, **given), keys


def gradient(weights, rows, loss="logistic", norm=1e6):
    statistic = GradientSums(SCHEMA, target="ill", label="yes", weights=tuple(weights), norm=norm, loss=loss)
    return statistic.cells(rows, 2.0**-30, 100) * 2.0**-30


def loss_of(weights, rows, loss):
    """By plain Python: the sum of the losses over (1, age/100, f, m)."""
    total = 0.0
    for age, sex, ill in zip(*(rows[name] for name in ("age", "sex", "ill")), strict=True):
        score = weights[0] + weights[1] * age / 100 + weights[2] * (sex == "f") + weights[3] * (sex == "m")
        margin = score if ill == "yes" else -score
        if loss == "logistic":
            total += math.log1p(math.exp(-margin))
        else:
            total += (1 - margin) if margin < 0.5 else 0.0 if margin > 1.5 else (1.5 - margin) ** 2 / 2
    return total


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_gradients_are_those_of_the_loss(loss):
    rows, weights = people(40), np.array([0.3, -0.7, 0.2, 0.5])
    found = gradient(weights, rows, loss)
    for place in range(4):
        step = np.eye(4)[place] * 1e-5
        slope = (loss_of(weights + step, rows, loss) - loss_of(weights - step, rows, loss)) / 2e-5
        assert found[place] == pytest.approx(slope, abs=1e-4)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(
    weights=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    seed=st.integers(0, 1000),
    loss=st.sampled_from(["logistic", "hinge"]),
    age=st.one_of(st.none(), NUMBERS, st.text(max_size=3)),
)
def test_nobody_moves_a_sum_of_gradients_further_than_charged_whatever_the_weights(weights, seed, loss, age):
    statistic = GradientSums(SCHEMA, target="ill", label="yes", weights=weights, norm=0.8, loss=loss)
    rows = {name: list(column) for name, column in people(3, seed).items()}
    other = {name: list(column) for name, column in rows.items()}
    other["age"][0], other["sex"][0], other["ill"][0] = age, "m", "yes"
    grid = 2.0**-20
    moved = (statistic.cells(rows, grid, 10) - statistic.cells(other, grid, 10)) * grid
    for relation, table in (("replace-one", other), ("add-remove", {n: c[1:] for n, c in rows.items()})):
        if relation == "add-remove":
            moved = (statistic.cells(rows, grid, 10) - statistic.cells(table, grid, 10)) * grid
        charged = statistic.sensitivity(type(PATIENT)("patient", relation), "gaussian") + grid * 2
        assert np.linalg.norm(moved) <= charged


def test_with_little_noise_it_is_logistic_regression():
    """The same ridge on all weights, minimised by plain Newton steps."""
    rows = people(3000)
    tables = {name: {c: v[place::3] for c, v in rows.items()} for place, name in enumerate(NAMES)}
    made, keys = series(GaussianDP(1000.0), steps=25, norm=2.0)
    learned = learn_in_memory(made, tables, keys, random_state=0)
    x = np.column_stack([np.ones(3000), rows["age"] / 100, rows["sex"] == "f", rows["sex"] == "m"])
    weights, yes = np.zeros(4), rows["ill"] == "yes"
    for _ in range(30):
        chance = 1 / (1 + np.exp(-x @ weights))
        hessian = (x * (chance * (1 - chance))[:, None]).T @ x + 10.0 * np.eye(4)
        weights -= np.linalg.solve(hessian, x.T @ (chance - yes) + 10.0 * weights)
    assert learned.weights == pytest.approx(weights, abs=0.15)
    assert np.mean(learned.predict(rows) == rows["ill"]) > 0.8
    assert not learned.certificate.publishable


def test_all_rounds_together_keep_the_promise_and_nearly_spend_it():
    made, keys = series(absences=1)
    tables = dict.fromkeys(NAMES, people(50))
    learned = learn_in_memory(made, tables, keys, leaves={3: {"west": "masked"}})
    assert verify(learned.certificate).ok
    assert len(learned.certificate.events) == 7
    assert learned.certificate.guarantee.implies(ApproxDP(1.0, 1e-6))
    assert not learned.certificate.guarantee.implies(ApproxDP(0.999, 1e-6))


def test_a_series_of_more_rounds_than_were_promised_is_not_published():
    made, _ = series()
    state = made.start()
    events = tuple(event for _ in range(3) for event in made.round(state).events) * 3
    with pytest.raises(InputError, match="more than was promised"):
        made.result(type(state)(7, state.weights, state.ahead, None, events))


def test_a_centre_agrees_to_any_weights_and_to_nothing_else():
    made, _ = series()
    state = made.start()
    after = type(state)(1, state.weights, state.ahead, np.eye(4))
    offered = made.round(type(state)(1, state.weights, np.ones(4)))
    assert made.approves(after, offered).description() == offered.description()
    with pytest.raises(RefusedError):
        made.approves(after, made.round(state))
    louder = Round.from_dict({**offered.to_dict(), "scale": offered.scale * 2})
    assert made.approves(after, louder).description() != louder.description()


@pytest.mark.slow
def test_over_sockets_each_round_is_paid_for_by_itself(tmp_path):
    """One centre runs out of budget after three rounds: it has paid for three, the others for all."""
    made, keys = series(absences=1, steps=4)
    tables = {name: people(200, seed) for seed, name in enumerate(NAMES)}
    whole = GaussianDP(0.24)
    for name in NAMES:
        Ledger(tmp_path / f"{name}.db").grant(
            "patients", GaussianDP(0.15) if name == "west" else whole, adjacency=PATIENT
        )
    told = {}

    async def everybody():
        async def ready(host, port):
            for name in NAMES:
                told[name] = asyncio.ensure_future(
                    take_part_in_series(
                        host, port, series=made, name=name, key=keys[name], table=tables[name],
                        account=open_account(tmp_path, name), verify=lambda one: verify(one).ok,
                    )
                )  # fmt: skip

        found = await coordinate_series(made, ready=ready)
        return found, await asyncio.gather(*told.values(), return_exceptions=True)

    found, others = asyncio.run(everybody())
    assert np.allclose(others[0].weights, found.weights)
    assert isinstance(others[2], LedgerError)
    assert not isinstance(others[1], SfumatoError)
    acts = {name: Counter(one.action for one in Ledger(tmp_path / f"{name}.db").history("patients")) for name in NAMES}
    assert acts["north"]["commit"] == acts["south"]["commit"] == 5
    assert acts["west"]["commit"] == acts["west"]["reserve"] < 5
    assert acts["west"]["commit"] >= 1


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"first": 1.0}, {"target": "age"}, {"label": "perhaps"}])
def test_a_series_that_means_nothing_is_refused(wrong):
    def tried():
        made, _ = series(**wrong)
        return made.round(type(made.start())(1, made.start().weights, made.start().ahead))

    with pytest.raises((InputError, KeyError)):
        tried()
