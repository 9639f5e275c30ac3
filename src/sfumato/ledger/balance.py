"""What a reservation costs in the currency of its grant, whether it fits, and what is left.

In:   the events of one reservation, a grant, what is charged already.
Out:  the charge, fixed for ever once recorded; yes or no; the largest further charge; texts for messages.
Not here: how the acts of one reservation compose (core/compose.py), who recorded them (ledger/ledger.py).
Proof: docs/proofs/ledger_filter.md

Acts of one reservation are fixed before anything is drawn, so their losses may be composed. A later reservation may be
chosen by what the earlier ones showed; then only currencies that add are safe: Σε, (Σε, Σδ), Σμ², Σρ, or Σε at one
Rényi order. Each reservation is first condensed to one amount in the grant's currency, and the amounts are added as
the decimals they are written as. What is left is spendable as it stands: reserving exactly that always fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext

from sfumato.core import (
    ZCDP,
    ApproxDP,
    ComposedDP,
    Event,
    GaussianDP,
    Guarantee,
    Pufferfish,
    PureDP,
    RenyiDP,
    Repeated,
    compose,
)
from sfumato.core.guarantee import mu_of_pure
from sfumato.ledger.decimals import PRECISION, exact, floored, root_up, rounded, rounded_down, rounded_up
from sfumato.ledger.windows import counted_in, window_cost

__all__ = [
    "GRANTABLE",
    "Charge",
    "Cost",
    "amount_text",
    "charge",
    "fits",
    "left_text",
    "missing_text",
    "recharged",
    "remaining",
    "total",
]

Cost = Event | Guarantee | Repeated
#: The amount of one reservation in the grant's currency; None where no conversion is known, which fits nowhere.
Charge = Guarantee | None
GRANTABLE = (PureDP, ApproxDP, GaussianDP, ZCDP, RenyiDP, Pufferfish)

#: Bisection of the fraction of a grant, from 1e-9 to 1 on a logarithmic scale.
_SMALLEST_FRACTION = 1e-9
_STEPS = 22
_NEARLY = 1 + 1e-5
#: A point that is tried later is taken only if it uses this much less of the grant.
_CLEARLY_LESS = 1.1
_TOGETHER = "too large together with what is counted already"


def charge(
    items: Sequence[Cost], grant: Guarantee, counted: Sequence[Charge] = (), promised: Guarantee | None = None
) -> Charge:
    """The amount of one reservation in the grant's currency, rounded up; None where there is none.

    For an (ε, δ) grant a composed cost is a curve, and a point on it has to be chosen among `promised` (if the cost
    keeps it), plain addition, and equal fractions of ε and δ of the promise, of the grant or of what is left of it: the
    first that fits, or a later one that uses clearly less or is nowhere more and somewhere less. So what is charged is
    what is drawn, and no more. All of that is public and known before anything is drawn.

    >>> charge([PureDP(0.5)], ZCDP(1.0))
    ZCDP(adjacency=None, rho=0.125)
    >>> charge([GaussianDP(0.3), GaussianDP(0.4)], GaussianDP(1.0))
    GaussianDP(adjacency=None, mu=0.5)
    >>> print(charge([GaussianDP(0.1)], PureDP(1.0)))
    None
    """
    cost = compose(items)
    if isinstance(grant, Pufferfish):
        moved = window_cost(cost, grant)
        point = counted_in(promised) if promised is not None else None
        return None if moved is None else charge([moved], counted_in(grant), counted, point)
    if isinstance(grant, ApproxDP) and grant.delta_ != 0:
        return _point(cost, grant, counted, promised)
    if isinstance(grant, PureDP | ApproxDP):
        return _pure(cost, promised)
    return _moment_charge(cost, grant)


def _moment_charge(cost: Guarantee, grant: Guarantee) -> Charge:
    """The charge in a currency that has one number and no choice: μ, ρ, or ε at the grant's order."""
    match grant:
        case GaussianDP():
            squares = _squares_of_mu(cost)
            return None if squares is None else GaussianDP(root_up(squares))
        case ZCDP():
            rho = _rho(cost)
            return None if rho is None else ZCDP(rounded_up(rho))
        case RenyiDP(alpha=alpha):
            eps = cost.rdp(alpha)
            return RenyiDP(alpha, eps) if math.isfinite(eps) else None
    return None


def recharged(
    reservations: Sequence[Sequence[Cost]], charges: Sequence[Charge], old: Guarantee, new: Guarantee
) -> list[Charge]:
    """The charges under a new grant: as they were recorded, unless its currency is another."""
    kinds = tuple(_currency(counted_in(one)) for one in (old, new))
    windows = {one.dependence if isinstance(one, Pufferfish) else None for one in (old, new)}
    if len(windows) == 1 and (kinds[0] == kinds[1] or kinds == ("ε", "(ε, δ)")):
        return list(charges)
    made: list[Charge] = []
    for items in reservations:
        made.append(charge(items, new, made))
    return made


def fits(charges: Sequence[Charge], grant: Guarantee) -> bool:
    """Whether the charges together stay within the grant, compared exactly.

    >>> fits([PureDP(0.2)] * 5, PureDP(1.0)), fits([PureDP(0.2)] * 6, PureDP(1.0))
    (True, False)
    >>> fits([GaussianDP(0.6), GaussianDP(0.8)], GaussianDP(1.0))
    True
    """
    left = _left(charges, grant)
    return left is not None and all(amount >= 0 for amount in left)


def total(charges: Sequence[Charge], grant: Guarantee) -> Guarantee | None:
    """What the charges add up to, as one guarantee in the grant's currency, rounded up; None for no charges."""
    if not charges:
        return None
    grant = counted_in(grant)
    amounts = _sums(charges, grant)
    if amounts is None:
        return grant  # something without a known amount: everything is gone
    match grant:
        case PureDP() | ApproxDP():
            eps, delta = rounded_up(amounts[0]), rounded_up(amounts[1])
            return ApproxDP(eps, min(delta, math.nextafter(1.0, 0.0))) if delta else PureDP(eps)
        case GaussianDP():
            return GaussianDP(root_up(amounts[0]))
        case ZCDP():
            return ZCDP(rounded_up(amounts[0]))
        case RenyiDP(alpha=alpha):
            return RenyiDP(alpha, rounded_up(amounts[0]))
    return None


def remaining(charges: Sequence[Charge], grant: Guarantee) -> Guarantee | None:
    """The largest further charge that fits, in the words of the grant; None if nothing does.

    >>> print(remaining([PureDP(0.2)] * 3, PureDP(1.0)))
    0.4-DP, adjacency not stated
    >>> print(remaining([GaussianDP(0.6)], GaussianDP(1.0)))
    0.8-Gaussian DP, adjacency not stated
    >>> print(remaining([ApproxDP(0.25, 1e-7)], ApproxDP(1.0, 1e-6)))
    (0.75, 9e-07)-DP, adjacency not stated
    """
    grant = counted_in(grant)
    left = _left(charges, grant)
    if left is None or left[0] <= 0 or left[-1] < 0:
        return None
    if not charges:
        return grant
    who = grant.adjacency
    match grant:
        case ApproxDP():
            return _made(lambda eps: ApproxDP(eps, rounded_down(left[1]), adjacency=who), rounded_down(left[0]))
        case PureDP():
            return _made(lambda eps: PureDP(eps, adjacency=who), rounded_down(left[0]))
        case GaussianDP():
            with localcontext() as context:
                context.prec = PRECISION
                root = left[0].sqrt()
            return _made(lambda mu: GaussianDP(mu, adjacency=who), floored(root, 6))
        case ZCDP():
            return _made(lambda rho: ZCDP(rho, adjacency=who), rounded_down(left[0]))
        case RenyiDP(alpha=alpha):
            return _made(lambda eps: RenyiDP(alpha, eps, adjacency=who), rounded_down(left[0]))
    return None


def _made(kind: Callable[[float], Guarantee], left: float) -> Guarantee | None:
    return kind(left) if left > 0 else None


# ── amounts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _currency(grant: Guarantee) -> str:
    match grant:
        case PureDP() | ApproxDP(delta_=0.0):
            return "ε"
        case ApproxDP():
            return "(ε, δ)"
        case GaussianDP():
            return "μ"
        case RenyiDP(alpha=alpha):
            return f"ε of order {alpha!r}"
    return "ρ"


def _amounts(guarantee: Guarantee, grant: Guarantee) -> tuple[Decimal, ...] | None:
    """What adds: (ε, δ) for a plain grant, otherwise (μ²,), (ρ,) or (ε,)."""
    match grant, guarantee:
        case ((PureDP() | ApproxDP()), PureDP(eps=eps)):
            return exact(eps), Decimal(0)
        case ((PureDP() | ApproxDP()), ApproxDP(eps=eps, delta_=delta)):
            return exact(eps), exact(delta)
        case GaussianDP(), GaussianDP(mu=mu):
            with localcontext() as context:
                context.prec = PRECISION
                return (exact(mu) ** 2,)
        case ZCDP(), ZCDP(rho=rho):
            return (exact(rho),)
        case RenyiDP(alpha=alpha), RenyiDP(alpha=order, eps=eps) if order >= alpha:
            return (exact(eps),)
    return None


def _sums(charges: Sequence[Charge], grant: Guarantee) -> tuple[Decimal, ...] | None:
    amounts = [None if one is None else _amounts(one, grant) for one in charges]
    known = [one for one in amounts if one is not None]
    if len(known) < len(amounts):
        return None
    with localcontext() as context:
        context.prec = PRECISION
        return tuple(sum(column, Decimal(0)) for column in zip(*known, strict=True))


def _left(charges: Sequence[Charge], grant: Guarantee) -> tuple[Decimal, ...] | None:
    grant = counted_in(grant)
    whole = _amounts(grant, grant)
    assert whole is not None  # a grant is an amount of its own currency
    if not charges:
        return whole
    used = _sums(charges, grant)
    if used is None:
        return None
    with localcontext() as context:
        context.prec = PRECISION
        return tuple(have - spent for have, spent in zip(whole, used, strict=True))


def _pure(cost: Guarantee, promised: Guarantee | None) -> PureDP | None:
    # A δ that only underflows to 0 in floating point does not pass for pure: ε(0) is infinite there.
    eps = cost.epsilon(0.0)
    if isinstance(promised, PureDP) and eps <= promised.eps <= eps * _NEARLY:
        return PureDP(promised.eps)  # what was promised, without the crumbs of calibration
    return PureDP(eps) if math.isfinite(eps) else None


def _squares_of_mu(cost: Guarantee) -> Decimal | None:
    """μ² of a cost; a trained model and a δ > 0 have none."""
    match cost:
        case GaussianDP(mu=mu):
            return _weighted([(mu, 1)], 2)
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            return _weighted([(mu_of_pure(eps), 1)], 2)
        case ComposedDP(parts=parts):
            known = [(part.mu(), part.count) for part in parts]
            return _weighted(known, 2)
    return None


def _rho(cost: Guarantee) -> Decimal | None:
    """ρ of a cost: μ²/2 for Gaussian noise, ε²/2 for a pure ε (Bun & Steinke 2016, Prop. 1.6 and 3.3)."""
    match cost:
        case ZCDP(rho=rho):
            return exact(rho)
        case GaussianDP(mu=value) | PureDP(eps=value) | ApproxDP(eps=value, delta_=0.0):
            return _half(_weighted([(value, 1)], 2))
        case ComposedDP():
            return _rho_of_acts(cost)
    return None


def _rho_of_acts(cost: ComposedDP) -> Decimal | None:
    degrees = [part.pair.degree_of_rho(part) for part in cost.parts]
    if None in degrees:
        return None
    known = [(degree, part.value, part.count) for degree, part in zip(degrees, cost.parts, strict=True)]
    linear = _weighted([(value, count) for degree, value, count in known if degree == 1], 1)
    square = _half(_weighted([(value, count) for degree, value, count in known if degree == 2], 2))
    return None if linear is None or square is None else linear + square


def _half(value: Decimal | None) -> Decimal | None:
    with localcontext() as context:
        context.prec = PRECISION
        return None if value is None else value / 2


def _weighted(values: Iterable[tuple[float, int]], power: int) -> Decimal | None:
    with localcontext() as context:
        context.prec = PRECISION
        terms = [(value, count) for value, count in values]
        if not all(math.isfinite(value) for value, _ in terms):
            return None
        return sum((exact(value) ** power * count for value, count in terms), Decimal(0))


# ── a point for a curve ──────────────────────────────────────────────────────────────────────────────────────────────

Pair = tuple[float, float]


def _point(cost: Guarantee, grant: ApproxDP, counted: Sequence[Charge], promised: Guarantee | None) -> Charge:
    stated = _pair(cost)
    if stated is None:
        stated = _chosen(cost, grant, counted, promised)
    return None if stated is None else _from_pair(stated)


def _chosen(cost: Guarantee, grant: ApproxDP, counted: Sequence[Charge], promised: Guarantee | None) -> Pair | None:
    known = _candidates(cost, grant, counted, promised)
    fitting = [pair for pair in known if fits([*counted, _from_pair(pair)], grant)]
    best: Pair | None = None
    for pair in fitting or known:
        if best is None or _is_better(pair, best, grant):
            best = pair
    return best


def _is_better(pair: Pair, best: Pair, grant: ApproxDP) -> bool:
    if _fraction(pair, grant) * _CLEARLY_LESS < _fraction(best, grant):
        return True
    nowhere_more = pair[0] <= best[0] and pair[1] <= best[1]
    return nowhere_more and any(one * _NEARLY < other for one, other in zip(pair, best, strict=True))


def _candidates(cost: Guarantee, grant: ApproxDP, counted: Sequence[Charge], promised: Guarantee | None) -> list[Pair]:
    kept = _kept(cost, promised)
    wholes = dict.fromkeys((kept, (grant.eps, grant.delta_), _what_is_left(counted, grant)))
    fractions = [_equal_fractions(cost, *whole) for whole in wholes if whole is not None and whole[1] > 0]
    plain = _plain_sum(cost)
    full = _without_crumbs(plain, kept) if plain is not None and kept is not None else None
    return [pair for pair in (kept, full, plain, *fractions) if pair is not None]


def _kept(cost: Guarantee, promised: Guarantee | None) -> Pair | None:
    """The promise, where the cost keeps it."""
    if promised is None or cost.implies(promised.under(cost.adjacency)) is not True:
        return None
    return _pair(promised)


def _what_is_left(counted: Sequence[Charge], grant: ApproxDP) -> Pair | None:
    """What the charges leave of the grant, rounded down."""
    left = _left(counted, grant)
    return (rounded_down(left[0]), rounded_down(left[1])) if left is not None and left[0] > 0 else None


def _without_crumbs(pair: Pair, promised: Pair) -> Pair:
    """A number that calibration left a crumb below the promise is the promised one: nothing is left that is nothing."""
    eps, delta = (most if one <= most <= one * _NEARLY else one for one, most in zip(pair, promised, strict=True))
    return eps, delta


def _fraction(pair: Pair, grant: ApproxDP) -> float:
    return max(pair[0] / grant.eps, pair[1] / grant.delta_)


def _equal_fractions(cost: Guarantee, eps: float, delta: float) -> Pair | None:
    """(tε, tδ) with the least t ≤ 1 for which the cost keeps it, t to six digits and shorter where that holds."""

    def scaled(t: Decimal) -> Pair:
        return rounded_up(t * exact(eps)), rounded_up(t * exact(delta))

    def holds(t: Decimal) -> bool:
        pair = scaled(t)
        return pair[0] > 0 and cost.delta(pair[0]) <= pair[1]

    if not holds(Decimal(1)):
        return None
    low, high = _SMALLEST_FRACTION, 1.0
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(exact(middle)) else (middle, high)
    for digits in range(1, 7):
        short = rounded(high, digits, ROUND_HALF_EVEN)
        if short <= exact(high) * Decimal(_NEARLY) and holds(short):
            return scaled(short)
    return scaled(exact(high))


def _plain_sum(cost: Guarantee) -> Pair | None:
    """(Σε, Σδ) where every act has an ε of its own."""
    if not isinstance(cost, ComposedDP) or not all(part.pair.has_epsilon for part in cost.parts):
        return None
    eps = _weighted(((part.value, part.count) for part in cost.parts), 1)
    delta = _weighted(((part.pair.stated_delta(part), part.count) for part in cost.parts), 1)
    if eps is None or delta is None or delta >= 1:
        return None
    return rounded_up(eps), rounded_up(delta)


def _from_pair(pair: Pair) -> Guarantee:
    return ApproxDP(*pair) if pair[1] > 0 else PureDP(pair[0])


def _pair(guarantee: Guarantee | None) -> Pair | None:
    return guarantee.stated if isinstance(guarantee, PureDP | ApproxDP) else None


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def amount_text(guarantee: Guarantee, rounding: str = ROUND_HALF_EVEN) -> str:
    """A cost in a few characters with up to twelve digits, so that 0.2000001 does not read as 0.2."""
    match guarantee:
        case PureDP(eps=eps):
            return f"{_number(eps, rounding)}-DP"
        case ApproxDP(eps=eps, delta_=delta):
            return f"({_number(eps, rounding)}, {_number(delta, rounding)})-DP"
        case Pufferfish(eps=eps, delta_=delta, dependence=known):
            pair = f"({_number(eps, rounding)}, {_number(delta, rounding)})" if delta else _number(eps, rounding)
            return f"{pair}-{known.title}, {known.short}"
        case GaussianDP(mu=mu):
            return f"{_number(mu, rounding)}-Gaussian DP"
        case ZCDP(rho=rho):
            return f"{_number(rho, rounding)}-zCDP"
    return guarantee.describe()


def _number(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    return f"{float(rounded(value, 12, rounding)):.12g}"


def left_text(left: Guarantee | None) -> str:
    """What is left, rounded down.

    >>> left_text(None), left_text(PureDP(0.31))
    ('nothing', '0.31-DP')
    """
    return "nothing" if left is None else amount_text(left, ROUND_FLOOR)


def missing_text(items: Sequence[Cost], charged: Charge, left: Guarantee | None, grant: Guarantee) -> str:
    """How much more than what is left a reservation asks for, in the currency of the grant.

    >>> missing_text([PureDP(0.5)], PureDP(0.5), PureDP(0.3), PureDP(1.0))
    'ε 0.2 too large'
    """
    grant = counted_in(grant)
    if charged is None and _currency(grant) == "(ε, δ)":
        eps = compose(items).epsilon(grant.delta_)  # type: ignore[attr-defined]  # of an ApproxDP
        charged = ApproxDP(eps, grant.delta_) if math.isfinite(eps) and eps > 0 else None  # type: ignore[attr-defined]
    if charged is None:
        return f"no known conversion of {amount_text(compose(items))} to {amount_text(grant)}"
    asked = _in_words(charged, grant)
    have = _in_words(left, grant) if left else dict.fromkeys(asked, 0.0)
    texts = []
    for name, value in asked.items():
        missing = -rounded_down(exact(have[name]) - exact(value))
        if missing > 0:
            texts.append(f"{name} {_number(missing, ROUND_CEILING)} too large")
    return " and ".join(texts) or _TOGETHER


def _in_words(guarantee: Guarantee, grant: Guarantee) -> dict[str, float]:
    match guarantee:
        case PureDP(eps=eps):
            return {"ε": eps} if _currency(grant) == "ε" else {"ε": eps, "δ": 0.0}
        case ApproxDP(eps=eps, delta_=delta):
            return {"ε": eps, "δ": delta}
        case GaussianDP(mu=mu):
            return {"μ": mu}
        case ZCDP(rho=rho):
            return {"ρ": rho}
        case RenyiDP(alpha=alpha, eps=eps):
            return {f"ε of order {alpha:g}": eps}
    return {}
