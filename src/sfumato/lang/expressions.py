"""Whether a conditional probability function is made of known functions, numbers and the named parents.

In:   a Dependency.
Out:  findings.
Not here: its value, its range, its slope (network/expression.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.lang.derivations import Dependency
from sfumato.lang.problem import nearest
from sfumato.lang.term import Compound, ListTerm, Number, Term, Text, indicator, show
from sfumato.lang.vocabulary import DISTRIBUTIONS, FUNCTIONS

__all__ = ["cpf_problems"]

_NAMES = ", ".join(sorted({name.split("/")[0] for name in {*FUNCTIONS, *DISTRIBUTIONS} if name[0].isalpha()}))
_COMPARISONS = frozenset(f"{sign}/2" for sign in ("<", "=<", ">", ">=", "=", "==", "=:=", "\\=", "\\==", "=\\="))
_ON_LISTS = frozenset(["sum/1", "mean/1", "min/1", "max/1"])

Finding = tuple[str, str, str, str | None]


def cpf_problems(one: Dependency, random: frozenset[str]) -> Iterator[Finding]:
    """What is wrong with a CPF: (code, message, way out, nearest name)."""
    yield from _expression(one, one.cpf, random)


def _expression(one: Dependency, term: Term, random: frozenset[str]) -> Iterator[Finding]:
    if isinstance(term, Number) or term in one.parents:
        return
    if isinstance(term, Compound):
        yield from _function(one, term, random)
    else:
        yield _finding(one, f"{_shown(term)} is not a number or a parent", "Write an expression.")


def _function(one: Dependency, term: Compound, random: frozenset[str]) -> Iterator[Finding]:
    name = indicator(term)
    if name in _ON_LISTS:
        yield from _on_list(one, term, random)
    elif name == "discrete/1":
        yield from _discrete(one, term.arguments[0], random)
    elif name == "lookup/2":
        yield from _lookup(one, term, random)
    elif name == "probability/1":
        yield from _chance(one, term.arguments[0], random)
    elif name in FUNCTIONS or name in DISTRIBUTIONS:
        for part in term.arguments:
            yield from _expression(one, part, random)
    elif not term.functor.startswith("$"):  # a number from a row of a public table that is not here yet
        yield _unknown(one, term, random)


def _unknown(one: Dependency, term: Compound, random: frozenset[str]) -> Finding:
    if indicator(term) in random:
        return (
            "not-a-parent",
            f"the CPF of {_shown(one.child)} uses {_shown(term)}, which is not among its parents",
            "Add it to the list of parents, or correct the name.",
            nearest(show(term), (show(parent) for parent in one.parents)),
        )
    known = {*FUNCTIONS, *DISTRIBUTIONS, *random}
    return (
        "unknown-function",
        f"{indicator(term)} is neither a function of the language nor a random variable",
        f"Use one of {_NAMES}.",
        nearest(indicator(term), known),
    )


def _discrete(one: Dependency, items: Term, random: frozenset[str]) -> Iterator[Finding]:
    if not isinstance(items, ListTerm) or not items.items:
        yield _finding(one, "discrete needs a list value:probability", DISTRIBUTIONS["discrete/1"])
        return
    known, total = True, 0.0
    for item in items.items:
        if not isinstance(item, Compound) or indicator(item) != ":/2":
            yield _finding(one, "discrete needs a list value:probability", DISTRIBUTIONS["discrete/1"])
            return
        probability = item.arguments[1]
        if isinstance(probability, Number):
            total += probability.value
            if not 0 <= probability.value <= 1:
                yield _finding(one, "a probability lies between 0 and 1", "Correct the number.")
        else:
            known = False
            yield from _expression(one, probability, random)
    if known and abs(total - 1) > 1e-9:
        yield _finding(
            one, f"the probabilities of {_shown(one.child)} add up to {total:.6g}, not to 1", "Correct them."
        )


def _chance(one: Dependency, condition: Term, random: frozenset[str]) -> Iterator[Finding]:
    """The comparisons inside probability(…)."""
    name = indicator(condition) if isinstance(condition, Compound) else ""
    if name in (",/2", ";/2", "\\+/1", "not/1"):
        for part in condition.arguments:  # type: ignore[union-attr]
            yield from _chance(one, part, random)
    elif name in _COMPARISONS:
        for side in condition.arguments:  # type: ignore[union-attr]
            word = isinstance(side, Text) or (isinstance(side, Compound) and not side.arguments)
            if not word or indicator(side) in random:
                yield from _expression(one, side, random)
    else:
        yield _finding(one, f"{_shown(condition)} is not a comparison", "Write probability(rv(P) >= Number).")


def _on_list(one: Dependency, term: Compound, random: frozenset[str]) -> Iterator[Finding]:
    items = term.arguments[0]
    if not isinstance(items, ListTerm):
        yield _finding(one, f"{term.functor} with one argument needs a list", f"Write {term.functor}([A, B]).")
        return
    if not items.items and indicator(term) != "sum/1":
        yield _finding(
            one,
            f"{term.functor} of an empty list has no value",
            "Cover the case in which findall collects nothing with a clause of its own.",
        )
    for item in items.items:
        yield from _expression(one, item, random)


def _is_row(row: Term) -> bool:
    return isinstance(row, Compound) and indicator(row) == "row/2" and isinstance(row.arguments[0], ListTerm)


def _lookup(one: Dependency, term: Compound, random: frozenset[str]) -> Iterator[Finding]:
    keys, rows = term.arguments
    if not isinstance(keys, ListTerm) or not isinstance(rows, ListTerm):
        yield _finding(one, "lookup needs a list of parents and a list of rows", DISTRIBUTIONS["lookup/2"])
        return
    for key in keys.items:
        yield from _expression(one, key, random)
    seen: set[Term] = set()
    for row in rows.items:
        if not _is_row(row):
            yield _finding(one, "a row of lookup is row([value, …], CPF)", DISTRIBUTIONS["lookup/2"])
            continue
        assert isinstance(row, Compound)
        values, cpf = row.arguments
        assert isinstance(values, ListTerm)
        if len(values.items) != len(keys.items):
            yield _finding(
                one, f"a row of lookup needs {len(keys.items)} values", "One for each parent, in their order."
            )
        if values in seen:
            yield _finding(one, f"two rows of lookup begin with {_shown(values)}", "Keep one of them.")
        seen.add(values)
        yield from _expression(one, cpf, random)


def _finding(one: Dependency, message: str, way_out: str) -> Finding:
    return ("cpf", f"in the CPF of {_shown(one.child)}: {message}", way_out, None)


def _shown(term: Term) -> str:
    return show(term).replace("'$", "").replace("_1'", "")
