"""A private description of what is usual."""

from __future__ import annotations

from typing import final

from sfumato.questions.kind import Kind
from sfumato.questions.ways import Ways

__all__ = ["OutliersKind"]


@final
class OutliersKind(Kind):
    """outliers([feature(P), …])."""

    functor = "outliers"
    usages = (("outliers([feature(P)])", ("columns",)),)
    ways = Ways(functor, {"svdd": "support vector data description"}, ("sfumato.run.publish_learning",))
    is_model = True
    method = "outliers"
    help = "A private description of what is usual, to tell what is not."
    subject = "numbers"
