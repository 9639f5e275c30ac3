"""Tables of invented people inside the declared ranges, the same every time: for dry runs.

In:   a Spec.
Out:  Arrow tables by name, with the columns the study reads. Nothing in them comes from data.
Not here: running (run/study.py).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.core import Categories, Interval
from sfumato.core.calendar import shown
from sfumato.core.text import AnyText
from sfumato.lang.spec import Column, Spec
from sfumato.lang.term import Compound, Number, Term, Text, Variable, indicator, match

__all__ = ["generated_tables"]

PEOPLE = 200
_GOLDEN = 0.6180339887498949
_MOST_ROWS = 100_000


def generated_tables(spec: Spec, given: Mapping[str, Any] | None = None, people: int = PEOPLE) -> dict[str, Any]:
    """A table for every source; tables in `given` (public ones) are taken as they are.

    >>> from sfumato.lang import load
    >>> study = load('''
    ...     source(patients, 'patients.parquet').
    ...     column(patients, id, patient(P)). rows_per_person(patients, 1). missing(patients, never).
    ...     column(patients, age, age(P)).
    ...     random(age(P)) :- patient(P).
    ...     range(age(P), 0, 110).
    ...     dataset(people, domain(P, patient(P))).
    ... ''')
    >>> generated_tables(study)["patients"].column_names
    ['id', 'age']
    """
    tables: dict[str, Any] = dict(given or {})
    for source in spec.sources:
        if source.table not in tables:
            tables[source.table] = _table(spec, source.table, people)
    return tables


def _table(spec: Spec, table: str, people: int) -> pa.Table:
    columns = [column for column in spec.columns if column.table == table]
    identities = _identities(spec, columns)
    choices = [_individuals_of(spec, column, people) for column in identities]
    rows = list(itertools.islice(itertools.product(*choices), _MOST_ROWS))
    named = {column.name: [row[i] for row in rows] for i, column in enumerate(identities)}
    built = {one.name: named[one.name] if one.name in named else _cells(spec, one, len(rows)) for one in columns}
    return pa.table(built or {"id": list(map(str, range(people)))})


def _identities(spec: Spec, columns: list[Column]) -> list[Column]:
    known = {*spec.table_predicates, *(indicator(clause.head) for clause in spec.clauses if clause.body is None)}
    return [column for column in columns if indicator(column.atom) in known]


def _individuals_of(spec: Spec, column: Column, people: int) -> list[Any]:
    """Invented identifiers, or the things of this kind that the study itself lists."""
    listed = _listed(spec, indicator(column.atom))
    datasets = {indicator(dataset.goal) for dataset in spec.datasets if isinstance(dataset.goal, Compound)}
    if listed and indicator(column.atom) not in datasets:
        return listed
    count = people if indicator(column.atom) in datasets else 3
    return [*listed, *(f"{column.atom.functor}{number}" for number in range(count - len(listed)))]


def _plain(term: Term) -> Any:
    match term:
        case Number(value=value) | Text(value=value):
            return value
        case Compound(functor=functor):
            return functor
    return str(term)


def _listed(spec: Spec, kind: str) -> list[Any]:
    facts = [clause.head for clause in spec.clauses if clause.body is None]
    return [_plain(fact.arguments[0]) for fact in facts if isinstance(fact, Compound) and indicator(fact) == kind]


def _cells(spec: Spec, column: Column, rows: int) -> Any:
    domain = next((r.domain for r in spec.ranges if _covers(r.atom_pattern, column.atom)), None)
    start = int.from_bytes(hashlib.sha256(column.name.encode()).digest()[:4]) / 2**32
    uniform = (start + _GOLDEN * np.arange(1, rows + 1)) % 1.0
    if isinstance(domain, AnyText):
        return [f"{column.name} {int(place)}" for place in uniform * 5]
    if isinstance(domain, Categories):
        return [domain.values[int(place)] for place in uniform * len(domain.values)]
    low, high, unit = (domain.low, domain.high, domain.calendar) if isinstance(domain, Interval) else (0.0, 1.0, "")
    numbers = low + (high - low) * uniform
    return [shown(number, unit) for number in numbers.tolist()] if unit else numbers


def _covers(pattern: Term, atom: Compound) -> bool:
    """Whether a range is about this column: the same predicate, whatever its variables are called."""
    fresh = Compound(atom.functor, tuple(Variable(f"{i}") for i, _ in enumerate(atom.arguments)))
    if isinstance(pattern, Compound) and indicator(pattern) == indicator(atom):
        return True
    return match(pattern, fresh) is not None
