"""Every individual's value through one channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from sfumato.questions.kind import Argument, Kind, Subject
from sfumato.questions.ways import Ways

__all__ = ["ChannelKind"]


@final
class ChannelKind(Kind):
    """channel(rv(P), [use, …]): readers see whose each value is."""

    functor: ClassVar[str] = "channel"
    usages: ClassVar[Mapping[str, tuple[Argument, ...]]] = {"channel(rv(P), [use, use])": ("variable", "uses")}
    ways: ClassVar[Ways] = Ways(
        functor, {"tailored": "a channel designed for its uses"}, ("sfumato.run.publish_channel",)
    )
    row_by_row: ClassVar[bool] = True
    identified: ClassVar[bool] = True
    meets_cells: ClassVar[bool] = False
    method: ClassVar[str] = "channel"
    help: ClassVar[str] = "Every person's value through one channel designed for these uses."
    subject: ClassVar[Subject] = "number"
