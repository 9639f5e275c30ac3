"""The random variables that a study's clauses derive, with their definitions: what the checks ask.

In:   a Spec and what its clauses derive.
Out:  DerivedNetwork; problems that say where in the study they are.
Not here: what is wrong with it (lang/check.py, lang/cells.py), the network that is evaluated (network/).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from sfumato.lang.derivations import Dependency, Grounding
from sfumato.lang.limits import Meter
from sfumato.lang.problem import Problem
from sfumato.lang.reader import Clause, goals
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, Position, Term, indicator, is_ground, match, show, variables, walk
from sfumato.lang.vocabulary import published_variables

__all__ = ["DerivedNetwork", "problem_at", "shown_variable"]


@final
@dataclass
class DerivedNetwork:
    """The derived variables with their definitions."""

    spec: Spec
    grounding: Grounding
    meter: Meter

    def __post_init__(self) -> None:
        self.text = {clause.position: clause.text for clause in self.spec.clauses}
        self.aggregates = {one.atom: one for one in self.grounding.aggregates}
        self.variables = dict.fromkeys([*self.grounding.variables, *self.aggregates])
        self.definitions: dict[Term, list[Dependency]] = {}
        for one in self.grounding.dependencies:
            self.definitions.setdefault(one.child, []).append(one)
        self._domains: dict[str, set[str]] = {}
        for dataset in self.spec.datasets:
            for goal in goals(dataset.goal):
                self._domains.setdefault(indicator(goal), set()).add(dataset.name)
        self._touched: dict[str, set[Term]] = {}
        self._declarations: dict[str, list[Clause]] = {}
        self._meant: dict[str, list[Clause]] = {}
        self.by_name: dict[str, list[Clause]] = {}
        for clause in self.spec.clauses:
            name = indicator(clause.head)
            self.by_name.setdefault(name, []).append(clause)
            if name == "random/1":
                self._declarations.setdefault(indicator(clause.head.arguments[0]), []).append(clause)
            if name == "depends/3":
                self._meant.setdefault(indicator(clause.head.arguments[0]), []).append(clause)
        self._fed = {indicator(one.atom) for one in (*self.spec.columns, *self.spec.relations)}
        self.needed = self._needed()

    def clause(self, position: Position | None) -> str:
        """The text of the clause at a place."""
        return self.text.get(position, "") if position else ""

    def meant_for(self, variable: Term) -> list[Clause]:
        """The depends clauses whose child is, or may become, this variable."""
        near = [*self._meant.get(indicator(variable), []), *self._meant.get("variable", [])]
        return [clause for clause in near if match(clause.head.arguments[0], variable) is not None]

    def names(self) -> Iterator[str]:
        """The derived variables as text, for suggestions."""
        return (show(variable) for variable in self.variables)

    def column(self, variable: Term) -> bool:
        """Whether a cell of a table holds this variable."""
        return any(match(column.atom, variable) is not None for column in self.spec.columns)

    def parents(self, variable: Term) -> list[Term]:
        """Direct parents; an aggregate's are the variables in its value and condition."""
        found = [parent for one in self.definitions.get(variable, []) for parent in one.parents]
        if variable in self.aggregates:
            found += self._aggregated(variable)
        return found

    def _aggregated(self, variable: Term) -> list[Term]:
        """The declared variables an aggregate's value and condition cover, person by person."""
        one = self.aggregates[variable]
        terms = [*(term for _, term in one.given), one.condition]
        words = {id(word) for literal in _atoms(one.condition) for word in self._words(literal)}
        patterns = [
            atom
            for term in terms
            for atom in _atoms(term)
            if indicator(atom) in self.spec.random_predicates and id(atom) not in words
        ]
        return [known for known in self.variables for pattern in patterns if match(pattern, known) is not None]

    def _words(self, literal: Compound) -> list[Term]:
        """What a condition names by a word, whatever else has that name: ann of treats(D, ann), f of sex(P) = f."""
        fed = indicator(literal) in self._fed or indicator(literal) in self.spec.random_predicates
        named = fed or literal.functor in ("=", "\\=", "==", "\\==")
        return [part for part in literal.arguments if isinstance(part, Compound) and not part.arguments and named]

    def plainly(self, text: str) -> str:
        """A text in which symbolic individuals have the name that the study gives them: age(P)."""
        for dataset in self.spec.datasets:
            text = text.replace(f"'${dataset.adjacency.unit}_1'", dataset.variable)
        return text

    def targets(self) -> list[tuple[Term, Position | None]]:
        """Everything somebody gets to see, with the place that says so."""
        seen = [(one.variable, one.position) for one in self.grounding.observed]
        for one in self.grounding.publications:
            seen += [
                (variable, one.position)
                for pattern in published_variables(one.what)
                for variable in self.covered(pattern)
            ]
        return seen

    def covered(self, pattern: Term) -> list[Term]:
        """The variables that a pattern stands for; itself where nothing is left open."""
        return [pattern] if is_ground(pattern) else [v for v in self.variables if match(pattern, v) is not None]

    def _needed(self) -> dict[Term, None]:
        """Everything that is seen and everything it is computed from."""
        found: dict[Term, None] = {}
        waiting = [target for target, _ in self.targets()]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found[current] = None
                waiting += self.parents(current)
        return found

    def touched(self, dataset: str) -> set[Term]:
        """Everything that depends on an individual of a dataset."""
        if dataset not in self._touched:
            children: dict[Term, list[Term]] = {}
            for variable in self.variables:
                for parent in self.parents(variable):
                    children.setdefault(parent, []).append(variable)
            waiting = [variable for variable in self.variables if self._personal(variable, dataset)]
            found: set[Term] = set()
            while waiting:
                current = waiting.pop()
                if current not in found:
                    found.add(current)
                    waiting += children.get(current, [])
            self._touched[dataset] = found
        return self._touched[dataset]

    def _personal(self, variable: Term, dataset: str) -> bool:
        """Whether a variable belongs to an individual of the dataset, or counts them."""
        if variable in self.aggregates:
            condition = self.aggregates[variable].condition
            return any(dataset in self._domains.get(indicator(goal), ()) for goal in goals(condition))
        for clause in self._declarations.get(indicator(variable), []):
            if match(clause.head.arguments[0], variable) is not None:
                return any(dataset in self._domains.get(indicator(goal), ()) for goal in goals(clause.body))
        return False

    def unprotected(self, seen: list[Term], dataset: str) -> str | None:
        """Another dataset with individuals of another kind behind what is seen; None if there is none."""
        own = {goal for goal, names in self._domains.items() if dataset in names}
        for other in self.spec.datasets:
            theirs = {goal for goal, names in self._domains.items() if other.name in names}
            if not own & theirs and self.touched(other.name) & set(seen):
                return other.name
        return None

    def derives_requirement(self, position: Position | None) -> bool:
        """Whether the clause that shows something names its requirement by a variable."""
        shown = (one for name in ("publish/3", "dp_rv/2") for one in self.by_name.get(name, []))
        named = {"publish": 2, "dp_rv": 0}
        return any(
            clause.position == position and bool(variables(clause.head.arguments[named[clause.head.functor]]))
            for clause in shown
        )

    def declared_at(self, variable: Term) -> Position | None:
        """The random/1 clause that declares a variable."""
        for clause in self._declarations.get(indicator(variable), []):
            if match(clause.head.arguments[0], variable) is not None:
                return clause.position
        return None


def _atoms(term: Term) -> list[Compound]:
    return [part for part in walk(term) if isinstance(part, Compound)]


def shown_variable(term: Term) -> str:
    """A variable without the name of the symbolic individual."""
    shown = show(term).replace("'$", "").replace("_1'", "")
    return shown if len(shown) <= 160 else shown[:160] + " …"


def problem_at(
    network: DerivedNetwork, code: str, message: str, position: Position | None, way_out: str, **more: str | None
) -> Problem:
    """A problem of the study at one of its clauses."""
    place = position or Position("study", 1, 1)
    severity = more.pop("severity", None) or "error"
    said = {word: text and network.plainly(text) for word, text in more.items()}
    message, way_out = network.plainly(message), network.plainly(way_out)
    return Problem(severity, code, message, place, network.clause(position), way_out=way_out, **said)  # type: ignore[arg-type]
