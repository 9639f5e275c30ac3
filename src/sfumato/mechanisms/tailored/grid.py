"""The public grids of a channel: into which bins inputs fall, and what may come out.

In:   a public interval, uses, a rule ("width", "transformed", "quantile") or edges that say where they come from.
Out:  Grid: bin edges and one representative per bin; output values.
Not here: which output for which input (tailored_design.py).

Bins cut at quantiles of the records themselves publish order statistics (the top edge is somebody's value), so an array
of data is never taken: quantiles come from a public prior, from a source said in words, or are drawn privately.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from sfumato.core.adjacency import Adjacency
from sfumato.core.domain import Interval
from sfumato.core.events.event import SelectionEvent
from sfumato.core.guarantee import PureDP
from sfumato.errors import DataError, InputError, SchemaError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.mechanism import finite_array
from sfumato.mechanisms.permute_and_flip import PermuteAndFlip
from sfumato.mechanisms.tailored.uses import Use

__all__ = [
    "Binning",
    "InputGrid",
    "PrivateQuantiles",
    "PublicEdges",
    "checked_binning",
    "make_grid",
    "make_knots",
    "prior_of",
]

_FINE = 20_001
#: Pieces between two knots on which the way from one to the other is straight.
_STEPS = 32
Prior = Callable[[np.ndarray], Any] | tuple[float, ...] | None


@dataclass(frozen=True)
class PublicEdges:
    """Bin edges that do not come from the private records; `source` says in words where they do come from.

    >>> PublicEdges((0.0, 0.5, 1.0), source="census of 2021").edges
    (0.0, 0.5, 1.0)
    """

    edges: tuple[float, ...]
    source: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", tuple(float(edge) for edge in self.edges))
        if not isinstance(self.source, str) or not self.source.strip():
            raise SchemaError("PublicEdges: say in words where the edges come from, if not from the private records.")
        _check_edges(self.edges)


@dataclass(frozen=True)
class PrivateQuantiles:
    """Bin edges drawn privately from records: `events` are what that cost, beside the cost of the channel."""

    edges: tuple[float, ...]
    events: tuple[SelectionEvent, ...]

    @classmethod
    def draw(
        cls, values: Any, domain: Interval, bins: int, epsilon: float, adjacency: Adjacency,
        *, candidates: int = 200, random_state: int | None = None,
    ) -> PrivateQuantiles:  # fmt: skip
        """`bins` - 1 inner edges, each chosen from a public grid with ε/(bins - 1) by how far its rank is off.

        A record that changes moves every rank by at most one. Edges that coincide are kept once.

        >>> from sfumato.core.adjacency import REPLACE_ONE
        >>> data = np.linspace(0, 1, 5000) ** 2
        >>> drawn = PrivateQuantiles.draw(data, Interval(0, 1), 4, 2.0, REPLACE_ONE, random_state=1)
        >>> bool(abs(drawn.edges[2] - 0.25) < 0.05)
        True
        """
        if adjacency.relation != "replace-one":
            raise InputError("Private quantiles are drawn under replacing one record: the number of records is public.")
        if not isinstance(bins, int) or bins < 2:
            raise InputError("Private quantiles need at least 2 bins.")
        array = np.sort(np.clip(finite_array(values), domain.low, domain.high).ravel())
        places = np.linspace(domain.low, domain.high, candidates + 2)[1:-1]
        below = np.searchsorted(array, places, side="right")
        choose = PermuteAndFlip.for_guarantee(PureDP(epsilon / (bins - 1)), 1.0, adjacency, random_state=random_state)
        inner = {float(places[choose(-np.abs(below - at * array.size / bins))]) for at in range(1, bins)}
        return cls((domain.low, *sorted(inner), domain.high), (choose.event(),) * (bins - 1))


Binning = Literal["width", "transformed", "quantile"] | PublicEdges | PrivateQuantiles


@dataclass(frozen=True)
class InputGrid:
    """Bins of the domain: a value in [edges[i], edges[i+1]) is treated as inputs[i].

    With `points` and `positions` the inputs are knots: a value between two of them is treated as one or the other at
    random, so that on average it is treated as itself. Position 2.25 is knot 2 three times in four, else knot 3. Which
    knot is drawn costs no privacy: any mixture of rows that keep a promise keeps it.
    """

    edges: np.ndarray
    inputs: np.ndarray
    points: np.ndarray | None = None
    positions: np.ndarray | None = None

    def rows_of(self, values: np.ndarray) -> np.ndarray:
        """The number of the bin of each value; values beyond the ends count as the ends."""
        return np.searchsorted(self.edges[1:-1], values, side="right")

    def between(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The row at or below each value, and how likely the next one is instead."""
        if self.points is None or self.positions is None:
            return self.rows_of(values), np.zeros(np.shape(values))
        place = np.interp(values, self.points, self.positions)
        below = np.minimum(place.astype(np.int64), len(self.inputs) - 2)
        return below, place - below

    def drawn_rows(self, values: np.ndarray, bits: Bits) -> np.ndarray:
        """The row each value is treated as, this time."""
        below, share = self.between(values)
        if self.points is None:
            return below
        chance = (bits.words(below.size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return below + (chance.reshape(below.shape) < share)


def make_grid(
    domain: Interval, uses: tuple[Use, ...], bins: int, binning: Binning, prior: Prior, guard: float | None
) -> InputGrid:
    """The bins of a domain by a public rule.

    >>> make_grid(Interval(0, 1), (), 2, "width", None, None).inputs
    array([0.25, 0.75])
    """
    if isinstance(binning, PublicEdges | PrivateQuantiles):
        edges = np.array(binning.edges)
        if edges[0] != domain.low or edges[-1] != domain.high:
            raise SchemaError("The first and last edge must be the ends of the domain. Nothing was drawn.")
        return _pushed(edges, (edges[1:] + edges[:-1]) / 2, domain, uses, guard)
    if binning == "width":
        scale = np.linspace(domain.low, domain.high, 2 * bins + 1)
    else:
        rising = _rank_scale(domain, prior) if binning == "quantile" else _use_scale(domain, uses, guard)
        scale = rising(np.linspace(0, 1, 2 * bins + 1))
    scale[0], scale[-1] = domain.low, domain.high
    return _pushed(scale[::2], scale[1::2], domain, uses, guard)


def make_knots(domain: Interval, uses: tuple[Use, ...], count: int, binning: Binning, guard: float | None) -> InputGrid:
    """Knots from one end to the other, in equal steps of all uses together, and the way between them.

    Between two knots the share of the upper one is the mean over the uses of how far each has got: for one use exactly
    what keeps its mean, for several within a few thousandths of a step.

    >>> make_knots(Interval(0, 1), (Use("identity", lambda x: x),), 3, "width", None).inputs
    array([0. , 0.5, 1. ])
    """
    if isinstance(binning, PublicEdges | PrivateQuantiles):
        knots = np.array(binning.edges)
        if knots[0] != domain.low or knots[-1] != domain.high:
            raise SchemaError("The first and last edge must be the ends of the domain. Nothing was drawn.")
    else:
        knots = _common_scale(domain, uses, guard)(np.linspace(0, 1, count))
        knots[0], knots[-1] = domain.low, domain.high
    for use in uses:
        knots = np.unique(use.moved(knots, domain.low, domain.high, guard or 0.0))
    points = np.unique(np.concatenate([np.linspace(*pair, _STEPS + 1) for pair in pairwise(knots)]))
    below = np.minimum(np.searchsorted(knots, points, side="right") - 1, len(knots) - 2)
    shares = np.zeros(len(points))
    for use in uses:
        ends, values = use(knots), use(points)
        shares += (values - ends[below]) / (ends[below + 1] - ends[below]) / len(uses)
    edges = np.concatenate([[domain.low], (knots[1:] + knots[:-1]) / 2, [domain.high]])
    return InputGrid(edges, knots, points, below + np.clip(shares, 0, 1))


def checked_binning(given: Any) -> Binning:
    """The rule, or a refusal: a bare array of edges might be cut from the records."""
    if isinstance(given, PublicEdges | PrivateQuantiles) or (
        isinstance(given, str) and given in ("width", "transformed", "quantile")
    ):
        return given  # type: ignore[return-value]
    raise SchemaError(
        "binning must be 'width', 'transformed', 'quantile', PublicEdges(edges, source=…) or PrivateQuantiles: edges "
        "cut from the private records would publish them. Nothing was drawn."
    )


def _use_scale(domain: Interval, uses: tuple[Use, ...], guard: float | None) -> Callable[[np.ndarray], np.ndarray]:
    """From [0, 1] to the domain so that equal steps are equal steps of the first use that is not the identity."""
    use = next((use for use in uses if use.name != "identity"), None)
    if use is None:
        return lambda share: domain.low + share * domain.width
    # Denser towards the ends, where singular uses are steep.
    angle = np.linspace(0, math.pi, _FINE)
    points = domain.low + domain.width * (1 - np.cos(angle)) / 2
    values = use(use.moved(points, domain.low, domain.high, guard or 0.0))
    steps = np.diff(values)
    if not (np.all(steps >= 0) or np.all(steps <= 0)):
        raise SchemaError(
            f"The use {use.name!r} is not monotone on the domain, so its scale has no equal bins: use binning='width'."
        )
    rising = (values - values[0]) / (values[-1] - values[0])
    return lambda share: np.interp(share, rising, points)


def _common_scale(domain: Interval, uses: tuple[Use, ...], guard: float | None) -> Callable[[np.ndarray], np.ndarray]:
    """From [0, 1] to the domain so that equal steps are equal steps of the uses, each over its own range, together."""
    angle = np.linspace(0, math.pi, _FINE)
    points = domain.low + domain.width * (1 - np.cos(angle)) / 2
    rising = np.zeros(_FINE)
    for use in uses:
        values = use(use.moved(points, domain.low, domain.high, guard or 0.0))
        steps = np.diff(values)
        if not (np.all(steps >= 0) or np.all(steps <= 0)) or values[0] == values[-1]:
            raise SchemaError(
                f"The use {use.name!r} is not monotone on the domain, so no channel keeps its mean between knots: take "
                "bias='soft'. Nothing was drawn."
            )
        rising += (values - values[0]) / (values[-1] - values[0]) / len(uses)
    return lambda share: np.interp(share, rising, points)


def _rank_scale(domain: Interval, prior: Prior) -> Callable[[np.ndarray], np.ndarray]:
    if prior is None or isinstance(prior, tuple):
        raise SchemaError(
            "binning='quantile' needs a public distribution: pass its density as prior=…, the edges as PublicEdges(…, "
            "source=…), or pay for PrivateQuantiles.draw(…). Quantiles of the private records are not taken."
        )
    points = np.linspace(domain.low, domain.high, _FINE)
    ranks = np.concatenate([[0.0], np.cumsum(_density(prior, (points[1:] + points[:-1]) / 2))])
    return lambda share: np.interp(share * ranks[-1], ranks, points)


def _density(prior: Callable[[np.ndarray], Any], points: np.ndarray) -> np.ndarray:
    values = Use("prior", prior)(points)
    if not np.isfinite(values).all() or np.any(values < 0) or values.sum() <= 0:
        raise SchemaError("The prior must be a density: finite, not negative, and positive somewhere in the domain.")
    return values


def _pushed(
    edges: np.ndarray, inputs: np.ndarray, domain: Interval, uses: tuple[Use, ...], guard: float | None
) -> InputGrid:
    """Representatives kept away from singular points; bins that then mean the same value become one."""
    _check_edges(tuple(edges.tolist()))
    for use in uses:
        inputs = use.moved(inputs, domain.low, domain.high, guard or 0.0)
    new = np.append(True, np.diff(inputs) > 0)
    return InputGrid(np.append(edges[:-1][new], edges[-1]), inputs[new])


def _check_edges(edges: tuple[float, ...]) -> None:
    if len(edges) < 2 or not all(map(math.isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise SchemaError("Bin edges must be finite and increasing.")


def prior_of(grid: InputGrid, prior: Prior) -> np.ndarray:
    """The public probability of each bin: uniform on the domain, a density, or one number per bin."""
    if callable(prior):
        shares = (np.arange(33) + 0.5) / 33
        points = grid.edges[:-1, None] + np.diff(grid.edges)[:, None] * shares
        masses = _density(prior, points.ravel()).reshape(points.shape).mean(axis=1) * np.diff(grid.edges)
    elif prior is None:
        masses = np.diff(grid.edges)
    else:
        masses = np.asarray(prior, dtype=float)
        if masses.shape != grid.inputs.shape:
            raise DataError(
                f"prior has {masses.size} entries and there are {len(grid.inputs)} bins: a prior is a public "
                "probability for each bin, or a density function. It is not a sample of the records."
            )
        if not np.isfinite(masses).all() or np.any(masses < 0) or masses.sum() <= 0:
            raise SchemaError("The prior must be finite, not negative and not zero everywhere.")
    return masses / masses.sum()
