"""Intervals of quantiles hold the quantile of the rows in at least 95 of 100 draws: drawn together and by cumulative
counts, five shapes, ties and empty tables, both adjacencies, public and secret numbers of rows.

The ends of an interval are public places, so it may hold the quantile more often than that; where it is cut at the end
of the range, or lies on a place with many rows, it always does. The bar is therefore from below.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from laws.truth import drawn_ranks
from sfumato.core import Adjacency
from sfumato.core.gaussian import gaussian_mu
from sfumato.questions import joint, quantile
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.joint import JointQuestion
from sfumato.questions.quantile import Quantile
from sfumato.questions.sums import Sums

SHAPES = ("even", "skewed", "two humps", "ties", "zeros")
WANTED = (0.1, 0.25, 0.5, 0.9)


def rows_of(shape: str, size: int, random: np.random.Generator) -> np.ndarray:
    values = {
        "even": lambda: random.uniform(0, 100, size),
        "skewed": lambda: np.exp(random.normal(0, 1, size)),
        "two humps": lambda: np.where(random.random(size) < 0.5, 20, 70) + random.normal(0, 3, size),
        "ties": lambda: random.integers(0, 9, size) * 11.0,
        "zeros": lambda: np.where(random.random(size) < 0.97, 0.0, random.uniform(0, 100, size)),
    }[shape]()
    return np.sort(np.round(np.clip(values, 0, 100), 2))


def question_of(relation: str, rows: int = 1) -> Quantile:
    return Quantile(
        values=("x(P)",), ranges=((0.0, 100.0),), numbers=WANTED, step=0.01, rows=rows,
        everybody=relation == "replace-one" and rows == 1, relation=relation,
    )  # fmt: skip


def truths(rows: np.ndarray) -> list[float]:
    """The smallest row with at least the wanted share at or below it."""
    return [float(rows[max(0, math.ceil(round(share * rows.size, 6)) - 1)]) for share in WANTED]


def inside(figures, rows: np.ndarray) -> list[bool]:
    return [one.low <= truth <= one.high for one, truth in zip(figures, truths(rows), strict=True)]


def drawn(shape: str, size: int, relation: str, epsilon: float, random: np.random.Generator) -> list[bool]:
    question, rows = question_of(relation), rows_of(shape, size, random)
    asked = JointQuestion(question, epsilon, Adjacency("person", relation), size)
    counts = np.bincount(question.places.cells_of(rows), minlength=question.places.count)
    known = float(size) if question.has_public_count else None
    return inside(asked.answer(counts, known, int(random.integers(1 << 40))), rows)


def summed(shape: str, size: int, relation: str, epsilon: float, random: np.random.Generator, pure: bool) -> list[bool]:
    question, rows = question_of(relation), rows_of(shape, size, random)
    counts = np.bincount(question.places.cells_of(rows), minlength=question.places.count).astype(object)
    exact = question.encode(Sums(question.entries(), (counts,), (counts,), size), pure)
    if pure:
        scale = question.moves().l1 / epsilon
        return inside(
            question.figures(exact + random.laplace(0, scale, exact.size), NoiseLaw(laplace=(scale,)), None, True), rows
        )
    scale = question.moves().l2 / gaussian_mu(epsilon, 1e-6)
    return inside(question.figures(exact + random.normal(0, scale, exact.size), NoiseLaw(scale**2)), rows)


WAYS = {
    "drawn together": drawn,
    "Gaussian counts": lambda *given: summed(*given, pure=False),
    "Laplace counts": lambda *given: summed(*given, pure=True),
}


def shares(way: str, repeats: int, sizes: tuple[int, ...] = (30, 1_000, 20_000)) -> dict[str, float]:
    random = np.random.default_rng(sum(map(ord, way)))
    found: dict[str, list[bool]] = {}
    cases = product(SHAPES, sizes, ("replace-one", "add-remove"), (0.3, 2.0))
    for shape, size, relation, epsilon in cases:
        for _ in range(repeats):
            found.setdefault(shape, []).extend(WAYS[way](shape, size, relation, epsilon, random))
    return {shape: float(np.mean(answers)) for shape, answers in found.items()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.by_day(1)
def test_intervals_hold_the_quantiles(way):
    assert {shape: share for shape, share in shares(way, 3).items() if share < 0.92} == {}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_intervals_hold_the_quantiles_at_length(way):
    assert {shape: share for shape, share in shares(way, 60).items() if share < 0.94} == {}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_law_finds_intervals_that_trust_the_counts_too_much(way, monkeypatch):
    monkeypatch.setattr(joint, "LAPLACE_95", 0.2)
    monkeypatch.setattr(quantile, "LAPLACE_95", 0.2)
    monkeypatch.setattr(quantile, "NORMAL_95", 0.2)
    found = shares(way, 3, (1_000, 20_000))
    assert min(found["even"], found["skewed"]) < 0.92


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_of_nobody_the_whole_range_is_left(relation):
    question = question_of("add-remove")
    asked = JointQuestion(question, 1.0, Adjacency("person", relation), 1000)
    answers = [asked.answer(np.zeros(question.places.count, dtype=np.int64), None, seed) for seed in range(20)]
    whole = [one.low == 0 and one.high == 100 for answer in answers for one in answer]
    assert np.mean(whole) > 0.9


def strays(studies: int) -> list[tuple[float, float, float]]:
    """Quantiles drawn at ε = 10⁶ from few rows that are not between the two rows which their definition allows."""
    found = []
    for seed in range(studies):
        random = np.random.default_rng([4, seed])
        wanted = tuple(sorted({round(float(share), 5) for share in random.uniform(0.02, 0.98, random.integers(1, 5))}))
        rows = rows_of(SHAPES[seed % len(SHAPES)], int(random.integers(1, 40)), random)
        question = replace(question_of("replace-one"), numbers=wanted)
        asked = JointQuestion(question, 1e6, Adjacency("person", "replace-one"), rows.size)
        counts = np.bincount(question.places.cells_of(rows), minlength=question.places.count)
        padded = np.concatenate([[0.0], rows, [100.0]])
        figures = asked.answer(counts, float(rows.size), seed)
        for below, figure in zip(drawn_ranks(list(wanted), rows.size), figures, strict=True):
            ends = padded[min(below)] - 0.005, padded[max(below) + 1] + 0.005
            found += [] if ends[0] <= figure.value <= ends[1] else [(*ends, figure.value)]
    return found


def test_without_noise_a_drawn_quantile_lies_between_the_rows_that_its_definition_allows():
    assert strays(60) == []


def test_the_law_finds_a_mechanism_that_does_not_see_the_first_row(monkeypatch):
    honest = JointQuestion.answer

    def blind(self, counts, count, random_state):
        fewer = counts.copy()
        fewer[np.flatnonzero(counts)[:1]] -= 1
        return honest(self, fewer, count, random_state)

    monkeypatch.setattr(JointQuestion, "answer", blind)
    assert len(strays(60)) > 10
