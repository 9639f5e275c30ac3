"""The questions one can ask in Python: one table, one row a question. Methods, their help and their text come from it.

In:   the language's vocabulary.
Out:  FORMS, by the name of the method; a form whose word the language does not have is not in it.
Not here: the methods (study/builder.py), what a question means (lang/, network/).

A template is filled with: atom (what the answer is called), goal (who counts), column or columns (what is asked about),
and the options by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from sfumato.core.domain import Categories, Interval
from sfumato.errors import InputError
from sfumato.lang.term import Compound, ListTerm, Number, show
from sfumato.lang.vocabulary import DECLARATIONS, PUBLICATION_FORMS
from sfumato.study.formula import Declared

__all__ = ["FORMS", "Asking", "Form", "Option"]

#: What the first argument is: nothing, one column of numbers, one of any kind, several of numbers, several of any kind.
Subject = Literal["nothing", "number", "any", "numbers", "columns"]
_BINS = 10


@dataclass(frozen=True)
class Asking:
    """What an option may look at: the columns that are asked about, and how a named column is found."""

    columns: tuple[Declared, ...]
    find: Callable[[str], Declared]


@dataclass(frozen=True)
class Option:
    """A further argument of a method: its name, what it stands for if it is left out, and how it is written."""

    name: str
    write: Callable[[Any, Asking], str]
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class Form:
    """One question. `declares` is the clause that states it and `shows` what is published of it."""

    method: str
    word: str  # functor/arity in the language
    help: str
    subject: Subject
    shows: str
    declares: str = ""
    options: tuple[Option, ...] = ()
    asks: str = ""  # beginning of the name that is made for it; the method's own if empty

    @property
    def grouped(self) -> bool:
        """Whether by= and where= choose who counts."""
        return bool(self.declares)


def _edges(given: Any, asking: Asking) -> str:
    column = asking.columns[-1]
    if isinstance(column.domain, Categories):
        if given is not None:
            raise InputError(f"{column.name} has categories: a count for each needs no edges")
        return ""
    if given is None and isinstance(column.domain, Interval):
        low, step = column.domain.low, column.domain.width / _BINS
        given = [*(float(f"{low + step * place:.12g}") for place in range(_BINS)), column.domain.high]
    edges = [float(edge) for edge in given]
    if len(edges) < 2 or any(first >= second for first, second in pairwise(edges)):
        raise InputError(f"the edges of {column.name} must be at least two rising numbers")
    return ", " + show(ListTerm(tuple(Number(int(edge) if edge.is_integer() else edge) for edge in edges)))


def _column(given: Any, asking: Asking) -> str:
    return show(asking.find(given).variable)


def _columns(given: Any, asking: Asking) -> str:
    names = [given] if isinstance(given, str) else list(given)
    if not names:
        raise InputError("at least one column is needed")
    return ", ".join(show(asking.find(name).variable) for name in names)


def _words(given: Any, asking: Asking) -> str:
    return ", ".join(show(Compound(word)) for word in ([given] if isinstance(given, str) else given))


_FEATURES = Option("features", _columns, required=True)

_ALL: Sequence[Form] = (
    Form("count", "count/2", "How many people (rows, where a person has several) there are.", "nothing", "{atom}",
         "count({atom}, {goal})"),
    Form("sum", "sum/3", "The sum of a column.", "number", "{atom}", "sum({atom}, {column}, {goal})"),
    Form("mean", "mean/3", "The mean of a column.", "number", "{atom}", "mean({atom}, {column}, {goal})"),
    Form("moments", "moment2/3", "All sums of products of two of the columns.", "numbers", "{atom}",
         "moment2({atom}, [{columns}], {goal})"),
    Form("histogram", "histogram/3", "A count for each category, or between public edges; of several columns a table.",
         "columns", "{atom}", "histogram({atom}, {column}, {goal}{edges})", (Option("edges", _edges),)),
    Form("classifier", "classifier/2", "A private model that predicts a category from other columns.", "any",
         "classifier({column}, [{features}])", options=(_FEATURES,)),
    Form("regression", "regression/2", "A private linear model that predicts a number from other columns.", "number",
         "regression({column}, [{features}])", options=(_FEATURES,)),
    Form("outliers", "outliers/1", "A private description of what is usual, to tell what is not.", "numbers",
         "outliers([{columns}])"),
    Form("rows", "table/1", "Every person's row with noise in each cell, without identifiers.", "columns",
         "table([{columns}])"),
    Form("channel", "channel/2", "Every person's value through one channel designed for these uses.", "number",
         "channel({column}, [{uses}])", options=(Option("uses", _words, default=("identity",)),)),
)  # fmt: skip

#: By the name of the method.
FORMS: dict[str, Form] = {
    form.method: form for form in _ALL if form.word in DECLARATIONS or form.word in PUBLICATION_FORMS
}
