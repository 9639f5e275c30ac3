"""Conditions of aggregates: which individuals count.

    Condition (abstract)
    ├── Comparison   two expressions
    ├── LevelIs      a categorical variable has one of these levels
    ├── Member       a table relates the individual to given things
    ├── Present      the individual's cell is neither absent nor unlisted
    ├── Complete     the same of every cell that her variable is computed from, whichever these are
    ├── Not, Every, Some
    └── (Every(()) holds for everybody)

In:   the goal of an aggregate, its person still a variable.
Out:  a tree with its references, its value, its SQL.
Not here: what one person can contribute (network/aggregate.py).

A condition may rest on private tables: it becomes an indicator inside the aggregate, and its bound holds whatever it
says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.network.expression import Expression, Level, sql_level, sql_name

__all__ = ["Comparison", "Complete", "Condition", "Every", "LevelIs", "Member", "Not", "Operator", "Present", "Some"]

Operator = Literal["<", "<=", ">", ">=", "=", "!="]
Flags = NDArray[np.bool_]

_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


class Condition(ABC):
    """True or false for each individual."""

    __slots__ = ()

    @abstractmethod
    def references(self) -> frozenset[str]:
        """The nodes it looks at."""

    @abstractmethod
    def members(self) -> frozenset[Member]:
        """The table relations it asks about."""

    @abstractmethod
    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        """Its truth in every row; a relation's truth stands under its own key."""

    @abstractmethod
    def to_sql(self, columns: Mapping[str, str]) -> str:
        """The same in SQL, never NULL."""

    @property
    def trivial(self) -> bool:
        """Whether it holds for everybody by its form."""
        return False


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """left operator right, both numbers; false when one of them is NaN."""

    operator: Operator
    left: Expression
    right: Expression

    def references(self) -> frozenset[str]:
        return self.left.references() | self.right.references()

    def members(self) -> frozenset[Member]:
        return frozenset()

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        left, right = self.left.evaluate(values), self.right.evaluate(values)
        return np.asarray(_COMPARE[self.operator](left, right) & ~np.isnan(left) & ~np.isnan(right))

    def to_sql(self, columns: Mapping[str, str]) -> str:
        left, right = self.left.to_sql(columns), self.right.to_sql(columns)
        # DuckDB counts NaN as equal to itself and larger than everything.
        return f"({left} {self.operator} {right} AND NOT isnan({left}) AND NOT isnan({right}))"

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class LevelIs(Condition):
    """The variable has one of these levels."""

    variable: str
    levels: tuple[Level, ...]

    def references(self) -> frozenset[str]:
        return frozenset((self.variable,))

    def members(self) -> frozenset[Member]:
        return frozenset()

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        column = np.asarray(values[self.variable])
        return np.logical_or.reduce([column == level for level in self.levels])

    def to_sql(self, columns: Mapping[str, str]) -> str:
        listed = ", ".join(sql_level(level) for level in self.levels)
        return f"({sql_name(columns[self.variable])} IN ({listed}))"

    def __str__(self) -> str:
        return f"{self.variable} = {' or '.join(map(str, self.levels))}"


@dataclass(frozen=True, slots=True)
class Member(Condition):
    """The table has a row of this individual with these values in these columns.

    `among` names further columns that must hold something: one of these levels, or anything where there are none.
    """

    table: str
    person: str
    matches: tuple[tuple[str, Level], ...]
    among: tuple[tuple[str, tuple[Level, ...] | None], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column it looks at."""
        return (self.person, *(column for column, _ in self.matches), *(column for column, _ in self.among))

    @property
    def key(self) -> str:
        """A name for its column of flags."""
        tests = "".join(f", {column} = {level!r}" for column, level in self.matches)
        listed = "".join(f", {column} in {levels!r}" for column, levels in self.among)
        return f"row of {self.table} by {self.person}{tests}{listed}"

    def references(self) -> frozenset[str]:
        return frozenset()

    def members(self) -> frozenset[Member]:
        return frozenset((self,))

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        return np.asarray(values[self.key], dtype=bool)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return sql_name(columns[self.key])

    def __str__(self) -> str:
        tests = ", ".join(
            [f"{column} = {level}" for column, level in self.matches]
            + [column if levels is None else f"a listed {column}" for column, levels in self.among]
        )
        return f"in {self.table} with {tests}" if tests else f"in {self.table}"


@dataclass(frozen=True, slots=True)
class Present(Condition):
    """The variable's cell holds something: missing(RV, skip) leaves out who has none."""

    variable: str

    @property
    def key(self) -> str:
        """A name for its column of flags."""
        return f"{self.variable} is there"

    def references(self) -> frozenset[str]:
        return frozenset((self.variable,))

    def members(self) -> frozenset[Member]:
        return frozenset()

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        return np.asarray(values[self.key], dtype=bool)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return sql_name(columns[self.key])

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True)
class Complete(Condition):
    """No cell that the variable is computed from is absent and skipped; which cells these are, public structure says.

    Whether cells are there is never drawn: it does not refer to the variable, which its aggregate names by itself.
    """

    variable: str

    @property
    def key(self) -> str:
        """A name for its column of flags."""
        return f"all behind {self.variable} is there"

    def references(self) -> frozenset[str]:
        return frozenset()

    def members(self) -> frozenset[Member]:
        return frozenset()

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        return np.asarray(values[self.key], dtype=bool)

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return sql_name(columns[self.key])

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The contrary."""

    part: Condition

    def references(self) -> frozenset[str]:
        return self.part.references()

    def members(self) -> frozenset[Member]:
        return self.part.members()

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        return np.logical_not(self.part.evaluate(values))

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return f"(NOT {self.part.to_sql(columns)})"

    def __str__(self) -> str:
        return f"not ({self.part})"


@dataclass(frozen=True, slots=True)
class _Several(Condition):
    """What is made of parts. Abstract."""

    parts: tuple[Condition, ...] = ()

    def references(self) -> frozenset[str]:
        return frozenset().union(*(part.references() for part in self.parts))

    def members(self) -> frozenset[Member]:
        return frozenset().union(*(part.members() for part in self.parts))


@dataclass(frozen=True, slots=True)
class Every(_Several):
    """All parts hold; without parts: everybody."""

    @property
    def trivial(self) -> bool:
        return all(part.trivial for part in self.parts)

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        return reduce(np.logical_and, (part.evaluate(values) for part in self.parts), np.asarray(True))

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return f"({' AND '.join(part.to_sql(columns) for part in self.parts)})" if self.parts else "TRUE"

    def __str__(self) -> str:
        return " and ".join(map(str, self.parts)) or "everybody"


@dataclass(frozen=True, slots=True)
class Some(_Several):
    """At least one part holds; without parts: nobody."""

    def evaluate(self, values: Mapping[str, NDArray[Any]]) -> Flags:
        return reduce(np.logical_or, (part.evaluate(values) for part in self.parts), np.asarray(False))

    def to_sql(self, columns: Mapping[str, str]) -> str:
        return f"({' OR '.join(part.to_sql(columns) for part in self.parts)})" if self.parts else "FALSE"

    def __str__(self) -> str:
        return " or ".join(f"({part})" for part in self.parts) or "nobody"
