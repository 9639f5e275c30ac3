"""The strategy for channel(variable, [use, …]): every individual's value through the best channel for its uses.

In:   a variable with a public range, uses, ε.
Out:  one published value per individual, channel.json for whoever estimates from them.
Not here: the design (mechanisms/tailored/noise.py).
Proof: docs/proofs/tailored_noise.md

The prediction is the channel's own: the mean squared error of the value taken at face value, for individuals spread
evenly over the range. It is exact for such individuals. Its loss is that error over the squared width and over n: like
a table it is read for means. δ is left alone: the channel keeps a pure ε.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, final

import pyarrow as pa

from sfumato.core import Adjacency, Guarantee, Interval, Schema
from sfumato.mechanisms.tailored.noise import TailoredNoise
from sfumato.plan.act import Act
from sfumato.plan.plan import Seen
from sfumato.plan.strategy import Prediction
from sfumato.plan.wanted import Wanted
from sfumato.questions.kinds.channel import ChannelKind
from sfumato.run.publish_base import Performed, Publisher, point_of

__all__ = ["TailoredChannel"]

_NORMAL_95 = 1.959963984540054


@lru_cache(maxsize=64)
def _designed(low: float, high: float, epsilon: float, uses: tuple[str, ...], adjacency: Adjacency) -> TailoredNoise:
    return TailoredNoise(Interval(low, high), epsilon, uses=uses, adjacency=adjacency)


@final
class TailoredChannel(Publisher):
    """TailoredNoise on the range of the variable."""

    name: ClassVar[str] = "tailored"
    kind: ClassVar[str] = ChannelKind.functor
    words: ClassVar[str] = "{columns} of each individual, replaced at random by a value of a public list"

    def accepts(self, wanted: Wanted, guarantee: Guarantee) -> str | None:
        if not isinstance(wanted.domains[0], Interval):
            return f"{wanted.columns[0]} is a category: publish table([{wanted.columns[0]}])"
        return None

    def predict(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Prediction:
        channel = self._channel(wanted, guarantee)
        domain, error = channel.domain, channel.predicted_error("identity")
        decoded = math.sqrt(channel.decoded_error("identity"))
        note = f"Taken at face value, for values spread over the range; decoded with channel.json ±{decoded:.3g}."
        seen = Seen(wanted.columns[0], error, min(domain.width, _NORMAL_95 * math.sqrt(error)), 1, note)
        return Prediction(error / domain.width**2 / size, (seen,), 0.2 + size / 1e6, 8 * size)

    def settle(self, wanted: Wanted, guarantee: Guarantee, size: float) -> Act:
        parameters = {"epsilon": point_of(guarantee)[0], "uses": list(wanted.uses)}
        return self.act(self, wanted, guarantee, parameters)

    def _channel(self, wanted: Wanted, guarantee: Guarantee) -> TailoredNoise:
        domain = wanted.domains[0]
        assert isinstance(domain, Interval)
        return _designed(domain.low, domain.high, point_of(guarantee)[0], wanted.uses, wanted.request.adjacency)

    def perform(self, act: Act, table: pa.Table, identifiers: Sequence[Any], random_state: int | None) -> Performed:
        (column,) = act.parameters["columns"]
        domain = Schema.from_toml(act.parameters["schema"]).columns[column]
        assert isinstance(domain, Interval)
        channel = TailoredNoise(
            domain,
            act.parameters["epsilon"],
            uses=tuple(act.parameters["uses"]),
            adjacency=act.guarantee.adjacency,
            random_state=random_state,
        )
        published = pa.table({"id": pa.array(list(identifiers)), column: channel(table[column].to_numpy())})
        return Performed(
            published.sort_by("id"),
            {"channel.json": _text(channel)},
            channel.events(),
            tuple(dict.fromkeys(event.proof_id() for event in channel.events())),
            (channel.note,),
        )


def _text(channel: TailoredNoise) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "channel.json"
        channel.write(path)
        return path.read_text(encoding="utf-8")
