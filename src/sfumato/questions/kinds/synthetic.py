"""Invented rows, made from noisy counts of columns and pairs of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from sfumato.core.domain import Domain
from sfumato.questions.kind import Argument, Kind
from sfumato.questions.ways import Ways

__all__ = ["SyntheticKind"]


@final
class SyntheticKind(Kind):
    """synthetic([rv(P), …]): no row stands for anybody, and each is of the type of its columns."""

    functor: ClassVar[str] = "synthetic"
    usages: ClassVar[Mapping[str, tuple[Argument, ...]]] = {
        "synthetic([rv(P), rv(P)])": ("columns",),
        "synthetic([rv(P), label(P)], for(label(P)))": ("columns", "label"),
    }
    ways: ClassVar[Ways] = Ways(
        functor,
        {
            "pairs": "every column beside the label",
            "tree": "the same and a tree of pairs",
            "rounds": "the same and the pairs that are still missed",
        },
        ("sfumato.run.publish_synthetic",),
        summed=True,
    )
    models: ClassVar[tuple[str, ...]] = ("svm", "classifier", "regression")
    several_rows: ClassVar[bool] = True
    keeps_whole: ClassVar[bool] = True
    method: ClassVar[str] = "synthetic"
    help: ClassVar[str] = "Invented rows that keep means, tables and the link to a label."

    @classmethod
    def verdict(cls, domains: Mapping[str, Domain], errors: Mapping[str, float], note: str) -> str:
        return note
