"""One random answer of each individual, in place of what it is expected to be."""

from __future__ import annotations

from typing import final

from sfumato.questions.kind import Kind
from sfumato.questions.ways import Ways

__all__ = ["SampleKind"]


@final
class SampleKind(Kind):
    """sample(rv(P)): it is drawn as the variable itself is, and needs no publisher."""

    functor = "sample"
    usages = (("sample(rv(P))", ("variable",)),)
    ways = Ways(functor, {})
    row_by_row = True
    is_answer = True
