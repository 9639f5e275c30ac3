"""Sums that can be written down, for the verifier: Σε, Σδ, Σμ², Σρ.

In:   parts (evidence/losses.py).
Out:  their sums in decimals of sixty digits, every operation rounded up; None where some act has no such number.
Not here: laws of privacy losses (evidence/laws.py); composing guarantees (core/compose.py), which is not called.
Proof: docs/proofs/composition.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal

from scipy.special import erfinv, ndtri

from sfumato.evidence.losses import Part, written

__all__ = ["concentrated", "pure_sum", "square_of_mu"]

_UP = Context(prec=60, rounding=ROUND_CEILING)
#: Acts that have an ε of their own, as their value.
_WITH_EPSILON = ("laplace", "two-point", "three-point")


def pure_sum(parts: Iterable[Part]) -> tuple[Decimal, Decimal] | None:
    """(Σε, Σδ) exactly, rounded up; None where some act has no ε."""
    epsilon, delta = Decimal(0), Decimal(0)
    for part in parts:
        if part.kind not in _WITH_EPSILON:
            return None
        epsilon = _UP.add(epsilon, _UP.multiply(part.times, part.value))
        delta = _UP.add(delta, _UP.multiply(part.times, written(part.fails)))
    return epsilon, delta


def square_of_mu(parts: Iterable[Part]) -> Decimal | None:
    """μ² of all parts together; None where some act is not Gaussian private: one that may fail never is."""
    total = Decimal(0)
    for part in parts:
        if part.kind not in ("gaussian", *_WITH_EPSILON) or part.fails:
            return None
        one = part.value if part.kind == "gaussian" else _mu_of_pure(part.value)
        if not one.is_finite():
            return None
        total = _UP.add(total, _UP.multiply(part.times, _UP.multiply(one, one)))
    return total


def _mu_of_pure(epsilon: Decimal) -> Decimal:
    """ε-DP implies the μ whose trade-off curve meets the kink of its own: Φ(μ/2) = 1/(1 + e^-ε)."""
    size = float(epsilon)
    # Near the middle tanh has all digits, near the end the tail has.
    half = math.sqrt(2) * float(erfinv(math.tanh(size / 2))) if size < 1 else -float(ndtri(1 / (1 + math.exp(size))))
    return Decimal(2 * half * (1 + 1e-13))


def concentrated(parts: Iterable[Part]) -> Decimal | None:
    """ρ of all parts together (Bun & Steinke 2016, Prop. 1.6 and 3.3); None where some act has none."""
    total = Decimal(0)
    for part in parts:
        if part.kind not in ("gaussian", *_WITH_EPSILON) or part.fails:
            return None
        total = _UP.add(total, _UP.multiply(part.times, _UP.multiply(part.value, part.value)))
    return _UP.divide(total, Decimal(2))
