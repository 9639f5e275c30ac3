"""Small linear algebra runs on one thread, everywhere by the same guard, and nothing is left behind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import sfumato
from sfumato import learn, release
from sfumato.centres import Requirement, SecondMoments, aggregate_in_memory, fit_linear, new_centres, plan_round
from sfumato.core import Adjacency, ApproxDP, Categories, Interval, Schema, threads
from sfumato.core.threads import MANY_NUMBERS, calm_threads
from sfumato.mechanisms import TailoredNoise
from sfumato.plan import place_noise


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_inside_and_as_before_afterwards():
    import scipy.linalg  # noqa: F401  (brings a second BLAS)

    before = blas_threads()
    with calm_threads(1000):
        assert blas_threads() == {1}
        with calm_threads():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError), calm_threads():
        _ = 1 / 0
    assert blas_threads() == before


def test_large_work_keeps_its_threads():
    before = blas_threads()
    with calm_threads(MANY_NUMBERS):
        assert blas_threads() == before


def test_a_library_loaded_later_is_held_too(monkeypatch):
    seen = []
    monkeypatch.setattr(threads, "_BRINGERS", ("numpy", "a_library_to_come"))
    monkeypatch.setattr(threads, "_pools", lambda loaded: (seen.append(loaded), Nothing())[1])
    with calm_threads():
        pass
    monkeypatch.setitem(__import__("sys").modules, "a_library_to_come", object())
    with calm_threads():
        pass
    assert seen == [(True, False), (True, True)]


class Nothing:
    def limit(self, **_):
        return self

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


def test_there_is_one_guard():
    source = Path(sfumato.__file__).parent
    users = [path for path in source.rglob("*.py") if "threadpoolctl" in path.read_text()]
    assert [str(path.relative_to(source)) for path in users] == ["core/threads.py"]


def loud_lines(work: Callable[[], object]) -> set[tuple[str, int]]:
    """Lines of the package that ask for linear algebra while BLAS has the two threads that it is given here."""
    found: set[tuple[str, int]] = set()
    asked: set[tuple[str, int]] = set()

    def watched(frame, event, _):
        caller = frame.f_back
        if event != "call" or "linalg" not in frame.f_globals.get("__name__", "") or caller is None:
            return
        place = (caller.f_code.co_filename, caller.f_lineno)
        if "sfumato" in place[0] and place not in asked:  # each line once: looking takes longer than the work
            asked.add(place)
            found.update([place] if blas_threads() != {1} else [])

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        sys.setprofile(watched)
        try:
            work()
        finally:
            sys.setprofile(None)
    return found


ROWS = np.random.default_rng(0).uniform(-1, 1, (400, 6))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int)
MIXED = Schema({"a": Interval(0, 1), "b": Interval(0, 1), "c": Categories(["x", "y"])})
TABLE = {"a": ROWS[:, 0].tolist(), "b": ROWS[:, 1].tolist(), "c": ["x", "y"] * 200}


def private_tables() -> None:
    study = """
        source(t, 't.csv'). column(t, id, p(P)). column(t, a, a(P)). column(t, b, b(P)). rows_per_person(t, 1).
        missing(t, never). random(a(P)) :- p(P). random(b(P)) :- p(P). range(a(P), 0, 1). range(b(P), 0, 1).
        dataset(d, domain(P, p(P))). privacy_requirement(r(x), d, dp(1, 0.000001)).
        correlation(k, [a(P), b(P)], p(P)). publish(kk, k, r(x)). variance(v, a(P), p(P)). publish(vv, v, r(x)).
    """
    plan = sfumato.make_plan(study, sizes={"d": 400})
    sfumato.run_plan(plan, {"t": {"id": list(range(400)), **TABLE}}, None, random_state=1)


def over_centres() -> None:
    members, keys = new_centres("ab")
    promise = Requirement(Adjacency("patient", "replace-one"), ApproxDP(1.0, 1e-6))
    agreed = plan_round("x", members, SecondMoments(MIXED), [promise], most_patients=1000)
    cells = {one.name: agreed.statistic.cells(TABLE, agreed.grid, 1000) for one in members}
    fit_linear(aggregate_in_memory(agreed, cells, keys), "a")


KINDS = ("Classifier", "Regression", "SVC")
FURTHER: dict[str, dict[str, Any]] = {
    "PrivateLinearRegression": {"target": (0, 1)},
    "PrivateAdditiveClassifier": {"schema": MIXED},
    "SemiSVC": {"public": ROWS},
}
OTHERS = ("FairClassifier",)  # which lets another of them be fitted


def fitted(name: str) -> None:
    kind = getattr(learn, name)
    further = FURTHER.get(name, {})
    rows = pa.table(TABLE) if "Additive" in name else ROWS
    kind(1.0, 1e-6, random_state=0, **further).fit(rows, LABELS)


WORKS: dict[str, Callable[[], object]] = {
    "place_noise": lambda: place_noise(ROWS[:40].T, ApproxDP(1.0, 1e-5), 1.0),
    "TailoredNoise": lambda: TailoredNoise(Interval(0, 1), 2.0, bins=24).certificate,
    "svdd": lambda: learn.PrivateSVDD(1.0, 1e-6, random_state=0).fit(ROWS),
    "study": private_tables,
    "synthetic": lambda: release.SyntheticRelease(MIXED, 2.0, 1e-6, random_state=0).release(TABLE),
    "centres": over_centres,
    **{name: partial(fitted, name) for name in learn.__all__ if name.endswith(KINDS) and name not in OTHERS},
}


@pytest.mark.parametrize("work", WORKS)
def test_linear_algebra_has_one_thread_wherever_it_is_asked_for(work):
    assert not loud_lines(WORKS[work])


def test_linear_algebra_with_more_threads_is_found(monkeypatch):
    monkeypatch.setattr(threads, "MANY_NUMBERS", -1)  # as if every matrix were large
    assert loud_lines(WORKS["place_noise"])
