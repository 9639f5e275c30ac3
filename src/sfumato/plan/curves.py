"""Loss against ε for every publication, and relative losses of statistics.

In:   settled publications, their requirements.
Out:  Curve: five points at multiples of the requirement's ε, the settled one marked.
Not here: curves in a variable's own unit for the report (evidence/frontier.py).

For fixed shares of the budget the variance of a draw is proportional to 1/μ² (Gaussian) or 1/ε² (Laplace), so a
statistic's curve follows from its settled point: exactly for sums, to first order otherwise. Strategies of other kinds
are asked again for a prediction at every point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from sfumato.core import ApproxDP, Guarantee, PureDP
from sfumato.errors import SfumatoError
from sfumato.network.network import Network
from sfumato.plan.draw_law import NoiseName, draw_law
from sfumato.plan.plan import Curve, Planned
from sfumato.plan.request import Request
from sfumato.plan.settle import Settling
from sfumato.plan.strategy import Strategy
from sfumato.plan.wanted import Wanted

__all__ = ["MULTIPLES", "act_curve", "relative_losses", "statistic_curve"]

MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)

Question = tuple[Network, str, tuple[Request, ...], float, Mapping[str, float]]


def relative_losses(question: Question, planned: Sequence[Planned]) -> list[float]:
    """Mean squared error of each publication's numbers over their squared scale."""
    network, dataset, requests, size, sizes = question
    units = Settling(network, dataset, requests, "gaussian", size, sizes)
    return [units.loss_of(one) for one in planned]


def statistic_curve(planned: Planned, loss: float, asked: Guarantee, noise: NoiseName) -> Curve:
    """By the law of the noise, from the settled point."""
    epsilon, delta = asked.stated
    ratio = draw_law(noise).ratio
    points = [(epsilon * multiple, loss / ratio(epsilon, delta, multiple) ** 2) for multiple in MULTIPLES]
    return Curve(planned.name, planned.observer, tuple(points), MULTIPLES.index(1.0))


def act_curve(
    wanted: Wanted, strategy: Strategy, share: PureDP | ApproxDP, whole: PureDP | ApproxDP, size: float
) -> Curve:
    """The same strategy predicted at multiples of its portion; points it cannot answer are left out."""
    points, chosen = [], 0
    for multiple in MULTIPLES:
        scaled = (
            ApproxDP(share.eps * multiple, share.delta_)
            if isinstance(share, ApproxDP)
            else PureDP(share.eps * multiple)
        )
        with suppress(SfumatoError):
            loss = strategy.predict(wanted, scaled.under(share.adjacency), size).loss
            chosen = len(points) if multiple == 1.0 else chosen
            points.append((whole.eps * multiple, loss))
    return Curve(wanted.name, wanted.request.observer, tuple(points), chosen)
