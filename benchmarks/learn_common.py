"""What the learning benchmarks share: data, folds, scores, the printed table.

In:   SFUMATO_DATA, or ../shared/data beside the repository.
Out:  tables, cross-validated error and AUC with repeated noise, lines "ours | bar | peer".
Not here: the schemas, which stand by hand in each benchmark.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

#: Beside the virtual environment, which version control ignores.
PEER = Path(__file__).parents[1] / ".venv" / "peer"
PEER_RESULTS = PEER / "diffprivlib_results.json"


class Score(NamedTuple):
    """Means over folds and noise draws; `spread` is the standard deviation of the error over draws."""

    error: float
    auc: float
    spread: float
    seconds: float


def data_folder() -> Path:
    return Path(os.environ.get("SFUMATO_DATA", Path(__file__).parents[2] / "shared" / "data"))


def read(name: str) -> Any:
    return pq.read_table(data_folder() / name)


def folds(labels: np.ndarray, count: int = 10) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return StratifiedKFold(count, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels)


def cross_validate(
    make: Callable[[int], Any], table: Any, labels: np.ndarray, draws: int = 10, count: int = 10
) -> Score:
    """`draws` fits on each of `count` folds; `make(seed)` gives a fresh estimator with all its defaults."""
    errors, aucs = np.empty((draws, count)), np.empty((draws, count))
    seconds = 0.0
    for number, (train, test) in enumerate(folds(labels, count)):
        train_rows, test_rows = table.take(train), table.take(test)
        for draw in range(draws):
            start = time.perf_counter()
            model = make(1000 * number + draw).fit(train_rows, labels[train])
            seconds += time.perf_counter() - start
            scores = model.decision_function(test_rows)
            errors[draw, number] = np.mean((scores > 0) != (labels[test] == model.classes_[1]))
            aucs[draw, number] = roc_auc_score(labels[test], scores)
    return Score(errors.mean(), aucs.mean(), errors.mean(axis=1).std(), seconds / (draws * count))


def peer(key: str) -> str:
    """What benchmarks/diffprivlib_peer.py measured, or how to measure it."""
    if not PEER_RESULTS.exists():
        return "run benchmarks/diffprivlib_peer.py"
    return json.loads(PEER_RESULTS.read_text()).get(key, "not measured")


def line(name: str, score: Score, error_bar: float, auc_bar: float | None, peer_text: str) -> bool:
    """Prints one row; whether both bars are met."""
    met = score.error <= error_bar and (auc_bar is None or score.auc >= auc_bar)
    bar = f"error <= {error_bar}" + (f", AUC >= {auc_bar}" if auc_bar else "")
    print(
        f"{'ok  ' if met else 'MISS'} {name:34s} error {score.error:.4f} ± {score.spread:.4f}  AUC {score.auc:.4f}  "
        f"| bar {bar:28s} | diffprivlib {peer_text} | {score.seconds:.2f} s/fit",
        flush=True,
    )
    return met
