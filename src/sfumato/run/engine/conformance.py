"""Whether an engine keeps its word: the laws that every release, fit and study rests on.

In:   an open engine.
Out:  nothing; an AssertionError that names the law, if one does not hold.
Not here: the engines, how long they wait for what never comes (tests/run/test_engine_release.py).

Tasks here are small and say nothing about anybody. Workers import them by name, so they stand in the package.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.run.engine.engine import Engine, Total

__all__ = ["check_engine"]

_NUMBERS = list(range(-7, 20))
#: What adds up to 1 only if what rounding loses is carried along.
_CANCELLING = [1e16, 1.0, -1e16, 2.0**-40, -(2.0**-40)] * 5
_SECRET = "Ada 1815"


def check_engine(engine: Engine) -> None:
    """Every law of the contract, one after the other; the engine is used and stays open.

    >>> from sfumato.run.engine.engine import LocalEngine
    >>> check_engine(LocalEngine())
    """
    for law in (_maps, _maps_nothing, _sums, _sums_in_every_grouping, _sums_anything, _keeps, _fails_in_silence):
        law(engine)


def _holds(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"The engine breaks its contract: {law}")


def _maps(engine: Engine) -> None:
    found = list(engine.map(_square, _NUMBERS))
    _holds(len(found) == len(_NUMBERS), "map gives every task's result once, and no other.")
    _holds(dict(found) == {place: number**2 for place, number in enumerate(_NUMBERS)}, "map says whose a result is.")


def _maps_nothing(engine: Engine) -> None:
    _holds(list(engine.map(_square, [])) == [], "map of no tasks gives nothing.")


def _sums(engine: Engine) -> None:
    _holds(engine.sum(_as_total, [5.0]).values[0][0] == 5.0, "the sum of one task is its result.")
    added = engine.sum(_as_total, [float(number) for number in _NUMBERS]).values[0][0]
    _holds(added == float(sum(_NUMBERS)), "sum adds up every task's result once.")


def _sums_in_every_grouping(engine: Engine) -> None:
    found = {float(engine.sum(_added_up, _cut(_CANCELLING, size)).values[0][0]) for size in (1, 2, 7, 25)}
    _holds(found == {5.0}, "sum gives the same for every cut of the rows, however much cancels.")


def _sums_anything(engine: Engine) -> None:
    found = engine.sum(_Names.of, ["a", "b", "c", "b"])
    _holds(sorted(found.names) == ["a", "b", "b", "c"], "sum adds up whatever has a plus, not numbers alone.")


def _keeps(engine: Engine) -> None:
    try:
        from dask.delayed import delayed
    except ImportError:  # then there is nothing that could be kept
        return
    with tempfile.TemporaryDirectory() as folder:
        parts = engine.keep([delayed(_marked, pure=True)(folder, number) for number in (1.0, 2.0, 4.0)])
        for _ in range(2):
            _holds(engine.sum(_added_up, [(part,) for part in parts]).values[0][0] == 7.0, "tasks take kept parts.")
        _holds(len(list(Path(folder).iterdir())) == 3, "keep computes every part once, however often it is used.")
    _holds(engine.keep([]) == [], "keep of no parts keeps nothing.")


def _fails_in_silence(engine: Engine) -> None:
    """An error of ours comes as it is; what others say may quote a cell, and no trace of it is left."""
    for work in (lambda task: list(engine.map(task, [1])), lambda task: engine.sum(task, [1])):
        _holds(
            _raised(work, _refuses).startswith("InputError: refused"), "errors of this program come back as they are."
        )
        said = _raised(work, _quotes)
        _holds(said.startswith("SfumatoError") and _SECRET not in said, "no message quotes what another library says.")
    _maps(engine)


def _raised(work: Callable[[Any], Any], task: Callable[[Any], Any]) -> str:
    try:
        work(task)
    except Exception as error:
        seen = [error, error.__cause__, error.__context__]
        return " ".join(f"{type(one).__name__}: {one}" for one in seen if one is not None)
    return "nothing was raised"


def _cut(numbers: Sequence[float], size: int) -> list[tuple[float, ...]]:
    return [tuple(numbers[start : start + size]) for start in range(0, len(numbers), size)]


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _square(number: int) -> int:
    return number**2


def _as_total(number: float) -> Total:
    return Total.of([np.array([number])])


def _added_up(numbers: Sequence[float]) -> Total:
    result = _as_total(numbers[0])
    for number in numbers[1:]:
        result = result.plus(_as_total(number))
    return result


def _marked(folder: str, number: float) -> float:
    """The number; a file says that it was computed."""
    tempfile.mkstemp(dir=folder)
    return number


def _refuses(task: int) -> int:
    raise InputError("refused. Nothing was spent.")


def _quotes(task: int) -> int:
    raise ValueError(f"could not convert {_SECRET}")


@dataclass(frozen=True)
class _Names:
    names: tuple[str, ...]

    @classmethod
    def of(cls, name: str) -> _Names:
        return cls((name,))

    def plus(self, other: _Names) -> _Names:
        return _Names(self.names + other.names)
