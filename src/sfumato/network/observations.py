"""observe/reveal lines held against the requirements: who learns exactly what was promised to stay hidden from them.

In:   a Network, its public tables.
Out:  Findings, one for each such line, variable and requirement. No private table is opened.
Not here: the general warning of `sfumato check` (lang/check.py), what is published (plan/).

A requirement bounds what its publications add to what the observer knows already, whatever that is. It stays true
beside an exact observation and no longer says what its reader takes it to say: this is why each one is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sfumato.lang.derivations import Observation
from sfumato.lang.spec import EVERYONE, PrivacyRequirement, Spec
from sfumato.lang.term import Compound, Position, Term, Variable, called, indicator, show, substitute
from sfumato.network.network import Group, Network, Node, is_read
from sfumato.network.nodes import masked
from sfumato.network.structure import individuals_of, public_facts
from sfumato.network.tables import TableRoom, naming_columns
from sfumato.network.told_in_public import structural_tables

__all__ = ["ExactFinding", "check_observations", "is_own", "touched"]

_EXACT = ("observe/2", "reveal/2")


@dataclass(frozen=True, slots=True)
class ExactFinding:
    """`observer` learns `variable` exactly although `requirement` protects the same individual from them."""

    observer: str
    variable: str
    requirement: str
    text: str
    position: Position | None = None

    def __str__(self) -> str:
        return f"{self.position}: {self.text}" if self.position else self.text


def check_observations(network: Network, tables: Mapping[str, Any] | None = None) -> tuple[ExactFinding, ...]:
    """Every observe/reveal line that gives away what a requirement towards the same observer protects.

    What an individual learns about itself is no finding. `tables` are the public tables, as for Network.from_spec.

    >>> from sfumato.lang import load
    >>> study = load('''
    ...     source(patients, 'patients.parquet').
    ...     column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
    ...     column(patients, age, age(P)).
    ...     random(age(P)) :- patient(P).
    ...     range(age(P), 0, 110).
    ...     dataset(people, domain(P, patient(P))).
    ...     privacy_requirement(secrecy(nurse), people, dp(0.5, 0.000001)).
    ...     mean(meanAge, age(P), patient(P)).
    ...     publish(average, meanAge, secrecy(nurse)).
    ...     observe(nurse, age(P)) :- patient(P).
    ... ''')
    >>> [(one.observer, one.variable) for one in check_observations(Network.from_spec(study))]
    [('nurse', 'age(P)')]
    """
    spec = network.spec
    if not any(indicator(clause.head) in _EXACT for clause in spec.clauses):
        return ()
    facts = _facts(spec, tables or {})
    found: dict[tuple[str, str, str], ExactFinding] = {}
    for group in network.groups or (None,):
        for finding in _findings(network, group, facts):
            found.setdefault((finding.observer, finding.variable, finding.requirement), finding)
    return tuple(found.values())


def _facts(spec: Spec, tables: Mapping[str, Any]) -> tuple[Term, ...]:
    with TableRoom(tables, structural_tables(spec), naming=naming_columns(spec)) as room:
        return public_facts(room, spec, individuals_of(spec))


def _findings(network: Network, group: Group | None, facts: tuple[Term, ...]) -> Iterator[ExactFinding]:
    spec = network.spec
    mask: dict[Term, Variable] = {}
    extra: list[Term] = []
    if group is not None and group.representative is not None and group.dataset is not None:
        dataset = spec.dataset(group.dataset)
        binding = {dataset.variable: group.representative}
        extra = [substitute(term, binding) for term in (dataset.goal, *group.structure)]
        mask = {group.representative: Variable(dataset.variable)}
    for observation in spec.ground((*facts, *extra)).observations:
        if is_own(observation):
            continue
        observer, name = called(observation.observer), show(masked(observation.variable, mask))
        for requirement in spec.requirements:
            if _protects_from(spec, requirement, observer) and name in touched(network, requirement.dataset):
                yield _finding(network, requirement, observer, name, observation.position)


def is_own(observation: Observation) -> bool:
    """An individual that observes its own variable."""
    variable = observation.variable
    return isinstance(variable, Compound) and observation.observer in variable.arguments


def _protects_from(spec: Spec, requirement: PrivacyRequirement, observer: str) -> bool:
    if requirement.observer in (observer, EVERYONE):
        return True
    return any({observer, requirement.observer} <= collusion.observers for collusion in spec.collusions)


def _is_given(node: Node) -> bool:
    return node.reads_data or (node.source is None and node.law is None)


def touched(network: Network, dataset: str) -> frozenset[str]:
    """What any individual of the dataset can move, in whichever public structure a variable rests on private data."""
    own = _moved_first(network, dataset)
    rest = [form for node in network.nodes for form in (*network.variants(node.name), node) if not is_read(form)]
    while moved := {node.name for node in rest if own.intersection(node.parents)} - own:
        own |= moved
    return frozenset(own)


def _moved_first(network: Network, dataset: str) -> set[str]:
    """What individuals of the dataset have of themselves, and what is counted over them."""
    groups = (group.nodes for group in network.groups if group.dataset == dataset)
    own = {node.name for node in chain(*groups) if _is_given(node)}
    return own | {node.name for node in network.aggregates if node.dataset == dataset}


def _finding(
    network: Network, requirement: PrivacyRequirement, observer: str, name: str, position: Position | None
) -> ExactFinding:
    zones = network.zone(requirement.name)
    behind = zones.sensitive | zones.intermediate | zones.observed
    resting = sorted(
        {entry.name for entry in network.publications if entry.requirement == requirement.name}
        if name in behind
        else ()
    )
    who = requirement.observer if requirement.observer not in (observer, EVERYONE) else observer
    together = f", who puts everything together with {who}," if who != observer else ""
    computed = f" It is also among what {', '.join(resting)} rests on." if resting else ""
    text = (
        f"{observer}{together} learns {name} exactly, and {show(requirement.name)} promises {requirement.guarantee} "
        f"towards the same observer. The promise bounds what the publications add; it does not bound what this line "
        f"gives away.{computed} Take the line out, or use dp_rv({show(requirement.name)}, {name}) instead."
    )
    return ExactFinding(observer, name, show(requirement.name), text, position)
