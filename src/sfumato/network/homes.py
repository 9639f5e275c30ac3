"""The table that says who there is: of several that say whose a row is, the one that lists everybody.

In:   a Spec.
Out:  the layout of that table; a refusal where two could be it, or where it does not say who its rows are about.
Not here: what is read of it (network/evaluate.py).
"""

from __future__ import annotations

from sfumato.lang.spec import Dataset, Spec
from sfumato.lang.term import indicator, show
from sfumato.network.refusal import refusal
from sfumato.network.structure import fed_datasets, identity_of
from sfumato.network.tables import TableLayout, layout_of

__all__ = ["check_homes", "home_of"]


def home_of(spec: Spec, dataset: Dataset) -> TableLayout:
    """The table whose rows are the individuals, wherever its lines stand; see `_homes`."""
    return _homes(spec, dataset)[0]


def check_homes(spec: Spec) -> None:
    """Who the individuals are is said by one column of one table."""
    _check_one(spec)
    _check_named(spec)


def _check_one(spec: Spec) -> None:
    """Of two tables that could say who there is, somebody in one of them alone would count or not."""
    for dataset in fed_datasets(spec):
        homes = sorted(_homes(spec, dataset), key=lambda layout: layout.table)
        if len(homes) > 1:
            raise refusal(
                dataset.position,
                f"Who is in {dataset.name} could be told by {' or by '.join(one.table for one in homes)}: each says "
                "whose a row is, and nothing says which of them lists everybody.",
                _way_out(homes[0], homes[1], dataset),
            )


def _way_out(one: TableLayout, other: TableLayout, dataset: Dataset) -> str:
    if one.public:
        return (
            "Add a table that lists everybody, whose only identity column is "
            f"column(Table, Name, {show(dataset.goal)}), or put the rows into one table."
        )
    return (
        f"Of the table that lists everybody write rows_per_person(Table, 1), such as rows_per_person({one.table}, 1); "
        f"of every other one each_person(Table, mean), such as each_person({other.table}, mean), or "
        f"rows_per_person({other.table}, N) with N above 1; or put the rows into one table."
    )


def _homes(spec: Spec, dataset: Dataset) -> list[TableLayout]:
    """The tables that may say who the individuals are: of those in which nothing but the individual identifies a row,
    private ones first, those with one row of each."""
    predicate = identity_of(dataset)
    tables = dict.fromkeys(column.table for column in spec.columns if indicator(column.atom) == predicate)
    ranks = {layout.table: _rank(layout) for layout in (layout_of(spec, table) for table in tables)}
    return [layout_of(spec, table) for table, rank in ranks.items() if rank == min(ranks.values())]


def _rank(layout: TableLayout) -> tuple[bool, bool, bool]:
    limit = layout.row_limit
    # Of a table that is put in order by a column, or averaged, a person has several rows.
    several = layout.each_person or limit is None or limit.maximum > 1 or limit.column is not None
    return len(layout.identities) > 1, layout.public, several


def _check_named(spec: Spec) -> None:
    """Who the individuals are is said by one column, and over centres by rows that each of them has alone.

    Of a private table both is so (network/build.py).
    """
    if not spec.public_tables:
        return
    for dataset in fed_datasets(spec):
        home, goal = home_of(spec, dataset), identity_of(dataset)
        named, wanted = home.naming(goal), f"column(Table, id, {dataset.goal}), rows_per_person(Table, 1)"
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
