"""Every individual's row with noise in each cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from sfumato.core.domain import Domain, Interval
from sfumato.questions.kind import Kind
from sfumato.questions.ways import NOISE, Ways

__all__ = ["TableKind"]


@final
class TableKind(Kind):
    """table([rv(P), …]): who is in it is not shown, and the order of its rows says nothing."""

    functor = "table"
    usages = (
        ("table([rv(P), rv(P)])", ("columns",)),
        ("table([rv(P), label(P)], for(svm(label(P))))", ("columns", "model")),
    )
    ways = Ways(
        functor,
        {
            "gaussian": NOISE["gaussian"],
            "laplace": NOISE["laplace"],
            "obfuscation": "reports of every individual that promise nothing together",
        },
        ("sfumato.run.publish_tables",),
    )
    models = ("svm",)
    row_by_row = True
    method = "rows"
    help = "Every person's row with noise in each cell, without identifiers."

    @classmethod
    def verdict(cls, domains: Mapping[str, Domain], errors: Mapping[str, float], note: str) -> str:
        ratios = {
            name: error / domain.width
            for name, error in errors.items()
            if isinstance(domain := domains.get(name), Interval)
        }
        listed = ", ".join(f"{name} {ratio:.2g}" for name, ratio in ratios.items() if ratio > 1)
        if not listed:
            return ""
        return (
            "Of one row the noise is wider than all its column can hold, so that a single cell says nothing (times the "
            f"column's width: {listed}). Publish statistics or synthetic rows, synthetic([…]), instead."
        )
