"""Noise tailored to what a value will be used for: the best local channel, exactly private.

In:   a public interval, ε (and δ), the uses; then values.
Out:  published values from a public list; ChannelEvent for the ledger; estimates for whoever collects them.
Not here: the design (tailored_design.py), estimates (channel_estimate.py), files (tailored_file.py).
Proof: docs/proofs/tailored_noise.md
Reference: Basu, §3.3.3 and Ch. 5 (tailored noise mechanism).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sfumato.core.adjacency import REPLACE_ONE, Adjacency
from sfumato.core.certificate import Certificate
from sfumato.core.checks import positive, probability
from sfumato.core.domain import Interval
from sfumato.core.events.channel import ChannelEvent
from sfumato.core.events.event import Event
from sfumato.core.guarantee import ApproxDP, Guarantee
from sfumato.errors import DataError, InputError, PrivacyParameterError
from sfumato.mechanisms.bits import Bits
from sfumato.mechanisms.calibrate import largest_pure_epsilon
from sfumato.mechanisms.mechanism import Mechanism, finite_array, kept
from sfumato.mechanisms.tailored.design import Bias, ChannelTable, DesignWish, WeightsKey, as_outputs, design
from sfumato.mechanisms.tailored.grid import Binning, PrivateQuantiles, checked_binning
from sfumato.mechanisms.tailored.uses import Use, as_use, as_uses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.mechanisms.channel_estimate import Estimate

__all__ = ["TailoredNoise"]

_CHUNK = 1 << 15


@dataclass(frozen=True, eq=False)
class TailoredNoise(Mechanism):
    """A channel from bins of a public interval to published values, of least error for the given `uses`.

    Everything but the values is public. A value outside the domain is treated as its nearest end; within, it is
    treated as the representative of its bin. What is promised is local: whoever sees the output, and knows everything
    about everybody else, learns at most ε about this record's value. That the record is there is public.

    `uses`: names ("identity", "log", "inverse", "tan", "sqrt", "power:-2", …), functions, or pairs (use, weight).
    `prior`: None (uniform on the domain), a public density, or a public probability for each bin.
    `outputs`: how many, or which. `bias`: "soft" adds the squared bias to the squared error, "none" does not: channels
    for outputs that are used as they stand. "unbiased" is for means: the mean of each use is kept exactly, also within
    bins (values between two knots are treated as one or the other at random; with several uses within a few thousandths
    of a step), outputs reach beyond the domain, and each record serves one of the uses. `binning`: equal "width",
    equal width on the scale of the first use ("transformed"), "quantile" of the public prior, PublicEdges or
    PrivateQuantiles; an unbiased channel has knots at such edges, or in equal steps of all its uses together.
    `guard`: how near a singular point of a use values may come.

    >>> channel = TailoredNoise(Interval(0.01, 1), 2.0, uses=["identity", "log"])
    >>> print(channel.guarantee())
    2-DP, under replacing one record
    >>> bool(np.isin(channel([0.3, 0.02, 7.0]), channel.outputs).all())
    True
    """

    proof: ClassVar[str] = "tailored_noise"

    domain: Interval
    epsilon: float
    delta: float = 0.0
    uses: Any = ("identity",)
    prior: Any = None
    bins: int = 20
    outputs: Any = field(default=None, repr=False)
    bias: Bias = "soft"
    binning: Binning = "width"
    guard: float | None = None
    adjacency: Adjacency | None = REPLACE_ONE
    random_state: int | None = None
    table: ChannelTable = field(default=None, repr=False, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        # The one name `outputs` is the wish before the design and the list of published values after it.
        designed = self.table is not None and self.outputs is self.table.outputs
        wish = _wish(self, self.table.wish.outputs if designed else as_outputs(self.outputs))
        if self.table is None or self.table.wish != wish:
            object.__setattr__(self, "table", design(wish))
        object.__setattr__(self, "uses", wish.uses)
        object.__setattr__(self, "prior", wish.prior)
        object.__setattr__(self, "outputs", self.table.outputs)
        self.event()

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        sensitivity: float,
        adjacency: Adjacency,
        *,
        bins: int = 8,
        random_state: int | None = None,
        **wishes: Any,
    ) -> Self:
        """The channel on [0, sensitivity] that keeps `guarantee`: for a value that may change by that much."""
        domain = Interval(0.0, positive(sensitivity, "sensitivity"))
        if isinstance(guarantee, ApproxDP) and guarantee.delta_ > 0:
            epsilon, delta = guarantee.eps, guarantee.delta_
        else:
            epsilon, delta = largest_pure_epsilon(guarantee), 0.0
        made = cls(domain, epsilon, delta, bins=bins, adjacency=adjacency, random_state=random_state, **wishes)
        return kept(made, guarantee)

    def __eq__(self, other: object) -> bool:
        """Equal if they do the same: bins, outputs, weights, adjacency; how they were wished for does not matter."""
        if not isinstance(other, TailoredNoise):
            return NotImplemented
        same = np.array_equal(self.edges, other.edges) and np.array_equal(self.outputs, other.outputs)
        return same and self.event() == other.event() and self.random_state == other.random_state

    def __hash__(self) -> int:
        return hash((self.event(), self.random_state))

    @property
    def inputs(self) -> np.ndarray:
        """The representative of each bin."""
        return self.table.grid.inputs

    @property
    def edges(self) -> np.ndarray:
        """Where the bins begin and end."""
        return self.table.grid.edges

    @property
    def weights(self) -> np.ndarray:
        """Whole numbers, one row per input, one column per output; every row sums to 2^62."""
        return self.table.weights

    @property
    def probabilities(self) -> np.ndarray:
        """weights / 2^62."""
        return self.table.probabilities

    def event(self) -> ChannelEvent:
        return _event(self.table.weights_key, self.epsilon if self.delta > 0 else None, self.adjacency)

    def error(self) -> float:
        """Mean squared error of the first use over the prior, at the representatives."""
        return float(self.mean_squared_errors(self.uses[0]) @ self.table.prior)

    def mean_squared_errors(self, use: Any = None) -> np.ndarray:
        """E[(use(output) - use(input))²] for each input."""
        use = self.uses[0] if use is None else as_use(use)
        before, after = use(self.inputs), self.face_values(use)
        return (self.probabilities * (after[None, :] - before[:, None]) ** 2).sum(axis=1)

    def biases(self, use: Any = None) -> np.ndarray:
        """E[use(output)] - use(input) for each input."""
        use = self.uses[0] if use is None else as_use(use)
        return self.probabilities @ self.face_values(use) - use(self.inputs)

    def face_values(self, use: Any) -> np.ndarray:
        """The use of each output taken as it stands; where it has none there, of the domain's nearest end."""
        use = as_use(use)
        if use.least is not None and self.outputs.min() <= use.least:
            return use(np.clip(self.outputs, self.domain.low, self.domain.high))
        return use(self.outputs)

    def predicted_error(self, use: Any = None) -> float:
        """Mean squared error of a use for a value drawn from the prior, uniform inside its bin: for plans.

        >>> channel = TailoredNoise(Interval(0, 1), 40.0, bins=10)
        >>> bool(abs(channel.predicted_error("identity") - 0.01 / 12) < 1e-6)  # what is left is the width of a bin
        True
        """
        use = self.uses[0] if use is None else as_use(use)
        (mean, square), after = self.within_bins(use), self.face_values(use)
        expected = self.probabilities @ after**2 - 2 * mean * (self.probabilities @ after) + square
        return float(expected @ self.table.prior)

    def decoded_error(self, use: Any = None) -> float:
        """E Var(use(x) | output) under the prior: the squared error left to whoever knows the channel and decodes.

        It never exceeds `predicted_error`, which takes outputs at face value.
        """
        use = self.uses[0] if use is None else as_use(use)
        mean, square = self.within_bins(use)
        joint = self.table.prior[:, None] * self.probabilities
        decoded = mean @ joint
        return float(square @ self.table.prior - (decoded**2 / joint.sum(axis=0)).sum())

    def within_bins(self, use: Use) -> tuple[np.ndarray, np.ndarray]:
        """Means of use and use² in each bin, values spread evenly."""
        shares = (np.arange(33) + 0.5) / 33
        points = self.edges[:-1, None] + np.diff(self.edges)[:, None] * shares
        values = use(use.moved(points, self.domain.low, self.domain.high, self.guard or 0.0))
        return values.mean(axis=1), (values**2).mean(axis=1)

    def __call__(self, values: Any) -> Any:
        """Published values, each from `outputs`. Values outside the domain count as its nearest end."""
        drawn = self._send(finite_array(values), self._bits())
        return float(drawn) if np.ndim(values) == 0 else drawn

    def sample(self, value: Any, trials: int) -> np.ndarray:
        return self._send(np.broadcast_to(finite_array(value), (trials, *np.shape(value))), self._bits())

    def log_likelihood(self, outputs: np.ndarray, value: Any) -> np.ndarray:
        below, share = self.table.grid.between(finite_array(value))
        columns, above = self.columns_of(outputs), np.minimum(below + 1, len(self.inputs) - 1)
        chances = (1 - share) * self.probabilities[below, columns] + share * self.probabilities[above, columns]
        with np.errstate(divide="ignore"):
            logs = np.log(chances)
        return np.maximum(logs, -700.0).reshape(len(outputs), -1).sum(axis=1)

    def columns_of(self, published: Any) -> np.ndarray:
        """The column of each published value; refuses a value that this channel cannot have published."""
        array = finite_array(published, "published values")
        columns = np.clip(np.searchsorted(self.outputs, array), 0, len(self.outputs) - 1)
        if not np.array_equal(self.outputs[columns], array):
            raise DataError("A published value is not among the outputs of this channel: another channel made it.")
        return columns

    def _send(self, values: np.ndarray, bits: Bits) -> np.ndarray:
        flat = values.reshape(-1)
        result = np.empty(flat.size)
        for start in range(0, flat.size, _CHUNK):  # pieces that stay in the cache
            rows = self.table.grid.drawn_rows(flat[start : start + _CHUNK], bits)
            self.outputs.take(self.table.alias.draw(rows, bits), out=result[start : start + _CHUNK])
        return result.reshape(values.shape)

    def interpolated(self, values: Any) -> np.ndarray:
        """Published values anywhere between the outputs: their density is the channel's row, interpolated linearly.

        Each output is spread over its neighbours' gap by a triangular law that knows nothing but the output, so the
        promise is the channel's own. Estimates (`estimate`) read the outputs themselves, not these.

        >>> channel = TailoredNoise(Interval(0, 1), 2.0, random_state=1)
        >>> found = channel.interpolated(np.full(1000, 0.3))
        >>> bool(np.unique(found).size == 1000 and found.min() >= channel.outputs[0])
        True
        """
        bits = self._bits()
        drawn = self._send(finite_array(values), bits)
        columns, outputs = np.searchsorted(self.outputs, drawn), self.outputs
        below, above = (np.clip(columns + step, 0, len(outputs) - 1) for step in (-1, 1))
        uniform = (bits.words(2 * drawn.size) >> np.uint64(11)).astype(float).reshape(2, *drawn.shape) * 2.0**-53
        tent = 1 - np.sqrt(uniform[0])  # density 2(1 - t) on [0, 1]
        low, high = drawn - outputs[below], outputs[above] - drawn
        upwards = uniform[1] * (low + high) < high
        return drawn + np.where(upwards, high, -low) * tent

    def interpolated_density(self, value: float, places: Any) -> np.ndarray:
        """The density of `interpolated(value)` at each place."""
        row, outputs = np.exp(self.log_likelihood(self.outputs[:, None], value)), self.outputs
        sides = np.diff(outputs, prepend=outputs[0]) + np.diff(outputs, append=outputs[-1])
        found = np.interp(finite_array(places), outputs, 2 * row / sides, left=0.0, right=0.0)
        return np.asarray(found)

    def events(self) -> tuple[Event, ...]:
        """What the channel costs a record, and what its bins cost those from whom they were drawn."""
        drawn = self.binning.events if isinstance(self.binning, PrivateQuantiles) else ()
        return (self.event(), *drawn)

    def certificate(self, subject: str = "a value sent through a tailored channel", plan: Any = None) -> Certificate:
        """The certificate of one use of the channel; it holds the weights, so anybody can check it."""
        proofs = dict.fromkeys(event.proof_id() for event in self.events())
        return Certificate.issue(
            subject=subject,
            events=self.events(),
            proofs=list(proofs),
            plan=plan,
            notes=[self.note],
            publishable=self.publishable,
        )

    @property
    def note(self) -> str:
        """What everybody who uses the channel should know; it says nothing about any record."""
        return (
            f"Values outside [{self.domain.low:g}, {self.domain.high:g}] are treated as the nearest end. Each record "
            "publishes one value: sending the same value again costs the same again."
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """channel.json: bins, outputs, certificate with the weights. For `sfumato privatize`."""
        from sfumato.mechanisms.tailored.file import write_channel

        write_channel(self, path)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> TailoredNoise:
        """The channel in a file, its promise recomputed from the weights."""
        from sfumato.mechanisms.tailored.file import read_channel

        return read_channel(path)

    def estimate(self, published: Any, use: Any = "identity", **how: Any) -> Estimate:
        """What published values say about the people behind them; see channel_estimate.estimate.

        >>> channel = TailoredNoise(Interval(0, 1), 3.0, random_state=1)
        >>> found = channel.estimate(channel(np.linspace(0, 1, 20_000)), "identity")
        >>> bool(found.low <= 0.5 <= found.high)
        True
        """
        from sfumato.mechanisms.channel_estimate import estimate

        return estimate(self, published, use, **how)

    def plot(self, figure: Figure | None = None) -> Figure:
        """The probabilities, and the error of each input beside Laplace and Gaussian noise clipped to the domain."""
        from sfumato.mechanisms.tailored.plot import draw_channel

        return draw_channel(self, figure)


@lru_cache(maxsize=64)
def _event(weights: WeightsKey, at: float | None, adjacency: Adjacency | None) -> ChannelEvent:
    return ChannelEvent(weights.rows, at, adjacency=adjacency)  # type: ignore[arg-type]  # None is refused there


def _wish(given: TailoredNoise, outputs: int | tuple[float, ...] | None) -> DesignWish:
    if not isinstance(given.domain, Interval):
        raise PrivacyParameterError(
            "TailoredNoise needs a public Interval as its domain; for categories use RandomizedResponse. "
            "Nothing was drawn or spent."
        )
    epsilon = positive(given.epsilon, "epsilon", "With ε = 0 nothing can be published about the value. ")
    if given.bias not in ("soft", "none", "unbiased"):
        raise InputError("bias must be 'soft', 'none' or 'unbiased'.")
    if not isinstance(given.bins, int) or isinstance(given.bins, bool) or given.bins < 2:
        raise InputError("bins must be a whole number of at least 2.")
    if given.guard is not None:
        positive(given.guard, "guard")
    prior = given.prior if given.prior is None or callable(given.prior) else tuple(float(p) for p in given.prior)
    delta, uses, binning = probability(given.delta), as_uses(given.uses), checked_binning(given.binning)
    return DesignWish(given.domain, epsilon, delta, uses, prior, given.bins, outputs, given.bias, binning, given.guard)
