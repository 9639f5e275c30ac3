"""The page of measured and generated counts: what it says of pairs that were measured more than once."""

import numpy as np
import pytest

from sfumato.release.synthetic.page import marginals_page
from sfumato.release.synthetic.result import Measured

LEVELS = (("no", "yes"), ("a", "b"))


def table(counts: list[list[float]], error: float) -> Measured:
    return Measured(("ill", "ward"), LEVELS, np.array(counts), error, np.array([[50.0, 50.0], [50.0, 50.0]]))


@pytest.mark.parametrize("copies", [1, 3])
def test_a_pair_is_named_once_however_often_it_was_measured(copies):
    measured = [table([[60.0, 40.0], [50.0, 50.0]], 2.0)] * copies
    page = marginals_page("Counts", measured)
    assert page.count("ill and ward") == 1
    assert "0.050" in page  # as far off as each of its measurements, which agree


def test_measurements_count_by_their_precision():
    precise, vague = table([[60.0, 40.0], [50.0, 50.0]], 1.0), table([[40.0, 60.0], [50.0, 50.0]], 3.0)
    assert "0.040" in marginals_page("Counts", [precise, vague])  # (9 · 60 + 1 · 40) / 10 = 58
