"""Every question, found by looking: one individual moves what is drawn as far as is claimed and no further, what is
drawn is linear in the sums, the answer without noise is the truth, files and words lose nothing."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.core.norms import L1, L2
from sfumato.errors import PlanError
from sfumato.lang import load
from sfumato.lang.vocabulary import AGGREGATES
from sfumato.network.network import Network
from sfumato.plan.request import asked_of
from sfumato.questions.axis import Axis
from sfumato.questions.count import Count
from sfumato.questions.grid import Grid
from sfumato.questions.histogram import Histogram
from sfumato.questions.intervals import NoiseLaw
from sfumato.questions.mean import Mean
from sfumato.questions.moments import SumsOfProducts
from sfumato.questions.moves import Moves
from sfumato.questions.question import Question
from sfumato.questions.registry import QUESTIONS, question_from_dict
from sfumato.questions.sum import Sum
from tests.laws.question_rows import EXAMPLES, SEX, Row, people, sums_by_hand

PROOFS = Path(__file__).parents[2] / "docs" / "proofs"
CASES = [(kind, place) for kind, examples in EXAMPLES.items() for place in range(len(examples))]
IDS = [f"{kind.__name__}-{place}" for kind, place in CASES]


def example(case: tuple[type[Question], int]) -> Question:
    return EXAMPLES[case[0]][case[1]]


def test_every_question_has_its_row():
    assert set(QUESTIONS.values()) == set(EXAMPLES)
    for kind in QUESTIONS.values():
        assert getattr(kind, "__final__", False), f"{kind.__name__} is not final"
        assert not inspect.isabstract(kind)
        assert (PROOFS / f"{kind.proof}.md").is_file()
        assert all(examples for examples in EXAMPLES.values())


# ── moves ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def largest_move(question: Question, seed: int, pure: bool) -> float:
    """The farthest that two contents of one person's rows are apart, as drawn; everybody else stays as they are."""
    generator = np.random.default_rng(seed)
    contents = people(question, generator)
    drawn = np.array([question.encode(sums_by_hand(question, rows), pure) for rows in contents], dtype=float)
    if question.replaces:
        gaps = drawn[:, None, :] - drawn[None, :, :]
    else:
        gaps = drawn - question.encode(sums_by_hand(question, []), pure)
    sizes = np.abs(gaps).sum(-1) if pure else np.sqrt((gaps**2).sum(-1))
    return float(sizes.max())


def wrong_moves(question: Question, seeds: Iterable[int] = (0,)) -> list[str]:
    """A claim that somebody exceeds, or that nobody comes near whichever people are tried."""
    found, moves, tried = [], question.moves(), tuple(seeds)
    for pure, claimed in ((True, moves.l1), (False, moves.l2)):
        move = max(largest_move(question, seed, pure) for seed in tried)
        if move > claimed * (1 + 2**-20):
            found.append(f"{'L1' if pure else 'L2'}: {move} is more than {claimed}")
        if moves.tight and claimed > 1.01 * move:
            found.append(f"{'L1' if pure else 'L2'}: {claimed} is claimed and {move} was found")
    return found


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(190)
def test_nobody_moves_it_further_than_claimed_and_somebody_as_far(case):
    assert wrong_moves(example(case)) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_nobody_moves_it_further_than_claimed_at_length(case):
    assert wrong_moves(example(case), range(200)) == []


def test_the_law_finds_a_claim_that_is_too_small_or_too_large(monkeypatch):
    honest = Mean.find_moves
    for factor in (0.9, 1.1):

        def scaled(self: Mean, factor: float = factor) -> Moves:
            moves = honest(self)
            return Moves(L1(moves.l1 * factor), L2(moves.l2 * factor))

        monkeypatch.setattr(Mean, "find_moves", scaled)
        question = Mean(values=("x(P)",), ranges=((0.0, 1.0),))
        assert len(wrong_moves(question)) == 2


def test_the_law_finds_the_unit_of_one_group_used_for_several(monkeypatch):
    """Calibrated with the width alone it would break the promise by √2."""
    alone = Mean(values=("x(P)",), ranges=((0.0, 1.0),))
    units, moves = {pure: alone.unit(pure) for pure in (False, True)}, alone.moves()
    monkeypatch.setattr(Mean, "unit", lambda self, pure=False: units[pure])
    monkeypatch.setattr(Mean, "find_moves", lambda self: moves)
    question = dataclasses.replace(alone, axes=(SEX,))
    assert len(wrong_moves(question)) == 2


def test_chances_of_one_cell_are_not_public():
    """Probabilities add up to one but for rounding, which would tell who is who."""
    one = Histogram(axes=(Axis("x(P)", ("a",)),), everybody=True)
    assert one.is_public
    assert not dataclasses.replace(one, expected=True).is_public


def test_norms_are_no_plain_numbers():
    with pytest.raises(TypeError):
        Moves(2.0, L2(2.0))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Moves(L2(2.0), L2(2.0))  # type: ignore[arg-type]


def test_second_moments_of_what_is_never_negative_need_half_the_squared_error():
    """2d² for the square of the move was charged; all entries move by at most 1 each, d² together."""
    for size in (1, 2, 3, 4):
        names = tuple(f"x{place}(P)" for place in range(size))
        question = SumsOfProducts(values=names, ranges=((0.0, 1.0),) * size)
        assert question.moves().l2 == pytest.approx(size)
        assert question.moves().l1 == pytest.approx(size + math.sqrt(2) * size * (size - 1) / 2)
    signed = SumsOfProducts(values=("a(P)", "b(P)"), ranges=((-1.0, 1.0), (-1.0, 1.0)))
    assert signed.moves().l2 == pytest.approx(2 * math.sqrt(2))
    assert signed.moves().l1 == pytest.approx(2 + math.sqrt(2))
    # Expected products need not be means of products of values: there only the box of the entries is proved.
    assert dataclasses.replace(signed, expected=True).moves().l1 == pytest.approx(2 + 2 * math.sqrt(2))


def test_the_printed_formulas():
    assert (Count().moves().l1, Count().moves().l2) == (1.0, 1.0)
    assert Count(everybody=True).is_public
    assert not Count(everybody=True, relation="add-remove").is_public
    assert Sum(values=("x(P)",), ranges=((0.0, 110.0),), everybody=True).moves().l2 == 110.0
    two = Histogram(axes=EXAMPLES[Histogram][0].axes).moves()
    assert two.l1 == 2.0
    assert Fraction(two.l2) ** 2 >= 2
    assert two.l2 == pytest.approx(math.sqrt(2), rel=1e-15)


def test_the_grid_is_part_of_the_claim():
    """A third is no multiple of the grid: the rounded contribution may exceed it, and the claim knows."""
    question = Sum(values=("x(P)",), ranges=((-1 / 3, 1 / 3),))
    grid = question.entries()[0].grid
    assert isinstance(grid, Grid)
    assert grid.high * grid.step >= 1 / 3 >= (grid.high - 1) * grid.step
    assert question.moves().l1 >= (grid.high - grid.low) * grid.step
    assert math.log2(grid.step).is_integer()


# ── encode, answer, predictions ──────────────────────────────────────────────────────────────────────────────────────


def crowd(question: Question, seed: int, size: int) -> list[Row]:
    generator = np.random.default_rng(seed)
    return [row for _ in range(size) for row in people(question, generator, 1)[-1]]


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(76)
def test_what_is_drawn_is_linear_in_the_sums(case):
    question = example(case)
    first, second = crowd(question, 1, 20), crowd(question, 2, 30)
    parts = [sums_by_hand(question, rows) for rows in (first, second)]
    for pure in (False, True):
        whole = question.encode(question.total(parts), pure)
        assert whole.shape == (question.drawn_size(pure),)
        added = sum(question.encode(part, pure) for part in parts) - question.encode(question.total([]), pure)
        np.testing.assert_allclose(whole, added, rtol=1e-12, atol=1e-12 * max(1.0, float(np.abs(whole).max())))


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(76)
def test_without_noise_the_answer_is_the_truth(case):
    question = example(case)
    sums = sums_by_hand(question, crowd(question, 3, 60))
    for pure in (False, True):
        figures = question.figures(question.encode(sums, pure), NoiseLaw(), float(sums.count), pure)
        values = [figure.value for figure in figures]
        np.testing.assert_allclose(values, question.truth(sums), rtol=1e-9, atol=1e-7)  # a root of 1e-15
        assert all(figure.standard_error == 0 for figure in figures)


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(76)
def test_intervals_and_predictions_are_one_for_each_number(case):
    question = example(case)
    sums = sums_by_hand(question, crowd(question, 4, 200))
    law = NoiseLaw(1e-3 * max(float(question.moves().l2), 1e-3) ** 2)
    figures = question.figures(question.encode(sums), law, float(sums.count))
    predicted = question.predicted(law, float(sums.count))
    assert len(figures) == len(predicted) == question.size == len(question.labels()) == len(question.parts())
    for figure, truth in zip(figures, question.truth(sums), strict=True):
        assert figure.low <= truth + 1e-9 * abs(truth)
        assert truth - 1e-9 * abs(truth) <= figure.high
    assert question.error(law.variance, float(sums.count)) >= 0
    assert question.loss(law.variance, float(sums.count), 200.0) >= 0


# ── names, words, files ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(170)
def test_files_lose_nothing(case):
    question = example(case)
    again = question_from_dict(json.loads(json.dumps(question.to_dict())))
    assert again == question
    assert again.moves() == question.moves()


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(248)
def test_words_name_every_variable_and_labels_are_told_apart(case):
    question = example(case)
    assert all(name in question.words() for name in question.variables)
    assert len(set(question.parts())) == question.size
    labels = [tuple(label.items()) for label in question.labels()]
    assert len(set(labels)) == len(labels)
    assert len({tuple(label) for label in question.labels()}) == 1  # the same columns for all
    assert "noise" in question.law_words("Gaussian", 1.0, 2.0)


def test_the_language_has_every_form():
    for functor, kind in QUESTIONS.items():
        assert kind.form.functor == functor
        assert kind.form.help
        assert kind.form.method.isidentifier()
        assert kind.form.texts.items() <= AGGREGATES.items()
        arities = [len(usage) for usage in kind.form.usages]
        assert len(set(arities)) == len(arities)


def test_without_bounds_nothing_can_be_promised():
    study = """
    source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). column(t, x, x(P)). missing(x(P), 0).
    random(x(P)) :- p(P). dataset(d, domain(P, p(P))). sum(s, x(P), p(P)).
    random(y(P)) :- p(P). depends(y(P), [x(P)], exp(x(P))). range(x(P), 0, 1000). sum(w, y(P), p(P)).
    privacy_requirement(o(public), d, dp(1)). publish(b, s, o(public)).
    """
    network = Network.from_spec(load(study))
    assert asked_of(network.node("s")).bounded
    with pytest.raises(PlanError, match="range"):
        asked_of(network.node("w"))


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(40)
def test_every_published_number_has_its_label_and_name(case):
    question = example(case)
    assert len(question.labels()) == len(question.parts()) == question.size or question.of_texts


# ── what a formula takes of it ───────────────────────────────────────────────────────────────────────────────────────


def other_numbers(question: Question, seed: int) -> list[str]:
    """Where what a formula would take of a question is not its first published number."""
    generator, found = np.random.default_rng(seed), []
    for pure in (False, True):
        rows = [row for content in people(question, generator) for row in content]
        sums = sums_by_hand(question, rows)
        law = NoiseLaw(laplace=(0.01,)) if pure else NoiseLaw(0.01**2)
        noisy = np.asarray(question.encode(sums, pure), dtype=float)
        noisy = noisy + generator.normal(0, 0.01, noisy.size)
        count = float(sums.count) if question.has_public_count else None
        read = noisy[: question.reads]
        taken = question.number(read[None, :], count, pure, question.is_open(noisy, law))[0]
        told = question.figures(noisy, law, count, pure)[0].value
        if not math.isclose(taken, told, rel_tol=1e-9, abs_tol=1e-9):
            found.append(f"{'pure' if pure else 'with δ'}: a formula takes {taken}, and {told} is published")
    return found


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.by_day(40)
def test_a_formula_takes_the_number_that_is_published(case):
    question = example(case)
    if question.is_number and question.bounded and not question.only_drawn:
        assert other_numbers(question, 0) == []


def test_a_question_whose_drawn_number_is_not_its_answer_is_found(monkeypatch):
    """The default is right for a count; for a mean it would be the drawn sum."""
    monkeypatch.setattr(Mean, "number", Question.number)
    assert other_numbers(Mean(values=("x(P)",), ranges=((0.0, 1.0),)), 0)
