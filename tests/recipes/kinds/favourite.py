"""A kind of publication that is not in the wheel: one file, found by looking. What most people have, drawn itself."""

from __future__ import annotations

from typing import final

from sfumato.questions.kind import Kind
from sfumato.questions.ways import Ways

__all__ = ["FavouriteKind"]


@final
class FavouriteKind(Kind):
    """favourite(rv(P)): one of the listed values, the likelier the more people have it."""

    functor = "favourite"
    usages = (("favourite(rv(P))", ("variable",)),)
    ways = Ways(functor, {"flips": "a value drawn by permute-and-flip"}, ("tests.recipes.publish_favourite",))
    method = "favourite"
    help = "The value that most people have."
    subject = "any"
