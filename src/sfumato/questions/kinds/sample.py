"""One random answer of each individual, in place of what it is expected to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from sfumato.questions.kind import Argument, Kind
from sfumato.questions.ways import Ways

__all__ = ["SampleKind"]


@final
class SampleKind(Kind):
    """sample(rv(P)): it is drawn as the variable itself is, and needs no publisher."""

    functor: ClassVar[str] = "sample"
    usages: ClassVar[Mapping[str, tuple[Argument, ...]]] = {"sample(rv(P))": ("variable",)}
    ways: ClassVar[Ways] = Ways(functor, {})
    row_by_row: ClassVar[bool] = True
    is_answer: ClassVar[bool] = True
