"""How many records: monotone where it must be, every loss and method, and features that reach what they promise."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.learn import sample_size
from sfumato.learn.sample_size import random_features_needed


@pytest.mark.paper("003", "Thm 3, 4", "learn/sample_size.py")
@pytest.mark.parametrize("loss", ["logistic", "huber", "smoothed_hinge"])
@pytest.mark.parametrize("method", ["objective", "output"])
@pytest.mark.by_day(3)
def test_every_loss_and_method_has_an_answer_at_every_width(loss, method):
    """And it grows with the width, with less budget, with less excess."""
    wide = [sample_size(0.05, 1.0, 1e-6, features=width, loss=loss, method=method) for width in (20, 105, 3000)]
    assert wide == sorted(wide)
    assert sample_size(0.05, 0.1, features=105, loss=loss, method=method) > wide[1]
    assert sample_size(0.01, 1.0, 1e-6, features=105, loss=loss, method=method) > wide[1]


@pytest.mark.parametrize("against", ["linear", "bounded", "norm"])
def test_without_privacy_data_are_still_needed(against):
    """The printed bounds for kernels would need none as ε grows; the sample's own term stays."""
    features = 20 if against == "linear" else None
    endless = sample_size(0.1, 1e6, 0.1, features=features, length=3.0, against=against)
    assert endless >= (3.0 / 0.1) ** 2


@pytest.mark.paper("003", "Thm 6, 7", "learn/sample_size.py")
@pytest.mark.parametrize("against", ["bounded", "norm"])
def test_so_many_random_features_reach_a_function_of_the_kernel(against):
    """f(x) = k(x₀, x) has |a| = 1 and norm 1; a fortieth of the features is not enough."""
    generator, excess = np.random.default_rng(0), 0.3
    centre, rows = generator.uniform(-1, 1, 3), generator.uniform(-1, 1, (400, 3))
    truth = np.exp(-2.0 * ((rows - centre) ** 2).sum(axis=1))

    def reached(pairs: int) -> float:
        near = 0
        for _ in range(40):
            frequencies = generator.normal(scale=2.0, size=(3, pairs))
            found = np.cos((rows - centre) @ frequencies).mean(axis=1)
            near += float(np.sqrt(((found - truth) ** 2).mean())) <= excess
        return near / 40

    enough = random_features_needed(excess, 1.0, against=against)
    assert reached(enough) >= 0.95
    assert reached(max(1, enough // 400 if against == "norm" else enough // 40)) < 0.95


def test_questions_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="features follow"):
        sample_size(0.1, 1.0, features=3, against="bounded")
    with pytest.raises(InputError, match="smoothed_hinge"):
        sample_size(0.1, 1.0, features=3, loss="hinge")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="whole number"):
        sample_size(0.1, 1.0)
