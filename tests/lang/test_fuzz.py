"""Whatever is in a file: an answer, never a traceback, never a wait."""

from __future__ import annotations

import time

import pytest

from lang.mutations import SPITE, STUDIES, many
from sfumato.lang import examine

#: Seconds of processor time. What stops a study is counted; this is only the wide frame around the count.
PATIENCE = 20.0


def check_all(first: int, number: int) -> dict[str, int]:
    """Examine mutated studies; returns how often each diagnosis was made."""
    seen: dict[str, int] = {}
    for seed, text in many(first, number):
        begun = time.process_time()
        spec, problems = examine(text)
        spent = time.process_time() - begun
        assert spent < PATIENCE, f"seed {seed} took {spent:.1f} s"
        for problem in problems:
            problem.describe()
            problem.to_dict()
            seen[problem.code] = seen.get(problem.code, 0) + 1
        if not any(problem.severity == "error" for problem in problems):
            assert spec is not None
            seen["fine"] = seen.get("fine", 0) + 1
    return seen


def test_200_mutated_studies():
    """The same of 20,000 in the nightly run."""
    seen = check_all(0, 200)
    # The mutations reach every stage: some break the text, some its meaning, some nothing.
    assert {"fine", "syntax", "unknown-predicate", "leak", "no-cpf", "several-cpfs"} <= set(seen)


@pytest.mark.slow
def test_20000_mutated_studies():
    check_all(1_000_000, 20_000)


@pytest.mark.parametrize("spite", SPITE, ids=range(len(SPITE)))
@pytest.mark.by_day(18)
def test_each_spiteful_piece_alone_and_inside(spite):
    for text in (spite, f"random(age(P)) :- {spite}.", f"depends(age(P), [], {spite}).", spite + STUDIES[4]):
        begun = time.process_time()
        examine(text + "\n")
        assert time.process_time() - begun < PATIENCE
