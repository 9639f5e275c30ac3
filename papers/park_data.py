"""The eight data sets of Park's thesis with public bounds written by hand, and what the thesis prints about them.

In:   the name of a data set, a seed.
Out:  Records: rows, labels, a public box; Setting: Table 7.1 and the times of Table 7.2.
Not here: training (park_trials.py), where files lie (data.py).

Bounds are round numbers that somebody who knows the attributes would write down, not the extremes of the file. The
thesis does not say how it scales columns; γ and r_max need a unit. Here the box of a measured column is taken to be six
standard deviations wide, whatever the data say. The two drawn tables have their own coordinates as the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from papers.data import find
from sfumato.errors import DataError

__all__ = ["ALL", "FILES", "REFERENCE", "SETTINGS", "Records", "Setting", "present", "read_records"]

REFERENCE = "Park, Differentially private multi-class classification using kernel supports and equilibrium points, 2022"


@dataclass(frozen=True)
class Records:
    """A table with its public box: (low, high), numbers or one for each column."""

    rows: np.ndarray
    labels: np.ndarray
    box: tuple[Any, Any]

    @property
    def classes(self) -> int:
        return len(np.unique(self.labels))

    @property
    def majority(self) -> float:
        """The accuracy of always answering the most frequent class."""
        return float(np.unique(self.labels, return_counts=True)[1].max() / len(self.labels))

    def part(self, chosen: np.ndarray) -> Records:
        return Records(self.rows[chosen], self.labels[chosen], self.box)


@dataclass(frozen=True)
class Setting:
    """A row of Table 7.1: (C/n, γ) of each method, r_max of the proposed one; sizes; seconds printed in Table 7.2."""

    size: int
    weight: tuple[float, float]
    semi: tuple[float, float]
    proposed: tuple[float, float]
    output: tuple[float, float]
    radius: float | None
    seconds: dict[str, float]
    #: How many of the thesis' units of length half a box holds.
    unit: float = 3.0

    def gamma(self, printed: float) -> float:
        """γ for a box of width 2.

        >>> SETTINGS["iris"].gamma(1.0)
        9.0
        """
        return printed * self.unit**2

    @property
    def merge_radius(self) -> float:
        """Equilibrium points this near are one; without hypercubes only those that are the same but for the last steps.

        >>> SETTINGS["vowel"].merge_radius, SETTINGS["three moons"].merge_radius
        (0.16666666666666666, 0.05)
        """
        return 0.05 if self.radius is None else self.radius / self.unit


def _times(weight: float, semi: float, proposed: float) -> dict[str, float]:
    return {"weight": weight, "semi": semi, "published": proposed}


#: Tables 7.1 and 7.2. Size: training and test records together.
SETTINGS: dict[str, Setting] = {
    "three moons": Setting(400, *[(0.05, 5.0)] * 4, radius=None, seconds=_times(4.72, 5.01, 0.90), unit=2.5),
    "five gaussians": Setting(
        1000,
        (0.1, 1.0),
        (0.1, 1.0),
        (0.1, 5.0),
        (0.1, 1.0),
        None,
        _times(100.65, 64.35, 2.41),
        unit=4.0,
    ),
    "iris": Setting(100, *[(0.05, 1.0)] * 4, radius=0.5, seconds=_times(0.60, 0.51, 0.18)),
    "wine": Setting(178, *[(0.05, 0.1)] * 4, radius=1.0, seconds=_times(4.66, 1.63, 1.32)),
    "vowel": Setting(528, (1.0, 1.0), *[(0.05, 1.0)] * 3, radius=0.5, seconds=_times(71.17, 31.39, 1.96)),
    "satimage": Setting(4435, (0.05, 0.1), (0.05, 1.0), (0.05, 0.1), (0.05, 1.0), 1.0, _times(1376.24, 1158.10, 31.03)),
    "segment": Setting(1540, *[(0.5, 1.0)] * 4, radius=0.5, seconds=_times(298.70, 140.61, 4.54)),
    "shuttle": Setting(
        30_450, (0.01, 0.1), (0.01, 0.1), (0.01, 1.0), (0.01, 0.1), 0.5, _times(49943.29, 52519.56, 1334.80)
    ),
}
ALL = tuple(SETTINGS)
#: Those that need a file.
FILES = ("vowel", "satimage", "segment", "shuttle")


def present(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those that can be read, and those whose file is absent."""
    absent = [name for name in names if name in FILES and find(name) is None]
    return [name for name in names if name not in absent], absent


def read_records(name: str, seed: int, size: int | None = None) -> Records:
    """As many records as the thesis uses, or `size`; where there are more, or they are drawn, `seed` says which."""
    generator = np.random.default_rng([seed, 97, ALL.index(name)])
    wanted = SETTINGS[name].size if size is None else size
    whole = _READERS[name](generator)
    if wanted >= len(whole.labels):
        return whole
    return whole.part(np.sort(generator.choice(len(whole.labels), wanted, replace=False)))


# Drawn.


def _three_moons(generator: np.random.Generator) -> Records:
    """Three half circles of radius 1 that reach into one another, as two moons do."""
    labels = np.arange(400) % 3
    angle = generator.uniform(0, np.pi, 400)
    turned = np.where(labels == 1, -1.0, 1.0)
    place = np.column_stack([np.cos(angle) + labels, turned * np.sin(angle) + np.where(labels == 1, 0.5, 0.0)])
    return Records(place + generator.normal(0, 0.1, (400, 2)), labels, (np.array([-1.5, -2.25]), np.array([3.5, 2.75])))


def _five_gaussians(generator: np.random.Generator) -> Records:
    labels = np.arange(1000) % 5
    centres = np.array([[-2, -2], [-2, 2], [2, -2], [2, 2], [0, 0]])
    return Records(centres[labels] + generator.normal(0, 0.6, (1000, 2)), labels, (-4.0, 4.0))


# Measured.


def _bounds(*pairs: tuple[float, float]) -> tuple[Any, Any]:
    low, high = np.array(pairs, dtype=float).T
    return low, high


_WINE = _bounds(
    *((11, 15), (0, 6), (1, 4), (10, 30), (70, 160), (0.5, 4), (0, 5), (0, 0.7), (0, 4), (1, 13), (0.4, 1.8), (1, 4)),
    (200, 1700),
)
#: Position in the image, pixels, line densities, edge contrasts, brightness and colour of outdoor pictures.
_SEGMENT = _bounds(
    *((0, 255), (0, 255), (0, 18), (0, 0.4), (0, 0.4), *[(0, 10)] * 4, *[(0, 150)] * 4),
    *((-50, 10), (-10, 80), (-35, 25), (0, 150), (0, 1), (-np.pi, np.pi)),
)
#: Nine counters of a spacecraft: time first, the second, fourth and sixth near zero but for faults.
_SHUTTLE = _bounds((25, 125), (-20, 20), (60, 120), (-20, 20), (-60, 60), (-50, 50), (0, 100), (0, 150), (-20, 130))


def _iris(_: np.random.Generator) -> Records:
    from sklearn.datasets import load_iris

    rows, labels = load_iris(return_X_y=True)
    return Records(np.asarray(rows), np.asarray(labels), _bounds((4, 8), (2, 4.5), (1, 7), (0, 2.6)))


def _wine(_: np.random.Generator) -> Records:
    from sklearn.datasets import load_wine

    rows, labels = load_wine(return_X_y=True)
    return Records(np.asarray(rows), np.asarray(labels), _WINE)


def _file(name: str) -> pa.Table:
    path = find(name)
    if path is None:
        raise DataError(
            f"The data set {name} was not found. Put {name}.parquet into ../shared/data beside the checkout, or set "
            "SFUMATO_DATA to the folder that holds it. Nothing was run."
        )
    try:
        return parquet.read_table(path)
    except (pa.ArrowException, OSError):
        raise DataError(f"{path} cannot be read as a Parquet file. Nothing was run.") from None


def _columns(table: pa.Table, names: Sequence[str]) -> np.ndarray:
    return np.column_stack([table[name].to_numpy().astype(float) for name in names])


def _training(table: pa.Table) -> pa.Table:
    return table.filter(pa.array(table["split"].cast(pa.string()).to_numpy() == "train"))


def _vowel(_: np.random.Generator) -> Records:
    table = _training(_file("vowel"))
    rows = _columns(table, [f"x{number}" for number in range(10)])
    return Records(rows, table["class"].to_numpy(), _bounds((-6, 0), (-2, 6), *[(-3, 3)] * 8))


def _satimage(_: np.random.Generator) -> Records:
    """Brightness of farmland in an 8-bit image."""
    table = _training(_file("satimage"))
    rows = _columns(table, [f"x{number}" for number in range(1, 37)])
    return Records(rows, table["class"].to_numpy(), (30.0, 160.0))


def _segment(_: np.random.Generator) -> Records:
    table = _file("segment")
    names = [name for name in table.column_names if name not in ("class", "split")]
    return Records(_columns(table, names), table["class"].cast(pa.string()).to_numpy().astype(str), _SEGMENT)


def _shuttle(_: np.random.Generator) -> Records:
    """Class 1, class 4 and all others: the thesis says three classes and not which."""
    table = _training(_file("shuttle"))
    number = table["class"].to_numpy()
    rows = _columns(table, [f"a{column}" for column in range(1, 10)])
    return Records(rows, np.where(number == 1, 0, np.where(number == 4, 1, 2)), _SHUTTLE)


_READERS: dict[str, Callable[[np.random.Generator], Records]] = {
    "three moons": _three_moons,
    "five gaussians": _five_gaussians,
    "iris": _iris,
    "wine": _wine,
    "vowel": _vowel,
    "satimage": _satimage,
    "segment": _segment,
    "shuttle": _shuttle,
}
