"""A private model that predicts a category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from sfumato.questions.kind import Argument, Kind, Subject
from sfumato.questions.ways import Ways

__all__ = ["ClassifierKind"]


@final
class ClassifierKind(Kind):
    """classifier(label(P), [feature(P), …])."""

    functor: ClassVar[str] = "classifier"
    usages: ClassVar[Mapping[str, tuple[Argument, ...]]] = {
        "classifier(label(P), [feature(P)])": ("target", "columns"),
    }
    ways: ClassVar[Ways] = Ways(
        functor,
        {
            "objective": "objective perturbation",
            "svm": "a support vector machine",
            "kernel": "kernel features",
            "equilibrium": "support functions of the classes",
            "points": "labelled equilibrium points alone",
            "logistic_steps": "over centres, logistic regression by noisy gradients",
            "hinge_steps": "over centres, a support vector machine by noisy gradients",
        },
        ("sfumato.run.publish_learning", "sfumato.run.publish_steps"),
        summed=True,
    )
    is_model: ClassVar[bool] = True
    may_be_fair: ClassVar[bool] = True
    method: ClassVar[str] = "classifier"
    help: ClassVar[str] = "A private model that predicts a category from other columns."
    subject: ClassVar[Subject] = "any"
