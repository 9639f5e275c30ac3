"""A private model that predicts a category."""

from __future__ import annotations

from typing import final

from sfumato.questions.kind import Kind
from sfumato.questions.ways import Ways

__all__ = ["ClassifierKind"]


@final
class ClassifierKind(Kind):
    """classifier(label(P), [feature(P), …])."""

    functor = "classifier"
    usages = (("classifier(label(P), [feature(P)])", ("target", "columns")),)
    ways = Ways(
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
    is_model = True
    may_be_fair = True
    method = "classifier"
    help = "A private model that predicts a category from other columns."
    subject = "any"
