"""What a study's clauses derive, held against what they should: every variable has one meaning, nothing hangs loose.

In:   a Spec without errors in its text.
Out:  problems.
Not here: names, tables and leaks (lang/structure.py); whether a plan can keep the promise (plan/).

The clauses are run for one symbolic individual and one symbolic row of each public table: no data is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from sfumato.lang.cells import check_cells
from sfumato.lang.circles import first_circle
from sfumato.lang.derivations import Dependency
from sfumato.lang.derived import DerivedNetwork, problem_at, published_variables, shown_variable
from sfumato.lang.expressions import cpf_problems
from sfumato.lang.ground import Derivation, collect, derive, first_failure
from sfumato.lang.instances import check_instances
from sfumato.lang.limits import Limits, Meter
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause
from sfumato.lang.safety import called, single_variables
from sfumato.lang.spec import Spec
from sfumato.lang.step_names import check_step_names
from sfumato.lang.symbolic import symbolic_facts
from sfumato.lang.term import Compound, ListTerm, Position, Term, indicator, is_ground, show, variables, walk
from sfumato.lang.vocabulary import UNSPECIFIED

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
    network = DerivedNetwork(spec, grounding, meter)
    yield from _open_answers(network, derivation)
    yield from _meanings(network)
    yield from _expressions(network)
    yield from _cycles(network)
    yield from _observed(network)
    yield from check_cells(network)
    yield from _exact(network)

    def left_open(clause: Clause) -> bool:
        return _asks_public_rows(network, clause)

    yield from check_instances(spec, derivation, network.definitions.__contains__, left_open)
    yield from check_step_names(spec, derivation, left_open)


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


def _open_answers(network: DerivedNetwork, derivation: Derivation) -> Iterator[Problem]:
    """Variables that no condition binds."""
    reported = set()
    for answer in derivation.of("random/1", "depends/3", "cpd/2", "|/2", "dp_rv/2", "personal_rv/2", "instance_rv/3"):
        left = variables(answer.head)
        if left and answer.clause not in reported:
            reported.add(answer.clause)
            names = ", ".join(variable.name for variable in left)
            yield problem_at(
                network,
                "unbound",
                f"{answer.clause.head.functor} leaves {names} unbound in {shown_variable(answer.head)}",
                answer.clause.position,
                "Bind it by a condition, for example patient(P) or drug(D).",
            )


def _meanings(network: DerivedNetwork) -> Iterator[Problem]:
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
            yield problem_at(
                network,
                "unknown-variable",
                f"{shown_variable(variable)} has a CPF and is not declared random",
                definitions[0].position,
                "Declare it with random/1.",
                nearest=nearest(show(variable), network.names()),
            )


def _meaning(network: DerivedNetwork, variable: Term) -> Problem | None:
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


def _two_meanings(network: DerivedNetwork, variable: Term, what: str) -> Problem:
    position = network.declared_at(variable) or network.aggregates[variable].position
    return problem_at(network, "two-meanings", f"{shown_variable(variable)} has {what}", position, "Keep one of them.")


def _several(network: DerivedNetwork, variable: Term, definitions: list[Dependency]) -> Problem:
    lines = sorted({one.position.line for one in definitions if one.position})
    if len(lines) == 1:
        open_ones = _left_open(network, definitions[0].position)
        why = f"one clause gives it {len(definitions)} of them, because a condition has several solutions{open_ones}"
        way_out = "Bind the variable that is left open (pass it on as an argument), or narrow a condition."
    else:
        why = "they come from the clauses in lines " + ", ".join(map(str, lines))
        way_out = "Add conditions that exclude each other, or remove one clause."
    shown = "; ".join(shown_variable(one.cpf) for one in definitions[:2])
    return problem_at(
        network,
        "several-cpfs",
        f"{shown_variable(variable)} has {len(definitions)} CPFs: {why}",
        definitions[0].position,
        way_out,
        expected=f"one CPF; found {shown}",
    )


def _left_open(network: DerivedNetwork, position: Position | None) -> str:
    """Variables that stand alone in the predicates a clause calls: the usual cause of several solutions."""
    clause = next((c for c in network.spec.clauses if c.position == position), None)
    helpers = {indicator(goal) for goal in called(clause.body)} if clause else set()
    for helper in network.spec.clauses:
        if indicator(helper.head) in helpers and helper.body is not None:
            names = single_variables(helper)
            if names:
                return f" ({', '.join(names)} in {indicator(helper.head)}, line {helper.position.line}, stays open)"
    return ""


def _none(network: DerivedNetwork, variable: Term) -> Problem:
    """A declared variable without a meaning: an error where something seen depends on it."""
    needed = variable in network.needed
    covering = network.meant_for(variable)
    if covering:
        return _failing(network, variable, covering[0])
    consequence = "" if needed else "; nothing can use it"
    return problem_at(
        network,
        "no-cpf",
        f"{shown_variable(variable)} is declared and has neither a CPF nor a column{consequence}",
        network.declared_at(variable),
        "Add depends(Child, Parents, CPF), feed it with column(Table, name, Atom), or remove its declaration.",
        # A network in which nothing is seen yet may be unfinished.
        severity="error" if network.needed else "warning",
    )


def _failing(network: DerivedNetwork, variable: Term, clause: Clause) -> Problem:
    """The clause that was meant for a variable, and the condition that keeps it from giving a CPF."""
    failed = first_failure(network.spec, clause, variable, symbolic_facts(network.spec), network.meter)
    condition = f"the condition {shown_variable(failed)} fails" if failed is not None else "a condition fails"
    empty = failed is not None and any(part == ListTerm() for part in walk(failed))
    # Rows of a public table are not read here: a condition on them may well hold when they are.
    public = _asks_public_rows(network, clause)
    return problem_at(
        network,
        "not-checked" if public else "no-cpf",
        f"{shown_variable(variable)} is declared and the clause meant for it gives no CPF: {condition}"
        + (" (a findall collected nothing, and no clause covers the empty list)" if empty else "")
        + (" without the rows of a public table, which a check does not read" if public else ""),
        clause.position,
        "Cover the missing case with a clause of its own.",
        severity="error" if variable in network.needed and not public else "warning",
    )


def _asks_public_rows(network: DerivedNetwork, clause: Clause) -> bool:
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


def _expressions(network: DerivedNetwork) -> Iterator[Problem]:
    found: dict[tuple[str, Position | None], list[Problem]] = {}
    for one in network.grounding.dependencies:
        for code, message, way_out, close in _dependency_problems(network, one):
            severity = "warning" if code == "unspecified" and one.child not in network.needed else "error"
            problem = problem_at(network, code, message, one.position, way_out, nearest=close, severity=severity)
            found.setdefault((code, one.position), []).append(problem)
    for alike in found.values():
        yield _together(list(dict.fromkeys(alike)))


def _dependency_problems(network: DerivedNetwork, one: Dependency) -> Iterator[tuple[str, str, str, str | None]]:
    if not is_ground(one.child) or not all(map(is_ground, one.parents)) or not is_ground(one.cpf):
        return
    for parent in one.parents:
        if parent not in network.variables:
            yield (
                "unknown-variable",
                f"{shown_variable(parent)} is a parent of {shown_variable(one.child)} and is not a declared random "
                "variable",
                "Declare it with random/1, or correct the name.",
                nearest(show(parent), network.names()),
            )
    if one.cpf == Compound(UNSPECIFIED):
        yield (
            "unspecified",
            f"{shown_variable(one.child)} has parents and no distribution",
            f"Add cpd({shown_variable(one.child)}, CPF), or write depends(Child, Parents, CPF).",
            None,
        )
        return
    yield from cpf_problems(one, network.spec.random_predicates)


def _cycles(network: DerivedNetwork) -> Iterator[Problem]:
    circle = first_circle(network.variables, network.parents)
    if circle:
        definition = network.definitions.get(circle[0])
        yield problem_at(
            network,
            "cycle",
            f"{shown_variable(circle[0])} depends on itself: {' <- '.join(map(shown_variable, circle))}",
            definition[0].position if definition else network.declared_at(circle[0]),
            "Break the circle: a Bayesian network has none.",
        )


def _observed(network: DerivedNetwork) -> Iterator[Problem]:
    """What is seen exists, and somebody is protected in it."""
    datasets = {one.name: one.dataset for one in network.spec.requirements}
    seen = [(one.variable, one.requirement, one.position) for one in network.grounding.observed]
    for one in network.grounding.publications:
        seen += [(pattern, one.requirement, one.position) for pattern in published_variables(one.what)]
    reported = set()
    for variable, requirement, position in seen:
        if (indicator(variable), position) not in reported:
            problem = _wrongly_seen(network, variable, requirement, position, datasets.get(requirement))
            if problem is not None:
                reported.add((indicator(variable), position))
                yield problem


def _wrongly_seen(
    network: DerivedNetwork, variable: Term, requirement: Term, position: Position | None, dataset: str | None
) -> Problem | None:
    """What is wrong with showing a variable under a requirement on a dataset (None: there is no such requirement)."""
    covered = network.covered(variable)
    if not covered or covered[0] not in network.variables:
        return problem_at(
            network,
            "unknown-variable",
            f"{shown_variable(variable)} is shown to somebody and is not a declared random variable",
            position,
            "Declare it with random/1 or as an aggregate, or correct the name.",
            nearest=nearest(show(variable), network.names()),
        )
    if dataset is None and network.derives_requirement(position):
        return problem_at(
            network,
            "unknown-requirement",
            f"the privacy requirement {show(requirement)} is not declared",
            position,
            f"Declare it: privacy_requirement({show(requirement)}, Dataset, dp(Epsilon, Delta)).",
        )
    if dataset is None:
        return None  # written out, so lang/structure.py says it
    if strangers := network.unprotected(covered, dataset):
        return problem_at(
            network,
            "unprotected",
            f"{shown_variable(variable)} rests on individuals of {strangers}, whom {show(requirement)} does not "
            f"protect: it is about {dataset}",
            position,
            f"Publish it under a requirement on {strangers}: privacy_requirement(Name, {strangers}, Metric).",
        )
    if covered[0] not in network.touched(dataset):
        return problem_at(
            network,
            "nobody-protected",
            f"{shown_variable(variable)} does not depend on any individual of the requirement's dataset",
            position,
            "Publish it without a requirement's help, or check that the right variable and dataset are named.",
            severity="warning",
        )
    return None


def _exact(network: DerivedNetwork) -> Iterator[Problem]:
    """Whoever observes a variable exactly is promised nothing about it."""
    for position in dict.fromkeys(one.position for one in network.grounding.observations):
        one = next(one for one in network.grounding.observations if one.position == position)
        yield problem_at(
            network,
            "exact",
            f"{shown_variable(one.observer)} learns {shown_variable(one.variable)} exactly: no requirement protects "
            "it from them",
            position,
            "Keep it if that is meant; otherwise use dp_rv with a requirement.",
            severity="warning",
        )
