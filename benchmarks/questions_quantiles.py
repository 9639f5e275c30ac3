"""Quantiles beside OpenDP, and named groups beside the best rule there is.

Run: python benchmarks/questions_quantiles.py [quantiles] [groups] [--draws 6] [--peer-draws 4] [--rows 1000 100000].
Quantiles 0.05, 0.10, …, 0.95 of whole numbers between 0 and 100,000 at a pure ε, replacing one row, the number of rows
public. Both choose among the same 100,001 places. OpenDP (`make_private_quantile`) gets ε/19 for each quantile; ours
draws all together with seven tenths of ε and pays the intervals from the rest. Rank error: how far the wanted share of
the rows is from those below and at the published number.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from sfumato.core import ADD_REMOVE, REPLACE_ONE, ApproxDP
from sfumato.mechanisms import GroupCounts
from sfumato.questions.joint import JointQuestion
from sfumato.questions.quantile import Quantile

WANTED = tuple((np.arange(1, 20) / 20).round(2).tolist())
HIGH = 100_000.0
SHAPES = ("uniform", "lognormal", "two humps", "heavy ties", "99 % zeros")


def rows_of(shape: str, size: int, random: np.random.Generator) -> np.ndarray:
    """Sorted whole numbers. The ties are at twelve numbers that are not round."""
    values = {
        "uniform": lambda: random.random(size) * HIGH,
        "lognormal": lambda: np.exp(random.normal(size=size)) * 1000,
        "two humps": lambda: np.where(random.random(size) < 0.5, 2e4, 7e4) + random.normal(0, 3e3, size),
        "heavy ties": lambda: random.integers(0, 12, size) * 8291.0 + 13,
        "99 % zeros": lambda: np.where(random.random(size) < 0.99, 0.0, random.random(size) * HIGH),
    }[shape]()  # fmt: skip
    return np.sort(np.clip(np.rint(values), 0, HIGH))


def rank_errors(rows: np.ndarray, published: np.ndarray) -> np.ndarray:
    wanted = np.array(WANTED) * rows.size
    below, at = np.searchsorted(rows, published, "left"), np.searchsorted(rows, published, "right")
    return np.maximum(0, np.maximum(below - wanted, wanted - at))


def ours(rows: np.ndarray, epsilon: float) -> tuple[np.ndarray, float]:
    """The published numbers, and the share of intervals that hold the quantile of the rows."""
    question = Quantile(values=("x(P)",), ranges=((0.0, HIGH),), numbers=WANTED, everybody=True)
    asked = JointQuestion(question, epsilon, REPLACE_ONE, rows.size)
    assert question.places is not None
    counts = np.bincount(question.places.cells_of(rows), minlength=question.places.count)
    figures = asked.answer(counts, float(rows.size), None)
    ranks = [max(0, math.ceil(share * rows.size - 1e-6) - 1) for share in WANTED]
    inside = [one.low <= rows[rank] <= one.high for one, rank in zip(figures, ranks, strict=True)]
    return np.array([one.value for one in figures]), float(np.mean(inside))


def opendp(rows: np.ndarray, epsilon: float) -> np.ndarray:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    places, given = [float(place) for place in range(int(HIGH) + 1)], rows.tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(given)), dp.symmetric_distance()

    def one(share: float) -> float:
        def build(scale: float):
            return dp.m.make_private_quantile(*space, dp.max_divergence(), places, share, scale)

        return build(1.0001 * build(1.0).map(2) * len(WANTED) / epsilon)(given)

    return np.array([one(share) for share in WANTED])


def spread(errors: list[float]) -> tuple[float, float]:
    """Mean, and its standard error."""
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else 0.0


def quantiles(draws: int, peer_draws: int, sizes: list[int]) -> None:
    random = np.random.default_rng(7)
    head = ("rows", "ε", "shape", "ours ±", "OpenDP ±", "ratio", "inside", "s", "peer s")
    print("{:>8} {:>4} {:<11} {:>13} {:>13} {:>6} {:>7} {:>6} {:>6}".format(*head))
    below = half = tied = cells = 0
    for size in sizes:
        for epsilon in (0.1, 1.0):
            for shape in SHAPES:
                rows = rows_of(shape, size, random)
                start = time.perf_counter()
                found = [ours(rows, epsilon) for _ in range(draws)]
                seconds = (time.perf_counter() - start) / draws
                mine, own_chance = spread([float(rank_errors(rows, values).mean()) for values, _ in found])
                start = time.perf_counter()
                peer, chance = spread(
                    [float(rank_errors(rows, opendp(rows, epsilon)).mean()) for _ in range(peer_draws)]
                )
                waited = (time.perf_counter() - start) / peer_draws
                cells, below, half = cells + 1, below + (mine <= peer), half + (mine <= peer / 2)
                tied += peer < mine <= peer + 2 * math.hypot(own_chance, chance)
                inside = float(np.mean([share for _, share in found]))
                ratio = mine / peer if peer else float(mine > 0)
                print(
                    f"{size:>8} {epsilon:>4} {shape:<11} {mine:>8.1f} {own_chance:>4.1f} {peer:>8.1f} {chance:>4.1f}"
                    f" {ratio:>6.2f} {inside:>7.3f} {seconds:>6.2f} {waited:>6.1f}",
                    flush=True,
                )
    print(
        f"rank error at most OpenDP's in {below} of {cells} cells, above it within two standard errors in {tied}, at "
        f"most half of it in {half}"
    )


def best_rule(epsilon: float, delta: float, sizes: np.ndarray) -> float:
    """How many groups the best (ε, δ) rule names on average (Desfontaines et al. 2022, Thm 1; Google's library)."""
    chances = [0.0]
    while chances[-1] < 1:
        last = chances[-1]
        chances.append(min(math.exp(epsilon) * last + delta, 1 - math.exp(-epsilon) * (1 - last - delta), 1.0))
    return float(np.array(chances)[np.minimum(sizes, len(chances) - 1)].sum())


def groups() -> None:
    """A million rows of a million people, one of 50,000 texts each, by Zipf's law."""
    random = np.random.default_rng(3)
    chances = 1 / np.arange(1, 50_001)
    texts = np.array([f"place {k:05d}" for k in range(50_000)])
    rows = texts[random.choice(50_000, 1_000_000, p=chances / chances.sum())]
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9)):
        start = time.perf_counter()
        labels, sizes = np.unique(rows, return_counts=True)
        counter = GroupCounts.for_guarantee(ApproxDP(epsilon, delta), 1, ADD_REMOVE)
        drawn = [counter(sizes) for _ in range(20)]
        seconds = time.perf_counter() - start
        named = float(np.mean([np.count_nonzero(one) for one in drawn]))
        off = float(np.mean([np.abs(one - sizes)[one > 0].mean() for one in drawn]))
        formula = best_rule(epsilon, delta, sizes)
        expected = float(counter.chances[np.minimum(sizes, len(counter.weights))].sum())
        print(
            f"({epsilon}, {delta:g}): {labels.size} texts, named {named:.1f} in 20 draws, {expected:.3f} expected "
            f"and {formula:.3f} by formula; counts within {off:.1f} people, {seconds:.1f} s for all draws"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=["quantiles", "groups"])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--peer-draws", type=int, default=4)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 100_000])
    given, _ = parser.parse_known_args()
    if "quantiles" in given.sections:
        quantiles(given.draws, given.peer_draws, given.rows)
    if "groups" in given.sections:
        groups()


if __name__ == "__main__":
    main()
