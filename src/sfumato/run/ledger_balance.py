"""Does a cost fit into a grant, and what is left of it.

In:   the costs that count already, a grant, a new cost.
Out:  yes or no; the largest further cost that fits, never rounded in our favour; texts for messages.
Not here: how costs add up (core/compose.py), who recorded them (run/ledger.py).

What is left is spendable as it stands: reserving exactly that always fits. Where costs of different kinds were mixed
it is found by bisection on ε at the granted δ, to four digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from sfumato.core import (
    ZCDP,
    Adjacency,
    ApproxDP,
    ComposedDP,
    Event,
    GaussianDP,
    Guarantee,
    PureDP,
    RenyiDP,
    Repeated,
    compose,
)
from sfumato.core.compose import add_exactly

__all__ = ["GRANTABLE", "Cost", "amount_text", "fits", "left_text", "missing_text", "remaining"]

Cost = Event | Guarantee | Repeated
GRANTABLE = (PureDP, ApproxDP, GaussianDP, ZCDP, RenyiDP)

_STEPS = 12
_WORTH_SEARCHING = 0.01
_TOGETHER = "too large together with what is counted already"


def fits(costs: Sequence[Cost], grant: Guarantee) -> bool:
    """Whether all of `costs` together are known to keep `grant`; what is undecided does not fit.

    >>> fits([PureDP(0.2)] * 5, PureDP(1.0)), fits([PureDP(0.2)] * 6, PureDP(1.0))
    (True, False)
    """
    if not costs:
        return True
    total = compose(costs)
    pure = _pure_epsilon(grant)
    if pure is not None:
        # Sums of decimals, exactly; a δ that only underflows to 0 in floating point does not pass for pure.
        return total.epsilon(0.0) <= pure
    return total.implies(grant) is True


def remaining(costs: Sequence[Cost], grant: Guarantee) -> Guarantee | None:
    """The largest further cost that fits, in the words of the grant where possible; None if nothing does.

    >>> print(remaining([PureDP(0.2)] * 3, PureDP(1.0)))
    0.4-DP, adjacency not stated
    >>> print(remaining([GaussianDP(0.6)], GaussianDP(1.0)))
    0.8-Gaussian DP, adjacency not stated
    """
    if not costs:
        return grant
    spent = compose(costs)
    for candidate in _closed_forms(spent, grant):
        if fits([*costs, candidate], grant):
            return _enlarged(candidate, costs, grant)
    searched = _searched(costs, grant, 0.0)
    return searched.under(grant.adjacency) if searched else None


def _pure_epsilon(grant: Guarantee) -> float | None:
    match grant:
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            return eps
    return None


def _closed_forms(spent: Guarantee, grant: Guarantee) -> list[Guarantee]:
    who = grant.adjacency
    match grant:
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            return _made(lambda left: PureDP(left, adjacency=who), _difference(eps, spent.epsilon(0.0)))
        case ApproxDP(eps=eps, delta_=delta):
            return _approximate(spent, eps, delta, grant)
        case GaussianDP(mu=mu) if isinstance(spent, GaussianDP):
            left = _six_digits(math.sqrt(max(0.0, mu**2 - spent.mu**2)))
            return _made(lambda left: GaussianDP(left, adjacency=who), left)
        case ZCDP(rho=rho):
            return _concentrated(spent, rho, who)
        case RenyiDP(alpha=alpha, eps=eps):
            left = _floor((eps - spent.rdp(alpha)) * (1 - 1e-11), 6)  # Rényi sums are rounded up by 1e-12
            return _made(lambda left: RenyiDP(alpha, left, adjacency=who), left)
    return []


def _concentrated(spent: Guarantee, rho: float, who: Adjacency | None) -> list[Guarantee]:
    used = _rho(spent)
    if used is None:
        return []
    left = _difference(rho, used) if isinstance(spent, ZCDP) else _six_digits(rho - used)
    gaussian = _six_digits(math.sqrt(2 * max(0.0, left)))
    # As ρ if the accountant can add ρ to what is spent; otherwise as the μ that is worth as much.
    return [
        *_made(lambda left: ZCDP(left, adjacency=who), left),
        *_made(lambda left: GaussianDP(left, adjacency=who), gaussian),
    ]


def _made(kind: Callable[[float], Guarantee], left: float) -> list[Guarantee]:
    return [kind(value) for value in (left, _a_little_less(left)) if math.isfinite(value) and value > 0]


def _approximate(spent: Guarantee, eps: float, delta: float, grant: Guarantee) -> list[Guarantee]:
    """What plain addition leaves, where every act has an (ε, δ) of its own."""
    plain = _plain_sum(spent)
    if plain is None:
        return []
    left, delta_left = _difference(eps, plain[0]), _difference(delta, plain[1])
    if left <= 0 or delta_left < 0:
        return []
    pairs = [(left, delta_left), (_a_little_less(left), _a_little_less(delta_left))]
    return [ApproxDP(*pair, adjacency=grant.adjacency) for pair in pairs]


def _plain_sum(spent: Guarantee) -> tuple[float, float] | None:
    match spent:
        case PureDP(eps=eps):
            return eps, 0.0
        case ApproxDP(eps=eps, delta_=delta):
            return eps, delta
        case ComposedDP(parts=parts) if all(part.kind in ("laplace", "two-point") for part in parts):
            return (
                add_exactly(part.value for part in parts for _ in range(part.count)),
                add_exactly(part.extra for part in parts for _ in range(part.count)),
            )
    return None


def _enlarged(candidate: Guarantee, costs: Sequence[Cost], grant: Guarantee) -> Guarantee:
    """`candidate`, or clearly more where tight composition leaves more than plain addition does."""
    if not isinstance(candidate, ApproxDP):
        return candidate
    more = candidate.eps + _WORTH_SEARCHING * grant.epsilon(_granted_delta(grant))
    if not fits([*costs, PureDP(more)], grant):
        return candidate
    searched = _searched(costs, grant, more)
    return searched.under(grant.adjacency) if searched else candidate


def _granted_delta(grant: Guarantee) -> float:
    return grant.delta_ if isinstance(grant, ApproxDP) else 0.0


def _searched(costs: Sequence[Cost], grant: Guarantee, low: float) -> PureDP | None:
    """The largest pure ε that fits beside `costs`, by bisection; `low` is known to fit."""
    if not isinstance(grant, ApproxDP) or grant.delta_ == 0:
        return None
    high = grant.eps
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits([*costs, PureDP(middle)], grant) else (low, middle)
    shorter = _floor(low, 4)
    if shorter > 0 and fits([*costs, PureDP(shorter)], grant):
        return PureDP(shorter)
    return PureDP(low) if low > 0 else None


def _difference(whole: float, part: float) -> float:
    """`whole` - `part` as the decimals they are written as, rounded down."""
    if not math.isfinite(part):
        return -math.inf
    exact = Decimal(repr(whole)) - Decimal(repr(part))
    rounded = float(exact)
    return math.nextafter(rounded, -math.inf) if Decimal(repr(rounded)) > exact else rounded


def _a_little_less(value: float) -> float:
    """For the case that the accountant rounds the sum up and the exact rest no longer fits."""
    return _floor(value * (1 - 1e-9), 9) if math.isfinite(value) else value


def _six_digits(value: float) -> float:
    # A little less first: the square root and the subtraction before it carry rounding errors of their own.
    return _floor(value * (1 - 1e-12), 6) if not _is_short(value) else value


def _is_short(value: float) -> bool:
    return float(f"{value:.6g}") == value


def _floor(value: float, digits: int) -> float:
    return float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(value)))


def _number(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    return f"{float(Context(prec=12, rounding=rounding).create_decimal(repr(value))):.12g}"


def amount_text(guarantee: Guarantee, rounding: str = ROUND_HALF_EVEN) -> str:
    """A cost in a few characters with up to twelve digits, so that 0.2000001 does not read as 0.2."""
    match guarantee:
        case PureDP(eps=eps):
            return f"{_number(eps, rounding)}-DP"
        case ApproxDP(eps=eps, delta_=delta):
            return f"({_number(eps, rounding)}, {_number(delta, rounding)})-DP"
        case GaussianDP(mu=mu):
            return f"{_number(mu, rounding)}-Gaussian DP"
        case ZCDP(rho=rho):
            return f"{_number(rho, rounding)}-zCDP"
    return guarantee.describe()


def left_text(left: Guarantee | None, grant: Guarantee) -> str:
    """What is left, rounded down.

    >>> left_text(None, PureDP(1.0))
    'nothing'
    >>> left_text(PureDP(0.31), ApproxDP(1.0, 1e-6))
    '0.31-DP (at the granted δ = 1e-06)'
    """
    if left is None:
        return "nothing"
    text = amount_text(left, ROUND_FLOOR)
    searched = isinstance(left, PureDP) and isinstance(grant, ApproxDP) and grant.delta_ > 0
    return f"{text} (at the granted δ = {grant.delta_:g})" if searched else text  # type: ignore[attr-defined]


def missing_text(cost: Guarantee, left: Guarantee | None, grant: Guarantee) -> str:
    """How much more than what is left the cost is, in the currency of the grant.

    >>> missing_text(PureDP(0.5), PureDP(0.3), PureDP(1.0))
    'ε 0.2 too large'
    """
    pairs = _pair(cost), _pair(left) if left else (0.0, 0.0)
    if _pair(grant) and pairs[0] and pairs[1]:
        return _missing_pair(pairs[0], pairs[1])
    name, asked = _in_currency(cost, grant)
    if asked is None or not math.isfinite(asked):
        return f"no known conversion of {amount_text(cost)} to {amount_text(grant)}"
    _, have = _in_currency(left, grant) if left else (name, 0.0)
    missing = -_difference(have or 0.0, asked)
    return f"{name} {_number(missing, ROUND_CEILING)} too large" if missing > 0 else _TOGETHER


def _pair(guarantee: Guarantee) -> tuple[float, float] | None:
    match guarantee:
        case PureDP(eps=eps):
            return eps, 0.0
        case ApproxDP(eps=eps, delta_=delta):
            return eps, delta
    return None


def _missing_pair(asked: tuple[float, float], have: tuple[float, float]) -> str:
    missing = [-_difference(has, wanted) for has, wanted in zip(have, asked, strict=True)]
    texts = [
        f"{name} {_number(amount, ROUND_CEILING)} too large"
        for name, amount in zip("εδ", missing, strict=True)
        if amount > 0
    ]
    return " and ".join(texts) or _TOGETHER


def _in_currency(guarantee: Guarantee, grant: Guarantee) -> tuple[str, float | None]:
    match grant:
        case GaussianDP():
            return "μ", guarantee.mu if isinstance(guarantee, GaussianDP) else None
        case ZCDP():
            return "ρ", _rho(guarantee)
        case RenyiDP(alpha=alpha):
            return f"ε of order {alpha:g}", guarantee.rdp(alpha)
    return "ε", guarantee.epsilon(_granted_delta(grant))


def _rho(guarantee: Guarantee) -> float | None:
    match guarantee:
        case ZCDP(rho=rho):
            return rho
        case GaussianDP(mu=mu):
            return mu**2 / 2
    return None
