"""Every question and every kind of publication, found by looking: a file with a final class is all it takes.

In:   nothing.
Out:  QUESTIONS and KINDS by functor; the WAYS of all of them by name; `question_from_dict`.
Not here: what they are (their own files, here and in kinds/).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.core.discovery import found_in
from sfumato.errors import InputError
from sfumato.questions.kind import Kind
from sfumato.questions.question import Question
from sfumato.questions.ways import VARIABLE, Ways

__all__ = ["KINDS", "QUESTIONS", "WAYS", "kind_called", "question_from_dict"]

_ALL: dict[str, type[Question]] = dict(
    sorted({one.form.functor: one for one in found_in("sfumato.questions", Question)}.items())
)
#: What a study can write; others stand in for these where it says so elsewhere.
QUESTIONS: dict[str, type[Question]] = {name: one for name, one in _ALL.items() if one.form.usages}
#: What publish/3 may name beside a variable and a question.
KINDS: dict[str, type[Kind]] = dict(
    sorted({one.functor: one for one in found_in("sfumato.questions.kinds", Kind)}.items())
)
#: By what is published: one value per individual, a sum, an answer that is drawn itself, a kind.
WAYS: dict[str, Ways] = {
    one.name: one
    for one in (VARIABLE, *(one.form.ways for one in _ALL.values()), *(one.ways for one in KINDS.values()))
}


def kind_called(name: str) -> type[Kind]:
    """The kind of that name; of an answer that is drawn itself, one that has nothing special."""
    return KINDS.get(name, Kind)


def question_from_dict(record: Mapping[str, Any]) -> Question:
    """The question that `to_dict` wrote down."""
    kind = _ALL.get(record["question"])
    if kind is None:
        raise InputError(f"There is no question called {record['question']!r} in this sfumato.")
    return kind.from_dict(record)
