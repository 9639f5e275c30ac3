"""What a study's clauses derive, held against what they should: every variable has one meaning, nothing hangs loose.

In:   a Spec without errors in its text.
Out:  problems.
Not here: names, tables and leaks (lang/structure.py); whether a plan can keep the promise (plan/).

The clauses are run for one symbolic individual and one symbolic row of each public table: no data is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from sfumato.lang.cells import check_cells
from sfumato.lang.circles import first_circle
from sfumato.lang.expressions import cpf_problems
from sfumato.lang.ground import Derivation, collect, derive, first_failure
from sfumato.lang.instances import check_instances
from sfumato.lang.limits import Limits, Meter
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause, goals
from sfumato.lang.safety import called, single_variables
from sfumato.lang.spec import Dependency, Grounding, Spec
from sfumato.lang.symbolic import symbolic_facts
from sfumato.lang.term import (
    Compound,
    ListTerm,
    Position,
    Term,
    indicator,
    is_ground,
    match,
    show,
    variables,
    walk,
)
from sfumato.lang.vocabulary import PUBLICATION_FORMS, UNSPECIFIED

__all__ = ["check_grounded"]


def check_grounded(spec: Spec, limits: Limits | None = None) -> Iterator[Problem]:
    """Every problem that shows when the clauses are run."""
    meter = Meter(limits or Limits())
    facts = symbolic_facts(spec)
    derivation = derive(spec, facts, meter)
    if derivation.problems:
        # What could not be derived would show up below as missing: say the cause alone.
        yield from _unanswered(spec, derivation)
        return
    spec.derived[facts] = grounding = collect(derivation)
    network = _Network(spec, grounding, meter)
    yield from _open_answers(network, derivation)
    yield from _meanings(network)
    yield from _expressions(network)
    yield from _cycles(network)
    yield from _observed(network)
    yield from check_cells(network, _error)
    yield from _exact(network)
    yield from check_instances(
        spec, derivation, network.definitions.__contains__, lambda clause: _asks_public_rows(network, clause)
    )


def _unanswered(spec: Spec, derivation: Derivation) -> Iterator[Problem]:
    for problem in derivation.problems:
        if problem.code == "logic" and spec.public_tables:
            yield Problem(
                "warning",
                "not-checked",
                problem.message + "; it may need the rows of a public table, which a check does not read",
                problem.position,
                problem.clause,
                way_out="Plan the study with its public tables at hand; it is checked again there.",
            )
        else:
            yield problem


@dataclass
class _Network:
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
        self.needed = self._needed()

    def clause(self, position: Position | None) -> str:
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
        patterns = [atom for term in terms for atom in _atoms(term) if indicator(atom) in self.spec.random_predicates]
        return [known for known in self.variables for pattern in patterns if match(pattern, known) is not None]

    def targets(self) -> list[tuple[Term, Position | None]]:
        """Everything somebody gets to see, with the place that says so."""
        seen = [(one.variable, one.position) for one in self.grounding.observed]
        for one in self.grounding.publications:
            seen += [
                (variable, one.position) for pattern in _published(one.what) for variable in self._covered(pattern)
            ]
        return seen

    def _covered(self, pattern: Term) -> list[Term]:
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


def _published(what: Term) -> list[Term]:
    if not isinstance(what, Compound) or indicator(what) not in PUBLICATION_FORMS:
        return [what]
    inner = what.arguments[:1] if what.functor in ("table", "synthetic", "channel") else what.arguments
    return [atom for part in inner for atom in (part.items if isinstance(part, ListTerm) else (part,))]


def _shown(term: Term) -> str:
    """A variable without the name of the symbolic individual."""
    shown = show(term).replace("'$", "").replace("_1'", "")
    return shown if len(shown) <= 160 else shown[:160] + " …"


def _error(
    network: _Network, code: str, message: str, position: Position | None, way_out: str, **more: str | None
) -> Problem:
    place = position or Position("study", 1, 1)
    severity = more.pop("severity", None) or "error"
    return Problem(severity, code, message, place, network.clause(position), way_out=way_out, **more)  # type: ignore[arg-type]


def _open_answers(network: _Network, derivation: Derivation) -> Iterator[Problem]:
    """Variables that no condition binds."""
    reported = set()
    for answer in derivation.of("random/1", "depends/3", "cpd/2", "|/2", "dp_rv/2", "personal_rv/2", "instance_rv/3"):
        left = variables(answer.head)
        if left and answer.clause not in reported:
            reported.add(answer.clause)
            names = ", ".join(variable.name for variable in left)
            yield _error(
                network,
                "unbound",
                f"{answer.clause.head.functor} leaves {names} unbound in {_shown(answer.head)}",
                answer.clause.position,
                "Bind it by a condition, for example patient(P) or drug(D).",
            )


def _meanings(network: _Network) -> Iterator[Problem]:
    """Each variable has one meaning: a cell, a CPF, or an aggregate."""
    found: dict[tuple[str, Position], list[Problem]] = {}
    for variable in network.variables:
        problem = _meaning(network, variable)
        if problem is not None:
            found.setdefault((problem.code, problem.position), []).append(problem)
    for alike in found.values():
        yield _together(alike)
    for variable, definitions in network.definitions.items():
        if variable not in network.variables and is_ground(variable):
            yield _error(
                network,
                "unknown-variable",
                f"{_shown(variable)} has a CPF and is not declared random",
                definitions[0].position,
                "Declare it with random/1.",
                nearest=nearest(show(variable), network.names()),
            )


def _meaning(network: _Network, variable: Term) -> Problem | None:
    definitions = network.definitions.get(variable, [])
    cell = network.column(variable)
    if variable in network.aggregates:
        return (
            _two_meanings(network, variable, "an aggregate and also a CPF or a column") if definitions or cell else None
        )
    if len(definitions) > 1:
        return _several(network, variable, definitions)
    if definitions and cell:
        return _two_meanings(network, variable, "a column and also a CPF")
    return None if definitions or cell else _none(network, variable)


def _together(alike: list[Problem]) -> Problem:
    """One problem for all variables of a clause, the worst first."""
    first = min(alike, key=lambda problem: problem.severity)
    if len(alike) == 1:
        return first
    return dataclasses.replace(first, message=f"{first.message} (and {len(alike) - 1} more like it)")


def _two_meanings(network: _Network, variable: Term, what: str) -> Problem:
    position = network.declared_at(variable) or network.aggregates[variable].position
    return _error(network, "two-meanings", f"{_shown(variable)} has {what}", position, "Keep one of them.")


def _several(network: _Network, variable: Term, definitions: list[Dependency]) -> Problem:
    lines = sorted({one.position.line for one in definitions if one.position})
    if len(lines) == 1:
        open_ones = _left_open(network, definitions[0].position)
        why = f"one clause gives it {len(definitions)} of them, because a condition has several solutions{open_ones}"
        way_out = "Bind the variable that is left open (pass it on as an argument), or narrow a condition."
    else:
        why = "they come from the clauses in lines " + ", ".join(map(str, lines))
        way_out = "Add conditions that exclude each other, or remove one clause."
    shown = "; ".join(_shown(one.cpf) for one in definitions[:2])
    return _error(
        network,
        "several-cpfs",
        f"{_shown(variable)} has {len(definitions)} CPFs: {why}",
        definitions[0].position,
        way_out,
        expected=f"one CPF; found {shown}",
    )


def _left_open(network: _Network, position: Position | None) -> str:
    """Variables that stand alone in the predicates a clause calls: the usual cause of several solutions."""
    clause = next((c for c in network.spec.clauses if c.position == position), None)
    helpers = {indicator(goal) for goal in called(clause.body)} if clause else set()
    for helper in network.spec.clauses:
        if indicator(helper.head) in helpers and helper.body is not None:
            names = single_variables(helper)
            if names:
                return f" ({', '.join(names)} in {indicator(helper.head)}, line {helper.position.line}, stays open)"
    return ""


def _none(network: _Network, variable: Term) -> Problem:
    """A declared variable without a meaning: an error where something seen depends on it."""
    needed = variable in network.needed
    covering = network.meant_for(variable)
    if covering:
        return _failing(network, variable, covering[0])
    consequence = "" if needed else "; nothing can use it"
    return _error(
        network,
        "no-cpf",
        f"{_shown(variable)} is declared and has neither a CPF nor a column{consequence}",
        network.declared_at(variable),
        "Add depends(Child, Parents, CPF), feed it with column(Table, name, Atom), or remove its declaration.",
        # A network in which nothing is seen yet may be unfinished.
        severity="error" if network.needed else "warning",
    )


def _failing(network: _Network, variable: Term, clause: Clause) -> Problem:
    """The clause that was meant for a variable, and the condition that keeps it from giving a CPF."""
    failed = first_failure(network.spec, clause, variable, symbolic_facts(network.spec), network.meter)
    condition = f"the condition {_shown(failed)} fails" if failed is not None else "a condition fails"
    empty = failed is not None and any(part == ListTerm() for part in walk(failed))
    # Rows of a public table are not read here: a condition on them may well hold when they are.
    public = _asks_public_rows(network, clause)
    return _error(
        network,
        "not-checked" if public else "no-cpf",
        f"{_shown(variable)} is declared and the clause meant for it gives no CPF: {condition}"
        + (" (a findall collected nothing, and no clause covers the empty list)" if empty else "")
        + (" without the rows of a public table, which a check does not read" if public else ""),
        clause.position,
        "Cover the missing case with a clause of its own.",
        severity="error" if variable in network.needed and not public else "warning",
    )


def _asks_public_rows(network: _Network, clause: Clause) -> bool:
    """Whether a clause, or anything it calls, asks for rows of a public table."""
    public = {name for name, (_, is_public) in network.spec.table_predicates.items() if is_public}
    seen: set[str] = set()
    waiting = [indicator(goal) for goal in called(clause.body)]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += [indicator(goal) for one in network.by_name.get(name, []) for goal in called(one.body)]
    return bool(seen & public)


def _expressions(network: _Network) -> Iterator[Problem]:
    found: dict[tuple[str, Position | None], list[Problem]] = {}
    for one in network.grounding.dependencies:
        for code, message, way_out, close in _dependency_problems(network, one):
            severity = "warning" if code == "unspecified" and one.child not in network.needed else "error"
            problem = _error(network, code, message, one.position, way_out, nearest=close, severity=severity)
            found.setdefault((code, one.position), []).append(problem)
    for alike in found.values():
        yield _together(list(dict.fromkeys(alike)))


def _dependency_problems(network: _Network, one: Dependency) -> Iterator[tuple[str, str, str, str | None]]:
    if not is_ground(one.child) or not all(map(is_ground, one.parents)) or not is_ground(one.cpf):
        return
    for parent in one.parents:
        if parent not in network.variables:
            yield (
                "unknown-variable",
                f"{_shown(parent)} is a parent of {_shown(one.child)} and is not a declared random variable",
                "Declare it with random/1, or correct the name.",
                nearest(show(parent), network.names()),
            )
    if one.cpf == Compound(UNSPECIFIED):
        yield (
            "unspecified",
            f"{_shown(one.child)} has parents and no distribution",
            f"Add cpd({_shown(one.child)}, CPF), or write depends(Child, Parents, CPF).",
            None,
        )
        return
    yield from cpf_problems(one, network.spec.random_predicates)


def _cycles(network: _Network) -> Iterator[Problem]:
    circle = first_circle(network.variables, network.parents)
    if circle:
        definition = network.definitions.get(circle[0])
        yield _error(
            network,
            "cycle",
            f"{_shown(circle[0])} depends on itself: {' <- '.join(map(_shown, circle))}",
            definition[0].position if definition else network.declared_at(circle[0]),
            "Break the circle: a Bayesian network has none.",
        )


def _observed(network: _Network) -> Iterator[Problem]:
    """What is seen exists, and somebody is protected in it."""
    datasets = {one.name: one.dataset for one in network.spec.requirements}
    seen = [(one.variable, one.requirement, one.position) for one in network.grounding.observed]
    for one in network.grounding.publications:
        seen += [(pattern, one.requirement, one.position) for pattern in _published(one.what)]
    reported = set()
    for variable, requirement, position in seen:
        if (indicator(variable), position) not in reported:
            problem = _wrongly_seen(network, variable, requirement, position, datasets.get(requirement))
            if problem is not None:
                reported.add((indicator(variable), position))
                yield problem


def _wrongly_seen(
    network: _Network, variable: Term, requirement: Term, position: Position | None, dataset: str | None
) -> Problem | None:
    """What is wrong with showing a variable under a requirement on a dataset (None: there is no such requirement)."""
    covered = network._covered(variable)
    if not covered or covered[0] not in network.variables:
        return _error(
            network,
            "unknown-variable",
            f"{_shown(variable)} is shown to somebody and is not a declared random variable",
            position,
            "Declare it with random/1 or as an aggregate, or correct the name.",
            nearest=nearest(show(variable), network.names()),
        )
    if dataset is None and network.derives_requirement(position):
        return _error(
            network,
            "unknown-requirement",
            f"the privacy requirement {show(requirement)} is not declared",
            position,
            f"Declare it: privacy_requirement({show(requirement)}, Dataset, dp(Epsilon, Delta)).",
        )
    if dataset is None:
        return None  # written out, so lang/structure.py says it
    if strangers := network.unprotected(covered, dataset):
        return _error(
            network,
            "unprotected",
            f"{_shown(variable)} rests on individuals of {strangers}, whom {show(requirement)} does not protect: "
            f"it is about {dataset}",
            position,
            f"Publish it under a requirement on {strangers}: privacy_requirement(Name, {strangers}, Metric).",
        )
    if covered[0] not in network.touched(dataset):
        return _error(
            network,
            "nobody-protected",
            f"{_shown(variable)} does not depend on any individual of the requirement's dataset",
            position,
            "Publish it without a requirement's help, or check that the right variable and dataset are named.",
            severity="warning",
        )
    return None


def _exact(network: _Network) -> Iterator[Problem]:
    """Whoever observes a variable exactly is promised nothing about it."""
    for position in dict.fromkeys(one.position for one in network.grounding.observations):
        one = next(one for one in network.grounding.observations if one.position == position)
        yield _error(
            network,
            "exact",
            f"{_shown(one.observer)} learns {_shown(one.variable)} exactly: no requirement protects it from them",
            position,
            "Keep it if that is meant; otherwise use dp_rv with a requirement.",
            severity="warning",
        )
