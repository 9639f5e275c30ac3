"""Small linear algebra runs on one thread, everywhere by the same guard, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

import sfumato
from sfumato.core import threads
from sfumato.core.threads import MANY_NUMBERS, calm_threads


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


@pytest.mark.parametrize("room", ["plan/linear/query.py", "plan/make.py", "mechanisms/tailored/design.py",
                                  "release/svm.py", "release/aware_logistic.py", "evidence/verify.py",
                                  "learn/base.py", "learn/kernel_base.py", "run/engine/fit.py"])  # fmt: skip
def test_every_room_with_small_matrices_uses_it(room):
    assert "calm_threads(" in (Path(sfumato.__file__).parent / room).read_text()
