"""Reading a study's text: clauses with their places, and every syntax problem at once.

In:   text.
Out:  Clause values made of our own terms; problems for the clauses that could not be read.
Not here: what may be said (lang/safety.py), what it means (lang/declare.py).

ProbLog's parser reads one clause at a time and builds our terms through its factory, so that one broken clause hides
no other. Logical Bayesian networks are written with `←`; it is read as `:-` and positions are those of the text as it
stands. The limits below are stated in the messages: a study is a page of wishes, not a data file.
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

_recursion_limit = sys.getrecursionlimit()
from problog.errors import ParseError  # noqa: E402
from problog.parser import PrologParser  # noqa: E402

# Importing ProbLog raises the limit to 10000 for the whole process; we keep our terms shallow instead.
sys.setrecursionlimit(_recursion_limit)

from sfumato.lang.characters import bare_characters, ends_clause, missing_stop, quote_end, translate  # noqa: E402
from sfumato.lang.problem import Problem  # noqa: E402
from sfumato.lang.term import (  # noqa: E402
    PARTIAL_LIST,
    Compound,
    ListTerm,
    Number,
    Position,
    Term,
    Text,
    Variable,
    children,
)

__all__ = ["LONGEST_CLAUSE", "LONGEST_TEXT", "MOST_NESTED", "MOST_OPERATORS", "Clause", "depth", "goals", "read"]

LONGEST_TEXT = 1_000_000
LONGEST_CLAUSE = 20_000
MOST_NESTED = 100
MOST_OPERATORS = 400

#: Half of a pair that only together is a character.
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_INDEX = object()


@dataclass(frozen=True, slots=True)
class Clause:
    """head :- body, or a statement of a logical Bayesian network (head functor `|`), as it was written."""

    head: Compound
    body: Term | None
    position: Position
    text: str = field(repr=False)

    def at(self, term: Term) -> Position:
        """Where a part of this clause stands, or the clause if the part does not know."""
        return term.position if isinstance(term, Compound) and term.position else self.position


def goals(body: Term | None) -> tuple[Term, ...]:
    """The goals of a conjunction from left to right.

    >>> [str(goal) for goal in goals(Compound(",", (Compound("a"), Compound(",", (Compound("b"), Compound("c"))))))]
    ['a', 'b', 'c']
    """
    found: list[Term] = []
    waiting = [] if body is None else [body]
    while waiting:
        goal = waiting.pop()
        if isinstance(goal, Compound) and goal.functor == "," and len(goal.arguments) == 2:
            waiting += [goal.arguments[1], goal.arguments[0]]
        else:
            found.append(goal)
    return tuple(found)


def depth(term: Term) -> int:
    """How deeply a term is nested, counted without recursion."""
    deepest, level = 0, [term]
    while level:
        deepest += 1
        level = [part for one in level for part in children(one)]
    return deepest


def read(text: str, file: str = "study") -> tuple[tuple[Clause, ...], tuple[Problem, ...]]:
    """All clauses that can be read, and a problem for each that cannot.

    >>> clauses, problems = read("random(iq(S)) ← student(S).")
    >>> print(clauses[0].head, "if", clauses[0].body)
    random(iq(S)) if student(S)
    """
    places = _Places(text, file)
    if len(text) > LONGEST_TEXT:
        problem = Problem(
            "error",
            "too-long",
            f"the study has {len(text)} characters and the limit is {LONGEST_TEXT}",
            places.at(0),
            expected="a page or two of declarations",
            way_out="Put rows into a table and declare it with source(Table, 'file').",
        )
        return (), (problem,)
    if (broken := _HALF_CHARACTER.search(text)) is not None:
        problem = Problem(
            "error",
            "syntax",
            "here stands half of a character (a lone surrogate), which no file can hold",
            places.at(broken.start()),
            way_out="Write the whole character, or leave it out.",
        )
        return (), (problem,)
    clauses: list[Clause] = []
    problems: list[Problem] = []
    for start, end, complaint in _pieces(text):
        result = complaint(places) if complaint else _read_clause(text[start:end], start, places)
        if isinstance(result, Problem):
            problems.append(result)
        else:
            clauses.append(result)
    return tuple(clauses), tuple(problems)


class _Unreadable(Exception):
    """A clause that breaks a rule of the reader. `at` is an offset in the clause's translated text."""

    def __init__(self, message: str, at: int | None, way_out: str = "", expected: str = "") -> None:
        super().__init__(message)
        self.at = at
        self.way_out = way_out
        self.expected = expected


class _Places:
    """Offsets of a text as lines and columns."""

    def __init__(self, text: str, file: str) -> None:
        self._starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]
        self._file = file

    def at(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return Position(self._file, line, offset - self._starts[line - 1] + 1)


def _pieces(text: str):
    """(start, end, None) for each clause, (start, end, complaint) where the text itself is broken."""
    position = start = 0
    begun = False
    while position < len(text):
        character = text[position]
        if character == "%":
            line_end = text.find("\n", position)
            position = len(text) if line_end < 0 else line_end + 1
        elif text.startswith("/*", position):
            comment_end = text.find("*/", position + 2)
            if comment_end < 0:
                yield position, len(text), _broken(position, "a comment opened here is never closed", "Close it: */")
                return
            position = comment_end + 2
        elif character <= " ":
            position += 1
        else:
            if not begun:
                begun, start = True, position
            if character in "'\"":
                behind = quote_end(text, position)
                if behind is None:
                    yield (
                        start,
                        len(text),
                        _broken(position, "a quote opened here is never closed", f"Close it: {character}"),
                    )
                    return
                position = behind
            elif character == "." and ends_clause(text, position):
                yield start, position + 1, None
                begun = False
                position += 1
            else:
                position += 1
    if begun:
        yield start, len(text), _broken(start, "this clause does not end", "End it with a full stop.", text[start:])


def _broken(offset: int, message: str, way_out: str, clause: str = ""):
    return lambda places: Problem("error", "syntax", message, places.at(offset), clause[:200], way_out=way_out)


def _read_clause(text: str, start: int, places: _Places) -> Clause | Problem:
    translated, offsets = translate(text)

    def place(offset: int | None) -> Position:
        return places.at(start + offsets[min(max(offset or 0, 0), len(offsets) - 1)])

    try:
        _check_size(translated)
        return _to_clause(_parse(translated, place), place(0), text)
    except _Unreadable as error:
        if (stop := missing_stop(translated)) is not None:
            message = f"two clauses run into one: is the full stop missing after line {place(stop).line}?"
            return Problem("error", "syntax", message, place(stop), text, way_out="End every clause with a full stop.")
        return Problem(
            "error", "syntax", str(error), place(error.at), text, expected=error.expected, way_out=error.way_out
        )


def _check_size(text: str) -> None:
    """Refuse what would make ProbLog's parser, which is quadratic in operators, slow or deep."""
    if len(text) > LONGEST_CLAUSE:
        raise _Unreadable(
            f"this clause has {len(text)} characters and the limit is {LONGEST_CLAUSE}",
            0,
            "Put rows into a table, or write several clauses.",
        )
    counts = [0]
    for position, character in bare_characters(text):
        if character in "([":
            counts.append(0)
            if len(counts) > MOST_NESTED:
                raise _Unreadable(
                    f"brackets are nested more than {MOST_NESTED} deep",
                    position,
                    "Split the term into several clauses.",
                )
        elif character in ")]" and len(counts) > 1:
            counts.pop()
        elif _is_operator(character, outside=len(counts) == 1):
            counts[-1] += 1
            if counts[-1] > MOST_OPERATORS:
                raise _Unreadable(
                    f"more than {MOST_OPERATORS} operators in one row", position, "Use sum(List), or several clauses."
                )


def _is_operator(character: str, outside: bool) -> bool:
    """A comma is one outside of brackets; inside it separates arguments."""
    return character in "+-*/<>=\\:;|^&~@#?!" or (character == "," and outside)


def _parse(text: str, place) -> Term:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ProbLog warns about `\==` on the screen
            program = _Parser(_Factory(place)).parseString(text)
    except ParseError as error:
        raise _Unreadable(*_explained(error, text)) from None
    except _Unreadable:
        raise
    except Exception:  # the parser is not written for broken text and fails in many ways
        raise _Unreadable("this clause cannot be read", 0, "Check its brackets, commas and operators.") from None
    if len(program) != 1:
        raise _Unreadable("more than one clause where one was expected", 0, "Put white space behind each full stop.")
    if depth(program[0]) > 3 * MOST_NESTED:
        raise _Unreadable("this clause is nested too deeply", 0, "Split it into several clauses.")
    return program[0]


def _explained(error: ParseError, text: str) -> tuple[str, int, str, str]:
    message = str(getattr(error, "base_message", "") or error).split(" at ")[0].rstrip(".")
    offset = _offset(error, text)
    found = text[offset : offset + 1]
    if "<=" in text[max(offset - 3, 0) : offset + 2]:
        return "<= is not a comparison here", text.rfind("<=", 0, offset + 2), "Write =< for at most.", ""
    if found == "(" and (name := re.search(r"\b[^\W\d_a-zß-ÿ]\w*$", text[:offset])):
        small = name[0][:1].lower() + name[0][1:]
        way_out = f"Write {small}(…). A name with a capital letter in front is a variable."
        return f"names of predicates start with a small letter, and {name[0]} does not", name.start(), way_out, ""
    if message.startswith("Unexpected character") and found == "{":
        return "braces have no meaning here", offset, "Use a list [a, b] or parentheses.", ""
    if message.startswith("Unexpected character"):
        return f"the character {found!r} is not expected here", offset, "Remove it, or put the name in quotes.", ""
    if message.startswith("Unmatched character"):
        return f"the bracket or quote {found!r} has no partner", offset, "Close or remove it.", ""
    if message == "Expected binary operator" and found in ":=<>+*/\\|;,-":
        return "one side of this operator is missing", offset, "Write both sides.", ""
    if message == "Expected binary operator" and found in ("'", '"') and text[offset - 1] == found:
        way_out = f"Write \\{found} for a quote within a name, as in 'it\\'s'."
        return "a quote within a name is not written by doubling it", offset, way_out, ""
    if message == "Expected binary operator":
        return "two terms stand side by side", offset, "A comma or an operator may be missing.", "a comma or operator"
    if message == "Operator priority clash":
        return "operators of equal rank cannot be chained here", offset, "Add parentheses.", ""
    return f"this clause cannot be read ({message.lower()})", offset, "Check its brackets, commas and operators.", ""


def _offset(error: ParseError, text: str) -> int:
    """ProbLog counts columns from zero on the first line of its text and from one on the others."""
    location = getattr(error, "location", None)
    if not isinstance(location, tuple) or len(location) != 3 or location[1] is None:
        return 0
    _, line, column = location
    starts = [0, *(i + 1 for i, character in enumerate(text) if character == "\n")]
    offset = starts[min(line, len(starts)) - 1] + (column if line == 1 else column - 1)
    return min(max(offset, 0), len(text) - 1)


def _to_clause(term: Term, position: Position, text: str) -> Clause:
    body: Term | None = None
    head = term
    if isinstance(term, Compound) and term.functor == ":-" and len(term.arguments) == 2:
        head, body = term.arguments
    if not isinstance(head, Compound):
        raise _Unreadable(
            "a clause must start with a predicate",
            0,
            "Write predicate(arguments). or predicate(arguments) :- conditions.",
        )
    return Clause(head, body, position, text)


class _Parser(PrologParser):
    """ProbLog's parser, with clauses built like any other operator, and with powers binding as everywhere else.

    ProbLog gives ^ the rank of *, so that 2*x^2 would be read as (2*x)^2.
    """

    def _token_caret(self, s: str, pos: int) -> Any:
        token, end = super()._token_caret(s, pos)
        token.binop = (200, "xfy", self.factory.build_binop)
        return token, end

    def _build_clause(self, functor: str, operand1: Any, operand2: Any, location: Any, **extra: Any) -> Any:
        return self.factory.build_binop(functor, operand1, operand2, location=location, **extra)


class _Factory:
    """What ProbLog's parser builds: our terms, with their places."""

    def __init__(self, place) -> None:
        self._place = place

    def build_program(self, clauses: Any) -> list[Term]:
        return list(clauses)

    def build_function(self, functor: str, arguments: Any = (), location: int | None = None, **_: Any) -> Term:
        if any(argument is None for argument in arguments):
            raise _Unreadable("an argument is missing", location, "Write something between the commas.")
        if any(argument is _INDEX for argument in arguments):
            raise _Unreadable("a name is followed by a list", location, "Write name(arguments) or put a comma between.")
        if functor == "not" and len(arguments) == 1:
            functor = "\\+"
        return Compound(_unquoted(functor, location), tuple(arguments), self._place(location))

    def build_variable(self, name: str, location: int | None = None) -> Term:
        return Variable(name)

    def build_constant(self, value: int | float, location: int | None = None) -> Term:
        if isinstance(value, float) and not math.isfinite(value):
            raise _Unreadable("this number is too large", location, "Write a number a computer can hold: below 1e308.")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise _Unreadable("this integer is too large", location, "Write it as a decimal number, or in quotes.")
        return Number(value)

    def build_string(self, value: str, location: int | None = None) -> Term:
        return Text(_unescaped(value))

    def build_binop(self, functor: str, operand1: Any, operand2: Any, location: int | None = None, **_: Any) -> Term:
        if functor == "=>":
            raise _Unreadable("=> is not a comparison", location, "Write >= for at least.")
        if operand1 is None or operand2 is None:
            raise _Unreadable(f"one side of {functor} is missing", location, "Write both sides.")
        return Compound(":-" if functor == "<-" else functor, (operand1, operand2), self._place(location))

    def build_unop(self, functor: str, operand: Any, location: int | None = None, **_: Any) -> Term:
        if operand is None:
            raise _Unreadable(f"nothing stands behind {functor}", location, "Write what it applies to.")
        if functor == "-" and isinstance(operand, Number):
            return Number(-operand.value)
        return Compound(functor, (operand,), self._place(location))

    def build_not(self, functor: str, operand: Any, location: int | None = None, **_: Any) -> Term:
        return self.build_unop("\\+", operand, location)

    def build_directive(self, functor: str, operand: Any, location: int | None = None, **_: Any) -> Term:
        return self.build_unop(":-", operand, location)

    def build_probabilistic(self, operand1: Any, operand2: Any, location: int | None = None, **_: Any) -> Term:
        return self.build_binop("::", operand1, operand2, location)

    def build_list(self, values: list[Any], tail: Any = None, location: int | None = None, **_: Any) -> Term:
        if any(value is None for value in values):
            raise _Unreadable("an item of a list is missing", location, "Write something between the commas.")
        if tail is None:
            return ListTerm(tuple(values))
        current = tail
        for value in reversed(values):
            current = Compound(PARTIAL_LIST, (value, current))
        return current

    def build_index(self, arguments: Any, **_: Any) -> object:
        # f[X]: ProbLog asks for this form whenever it sees a list, also where none is used as an index.
        return _INDEX

    def build_aggregate(self, functor: str, arguments: Any, location: int | None = None, **_: Any) -> Term:
        raise _Unreadable(f"{functor}<…> is not part of this language", location, "Use count, sum, mean or histogram.")

    def build_conjunction(
        self, functor: str, operand1: Any, operand2: Any, location: int | None = None, **_: Any
    ) -> Term:
        return self.build_binop(",", operand1, operand2, location)

    def build_disjunction(
        self, functor: str, operand1: Any, operand2: Any, location: int | None = None, **_: Any
    ) -> Term:
        return self.build_binop(";", operand1, operand2, location)


def _unquoted(name: str, location: int | None) -> str:
    if len(name) < 2 or not (name.startswith("'") and name.endswith("'")):
        return name
    inner = _unescaped(name[1:-1])
    if inner.startswith("$"):
        raise _Unreadable("names that start with $ stand for symbolic individuals", location, "Choose another name.")
    return inner


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    pieces, escaped = [], False
    for character in text:
        if escaped:
            pieces.append({"n": "\n", "t": "\t"}.get(character, character))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            pieces.append(character)
    return "".join(pieces)
