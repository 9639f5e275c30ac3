"""One function of each column: public bins, and features in which such functions are linear and smooth ones short.

In:   a schema, how many bins an interval has, edges that somebody wrote down; a table.
Out:  Terms: for every row features of norm 1, for coefficients the functions they mean.
Not here: training (learn/additive.py).
Proof: docs/proofs/additive.md

The bins of an interval are equally wide, or, where it begins at 0, finer towards 0, where amounts and counts crowd:
public facts. A bin whose middle lies x of the way up, in bins, has the features √w_k·(cos πkx, sin πkx) for k = 1 … 7
with w_k proportional to exp(-(0.2πk)²/2), Σw = 1: norm 1 everywhere. The inner product of two bins falls with the
distance between them, so a ridge on the coefficients charges a function for bending: neighbouring bins share what they
learn, and bins without records follow their neighbours. The categories of a column are the corners of a regular
simplex: vectors of norm 1, as far from one another as so many can be, and their mean is 0. No column has a constant of
its own: what all rows have in common is the one constant that the linear model adds. The number of bins costs nothing,
as there are as many features whatever it is. The numbers (64 bins, 0.2, the square) were fixed on simulated tables,
curved ones and straight ones; straight ones were added after a first kernel had been below logistic regression on the
lending table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.checks import number
from sfumato.core.domain import Categories, Interval
from sfumato.core.schema import Schema
from sfumato.errors import InputError, SchemaError

__all__ = ["Shape", "Terms"]

#: The width of the kernel, where an interval has length 1 in bins, and how many waves carry all but 1e-4 of it.
_REACH, _WAVES = 0.2, 7
_MOST_BINS = 4096


@dataclass(frozen=True)
class Shape:
    """What a column adds to the score: `values[i]` in bin i, one column for each score, and the mean over bins is 0.

    `edges` are the ends of the bins of an interval, from low to high; `labels` the categories.
    """

    column: str
    edges: np.ndarray | None
    labels: tuple[Any, ...] | None
    values: np.ndarray

    def names(self) -> list[str]:
        """A name for each bin."""
        if self.edges is None:
            return [str(label) for label in self.labels or ()]
        return [f"{low:.4g} to {high:.4g}" for low, high in zip(self.edges[:-1], self.edges[1:], strict=True)]


class Terms:
    """The bins and features of a schema.

    >>> terms = Terms(Schema({"age": Interval(20, 100), "sex": Categories(["f", "m"])}), bins=4)
    >>> terms.bins_of({"age": [25, 99], "sex": ["m", "f"]})
    array([[0, 1],
           [3, 0]])
    >>> rows = terms({"age": [25, 99], "sex": ["m", "f"]})
    >>> rows.shape, [round(float(one), 12) for one in np.linalg.norm(rows, axis=1)]
    ((2, 15), [1.0, 1.0])
    """

    def __init__(self, schema: Any, bins: Any, edges: Any = None, waves: int = _WAVES) -> None:
        if not isinstance(schema, Schema):
            raise SchemaError(
                "An additive model needs schema=Schema({…}): the public range or categories of every column say where "
                "its bins lie. Nothing was spent."
            )
        if not isinstance(bins, int | np.integer) or isinstance(bins, bool) or not 1 <= bins <= _MOST_BINS:
            raise InputError(f"bins must be a whole number from 1 to {_MOST_BINS}. Nothing was spent.")
        self.schema = Schema(schema.columns)  # without its norm: rows have norm 1 by themselves
        given = _checked_edges(edges, self.schema)
        self.edges = {
            name: given.get(name, _public_edges(domain, int(bins)))
            for name, domain in schema.columns.items()
            if isinstance(domain, Interval)
        }
        self._tables = {name: self._table(name, waves) for name in schema.columns}
        ends = np.cumsum([0, *(table.shape[1] for table in self._tables.values())])
        self.slices = {name: slice(*ends[at : at + 2]) for at, name in enumerate(self._tables)}
        self.width = int(ends[-1])

    def _table(self, name: str, waves: int) -> np.ndarray:
        """The features of each bin, a row of norm 1/√columns for each."""
        domain = self.schema.columns[name]
        if isinstance(domain, Categories) and domain.features > _MOST_BINS:
            raise SchemaError(
                f"{name!r} has {domain.features} categories, and a function has at most {_MOST_BINS} bins: group them "
                "into fewer. Nothing was spent."
            )
        if isinstance(domain, Categories):
            table = _corners(domain.features)
        else:
            table = _waves(len(self.edges[name]) - 1, waves)
        return table / math.sqrt(len(self.schema.columns))

    def bins_of(self, table: Any) -> np.ndarray:
        """(rows, columns): in which bin each cell lies; absent and unlisted cells go where the schema says."""
        encoded = self.schema.encode(table, extra="ignore")
        places = np.empty((len(encoded), len(self.schema.columns)), dtype=np.intp)
        for at, (name, part) in enumerate(self.schema.slices.items()):
            domain = self.schema.columns[name]
            if isinstance(domain, Interval):
                inner = (self.edges[name][1:-1] - domain.low) / domain.width
                places[:, at] = np.searchsorted(inner, encoded[:, part.start], side="right")
            else:
                places[:, at] = encoded[:, part].argmax(axis=1)
        return places

    def __call__(self, table: Any) -> np.ndarray:
        """(rows, width): features of norm 1."""
        return self.features(self.bins_of(table))

    def features(self, places: np.ndarray) -> np.ndarray:
        rows = np.empty((len(places), self.width))
        for at, (name, part) in enumerate(self.slices.items()):
            rows[:, part] = self._tables[name][places[:, at]]
        return rows

    def shapes(self, coefficients: np.ndarray) -> tuple[dict[str, Shape], np.ndarray]:
        """The functions that (scores, width) coefficients mean, each with mean 0 over its bins; what was taken off."""
        found, taken = {}, np.zeros(len(coefficients))
        for name, part in self.slices.items():
            values = self._tables[name] @ coefficients[:, part].T
            middle = values.mean(axis=0)
            domain = self.schema.columns[name]
            labels = domain.values if isinstance(domain, Categories) else None
            found[name] = Shape(name, self.edges.get(name), labels, values - middle)
            taken = taken + middle
        return found, taken


def _waves(bins: int, count: int = _WAVES) -> np.ndarray:
    """The features of each bin of an interval, in rows of norm 1."""
    waves = np.arange(1, count + 1)
    weights = np.exp(-((math.pi * _REACH * waves) ** 2) / 2)
    roots = np.sqrt(weights / weights.sum())
    angles = math.pi * np.multiply.outer((np.arange(bins) + 0.5) / bins, waves)
    return np.hstack([roots * np.cos(angles), roots * np.sin(angles)])


def _corners(count: int) -> np.ndarray:
    """The features of each of so many categories: corners of a regular simplex, in rows of norm 1.

    >>> _corners(2).round(12).tolist()
    [[1.0], [-1.0]]
    """
    if count == 1:
        return np.ones((1, 1))
    places, corners = np.arange(1, count), np.zeros((count, count - 1))
    for place in places:  # the mean of the categories before it against the next one (Helmert)
        corners[:place, place - 1] = 1.0
        corners[place, place - 1] = -place
    return corners * np.sqrt(count / ((count - 1.0) * places * (places + 1.0)))


def _public_edges(domain: Interval, bins: int) -> np.ndarray:
    steps = np.arange(bins + 1) / bins
    edges = domain.low + domain.width * (steps**2 if domain.low == 0 else steps)
    edges[-1] = domain.high
    return edges


def _checked_edges(edges: Any, schema: Schema) -> dict[str, np.ndarray]:
    if edges is None:
        return {}
    if not isinstance(edges, Mapping):
        raise SchemaError("edges must name columns: edges={'age': [18, 30, 65]}. Nothing was spent.")
    return {name: _inside(name, given, schema) for name, given in edges.items()}


def _inside(name: Any, given: Sequence[float], schema: Schema) -> np.ndarray:
    domain = schema.columns.get(name)
    if not isinstance(domain, Interval):
        raise SchemaError(f"edges are for intervals of the schema, and {name!r} is none. Nothing was spent.")
    inner = [number(edge, "an edge") for edge in given]
    whole = np.array([domain.low, *inner, domain.high])
    if not (np.diff(whole) > 0).all() or len(whole) > _MOST_BINS:
        raise SchemaError(
            f"edges of {name!r} must rise strictly between its ends {domain.low:g} and {domain.high:g}, and be public "
            "numbers, not quantiles of the data. Nothing was spent."
        )
    return whole
