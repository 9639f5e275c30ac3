"""Whether a study's clauses can speak of one individual at a time only, by their form.

In:   a Spec, the predicates of what is told about each individual.
Out:  yes, or that their form does not show it.
Not here: seeing it by running the clauses with a second individual beside the first (network/build.py).

Every clause calls nothing but predicates of the study: no negation, no collecting, no comparison. A clause that asks,
through however many others, for what is told about individuals has one variable in all, which stands in its head and in
each such goal; a declaration has it in what it declares. Then by induction over a derivation whatever follows from what
is told about an individual holds nothing open, names that individual and no other: the one variable of its clause was
bound by a goal that names it, every other such goal has the same variable, and no study can write a symbolic
individual's name. So what follows for one individual follows from nobody else's facts, with others there or without
them, and what others add names them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from sfumato.lang.ground import asked_clauses, condition_of, rules_of
from sfumato.lang.reader import goals
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, ListTerm, Term, indicator, variables

__all__ = ["stand_alone"]

Rule = tuple[Compound, tuple[Term, ...]]


def stand_alone(spec: Spec, told: Set[str]) -> bool:
    """Whether no clause can relate individuals of whom `told` is known, such as patient/1."""
    asked = asked_clauses(spec)
    rules = [(head, goals(body)) for head, body in rules_of(spec, asked)]
    defined = {*told, *spec.table_predicates, *(indicator(head) for head, _ in rules)}
    if not all(_is_plain(goal, defined) for _, body in rules for goal in body):
        return False
    personal = _reached(rules, told)
    declared = [clause for _, clause in asked if _asking(goals(condition_of(clause)), personal)]
    named = all(variables(clause.head.arguments[0]) for clause in declared)
    return named and all(_is_of_one(head, body, personal) for head, body in rules)


def _is_plain(goal: Term, defined: Set[str]) -> bool:
    """Whether a goal calls a predicate of the study: no negation, no comparison, nothing that collects."""
    return isinstance(goal, Compound) and indicator(goal) in defined


def _reached(rules: Sequence[Rule], told: Set[str]) -> Set[str]:
    """The predicates that ask, through however many others, for what is told about individuals."""
    found, grown = set(told), True
    while grown:
        new = {indicator(head) for head, body in rules if _asking(body, found)} - found
        found |= new
        grown = bool(new)
    return found


def _asking(body: Sequence[Term], personal: Set[str]) -> list[Term]:
    return [goal for goal in body if indicator(goal) in personal]


def _is_of_one(head: Compound, body: tuple[Term, ...], personal: Set[str]) -> bool:
    asking = _asking(body, personal)
    if not asking:
        return True
    found = [one.name for one in variables(ListTerm((head, *body)))]
    # Every _ is another variable.
    return len(found) == 1 and found != ["_"] and all(variables(term) for term in (head, *asking))
