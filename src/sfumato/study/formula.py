"""Conditions and formulas written as Python text: read by `ast`, never evaluated.

In:   "days > 7 and sex == 'f'", the columns of the study.
Out:  the same as a term of the language.
Not here: what a condition means (network/goals.py), what a formula may compute (network/functions.py).
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.core.calendar import number_of_day, number_of_time, shown
from sfumato.core.domain import Categories, Interval, Scalar
from sfumato.core.text import AnyText
from sfumato.errors import InputError
from sfumato.lang.problem import nearest
from sfumato.lang.term import Compound, Number, Term, Variable

__all__ = ["DeclaredColumn", "condition_of", "constant_of", "formula_of", "moment_of"]

_COMPARED = {ast.Lt: "<", ast.LtE: "=<", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=", ast.NotEq: "\\="}
_SWAPPED = {"<": ">", "=<": ">=", ">": "<", ">=": "=<", "=": "=", "\\=": "\\="}
_COMPUTED = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
#: A text in quotes, or a name between backticks.
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`([^`]+)`""")
_FUNCTIONS = {"exp": 1, "log": 1, "sqrt": 1, "tan": 1, "tanh": 1, "abs": 1, "min": 2, "max": 2, "clip": 3}


@dataclass(frozen=True)
class DeclaredColumn:
    """A column of the study: its name, its variable in the language, its public domain."""

    name: str
    functor: str
    domain: Interval | Categories | AnyText | None

    @property
    def holds_numbers(self) -> bool:
        """Whether it can be added up."""
        if isinstance(self.domain, Categories):
            return self.domain.scalar == "int"
        return not isinstance(self.domain, AnyText)

    @property
    def variable(self) -> Compound:
        return Compound(self.functor, (Variable("P"),))


def condition_of(text: str, columns: Mapping[str, DeclaredColumn]) -> Term:
    """The goal that a condition stands for.

    >>> days = DeclaredColumn("days", "days", Interval(1, 14))
    >>> print(condition_of("2 < days <= 7", {"days": days}))
    days(P) > 2, days(P) =< 7
    >>> print(condition_of("`stay (days)` > 7", {"stay (days)": days}))
    days(P) > 7
    """
    return _Reading(text, columns).condition()


def formula_of(text: str, columns: Mapping[str, DeclaredColumn]) -> tuple[Term, tuple[DeclaredColumn, ...]]:
    """The expression of a formula and the columns it reads.

    >>> kilos = DeclaredColumn("kilos", "kilos", Interval(30, 200))
    >>> print(formula_of("kilos * 2", {"kilos": kilos})[0])
    kilos(P) * 2
    """
    reading = _Reading(text, columns)
    return reading.formula(), tuple(reading.read.values())


def constant_of(value: Scalar | float) -> Term:
    """A number or a category as the language writes it."""
    if isinstance(value, bool):
        return Compound("true" if value else "false")
    return Number(value) if isinstance(value, (int, float)) else Compound(value)


def moment_of(number: float, unit: str) -> Term:
    """A number as a study writes it: a whole day or second as the day or the time it stands for.

    >>> print(moment_of(18628, "date"), moment_of(18628.5, "date"), moment_of(30600, "time"), moment_of(7, ""))
    date(2021, 1, 1) 18628.5 time(8, 30, 0) 7
    """
    if not float(number).is_integer():
        return Number(float(number))
    if not unit or (unit == "date" and abs(number) >= 700_000):
        return Number(int(number))
    parts = shown(number, unit).split("-" if unit == "date" else ":")
    return Compound(unit, tuple(Number(int(part)) for part in parts))


class _Reading:
    """One text. Each refusal names the part of it that was not understood."""

    def __init__(self, text: str, columns: Mapping[str, DeclaredColumn]) -> None:
        self.text = text
        self.columns = columns
        self.read: dict[str, DeclaredColumn] = {}
        #: Names between backticks, by the word that stands for each while the text is read.
        self.quoted: dict[str, str] = {}
        try:
            self.tree = ast.parse(_QUOTED.sub(self._word, text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError, AttributeError, TypeError):
            example = "days > 7 and sex == 'f'"
            raise InputError(
                f'{text!r} is no expression. Write, for example, "{example}".{self._backticks()}'
            ) from None

    def _backticks(self) -> str:
        """How to write a name that is no word, where the text seems to hold one."""
        bare = _QUOTED.sub(" ", str(self.text))
        odd = next((name for name in self.columns if not name.isidentifier() and name in bare), None)
        if odd:
            return f" A name with blanks or signs stands between backticks: `{odd}`."
        taken = next((name for name in self.columns if keyword.iskeyword(name) and _stands_in(name, bare)), None)
        return f" {taken} is a word of Python; as a name it stands between backticks: `{taken}`." if taken else ""

    def _word(self, found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:  # a text in quotes stays as it is
            return found.group(0)
        word = f"column_{len(self.quoted)}_"
        while word in self.columns or word in self.text:
            word += "_"
        self.quoted[word] = name
        return f" {word} "

    def condition(self) -> Term:
        return self._condition(self.tree)

    def formula(self) -> Term:
        return self._number(self.tree)

    def _condition(self, node: ast.expr) -> Term:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return _joined(",", [self._condition(value) for value in values])
            case ast.BoolOp(op=ast.Or(), values=values):
                return _joined(";", [self._condition(value) for value in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Compound("\\+", (self._condition(operand),))
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                pairs = zip(sides, ops, sides[1:], strict=False)
                return _joined(",", [self._comparison(one, op, other) for one, op, other in pairs])
            case ast.Name():
                column = self._column(node)
                if isinstance(column.domain, Categories) and set(column.domain.values) == {"false", "true"}:
                    return Compound("=", (column.variable, Compound("true")))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            raise self._no(node, f"joins with {'&' if isinstance(node.op, ast.BitAnd) else '|'}: write and, or, not")
        raise self._no(node, f"is no comparison; write, for example, {self._example(node)}{_of_absent(node)}")

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Term:
        if isinstance(op, ast.In | ast.NotIn):
            return self._membership(left, op, right)
        if type(op) not in _COMPARED:
            way = "is compared in a way that is not known; use < <= > >= == != in"
            raise self._no(left, f"{way}{_of_absent(right)}")
        operator = _COMPARED[type(op)]
        if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
            left, right, operator = right, left, _SWAPPED[operator]
        column = self._column(left) if isinstance(left, ast.Name) else None
        domain = column.domain if column is not None else None
        if column is not None and isinstance(domain, Categories):
            return Compound(operator, (column.variable, self._level(column, domain, operator, right)))
        if column is not None and isinstance(domain, AnyText):
            raise self._no(
                left,
                "is text of which no list is public. List what matters, Categories(['…', 'other'], null='other', "
                "unknown='other') in columns=, and compare with that",
            )
        unit = domain.calendar if isinstance(domain, Interval) else ""
        return Compound(operator, (self._number(left), self._amount(right, unit)))

    def _amount(self, node: ast.expr, unit: str) -> Term:
        if unit and isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._moment(node, unit)
        return self._number(node)

    def _moment(self, node: ast.Constant, unit: str) -> Term:
        number = number_of_day(node.value) if unit == "date" else number_of_time(node.value)
        if number is None:
            raise self._no(node, f"is no {unit}; write '2020-01-31' or '08:30'")
        return moment_of(number, unit)

    def _membership(self, left: ast.expr, op: ast.In | ast.NotIn, right: ast.expr) -> Term:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set) or not right.elts:
            raise self._no(right, "is no list of values")
        found = _joined(";", [self._comparison(left, ast.Eq(), item) for item in right.elts])
        return Compound("\\+", (found,)) if isinstance(op, ast.NotIn) else found

    def _level(self, column: DeclaredColumn, domain: Categories, operator: str, node: ast.expr) -> Term:
        if operator not in ("=", "\\=") and domain.scalar != "int":
            raise self._no(node, f"cannot be above or below {column.name}, which has categories; use == or in")
        try:
            value = ast.literal_eval(node)
        except ValueError:
            raise self._no(node, f"is no category of {column.name}") from None
        if isinstance(value, bool) and set(domain.values) <= {"false", "true"}:
            value = str(value).lower()
        if domain.scalar == "int" and operator not in ("=", "\\="):
            return self._number(node)
        return constant_of(_category(column, domain, value))

    def _number(self, node: ast.expr) -> Term:
        match node:
            case ast.Constant(value=bool() as truth):
                return Number(int(truth))
            case ast.Constant(value=int() | float() as number):
                return Number(number)
            case ast.Name():
                column = self._column(node)
                if not column.holds_numbers:
                    raise self._no(node, "has categories or text and is no number")
                return column.variable
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Compound("-", (self._number(operand),))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
                return Compound(_COMPUTED[type(op)], (self._number(left), self._number(right)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                if len(arguments) != _FUNCTIONS[name]:
                    raise self._no(node, f"needs {_FUNCTIONS[name]} argument(s) of {name}")
                return Compound(name, tuple(self._number(part) for part in arguments))
        raise self._no(node, f"is neither a number nor a formula of columns with {', '.join(_FUNCTIONS)}")

    def _example(self, node: ast.expr) -> str:
        """A comparison that could stand in the place of what is none."""
        name = self.quoted.get(node.id, node.id) if isinstance(node, ast.Name) else None
        domain = self.columns[name].domain if name is not None and name in self.columns else None
        if isinstance(domain, Categories):
            return f"{_bare(str(name))} == {domain.values[-1]!r}"
        return f"{_bare(str(name))} > 7" if name in self.columns else "days > 7"

    def _column(self, node: ast.Name) -> DeclaredColumn:
        name = self.quoted.get(node.id, node.id)
        if name not in self.columns:
            close = nearest(name, self.columns)
            raise InputError(
                f"{name!r} is not a column of this study"
                + (f"; did you mean {close!r}?" if close else f"; it has {', '.join(self.columns)}.")
            )
        return self.read.setdefault(name, self.columns[name])

    def _no(self, node: ast.expr, why: str) -> InputError:
        part = ast.unparse(node)
        for word, name in self.quoted.items():
            part = part.replace(word, f"`{name}`")
        return InputError(f"In {self.text!r}, {part!r} {why}.{'' if self.quoted else self._backticks()}")


def _bare(name: str) -> str:
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"`{name}`"


def _of_absent(node: ast.expr) -> str:
    """Where somebody seems to ask for empty cells: how to do that."""
    asks = isinstance(node, ast.Constant) and node.value is None
    asks |= isinstance(node, ast.Call) and "na" in ast.unparse(node.func).lower().rpartition(".")[2]
    told = ". An absent cell counts as what null= says: give it a category of its own, and compare with that"
    return told if asks else ""


def _stands_in(word: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text) is not None


def _joined(functor: str, parts: list[Term]) -> Term:
    *before, found = parts
    for part in reversed(before):
        found = Compound(functor, (part, found))
    return found


def _category(column: DeclaredColumn, domain: Categories, value: Any) -> Any:
    known = [one for one in domain.values if one == value and type(one) is type(value)]
    if not known:
        listed = ", ".join(map(repr, domain.values[:8]))
        close = nearest(str(value), [str(one) for one in domain.values])
        hint = f" Did you mean {close!r}?" if close else ""
        raise InputError(f"{column.name} has no category {value!r}; it has {listed}.{hint}")
    return known[0]
