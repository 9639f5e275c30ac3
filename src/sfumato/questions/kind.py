"""What can be published of many individuals beside answers to questions: tables, invented rows, models, channels.

In:   nothing.
Out:  Kind: how it is written, by which ways it is made, and all in which it differs from the others.
Not here: reading a study's text (lang/), the columns behind it (plan/wanted.py), who makes it (run/publish_*.py).

A kind is one final class in one file of questions/kinds/; everything else asks the class. Nobody else asks for a kind's
name: tests/test_architecture.py fails on `kind == "table"`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import ClassVar, Literal

from sfumato.core.domain import Domain
from sfumato.questions.ways import Ways

__all__ = ["Argument", "Kind", "Subject"]

#: variable: one variable. columns: a list of them. target: what is predicted from the columns. label: for(…) says which
#: of the columns, and may name a model. model: the same, and must name one. uses: a list of what it is meant for.
Argument = Literal["variable", "columns", "target", "label", "model", "uses"]
#: What the first argument of its method in Python is: one column of numbers or of any kind, or several.
Subject = Literal["number", "any", "numbers", "columns"]
_OF_VARIABLES = ("variable", "columns", "target")


class Kind(ABC):
    """A kind of publication. Abstract; its own values are those of whatever has no kind: nothing is special."""

    functor: ClassVar[str] = ""
    #: How it is written, and what stands in its places.
    usages: ClassVar[tuple[tuple[str, tuple[Argument, ...]], ...]] = ()
    ways: ClassVar[Ways]
    #: The models that for(…) may name.
    models: ClassVar[tuple[str, ...]] = ()
    #: Whether it shows a row for each individual; all others are made from everybody's row and show none.
    row_by_row: ClassVar[bool] = False
    #: Whether readers see whose each row is.
    identified: ClassVar[bool] = False
    #: Whether one individual may have several rows in it.
    several_rows: ClassVar[bool] = False
    #: Whether whole numbers are read as such.
    keeps_whole: ClassVar[bool] = False
    #: Whether its readers bring cells of their own, or look for the study's columns.
    meets_cells: ClassVar[bool] = True
    #: Whether it is a model, whose file predicts.
    is_model: ClassVar[bool] = False
    #: Whether it says yes or no, so that it can treat groups alike.
    may_be_fair: ClassVar[bool] = False
    #: Whether it is its variable itself, of which a random answer is asked for.
    is_answer: ClassVar[bool] = False
    #: Its method in Python and what it publishes, as a sentence; empty where there is none.
    method: ClassVar[str] = ""
    help: ClassVar[str] = ""
    subject: ClassVar[Subject] = "columns"
    #: The method to ask where a column has categories and this one wants numbers.
    of_categories: ClassVar[str] = "histogram"

    @classmethod
    def texts(cls) -> dict[str, str]:
        """functor/arity and how it is written."""
        return {f"{cls.functor}/{len(places)}": text for text, places in cls.usages}

    @classmethod
    def written(cls) -> str:
        """Every way to write it."""
        return " or ".join(text for text, _ in cls.usages)

    @classmethod
    def places(cls, arity: int) -> tuple[Argument, ...]:
        """What stands where when there are so many arguments; nothing where it is not written so."""
        return next((places for _, places in cls.usages if len(places) == arity), ())

    @classmethod
    def holds_variables(cls, arity: int) -> tuple[bool, ...]:
        """Which of so many arguments hold variables of their own."""
        return tuple(place in _OF_VARIABLES for place in cls.places(arity))

    @classmethod
    def verdict(cls, domains: Mapping[str, Domain], errors: Mapping[str, float], note: str) -> str:
        """What is to be said of its use before anything is spent, by the standard errors of its columns; or nothing."""
        return ""
