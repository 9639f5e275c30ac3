"""A private model that predicts a number."""

from __future__ import annotations

from typing import final

from sfumato.questions.kind import Kind
from sfumato.questions.ways import Ways

__all__ = ["RegressionKind"]


@final
class RegressionKind(Kind):
    """regression(target(P), [feature(P), …])."""

    functor = "regression"
    usages = (("regression(target(P), [feature(P)])", ("target", "columns")),)
    ways = Ways(functor, {"sufficient": "noisy sufficient statistics"}, ("sfumato.run.publish_learning",), summed=True)
    is_model = True
    method = "regression"
    help = "A private linear model that predicts a number from other columns."
    subject = "number"
    of_categories = "classifier"
