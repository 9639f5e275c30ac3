"""Tailored noise: the design is optimal, the shipped weights are exactly private, drawing owns exactly the weights."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ChannelEvent, Interval, PureDP, compose
from sfumato.core.events.channel import delta_of_weights, exp_below, largest_ratio
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError, SfumatoError
from sfumato.evidence import Certificate, verify
from sfumato.mechanisms import Laplace, TailoredNoise
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.tailored.grid import PrivateQuantiles, PublicEdges
from sfumato.mechanisms.tailored.repair import TOTAL, merged, private_weights
from sfumato.mechanisms.tailored.sampling import alias_table
from sfumato.mechanisms.tailored.solver import WantedMeans, optimal_channel
from sfumato.mechanisms.tailored.uses import Use, as_use

UNIT = Interval(0.01, 1)
EPSILONS = (0.05, 0.5, 1.0, 2.0, 5.0, 16.0, 64.0)


# The guarantee.


@pytest.mark.paper("002", "§5.3", "mechanisms/tailored/repair.py")
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("bias", ["soft", "none", "unbiased"])
@pytest.mark.by_day(12)
def test_the_shipped_channel_has_at_most_the_epsilon_asked_for(epsilon, bias):
    """In rational arithmetic, on the very integers that are drawn from; and no less than 99.99 % of it up to ε = 16."""
    channel = TailoredNoise(UNIT, epsilon, uses=["log"], bias=bias)
    rows = channel.weights.tolist()
    assert {sum(row) for row in rows} == {TOTAL}
    ratio = largest_ratio(rows)
    assert ratio is not None
    assert ratio <= exp_below(epsilon)
    assert channel.guarantee().implies(PureDP(epsilon)) is True
    if 0.1 < epsilon <= 16 and len(channel.outputs) > 1:
        assert math.log(ratio) >= 0.9999 * epsilon


def test_the_solvers_own_answer_would_not_pass():
    """Why the repair is there: probabilities good to 1e-9 are not private, and rounding them is not either."""
    inputs = np.linspace(0.01, 1, 41)[1::2]
    costs = (np.log(inputs)[:, None] - np.log(inputs)) ** 2
    probabilities = optimal_channel(costs, 1.0).probabilities
    rounded = np.rint(probabilities * 2.0**40).astype(np.int64).tolist()
    ratio = largest_ratio(rounded)
    assert ratio is None or ratio > exp_below(1.0)
    assert largest_ratio(private_weights(merged(probabilities)[0], 1.0).tolist()) <= exp_below(1.0)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.by_day(27)
def test_any_perturbed_channel_is_repaired_or_refused(seed):
    """Random channels with errors of 1e-12 to 1e-2 in every entry: what is returned always has its certificate."""
    generator = np.random.default_rng(seed)
    epsilon = float(generator.choice([0.02, 0.3, 1.0, 4.0, 20.0]))
    solution = optimal_channel(generator.random((12, 15)), epsilon).probabilities
    noise = 10.0 ** generator.uniform(-12, -2) * generator.normal(size=solution.shape)
    weights = private_weights(solution + noise, epsilon).tolist()
    assert largest_ratio(weights) <= exp_below(epsilon)
    assert all(sum(row) == TOTAL and min(row) >= 1 for row in weights)


def test_repair_costs_next_to_nothing():
    for epsilon in (0.5, 2.0, 4.0):
        channel = TailoredNoise(UNIT, epsilon, uses=["identity", "log"])
        assert channel.table.gap < 1e-6  # against a dual bound, repair included


def test_delta_is_exact_and_kept():
    channel = TailoredNoise(UNIT, 0.5, 1e-3, bins=8, outputs=8)
    found = delta_of_weights(channel.weights.tolist(), 0.5)
    assert found <= Fraction(1e-3)
    assert float(found) >= 0.999e-3
    assert largest_ratio(channel.weights.tolist()) is None or largest_ratio(channel.weights.tolist()) > exp_below(0.5)
    assert channel.error() < TailoredNoise(UNIT, 0.5, bins=8, outputs=8).error() + 1e-12
    by_hand = max(
        sum(max(0.0, a - math.exp(0.5) * b) for a, b in zip(one, other, strict=True))
        for one in channel.probabilities
        for other in channel.probabilities
    )
    assert float(found) == pytest.approx(by_hand, rel=1e-9)


def test_the_published_slack_rule_would_give_delta_away():
    """δ/|X| for each of |Y| outputs adds up to more than δ: a share δ of the time does not."""
    costs = np.vstack([np.arange(50) != 0, np.arange(50) != 49]).astype(float)
    costs += 0.01 * np.random.default_rng(1).random(costs.shape)
    f = optimal_channel(costs, 0.1, delta=0.1).probabilities
    excess = np.maximum(f[0] - math.exp(0.1) * f[1], 0).sum()
    assert excess <= 0.1 + 1e-8
    per_output = 0.1 / 2
    assert 50 * per_output > 0.1  # what the printed rule allows in total


def test_one_unit_beyond_the_ratio_is_seen():
    """The certificate can fail: one unit moved in 2^62 is enough."""
    weights = [list(row) for row in TailoredNoise(UNIT, 1.0).weights.tolist()]
    ratio = largest_ratio(weights)
    column = next(y for y, c in enumerate(zip(*weights, strict=True)) if Fraction(max(c), min(c)) == ratio)
    row = min(range(len(weights)), key=lambda x: weights[x][column])
    weights[row][column] -= 10**9
    assert largest_ratio(weights) > ratio


def test_an_edited_certificate_does_not_verify():
    event = TailoredNoise(UNIT, 1.0, bins=6).event()
    record = json.loads(Certificate.issue(subject="x", events=[event], proofs=["tailored_noise"]).to_json())
    assert verify(record).ok
    for at, amount in ((0, 1 << 55), (-1, -(1 << 55))):
        forged = json.loads(json.dumps(record))
        row = forged["events"][0]["weights"][at]
        row[0] += amount
        row[1] -= amount
        names = {check.field for check in verify(forged).failures}
        assert names & {"composed", "guarantee", "claims.pairs[0].epsilon", "events[0]"}


def test_a_forged_delta_does_not_verify():
    event = TailoredNoise(UNIT, 0.5, 1e-3, bins=5, outputs=5).event()
    record = json.loads(Certificate.issue(subject="x", events=[event], proofs=["tailored_noise"]).to_json())
    assert verify(record).ok
    record["composed"]["delta"] = record["guarantee"]["delta"] = 1e-6
    assert not verify(record).ok


def test_events_compose_like_any_other():
    event = TailoredNoise(UNIT, 0.5, bins=4).event()
    assert compose([event, event]).epsilon(0.0) == pytest.approx(1.0, rel=1e-9)


def test_a_channel_event_means_something_or_is_refused():
    good = [[3, 1], [1, 3]]
    assert ChannelEvent(good, adjacency=REPLACE_ONE).eps == pytest.approx(math.log(3))
    assert ChannelEvent([[2, 2], [2, 2]], adjacency=REPLACE_ONE).eps < 1e-200
    assert ChannelEvent([[4, 0], [2, 2]], at=1.0, adjacency=REPLACE_ONE).delta == 0.5
    bad = ([], [[]], [[1, 2], [3]], [[1, 2], [2, 2]], [[0, 4], [4, 0]], [[1.0, 3.0], [3, 1]], [[True, 3], [3, 1]])
    for weights in (*bad, [[-1, 5], [1, 3]], [[4, 0], [4, 0]], "text", None, [[1 << 129, 1], [1, 1 << 129]]):
        with pytest.raises(PrivacyParameterError):
            ChannelEvent(weights, adjacency=REPLACE_ONE)
    with pytest.raises(PrivacyParameterError, match="public"):
        ChannelEvent(good, adjacency=ADD_REMOVE)
    with pytest.raises(PrivacyParameterError, match="hide nothing"):
        ChannelEvent([[4, 0], [0, 4]], at=1.0, adjacency=REPLACE_ONE)


# The optimum.


@pytest.mark.paper("002", "§5.3", "mechanisms/tailored/design.py")
@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_cvxpys(seed):
    """Random losses, random shapes, with and without a bias term: equal to 1e-6, and the dual bound is below."""
    cvxpy = pytest.importorskip("cvxpy")
    generator = np.random.default_rng(seed)
    inputs, outputs = generator.integers(2, 9, size=2)
    epsilon, costs = float(generator.choice([0.1, 0.7, 2.0, 6.0])), generator.normal(size=(inputs, outputs))
    moments = None
    f, top = cvxpy.Variable((inputs, outputs)), cvxpy.Variable(outputs)
    value = cvxpy.sum(cvxpy.multiply(costs, f))
    if seed % 2:
        moments = WantedMeans(
            *(generator.normal(size=shape) for shape in ((1, outputs), (1, inputs))), np.ones((1, inputs))
        )
        value += cvxpy.sum_squares(f @ moments.values[0] - moments.wanted[0]) / 2
    limits = [cvxpy.sum(f, axis=1) == 1]
    limits += [rule for row in range(inputs) for rule in (f[row] <= top, f[row] >= math.exp(-epsilon) * top)]
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    best = cvxpy.Problem(cvxpy.Minimize(value), limits).solve(solver="CLARABEL", **tight)
    ours = optimal_channel(costs, epsilon, moments)
    assert ours.value == pytest.approx(best, abs=1e-6)
    assert ours.bound <= best + 1e-7
    assert ours.bound >= best - 1e-6


def _by_slacks(cvxpy, costs, epsilon, delta, moments=None):
    """The least cost of all (ε, δ)-private channels: slacks for every pair of inputs, by cvxpy."""
    f = cvxpy.Variable(costs.shape, nonneg=True)
    value, limits = cvxpy.sum(cvxpy.multiply(costs, f)), [cvxpy.sum(f, axis=1) == 1]
    limits += [
        cvxpy.sum(cvxpy.pos(f[a] - math.exp(epsilon) * f[b])) <= delta
        for a, b in itertools.permutations(range(len(costs)), 2)
    ]
    if moments is not None:
        bias = f @ moments.values[0] - moments.wanted[0]
        if np.isfinite(moments.penalty).all():
            value += cvxpy.sum(cvxpy.multiply(moments.penalty[0] / 2, cvxpy.square(bias)))
        else:
            limits.append(bias == 0)
    return cvxpy.Problem(cvxpy.Minimize(value), limits).solve(solver="CLARABEL")


def _design_problem(kind, inputs, epsilon):
    """Squared errors on even inputs, as they come, with a soft bias, or with none allowed and outputs beyond."""
    places = (np.arange(inputs) + 0.5) / inputs
    reach = max(2.0, 1.6 / math.tanh(epsilon / 2)) / 2
    outputs = np.linspace(0.5 - reach, 0.5 + reach, 2 * inputs + 1) if kind == "unbiased" else places
    costs = (places[:, None] - outputs) ** 2 / inputs / places.var()
    if kind == "none":
        return costs, None
    penalty = np.full((1, inputs), 2 / inputs / places.var() if kind == "soft" else np.inf)
    return costs, WantedMeans(outputs[None], places[None], penalty)


@pytest.mark.parametrize(("delta", "most"), [(1e-3, 4e-4), (0.05, 0.0125), (0.3, 0.02)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 6.0])
@pytest.mark.parametrize("kind", ["none", "soft", "unbiased", "random"])
@pytest.mark.by_day(4)
def test_a_share_of_freedom_is_nearly_the_best_use_of_delta(kind, epsilon, delta, most):
    """Against slacks for every pair: a few percent of δ for designs, and never outside the stated bound."""
    cvxpy = pytest.importorskip("cvxpy")
    generator = np.random.default_rng(int(10 * epsilon))
    costs, moments = (generator.random((6, 7)), None) if kind == "random" else _design_problem(kind, 10, epsilon)
    best, found = (
        _by_slacks(cvxpy, costs, epsilon, delta, moments),
        optimal_channel(costs, epsilon, moments, delta=delta),
    )
    slack = 1e-6 * best + 1e-8
    assert found.bound - slack <= best <= found.value + slack
    assert found.reached <= found.value + slack
    assert found.value <= best * (1 + most * (2 if kind == "random" else 1)) + slack
    pure = optimal_channel(costs, epsilon, moments)
    assert found.value <= pure.value + slack
    if moments is None:  # telling the truth a share δ of the time can be done by hand
        assert found.value == pytest.approx((1 - delta) * pure.value + delta * costs.min(axis=1).sum(), rel=1e-6)


@pytest.mark.parametrize("kind", ["soft", "unbiased"])
@pytest.mark.parametrize("delta", [1e-3, 0.2])
def test_the_private_and_the_free_part_are_found_together(kind, delta):
    """(1-δ)g + δh with g private: the same program by cvxpy, where the means tie the two."""
    cvxpy = pytest.importorskip("cvxpy")
    costs, moments = _design_problem(kind, 8, 1.0)
    private, free, top = (cvxpy.Variable(shape, nonneg=True) for shape in (costs.shape, costs.shape, costs.shape[1]))
    f = (1 - delta) * private + delta * free
    bias = f @ moments.values[0] - moments.wanted[0]
    limits = [cvxpy.sum(private, axis=1) == 1, cvxpy.sum(free, axis=1) == 1]
    limits += [private <= top[None, :], private >= math.exp(-1.0) * top[None, :]]
    value = cvxpy.sum(cvxpy.multiply(costs, f))
    if kind == "soft":
        value += cvxpy.sum(cvxpy.multiply(moments.penalty[0] / 2, cvxpy.square(bias)))
    else:
        limits.append(bias == 0)
    best = cvxpy.Problem(cvxpy.Minimize(value), limits).solve(solver="CLARABEL")
    found = optimal_channel(costs, 1.0, moments, delta=delta)
    assert found.value == pytest.approx(best, rel=1e-6)
    assert found.reached == pytest.approx(best, rel=1e-6)


def test_randomised_response_is_rediscovered():
    """For the 0-1 loss the optimum is known (Kairouz et al. 2016)."""
    for size, epsilon in ((2, 1.0), (5, 3.0)):
        known = size * (size - 1) / (size - 1 + math.exp(epsilon))
        assert optimal_channel(1 - np.eye(size), epsilon).value == pytest.approx(known, abs=1e-7)


def test_unbiased_means_unbiased():
    for use in ("identity", "log", "inverse", "tan"):
        channel = TailoredNoise(UNIT, 1.5, uses=use, bias="unbiased")
        spread = np.ptp(as_use(use)(channel.inputs))
        assert np.abs(channel.biases()).max() < 1e-6 * spread
        assert channel.outputs.size >= 2


def test_soft_bias_is_two_sided():
    """A one-sided rule lets the mean fall for nothing; here the bias of the two ends is the same but for its sign."""
    biases = TailoredNoise(Interval(-1, 1), 1.0).biases()
    assert biases == pytest.approx(-biases[::-1], abs=1e-3)
    assert np.abs(biases).max() < np.abs(TailoredNoise(Interval(-1, 1), 1.0, bias="none").biases()).max()


@pytest.mark.parametrize("use", ["identity", "log", "inverse", "tan"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.by_day(8)
def test_less_error_than_clipped_laplace(use, epsilon):
    """For the use it was made for, at every ε: the noise is clipped to the domain, as charitably as can be."""
    channel = TailoredNoise(UNIT, epsilon, uses=use, bias="none", bins=40)
    law = Laplace.for_guarantee(PureDP(epsilon), UNIT.width, REPLACE_ONE, random_state=1)
    values = np.random.default_rng(2).uniform(0.01, 1, 40_000)
    function = as_use(use)
    clipped = np.clip(law(values), 0.01, 1)
    assert channel.predicted_error() < np.mean((function(clipped) - function(values)) ** 2)


# Drawing.


@pytest.mark.parametrize("seed", range(5))
def test_alias_tables_own_exactly_the_weights(seed):
    """Counted slot by slot in whole numbers, not estimated."""
    generator = np.random.default_rng(seed)
    outputs, bits = int(generator.integers(1, 40)), int(generator.integers(3, 62))
    cuts = np.sort([int(c) for c in generator.integers(0, 1 << bits, size=outputs - 1)])
    row = np.diff(np.concatenate([[0], cuts, [1 << bits]])).astype(np.int64)
    table = alias_table(row[None, :], bits)
    room, extra = 1 << table.rest_bits, (1 << (table.rest_bits + table.slot_bits)) >> bits
    owned = [0] * (1 << table.slot_bits)
    for slot, (own, other) in enumerate(zip(table.threshold.tolist(), table.other.tolist(), strict=True)):
        owned[slot] += own
        owned[other] += room - own
    assert owned[:outputs] == [weight * extra for weight in row.tolist()]
    assert not any(owned[outputs:])


def test_draws_have_the_stated_frequencies_and_wrong_ones_are_found():
    channel = TailoredNoise(Interval(0, 1), 2.0, bins=5, random_state=4)
    trials = 200_000
    drawn = channel.columns_of(channel(np.full(trials, 0.9)))
    counts = np.bincount(drawn, minlength=len(channel.outputs))

    def misfit(probabilities):
        return float(((counts - trials * probabilities) ** 2 / (trials * probabilities)).sum())

    assert misfit(channel.probabilities[4]) < 40
    assert misfit(channel.probabilities[0]) > 1000


def test_values_outside_the_domain_count_as_its_ends():
    channel = TailoredNoise(Interval(0, 1), 30.0, bins=4, random_state=1)
    assert channel([-1e300, 7.0, 1.0, 0.0]) == pytest.approx([0.125, 0.875, 0.875, 0.125])


def test_only_own_outputs_are_read_back():
    channel = TailoredNoise(Interval(0, 1), 1.0, bins=4)
    with pytest.raises(DataError, match="another channel"):
        channel.columns_of([channel.outputs[0], 0.123456])


# Grids and uses.


def test_grids_are_what_they_say():
    width = TailoredNoise(UNIT, 1.0, uses="log", bins=10)
    assert np.diff(width.edges) == pytest.approx(np.full(10, 0.099))
    scale = TailoredNoise(UNIT, 1.0, uses="log", bins=10, binning="transformed")
    assert np.diff(np.log(scale.edges)) == pytest.approx(np.full(10, math.log(100) / 10), rel=1e-4)
    assert np.diff(np.log(scale.inputs)) == pytest.approx(np.full(9, math.log(100) / 10), rel=1e-4)
    public = TailoredNoise(Interval(0, 1), 1.0, bins=4, binning="quantile", prior=lambda x: 2 * x)
    assert public.edges == pytest.approx(np.sqrt([0, 0.25, 0.5, 0.75, 1]), abs=1e-3)
    assert public.table.prior == pytest.approx(np.full(4, 0.25), abs=1e-3)
    said = TailoredNoise(Interval(0, 1), 1.0, binning=PublicEdges((0, 0.3, 1), source="census"))
    assert said.inputs == pytest.approx([0.15, 0.65])


def test_private_quantiles_are_paid_for():
    data = np.random.default_rng(0).beta(2, 5, 20_000)
    drawn = PrivateQuantiles.draw(data, Interval(0, 1), 5, 1.0, REPLACE_ONE, random_state=3)
    assert compose(list(drawn.events)).epsilon(0.0) <= 1.0 + 1e-9
    assert drawn.edges[1:-1] == pytest.approx(np.quantile(data, [0.2, 0.4, 0.6, 0.8]), abs=0.02)
    channel = TailoredNoise(Interval(0, 1), 1.0, binning=drawn)
    assert len(channel.inputs) == 5


def test_a_guard_keeps_grids_away_from_the_singularity():
    channel = TailoredNoise(Interval(-1, 1), 1.0, uses="inverse", guard=0.1)
    assert np.abs(channel.inputs).min() >= 0.1 - 1e-12
    assert np.abs(channel.outputs).min() >= 0.1 - 1e-12
    logs = TailoredNoise(Interval(0, 1), 1.0, uses="log", guard=0.05)
    assert logs.inputs.min() >= 0.05


@pytest.mark.parametrize(
    ("wish", "point"),
    [
        ({"uses": "inverse", "domain": Interval(-1, 1)}, "at 0"),
        ({"uses": "log", "domain": Interval(0, 1)}, "at 0"),
        ({"uses": "log", "domain": Interval(-2, 1)}, "at 0"),
        ({"uses": "tan", "domain": Interval(0, 2)}, "at 1.5708"),
        ({"uses": "sqrt", "domain": Interval(-1, 1)}, "at -1"),
        ({"uses": "power:-0.5", "domain": Interval(0, 1)}, "at 0"),
        ({"uses": [lambda x: 1 / (x - 0.3)], "domain": Interval(0, 1)}, "at 0.3"),
        ({"uses": [math.log], "domain": Interval(-1, 1)}, "at -1"),
    ],
)
def test_a_use_that_breaks_inside_the_domain_is_refused_with_the_point(wish, point):
    with pytest.raises(SfumatoError, match=f"{point}"):
        TailoredNoise(epsilon=1.0, **wish)


@pytest.mark.parametrize(
    "wish",
    [
        {"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": None},
        {"delta": 1.0}, {"delta": -0.1}, {"outputs": 1}, {"outputs": [1.0]}, {"outputs": "many"}, {"bins": 1},
        {"bins": 100_000}, {"bins": 2.5}, {"uses": []}, {"uses": ["logg"]}, {"uses": ["log", "log"]}, {"uses": [3]},
        {"uses": [("log", -1)]}, {"uses": ["power:0"]}, {"uses": ["power:x"]}, {"bias": "some"}, {"binning": "mine"},
        {"binning": [0.01, 0.5, 1.0]}, {"binning": "quantile"}, {"prior": [1.0, 2.0]}, {"prior": [-1.0] * 20},
        {"prior": lambda x: x - 2}, {"guard": 0.0}, {"domain": (0, 1)},
        {"bias": "unbiased", "outputs": np.linspace(0.3, 0.7, 30)}, {"bias": "unbiased", "uses": ["sqrt"]},
    ],
    ids=" ".join,
)  # fmt: skip
def test_wishes_that_mean_nothing_are_refused(wish):
    with pytest.raises(InputError):
        TailoredNoise(**({"domain": UNIT, "epsilon": 1.0} | wish))


def test_edges_that_say_nothing_of_their_source_are_refused():
    with pytest.raises(SchemaError, match="where the edges come from"):
        PublicEdges((0, 1), source=" ")
    with pytest.raises(SchemaError, match="increasing"):
        PublicEdges((0, 0, 1), source="census")


def test_functions_and_names_are_the_same_use():
    named, given = (TailoredNoise(UNIT, 2.0, uses=[use], bins=8) for use in ("log", Use("ln", np.log)))
    assert np.array_equal(named.weights, given.weights)
    scalar = TailoredNoise(UNIT, 2.0, uses=[math.log], bins=8)
    assert np.array_equal(named.weights, scalar.weights)


def test_weights_of_uses_shift_the_balance():
    even = TailoredNoise(UNIT, 2.0, uses=["identity", "inverse"])
    tilted = TailoredNoise(UNIT, 2.0, uses=["identity", ("inverse", 30)])
    assert tilted.predicted_error("inverse") < even.predicted_error("inverse")
    assert tilted.predicted_error("identity") > even.predicted_error("identity")


def test_replacing_a_field_redesigns_only_where_it_must():
    channel = TailoredNoise(UNIT, 1.0, bins=6)
    assert dataclasses.replace(channel, random_state=1).table is channel.table
    other = dataclasses.replace(channel, epsilon=2.0)
    assert other.table is not channel.table
    assert other.guarantee().implies(PureDP(1.0)) is not True
    assert np.array_equal(TailoredNoise(UNIT, 1.0, bins=6).weights, channel.weights)


def test_channels_are_equal_if_they_do_the_same():
    one, same = (TailoredNoise(UNIT, 1.0, bins=6, outputs=outputs) for outputs in (None, None))
    assert one == same
    assert hash(one) == hash(same)
    for other in (TailoredNoise(UNIT, 1.0, bins=6, outputs=6), dataclasses.replace(one, random_state=1), "channel"):
        assert one != other


def test_predicted_error_is_measured():
    channel = TailoredNoise(UNIT, 2.0, uses=["identity", "log"], random_state=8)
    values = np.random.default_rng(0).uniform(0.01, 1, 400_000)
    published = channel(values)
    for use in ("identity", "log"):
        function = as_use(use)
        measured = np.mean((function(published) - function(values)) ** 2)
        assert channel.predicted_error(use) == pytest.approx(measured, rel=0.02)


def test_huge_designs_say_time_and_memory_first():
    with pytest.raises(PrivacyParameterError, match=r"minutes and .* GB"):
        TailoredNoise(UNIT, 1.0, bins=3000)


def test_a_design_that_failed_is_not_handed_out():
    """At ε = 10⁻⁶ an unbiased channel reaches a million widths: what the repair would leave of it is refused."""
    with pytest.raises(PrivacyParameterError, match="double precision"):
        TailoredNoise(Interval(0, 1), 1e-6, bias="unbiased")


def test_seeded_bits_are_only_for_experiments():
    channel = TailoredNoise(UNIT, 1.0, bins=4, random_state=3)
    assert not channel.publishable
    assert np.array_equal(channel([0.5] * 9), channel([0.5] * 9))
    assert Bits(3).words(1).size == 1


@pytest.mark.paper("002", "§5.3, outputs", "mechanisms/tailored/design.py")
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_fewer_outputs_than_inputs(epsilon):
    """41 inputs and 20 outputs: private, no better than with more outputs, and the best that 20 allow by cvxpy."""
    cvxpy = pytest.importorskip("cvxpy")
    few = TailoredNoise(Interval(0, 1), epsilon, bins=41, outputs=20, bias="none")
    assert len(few.outputs) <= 20 < len(few.inputs) == 41
    assert few.event().eps <= epsilon
    assert few.error() >= TailoredNoise(Interval(0, 1), epsilon, bins=41, bias="none").error() - 1e-9
    outputs = np.linspace(few.inputs[0], few.inputs[-1], 20)
    costs = (few.inputs[:, None] - outputs) ** 2 / 41
    f, top = cvxpy.Variable((41, 20)), cvxpy.Variable(20)
    limits = [cvxpy.sum(f, axis=1) == 1, f <= top[None, :], f >= math.exp(-epsilon) * top[None, :]]
    best = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(cvxpy.multiply(costs, f))), limits).solve(solver="CLARABEL")
    assert few.error() == pytest.approx(best, rel=1e-4)


@pytest.mark.paper("002", "§5.7", "mechanisms/tailored/noise.py")
@pytest.mark.parametrize("uses", [["identity"], ["identity", "log"]])
def test_interpolated_noise_has_its_density_and_its_promise(uses):
    """Draws follow the stated density by a Kolmogorov test that finds another one; ratios of densities obey e^ε."""
    channel = TailoredNoise(Interval(0.05, 1), 5.0, uses=uses, bins=12, random_state=3)
    places = np.linspace(channel.outputs[0], channel.outputs[-1], 20_001)
    densities = {value: channel.interpolated_density(value, places) for value in (0.06, 0.4, 0.99)}
    step = places[1] - places[0]
    for value, density in densities.items():
        assert density.sum() * step == pytest.approx(1, abs=5e-3)
        drawn = channel.interpolated(np.full(20_000, value))
        cumulative = np.interp(np.sort(drawn), places, np.cumsum(density) * step)
        distance = np.abs(cumulative - (np.arange(20_000) + 0.5) / 20_000).max()
        assert distance < 2.2 / math.sqrt(20_000) + 2e-3
        other = np.interp(np.sort(drawn), places, np.cumsum(densities[0.4 if value != 0.4 else 0.99]) * step)
        assert np.abs(other - (np.arange(20_000) + 0.5) / 20_000).max() > 0.05
    for first, second in itertools.permutations(densities.values(), 2):
        assert (first <= math.exp(5.0) * second * (1 + 1e-9)).all()


@pytest.mark.paper("002", "§5.3, δ", "mechanisms/tailored/solver.py")
@pytest.mark.parametrize(
    ("bias", "epsilon", "delta"),
    [
        ("none", 2.0, 1e-3),
        ("soft", 1.0, 1e-6),
        ("soft", 2.0, 0.05),
        pytest.param("unbiased", 1.0, 1e-4, marks=pytest.mark.slow),
    ],
)
@pytest.mark.by_day(1)
def test_delta_for_128_bins_in_seconds(bias, epsilon, delta):
    """Certified by all pairs in whole numbers and by the verifier; no worse than ε alone; near the best there is."""
    channel = TailoredNoise(Interval(0, 1), epsilon, delta, bins=128, bias=bias)
    assert channel.table.seconds < 30  # half a second, five unbiased, on an idle core
    factor = math.floor(exp_below(epsilon) * 2**100)  # a little below e^ε
    ones, others = ([[w * by for w in row] for row in channel.weights.tolist()] for by in (1 << 100, factor))
    worst = max(sum(a - b for a, b in zip(x, z, strict=True) if a > b) for x in ones for z in others)
    assert Fraction(worst, TOTAL << 100) <= Fraction(delta)
    assert verify(json.loads(channel.certificate().to_json())).ok
    assert channel.table.gap <= max(1e-6, 0.5 * delta)
    alone = TailoredNoise(Interval(0, 1), epsilon, bins=128, bias=bias)
    assert channel.table.cost <= (1 - delta) * alone.table.cost * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_delta_of_weights_is_the_sum_over_outputs(seed):
    """Against plain fractions, with zeros, ties and weights beyond 64 bits."""
    generator = np.random.default_rng(seed)
    size = [3, 2**20, 2**61, 2**100][seed % 4]
    rows = [[int(share * size) if share > 0.3 else 0 for share in row] for row in generator.random((4, 5))]
    total = max(map(sum, rows)) + 1
    rows = [[*row, total - sum(row)] for row in rows]
    epsilon = float(generator.choice([1e-9, 0.5, 3.0, 50.0]))
    plain = max(
        sum((max(Fraction(0), a - exp_below(epsilon) * b) for a, b in zip(x, z, strict=True)), Fraction(0))
        for x in rows
        for z in rows
    )
    assert delta_of_weights(rows, epsilon) == plain / total


@pytest.mark.parametrize("delta", [1e-17, 1e-9, 1e-3, 0.5, 0.999])
def test_any_perturbed_pair_of_channels_is_repaired(delta):
    """The free channel may be anything and the private one wrong by 10⁻³: the weights are still (ε, δ)-private."""
    generator = np.random.default_rng(7)
    private = optimal_channel(generator.random((9, 11)), 1.0).probabilities
    free = generator.dirichlet(np.full(11, 0.05), 9)
    weights = private_weights(private + 1e-3 * generator.normal(size=private.shape), 1.0, delta, free)
    assert set(weights.sum(axis=1)) == {TOTAL}
    found = delta_of_weights(weights.tolist(), 1.0)
    assert found <= Fraction(delta)
    assert delta < 1e-3 or found > 0


@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-18, 1e-13, 1e-11, 1e-10, 1e-8, 1e-6, 1e-4])
@pytest.mark.parametrize(("bias", "bins", "epsilon"), [("soft", 2, 0.1), ("none", 3, 0.01), ("soft", 8, 39.0)])
@pytest.mark.by_day(15)
def test_whatever_delta_is_allowed_nothing_is_lost_by_it(bias, bins, epsilon, delta):
    """A δ of less than one unit, and channels that tell nearly nothing, whose rows are all alike but for rounding."""
    alone = TailoredNoise(Interval(0, 1), epsilon, bins=bins, bias=bias)
    channel = TailoredNoise(Interval(0, 1), epsilon, delta, bins=bins, bias=bias)
    assert channel.table.cost <= alone.table.cost * (1 + 1e-6) + 1e-12
    assert delta_of_weights(channel.weights.tolist(), epsilon) <= Fraction(delta)


@pytest.mark.parametrize("at", [0.001, 0.01, 0.2, 0.3, 1.1, 3.0, 800.0])
def test_a_channel_that_never_fails_at_its_stated_epsilon_verifies(at):
    """0.01 as a float is above 0.01 as it is written: the last digit is no reason to turn it down."""
    for weights in ([[3, 1], [3, 1]], [[10_000, 10_000], [10_001, 9_999]], [[3, 1], [1, 3]], [[4, 0], [2, 2]]):
        event = ChannelEvent(weights, at=at, adjacency=REPLACE_ONE)
        record = Certificate.issue(subject="x", events=[event], proofs=["tailored_noise"])
        assert verify(record).ok, weights
