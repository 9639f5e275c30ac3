"""Every individual's value through one channel."""

from __future__ import annotations

from typing import final

from sfumato.questions.kind import Kind
from sfumato.questions.ways import Ways

__all__ = ["ChannelKind"]


@final
class ChannelKind(Kind):
    """channel(rv(P), [use, …]): readers see whose each value is."""

    functor = "channel"
    usages = (("channel(rv(P), [use, use])", ("variable", "uses")),)
    ways = Ways(functor, {"tailored": "a channel designed for its uses"}, ("sfumato.run.publish_channel",))
    row_by_row = True
    identified = True
    meets_cells = False
    method = "channel"
    help = "Every person's value through one channel designed for these uses."
    subject = "number"
