"""What the institutions sum: each patient adds one bounded vector.

In:   a public description (schema, norm); at a centre, its own rows.
Out:  the centre's sum in whole cells of the grid; how far one unit moves it; what the noisy total says.
Not here: what a learner sums (clipped_sums.py, gradients.py), noise (mechanisms/shares.py), masks (masks.py).

What each patient adds is clipped by public bounds and rounded to the grid on its own, so sums are sums of whole
numbers: exact in any order. Products are clipped as products: noise is put on clipped statistics, never carried through
them.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from sfumato.centres.placing import placed_rows, texts_of
from sfumato.core.adjacency import Adjacency, Relation
from sfumato.core.checks import positive
from sfumato.core.domain import Categories, Domain, Interval
from sfumato.core.kept_rows import PUBLIC_KEY, kept_rows
from sfumato.core.norms import L1, L2
from sfumato.core.schema import Schema
from sfumato.errors import DataError, InputError, PrivacyParameterError, SchemaError
from sfumato.mechanisms.grid_law import Law, grid_law
from sfumato.questions.axis import Axis
from sfumato.questions.count import Count as CountQuestion
from sfumato.questions.histogram import Histogram as HistogramQuestion
from sfumato.questions.mean import Mean as MeanQuestion
from sfumato.questions.moves import Moves
from sfumato.questions.sum import Sum as SumQuestion

__all__ = ["Count", "Histogram", "Means", "OfSchema", "SecondMoments", "Statistic", "statistic_from_dict"]

#: The unit whose change replaces everything an institution adds.
CENTRE = "centre"
#: Floating-point error of a contribution, relative; a few products of numbers up to 1.
_ARITHMETIC = 1 + 1e-12
#: Scaling a centre's vector and rounding it again may move neighbours by two more cells a coordinate; the grid is at
#: most 2^-12 of the sensitivity for all coordinates together (mechanisms/grid.py).
_SCALED = 1 + 2.0**-10
_NUMBERS = 1 << 21
#: The rows of one patient are added in floating point; so many keep within _ARITHMETIC.
MOST_ROWS = 1000
_log = logging.getLogger("sfumato.centres")


@dataclass(frozen=True)
class Statistic(ABC):
    """A sum over patients of vectors within public bounds. Abstract.

    With `centre_norm` a centre's whole vector is scaled down to that L2 length where it is longer: that bounds what one
    centre can change, so that a centre's own figure can be protected as well.

    With `identity`, the column that says whose a row is, one patient may have several rows: at most `rows_per_person`
    of them count, a fair sample (core/kept_rows.py), and their sum is what one patient adds. Without it every row is
    taken for a patient of its own: that no patient has two is then the word of whoever plans the round.
    """

    kind: ClassVar[str]
    #: Whether numbers may be below 0.
    signed: ClassVar[bool] = False

    centre_norm: float | None = field(default=None, kw_only=True)
    identity: str | None = field(default=None, kw_only=True)
    rows_per_person: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if self.centre_norm is not None:
            positive(self.centre_norm, "centre_norm")
        most = self.rows_per_person
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST_ROWS:
            raise InputError(f"rows_per_person must be a whole number from 1 to {MOST_ROWS}. Nothing was run.")
        if self.identity is not None and not isinstance(self.identity, str):
            raise InputError("identity must be the name of a column. Nothing was run.")
        if most > 1 and self.identity is None:
            raise InputError("Several rows a patient need identity: the column that says whose. Nothing was run.")
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Raise InputError if the description means nothing."""

    @property
    @abstractmethod
    def length(self) -> int:
        """How many numbers are summed."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What each number is."""

    @property
    @abstractmethod
    def largest_entry(self) -> float:
        """The largest absolute value in one patient's vector."""

    @abstractmethod
    def _row_moves(self, relation: Relation) -> Moves:
        """How far a patient with one row moves the sum; infinite in a norm that nothing bounds."""

    @abstractmethod
    def _opened(self, table: Any) -> np.ndarray:
        """The rows as a matrix within public bounds."""

    @abstractmethod
    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        """One vector for each row."""

    def sensitivity(self, adjacency: Adjacency, law: Law) -> float:
        """How far one unit moves the sum over all centres. The unit "centre" needs `centre_norm`."""
        norm = grid_law(law).norm
        if adjacency.unit == CENTRE:
            if self.centre_norm is None or norm is not L2:
                raise PrivacyParameterError(
                    "Protecting a centre's own figure needs centre_norm, a public bound on its length, and Gaussian "
                    "noise. Nothing was spent."
                )
            # Nothing is negative in the vectors of a schema, so replacing one is √2; of either sign, 2.
            replaced = 2.0 if self.signed else math.sqrt(2)
            return L2(self.centre_norm * (replaced if adjacency.relation == "replace-one" else 1.0))
        if self.centre_norm is not None and norm is not L2:
            # Scaling onto an L2 ball moves no two vectors apart in L2; in L1 it does, up to √length times as far.
            raise PrivacyParameterError(
                f"centre_norm bounds a centre's figure in L2, and {law} noise is measured in {norm.__name__}: promise "
                "a δ, which takes Gaussian noise, or leave centre_norm out. Nothing was spent."
            )
        moved = self._moves(adjacency.relation).by(norm) * _ARITHMETIC
        if moved == 0:
            raise PrivacyParameterError(
                "Replacing one patient leaves the sum as it is: use add-remove. Nothing was spent."
            )
        if not math.isfinite(moved):
            raise PrivacyParameterError(
                f"These vectors are not clipped in {norm.__name__}, by which {law} noise is measured: clip them so "
                "(ClippedSums: order=1), or take Gaussian noise. Nothing was spent."
            )
        return norm(moved if self.centre_norm is None else moved * _SCALED)

    def _moves(self, relation: Relation) -> Moves:
        """What one patient adds with up to N rows lies in N times the hull of 0 and one row's vectors."""
        most, one = self.rows_per_person, self._row_moves(relation)
        if most == 1:
            return one
        alone = self._row_moves("add-remove")
        return Moves(L1(most * max(one.l1, alone.l1)), L2(most * max(one.l2, alone.l2)), tight=False)

    @property
    def largest_person(self) -> float:
        """The largest absolute value in what one patient adds."""
        return self.rows_per_person * self.largest_entry

    def largest_part(self, grid: float, most_patients: int) -> int:
        """The largest number, in cells, that a centre's figure can have without noise."""
        return math.ceil(most_patients * (self.largest_person / grid + 1))

    def cells(
        self,
        table: Any,
        grid: float,
        most_patients: int,
        *,
        people: Sequence[str | None] | None = None,
        key: bytes = PUBLIC_KEY,
    ) -> np.ndarray:
        """This centre's sum in whole cells (int64). No cell makes it fail: centres/placing.py.

        A sum that is larger than `most_patients` patients can make it is cut there, number by number: cutting moves no
        two neighbours further apart, where a refusal would tell that there is one patient more. The centre's own log
        says so. `people` says whose each row is where the table has no such column; `key` chooses among the rows of
        patients with many.
        """
        rows = self._opened(table)
        total = np.zeros(self.length, dtype=np.int64)
        for vectors in self._vectors(rows, self._owners(table, people, len(rows)), key):
            total += np.rint(vectors * (1 / grid)).astype(np.int64).sum(axis=0)
        most = self.largest_part(grid, most_patients)
        if int(np.abs(total).max(initial=0)) > most:
            _log.warning("This centre's sum is cut: it has more rows than most_patients. Agree on a larger bound.")
        return self._within_centre_norm(np.clip(total, -most, most), grid)

    def _owners(self, table: Any, people: Sequence[str | None] | None, rows: int) -> Sequence[str | None] | None:
        if people is None and self.identity is not None:
            people = self._identities(table)
        if people is not None and len(people) != rows:
            raise DataError("The identities and the rows differ in number. Nothing was sent.")
        return people

    def _identities(self, table: Any) -> Sequence[str | None]:
        raise DataError(f"{self.kind}: an array has no column of identities; give people=… Nothing was sent.")

    def _vectors(self, rows: np.ndarray, people: Sequence[str | None] | None, key: bytes) -> Iterator[np.ndarray]:
        """What the patients add, some at a time, one vector a patient."""
        step = max(1, _NUMBERS // max(1, self.length * self.rows_per_person))
        if people is None:
            for start in range(0, len(rows), step):
                yield self._contributions(rows[start : start + step])
            return
        kept, starts = kept_rows(people, rows, self.rows_per_person, key)
        ends = np.append(starts[1:], len(kept))
        for first in range(0, len(starts), step):
            begin, end = starts[first], ends[min(first + step, len(starts)) - 1]
            yield np.add.reduceat(self._contributions(rows[kept[begin:end]]), starts[first : first + step] - begin)

    def _within_centre_norm(self, total: np.ndarray, grid: float) -> np.ndarray:
        if self.centre_norm is None:
            return total
        length, most = float(np.linalg.norm(total.astype(np.float64))), self.centre_norm / grid
        return total if length <= most else np.rint(total * (most / length)).astype(np.int64)

    def read(self, values: np.ndarray) -> dict[str, Any]:
        """What the total says, by name; post-processing."""
        return dict(zip(self.names, (float(value) for value in values), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Everything public that makes it again: `statistic_from_dict` is the inverse."""
        record: dict[str, Any] = {"kind": self.kind}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            record[item.name] = value.to_toml() if isinstance(value, Schema) else value
        return record


@dataclass(frozen=True)
class OfSchema(Statistic):
    """A statistic of the columns of a schema. Abstract."""

    schema: Schema

    def _check(self) -> None:
        if not isinstance(self.schema, Schema) or self.schema.norm is not None:
            raise SchemaError("A statistic of several centres needs a Schema without norm. Nothing was run.")

    def _opened(self, table: Any) -> np.ndarray:
        return placed_rows(self.schema, table)

    def _identities(self, table: Any) -> Sequence[str | None]:
        assert self.identity is not None
        return texts_of(table, self.identity)

    @cached_property
    def _kinds(self) -> tuple[int, int]:
        """How many columns are intervals, and how many are categories."""
        intervals = sum(isinstance(domain, Interval) for domain in self.schema.columns.values())
        return intervals, len(self.schema.columns) - intervals

    @property
    def largest_entry(self) -> float:
        return 1.0


@dataclass(frozen=True)
class Count(OfSchema):
    """How many patients there are. The schema only says which table is meant.

    >>> Count(Schema({"age": Interval(0, 100)})).cells({"age": [50, 60, 70]}, 0.25, 10)
    array([12])
    """

    kind: ClassVar[str] = "count"

    @property
    def length(self) -> int:
        return 1

    @property
    def names(self) -> tuple[str, ...]:
        return ("count",)

    def _row_moves(self, relation: Relation) -> Moves:
        return CountQuestion(everybody=True, relation=relation).moves()

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        return np.ones((len(rows), 1))


@dataclass(frozen=True)
class Means(OfSchema):
    """Count and sums of the columns, hence means: of numbers the sums of (x - middle) / width, categories are counted.

    From the middle of its range a number is half as far as from an end: what a patient adds is shorter, and the noise
    with it. Only with `centre_norm` it is (x - low) / width, since nothing may be negative there.

    >>> Means(Schema({"age": Interval(0, 100)})).read(np.array([4.0, -1.0]))
    {'count': 4.0, 'age': 25.0}
    """

    # Centres that sum (x - low) / width without centre_norm, as was done once, know this statistic by no name.
    kind: ClassVar[str] = "centred means"

    @property
    def length(self) -> int:
        return 1 + self.schema.width

    @property
    def names(self) -> tuple[str, ...]:
        return ("count", *self.schema.feature_names)

    @property
    def _middle(self) -> float:
        """What is taken off a number in [0, 1]."""
        return MeanQuestion(values=("x",), ranges=((0.0, 1.0),)).middle if self.centre_norm is None else 0.0

    def _row_moves(self, relation: Relation) -> Moves:
        """The count, the columns' sums and counts beside each other; one patient moves them all, freely.

        Proof: docs/proofs/distributed_noise.md, "Means".
        """
        ends = -self._middle, 1 - self._middle
        number = SumQuestion(values=("x",), ranges=(ends,), everybody=True, relation=relation)
        columns = [
            (number if isinstance(domain, Interval) else _histogram({name: domain}, relation)).moves()
            for name, domain in self.schema.columns.items()
        ]
        return Moves.beside([CountQuestion(everybody=True, relation=relation).moves(), *columns])

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        return np.hstack([np.ones((len(rows), 1)), rows - self._offsets])

    @cached_property
    def _offsets(self) -> np.ndarray:
        columns = self.schema.columns.values()
        parts = [[self._middle] if isinstance(one, Interval) else [0.0] * one.features for one in columns]
        return np.array([offset for part in parts for offset in part])

    def read(self, values: np.ndarray) -> dict[str, Any]:
        """The count and, in the columns' own units, the means (shares for categories)."""
        count = max(1.0, float(values[0]))
        found: dict[str, Any] = {"count": float(values[0])}
        for name, domain in self.schema.columns.items():
            place = self.schema.slices[name]
            shares = self._offsets[place] + values[1:][place] / count
            scaled = [domain.low + domain.width * shares[0]] if isinstance(domain, Interval) else shares
            found |= dict(zip(domain.feature_names(name), map(float, scaled), strict=True))
        return found


@dataclass(frozen=True)
class Histogram(OfSchema):
    """How many patients are in each cell of a table over one or more categorical columns.

    >>> Histogram(Schema({"sex": Categories(["f", "m"])})).cells({"sex": ["m", "m", "f"]}, 1.0, 10)
    array([1, 2])
    """

    kind: ClassVar[str] = "histogram"

    def _check(self) -> None:
        super()._check()
        if any(not isinstance(domain, Categories) for domain in self.schema.columns.values()):
            raise SchemaError("A histogram takes categories; cut intervals into public bins first. Nothing was run.")

    @property
    def length(self) -> int:
        return math.prod(domain.features for domain in self.schema.columns.values())

    @property
    def names(self) -> tuple[str, ...]:
        labels = [""]
        for name, domain in self.schema.columns.items():
            labels = [f"{left},{right}" if left else right for left in labels for right in domain.feature_names(name)]
        return tuple(labels)

    def _row_moves(self, relation: Relation) -> Moves:
        return _histogram(self.schema.columns, relation).moves()

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        cell = np.zeros(len(rows), dtype=np.int64)
        for name, domain in self.schema.columns.items():
            part = rows[:, self.schema.slices[name]]
            cell = cell * domain.features + part.argmax(axis=1)
        vectors = np.zeros((len(rows), self.length))
        vectors[np.arange(len(rows)), cell] = 1.0
        return vectors


@dataclass(frozen=True)
class SecondMoments(OfSchema):
    """The matrix Σ z zᵀ of z = (1, encoded columns): all a linear model needs (linear.py).

    The upper triangle is summed, off the diagonal times √2, so that its length is that of the whole matrix.

    >>> SecondMoments(Schema({"kalium": Interval(0, 10), "age": Interval(0, 100)})).length
    6
    """

    kind: ClassVar[str] = "second moments"

    @property
    def _size(self) -> int:
        return 1 + self.schema.width

    @property
    def length(self) -> int:
        return self._size * (self._size + 1) // 2

    @property
    def names(self) -> tuple[str, ...]:
        labels = ("1", *self.schema.feature_names)
        rows, columns = np.triu_indices(self._size)
        return tuple(f"{labels[row]}·{labels[column]}" for row, column in zip(rows, columns, strict=True))

    @property
    def largest_entry(self) -> float:
        return math.sqrt(2)

    def _row_moves(self, relation: Relation) -> Moves:
        """Proof: docs/proofs/distributed_noise.md, "Second moments"."""
        intervals, categories = self._kinds
        longest, fixed = 1 + intervals + categories, 1 + intervals
        if relation == "add-remove":
            return Moves(L1(_triangle(longest)), L2(longest))
        squares = [longest**2 + (1 + categories + both) ** 2 - 2 * (1 + both) ** 2 for both in range(fixed)]
        return Moves(L1(2 * _triangle(longest) - _triangle(fixed) - 1), L2(math.sqrt(max(squares))), tight=False)

    def _contributions(self, rows: np.ndarray) -> np.ndarray:
        z = np.hstack([np.ones((len(rows), 1)), rows])
        first, second = np.triu_indices(self._size)
        return z[:, first] * z[:, second] * np.where(first == second, 1.0, math.sqrt(2))

    def matrix(self, values: np.ndarray) -> np.ndarray:
        """The symmetric matrix behind the summed triangle."""
        first, second = np.triu_indices(self._size)
        full = np.zeros((self._size, self._size))
        full[first, second] = values / np.where(first == second, 1.0, math.sqrt(2))
        return np.where(full == 0, full.T, full)


def _histogram(columns: Mapping[str, Domain], relation: Relation) -> HistogramQuestion:
    axes = tuple(Axis(name, levels=tuple(domain.feature_names(name))) for name, domain in columns.items())
    return HistogramQuestion(axes=axes, everybody=True, relation=relation)


def _triangle(ones: int) -> float:
    """The sum of the summed triangle of zzᵀ, when so many entries of z are 1."""
    return ones + (ones * ones - ones) / math.sqrt(2)


def statistic_from_dict(record: Mapping[str, Any]) -> Statistic:
    """The statistic a record describes; the inverse of `to_dict`."""
    import_module("sfumato.centres.gradients")  # which has those that are not here
    fields = dict(record)
    kind = _kinds(Statistic)[fields.pop("kind")]
    if "schema" in fields:
        fields["schema"] = Schema.from_toml(fields["schema"])
    return kind(**fields)


def _kinds(base: type[Statistic]) -> dict[str, type[Statistic]]:
    """Every statistic by its name; new ones are found."""
    found = {base.kind: base} if "kind" in vars(base) else {}
    for one in base.__subclasses__():
        found |= _kinds(one)
    return found
