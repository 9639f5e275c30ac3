"""A promise about a whole history, shared out over its steps: fixed by the study's text, before any data is read.

In:   a requirement's guarantee, the number of steps that publish under it.
Out:  what each of these steps may cost.
Not here: which steps there are (lang/steps.py), what was spent (ledger/).
Proof: docs/proofs/time_steps.md
"""

from __future__ import annotations

import math

from sfumato.core import ZCDP, ApproxDP, GaussianDP, Guarantee, Pufferfish, PureDP, RenyiDP
from sfumato.core.gaussian import gaussian_mu
from sfumato.errors import InputError

__all__ = ["share_of"]

#: Shares are rounded down, so that they never add up to more than the whole.
_DOWN = 1 - 1e-12


def share_of(whole: Guarantee, steps: int, numbers: bool = True) -> Guarantee:
    """What each of `steps` releases may cost for all of them together to keep `whole`.

    With `numbers` the steps publish statistics alone, whose noise has a μ: an (ε, δ) is then shared as the μ-GDP that
    implies it, which is far less noise than (ε/T, δ/T).

    >>> print(share_of(GaussianDP(1.0), 4).describe())
    0.5-Gaussian DP
    >>> share_of(PureDP(1.0), 4).epsilon(0.0) <= 0.25
    True
    """
    if steps <= 1:
        return whole
    part = _DOWN / steps
    match whole:
        case GaussianDP(mu=mu):
            return GaussianDP(mu * math.sqrt(part), adjacency=whole.adjacency)
        case ZCDP(rho=rho):
            return ZCDP(rho * part, adjacency=whole.adjacency)
        case RenyiDP(alpha=alpha, eps=eps):
            return RenyiDP(alpha, eps * part, adjacency=whole.adjacency)
        case Pufferfish():
            return whole.share(part)
        case ApproxDP(eps=eps, delta_=delta) if delta > 0:
            if numbers:
                return GaussianDP(gaussian_mu(eps, delta) * math.sqrt(part), adjacency=whole.adjacency)
            return ApproxDP(eps * part, delta * part, adjacency=whole.adjacency)
        case PureDP() | ApproxDP():
            return PureDP(whole.epsilon(0.0) * part, adjacency=whole.adjacency)
    raise InputError(
        f"{whole.describe()} cannot be shared out over {steps} steps: nothing is proved about its shares. Publish all "
        "of it at one step"
    )
