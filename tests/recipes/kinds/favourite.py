"""A kind of publication that is not in the wheel: one file, found by looking. What most people have, drawn itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from sfumato.questions.kind import Argument, Kind, Subject
from sfumato.questions.ways import Ways

__all__ = ["FavouriteKind"]


@final
class FavouriteKind(Kind):
    """favourite(rv(P)): one of the listed values, the likelier the more people have it."""

    functor: ClassVar[str] = "favourite"
    usages: ClassVar[Mapping[str, tuple[Argument, ...]]] = {"favourite(rv(P))": ("variable",)}
    ways: ClassVar[Ways] = Ways(
        functor, {"flips": "a value drawn by permute-and-flip"}, ("tests.recipes.publish_favourite",)
    )
    method: ClassVar[str] = "favourite"
    help: ClassVar[str] = "The value that most people have."
    subject: ClassVar[Subject] = "any"
