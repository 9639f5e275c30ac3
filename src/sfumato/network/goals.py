"""The goal of an aggregate as a condition on individuals.

In:   the conjunction after the value, its person still a variable; the nodes there are.
Out:  Condition.
Not here: its truth (network/condition.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sfumato.core.domain import Categories, Scalar
from sfumato.lang.spec import Column, Relation, Spec
from sfumato.lang.term import Compound, Position, Term, Text, Variable, indicator, is_ground, show, variables
from sfumato.network.condition import Comparison, Condition, Every, LevelIs, Member, Not, Operator, Some
from sfumato.network.convert import OPERATORS, conjuncts, expression_of, level_of
from sfumato.network.expression import Level
from sfumato.network.indicator import always, has_chance
from sfumato.network.network import Node
from sfumato.network.refusal import check_fed_by_tables, refusal
from sfumato.network.tables import layout_of

__all__ = ["Goals"]


@dataclass(frozen=True)
class Goals:
    """Reads goals about one dataset's individuals; `person` is the variable the nodes' names use."""

    spec: Spec
    identity: str
    person: Variable
    nodes: Mapping[str, Node]

    def condition(self, goal: Term, position: Position | None) -> Condition:
        """The condition of a conjunction; the literal that says who is an individual adds nothing."""
        parts = [part for part in conjuncts(goal) if not self._says_who(part)]
        listing = [part for part in parts if self._lists(part)]
        parts = [part for part in parts if part not in listing]
        self._check_joined(parts, position)
        only = self._only(listing, parts, position)
        return Every(tuple(self._literal(part, position, only) for part in parts))

    def _only(self, asked: Sequence[Term], parts: Sequence[Term], position: Position | None) -> dict[str, list[Level]]:
        """What each thing that is asked for may be."""
        only: dict[str, list[Level]] = {}
        for part in asked:
            thing = self._listing(part, parts, position)
            levels = [level_of(term, position) for term in self.spec.listings[indicator(part)]]
            only[thing] = [level for level in only.get(thing, levels) if level in levels]
        return only

    def _lists(self, literal: Term) -> bool:
        """Whether it asks for one of the things that the study lists, as drug(D) does."""
        match literal:
            case Compound(arguments=(Variable() as thing,)):
                return thing != self.person and indicator(literal) in self.spec.listings
        return False

    def _listing(self, literal: Term, others: Sequence[Term], position: Position | None) -> str:
        """The variable such a literal is about: a relation beside it must bind it."""
        (thing,) = variables(literal)
        if any(isinstance(part, Compound) and thing in part.arguments and self._is_fed(part) for part in others):
            return thing.name
        raise refusal(
            position,
            f"{show(literal)} inside an aggregate's goal is about no relation beside it.",
            f"Move it into the body of the clause (after :-), or write a relation that binds {thing.name} beside it.",
        )

    def _is_fed(self, literal: Compound) -> bool:
        return any(indicator(relation.atom) == indicator(literal) for relation in self.spec.relations)

    def _check_joined(self, parts: Sequence[Term], position: Position | None) -> None:
        """Each relation is looked up by itself: a thing that two of them share must be known before."""
        met: set[Variable] = set()
        for part in parts:
            own = set(variables(part)) - {self.person}
            if own & met:
                name = min(variable.name for variable in own & met)
                raise refusal(
                    position,
                    f"{name} joins two conditions on private rows.",
                    f"Bind it in the body of the clause, as in :- kind({name}), which makes one aggregate of each.",
                )
            met |= own

    def _says_who(self, literal: Term) -> bool:
        return (
            isinstance(literal, Compound)
            and indicator(literal) == self.identity
            and literal.arguments == (self.person,)
        )

    def _literal(
        self, literal: Term, position: Position | None, only: Mapping[str, Sequence[Level]] | None = None
    ) -> Condition:
        match literal:
            case Compound(functor=",") | Compound(functor="true", arguments=()):
                return self.condition(literal, position)
            case Compound(functor=";", arguments=(left, right)):
                return Some((self._branch(left, position), self._branch(right, position)))
            case Compound(functor="\\+" | "not", arguments=(inner,)):
                return Not(self._branch(inner, position))
            case Compound(functor=functor, arguments=(left, right)) if functor in OPERATORS:
                return self._comparison(OPERATORS[functor], left, right, position)
            case Compound():
                return self._relation(literal, position, only or {})
        raise refusal(position, f"{show(literal)} is not a condition.", "Write a comparison or a relation of a table.")

    def _branch(self, goal: Term, position: Position | None) -> Condition:
        parts = conjuncts(goal)
        return self._literal(parts[0], position) if len(parts) == 1 else self.condition(goal, position)

    def _comparison(self, operator: Operator, left: Term, right: Term, position: Position | None) -> Condition:
        for variable, constant in ((left, right), (right, left)):
            node = self.nodes.get(show(variable))
            levels = _levels(node) if node is not None else None
            if node is not None and levels is not None and not self._numeric(levels, constant):
                return self._level(node, levels, operator, constant, position)
        return Comparison(operator, self._number(left, position), self._number(right, position))

    def _numeric(self, levels: Categories, constant: Term) -> bool:
        return levels.scalar == "int" and not isinstance(constant, Text)

    def _level(
        self, node: Node, levels: Categories, operator: Operator, constant: Term, position: Position | None
    ) -> Condition:
        if operator not in ("=", "!="):
            raise refusal(position, f"{node.name} is a category and has no order.", "Compare it with = or \\=.")
        if node.source is None and not node.is_random:
            raise refusal(
                position, f"{node.name} is a category without a column and without a law.", "Give it one of both."
            )
        level = _category(levels, level_of(constant, position))
        if level is None:
            raise refusal(
                position, f"{show(constant)} is not a level of {node.name}.", f"Use one of {list(levels.values)}."
            )
        found = LevelIs(node.name, (level,))
        return found if operator == "=" else Not(found)

    def _number(self, term: Term, position: Position | None):
        expression = expression_of(term, self._name, position)
        for name in frozenset() if has_chance(expression) else expression.references():
            levels = _levels(self.nodes[name])
            if levels is not None and levels.scalar == "str":
                raise refusal(position, f"{name} is a category, not a number.", "Compare it with one of its levels.")
        return expression

    def _name(self, term: Term) -> str | None:
        name = show(term)
        return name if name in self.nodes and isinstance(term, Compound) else None

    def _relation(self, literal: Compound, position: Position | None, only: Mapping[str, Sequence[Level]]) -> Condition:
        name = indicator(literal)
        if name in self.spec.listings and is_ground(literal):
            return always(literal.arguments[0] in self.spec.listings[name])
        if name in self.spec.random_predicates:
            raise refusal(position, f"{show(literal)} is a random variable.", f"Compare it: {show(literal)} =:= 1.")
        members = tuple(self._member(one, literal, position, only) for one in self._feeding(literal, position))
        return members[0] if len(members) == 1 else Some(members)

    def _feeding(self, literal: Compound, position: Position | None) -> list[Relation | Column]:
        """The tables' columns that a relation stands for, which must be all there is of it."""
        name = indicator(literal)
        fed = [one for one in (*self.spec.relations, *self.spec.columns) if indicator(one.atom) == name]
        if not fed:
            raise refusal(
                position,
                f"{show(literal)} inside an aggregate's goal is fed by no table.",
                "Move it into the body of the clause (after :-), where the logic engine solves it.",
            )
        check_fed_by_tables(self.spec, name, position)
        return fed

    def _among(
        self, column: Column, wanted: Sequence[Level] | None, position: Position | None
    ) -> tuple[Level, ...] | None:
        """The listed things that may stand there; None where nothing is listed."""
        listed = self._listed(column, position)
        if wanted is None:
            return listed
        return tuple(level for level in wanted if listed is None or level in listed)

    def _matched(self, column: Column, given: Term, position: Position | None) -> Level:
        level, listed = level_of(given, position), self._known(column, position)
        if listed is not None and level not in listed:
            raise refusal(
                position,
                f"{show(given)} is none of the things that the study lists as {column.atom}: rows with it are "
                "left out.",
                f"Use a listed one, or add the fact {show(Compound(column.atom.functor, (given,)))}.",
            )
        return level

    def _member(
        self,
        declared: Relation | Column,
        literal: Compound,
        position: Position | None,
        only: Mapping[str, Sequence[Level]],
    ) -> Member:
        layout = layout_of(self.spec, declared.table)
        person, matches, among = None, [], []
        for pattern, given in zip(declared.atom.arguments, literal.arguments, strict=True):
            column = layout.bound(pattern.name) if isinstance(pattern, Variable) else None
            if column is None:
                raise refusal(
                    position, f"{show(pattern)} of {declared.atom} is bound by no column.", "Declare that column."
                )
            if given == self.person:
                self._check_once(literal, position)
                self._check_named(column, literal, position)
                person = column.name
            elif isinstance(given, Variable):
                if literal.arguments.count(given) > 1:
                    raise refusal(position, f"{show(given)} is unbound.", "Bind it in the body of the clause.")
                among.append((column.name, self._among(column, only.get(given.name), position)))
            else:
                matches.append((column.name, self._matched(column, given, position)))
        if person is None:
            raise refusal(
                position, f"{show(literal)} does not mention {self.person}.", "Move it into the body of the clause."
            )
        return Member(declared.table, person, tuple(matches), tuple(among))

    def _check_once(self, literal: Compound, position: Position | None) -> None:
        """Whom a row is about is looked up in one column of it."""
        if literal.arguments.count(self.person) > 1:
            raise refusal(
                position,
                f"{show(literal)} names {self.person} twice.",
                f"Put the rows in which both are one into a table of their own, with relation(Table, "
                f"own({self.person})), and write own({self.person}).",
            )

    def _check_named(self, column: Column, literal: Compound, position: Position | None) -> None:
        """The column in which individuals are looked up names individuals."""
        if indicator(column.atom) != self.identity:
            raise refusal(
                position,
                f"{show(literal)} has {self.person} where {column.table} names {column.atom}, which is no individual.",
                "Put what the relation says into the order of its line relation(Table, …), or declare the column as "
                f"{self.identity.partition('/')[0]}({self.person}).",
            )

    def _known(self, column: Column, position: Position | None) -> tuple[Level, ...] | None:
        """What the study lists of an identity column's kind; None if it lists nothing."""
        found = self.spec.listings.get(indicator(column.atom))
        return None if found is None else tuple(level_of(term, position) for term in found)

    def _listed(self, column: Column, position: Position | None) -> tuple[Level, ...] | None:
        """The same where a thing is left open: then clauses with conditions do not say which rows count."""
        name = indicator(column.atom)
        if name not in self.spec.listings and any(indicator(clause.head) == name for clause in self.spec.clauses):
            raise refusal(
                position,
                f"{name} is defined by clauses with conditions, which do not say which rows of {column.table} count.",
                f"List its things in facts, or bind {show(column.atom.arguments[0])} in the body of the clause.",
            )
        return self._known(column, position)


def _levels(node: Node) -> Categories | None:
    """The categories of an observed variable, or of one that is drawn from finitely many words."""
    if isinstance(node.domain, Categories):
        return node.domain
    if not any(isinstance(level, str) for level in node.levels):
        return None
    return Categories(cast(tuple[Scalar, ...], node.levels))


def _category(domain: Categories, level: Level) -> Level | None:
    """The listed level a constant means; true and false are the atoms of booleans."""
    if domain.scalar == "bool":
        named = {"true": True, "false": False, 1: True, 0: False}
        level = named.get(level, level)  # type: ignore[arg-type]
    listed = [value for value in domain.values if value == level and isinstance(value, str) == isinstance(level, str)]
    return listed[0] if listed else None
