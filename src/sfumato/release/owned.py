"""A total of rows that belong to two people each, neither of whom anybody may know: one draw, two promises.

In:   rows with two owners and a value, public limits, a promise for each kind of owner.
Out:  the noisy total, its error, a certificate for each kind of owner.
Not here: rows whose owners are public (lang/owners.py), the flow (release/flow.py).
Proof: docs/proofs/owners.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.core import Adjacency, Guarantee
from sfumato.core.cell import name_of, number_of
from sfumato.core.certificate import Certificate
from sfumato.core.checks import at_least_zero
from sfumato.errors import DataError, InputError
from sfumato.mechanisms.gaussian import Gaussian, largest_mu
from sfumato.release.flow import largest_total

__all__ = ["OwnedResult", "OwnedTotal"]

#: A value is a whole number of these parts of the upper end.
_PARTS = 1 << 20


@dataclass(frozen=True)
class OwnedResult:
    """The published total. `guarantees` and `certificates` are by kind of owner."""

    value: float
    standard_error: float
    certificates: Mapping[str, Certificate] = field(repr=False)

    @property
    def guarantees(self) -> dict[str, Guarantee]:
        return {unit: certificate.guarantee for unit, certificate in self.certificates.items()}


@dataclass(frozen=True)
class OwnedTotal:
    """Σ of values in [0, upper] over rows with two private owners; `most` says how many rows of one owner count.

    `promises` has a guarantee for each of the two kinds of owner, `most` the largest number of rows. Rows beyond the
    limits are left out so that the total is as large as it can be: it is the true total if nobody has more rows, and
    below it otherwise. `same_person` says that somebody may be an owner of both kinds: both moves then count for both.

    >>> from sfumato.core import ApproxDP
    >>> promises = {"patient": ApproxDP(1.0, 1e-6), "doctor": ApproxDP(2.0, 1e-6)}
    >>> total = OwnedTotal(100.0, {"patient": 2, "doctor": 50}, promises)
    >>> total.moves
    {'patient': 200.0, 'doctor': 5000.0}
    >>> result = total.publish(["p1", "p1", "p2"], ["d1", "d2", "d1"], [10.0, 250.0, 3.0], random_state=1)
    >>> sorted(result.guarantees), result.standard_error > 5000
    (['doctor', 'patient'], True)
    """

    upper: float
    most: Mapping[str, int]
    promises: Mapping[str, Guarantee]
    same_person: bool = False
    relation: str = "add-remove"

    def __post_init__(self) -> None:
        if not at_least_zero(self.upper, "upper") > 0:
            raise InputError("The upper end of the values must be above 0. Nothing was spent.")
        if len(self.most) != 2 or list(self.most) != list(self.promises):
            raise InputError("Name the same two kinds of owner in most and in promises. Nothing was spent.")
        if any(int(number) != number or number < 1 for number in self.most.values()):
            raise InputError("The most rows of one owner are a whole number from 1 on. Nothing was spent.")

    @property
    def moves(self) -> dict[str, float]:
        """How far one owner of each kind moves the total."""
        return {unit: rows * float(self.upper) for unit, rows in self._rows.items()}

    @property
    def _rows(self) -> dict[str, int]:
        """How many rows one owner of each kind can change."""
        own = {unit: int(number) for unit, number in self.most.items()}
        return dict.fromkeys(own, sum(own.values())) if self.same_person else own

    @property
    def scale(self) -> float:
        """Of the noise: the least that keeps both promises."""
        return self._law(None).scale * float(self.upper) / _PARTS

    def _law(self, random_state: int | None) -> Gaussian:
        """The noise, in parts of the upper end: in these everything is a whole number until it has its noise."""
        unit = min(self._rows, key=lambda one: self._rows[one])
        moves = {one: float(rows * _PARTS) for one, rows in self._rows.items()}
        law = Gaussian(max(moves.values()), moves[unit], self._adjacency(unit), 1, random_state)
        for _ in range(4):  # the grid depends on the scale and the scale on the grid; both settle at once
            least = max((move + law.grid) / largest_mu(self.promises[one]) for one, move in moves.items())
            law = replace(law, scale=least * (1 + 1e-12))
        return law

    def _adjacency(self, unit: str) -> Adjacency:
        return Adjacency(unit, self.relation)  # type: ignore[arg-type]  # checked by Adjacency

    def publish(self, first: Any, second: Any, values: Any, random_state: int | None = None) -> OwnedResult:
        """The noisy total of these rows: owners of the first and of the second kind, and the values.

        Values are clipped to [0, upper]; one that is absent or no number counts as 0. Rows whose owner is absent are
        those of one owner more. Every cell is read by itself: none decides how another is read.
        """
        codes = [_codes(one) for one in (first, second)]
        worth = self._whole(values)
        if not len(codes[0]) == len(codes[1]) == len(worth):
            raise DataError("Every row needs a value and two owners. Nothing was drawn and nothing was spent.")
        caps = tuple(int(number) for number in self.most.values())
        exact = largest_total(worth.tolist(), (codes[0].tolist(), codes[1].tolist()), (caps[0], caps[1]))
        drawn = self._law(random_state)
        noisy = float(drawn(np.array([exact], dtype=np.int64))[0])
        certificates = {unit: self._certificate(unit, drawn) for unit in self.most}
        part = float(self.upper) / _PARTS
        return OwnedResult(noisy * part, float(drawn.error()) ** 0.5 * part, certificates)

    def _whole(self, values: Any) -> np.ndarray:
        """Parts of the upper end: the same cell gives the same number, whatever stands beside it."""
        given = np.array([number_of(cell) for cell in _cells(values)], dtype=np.float64)
        inside = np.clip(np.nan_to_num(given, nan=0.0, posinf=0.0, neginf=0.0), 0, self.upper)
        return np.rint(inside / float(self.upper) * _PARTS).astype(np.int64)

    def _certificate(self, unit: str, law: Gaussian) -> Certificate:
        """One draw has a cost towards each kind of owner: the same noise, another move."""
        move, who = float(self._rows[unit] * _PARTS), self._adjacency(unit)
        caps = ", ".join(f"{number} of one {name}" for name, number in self.most.items())
        return Certificate.issue(
            subject=f"total of rows with two owners, towards one {unit}",
            events=[replace(law.event(), sensitivity=move, adjacency=who)],
            proofs=["owners", law.proof],
            notes=[
                f"At most so many rows count: {caps}. The total is the largest that keeps this, so it may be too low."
            ],
            publishable=law.publishable,
            guarantee=self.promises[unit].under(who),
        )


def _cells(column: Any) -> list[Any]:
    """The cells of a column, by the column's own kind: nothing is cast that another cell could decide."""
    if isinstance(column, (str, bytes, Mapping)) or not isinstance(column, Iterable):
        raise DataError("Owners and values are columns, a cell for each row. Nothing was drawn and nothing was spent.")
    given: Any = column
    return given.to_pylist() if hasattr(given, "to_pylist") else list(given)


def _codes(owners: Any) -> np.ndarray:
    """0, 1, … for the owners in the order of their first row."""
    numbers: dict[str | None, int] = {}
    return np.array([numbers.setdefault(name_of(cell), len(numbers)) for cell in _cells(owners)], dtype=np.int64)
