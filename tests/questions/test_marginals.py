"""Marginals as a question: what is drawn, what is read off, what is told; and histograms made consistent."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.questions.axis import Axis
from sfumato.questions.family import families
from sfumato.questions.grid import CELL, CHANCE
from sfumato.questions.histogram import Histogram
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.marginals import Marginals
from sfumato.questions.registry import question_from_dict
from sfumato.questions.sums import Sums
from tests.questions import dense


def axes_of(sizes) -> tuple[Axis, ...]:
    return tuple(
        Axis(f"x{place}(P)", levels=tuple(f"v{level}" for level in range(size))) for place, size in enumerate(sizes)
    )


def some_marginals(seed: int, largest: int = 150) -> tuple[Marginals, random.Random]:
    chance = random.Random(seed)
    sizes, _ = dense.random_workload(chance, largest)
    rows = chance.choice([1, 1, 3])
    question = Marginals(
        axes=axes_of(sizes),
        whole=chance.randint(1, len(sizes)),
        rows=rows,
        everybody=rows == 1 and chance.random() < 0.6,
        relation=chance.choice(["replace-one", "add-remove"]),
    )
    return question, chance


def sums_of(question, rows) -> Sums:
    sizes = [axis.size for axis in question.axes]
    entries = question.entries()
    counted = dense.tables_of(sizes, tuple(entry.axes for entry in entries), rows)
    units = tuple(counted[entry.axes].reshape(-1).astype(object) for entry in entries)
    return Sums(entries, units, units, len(rows))


def drawn(question, rows, pure):
    return [Fraction(one) for one in question.encode(sums_of(question, rows), pure).tolist()]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.by_day(5)
def test_no_neighbour_moves_the_numbers_farther_than_claimed(seed):
    """People of up to `rows` rows, or of exactly one, replaced, added or removed, in random company."""
    question, chance = some_marginals(seed, largest=40)
    records = dense.records([axis.size for axis in question.axes])
    moves = question.moves()

    def person():
        count = 1 if question.everybody else chance.randint(0, question.rows)
        return chance.choices(records, k=count) if chance.random() < 0.5 else [chance.choice(records)] * count

    company = chance.choices(records, k=5)
    farthest = 0.0
    for _ in range(60):
        one = person()
        other = person() if question.replaces else []
        for pure, limit in ((True, moves.l1), (False, moves.l2)):
            moved = [
                a - b
                for a, b in zip(
                    drawn(question, company + one, pure), drawn(question, company + other, pure), strict=True
                )
            ]
            size = float(sum(map(abs, moved))) if pure else math.sqrt(sum(x * x for x in moved)) * (1 - 1e-15)
            assert size <= limit
            farthest = max(farthest, size / limit if limit else 1.0)
    assert farthest > 0.5


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("pure", [False, True])
def test_without_noise_every_number_is_the_count(seed, pure):
    question, chance = some_marginals(seed)
    rows = chance.choices(dense.records([axis.size for axis in question.axes]), k=30)
    sums = sums_of(question, rows)
    count = 30.0 if question.has_public_count else None
    figures = question.figures(np.asarray(question.encode(sums, pure), dtype=float), NoiseLaw(), count, pure)
    truth = dense.tables_of([axis.size for axis in question.axes], question.workload.tables, rows)
    expected = np.concatenate([truth[table].reshape(-1) for table in question.workload.tables])
    np.testing.assert_allclose([figure.value for figure in figures], expected, atol=1e-8)
    np.testing.assert_allclose(question.truth(sums), expected)
    assert len(figures) == question.size == len(question.labels()) == len(question.parts())
    assert len(set(question.parts())) == question.size
    assert len(question.encode(sums, pure)) == question.drawn_size(pure)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.by_day(3)
def test_intervals_cover_and_errors_are_those_predicted(seed, pure):
    question, chance = some_marginals(seed, largest=60)
    moves = question.moves()
    if moves.l2 == 0:
        pytest.skip("public")
    adjacency = REPLACE_ONE if question.replaces else ADD_REMOVE
    scale = moves.l1 if pure else moves.l2
    noise = (Laplace if pure else Gaussian)(scale, scale, adjacency, question.drawn_size(pure), random_state=seed)
    law = NoiseLaw(laplace=(scale,)) if pure else NoiseLaw(noise.error())
    rows = chance.choices(dense.records([axis.size for axis in question.axes]), k=30)
    sums = sums_of(question, rows)
    exact, truth = question.encode(sums, pure), question.truth(sums)
    count = 30.0 if question.has_public_count else None
    drawn_numbers = noise.sample(exact, 1500)
    decoded = [
        np.concatenate([one.reshape(-1) for one in question._tables(one, count, pure).values()])
        for one in drawn_numbers
    ]
    figures = question.figures(drawn_numbers[0], law, count, pure)
    np.testing.assert_allclose([figure.value for figure in figures], decoded[0])
    predicted = np.array(question.predicted(law, 30.0, pure))
    np.testing.assert_allclose([figure.standard_error for figure in figures], predicted[:, 0])
    np.testing.assert_allclose([(f.high - f.low) / 2 for f in figures], predicted[:, 1], atol=1e-9)
    errors = np.array(decoded) - truth
    np.testing.assert_allclose(np.std(errors, axis=0), predicted[:, 0], rtol=0.15, atol=1e-9)
    np.testing.assert_allclose(
        np.mean(np.square(errors)) * question.size, question.error(law.variance, 30, pure), rtol=0.12
    )
    inside = np.mean(np.abs(errors) <= predicted[:, 1] + 1e-9)
    assert 0.93 <= inside <= 0.97 or np.all(predicted[:, 0] < 1e-9)


def test_a_pure_promise_draws_what_is_most_exact():
    few = Marginals(axes=axes_of((2, 3, 4)), whole=2, everybody=True)
    assert few.plain.drawn == ((0, 1, 2),)
    assert few.moves().l1 == 2.0
    many = Marginals(axes=axes_of((10,) * 6), whole=2, everybody=True)
    assert len(many.plain.drawn) == 15
    assert many.moves().l1 == 30.0


def test_rows_that_count_by_a_probability_are_drawn_exactly():
    """Cells of a third and of 10⁶ thirds: in whole numbers of the grid's step, which no float holds together."""
    question = Marginals(axes=axes_of((2, 3, 2)), whole=2, expected=True)
    step = Fraction(CHANCE.step)
    third = round(Fraction(1, 3) / step)
    units = tuple(np.array([third, *[third * 10**6] * (size - 1)], dtype=object) for size in question.sizes())
    sums = Sums(question.entries(), units, units, Fraction(2))
    drawn_plain = [Fraction(one) for one in question.encode(sums, True)]
    assert drawn_plain == [int(one) * step for table in units for one in table]
    steps = [Fraction(one) / step * 2**question.strategy.digits for one in question.encode(sums, False)]
    assert all(one.denominator == 1 for one in steps)
    np.testing.assert_allclose(question.truth(sums), [float(one) for one in drawn_plain])


def test_it_is_written_down_and_read_again():
    question, _ = some_marginals(5)
    assert question_from_dict(question.to_dict()) == question


def test_what_cannot_be_asked_is_said():
    assert "3 are listed" in Marginals(axes=axes_of((2, 2, 2)), whole=4).refusal()
    assert "cells" in Marginals(axes=axes_of((200, 200, 200)), whole=3).refusal()
    assert not Marginals(axes=axes_of((2, 2, 2)), whole=3).refusal()


def test_columns_of_one_level_are_public():
    question = Marginals(axes=axes_of((1, 1)), whole=2, everybody=True)
    assert question.is_public
    (figure,) = question.figures(np.zeros(0), NoiseLaw(), 12.0)
    assert (figure.value, figure.standard_error) == (12.0, 0.0)


# ── histograms that share variables ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(12))
def test_a_family_is_least_squares_of_its_histograms(seed):
    chance = random.Random(seed)
    sizes, tables = dense.random_workload(chance, largest=60)
    axes, everybody = axes_of(sizes), bool(seed % 2)
    orders = [chance.sample(table, len(table)) for table in tables]
    members = {
        f"h{place}": Histogram(axes=tuple(axes[c] for c in order), everybody=everybody)
        for place, order in enumerate(orders)
    }
    (family,) = families(members, dict.fromkeys(members, "rows"))
    laws = {name: NoiseLaw(chance.uniform(0.5, 4)) for name in members}
    rng = np.random.default_rng(seed)
    noisy = {name: rng.normal(5, 2, question.size) for name, question in members.items()}
    found = family.figures(noisy, laws, 25.0 if everybody else None)
    rows, spread, values = [], [], []
    for name, order in zip(members, orders, strict=True):
        for cell in itertools.product(*(range(sizes[c]) for c in order)):
            rows.append([float(all(r[c] == v for c, v in zip(order, cell, strict=True))) for r in dense.records(sizes)])
            spread.append(laws[name].variance)
        values.extend(noisy[name])
    matrix = np.array(rows)
    facts = np.ones((1, matrix.shape[1])) if everybody else np.zeros((0, matrix.shape[1]))
    best, covariance = dense.least_squares(
        matrix, np.array(spread), np.array(values), facts, np.array([25.0]) if everybody else np.zeros(0)
    )
    ours = [figure for name in members for figure in found[name]]
    np.testing.assert_allclose([figure.value for figure in ours], matrix @ best, atol=1e-6)
    np.testing.assert_allclose(
        [figure.standard_error for figure in ours],
        np.sqrt(np.maximum(np.diag(matrix @ covariance @ matrix.T), 0)),
        atol=1e-6,
    )
    predicted = family.predicted(laws)
    assert [pair[0] for name in members for pair in predicted[name]] == pytest.approx([f.standard_error for f in ours])


def test_histograms_of_other_rows_stay_apart():
    age, sex = axes_of((2, 3))
    members = {
        "a": Histogram(axes=(age,)),
        "b": Histogram(axes=(age, sex)),
        "c": Histogram(axes=(sex,)),
        "again": Histogram(axes=(age,)),
    }
    rows = {"a": "all", "b": "all", "c": "the old", "again": "all"}
    assert [tuple(name for name, _ in family.members) for family in families(members, rows)] == [
        ("a", "b"),
        ("c",),
        ("again",),
    ]
    assert CELL.step == 1.0
