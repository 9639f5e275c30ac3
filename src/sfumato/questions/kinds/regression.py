"""A private model that predicts a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from sfumato.questions.kind import Argument, Kind, Subject
from sfumato.questions.ways import Ways

__all__ = ["RegressionKind"]


@final
class RegressionKind(Kind):
    """regression(target(P), [feature(P), …])."""

    functor: ClassVar[str] = "regression"
    usages: ClassVar[Mapping[str, tuple[Argument, ...]]] = {
        "regression(target(P), [feature(P)])": ("target", "columns"),
    }
    ways: ClassVar[Ways] = Ways(
        functor, {"sufficient": "noisy sufficient statistics"}, ("sfumato.run.publish_learning",), summed=True
    )
    is_model: ClassVar[bool] = True
    method: ClassVar[str] = "regression"
    help: ClassVar[str] = "A private linear model that predicts a number from other columns."
    subject: ClassVar[Subject] = "number"
