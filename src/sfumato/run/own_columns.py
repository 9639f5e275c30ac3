"""Published numbers under the names of the study's own columns: whoever reads the file knows the table, not the study.

In:   a table of aggregates, whose cells and groups are told by variables such as age(P); the study.
Out:  the same table with the columns' names in place of their variables, in its head and where a cell names one.
Not here: rows and models, which are named where they are made (run/publish_synthetic.py, run/publish_learning.py).
"""

from __future__ import annotations

import pyarrow as pa

from sfumato.lang.spec import Spec
from sfumato.plan.cell_rules import own_names
from sfumato.run.view import COLUMNS

__all__ = ["with_own_names"]

#: Columns of which the cells name variables: the two that a correlation is about.
_NAMING = ("first", "second")


def with_own_names(table: pa.Table, spec: Spec) -> pa.Table:
    """A name that something else in the table has already is not given: then the variable stays.

    >>> from sfumato.lang import load
    >>> spec = load('''table(t, 't.csv', person(P), [ageGroup = 'Age, in groups': [young, old]]). missing(t, never).
    ... dataset(people, domain(P, person(P))). privacy_requirement(openness(public), people, dp(1)).
    ... histogram(h, ageGroup(P), person(P)). publish(ages, h, openness(public)).''')
    >>> number = {"node": ["h"], "part": [""], "ageGroup(P)": ["young"], "value": [3.0]}
    >>> with_own_names(pa.table(number), spec).column_names
    ['node', 'part', 'Age, in groups', 'value']
    """
    if tuple(table.column_names[:2]) != COLUMNS[:2]:
        return table
    columns = {column.atom.functor: column.name for column in spec.columns if len(column.atom.arguments) == 1}

    def named(variables: list[str]) -> dict[str, str]:
        cells = {one: {"column": columns[word]} for one in variables if (word := _word(one)) in columns}
        return own_names(variables, cells)

    for name in (one for one in _NAMING if one in table.column_names):
        held = table[name].to_pylist()
        own = named(list(dict.fromkeys(held)))
        cells = pa.array([own.get(cell, cell) for cell in held], table[name].type)
        table = table.set_column(table.column_names.index(name), name, cells)
    own = named(table.column_names)
    return table.rename_columns([own.get(name, name) for name in table.column_names])


def _word(variable: str) -> str | None:
    """The word of a variable of one individual, without the quotes that the language needs around some."""
    word, bracket, _ = str(variable).partition("(")
    return word.strip("'") if bracket else None
