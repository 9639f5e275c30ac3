"""A promise to people who depend on each other, for the verifier: the flat ε again, and what a whole window costs.

In:   parts of the events, stated for one unit (evidence/losses.py); the record of a Pufferfish promise.
Out:  whether it is kept.
Not here: core's own way (core/dependence.py, core/pufferfish.py), which is not called.
Proof: docs/proofs/pufferfish.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from sfumato.errors import UnprovedError
from sfumato.evidence.laws import law_of
from sfumato.evidence.losses import Part, always_answered, written
from sfumato.evidence.plain_sums import pure_sum

__all__ = ["Window", "keeps_pufferfish", "window_of"]

_UP, _DOWN = Context(prec=60, rounding=ROUND_CEILING), Context(prec=60, rounding=ROUND_FLOOR)
#: What exponentials and powers may lose after sixty digits, relatively.
_ROUNDED = Decimal("1e-50")
_ARITHMETIC = 1e-10

Record = Mapping[str, Any]


class Window(NamedTuple):
    """How many units change together, and what those beyond may tell, rounded up."""

    units: int
    flat: Decimal


def window_of(dependence: Record) -> Window:
    """The window of a declared class.

    >>> window_of({"kind": "Groups", "size": 4})
    Window(units=4, flat=Decimal('0'))
    """
    match dependence["kind"]:
        case "Groups":
            return Window(_count(dependence["size"]), Decimal(0))
        case "Reach":
            return Window(_count(dependence["rows"]), Decimal(0))
        case "Chains" if dependence["before"] == dependence["after"] == 0:
            return Window(_count(dependence["longest"]), Decimal(0))
        case "Chains":
            before, after = _count(dependence["before"]), _count(dependence["after"])
            return Window(before + after - 1, _border(written(dependence["memory"]), before, after))
    raise UnprovedError(f"A dependence of kind {dependence['kind']!r} cannot be verified by this version of sfumato")


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise UnprovedError("A window has a whole number of units, at least 1")
    return value


def _border(memory: Decimal, before: int, after: int) -> Decimal:
    """Δτ^(a-1) + Δτ^(b-1), τ = tanh(Δ/4) = 1 - 2/(e^(Δ/2) + 1): every step up."""
    grown = _UP.add(_UP.exp(_UP.divide(memory, Decimal(2))), Decimal(1))
    contraction = min(Decimal(1), _UP.subtract(Decimal(1), _DOWN.divide(Decimal(2), _UP.multiply(grown, 1 + _ROUNDED))))
    sides = (_UP.power(contraction, power - 1) if power > 1 else Decimal(1) for power in (before, after))
    return _UP.multiply(_UP.multiply(memory, sum(sides, Decimal(0))), 1 + _ROUNDED)


def keeps_pufferfish(parts: tuple[Part, ...], promise: Record, events: Sequence[Record]) -> bool:
    """Whether events of these parts are (ε-e, δ)-DP when a whole window changes."""
    if promise["dependence"]["kind"] == "Known":
        return _keeps_known(promise, events)
    window = window_of(promise["dependence"])
    if promise["adjacency"] and promise["adjacency"]["relation"] == "add-remove":
        # A unit that has another value in both worlds leaves and comes back: two changes.
        window = window._replace(units=2 * window.units)
    left = _DOWN.subtract(written(promise["eps"]), window.flat)
    if left <= 0:
        return False
    if promise["delta"] == 0:
        plain = pure_sum(parts)
        return plain is not None and not plain[1] and _UP.multiply(plain[0], Decimal(window.units)) <= left
    return _delta(parts, window.units, _below(left)) <= promise["delta"] * (1 + _ARITHMETIC)


def _delta(parts: tuple[Part, ...], units: int, epsilon: float) -> float:
    if all(part.kind in ("gaussian", "laplace", "two-point", "three-point") and not part.fails for part in parts):
        return law_of(_moved(parts, units)).delta(epsilon)
    each = epsilon / units * (1 - 1e-12)
    steps = math.fsum(math.exp(each * place) for place in range(units)) * (1 + 1e-12)
    return law_of(parts).delta(each) * steps


def _moved(parts: Iterable[Part], units: int) -> tuple[Part, ...]:
    """μ and ε grow by the number of units; of Laplace noise on several numbers only the ε is known."""
    if units == 1:
        return tuple(parts)
    return tuple(part._replace(value=_UP.multiply(part.value, Decimal(units))) for part in always_answered(parts))


def _keeps_known(promise: Record, events: Sequence[Record]) -> bool:
    """One number with one noise, moved by the distance between conditional laws; the distance found anew."""
    known = promise["dependence"]
    if not _is_one_number(events):
        return False
    rows = [(values, Fraction(chance)) for values, chance in known["rows"]]
    if not _is_law(rows) or len(rows) != len(known["numbers"]):
        return False
    distance = max(_distance(rows, known["numbers"], unit) for unit in range(len(rows[0][0])))
    if distance > known["distance"] or events[0]["sensitivity"] < known["move"]:
        return False
    # Values of the number lie on its grid or are rounded to it: one step on either side.
    moved = _UP.divide(_UP.add(Decimal(distance), Decimal(events[0]["grid"])), Decimal(events[0]["scale"]))
    return _hides(events[0], moved, promise)


def _is_one_number(events: Sequence[Record]) -> bool:
    """Whether all that is published is one number with Gaussian or Laplace noise."""
    return len(events) == 1 and events[0]["kind"] in ("GaussianEvent", "LaplaceEvent") and events[0]["dimension"] == 1


def _is_law(rows: Sequence[tuple[Any, Fraction]]) -> bool:
    """Whether the chances are positive and add up to 1, and every row has a value for each of the same units."""
    lawful = sum(chance for _, chance in rows) == 1 and all(chance > 0 for _, chance in rows)
    widths = {len(values) for values, _ in rows}
    return lawful and len(widths) == 1


def _hides(event: Record, moved: Decimal, promise: Record) -> bool:
    """Whether noise of this kind keeps the promise about a number that moves by so many times its scale."""
    if moved == 0:
        return True
    law = "gaussian" if event["kind"] == "GaussianEvent" else "two-point"
    if promise["delta"] == 0:
        return law == "two-point" and moved <= written(promise["eps"])
    return law_of((Part(law, moved),)).delta(promise["eps"]) <= promise["delta"] * (1 + _ARITHMETIC)


def _distance(rows: Sequence[tuple[Any, Fraction]], numbers: Sequence[float], unit: int) -> float:
    """By cutting [0, 1] at all quantiles of both conditional laws: on each piece both numbers are constant."""
    largest = 0.0
    values = sorted({row[0][unit] for row in rows})
    laws = {
        value: sorted((n, c) for (v, c), n in zip(rows, numbers, strict=True) if v[unit] == value) for value in values
    }
    for a in values:
        for b in values:
            ends = sorted({*_ends(laws[a]), *_ends(laws[b])})
            steps = [(_at(laws[a], end), _at(laws[b], end)) for end in ends]
            largest = max([largest, *(abs(one - other) for one, other in steps)])
    return largest


def _ends(law: list[tuple[float, Fraction]]) -> list[Fraction]:
    total = sum(chance for _, chance in law)
    return [sum((chance for _, chance in law[: place + 1]), Fraction(0)) / total for place in range(len(law))]


def _at(law: list[tuple[float, Fraction]], end: Fraction) -> float:
    """The quantile just below `end`."""
    return next(number for (number, _), own in zip(law, _ends(law), strict=True) if own >= end)


def _below(value: Decimal) -> float:
    nearest = float(value)
    return math.nextafter(nearest, 0.0) if Decimal(nearest) > value else nearest
