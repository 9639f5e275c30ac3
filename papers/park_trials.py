"""Train and test the methods of Park's thesis, many times.

In:   names of data sets, series and budgets; how many runs.
Out:  Points: test accuracies with what was promised for them; who is ahead; the price of the correction in words.
Not here: the data (park_data.py), which claims are judged (park.py and its siblings).

The series named after the thesis run at its settings: C/n and γ of Table 7.1, 400 features, and what it calls ε. The
others run at this project's defaults. Replacing one record is what counts as a change throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from papers.chaudhuri_trials import beats, interval
from papers.park_data import SETTINGS, Records, Setting, read_records
from papers.study import Cell, StudySettings, Verdict
from sfumato.core.guarantee import ApproxDP, PureDP
from sfumato.learn import EquilibriumClassifier, KernelClassifier, OutputSVC, SemiSVC, WeightSVC

__all__ = [
    "DELTA",
    "HONEST_FACTOR",
    "NO_NOISE",
    "QUICK",
    "SCALES",
    "SERIES",
    "THESIS",
    "Point",
    "Split",
    "Style",
    "Task",
    "contest",
    "measure",
    "price",
    "rows_of",
    "shown_budget",
    "split_of",
]

DELTA = 1e-5
#: Stands for "without privacy": noise of this ε is invisible.
NO_NOISE = 1e6
#: What the two noisy steps of the thesis cost when a record is replaced: ε for the support, 2ε for votes with Lap(1/ε).
HONEST_FACTOR = 3
QUICK = "A quick run has too few rows and runs to judge the claims: its verdicts only show that everything works."
SCALES = (
    "The thesis does not say how it scales columns. Here γ and r_max of Table 7.1 count the public box of a measured "
    "column as six standard deviations, and the drawn tables have coordinates of this project's choice: curves can "
    "be compared, single numbers only roughly. Learning rates and iterations of the thesis are not used."
)
_FEATURES = 400


@dataclass(frozen=True)
class Split:
    """80 % to learn from, 20 % to be scored on."""

    setting: Setting
    training: Records
    test: Records
    classes: tuple[Any, ...]
    features: int = _FEATURES

    def cost(self, cap: float) -> float:
        """C of the estimators for C/n."""
        return cap * len(self.training.labels)

    @property
    def common(self) -> dict[str, Any]:
        return {"box": self.training.box, "classes": self.classes}

    def thesis(self, printed: tuple[float, float]) -> dict[str, Any]:
        cap, gamma = printed
        return {
            "C": self.cost(cap),
            "gamma": self.setting.gamma(gamma),
            "n_components": self.features,
            **self.common,
        }


@lru_cache(maxsize=32)
def _records(name: str, seed: int, size: int | None) -> Records:
    return read_records(name, seed, size)


def split_of(name: str, seed: int, run: int, size: int | None = None, features: int = _FEATURES) -> Split:
    """The records are the same in every run; what is learned from is not."""
    records = _records(name, seed, size)
    order = np.random.default_rng([seed, run]).permutation(len(records.labels))
    training, test = np.split(order, [len(order) * 4 // 5])
    classes = tuple(np.unique(records.labels).tolist())
    return Split(SETTINGS[name], records.part(training), records.part(test), classes, features)


# Methods.


def _weight(split: Split, epsilon: float, seed: int) -> Any:
    return WeightSVC(epsilon, random_state=seed, **split.thesis(split.setting.weight))


def _semi(split: Split, epsilon: float, seed: int) -> Any:
    delta = 1 / len(split.training.labels)
    return SemiSVC(epsilon, delta, public=split.test.rows, random_state=seed, **split.thesis(split.setting.semi))


def _output(split: Split, epsilon: float, seed: int) -> Any:
    """The thesis counts ε once however many answers are given: in truth each costs ε."""
    queries = len(split.test.labels)
    settings = split.thesis(split.setting.output)
    return OutputSVC(epsilon * queries * (1 + 1e-9), queries=queries, random_state=seed, **settings)


def _published(split: Split, epsilon: float, seed: int) -> Any:
    settings = split.thesis(split.setting.proposed)
    return EquilibriumClassifier(
        epsilon, as_published=True, merge_radius=split.setting.merge_radius, random_state=seed, **settings
    )


def _published_default(split: Split, epsilon: float, seed: int) -> Any:
    return EquilibriumClassifier(epsilon, DELTA, as_published=True, random_state=seed, **split.common)


def _corrected(split: Split, epsilon: float, seed: int) -> Any:
    return EquilibriumClassifier(epsilon, DELTA, random_state=seed, support="all", **split.common)


def _by_class(split: Split, epsilon: float, seed: int) -> Any:
    return EquilibriumClassifier(epsilon, DELTA, random_state=seed, **split.common)


def _corrected_honest(split: Split, epsilon: float, seed: int) -> Any:
    return EquilibriumClassifier(HONEST_FACTOR * epsilon, DELTA, random_state=seed, support="all", **split.common)


def _kernel(split: Split, epsilon: float, seed: int) -> Any:
    return KernelClassifier(epsilon, DELTA, random_state=seed, **split.common)


@dataclass(frozen=True)
class Style:
    """How a series is made, named and drawn. Colours: Okabe & Ito's palette, told apart by marker and dash as well."""

    label: str
    build: Callable[[Split, float, int], Any]
    colour: str
    marker: str
    dash: str


SERIES: dict[str, Style] = {
    "weight": Style("SVM WEIGHT, thesis' settings", _weight, "#D55E00", "v", "--"),
    "semi": Style("SVM SEMI, thesis' settings, δ = 1/n", _semi, "#E69F00", "s", "--"),
    "published": Style("proposed, as published: no guarantee", _published, "#CC79A7", "X", "-"),
    "output": Style("SVM OUTPUT, ε for every answer", _output, "0.45", "P", ":"),
    "published, defaults": Style(
        "proposed, this project's settings: no guarantee", _published_default, "0.6", "x", ":"
    ),
    "corrected": Style(f"proposed, corrected, δ = {DELTA:g}", _corrected, "#0072B2", "o", "-"),
    "corrected, 3ε": Style(f"proposed, corrected, 3ε, δ = {DELTA:g}", _corrected_honest, "#56B4E9", "D", "-."),
    "by class": Style(f"a support for each class, δ = {DELTA:g}", _by_class, "#000000", "*", "-"),
    "kernel": Style(f"KernelClassifier, δ = {DELTA:g}", _kernel, "#009E73", "^", "-"),
}
#: The rows of Table 7.3.
THESIS = ("weight", "semi", "published", "output")


# Trials.


@dataclass(frozen=True)
class Task:
    """What to train how often."""

    table: str
    series: str
    epsilon: float
    runs: int
    size: int | None = None
    features: int = _FEATURES
    printed: float | None = None


@dataclass(frozen=True)
class Point:
    """Test accuracies, one for each run, and what all that was published is promised to cost."""

    task: Task
    training_records: int
    accuracies: np.ndarray
    total_epsilon: float | str
    delta: float | str

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())

    @property
    def errors(self) -> np.ndarray:
        return 1 - self.accuracies[:, None]

    @property
    def bounds(self) -> tuple[float, float, float]:
        """Mean and 95 % interval."""
        mean, low, high = interval(self.errors)
        return 1 - mean, 1 - high, 1 - low


def measure(tasks: Sequence[Task], settings: StudySettings, label: str) -> list[Point]:
    """All tasks, two at a time: what takes long is arithmetic on arrays, during which Python can do other things."""
    with ThreadPoolExecutor(1 if settings.quick else 2) as pool:
        found = pool.map(lambda task: _point(task, settings.seed), tasks)
        return [point for _, point in zip(settings.track(tasks, label), found, strict=True)]


def _point(task: Task, seed: int) -> Point:
    accuracies, model, split = [], None, None
    for run in range(task.runs):
        split = split_of(task.table, seed, run, task.size, task.features)
        model = SERIES[task.series].build(split, task.epsilon, seed * 1009 + run)
        model.fit(split.training.rows, split.training.labels)
        accuracies.append(np.mean(model.predict(split.test.rows) == split.test.labels))
    assert model is not None
    assert split is not None
    return Point(task, len(split.training.labels), np.array(accuracies), *_promised(model))


def _promised(model: Any) -> tuple[float | str, float | str]:
    promise = model.guarantee_
    if isinstance(promise, PureDP | ApproxDP):
        delta = float(model.delta)
        return promise.epsilon(delta), delta
    return "none", "none"


# Telling.


def shown_budget(epsilon: float) -> str:
    return "no noise" if epsilon == NO_NOISE else f"{epsilon:g}"


_COLUMNS = (
    *("table", "series", "epsilon", "total_epsilon", "delta", "training_records", "accuracy", "low_95", "high_95"),
    *("runs", "printed"),
)


def rows_of(points: Iterable[Point]) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """The long table. `epsilon` is what the thesis calls ε, `total_epsilon` what all that is published costs."""
    rows = []
    for point in points:
        task = point.task
        promised = ("", "") if task.epsilon == NO_NOISE else (point.total_epsilon, point.delta)
        printed = "" if task.printed is None else task.printed
        facts = (task.table, task.series, shown_budget(task.epsilon), *promised, point.training_records)
        rows.append((*facts, *point.bounds, task.runs, printed))
    return _COLUMNS, tuple(rows)


def contest(
    claim: str, pairs: Sequence[tuple[Sequence[Point], Sequence[Point]]], where: Sequence[str], of: str = "paper"
) -> Verdict:
    """The first is more accurate in every place: False where one is certainly behind, None where one is not ahead.

    A place is judged by the mean over its budgets, run by run; 95 % confidence for all places together.
    """
    told, texts = [], []
    for (first, second), place in zip(pairs, where, strict=True):
        told.append(beats(_joined(first), _joined(second), len(pairs)))
        texts.append(f"{place} {1 - _joined(first).mean():.3f} against {1 - _joined(second).mean():.3f}")
    holds = False if False in told else None if None in told else True
    count = f"ahead on {told.count(True)} of {len(told)}, behind on {told.count(False)}; " if len(told) > 1 else ""
    return Verdict(claim, holds, count + "; ".join(texts), of)


def _joined(points: Sequence[Point]) -> np.ndarray:
    return np.hstack([point.errors for point in points])


def price(points: Sequence[Point], epsilon: float) -> tuple[str, dict[str, float]]:
    """What the correction costs at one nominal ε, averaged over the tables: a paragraph and its numbers."""
    here = [point for point in points if point.task.epsilon == epsilon]
    means = {
        series: float(np.mean([point.mean for point in here if point.task.series == series]))
        for series in ("published, defaults", "corrected", "corrected, 3ε", "kernel")
    }
    total = f"{HONEST_FACTOR * epsilon:g}"
    places = len({(point.task.table, point.task.size) for point in here})
    text = (
        f"What the corrected privacy costs. As published, the proposed method has no guarantee: equilibrium points are "
        f"reached from the records, which no noise covers. Its two noisy steps alone spend {total}, not {epsilon:g}: ε "
        f"for the support function and 2ε for votes with Lap(1/ε), for replacing a record moves two votes. With this "
        f"project's settings it scores {means['published, defaults']:.3f} at a nominal ε = {epsilon:g}, averaged over "
        f"{places} data sets or sizes. The corrected method, started from public points, scores "
        f"{means['corrected']:.3f} at ε = {epsilon:g} and {means['corrected, 3ε']:.3f} at ε = {total}. "
        f"KernelClassifier, which uses no equilibrium points, scores {means['kernel']:.3f} at ε = {epsilon:g}. All but "
        f"the first keep δ = {DELTA:g}."
    )
    names = {"published, defaults": "published", "corrected, 3ε": "corrected_at_honest_total"}
    return text, {f"mean_{names.get(series, series)}_at_{epsilon:g}": mean for series, mean in means.items()}
