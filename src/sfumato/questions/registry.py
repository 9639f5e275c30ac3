"""Every question there is, found by looking: a file in this folder with a final class is all it takes.

In:   nothing.
Out:  QUESTIONS by functor; `question_from_dict`.
Not here: what they are (their own files).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from sfumato.errors import InputError
from sfumato.questions.question import Question

__all__ = ["QUESTIONS", "question_from_dict"]


def _found() -> dict[str, type[Question]]:
    found: dict[str, type[Question]] = {}
    package = import_module("sfumato.questions")
    for module in iter_modules(package.__path__):
        if module.name == "registry":
            continue
        for one in vars(import_module(f"sfumato.questions.{module.name}")).values():
            if inspect.isclass(one) and issubclass(one, Question) and not inspect.isabstract(one):
                found[one.form.functor] = one
    return dict(sorted(found.items()))


_ALL: dict[str, type[Question]] = _found()
#: What a study can write; others stand in for these where it says so elsewhere.
QUESTIONS: dict[str, type[Question]] = {name: one for name, one in _ALL.items() if one.form.usages}


def question_from_dict(record: Mapping[str, Any]) -> Question:
    """The question that `to_dict` wrote down."""
    kind = _ALL.get(record["question"])
    if kind is None:
        raise InputError(f"There is no question called {record['question']!r} in this sfumato.")
    return kind.from_dict(record)
