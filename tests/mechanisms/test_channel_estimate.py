"""Estimates from published values: unbiased where the channel allows it, honest where it does not; files; choices."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from sfumato.core import REPLACE_ONE, Interval, PureDP
from sfumato.errors import CertificateError, DataError, InputError
from sfumato.evidence import verify
from sfumato.mechanisms import TailoredNoise
from sfumato.mechanisms.channel_estimate import calibrate, estimate, likeliest_histogram
from sfumato.mechanisms.tailored.choice import tailor
from sfumato.mechanisms.tailored.grid import PrivateQuantiles
from sfumato.mechanisms.tailored.plot import clipped_errors, laplace_below
from sfumato.mechanisms.tailored.regression import tailor_for_regression, uncertainty
from sfumato.mechanisms.tailored.uses import as_use

UNIT = Interval(0.01, 1)


def people(count: int, seed: int = 0) -> np.ndarray:
    return 0.01 + 0.99 * np.random.default_rng(seed).beta(2, 3, count)


# Means.


@pytest.mark.parametrize(("use", "function"), [("identity", lambda x: x), ("square", np.square), ("log", np.log)])
@pytest.mark.parametrize("method", ["unbiased", "likelihood"])
@pytest.mark.by_day(2)
def test_intervals_cover(use, function, method):
    """Thirty samples of a law that is not the prior: the 99 % interval misses at most twice."""
    misses = 0
    for seed in range(30):
        channel = TailoredNoise(UNIT, 2.0, uses=["identity"], bias="unbiased", random_state=seed)
        values = people(3000, seed)
        found = estimate(channel, channel(values), use, method=method, confidence=0.99)
        misses += not found.low <= function(values).mean() <= found.high
    assert misses <= 2


def test_decoding_is_unbiased_and_the_naive_mean_is_not():
    values = people(2000)
    gaps, naive = [], []
    for seed in range(60):
        channel = TailoredNoise(UNIT, 1.0, uses=["log"], bias="soft", outputs=41, random_state=seed)
        found = channel.estimate(channel(values), "log", method="unbiased")
        gaps.append(found.value - np.log(values).mean())
        naive.append(found.naive - np.log(values).mean())
    # What the decoder cannot tell is part of the answer: the mean gap stays within it.
    error = np.std(gaps) / math.sqrt(len(gaps))
    assert abs(np.mean(gaps)) <= found.bias + 4 * error
    assert abs(np.mean(naive)) > 0.05


def test_what_a_channel_cannot_tell_is_said():
    """Two outputs cannot carry the mean of every law: the bias bound is met by a law that fools the decoder."""
    channel = TailoredNoise(UNIT, 0.5, uses=["identity"], bias="none", random_state=1)
    assert len(channel.outputs) == 2
    found = channel.estimate(channel(people(5000)))
    assert found.bias > 0.1
    worst = 0.0
    for place in channel.inputs:
        fooled = channel.estimate(channel(np.full(100_000, place)))
        worst = max(worst, abs(fooled.value - place))
        assert fooled.low <= place <= fooled.high
    assert worst > 0.5 * found.bias


def test_histograms_come_back():
    values = people(40_000)
    channel = TailoredNoise(UNIT, 5.0, bins=8, random_state=2)
    found = channel.estimate(channel(values), "histogram")
    truth = np.histogram(values, channel.edges)[0] / len(values)
    assert np.abs(found.value - truth).max() < 0.01
    assert np.all((found.low <= truth) & (truth <= found.high))
    assert np.abs(found.naive - truth).max() > np.abs(found.value - truth).max()
    assert len(found.names) == 8


def test_likeliest_histogram_climbs():
    generator = np.random.default_rng(3)
    probabilities = generator.dirichlet(np.ones(6), size=4)
    counts = np.array([500.0, 300.0, 100.0, 50.0, 30.0, 20.0])
    prior = np.full(4, 0.25)
    shares = likeliest_histogram(probabilities, counts, prior)

    def score(s):
        return counts @ np.log(s @ probabilities) + 4 * prior @ np.log(s)

    for other in generator.dirichlet(np.ones(4), size=200):
        assert score(0.98 * shares + 0.02 * other) <= score(shares) + 1e-6
    careful = likeliest_histogram(probabilities, 1000 * prior @ probabilities, prior, careful=True)
    assert np.array_equal(careful, prior)  # nothing speaks against the prior


def test_wrong_questions_are_refused():
    channel = TailoredNoise(UNIT, 1.0, bins=4, random_state=1)
    published = channel(people(50))
    for question in ({"method": "best"}, {"confidence": 1.0}, {"use": "logg"}, {"target": [1.0]}):
        with pytest.raises(InputError):
            estimate(channel, published, **({"use": "identity"} | question))
    with pytest.raises(DataError):
        estimate(channel, people(50))


# Regression.


def test_regression_is_not_pulled_to_zero():
    """Calibration finds slopes that the naive fit shrinks, and its interval covers them."""
    values = np.random.default_rng(1).uniform(0.01, 1, 40_000)
    target = 1 + 2 * values + np.random.default_rng(2).normal(size=values.size)
    channel = TailoredNoise(UNIT, 2.0, bias="soft", bins=10, random_state=5)
    found = channel.estimate(channel(values), ["identity"], target=target)
    assert found.names == ("intercept", "identity")
    assert found.low[1] <= 2 <= found.high[1]
    assert abs(found.value[1] - 2) < 0.1
    assert abs(found.naive[1] - 2) > 0.2


def test_a_direction_that_is_not_shown_has_no_interval():
    values = people(4000)
    channel = TailoredNoise(UNIT, 0.5, uses=["identity", "log"], bias="none", random_state=5)
    found = channel.estimate(channel(values), ["identity", "log"], target=values)
    assert np.isinf(found.high).all()
    fit = calibrate(channel, channel(values), values, ["identity", "log"])
    assert np.isfinite(fit.coefficients()).all()


def test_a_channel_for_regression_shows_every_direction():
    plain = TailoredNoise(UNIT, 0.5, uses=["identity", "log"], bias="none", bins=12)
    made = tailor_for_regression(UNIT, 0.5, ["identity", "log"], records=10_000, bins=12)
    assert uncertainty(made, made.uses, 10_000) < 0.8 * uncertainty(plain, plain.uses, 10_000)
    assert made.guarantee().implies(PureDP(0.5)) is True
    assert verify(made.certificate()).ok


@pytest.mark.paper("002", "§5.4", "mechanisms/tailored/choice.py")
def test_both_orders_are_designed_and_the_better_is_chosen():
    choice = tailor(UNIT, 2.0, uses=["identity", "log"], bins=12)
    assert choice.order == "tns∘dp"
    assert choice.channels == (choice.joint,)
    assert all(channel.guarantee().implies(PureDP(1.0)) is True for channel in choice.separate)
    assert sum(choice.errors["tns∘dp"]) < sum(choice.errors["dp∘tns"])
    assert choice.report().count("(chosen)") == 1
    for use in ("identity", "log"):
        assert choice.joint.decoded_error(use) <= choice.joint.predicted_error(use) + 1e-12


# Pictures and files.


def test_a_channel_draws_itself():
    channel = TailoredNoise(UNIT, 1.0, uses=["log"], bins=8)
    figure = channel.plot()
    assert len(figure.axes) == 3
    assert len(figure.axes[1].lines) == 3
    measured = clipped_errors(channel, as_use("log"), laplace_below)
    generator = np.random.default_rng(0)
    noisy = np.clip(channel.inputs[:, None] + generator.laplace(0, 0.99, (8, 200_000)), 0.01, 1)
    simulated = ((np.log(noisy) - np.log(channel.inputs)[:, None]) ** 2).mean(axis=1)
    assert measured == pytest.approx(simulated, rel=0.02)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_channel_survives_its_file(tmp_path, delta):
    channel = TailoredNoise(UNIT, 1.0, delta, uses=["log", ("identity", 2.0)], bins=6, outputs=6)
    channel.write(tmp_path / "channel.json")
    again = TailoredNoise.read(tmp_path / "channel.json")
    assert np.array_equal(again.weights, channel.weights)
    assert np.array_equal(again.outputs, channel.outputs)
    assert np.array_equal(again.edges, channel.edges)
    assert again.guarantee() == channel.guarantee()
    assert again.event() == channel.event()
    assert [(use.name, use.weight) for use in again.uses] == [("log", 1.0), ("identity", 2.0)]
    assert again.error() == pytest.approx(channel.error())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["channel.json"]


def test_functions_stay_with_their_author(tmp_path):
    channel = TailoredNoise(UNIT, 1.0, uses=[np.log1p], bins=4)
    channel.write(tmp_path / "channel.json")
    again = TailoredNoise.read(tmp_path / "channel.json")
    assert np.isin(again([0.2, 0.9]), channel.outputs).all()
    with pytest.raises(InputError, match="pass your own copy"):
        again.error()


def test_private_bins_bring_their_cost_into_the_file(tmp_path):
    drawn = PrivateQuantiles.draw(people(2000), UNIT, 4, 1.0, REPLACE_ONE, random_state=1)
    channel = TailoredNoise(UNIT, 1.0, binning=drawn)
    certificate = channel.certificate()
    assert len(certificate.events) == 4
    assert verify(certificate).ok
    channel.write(tmp_path / "channel.json")
    assert TailoredNoise.read(tmp_path / "channel.json").edges == pytest.approx(drawn.edges)


def forged(record: dict, what: str) -> dict:
    event = record["certificate"]["events"][0]
    match what:
        case "weights":
            event["weights"][0][0] += 1 << 50
            event["weights"][0][1] -= 1 << 50
        case "total":
            event["weights"][0][0] += 1
        case "outputs":
            record["outputs"][0] = record["outputs"][1]
        case "inputs":
            record["inputs"].pop()
        case "edges":
            record["edges"][1] = -5.0
        case "version":
            record["version"] = 99
        case "event":
            event["kind"] = "GaussianEvent"
        case "epsilon":
            record["design"]["epsilon"] = 0.1
            record["design"]["delta"] = 0.01
        case "missing":
            del record["certificate"]
    return record


@pytest.mark.parametrize(
    "what", ["weights", "total", "outputs", "inputs", "edges", "version", "event", "epsilon", "missing"]
)
def test_a_damaged_file_is_refused(tmp_path, what):
    TailoredNoise(UNIT, 1.0, bins=5).write(tmp_path / "channel.json")
    record = json.loads((tmp_path / "channel.json").read_text())
    (tmp_path / "bad.json").write_text(json.dumps(forged(record, what)))
    with pytest.raises(CertificateError, match="Nothing was drawn"):
        TailoredNoise.read(tmp_path / "bad.json")


def test_no_file_no_channel(tmp_path):
    (tmp_path / "text.json").write_text("hello")
    for name in ("text.json", "nothing.json"):
        with pytest.raises(CertificateError):
            TailoredNoise.read(tmp_path / name)
