"""Numbers at the ends of what floats hold end in a result or in an error of the one tree, never in a bare one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sfumato.core import REPLACE_ONE, BoxEvent, Interval, PureDP, Schema
from sfumato.core.certificate import Certificate
from sfumato.errors import SfumatoError
from sfumato.evidence import verify
from sfumato.learn import (
    KernelMeanClassifier,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateSVC,
    PrivateSVDD,
)
from sfumato.mechanisms import FiniteChannel
from sfumato.release import (
    BoxRelease,
    GaussianRelease,
    LaplaceRelease,
    NoiseAwareLinearRegression,
    NoiseAwareLogisticRegression,
)

ENDS = [5e-324, 1e-199, 1e-150, 1e-71, 1e-69, 1e-30, 1e30, 1e69, 1e71, 1e150, 1e300, 8e307]
RELEASES = {
    "gaussian": lambda schema: GaussianRelease(schema, epsilon=0.1, delta=1e-6),
    "gaussian, much": lambda schema: GaussianRelease(schema, epsilon=30.0, delta=1e-6),
    "laplace": lambda schema: LaplaceRelease(schema, epsilon=1e-3),
    "box": BoxRelease,
    "stiff box": lambda schema: BoxRelease(schema, trade_off=0.01),
}


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.by_day(12)
def test_a_release_of_any_width_ends_in_words_or_numbers(kind, end):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = RELEASES[kind](Schema({"a": Interval(-end, end)})).release({"a": [0.0, end]})
        except SfumatoError:
            assert not 1e-70 <= 2 * end <= 1e70
            return
    assert np.isfinite(np.array(out.table["a"], dtype=float)).all()
    assert np.isfinite(out.noise.covariance).all()
    assert np.all(out.noise.covariance > 0)


HUGE = [[0.1, 0.2], [10**400, 1]] * 10
LEARNERS = [
    lambda: PrivateLogisticRegression(1.0, 1e-6, classes=[0, 1]),
    lambda: PrivateSVC(1.0, 1e-6, classes=[0, 1]),
    lambda: PrivateLinearRegression(1.0, 1e-6, target=(0, 1)),
    lambda: KernelMeanClassifier(1.0, 1e-6, n_components=5, classes=[0, 1]),
    lambda: PrivateSVDD(1.0, 1e-6, n_components=5),
    lambda: NoiseAwareLinearRegression(0.1),
    lambda: NoiseAwareLogisticRegression(0.1),
]


@pytest.mark.parametrize("make", LEARNERS)
def test_whole_numbers_beyond_all_floats_are_refused_in_words(make):
    with pytest.raises(SfumatoError):
        make().fit(HUGE, [0, 1] * 10)


@pytest.mark.parametrize("make", [LEARNERS[2], LEARNERS[5]])
def test_so_are_targets(make):
    with pytest.raises(SfumatoError):
        make().fit([[0.1, 0.2], [0.3, 0.1]] * 10, [0, 10**400] * 10)


@pytest.mark.parametrize("half_width", [1e-200, 1e100, 1e200])
def test_a_box_of_any_width_is_verified(half_width):
    event = BoxEvent(half_width / 20, half_width, adjacency=REPLACE_ONE)
    assert verify(Certificate.issue(subject="x", events=[event], proofs=["box"])).failures == ()


@pytest.mark.parametrize("outputs", [65_535, 65_537, 70_000])
@pytest.mark.by_day(1)
def test_a_channel_of_many_outputs_is_drawn_from(outputs):
    chances = np.full((2, outputs), 1e-9)
    chances[0, outputs - 1] = chances[1, 3] = 0.9
    channel = FiniteChannel.for_guarantee(PureDP(2.0), 1.0, REPLACE_ONE, probabilities=chances, random_state=1)
    drawn = channel.sample(0, 2000)
    assert abs(np.mean(drawn == outputs - 1) - channel.probabilities[0, outputs - 1]) < 0.06
    assert drawn.max() < outputs
