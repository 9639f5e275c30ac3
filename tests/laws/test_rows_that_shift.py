"""A record more moves all behind it in a table: what they add to a sum of features is the same, at any bandwidth.

Compared: sums before noise, of a table and the same with one record more, against what the noise was made for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE
from sfumato.learn import (
    KernelMeanClassifier,
    KernelMomentClassifier,
    KernelRidgeClassifier,
    KernelStepsClassifier,
)
from sfumato.learn.passes import ArrayPasses
from sfumato.learn.seeds import Seeds
from sfumato.learn.stream import fit_by_sums

WIDE, CLASSES = 40, [0, 1, 2]
KINDS = [KernelMeanClassifier, KernelMomentClassifier, KernelRidgeClassifier, KernelStepsClassifier]


class Tape:
    """Keeps the exact sums of a fit, and answers those of another fit with what was drawn for it."""

    def __init__(self, answers: list[np.ndarray] | None = None) -> None:
        self.exact: list[np.ndarray] = []
        self.drawn: list[np.ndarray] = []
        self.moved: list[float] = []
        self._answers = answers

    def __call__(self, seeds: Seeds, noise: object, exact: np.ndarray | Callable[[], np.ndarray]) -> np.ndarray:
        self.exact.append(np.ravel(exact() if callable(exact) else exact))
        self.moved.append(noise.sensitivity)
        seeded = seeds.seeded(noise)
        self.drawn.append(self._answers[len(self.drawn)] if self._answers else seeded(self.exact[-1]))
        return self.drawn[-1]

    def around(self, monkeypatch, fit: Callable[[], object]) -> object:
        def released(seeds: Seeds, noise: object, exact: np.ndarray | Callable[[], np.ndarray]) -> np.ndarray:
            return self(seeds, noise, exact)

        with monkeypatch.context() as patch:
            patch.setattr(Seeds, "released", released)
            return fit()


def tables(kind, records, gamma, streamed=False):
    """Fits of a table without and with one record more, in front of all others."""
    generator = np.random.default_rng(records)
    rows, labels = generator.uniform(-1, 1, (records + 1, WIDE)), generator.integers(3, size=records + 1)
    options = {"steps": 2, "public_size": 100} if kind is KernelStepsClassifier else {}

    def fit(first):
        model = kind(1.0, 1e-6, gamma=gamma, classes=CLASSES, adjacency=ADD_REMOVE, random_state=0, **options)
        model.set_params(n_components=12)
        if streamed:
            return fit_by_sums(model, ArrayPasses(rows[first:], labels[first:]))
        return model.fit(rows[first:], labels[first:])

    return (lambda: fit(1)), (lambda: fit(0))


CASES = [(kind, False) for kind in KINDS] + [(KernelMeanClassifier, True)]


@pytest.mark.parametrize("gamma", [0.1, 1e30, 1e100])
@pytest.mark.parametrize(("kind", "streamed"), CASES, ids=str)
@pytest.mark.by_day(5)
def test_a_record_more_moves_sums_by_itself_alone(kind, streamed, gamma, monkeypatch):
    for records in (1, 2, 5, 18, 47, 2048):
        without, with_one = tables(kind, records, gamma, streamed)
        first = Tape()
        one = first.around(monkeypatch, without)
        second = Tape(first.drawn)
        other = second.around(monkeypatch, with_one)
        assert len(first.exact) == len(second.exact) >= 1
        for exact, shifted, moved in zip(first.exact, second.exact, first.moved, strict=True):
            assert np.linalg.norm(exact - shifted) <= moved
        np.testing.assert_array_equal(one.weights_, other.weights_)
