"""Logical terms: the one shape in which a study's clauses, answers and expressions travel.

    Term = Number | Text | Variable | Compound | ListTerm

In:   nothing; the reader (lang/reader.py) and the logic engine (lang/engine.py) make them.
Out:  frozen values with `show`, `walk`, `variables`, `substitute`, `match`.
Not here: what a term means as an expression (network/expression.py).

Positions say where something was written and take no part in equality.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "PARTIAL_LIST",
    "Compound",
    "ListTerm",
    "Number",
    "Position",
    "Term",
    "Text",
    "Variable",
    "called",
    "indicator",
    "is_ground",
    "is_variant",
    "match",
    "show",
    "substitute",
    "variables",
    "walk",
]

#: The functor of a list whose tail is not known yet, `[Head|Tail]`; an answer never holds one.
PARTIAL_LIST = "[|]"


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a study file; lines and columns count from one.

    >>> print(Position("study.pl", 3, 7))
    study.pl:3:7
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or a float, as written."""

    value: int | float

    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class Text:
    """A string in double quotes."""

    value: str

    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class Variable:
    """A logical variable, known by its name within one clause."""

    name: str

    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class Compound:
    """functor(arguments); an atom is a Compound without arguments.

    >>> print(Compound("age", (Variable("P"),)))
    age(P)
    """

    functor: str
    arguments: tuple[Term, ...] = ()
    position: Position | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class ListTerm:
    """[item, item, …]"""

    items: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return show(self)


Term: TypeAlias = Number | Text | Variable | Compound | ListTerm


def indicator(term: Term) -> str:
    """functor/arity, the name of a predicate.

    >>> indicator(Compound("age", (Variable("P"),)))
    'age/1'
    """
    return f"{term.functor}/{len(term.arguments)}" if isinstance(term, Compound) else type(term).__name__.lower()


def called(term: Term) -> str:
    """The name of a publication or an observer: an atom without the quotes it may be written in, anything else as text.

    >>> called(Compound("mean days")), called(Compound("care", (Compound("doctor"),)))
    ('mean days', 'care(doctor)')
    """
    return term.functor if isinstance(term, Compound) and not term.arguments else show(term)


def children(term: Term) -> tuple[Term, ...]:
    """The direct parts of a term."""
    if isinstance(term, Compound):
        return term.arguments
    return term.items if isinstance(term, ListTerm) else ()


def walk(term: Term) -> Iterator[Term]:
    """The term and everything inside it, from left to right, without recursion."""
    waiting = [term]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


def variables(term: Term) -> tuple[Variable, ...]:
    """The variables of a term in order of appearance, each once.

    >>> [v.name for v in variables(Compound("f", (Variable("X"), Variable("Y"), Variable("X"))))]
    ['X', 'Y']
    """
    return tuple(dict.fromkeys(part for part in walk(term) if isinstance(part, Variable)))


def is_ground(term: Term) -> bool:
    """No variable is left."""
    return not any(isinstance(part, Variable) for part in walk(term))


def substitute(term: Term, mapping: Mapping[str, Term]) -> Term:
    """The term with variables replaced by name; what the mapping does not name stays.

    >>> print(substitute(Compound("age", (Variable("P"),)), {"P": Compound("uma")}))
    age(uma)
    """
    match term:
        case Variable(name=name):
            return mapping.get(name, term)
        case Compound() if term.arguments:
            return Compound(term.functor, tuple(substitute(part, mapping) for part in term.arguments), term.position)
        case ListTerm() if term.items:
            return ListTerm(tuple(substitute(part, mapping) for part in term.items))
    return term


def is_variant(one: Term, other: Term) -> bool:
    """Whether both are the same but for the names of variables.

    >>> is_variant(Compound("f", (Variable("X"),)), Compound("f", (Variable("Y"),)))
    True
    """
    return match(one, other) is not None and match(other, one) is not None


def match(pattern: Term, term: Term) -> dict[str, Term] | None:
    """What the pattern's variables must be for it to equal the term, or None: unification one way.

    >>> match(Compound("f", (Variable("X"),)), Compound("f", (Number(1),)))
    {'X': Number(value=1)}
    >>> match(Compound("f"), Compound("g")) is None
    True
    """
    found: dict[str, Term] = {}
    waiting = [(pattern, term)]
    while waiting:
        wanted, given = waiting.pop()
        if isinstance(wanted, Variable):
            # An underscore is a different variable each time it is written.
            if wanted.name != "_" and found.setdefault(wanted.name, given) != given:
                return None
            continue
        parts = _paired_parts(wanted, given)
        if parts is None:
            return None
        waiting.extend(parts)
    return found


def _paired_parts(one: Term, other: Term) -> list[tuple[Term, Term]] | None:
    """Which parts of two terms must be equal for them to be; None where they differ already, none of constants."""
    if isinstance(one, Compound) and isinstance(other, Compound):
        same = one.functor == other.functor and len(one.arguments) == len(other.arguments)
        return list(zip(one.arguments, other.arguments, strict=True)) if same else None
    if isinstance(one, ListTerm) and isinstance(other, ListTerm):
        same = len(one.items) == len(other.items)
        return list(zip(one.items, other.items, strict=True)) if same else None
    return [] if type(one) is type(other) and one == other else None


_INFIX = {
    ":-": (1200, 1199, 1199),
    "|": (1100, 1099, 1100),
    ";": (1100, 1099, 1100),
    ",": (1000, 999, 1000),
    "=": (700, 699, 699),
    "\\=": (700, 699, 699),
    "==": (700, 699, 699),
    "\\==": (700, 699, 699),
    "is": (700, 699, 699),
    "<": (700, 699, 699),
    ">": (700, 699, 699),
    "=<": (700, 699, 699),
    ">=": (700, 699, 699),
    "=:=": (700, 699, 699),
    "=\\=": (700, 699, 699),
    ":": (600, 599, 600),
    "+": (500, 500, 499),
    "-": (500, 500, 499),
    "*": (400, 400, 399),
    "/": (400, 400, 399),
    "//": (400, 400, 399),
    "mod": (400, 400, 399),
    "**": (200, 199, 199),
    "^": (200, 199, 200),
}
_PREFIX = {"\\+": (900, 900), "-": (200, 200), "+": (200, 200)}
#: Names that ProbLog reads as operators; as ordinary names they are quoted.
_WORDS = {"is", "as", "not", "xor", "rdiv", "mod", "rem", "div"}
_PLAIN_ATOM = re.compile(r"[a-z][A-Za-z0-9_]*\Z")


def show(term: Term, priority: int = 1200) -> str:
    """The term as text that reads back as the same term: parentheses and quotes where they are needed.

    >>> X = Variable("X")
    >>> print(show(Compound("*", (Compound("+", (X, Number(1))), Compound("-", (X,))))))
    (X + 1) * -X
    >>> print(show(Compound("Quoted atom")))
    'Quoted atom'
    """
    match term:
        case Number(value=value):
            # Behind an operator a minus sign would be read as that operator's.
            return f"({value!r})" if priority < 999 and repr(value).startswith("-") else repr(value)
        case Text(value=value):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Variable(name=name):
            return name
        case ListTerm(items=items):
            return "[" + ", ".join(show(item, 999) for item in items) + "]"
    return _show_compound(term, priority)


def _show_prefix(functor: str, argument: Term, priority: int) -> str:
    own, right = _PREFIX[functor]
    inner = show(argument, right)
    if functor != "\\+" and (isinstance(argument, Number) or inner[0] in "([-+\\"):
        return f"{functor}({show(argument, 999)})"  # -5 is a number, -(a, b) has two arguments
    if functor == "\\+":
        inner = " " + _bracketed(inner, inner[0] in "-+\\")  # ProbLog reads no two prefixes in a row
    return _bracketed(functor + inner, own > priority)


def _show_compound(term: Compound, priority: int) -> str:
    arguments = term.arguments
    if term.functor == PARTIAL_LIST and len(arguments) == 2:
        return f"[{show(arguments[0], 999)}|{show(arguments[1], 999)}]"
    if len(arguments) == 2 and term.functor in _INFIX:
        own, left, right = _INFIX[term.functor]
        between = ", " if term.functor == "," else f" {term.functor} "
        return _bracketed(show(arguments[0], left) + between + show(arguments[1], right), own > priority)
    if len(arguments) == 1 and term.functor in _PREFIX:
        return _show_prefix(term.functor, arguments[0], priority)
    if not arguments:
        return _show_atom(term.functor)
    return _show_atom(term.functor) + "(" + ", ".join(show(part, 999) for part in arguments) + ")"


def _bracketed(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def _show_atom(name: str) -> str:
    if _PLAIN_ATOM.match(name) and name not in _WORDS:
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
