"""Expectations over one random number in closed form.

In:   an expression, the name of a random number in it, the law of that number.
Out:  the expectation over it as an expression of everything else, or None where no closed form is known here.
Not here: which numbers are random and in which order they go (network/inference.py), other integrals
(network/quadrature.py).
Proof: docs/proofs/expectations.md

An expression is first written as a sum of pieces c · x^k · e^(t·x) on an interval of x, with c, t and the interval's
ends free of x. Comparisons, clip, max, min and abs of what is linear in x are such sums too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sfumato.network.algebra import MINUS_ONE, ONE, ZERO, folded, minus, plus, power, quotient, times, total
from sfumato.network.condition import Comparison, Condition, Every, Not, Operator, Some
from sfumato.network.expression import Call, Constant, Distribution, Expression, Lookup, Power, Ranges, Reference
from sfumato.network.indicator import Indicator

__all__ = ["expectation_over"]

#: More pieces than this are left to points.
_MOST_PIECES = 400
_HIGHEST_POWER = 16
_FLIPPED: dict[str, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True)
class _Piece:
    """factor · x^exponent · e^(tilt·x) where low <= x <= high; None is no end. A count's ends are whole numbers."""

    factor: Expression
    exponent: int = 0
    tilt: Expression = ZERO
    low: Expression | None = None
    high: Expression | None = None

    @property
    def is_line(self) -> bool:
        """Whether it is linear in x, and everywhere."""
        return self.exponent <= 1 and self.tilt == ZERO and self.low is None and self.high is None


def expectation_over(body: Expression, name: str, law: Distribution, ranges: Ranges) -> Expression | None:
    """E[body] over x ~ law, everything else being fixed.

    >>> square = Power(Reference("o"), 2)
    >>> found = expectation_over(square, "o", Distribution("normal", (Reference("x"), Constant(1.0))), {})
    >>> float(found.evaluate({"x": 3.0}))
    10.0
    """
    moment = _MOMENTS.get(law.kind)
    pieces = _Pieces(name, law.kind == "poisson", ranges).of(body) if moment else None
    if moment is None or pieces is None:
        return None
    parts = []
    for piece in pieces:
        if piece.exponent > _HIGHEST_POWER:
            return None
        value = moment(law.arguments, piece, ranges)
        if value is None:
            return None
        parts.append(times(piece.factor, value))
    return total(parts)


class _Pieces:
    """Writes expressions as sums of pieces in one variable; None says that it cannot."""

    def __init__(self, name: str, counts: bool, ranges: Ranges) -> None:
        self.name, self.counts, self.ranges = name, counts, ranges

    def of(self, body: Expression) -> list[_Piece] | None:
        if self.name not in body.references():
            return [_Piece(folded(body))]
        match body:
            case Reference():
                return [_Piece(ONE, 1)]
            case Power(base=base, exponent=exponent) if exponent >= 0:
                return self._product([self.of(base)] * exponent)
            case Indicator(condition=condition):
                return self.condition(condition)
            case Lookup(parents=parents, rows=rows) if self.name not in parents:
                return self._lookup(parents, rows)
            case Call(function=function, arguments=arguments):
                return self._call(function, arguments)
        return None

    def _lookup(self, parents: tuple[str, ...], rows: Sequence) -> list[_Piece] | None:
        """Σ over rows of [the row fits] · what it says."""
        found: list[_Piece] = []
        for place, (_, part) in enumerate(rows):
            inner = self.of(part)
            if inner is None:
                return None
            fits = Lookup(parents, tuple((key, ONE if row == place else ZERO) for row, (key, _) in enumerate(rows)))
            found += [replace(piece, factor=times(fits, piece.factor)) for piece in inner]
        return self._few(found)

    def _call(self, function: str, arguments: tuple[Expression, ...]) -> list[_Piece] | None:
        match function, arguments:
            case (("+" | "sum"), _):
                return self._sum([self.of(part) for part in arguments])
            case "mean", _:
                return self._scaled(self._call("sum", arguments), Constant(1.0 / len(arguments)))
            case "-", (left, right):
                return self._sum([self.of(left), self._scaled(self.of(right), MINUS_ONE)])
            case "negate", (inner,):
                return self._scaled(self.of(inner), MINUS_ONE)
            case "*", _:
                return self._product([self.of(part) for part in arguments])
            case "/", (above, below) if self.name not in below.references():
                return self._scaled(self.of(above), quotient(ONE, below))
        return self._bent(function, arguments)

    def _bent(self, function: str, arguments: tuple[Expression, ...]) -> list[_Piece] | None:
        """Functions that are neither sums nor products."""
        match function, arguments:
            case "exp", (inner,):
                return self._exponential(inner)
            case "abs", (inner,):
                return self._larger(inner, Call("negate", (inner,)))
            case "max", (first, *rest) if len(rest) <= 1:
                return self._larger(first, *(rest or (first,)))
            case "min", (first, *rest) if len(rest) <= 1:
                turned = [Call("negate", (part,)) for part in (first, *(rest or (first,)))]
                return self._scaled(self._larger(*turned), MINUS_ONE)
            case "clip", (inner, low, high):
                return self._clipped(inner, low, high)
        return None

    def _sum(self, parts: Sequence[list[_Piece] | None]) -> list[_Piece] | None:
        known = [part for part in parts if part is not None]
        return self._few([piece for part in known for piece in part]) if len(known) == len(parts) else None

    def _scaled(self, pieces: list[_Piece] | None, factor: Expression) -> list[_Piece] | None:
        return None if pieces is None else [replace(one, factor=times(factor, one.factor)) for one in pieces]

    def _product(self, parts: Sequence[list[_Piece] | None]) -> list[_Piece] | None:
        result: list[_Piece] | None = [_Piece(ONE)]
        for part in parts:
            if part is None or result is None or len(result) * len(part) > 4 * _MOST_PIECES:
                return None
            made = (_multiplied(a, b) for a, b in product(result, part))
            result = self._few(_gathered([piece for piece in made if piece is not None]))
        return result

    @staticmethod
    def _few(pieces: list[_Piece]) -> list[_Piece] | None:
        return pieces if len(pieces) <= _MOST_PIECES else None

    def line(self, body: Expression) -> tuple[Expression, Expression] | None:
        """(slope, rest) of what is linear in x."""
        pieces = self.of(body)
        if pieces is None or not all(piece.is_line for piece in pieces):
            return None
        slope = total(p.factor for p in pieces if p.exponent == 1)
        return slope, total(p.factor for p in pieces if p.exponent == 0)

    def _exponential(self, inner: Expression) -> list[_Piece] | None:
        line = self.line(inner)
        return None if line is None else [_Piece(folded(Call("exp", (line[1],))), 0, line[0])]

    def _larger(self, left: Expression, right: Expression) -> list[_Piece] | None:
        """max(u, v) = v + (u - v)·[u >= v]."""
        gap = Call("-", (left, right))
        kept = self._product([self.of(gap), self._comparison(Comparison(">=", left, right))])
        return self._sum([self.of(right), kept])

    def _clipped(self, inner: Expression, low: Expression, high: Expression) -> list[_Piece] | None:
        ends = low.interval(self.ranges), high.interval(self.ranges)
        if self.name in low.references() | high.references() or ends[0].high > ends[1].low:
            return None
        below = self._scaled(self._comparison(Comparison("<", inner, low)), low)
        above = self._scaled(self._comparison(Comparison(">", inner, high)), high)
        inside = [self._comparison(Comparison(">=", inner, low)), self._comparison(Comparison("<=", inner, high))]
        return self._sum([below, self._product([self.of(inner), *inside]), above])

    def condition(self, condition: Condition) -> list[_Piece] | None:
        """The pieces of an indicator."""
        if self.name not in condition.references():
            return [_Piece(folded(Indicator(condition)))]
        match condition:
            case Comparison():
                return self._comparison(condition)
            case Not(part=part):
                return self._complement(self.condition(part))
            case Every(parts=parts):
                return self._product([self.condition(part) for part in parts])
            case Some(parts=parts):
                return self._complement(self._product([self._complement(self.condition(part)) for part in parts]))
        return None

    def _complement(self, pieces: list[_Piece] | None) -> list[_Piece] | None:
        return self._sum([[_Piece(ONE)], self._scaled(pieces, MINUS_ONE)])

    def _comparison(self, comparison: Comparison) -> list[_Piece] | None:
        line = self.line(Call("-", (comparison.left, comparison.right)))
        if line is None:
            return None
        slope, rest = line
        if slope == ZERO:
            return [_Piece(folded(Indicator(Comparison(comparison.operator, rest, ZERO))))]
        steepness = slope.interval(self.ranges)
        if not steepness.bounded or 0.0 in steepness:
            return None
        end = folded(quotient(times(MINUS_ONE, rest), slope))
        operator = comparison.operator if steepness.low > 0 else _FLIPPED[comparison.operator]
        return self._counted(operator, end) if self.counts else _continuous(operator, end)

    def _counted(self, operator: Operator, end: Expression) -> list[_Piece] | None:
        """Comparisons of a whole number with a number everybody knows."""
        if not isinstance(end, Constant) or not math.isfinite(end.value):
            return None
        near = round(end.value)
        whole = abs(end.value - near) <= 1e-9 * max(1.0, abs(near))  # a quotient may miss the integer by its last bits
        up = near if whole else math.ceil(end.value)
        down = near if whole else math.floor(end.value)
        lows, highs = {">=": up, ">": down + 1}, {"<=": down, "<": up - 1}
        if operator in lows:
            return [_Piece(ONE, low=Constant(float(lows[operator])))]
        if operator in highs:
            return [_Piece(ONE, high=Constant(float(highs[operator])))]
        here = [_Piece(ONE, low=Constant(float(near)), high=Constant(float(near)))] if whole else []
        return here if operator == "=" else self._complement(here)


def _continuous(operator: Operator, end: Expression) -> list[_Piece]:
    """A continuous number equals none that is given."""
    match operator:
        case ">=" | ">":
            return [_Piece(ONE, low=end)]
        case "<=" | "<":
            return [_Piece(ONE, high=end)]
        case "=":
            return []
    return [_Piece(ONE)]


def _multiplied(a: _Piece, b: _Piece) -> _Piece | None:
    low, high = _both(a.low, b.low, "max"), _both(a.high, b.high, "min")
    if isinstance(low, Constant) and isinstance(high, Constant) and low.value > high.value:
        return None
    return _Piece(times(a.factor, b.factor), a.exponent + b.exponent, plus(a.tilt, b.tilt), low, high)


def _both(a: Expression | None, b: Expression | None, function: str) -> Expression | None:
    if a is None or b is None or a == b:
        return b if a is None else a
    return folded(Call(function, (a, b)))


def _gathered(pieces: list[_Piece]) -> list[_Piece]:
    """Pieces that differ in their factors only, added up."""
    found: dict[tuple, Expression] = {}
    for one in pieces:
        key = (one.exponent, one.tilt, one.low, one.high)
        found[key] = plus(found[key], one.factor) if key in found else one.factor
    return [_Piece(factor, *key) for key, factor in found.items() if factor != ZERO]


# ── moments of the laws ──────────────────────────────────────────────────────────────────────────────────────────────


def _exp(inner: Expression) -> Expression:
    return folded(Call("exp", (inner,)))


def _positive(expression: Expression, ranges: Ranges) -> bool:
    bounds = expression.interval(ranges)
    return bounds.bounded and bounds.low > 0.0


def _normal(arguments: Sequence[Expression], piece: _Piece, ranges: Ranges) -> Expression | None:
    """E[x^k e^(t·x)] = e^(t·m + t²s²/2) · E[(m + t·s² + s·z)^k], z standard normal between the moved ends."""
    mean, spread = arguments
    variance = power(spread, 2)
    moved = plus(mean, times(piece.tilt, variance))
    if (piece.low or piece.high) and not _positive(spread, ranges):
        return None
    ends = [None if end is None else folded(quotient(minus(end, moved), spread)) for end in (piece.low, piece.high)]
    standard = _standard(piece.exponent, *_ordered(*ends))
    terms = []
    for j, standardised in enumerate(standard):
        often = Constant(float(math.comb(piece.exponent, j)))
        around = times(power(moved, piece.exponent - j), power(spread, j))
        terms.append(times(times(often, around), standardised))
    if piece.tilt == ZERO:
        return total(terms)
    exponent = plus(times(piece.tilt, mean), times(Constant(0.5), times(power(piece.tilt, 2), variance)))
    return times(_exp(exponent), total(terms))


def _ordered(low: Expression | None, high: Expression | None) -> tuple[Expression | None, Expression | None]:
    """An upper end below the lower one is an empty interval."""
    if low is None or high is None or (isinstance(low, Constant) and isinstance(high, Constant)):
        return low, high
    return low, Call("max", (low, high))


def _standard(highest: int, low: Expression | None, high: Expression | None) -> list[Expression]:
    """E[z^j · [low <= z <= high]] for j = 0 … highest: I_j = low^(j-1) φ(low) - high^(j-1) φ(high) + (j-1) I_(j-2)."""
    found: list[Expression] = []
    for j in range(highest + 1):
        if j == 0:
            found.append(_between(low, high))
            continue
        edge = ZERO
        for end, sign in ((low, ONE), (high, MINUS_ONE)):
            if end is not None:
                edge = plus(edge, times(sign, times(power(end, j - 1), _density(end))))
        found.append(plus(edge, times(Constant(float(j - 1)), found[j - 2]) if j > 1 else ZERO))
    return found


def _between(low: Expression | None, high: Expression | None) -> Expression:
    if low is None and high is None:
        return ONE
    if high is None or low is None:
        inner = high if low is None else times(MINUS_ONE, low)
        assert inner is not None
        return folded(Call("normal_below", (inner,)))
    return minus(folded(Call("normal_below", (high,))), folded(Call("normal_below", (low,))))


def _density(z: Expression) -> Expression:
    return times(Constant(1 / math.sqrt(2 * math.pi)), _exp(times(Constant(-0.5), power(z, 2))))


def _poisson(arguments: Sequence[Expression], piece: _Piece, ranges: Ranges) -> Expression | None:
    """E[x^k e^(t·x)] at rate r is e^(r(e^t - 1)) times E[x^k] at rate r·e^t; x^k = Σ_j S(k, j) x(x-1)…(x-j+1).

    E[x(x-1)…(x-j+1) · [low <= x <= high]] = r^j (P(x >= low - j) - P(x >= high + 1 - j)).
    """
    (given,) = arguments
    grown = _exp(piece.tilt)
    rate = times(given, grown) if piece.tilt != ZERO else given
    ends = [end.value if isinstance(end, Constant) else None for end in (piece.low, piece.high)]
    terms = []
    for j in range(piece.exponent + 1):
        often = _stirling(piece.exponent, j)
        if often:
            low = ONE if ends[0] is None else _at_least(ends[0] - j, rate)
            high = ZERO if ends[1] is None else _at_least(ends[1] + 1 - j, rate)
            terms.append(times(times(Constant(float(often)), power(rate, j)), minus(low, high)))
    if piece.tilt == ZERO:
        return total(terms)
    return times(_exp(times(given, minus(grown, ONE))), total(terms))


def _at_least(count: float, rate: Expression) -> Expression:
    return ONE if count <= 0 else folded(Call("poisson_at_least", (Constant(count), rate)))


def _stirling(n: int, k: int) -> int:
    """Into how many ways n things fall into k kinds."""
    return sum((-1) ** i * math.comb(k, i) * (k - i) ** n for i in range(k + 1)) // math.factorial(k)


def _exponential(arguments: Sequence[Expression], piece: _Piece, ranges: Ranges) -> Expression | None:
    """∫ x^k w e^(-(w-t)x) dx = [-(w/v) e^(-v·x) Σ_j k!/j! x^j v^(j-k)] with v = w - t, from max(low, 0) to high."""
    (rate,) = arguments
    decay = minus(rate, piece.tilt)
    if not (_positive(rate, ranges) and _positive(decay, ranges)):
        return None
    low = ZERO if piece.low is None else folded(Call("max", (piece.low, ZERO)))
    value = _tail(decay, piece.exponent, low)
    if piece.high is not None:
        value = minus(value, _tail(decay, piece.exponent, folded(Call("max", (piece.high, low)))))
    return times(quotient(rate, decay), value)


def _tail(decay: Expression, exponent: int, start: Expression) -> Expression:
    terms = []
    for j in range(exponent + 1):
        often = Constant(float(math.factorial(exponent) // math.factorial(j)))
        terms.append(times(often, quotient(power(start, j), power(decay, exponent - j))))
    return times(_exp(times(MINUS_ONE, times(decay, start))), total(terms))


def _uniform(arguments: Sequence[Expression], piece: _Piece, ranges: Ranges) -> Expression | None:
    """Powers over the part of [a, b] that is asked for; without ends (a^k + a^(k-1) b + … + b^k)/(k + 1)."""
    low, high = arguments
    if piece.tilt == ZERO and piece.low is None and piece.high is None:
        parts = [times(power(low, j), power(high, piece.exponent - j)) for j in range(piece.exponent + 1)]
        return times(Constant(1.0 / (piece.exponent + 1)), total(parts))
    width = minus(high, low)
    if not _positive(width, ranges):
        return None
    start, end = _part_of(piece, low, high)
    if piece.tilt == ZERO:
        raised = minus(power(end, piece.exponent + 1), power(start, piece.exponent + 1))
        return quotient(raised, times(Constant(float(piece.exponent + 1)), width))
    tilt = piece.tilt.interval(ranges)
    if piece.exponent or not tilt.bounded or 0.0 in tilt:
        return None
    grown = minus(_exp(times(piece.tilt, end)), _exp(times(piece.tilt, start)))
    return quotient(grown, times(piece.tilt, width))


def _part_of(piece: _Piece, low: Expression, high: Expression) -> tuple[Expression, Expression]:
    """The ends of a piece inside [low, high]."""
    start = low if piece.low is None else folded(Call("clip", (piece.low, low, high)))
    end = high if piece.high is None else folded(Call("clip", (piece.high, low, high)))
    return start, end if piece.low is None or piece.high is None else folded(Call("max", (start, end)))


_MOMENTS: dict[str, Callable[[Sequence[Expression], _Piece, Ranges], Expression | None]] = {
    "normal": _normal,
    "poisson": _poisson,
    "exponential": _exponential,
    "uniform": _uniform,
}
