"""Whose a variable is, as a study says it: dataset_instance, instance_rv and personal_rv held against what is derived.

In:   a Spec, what its clauses derive for one symbolic individual of each dataset.
Out:  problems.
Not here: what a promise covers. Every cell of an individual is protected, whether instance_rv lists it or not: these
          words are statements, and one that is not true is an error. `explain` repeats those that are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sfumato.lang.ground import Answer, Derivation
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.reader import Clause
from sfumato.lang.spec import Dataset, Spec
from sfumato.lang.term import Compound, Term, indicator, is_ground, match, show, walk

__all__ = ["check_instances"]

_WORDS = ("dataset_instance/2", "instance_rv/3", "personal_rv/2")


def check_instances(
    spec: Spec, derivation: Derivation, computed: Callable[[Term], bool], left_open: Callable[[Clause], bool]
) -> Iterator[Problem]:
    """Every statement about instances that is not true, or that nothing can use; one problem for each clause.

    `computed` says whether a variable has a CPF, `left_open` whether a clause waits for rows of public tables.
    """
    known = {dataset.name: dataset for dataset in spec.datasets}
    known |= {part.name: replace(known[part.whole], name=part.name) for part in spec.divisions if part.whole in known}
    people = {name: _people(spec, dataset) for name, dataset in known.items()}
    listed: dict[tuple[str, Term], Term] = {}
    found = [
        *_unknown_datasets(spec, known),
        *_instances(derivation, known, people, listed),
        *_cells(derivation, known, listed, computed),
        *_personal(derivation, frozenset().union(*people.values())),
        *_for_nobody(spec, derivation, left_open),
    ]
    yield from {problem.position: problem for problem in reversed(found)}.values()


def _instances(
    derivation: Derivation,
    known: Mapping[str, Dataset],
    people: Mapping[str, frozenset[Term]],
    listed: dict[tuple[str, Term], Term],
) -> Iterator[Problem]:
    """One instance for each individual; `listed` receives whose each of them is."""
    instances: dict[tuple[str, Term], Term] = {}
    for answer in derivation.of("dataset_instance/2"):
        dataset, instance = str(answer.head.arguments[0]), answer.head.arguments[1]
        if dataset not in known:
            continue
        owners = _mentioned(instance, people[dataset])
        other = instances.setdefault((dataset, owners[0]), instance) if len(owners) == 1 else None
        if other == instance:
            listed[dataset, instance] = owners[0]
            continue
        wrong = (
            f"{_shown(instance)} does not name one individual of {dataset}"
            if other is None
            else f"one individual of {dataset} has two instances, {_shown(other)} and {_shown(instance)}"
        )
        way_out = f"Write dataset_instance({dataset}, instance(P)) :- {show(known[dataset].goal)}."
        yield _problem(answer.clause, wrong, way_out)


def _cells(
    derivation: Derivation,
    known: Mapping[str, Dataset],
    listed: Mapping[tuple[str, Term], Term],
    computed: Callable[[Term], bool],
) -> Iterator[Problem]:
    for answer in derivation.of("instance_rv/3"):
        if is_ground(answer.head) and str(answer.head.arguments[0]) in known:
            problem = _cell(answer, known, listed, computed)
            if problem is not None:
                yield problem


def _personal(derivation: Derivation, everybody: frozenset[Term]) -> Iterator[Problem]:
    for answer in derivation.of("personal_rv/2"):
        person, variable = answer.head.arguments
        if is_ground(answer.head) and not _owns(person, variable, everybody):
            yield _problem(
                answer.clause,
                f"{_shown(variable)} is not a variable of {_shown(person)} alone",
                "Name an individual of a dataset and a variable of their own: personal_rv(P, age(P)) :- patient(P).",
            )


def _for_nobody(spec: Spec, derivation: Derivation, left_open: Callable[[Clause], bool]) -> Iterator[Problem]:
    answered = {id(answer.clause) for answer in derivation.of(*_WORDS)}
    for clause in spec.clauses:
        if indicator(clause.head) in _WORDS and id(clause) not in answered and not left_open(clause):
            yield _problem(clause, f"this {clause.head.functor} holds for nobody", "Correct its conditions.")


def _cell(
    answer: Answer,
    known: Mapping[str, Dataset],
    listed: Mapping[tuple[str, Term], Term],
    computed: Callable[[Term], bool],
) -> Problem | None:
    """instance_rv names a listed instance and a cell of the same individual."""
    dataset, instance, variable = str(answer.head.arguments[0]), *answer.head.arguments[1:]
    if (dataset, instance) not in listed:
        way_out = f"Declare it: dataset_instance({dataset}, {_shown(instance)}) :- {show(known[dataset].goal)}."
        return _problem(answer.clause, f"{_shown(instance)} is no instance of {dataset}", way_out)
    owner = listed[dataset, instance]
    if not _owns(owner, variable, frozenset(person for (name, _), person in listed.items() if name == dataset)):
        wrong = f"{_shown(variable)} does not belong to the individual of {_shown(instance)}"
        return _problem(answer.clause, wrong, "List cells of that individual, such as age(P).")
    if computed(variable):
        wrong = f"{_shown(variable)} is computed, and an instance consists of what is read from tables"
        return _problem(answer.clause, wrong, "List the cells it is computed from.")
    return None


def _unknown_datasets(spec: Spec, known: Mapping[str, Dataset]) -> Iterator[Problem]:
    for clause in spec.clauses:
        if indicator(clause.head) in ("dataset_instance/2", "instance_rv/3"):
            wanted = clause.head.arguments[0]
            if is_ground(wanted) and show(wanted) not in known:
                yield Problem(
                    "error",
                    "unknown-dataset",
                    f"the dataset {show(wanted)} is not declared",
                    clause.position,
                    clause.text,
                    nearest=nearest(show(wanted), known),
                    way_out=f"Declare it: dataset({show(wanted)}, domain(P, patient(P))). It says who is protected.",
                )


def _people(spec: Spec, dataset: Dataset) -> frozenset[Term]:
    """The symbolic individual of a dataset fed by a table, and those the study itself names in facts."""
    bound = [match(dataset.goal, clause.head) for clause in spec.clauses if clause.body is None]
    return frozenset([Compound(f"${dataset.adjacency.unit}_1"), *(one[dataset.variable] for one in bound if one)])


def _mentioned(term: Term, people: frozenset[Term]) -> list[Term]:
    return list(dict.fromkeys(part for part in walk(term) if part in people))


def _owns(person: Term, variable: Term, people: frozenset[Term]) -> bool:
    return person in people and _mentioned(variable, people) == [person]


def _shown(term: Term) -> str:
    return show(term).replace("'$", "").replace("_1'", "")[:160]


def _problem(clause: Clause, message: str, way_out: str) -> Problem:
    return Problem("error", "instance", message, clause.position, clause.text, way_out=way_out)
