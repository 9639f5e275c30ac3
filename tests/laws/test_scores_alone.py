"""Gradients that are published under any weights: a record more does not turn the slopes of others.

Records that stand at right angles to long weights have scores that rounding alone decides.
"""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.centres.gradients import GradientSums
from sfumato.core import ADD_REMOVE, Categories, Interval, Schema
from sfumato.learn.rows import UnitRows
from sfumato.learn.stepped import SteppedClassifier


def at_right_angles(generator, number, columns):
    """One record, many times over, behind another one; and weights across it."""
    record, weights = generator.normal(size=(2, columns))
    record /= np.linalg.norm(record)
    weights -= record * (record @ weights)
    rows = np.repeat(record[None], number + 1, axis=0)
    rows[0] = 0.0
    return rows, 1e30 * weights


@pytest.mark.parametrize("columns", [3, 8, 40])
def test_a_record_more_moves_a_step_by_its_own_length(columns):
    generator = np.random.default_rng(0)
    schema = Schema({f"c{place}": Interval(-1, 1) for place in range(columns)})
    model = SteppedClassifier(1.0, 1e-6, schema, ADD_REMOVE, [0, 1], norm=1.0)

    def step(rows, weights):
        unit = UnitRows(rows, 1.0, model.constant)
        return model._pulled(unit, np.zeros((len(rows), 2)), np.append(weights, 0.0)[None, : unit.width])

    for number in (5, 6, 7, 8, 18, 47):
        for _ in range(20):
            rows, weights = at_right_angles(generator, number, columns)
            assert np.linalg.norm(step(rows, weights) - step(rows[1:], weights)) <= model.longest * (1 + 1e-9)


@pytest.mark.parametrize("columns", [3, 8, 40])
def test_a_patient_more_moves_what_a_centre_adds_up_by_their_own_gradient(columns):
    generator = np.random.default_rng(0)
    domains = {f"c{place}": Interval(0, 1) for place in range(columns)}
    schema = Schema({**domains, "ill": Categories(["no", "yes"])})
    for number in (5, 6, 7, 8, 18, 47):
        for _ in range(20):
            rows, weights = at_right_angles(generator, number, columns + 1)
            rows /= rows[1, 0]  # a centre puts a 1 in front of each
            rows[0] = 1.0
            sums = GradientSums(schema, "ill", "yes", tuple(weights), 1.0)
            cells = np.hstack([rows[:, 1:], np.tile([1.0, 0.0], (number + 1, 1))])
            alone = sums._contributions(cells[1:])
            np.testing.assert_array_equal(sums._contributions(cells)[1:], alone)
