"""Costs for the verifier: what each kind of event record costs.

In:   event and guarantee records as plain dictionaries.
Out:  parts, their numbers in decimals of sixty digits, every operation rounded up.
Not here: sums of them (evidence/plain_sums.py); laws of privacy losses (evidence/laws.py); reading a certificate
      (evidence/verify.py); composing guarantees (core/compose.py), which is not called.
Proof: docs/proofs/composition.md

To teach the verifier a new kind of event, add its row to `RULES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations, pairwise
from operator import mul, sub
from typing import Any, NamedTuple

from scipy.special import log_ndtr, ndtr

from sfumato.errors import UnprovedError

__all__ = [
    "Part",
    "alike",
    "all_same",
    "always_answered",
    "event_parts",
    "guarantee_parts",
    "required_proofs",
    "rule_for",
    "same",
    "unrepeated",
    "written",
]

#: Sums that can be written down: sixty digits, every operation rounded up.
_UP = Context(prec=60, rounding=ROUND_CEILING)

#: Rows are compared with each other up to so many pairs of weights.
_MOST_COMPARED = 4_000_000

#: So many laws of one value are told apart before equal ones are no longer looked for.
_MOST_NEAR = 32

Record = Mapping[str, Any]


class Part(NamedTuple):
    """`times` acts alike: "gaussian" of μ = value, or "laplace" or "two-point" of ε = value, failing with `delta`.

    For "three-point" delta is the chance that two points of ε = value answer at all; for "box" value is the shift in
    half widths and delta the strength of the oscillator; for "objective" delta is what the change of variables adds to
    the loss. `value` is a quotient of the record's numbers, rounded up after 60 digits.
    """

    kind: str
    value: Decimal
    delta: float = 0.0
    times: int = 1

    @property
    def size(self) -> float:
        return float(self.value)

    @property
    def fails(self) -> float:
        """The δ of the act alone, where it has an ε."""
        return self.delta if self.kind == "two-point" else 0.0


class Rule(NamedTuple):
    proof: Callable[[Record], str]
    loss: Callable[[Record], Part]


def _exact(number: float) -> Decimal:
    return Decimal(number)  # all binary digits: what the sampler worked with


def _moved(event: Record, cells: Decimal, over: str = "scale") -> Decimal:
    """Distance of neighbours over the noise scale, when rounding to the grid may add `cells` grid steps."""
    grown = _UP.add(_exact(event["sensitivity"]), _UP.multiply(_exact(event["grid"]), cells))
    return _UP.divide(grown, _exact(event[over]))


def _side(event: Record) -> Decimal:
    return Decimal(event["dimension"])


def _diagonal(event: Record) -> Decimal:
    return _root(_side(event))


def _root(square: Decimal) -> Decimal:
    return _UP.next_plus(_UP.sqrt(square))  # sqrt and ln round to nearest whatever the context says


def _log(ratio: Fraction) -> Decimal:
    """ln of a ratio ≥ 1, rounded up; the ratio's own digits survive where it is nearly 1."""
    fine = Context(prec=120, rounding=ROUND_CEILING)
    return _UP.plus(fine.next_plus(fine.ln(fine.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))))


def _objective_part(event: Record) -> Part:
    """Moved noise and the change of variables: losses add to ε, or raise a Gaussian loss whose negative part is cut."""
    records = 2 if event["adjacency"]["relation"] == "replace-one" else 1
    moved = _UP.divide(records * _exact(event["slope"]), _exact(event["scale"]))
    shift = _log(1 + Fraction(event["curvature"]) / Fraction(event["strength"]))
    gaussian = event["noise"] == "gaussian"
    return Part("objective", moved, float(shift)) if gaussian else Part("two-point", _UP.add(moved, shift))


def _joint_part(event: Record) -> Part:
    """All classes at once: the stated (ε, δ), if the sum of Gaussian profiles over the corners keeps it."""
    classes, replaces = event["classes"], event["adjacency"]["relation"] == "replace-one"
    ratio = 1 + Fraction(event["curvature"]) / (classes * Fraction(event["strength"]))
    shift = _UP.multiply(Decimal(classes - 1), _log(ratio))
    if event["noise"] != "gaussian":
        length = _root(Decimal(2)) if event["noise"] == "norm-gamma" else Decimal(2)
        moved = _UP.divide(_UP.multiply((1 + replaces) * length, _exact(event["slope"])), _exact(event["scale"]))
        return Part("two-point", _UP.add(moved, shift))
    # A few units in the last place: z² times as much of δ, which is 1e-12 of it where δ is the least there is.
    moved, mask = event["slope"] / event["scale"] * (1 + 1e-15), event["mask"]
    rest = event["at"] - float(shift) * (1 + 1e-15)
    squares = {8: classes - 1, 6: (classes - 1) * (classes - 2), 2: 2 * (classes - 1)} if replaces else {2: classes - 1}
    if replaces and classes == 2:  # two records' corners only add up along one line
        squares = {8: 1}
    total = ndtr(mask / 2 - rest / mask) if mask else 0.0
    for square, count in squares.items():
        mu = math.sqrt(square * moved**2 + mask**2)
        z = rest / mu - mu / 2
        total += count * max(0.0, ndtr(-z) - math.exp(min(0.0, rest + log_ndtr(-z - mu))))
    # A Gaussian loss has no end: where `total` underflows to 0 there is a δ all the same.
    if rest < 0 or not event["delta"] > 0 or total > event["delta"] * (1 + 1e-9):
        raise ValueError("the stated epsilon and delta do not follow")
    return Part("two-point", _exact(event["at"]), event["delta"])


def _linear_part(event: Record) -> Part:
    """Strategy noise: the worst change of one person in exact integers, then what rounding adds."""
    worst, reach, rows = Fraction(0), 0.0, 1
    for count, widths, columns in event["people"]:
        lengths, length_unit = _whole(widths)
        entries, entry_unit = _whole([entry for column in columns for entry in column])
        size, unit = len(columns[0]), length_unit * entry_unit
        moves = [[length * entry for entry in entries[k * size : (k + 1) * size]] for k, length in enumerate(lengths)]
        worst = max(worst, Fraction(_farthest(moves), unit * unit))
        reach += count * math.fsum(map(mul, widths, (math.hypot(*column) for column in columns)))
        rows = max(rows, size)
    arithmetic = 2 * (event["coordinates"] + 2) * 1.01 * 2.0**-53 * reach
    moved = _UP.add(Decimal(_root_above(worst) + arithmetic), _UP.multiply(_exact(event["grid"]), _root(Decimal(rows))))
    return Part("gaussian", _UP.divide(moved, _exact(event["scale"])))


def _whole(numbers: list[float]) -> tuple[list[int], int]:
    """Floats are whole numbers over a power of two: these, and the common power."""
    ratios = [number.as_integer_ratio() for number in numbers]
    unit = max(below for _, below in ratios)
    return [above * (unit // below) for above, below in ratios], unit


def _farthest(moves: list[list[int]]) -> int:
    """Largest ‖Σ ±move‖², over all signs up to 12 moves (one flip at a time), else Σ|move·move'|."""
    products = [[sum(map(mul, one, other)) for other in moves] for one in moves]
    if len(moves) > 12:
        return sum(abs(product) for row in products for product in row)
    sums = [sum(row) for row in products]  # (move_k, Σ ±move) for the current signs
    signs, square = [1] * len(moves), sum(sums)
    largest = square
    for step in range(1, 1 << (len(moves) - 1)):
        k = (step & -step).bit_length() - 1
        square += 4 * (products[k][k] - signs[k] * sums[k])
        sums = [total - 2 * signs[k] * product for total, product in zip(sums, products[k], strict=True)]
        signs[k] = -signs[k]
        largest = max(largest, square)
    return largest


def _root_above(square: Fraction) -> float:
    """The square root, rounded up in the last digits of a float."""
    shift = max(0, 128 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    root = math.isqrt((square.numerator << shift) // square.denominator) + 1
    return math.nextafter(float(Fraction(root, 1 << shift // 2)), math.inf)


def _channel_part(event: Record) -> Part:
    """From the weights alone, in whole numbers: the worst ratio of a column, or the worst excess of two rows."""
    rows, at = event["weights"], event["at"]
    if len({sum(row) for row in rows}) != 1 or min(map(min, rows)) < 0:
        raise ValueError("the weights are no probabilities")
    if at is None:
        worst = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
        return _sometimes(max(_log(worst), Decimal("1e-300")), _chance_of_answer(rows, worst))
    delta = _excess(rows, _exact(at))
    # Weights that never fail keep the ε that is stated in decimal digits, which may be below the float beside it.
    if not delta and not _excess(rows, min(_exact(at), written(at))):
        return Part("two-point", written(at))
    nearest = float(delta)
    return Part("two-point", _exact(at), math.nextafter(nearest, 1.0) if Fraction(nearest) < delta else nearest)


def _excess(rows: list[list[int]], at: Decimal) -> Fraction:
    """δ at this ε: e^ε is rounded down to a multiple of 2^-200, so δ is rounded up; beyond e^700 nothing changes."""
    near = min(at, Decimal(700))
    with localcontext() as context:
        context.prec = 90 + math.ceil(near)
        factor = math.floor(Fraction(near.exp()) * 2**200)
    ones, others = ([[weight * by for weight in row] for row in rows] for by in (1 << 200, factor))
    excess = max(sum(over for over in map(sub, one, other) if over > 0) for one in ones for other in others)
    return Fraction(excess, sum(rows[0]) << 200)


def _chance_of_answer(rows: list[list[int]], worst: Fraction) -> Fraction | None:
    """How often two points with these odds must answer to be told apart as well as the farthest two rows are."""
    if worst == 1 or len(rows) ** 2 * len(rows[0]) > _MOST_COMPARED:
        return None
    twice = max(sum(map(abs, map(sub, one, other))) for one, other in combinations(rows, 2))
    return Fraction(twice, 2 * sum(rows[0])) * (worst + 1) / (worst - 1)


def _sometimes(epsilon: Decimal, chance: Fraction | None) -> Part:
    """Two points that answer with a chance; always, where none is known."""
    if chance is None:
        return Part("two-point", epsilon)
    nearest = float(chance)
    return Part(
        "three-point", epsilon, min(1.0, math.nextafter(nearest, 2.0) if Fraction(nearest) < chance else nearest)
    )


def _response_part(event: Record) -> Part:
    """Of all answers but two both versions of a record think alike."""
    keep, move = event["keep"], event["move"]
    told_apart = Fraction(keep + move, keep + (event["categories"] - 1) * move)
    return _sometimes(_log(Fraction(keep, move)), told_apart)


def _quantiles_part(event: Record) -> Part:
    """Twice what one individual moves the sum over all gaps by, over the scale; in fractions throughout."""
    ends = [Fraction(0), *(Fraction(repr(one)) for one in event["quantiles"]), Fraction(1)]
    widths = [above - below for below, above in pairwise(ends)]
    move = Fraction(2) if event["adjacency"]["relation"] == "replace-one" else 2 - 2 * min(widths)
    moved = 2 * move * event["rows"] / Fraction(event["scale"])
    return Part("two-point", _UP.divide(Decimal(moved.numerator), Decimal(moved.denominator)))


def _groups_part(event: Record) -> Part:
    """All pairs of neighbouring sizes of one group written out in whole numbers; then as many groups as may move."""
    weights, at = event["weights"], event["at"]
    moved = event["groups"] * (2 if event["adjacency"]["relation"] == "replace-one" else 1)
    size, total = len(weights), sum(weights)
    with localcontext() as context:
        context.prec = 90 + math.ceil(min(at, 700.0))
        factor = math.floor(Fraction(Decimal(min(at, 700.0)).exp()) * 2**200)
    # What comes out of n people: I = 1 … n with its weight, or nothing. Beside n + 1, where the same count has I + 1.
    rising = [(above << 200) - factor * below for below, above in pairwise([0, *weights, 0])]
    falling = [(below << 200) - factor * above for below, above in pairwise([0, *weights, 0])]
    excess, unnamed, up, down = 0, total, 0, 0
    for n in range(size + 1):
        fewer = unnamed - weights[n] if n < size else 0
        up, down = up + max(0, rising[n]), down + max(0, falling[n])
        excess = max(excess, up + max(0, (fewer << 200) - factor * unnamed))
        excess = max(excess, down + max(0, (unnamed << 200) - factor * fewer))
        unnamed = fewer
    one = Fraction(excess, total << 200)
    together = 1 - (1 - one) ** moved if moved <= 64 else one * moved
    nearest = float(together)
    delta = math.nextafter(nearest, 1.0) if Fraction(nearest) < together else nearest
    return Part("two-point", _UP.multiply(Decimal(moved), _exact(at)), delta)


def _together_part(event: Record) -> Part:
    """Two individuals' sets of sums at a time, in decimals: what both are part of, and what one of them is."""
    gaussian = event["noise"] == "gaussian"

    def cost(moved: float, scale: float, grid: float, dimension: int) -> Decimal:
        cells = _root(Decimal(dimension)) if gaussian else Decimal(dimension)
        grown = _UP.add(_exact(moved), _UP.multiply(_exact(grid), cells)) if moved else Decimal(0)
        over = _UP.divide(grown, _exact(scale))
        return _UP.multiply(over, over) if gaussian else over

    alone = [cost(one[0], *one[2:]) for one in event["sums"]]
    inside = [cost(one[1], *one[2:]) for one in event["sums"]]
    sets = [frozenset(), *map(frozenset, event["sets"])]
    if event["adjacency"]["relation"] != "replace-one":
        worst = max(_total(alone, one) for one in sets)
    else:
        worst = _farthest_sets(sets, alone, inside)
    return Part("gaussian", _root(worst)) if gaussian else Part("two-point", worst)


def _total(costs: list[Decimal], places: Iterable[int]) -> Decimal:
    total = Decimal(0)
    for place in places:
        total = _UP.add(total, costs[place])
    return total


def _farthest_sets(sets: list[frozenset[int]], alone: list[Decimal], inside: list[Decimal]) -> Decimal:
    """Largest reach first: a sum that both are part of adds no more than half of `most` to the reach of each."""
    most = [max(_UP.add(one, one), both) for one, both in zip(alone, inside, strict=True)]
    reaches = sorted(((_total(most, one), one) for one in sets), key=lambda pair: pair[0], reverse=True)
    worst = Decimal(0)
    for place, (reach, one) in enumerate(reaches):
        for further, other in reaches[place:]:
            if _UP.add(reach, further) <= _UP.add(worst, worst):
                break  # nor is any later one farther
            worst = max(worst, _UP.add(_total(inside, one & other), _total(alone, one ^ other)))
    return worst


def _disjoint_part(event: Record) -> Part:
    """Portions that share nobody: the stated (ε, δ), if each portion keeps it by itself."""
    from sfumato.evidence.laws import law_of  # which stand on this file
    from sfumato.evidence.plain_sums import pure_sum

    for portion in event["portions"]:
        parts = event_parts(portion)
        plain = pure_sum(parts)
        pure = plain is not None and not plain[1] and plain[0] <= written(event["eps"])
        kept = pure or (event["delta"] > 0 and law_of(parts).delta(event["eps"]) <= event["delta"] * (1 + 1e-10))
        if not kept:
            raise ValueError("a portion costs more than is stated")
    return Part("two-point", written(event["eps"]), event["delta"])


def _strength(event: Record) -> float:
    """Stiffness in units of the half width; none stays none however wide the box."""
    return event["stiffness"] * event["half_width"] ** 4 if event["stiffness"] else 0.0


RULES: dict[str, Rule] = {
    "DisjointEvent": Rule(lambda _: "fairness", _disjoint_part),
    "ChannelEvent": Rule(lambda _: "tailored_noise", _channel_part),
    "GaussianEvent": Rule(lambda _: "gaussian", lambda event: Part("gaussian", _moved(event, _diagonal(event)))),
    "LinearGaussianEvent": Rule(lambda _: "linear_placement", _linear_part),
    "LaplaceEvent": Rule(
        lambda _: "laplace",
        # The loss of several Laplace numbers depends on where the change falls; two points bound every case.
        lambda event: Part("laplace" if event["dimension"] == 1 else "two-point", _moved(event, _side(event))),
    ),
    "NormGammaEvent": Rule(lambda _: "norm_gamma", lambda event: Part("two-point", _moved(event, _diagonal(event)))),
    "SelectionEvent": Rule(
        lambda event: event["rule"].replace("-", "_"),
        lambda event: Part("two-point", _UP.multiply(Decimal(2), _moved(event, Decimal(1)))),
    ),
    "QuantilesEvent": Rule(lambda _: "quantiles", _quantiles_part),
    "GroupCountsEvent": Rule(lambda _: "partition_selection", _groups_part),
    "TogetherEvent": Rule(lambda _: "disjoint_groups", _together_part),
    "BoxEvent": Rule(
        lambda _: "box",
        lambda event: Part("box", _moved(event, Decimal(1), "half_width"), _strength(event)),
    ),
    "JointObjectiveEvent": Rule(lambda _: "joint_objective", _joint_part),
    "ObjectivePerturbationEvent": Rule(lambda _: "objective_perturbation", _objective_part),
    "SharedGaussianEvent": Rule(
        lambda _: "distributed_noise",
        # The shares are rounded one by one: what that can tell is paid for by a relative 1e-12.
        lambda event: Part("gaussian", _UP.multiply(_moved(event, _diagonal(event)), Decimal("1.000000000001"))),
    ),
    "SharedLaplaceEvent": Rule(
        lambda _: "distributed_noise", lambda event: Part("two-point", _moved(event, _side(event)))
    ),
    "RandomizedResponseEvent": Rule(lambda _: "randomized_response", _response_part),
}


def unrepeated(event: Record) -> tuple[Record, int]:
    """The event itself and how often it happened."""
    return (event["event"], event["count"]) if event["kind"] == "Repeated" else (event, 1)


def rule_for(event: Record) -> Rule:
    """How the verifier reads an event of this kind."""
    if event["kind"] not in RULES:
        raise UnprovedError(f"An event of kind {event['kind']!r} cannot be verified by this version of sfumato")
    return RULES[event["kind"]]


def required_proofs(events: Iterable[Record]) -> frozenset[str]:
    """The proof ids that records of these events rest on.

    >>> sorted(required_proofs([{"kind": "GaussianEvent"}, {"kind": "NormGammaEvent"}]))
    ['gaussian', 'norm_gamma']
    """
    single = [unrepeated(event)[0] for event in events]
    inner = [one for event in single for portion in event.get("portions", ()) for one in portion]
    own = frozenset(rule_for(event).proof(event) for event in single)
    return own | required_proofs(inner) if inner else own


def event_parts(events: Iterable[Record], *, chances: bool = True) -> tuple[Part, ...]:
    """What these events are made of; one act of Laplace noise or of a channel is worth its ε, as it is stated.

    Without `chances` acts that answer with a chance count as two points, which always do.
    """
    single = [unrepeated(event) for event in events]
    parts = [rule_for(event).loss(event)._replace(times=count) for event, count in single]
    parts = _counted(one if chances or one.kind != "three-point" else always_answered([one])[0] for one in parts)
    alone = len(parts) == 1 and parts[0].times == 1 and parts[0].kind in ("laplace", "three-point")
    return always_answered(parts) if alone else parts


def always_answered(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The same with nothing but their ε known of acts that have one: two points, which are worse."""
    return tuple(
        part._replace(kind="two-point", delta=0.0) if part.kind in ("laplace", "three-point") else part
        for part in parts
    )


def _counted(parts: Iterable[Part]) -> tuple[Part, ...]:
    """One Gaussian part for all, one part for each other value: sums are taken of the values as they are."""
    counts: dict[Part, int] = {}
    squares = Decimal(0)
    for part in sorted(parts):
        if part.kind == "gaussian" and not part.delta:
            squares = _UP.add(squares, _UP.multiply(part.times, _UP.multiply(part.value, part.value)))
        else:
            counts[part._replace(times=1)] = counts.get(part._replace(times=1), 0) + part.times
    others = [part._replace(times=times) for part, times in counts.items()]
    return tuple([Part("gaussian", _root(squares))] * bool(squares) + others)


def alike(parts: Iterable[Part]) -> tuple[Part, ...]:
    """One part for each law, the largest of its numbers: the last digits do not make laws different.

    Parts of one kind come in the order of their values. Two whose values agree may have other laws between them.
    """
    merged: list[Part] = []
    for part in parts:
        place = _place_of(part, merged)
        if place is None:
            merged.append(part)
        else:
            one = merged[place]
            largest = part._replace(delta=max(one.delta, part.delta), times=one.times + part.times)
            merged[place] = largest
    return tuple(merged)


def _place_of(part: Part, merged: Sequence[Part]) -> int | None:
    """Where a law stands that is the same but for the last digits; none is farther back than the values are near."""
    for place in range(len(merged) - 1, max(-1, len(merged) - 1 - _MOST_NEAR), -1):
        one = merged[place]
        if one.kind != part.kind or one.kind == "gaussian" or one.size * (1 + 1e-9) < part.size:
            return None
        if same(one, part._replace(times=one.times)):
            return place
    return None


def all_same(own: Iterable[Part], stated: Iterable[Part]) -> bool:
    """Whether both lists are the same laws but for rounding, in any order of those whose values are near."""
    mine, theirs = list(alike(own)), list(alike(stated))
    if len(mine) != len(theirs):
        return False
    for part in mine:
        place = next((at for at, other in enumerate(theirs) if same(part, other)), None)
        if place is None:
            return False
        del theirs[place]
    return True


def same(own: Part, stated: Part) -> bool:
    """Equal but for rounding, which must not favour the issuer."""
    close = own.size * (1 - 1e-12) <= stated.size <= own.size * (1 + 1e-9)
    if own.kind == stated.kind and own.kind in ("objective", "three-point"):  # its second number is computed too
        close = close and own.delta * (1 - 1e-12) <= stated.delta <= own.delta * (1 + 1e-9)
        own, stated = own._replace(delta=0.0), stated._replace(delta=0.0)
    return close and own._replace(value=stated.value) == stated


def guarantee_parts(record: Record) -> tuple[Part, ...]:
    """The parts a stated guarantee consists of; its numbers are read as the decimals they are written as."""
    match record["kind"]:
        case "GaussianDP":
            return (Part("gaussian", written(record["mu"])),)
        case "PureDP":
            return (Part("two-point", written(record["eps"])),)
        case "ApproxDP":
            return (Part("two-point", written(record["eps"]), record["delta"]),)
        case "Pufferfish":
            return (Part("two-point", written(record["eps"]), record["delta"]),)
        case "ObjectiveDP":
            return (Part("objective", written(record["mu"]), record["shift"], record["count"]),)
        case "ComposedDP":
            return _counted(Part(kind, written(value), *rest) for kind, value, *rest in record["parts"])
    raise UnprovedError(f"A guarantee of kind {record['kind']!r} cannot be verified by this version of sfumato")


def written(number: float) -> Decimal:
    """A number as the decimal that stands in the certificate: three times 0.1 is 0.3."""
    return Decimal(repr(float(number)))
