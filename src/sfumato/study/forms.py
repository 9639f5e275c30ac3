"""The questions one can ask in Python: methods, their arguments, their help and their text, read off the language.

In:   the forms of questions/ (one a question) and its kinds of publication.
Out:  FORMS, by the name of the method. What is added to questions/ appears here by itself.
Not here: the methods (study/builder.py), what a question means (questions/).
"""

from __future__ import annotations

import inspect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, final

from sfumato.core.calendar import number_of_day, number_of_time
from sfumato.core.domain import Categories, Interval
from sfumato.core.text import AnyText
from sfumato.errors import InputError
from sfumato.lang.term import Compound, ListTerm, Number, show
from sfumato.questions.form import Form as Written
from sfumato.questions.form import Place
from sfumato.questions.kind import Argument, Kind
from sfumato.questions.question import Question
from sfumato.questions.registry import KINDS, QUESTIONS
from sfumato.study.caller import in_own_words
from sfumato.study.formula import DeclaredColumn, moment_of

__all__ = ["FORMS", "ActMethod", "Asking", "BuilderMethod", "Option", "Questioned", "builder_method", "signature_of"]

#: What the first argument is: nothing, one column of numbers, one of any kind, several of numbers, several of any kind.
Subject = Literal["nothing", "number", "any", "numbers", "columns"]
_BINS = 10
_AT_LEAST = {1: "one number, rising where there are more", 2: "two rising numbers"}


@dataclass(frozen=True)
class Asking:
    """One question as it is being written: its columns, groups and options, and how a named column is found."""

    atom: str
    goal: str
    columns: tuple[DeclaredColumn, ...]
    groups: tuple[DeclaredColumn, ...]
    options: Mapping[str, Any]
    find: Callable[[str], DeclaredColumn]
    #: The cut points of groups that are classes of numbers.
    cuts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Option:
    """A further argument of a method and what it stands for if it is left out."""

    name: str
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class BuilderMethod(ABC):
    """A method: its help, what its first argument is, its further arguments. Abstract."""

    method: str
    help: str
    subject: Subject
    options: tuple[Option, ...] = ()

    @property
    def of_categories(self) -> str:
        """The method to ask where a column has categories and this one wants numbers."""
        return "histogram"

    @property
    @abstractmethod
    def chosen(self) -> bool:
        """Whether where= chooses who counts."""

    @property
    @abstractmethod
    def grouped(self) -> bool:
        """Whether by= may ask for each group."""

    @property
    @abstractmethod
    def by_itself(self) -> bool:
        """Whether the language takes groups as one question; otherwise there is one for each group."""

    @abstractmethod
    def clause(self, asking: Asking) -> str:
        """What states the question; empty where publishing it is all there is to say."""

    @abstractmethod
    def shown(self, asking: Asking) -> str:
        """What is published."""


# ── questions about many people ──────────────────────────────────────────────────────────────────────────────────────

#: Where several numbers come of one call, Python says so.
_PLURAL = {"quantile": "quantiles", "moment2": "moments"}
_SUBJECTS: dict[Place, Subject] = {"value": "number", "values": "numbers", "cells": "columns"}
_OPTIONS: dict[Place, Option] = {
    "edges": Option("edges"),
    "numbers": Option("numbers", required=True),
    "whole": Option("k", default=2),
}


def _subject_of(places: Sequence[str]) -> Subject:
    found: list[Subject] = [_SUBJECTS[place] for place in places if place in _SUBJECTS]
    return found[0] if found else "nothing"


@final
@dataclass(frozen=True)
class Questioned(BuilderMethod):
    """A question of questions/, written as its own form says.

    `crossed`: groups are further columns of its table. `alone`: the language knows no groups of it.
    """

    written: Written | None = None
    crossed: bool = False
    alone: bool = False

    @classmethod
    def of(cls, kind: type[Question]) -> Questioned:
        written = kind.form
        places = list(itertools.chain.from_iterable(written.usages))
        subject = _subject_of(places)
        wanted = [*places, "edges"] if subject == "columns" else places
        options = dict.fromkeys(_OPTIONS[place] for place in wanted if place in _OPTIONS)
        help_text = f"{written.help[:1].upper()}{written.help[1:]}."
        table = subject == "columns" and "groups" not in places
        alone = table and (kind.only_drawn or "whole" in places)
        return cls(method_of(written), help_text, subject, tuple(options), written, table and not alone, alone)

    @property
    def chosen(self) -> bool:
        return True

    @property
    def grouped(self) -> bool:
        return not self.alone

    @property
    def _usages(self) -> tuple[tuple[Place, ...], ...]:
        assert self.written is not None  # made by `of`
        return self.written.usages

    @property
    def by_itself(self) -> bool:
        return self.crossed or any("groups" in usage for usage in self._usages)

    def clause(self, asking: Asking) -> str:
        if self.crossed:
            options = {**asking.options, "edges": _edges_beside(asking)}
            asking = replace(asking, columns=(*asking.groups, *asking.columns), groups=(), options=options)
        edges = _all_edges(asking)
        one_axis = len(asking.columns) == 1 and bool(edges) and any("edges" in usage for usage in self._usages)
        wanted = {"groups": bool(asking.groups), "edges": one_axis}
        usage = next(one for one in self._usages if all((place in one) == wish for place, wish in wanted.items()))
        texts = [self._text(place, asking, edges, one_axis) for place in usage]
        assert self.written is not None  # made by `of`
        return f"{self.written.functor}({', '.join(texts)})"

    def _text(self, place: Place, asking: Asking, edges: Mapping[str, str], one_axis: bool) -> str:
        match place:
            case "name":
                return asking.atom
            case "goal":
                return asking.goal
            case "value":
                return show(asking.columns[0].variable)
            case "values":
                return _variables(asking.columns)
            case "cells":
                return _cells(asking.columns, {} if one_axis else edges)
            case "edges":
                return edges[asking.columns[0].name]
            case "groups":
                return _groups(asking.groups, asking.cuts)
            case "numbers":
                return _numbers(asking.options["numbers"], "give one list of numbers, the smallest first")
        return show(Number(_whole(asking.options[_OPTIONS[place].name])))

    def shown(self, asking: Asking) -> str:
        return asking.atom


def method_of(written: Written) -> str:
    """The name of a question's method."""
    return _PLURAL.get(written.method, written.method)


def _cells(columns: Sequence[DeclaredColumn], edges: Mapping[str, str]) -> str:
    named = [f"{show(one.variable)}: {edges[one.name]}" if one.name in edges else show(one.variable) for one in columns]
    return named[0] if len(named) == 1 and not edges else f"[{', '.join(named)}]"


def _all_edges(asking: Asking) -> dict[str, str]:
    """The edges of every column of numbers that is sorted into cells; ten equal parts where none are given."""
    if "edges" not in asking.options:
        return {}
    numbers = [column for column in asking.columns if not _is_listed(column)]
    given = _edges_by_name(asking.options["edges"], numbers)
    known = {column.name for column in asking.columns}
    for name in given:
        if name not in known or _is_listed(asking.find(name)):
            raise InputError(f"{name} has no numbers here, and needs no edges")
    return {column.name: _edges(column, given.get(column.name)) for column in numbers}


def _edges_by_name(given: Any, numbers: Sequence[DeclaredColumn]) -> Mapping[str, Any]:
    if given is None or isinstance(given, Mapping):
        return given or {}
    if len(numbers) != 1:
        what = "no column of numbers" if not numbers else f"several ({', '.join(one.name for one in numbers)})"
        raise InputError(f"edges= are those of one column of numbers, and there is {what}; edges={{'name': […]}}")
    return {numbers[0].name: given}


def _edges_beside(asking: Asking) -> Any:
    """The edges of a table and the cut points of its groups, which become columns of it."""
    if not asking.cuts:
        return asking.options["edges"]
    numbers = [column for column in asking.columns if not _is_listed(column)]
    return {**_edges_by_name(asking.options["edges"], numbers), **asking.cuts}


def _groups(columns: Sequence[DeclaredColumn], cuts: Mapping[str, Any]) -> str:
    return f"by([{', '.join(_group(column, cuts) for column in columns)}])"


def _group(column: DeclaredColumn, cuts: Mapping[str, Any]) -> str:
    classes = f": {_edges(column, cuts[column.name], least=1)}" if column.name in cuts else ""
    return f"{show(column.variable)}{classes}"


def _variables(columns: Sequence[DeclaredColumn]) -> str:
    return f"[{', '.join(show(column.variable) for column in columns)}]"


def _is_listed(column: DeclaredColumn) -> bool:
    """Whether its cells are values and no classes of numbers."""
    return isinstance(column.domain, Categories | AnyText)


def _edges(column: DeclaredColumn, given: Any, least: int = 2) -> str:
    if given is None:
        given = _equal_parts(column)
    edges = [_edge(column, edge) for edge in ([given] if isinstance(given, str) else given)]
    if len(edges) < least or any(first >= second for first, second in pairwise(edges)):
        raise InputError(f"the edges of {column.name} must be at least {_AT_LEAST[least]}")
    unit = column.domain.calendar if isinstance(column.domain, Interval) else ""
    return show(ListTerm(tuple(moment_of(edge, unit) for edge in edges)))


def _equal_parts(column: DeclaredColumn) -> list[float]:
    if not isinstance(column.domain, Interval):
        raise InputError(f"{column.name} has no declared range: give its edges, edges=[…]")
    low, step = column.domain.low, column.domain.width / _BINS
    return [*(float(f"{low + step * place:.12g}") for place in range(_BINS)), column.domain.high]


def _edge(column: DeclaredColumn, edge: Any) -> float:
    unit = column.domain.calendar if isinstance(column.domain, Interval) else ""
    if unit and not isinstance(edge, int | float):
        number = number_of_day(edge) if unit == "date" else number_of_time(edge)
        if number is None:
            raise InputError(f"{edge!r} is no {unit}: the edges of {column.name} are {unit}s")
        return number
    return _real(edge, f"the edges of {column.name} are one list of numbers, the smallest first, such as [18, 40, 65]")


def _real(given: Any, why: str) -> float:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise InputError(f"{given!r} is no number: {why}")
    return float(given)


def _numbers(given: Any, why: str) -> str:
    numbers = [_real(one, why) for one in ([given] if isinstance(given, Real | str) else given)]
    if not numbers or any(first >= second for first, second in pairwise(numbers)):
        raise InputError(why)
    return show(ListTerm(tuple(Number(int(one) if one.is_integer() else one) for one in numbers)))


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise InputError("k must be a whole number of at least 1")
    return given


# ── models and tables ────────────────────────────────────────────────────────────────────────────────────────────────


@final
@dataclass(frozen=True)
class ActMethod(BuilderMethod):
    """What publish/3 names beside a question, written as its kind says."""

    kind: type[Kind] = Kind

    @property
    def of_categories(self) -> str:
        return self.kind.of_categories

    @classmethod
    def of(cls, kind: type[Kind]) -> ActMethod:
        places = {place for _, usage in kind.usages for place in usage}
        features = [_FEATURES] if {"target", "columns"} <= places else []
        options = (*features, *(option for place, option in _ACT_OPTIONS.items() if place in places))
        return cls(kind.method, kind.help, kind.subject, options, kind)

    @property
    def chosen(self) -> bool:
        return False

    @property
    def grouped(self) -> bool:
        return False

    @property
    def by_itself(self) -> bool:
        return False

    def clause(self, asking: Asking) -> str:
        return ""

    def shown(self, asking: Asking) -> str:
        labelled = asking.options.get("label") is not None
        usage = next(one for _, one in self.kind.usages if labelled == ("label" in one))
        return f"{self.kind.functor}({', '.join(self._text(place, asking) for place in usage)})"

    def _text(self, place: Argument, asking: Asking) -> str:
        match place:
            case "columns":
                return _variables(asking.columns if _FEATURES not in self.options else _features(asking))
            case "label":
                return f"for({show(_label(asking).variable)})"
            case "uses":
                given = asking.options["uses"]
                return f"[{', '.join(show(Compound(word)) for word in ([given] if isinstance(given, str) else given))}]"
        return show(asking.columns[0].variable)


_FEATURES = Option("features", required=True)
_ACT_OPTIONS: dict[Argument, Option] = {"label": Option("label"), "uses": Option("uses", default=("identity",))}


def _features(asking: Asking) -> list[DeclaredColumn]:
    given = asking.options["features"]
    names = [given] if isinstance(given, str) else list(given or ())
    if not names:
        raise InputError("features= must name at least one column")
    return [asking.find(name) for name in names]


def _label(asking: Asking) -> DeclaredColumn:
    label = asking.options["label"]
    if label not in [column.name for column in asking.columns]:
        raise InputError(f"the label {label!r} must be one of the columns")
    return asking.find(label)


#: By the name of the method.
FORMS: dict[str, BuilderMethod] = {
    **{method_of(kind.form): Questioned.of(kind) for kind in QUESTIONS.values()},
    **{kind.method: ActMethod.of(kind) for kind in KINDS.values() if kind.method},
}


def signature_of(form: BuilderMethod) -> inspect.Signature:
    """What help() and an editor show of its method."""
    both, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    first = {"nothing": [], "number": ["column"], "any": ["column"]}.get(form.subject, ["columns"])
    parts = [inspect.Parameter(name, both) for name in ("self", *first)]
    empty = inspect.Parameter.empty
    parts += [inspect.Parameter(o.name, both, default=empty if o.required else o.default) for o in form.options]
    parts.append(inspect.Parameter("to", named))
    parts += [inspect.Parameter("by", named, default=())] if form.grouped else []
    parts += [inspect.Parameter("where", named, default=None)] if form.chosen else []
    parts += [inspect.Parameter("whole", named, default=False)] if isinstance(form, Questioned) else []
    parts += [inspect.Parameter(name, named, default=None) for name in ("within", "weight", "name")]
    return inspect.Signature(parts)


def builder_method(form: BuilderMethod) -> Callable[..., Any]:
    """The method of a form: its own signature and help, and a call of `ask`."""
    signature = signature_of(form)

    def method(self: Any, *given: Any, **named: Any) -> Any:
        bound = signature.bind(self, *given, **named)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        del arguments["self"]
        return self.ask(form.method, arguments.pop("columns", arguments.pop("column", ())), **arguments)

    method.__name__, method.__qualname__ = form.method, f"Study.{form.method}"
    method.__doc__ = form.help
    method.__signature__ = signature  # type: ignore[attr-defined]  # what help() and an editor show
    return in_own_words(method)
