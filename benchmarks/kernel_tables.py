"""The tables of the kernel benchmark with public bounds written by hand.

In:   SFUMATO_DATA, or ../shared/data beside the repository; iris and wine from scikit-learn.
Out:  KernelTable: rows, labels, the public box.
Not here: the runs (benchmarks/kernel_supports.py).

Bounds are round numbers that somebody who knows the attributes would write down (documentation of the sets, units,
sensors), not minima and maxima of the rows; values outside are clipped. No privacy rests on them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from learn_common import read
from sklearn.datasets import load_iris, load_wine


class KernelTable(NamedTuple):
    rows: np.ndarray
    labels: np.ndarray
    box: tuple[Any, Any]


def _bounds(*pairs: tuple[float, float]) -> tuple[Any, Any]:
    low, high = np.array(pairs, dtype=float).T
    return low, high


def satimage() -> KernelTable:
    table = read("satimage.parquet").to_pandas()
    rows = table[[f"x{number}" for number in range(1, 37)]].to_numpy(float)
    return KernelTable(rows, table["class"].to_numpy(), (30.0, 160.0))  # brightness of farmland in an 8-bit image


#: Position in the image, pixels, line densities, edge contrasts, brightness and colour of outdoor pictures.
SEGMENT = _bounds(
    (0, 255),
    (0, 255),
    (0, 18),
    (0, 0.4),
    (0, 0.4),
    *[(0, 10)] * 4,
    (0, 150),
    (0, 150),
    (0, 150),
    (0, 150),
    (-50, 10),
    (-10, 80),
    (-35, 25),
    (0, 150),
    (0, 1),
    (-np.pi, np.pi),
)


def segment() -> KernelTable:
    table = read("segment.parquet").to_pandas()
    rows = table.drop(columns=["class", "split"]).to_numpy(float)
    return KernelTable(rows, table["class"].to_numpy().astype(str), SEGMENT)


#: Nine counters of a spacecraft: time first, the second, fourth and sixth near zero but for faults.
SHUTTLE = _bounds((25, 125), (-20, 20), (60, 120), (-20, 20), (-60, 60), (-50, 50), (0, 100), (0, 150), (-20, 130))


def shuttle(share: float = 1.0, seed: int = 0) -> KernelTable:
    """30,450 rows of the training file as in the thesis; class 1, class 4 and all others. `share` takes a part."""
    table = read("shuttle.parquet").to_pandas()
    table = table[table["split"] == "train"]
    chosen = np.random.default_rng(seed).permutation(len(table))[: round(30_450 * share)]
    rows = table[[f"a{number}" for number in range(1, 10)]].to_numpy(float)[chosen]
    names = table["class"].to_numpy()[chosen]
    return KernelTable(rows, np.where(names == 1, 0, np.where(names == 4, 1, 2)), SHUTTLE)


def iris() -> KernelTable:
    rows, labels = load_iris(return_X_y=True)
    return KernelTable(np.asarray(rows), np.asarray(labels), _bounds((4, 8), (2, 4.5), (1, 7), (0, 2.6)))


WINE = _bounds(
    (11, 15),
    (0, 6),
    (1, 4),
    (10, 30),
    (70, 160),
    (0.5, 4),
    (0, 5),
    (0, 0.7),
    (0, 4),
    (1, 13),
    (0.4, 1.8),
    (1, 4),
    (200, 1700),
)


def wine() -> KernelTable:
    rows, labels = load_wine(return_X_y=True)
    return KernelTable(np.asarray(rows), np.asarray(labels), WINE)


def vowel() -> KernelTable:
    table = read("vowel.parquet").to_pandas()
    rows = table[[f"x{number}" for number in range(10)]].to_numpy(float)
    return KernelTable(rows, table["class"].to_numpy(), _bounds((-6, 0), (-2, 6), *[(-3, 3)] * 8))
