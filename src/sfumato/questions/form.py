"""How a question is written: its functor, what stands in its places, a line of help.

In:   nothing.
Out:  Form: the vocabulary of the language, the messages, the documentation and the Python builder are read off it.
Not here: parsing (lang/), what the places become (network/gather.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sfumato.questions.ways import AGGREGATE, Ways

__all__ = ["Form", "Place"]

#: name: what it is called. value, values: variables that are added up. cells: variables that are sorted into cells.
#: goal: whose rows count. edges: cut points of one variable. groups: by([…]). numbers, whole: further arguments.
Place = Literal["name", "value", "values", "cells", "goal", "edges", "groups", "numbers", "whole"]

_TEXTS: dict[str, str] = {
    "name": "Atom",
    "value": "rv(P)",
    "values": "[rv(P), rv(P)]",
    "cells": "rv(P)",
    "goal": "Goal",
    "edges": "[edge, edge]",
    "groups": "by([rv(P)])",
    "numbers": "[number, number]",
    "whole": "K",
}
assert set(_TEXTS) == set(get_args(Place))


@dataclass(frozen=True, slots=True)
class Form:
    """One functor with the ways to write it; `help` says what is published, `method` is its name in Python.

    >>> form = Form("count", (("name", "goal"),), "how many individuals", "count")
    >>> form.texts
    {'count/2': 'count(Atom, Goal)'}
    """

    functor: str
    usages: tuple[tuple[Place, ...], ...]
    help: str
    method: str
    ways: Ways = AGGREGATE

    @property
    def texts(self) -> dict[str, str]:
        """functor/arity and how it is written."""
        return {
            f"{self.functor}/{len(usage)}": f"{self.functor}({', '.join(_TEXTS[place] for place in usage)})"
            for usage in self.usages
        }

    def places(self, arity: int) -> tuple[Place, ...]:
        """What stands where when there are so many arguments."""
        return next(usage for usage in self.usages if len(usage) == arity)
