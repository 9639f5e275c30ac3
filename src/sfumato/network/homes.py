"""The tables that say who there is: of those that say whose a row is, the ones that have a row for each person.

In:   a Spec.
Out:  the layouts of these tables, SQL for everybody in them; a refusal where one does not say whom its rows are about.
Not here: what is read of them (network/evaluate.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.lang.spec import Dataset, Spec
from sfumato.lang.term import indicator
from sfumato.network.expression import sql_name
from sfumato.network.refusal import refusal
from sfumato.network.structure import fed_datasets, identity_of
from sfumato.network.tables import TableLayout, TableRoom, layout_of

__all__ = ["check_homes", "everybody", "homes_of"]


def homes_of(spec: Spec, dataset: Dataset) -> tuple[TableLayout, ...]:
    """Whose rows are the individuals, by name: of the tables that name them the private ones, if there are any, and of
    these those with one row of each. Of several everybody counts whom any of them names.
    """
    predicate = identity_of(dataset)
    tables = sorted({column.table for column in spec.columns if indicator(column.atom) == predicate})
    layouts = [layout_of(spec, table) for table in tables]
    return tuple(layout for layout in layouts if _rank(layout) == min(map(_rank, layouts)))


def everybody(room: TableRoom, homes: Sequence[TableLayout], predicate: str) -> str:
    """SQL for the identifiers of all whom any of these tables names."""
    named = ((room.names[home.table], sql_name(home.naming(predicate)[0].name)) for home in homes)
    return " UNION ".join(f"SELECT {who}::VARCHAR AS id FROM {table} WHERE {who} IS NOT NULL" for table, who in named)


def _rank(layout: TableLayout) -> tuple[bool, bool]:
    limit = layout.row_limit
    # Of a table that is put in order by a column, or averaged, a person has several rows.
    several = layout.each_person or limit is None or limit.maximum > 1 or limit.column is not None
    return layout.public, several


def check_homes(spec: Spec) -> None:
    """Who the individuals are is said by one column of a table, and over centres by rows that each of them has alone.

    Of a private table both is so (network/build.py).
    """
    if not spec.public_tables:
        return
    homes = ((one, home) for one in fed_datasets(spec) for home in homes_of(spec, one))
    for dataset, home in homes:
        named = home.naming(identity_of(dataset))
        wanted = f"column(Table, id, {dataset.goal}), rows_per_person(Table, 1)"
        if len(named) > 1:
            raise refusal(
                named[1].position,
                f"Who the individuals of {dataset.name} are is said by {home.table} alone, and by several of its "
                f"columns: {' and '.join(column.name for column in named)}.",
                f"Declare a table with a row for each of them: source(Table, 'file'), {wanted}.",
            )
        if spec.centres and home.public:
            raise refusal(
                dataset.position,
                f"Who the individuals of {dataset.name} are is said by {home.table}, which is public: every centre "
                "would count all of them.",
                f"Declare the private table that each centre holds: source(Table, 'file'), {wanted}; or take the "
                "centres out.",
            )
