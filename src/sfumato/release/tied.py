"""Columns that stay tied: noise that no published row can break a linear constraint with.

In:   public constraints Σ weight·column ≥ least (start ≤ end), the public schema, the box in units of public ranges.
Out:  TiedColumns, one act for each group of columns that constraints tie together.
Not here: the law of one number (core/noise.py), drawing it (mechanisms/box.py), columns that are free (release/box.py).
Proof: docs/proofs/box.md
Reference: Farokhi 2020, Thm 2.6, on supports that are boxes in coordinates of the constraints.

In place of start and end the middle and the gap are drawn: the middle with noise to both sides, the gap with noise that
only widens it. In the columns this is noise on a rectangle that stands on its corner, on which n_start ≤ n_end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.core.events.event import Event
from sfumato.core.noise import Noise, SummedNoise
from sfumato.core.schema import Schema
from sfumato.core.tables import nearest
from sfumato.errors import PrivacyParameterError
from sfumato.mechanisms import Box
from sfumato.release.acts import ColumnAct, Columns, interval, seeded

__all__ = ["Constraint", "TiedColumns", "constraints_of", "tied_columns"]

#: What floating point may lose of numbers that pass through the inverse of the coordinates, given its condition times
#: the number of columns; and, for each column, of numbers that are only added.
_SOLVED, _CONDITION, _ADDED = 2.0**-38, 2.0**13, 2.0**-51


@final
@dataclass(frozen=True)
class Constraint:
    """Σ terms[column]·column is at least `least`, for every record: a public fact, like a column's range.

    >>> Constraint.order("start", "end")
    Constraint(terms={'start': -1.0, 'end': 1.0}, least=0.0)
    """

    terms: Mapping[str, float]
    least: float = 0.0

    def __post_init__(self) -> None:
        sizes = [self.least, *self.terms.values()]
        if not self.terms or not all(map(math.isfinite, sizes)) or 0 in self.terms.values():
            raise _refused("a constraint needs columns with weights that are numbers other than 0")

    @classmethod
    def order(cls, smaller: str, larger: str) -> Constraint:
        """smaller ≤ larger."""
        if smaller == larger:
            raise _refused(f"{smaller!r} cannot be ordered against itself")
        return cls({smaller: -1.0, larger: 1.0})

    def kept_by_clipping(self, schema: Schema) -> bool:
        """Whether putting single columns back into their ranges cannot break it: an order of ranges in that order."""
        if sorted(self.terms.values()) != [-1.0, 1.0] or self.least != 0:
            return False
        smaller, larger = (interval(schema, name) for name in sorted(self.terms, key=lambda name: self.terms[name]))
        return smaller.low <= larger.low and smaller.high <= larger.high


def constraints_of(given: Sequence[Constraint | Sequence[str]]) -> tuple[Constraint, ...]:
    """Constraints as such, and names in rising order as the orders of neighbours.

    >>> len(constraints_of([("born", "admitted", "discharged")]))
    2
    """
    found: list[Constraint] = []
    for one in given:
        if isinstance(one, Constraint):
            found.append(one)
        elif isinstance(one, str) or len(one) < 2 or not all(isinstance(name, str) for name in one):
            raise _refused(f"{one!r} is neither a Constraint nor names in rising order, as ('start', 'end')")
        else:
            found += [Constraint.order(*pair) for pair in pairwise(one)]
    return tuple(found)


@final
@dataclass(frozen=True)
class TiedColumns(ColumnAct):
    """Box noise on the coordinates `rows`·z + `offsets`, each in [0, 1]; z are the columns in units of their ranges.

    The first `forms` coordinates are constraints, 0 where they hold with equality. Their noise lies in
    [grid, 2·half_width + grid]: the margin of one cell is more than rounding can take away, so that no published row
    has less of a form than the true one. A record that breaks a constraint counts as one that just keeps it.
    """

    columns: tuple[str, ...]
    forms: int
    rows: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]
    mechanism: Box

    @cached_property
    def _back(self) -> np.ndarray:
        return np.linalg.inv(np.array(self.rows))

    @cached_property
    def _means(self) -> np.ndarray:
        """Of the noise on each coordinate."""
        places = np.arange(len(self.columns))
        return np.where(places < self.forms, self.mechanism.half_width + self.mechanism.grid, 0.0)

    def weights(self, schema: Schema) -> np.ndarray:
        """What a unit of noise on each coordinate is in each column's own unit, columns down the rows."""
        widths = np.array([interval(schema, name).width for name in self.columns])
        return widths[:, None] * self._back

    def events(self) -> list[Event]:
        return [self.mechanism.event()] * len(self.columns)

    def apply(self, table: pa.Table, schema: Schema, batch: int) -> Columns:
        domains = [interval(schema, name) for name in self.columns]
        read = [(d.place(table[n], n) - d.low) / d.width for d, n in zip(domains, self.columns, strict=True)]
        noisy: list[np.ndarray] = []
        for place, (row, offset) in enumerate(zip(self.rows, self.offsets, strict=True)):
            # Whatever floating point makes of a record lies in [0, 1]: its sensitivity is 1 without a proviso.
            coordinate = np.clip(_combined(row, read) + offset, 0.0, 1.0)
            noise = seeded(self.mechanism, batch, "tied", self.columns[0], place)
            noisy.append(noise(coordinate) + (self._means[place] - offset))
        back = zip(self.columns, domains, self._back, strict=True)
        return {name: domain.low + domain.width * _combined(row, noisy) for name, domain, row in back}

    def shifts(self, schema: Schema) -> dict[str, float]:
        means = self.weights(schema) @ self._means
        return {name: float(mean) for name, mean in zip(self.columns, means, strict=True) if mean}

    def laws(self, schema: Schema) -> dict[str, Noise]:
        noise, found = self.mechanism, {}
        for name, row in zip(self.columns, self.weights(schema), strict=True):
            felt = row[np.abs(row) > 1e-9 * np.abs(row).max()]  # the others are what rounding left of 0
            found[name] = SummedNoise(noise.half_width, noise.stiffness, tuple(map(float, felt)))
        return found

    def joint(self, schema: Schema) -> tuple[tuple[str, ...], np.ndarray] | None:
        weights = self.weights(schema)
        return self.columns, self.mechanism.noise.variance() * (weights @ weights.T)

    def unbiased(self, schema: Schema) -> dict[str, float]:
        """Of an attacker who sees all the columns: the diagonal of the inverse of their joint information."""
        least = (self.weights(schema) ** 2).sum(axis=1) / self.mechanism.noise.fisher_information()
        return {name: float(error) for name, error in zip(self.columns, least, strict=True)}


def _combined(weights: Sequence[float] | np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Σ weight·column, row by row: a product of matrices may round a row by how many there are beside it."""
    total = np.zeros_like(columns[0])
    for weight, column in zip(weights, columns, strict=True):
        total += float(weight) * column
    return total


def tied_columns(
    constraints: Sequence[Constraint], schema: Schema, numbers: Sequence[str], noise: Box
) -> list[TiedColumns]:
    """One act for each group of columns that constraints tie together, with noise in units of public ranges."""
    for one in constraints:
        for name in one.terms:
            if name not in numbers:
                hint = nearest(name, list(numbers))
                raise _refused(
                    f"{name!r} is not a numeric feature; the numeric features are {', '.join(numbers)}.{hint}"
                )
    return [_tied(group, schema, noise) for group in _groups(constraints)]


def _groups(constraints: Sequence[Constraint]) -> list[list[Constraint]]:
    """Constraints that share columns, directly or through others, stand together."""
    groups: list[list[Constraint]] = []
    for one in constraints:
        near = [group for group in groups if any(set(one.terms) & set(other.terms) for other in group)]
        groups = [group for group in groups if group not in near] + [[*(c for group in near for c in group), one]]
    return groups


def _tied(group: list[Constraint], schema: Schema, noise: Box) -> TiedColumns:
    columns = tuple(dict.fromkeys(name for one in group for name in one.terms))
    low = np.array([interval(schema, name).low for name in columns])
    width = np.array([interval(schema, name).width for name in columns])
    weights = np.array([[one.terms.get(name, 0.0) for name in columns] for one in group])
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(weights * width).sum(axis=1)
        forms = weights * width / size[:, None]
    _check_independent(group, forms)
    rows = np.vstack([forms, _beside(forms)])
    bounds = np.minimum(rows, 0.0).sum(axis=1), np.maximum(rows, 0.0).sum(axis=1)
    least = np.array([one.least for one in group]) - weights @ low
    start = bounds[0]
    start[: len(group)] = np.maximum(start[: len(group)], least / size)
    extent = bounds[1] - start
    if extent.min() < 1e-6:
        tight = group[int(np.argmin(extent))]
        raise _refused(f"{_words(tight)} leaves the public ranges of its columns no room: widen them, or leave it out")
    act = TiedColumns(
        columns,
        len(group),
        tuple(tuple(map(float, row)) for row in rows / extent[:, None]),
        tuple(map(float, -start / extent)),
        noise,
    )
    _check_rounding(act, weights, low, width)
    return act


def _beside(forms: np.ndarray) -> np.ndarray:
    """Directions orthogonal to the forms and to each other, found in one order on every machine (Gram-Schmidt)."""
    size = forms.shape[1]
    found = list(np.linalg.qr(forms.T)[0].T)
    added: list[np.ndarray] = []
    for unit in np.eye(size):
        rest = unit
        for _ in range(2):  # twice is enough for orthogonality to the last digit
            rest = rest - sum((rest @ other) * other for other in found)
        length = float(np.linalg.norm(rest))
        if len(found) < size and length > 1 / (2 * size):
            found.append(rest / length)
            added.append(rest / np.abs(rest).sum())
    return np.array(added).reshape(-1, size)


def _check_independent(group: list[Constraint], forms: np.ndarray) -> None:
    if not np.isfinite(forms).all():
        raise _refused(
            f"{'; '.join(map(_words, group))}: floating point cannot hold these weights; divide them by one number"
        )
    if len(group) > forms.shape[1] or np.linalg.matrix_rank(forms, tol=1e-6) < len(group):
        raise _refused(
            f"{'; '.join(map(_words, group))}: these depend on each other. Leave out what follows from the others. "
            "More constraints than columns, or a form that is bounded from both sides, cannot be kept by adding noise: "
            "leave some out and move what was published to where they hold, which costs nothing"
        )


def _check_rounding(act: TiedColumns, weights: np.ndarray, low: np.ndarray, width: np.ndarray) -> None:
    """The margin of half a cell covers what floating point loses between a coordinate and the published columns."""
    noise, back = act.mechanism, np.abs(act._back)
    farthest = 2 * noise.half_width + 2 + np.abs(act.offsets)
    lost = np.abs(weights) @ (len(low) * _ADDED * np.abs(low) + _SOLVED * width * (1 + back @ farthest))
    margins = noise.grid / 2 * np.abs(np.diag(weights @ (width[:, None] * act._back)))
    condition = np.linalg.cond(np.array(act.rows)) * len(act.columns)
    if condition > _CONDITION or (lost > margins).any():
        raise _refused(
            f"floating point cannot keep the constraints between {', '.join(act.columns)}: subtract a public number "
            "from columns far from 0, take a wider box, or leave a constraint out that nearly follows from others"
        )


def _words(one: Constraint) -> str:
    return " + ".join(f"{weight:g}·{name}" for name, weight in one.terms.items()) + f" ≥ {one.least:g}"


def _refused(why: str) -> PrivacyParameterError:
    return PrivacyParameterError(f"constraints: {why}. Nothing was drawn or spent.")
