"""README.txt, report.html and explain are functions of the plan: whatever the tables hold, they read the same."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato import make_plan, run_plan
from sfumato.evidence import facts, figures
from sfumato.evidence.explain import REGISTERS, explain
from sfumato.evidence.report import finish_folder

HEAD = """
source(people, 'people.parquet').
column(people, id, person(P)). missing(people, never).
column(people, a, a(P)). column(people, b, b(P)).
rows_per_person(people, 1).
random(a(P)) :- person(P). random(b(P)) :- person(P).
range(a(P), 0, 10). range(b(P), -1, 1).
dataset(people, domain(P, person(P))).
"""
GOALS = ("person(P)", "(person(P), a(P) > 5)", "(person(P), b(P) < 0, a(P) > 2)")


def random_study(seed: int) -> str:
    """One or two observers, each of whom sees aggregates, what is computed from them, and sometimes individuals."""
    g = random.Random(seed)
    lines = [HEAD]
    names = [f"n{place}" for place in range(g.randint(2, 4))]
    for name in names:
        goal = g.choice(GOALS)
        lines.append(g.choice([
            f"mean({name}, a(P), {goal}).",
            f"sum({name}, b(P), {goal}).",
            f"count({name}, {goal}).",
            f"histogram({name}, a(P), {goal}, [0, 3, 10]).",
        ]))  # fmt: skip
    numbers = [name for name, line in zip(names, lines[1:], strict=True) if not line.startswith("histogram")]
    if numbers:
        first, second = g.choice(numbers), g.choice(numbers)
        formula = g.choice([f"{first} * {second}", f"{first} / {second}", f"clip({first}, 0, 5)"])
        lines.append(f"random(made). depends(made, [{first}, {second}], {formula}).")
        names.append("made")
    for who in g.choice([("doctor",), ("doctor", "public")]):
        lines.append(f"privacy_requirement(o({who}), people, {g.choice(['dp(1)', 'dp(2, 0.000001)', 'gdp(1)'])}).")
        lines += [f"publish(out_{name}_{who}, {name}, o({who}))." for name in names]
        if g.random() < 0.3:
            lines.append(f"publish(each_{who}, a(P), o({who})) :- person(P).")
    return "\n".join(lines)


def pages(text: str, size: int, seed: int, folder: Path) -> dict[str, str]:
    """Every text that is not for one observer alone, without digests and dates."""
    rng = np.random.default_rng(seed)
    table = pa.table({"id": np.arange(size), "a": rng.uniform(0, 10, size), "b": rng.uniform(-1, 1, size)})
    folder.mkdir()
    plan = make_plan(text)
    run_plan(plan, {"people": table}, folder / "ledger.db", out=folder / "out", grant=True)
    assert not [lack for lack in finish_folder(plan, folder / "out") if "could not be written" in lack]
    found = {name: (folder / "out" / name).read_text(encoding="utf-8") for name in ("README.txt", "report.html")}
    found |= {word: explain(plan, word, folder / "out") for word in REGISTERS}
    hidden = re.compile(r"[0-9a-f]{10,}|\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?")
    return {name: hidden.sub("·", page) for name, page in found.items()}


def check_pages(seed: int, place: Path) -> None:
    text, size = random_study(seed), random.Random(seed).choice([2, 40])
    first, second = (pages(text, size, 7 * seed + run, place / f"{seed}-{run}") for run in range(2))
    for name in first:
        assert first[name] == second[name], (seed, name)
        # Identifiers are public, and every page says that they are shown, if they are.
        assert ("Who is listed is shown" in re.sub(r"\s+", " ", first[name])) == ("publish(each_" in text), (seed, name)


def check_many(seeds: range, place: Path) -> None:
    for seed in seeds:
        check_pages(seed, place)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.by_day(2)
def test_two_tables_of_one_size_give_the_same_pages(seed, tmp_path):
    check_pages(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 220))
def test_two_tables_of_one_size_give_the_same_pages_nightly(seed, tmp_path):
    check_pages(seed, tmp_path)


def test_errors_that_follow_from_draws_are_found(monkeypatch, tmp_path):
    """The planted relative: every page is written as if its reader were the observer."""

    def as_own(planned, folder, own=False):
        return figures.told_of(planned, folder, own=True)

    monkeypatch.setattr(facts, "told_of", as_own)
    with pytest.raises(AssertionError):
        check_many(range(4), tmp_path)
