"""Invented rows, made from noisy counts of columns and pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from sfumato.core.domain import Domain
from sfumato.questions.kind import Kind
from sfumato.questions.ways import Ways

__all__ = ["SyntheticKind"]


@final
class SyntheticKind(Kind):
    """synthetic([rv(P), …]): no row stands for anybody, and each is of the type of its columns."""

    functor = "synthetic"
    usages = (
        ("synthetic([rv(P), rv(P)])", ("columns",)),
        ("synthetic([rv(P), label(P)], for(label(P)))", ("columns", "label")),
    )
    ways = Ways(
        functor,
        {
            "pairs": "every column beside the label",
            "tree": "the same and a tree of pairs",
            "rounds": "the same and the pairs that are still missed",
        },
        ("sfumato.run.publish_synthetic",),
        summed=True,
    )
    models = ("svm", "classifier", "regression")
    several_rows = True
    keeps_whole = True
    method = "synthetic"
    help = "Invented rows that keep means, tables and the link to a label."

    @classmethod
    def verdict(cls, domains: Mapping[str, Domain], errors: Mapping[str, float], note: str) -> str:
        return note
