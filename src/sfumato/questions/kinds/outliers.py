"""A private description of what is usual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from sfumato.questions.kind import Argument, Kind, Subject
from sfumato.questions.ways import Ways

__all__ = ["OutliersKind"]


@final
class OutliersKind(Kind):
    """outliers([feature(P), …])."""

    functor: ClassVar[str] = "outliers"
    usages: ClassVar[Mapping[str, tuple[Argument, ...]]] = {"outliers([feature(P)])": ("columns",)}
    ways: ClassVar[Ways] = Ways(functor, {"svdd": "support vector data description"}, ("sfumato.run.publish_learning",))
    is_model: ClassVar[bool] = True
    method: ClassVar[str] = "outliers"
    help: ClassVar[str] = "A private description of what is usual, to tell what is not."
    subject: ClassVar[Subject] = "numbers"
