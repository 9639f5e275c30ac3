"""One channel for all uses of a value, or one for each: both designed, the better chosen.

In:   a public interval, ε, δ, several uses.
Out:  TailoredChoice: the joint channel (first noise, then transform) and the separate ones (first transform, then
      noise), the error left by either, and which is better.
Not here: designing one channel (tailored_design.py), where in a plan either stands (plan/).
Reference: Basu, §5.4: models tns∘dp and dp∘tns.

With a joint channel the uses are post-processing of one output, so the whole ε is spent on it. Separate channels are
separate acts: m of them have ε/m each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sfumato.core.domain import Interval
from sfumato.mechanisms.tailored.grid import Binning, PublicEdges, make_grid
from sfumato.mechanisms.tailored.noise import TailoredNoise
from sfumato.mechanisms.tailored.uses import Use, as_uses

__all__ = ["TailoredChoice", "grids_for", "tailor"]

Order = Literal["tns∘dp", "dp∘tns"]


@dataclass(frozen=True)
class TailoredChoice:
    """Both designs. Errors are what is left after decoding, each use in units of its own variance."""

    joint: TailoredNoise
    separate: tuple[TailoredNoise, ...]
    errors: dict[Order, tuple[float, ...]]

    @property
    def order(self) -> Order:
        """The order with the smaller total error; the joint channel where they are equal."""
        return "tns∘dp" if sum(self.errors["tns∘dp"]) <= sum(self.errors["dp∘tns"]) else "dp∘tns"

    @property
    def channels(self) -> tuple[TailoredNoise, ...]:
        """The chosen ones: a single joint channel, or one for each use."""
        return (self.joint,) if self.order == "tns∘dp" else self.separate

    def report(self) -> str:
        """Both designs in words."""
        names = [use.name for use in self.joint.uses]
        lines = []
        for order, errors in self.errors.items():
            parts = ", ".join(f"{name} {error:.3g}" for name, error in zip(names, errors, strict=True))
            lines.append(f"{order}: share of the variance left: {parts}{' (chosen)' if order == self.order else ''}")
        return "\n".join(lines)


def tailor(
    domain: Interval, epsilon: float, delta: float = 0.0, uses: Any = ("identity",), **wishes: Any
) -> TailoredChoice:
    """Design both orders for the same total ε (and δ).

    The joint channel is tried with bins of equal width, with bins on the scale of the first other use, and with half of
    each.

    >>> choice = tailor(Interval(0.01, 1), 2.0, uses=["identity", "log"], bins=12)
    >>> choice.order
    'tns∘dp'
    """
    listed = as_uses(uses)
    wishes = {"bias": "none", **wishes}
    grids = [wishes.pop("binning")] if "binning" in wishes else grids_for(domain, listed, wishes.get("bins", 20))
    joint = min(
        (TailoredNoise(domain, epsilon, delta, listed, binning=grid, **wishes) for grid in grids),
        key=lambda channel: sum(_left(channel, listed)),
    )
    share = len(listed)
    if share == 1:
        separate = (TailoredNoise(domain, epsilon, delta, listed, binning=grids[min(1, len(grids) - 1)], **wishes),)
    else:
        separate = tuple(
            TailoredNoise(domain, epsilon / share, delta / share, (use,), binning=_own_scale(domain, use), **wishes)
            for use in listed
        )
    apart = tuple(_left(channel, (use,))[0] for channel, use in zip(separate, listed, strict=True))
    return TailoredChoice(joint, separate, {"tns∘dp": _left(joint, listed), "dp∘tns": apart})


def _own_scale(domain: Interval, use: Use) -> Binning:
    steps = np.diff(use(np.linspace(domain.low, domain.high, 2001)))
    return "transformed" if np.all(steps > 0) or np.all(steps < 0) else "width"


def grids_for(domain: Interval, uses: tuple[Use, ...], bins: int) -> list[Binning]:
    """Equal width, equal width on the scale of the first other use, and half of each, where that use is monotone."""
    other = next((use for use in uses if use.name != "identity"), None)
    if other is None or _own_scale(domain, other) == "width":
        return ["width"]
    halves = [
        make_grid(domain, (other,), bins // 2, "width", None, None).edges,
        make_grid(domain, (other,), bins - bins // 2, "transformed", None, None).edges,
    ]
    # Edges nearer than a hundredth of a bin would make bins that mean the same.
    edges = np.unique(np.concatenate(halves))
    kept = np.append(True, np.diff(edges) > 1e-4 * domain.width / bins)
    mixed = np.append(edges[:-1][kept[:-1]], domain.high)
    return ["width", "transformed", PublicEdges(tuple(mixed), source="equal widths on two public scales")]


def _left(channel: TailoredNoise, uses: tuple[Use, ...]) -> tuple[float, ...]:
    """Decoded error of each use over its variance under the prior, times its weight."""
    left = []
    for use in uses:
        mean, square = channel.within_bins(use)
        prior = channel.table.prior
        variance = float(square @ prior - (mean @ prior) ** 2)
        left.append(use.weight * channel.decoded_error(use) / max(variance, 1e-300))
    return tuple(left)
