"""What one of several may cost, so that all of them together keep a guarantee.

In:   a guarantee for a group, how many it has.
Out:  the guarantee for each of them; None where nothing is known.
Proof: docs/proofs/owners.md; docs/proofs/centre_sums.md, "A whole centre"
"""

from __future__ import annotations

from sfumato.core.gaussian import gaussian_mu
from sfumato.core.guarantee import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP

__all__ = ["for_one_of"]

_DOWN = 1 - 1e-12


def for_one_of(guarantee: Guarantee, number: int) -> Guarantee | None:
    """Group privacy read backwards: ε, μ and √ρ grow in proportion to how many change at once.

    >>> for_one_of(PureDP(1.0), 4).epsilon(0.0) <= 0.25
    True
    """
    if number == 1 and not isinstance(guarantee, ApproxDP):
        return guarantee
    part = _DOWN / number
    match guarantee:
        case PureDP(eps=eps) | ApproxDP(eps=eps, delta_=0.0):
            return PureDP(eps * part, adjacency=guarantee.adjacency)
        case ApproxDP(eps=eps, delta_=delta):
            return GaussianDP(gaussian_mu(eps, delta) * part, adjacency=guarantee.adjacency)
        case GaussianDP(mu=mu):
            return GaussianDP(mu * part, adjacency=guarantee.adjacency)
        case ZCDP(rho=rho):
            return ZCDP(rho * part**2, adjacency=guarantee.adjacency)
    return None
