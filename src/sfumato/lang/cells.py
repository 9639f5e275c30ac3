"""What a study says about its cells: a public range, and what stands for a cell that is absent or not listed.

In:   the derived variables of a study (lang/derived.py).
Out:  problems.
Not here: reading a cell (network/cells.py).

Nothing is done in silence and nothing fails at the run: a run that failed for one absent cell would say that there is
one, and a value nobody declared would be published as if it were somebody's. So the study says it beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.core import Categories
from sfumato.lang.derived import DerivedNetwork, problem_at
from sfumato.lang.problem import Problem
from sfumato.lang.spec import Column, Missing, Spec
from sfumato.lang.term import Position, Term, indicator, match, show
from sfumato.lang.vocabulary import published_kind

__all__ = ["check_cells"]


def check_cells(network: DerivedNetwork) -> Iterator[Problem]:
    """Every cell that something seen depends on has a range, and a word for its absence."""
    yield from _ranges(network)
    yield from _absent(network)
    yield from _skipped(network)


def _ranges(network: DerivedNetwork) -> Iterator[Problem]:
    """A cell that something seen depends on needs a public range: without one its influence has no bound."""
    reported = set()
    for variable in network.needed:
        name = indicator(variable)
        if name in reported or not network.column(variable):
            continue
        if not any(match(one.atom_pattern, variable) is not None for one in network.spec.ranges):
            reported.add(name)
            pattern = next(c.atom for c in network.spec.columns if match(c.atom, variable) is not None)
            yield problem_at(
                network,
                "no-range",
                f"{show(pattern)} influences what is seen and has no declared range",
                network.declared_at(variable),
                f"Declare what everybody may know: range({show(pattern)}, Low, High), or a list of categories.",
                expected="a public range, written down without looking at the data",
            )


def _private_column(spec: Spec, variable: Term) -> Column | None:
    column = spec.column_of(variable)
    return None if column is None or column.table in spec.public_tables else column


def _absent(network: DerivedNetwork) -> Iterator[Problem]:
    """A cell that something seen depends on may be absent or unlisted: the study says what then."""
    reported = set()
    for variable in network.needed:
        column = _private_column(network.spec, variable)
        if column is None or indicator(variable) in reported:
            continue
        domain = network.spec.domain_of(variable)
        listed = isinstance(domain, Categories)
        collected = isinstance(domain, Categories) and domain.unknown is not None
        if network.spec.missing_of(variable) is None and not collected:
            reported.add(indicator(variable))
            shown = show(column.atom)
            other = f", range({shown}, [… | other])." if listed else ""
            yield problem_at(
                network,
                "missing",
                f"{shown} influences what is seen, and nothing says what stands for "
                + ("an absent or unlisted cell" if listed else "an absent or unreadable cell"),
                column.position,
                f"Write missing({shown}, Value)., missing({shown}, skip).{other} or, of all cells of {column.table}, "
                f"missing({column.table}, skip)., or, if it is certain that none of them is absent or unlisted, "
                f"missing({column.table}, never).",
            )


def _is_made(what: Term) -> bool:
    """Whether it is made from everybody's row and shows none of them."""
    kind = published_kind(what)
    return kind is not None and not kind.row_by_row


def _behind(network: DerivedNetwork, target: Term) -> Iterator[Term]:
    """What a value is computed from, itself included, as far as no sum lies between."""
    met, waiting = set(), [target]
    while waiting:
        current = waiting.pop()
        if current not in met and current not in network.aggregates:
            met.add(current)
            waiting += network.parents(current)
            yield current


def _skipped(network: DerivedNetwork) -> Iterator[Problem]:
    """Only sums can leave people out: a table, a model or a person's own answer needs a value."""
    reported = set()
    groups = [(found, one.position) for one in network.spec.fairness for found in network.covered(one.group)]
    made = {one.position for one in network.grounding.publications if _is_made(one.what)} | {at for _, at in groups}
    for target, position in (*network.targets(), *groups):
        for current in _behind(network, target):
            said = _skipping(network, current)
            if said is not None and said not in reported:
                reported.add(said)
                yield _skipped_at(network, current, position, position in made)


def _skipping(network: DerivedNetwork, variable: Term) -> Missing | None:
    """The line by which people without this cell are left out, if there is one."""
    said = network.spec.missing_of(variable)
    return said if said is not None and said.rule == "skip" and network.column(variable) else None


def _skipped_at(network: DerivedNetwork, variable: Term, position: Position | None, made: bool) -> Problem:
    shown = next((show(one.atom) for one in network.spec.columns if match(one.atom, variable) is not None), "")
    listed = " or unlisted" if isinstance(network.spec.domain_of(variable), Categories) else ""
    everybody = "is made from a whole row of everybody" if made else "has a row for everybody"
    return problem_at(
        network,
        "missing",
        f"people without {shown} are skipped, and what is published here {everybody}",
        position,
        f"Write missing({shown}, Value), or missing({shown}, never) if it is certain that no such cell is absent"
        f"{listed}, in place of skip; or publish an aggregate, which can leave people out.",
    )
