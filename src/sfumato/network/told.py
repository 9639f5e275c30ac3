"""What the curator is told about cells that were replaced: absent, not in the list, no number.

In:   the tables of an evaluation, the nodes that read them.
Out:  one sentence a column, through UndeclaredCellWarning. Private: it stands in no file and changes no exit code.
Not here: what stands for such a cell (network/cells.py), whether a study says it (lang/cells.py).

A list in another case or a column of blanks makes numbers that are exact and mean nothing. Who publishes sees it here,
on the machine that holds the data, and nobody else does. Told are cells that the study says do not exist, and, whatever
it says, cells that miss its list by capital letters or blanks alone, and rows of which no cell says whose they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from sfumato.core.calendar import shown as shown_moment
from sfumato.core.curator import ALONE, warn_of
from sfumato.core.domain import Categories, Interval
from sfumato.core.folding import folded, two_alike
from sfumato.lang.spec import Spec
from sfumato.lang.term import Compound, show
from sfumato.network.cells import placed
from sfumato.network.expression import sql_level, sql_name
from sfumato.network.folding import sql_folded
from sfumato.network.forgotten import of_forgotten
from sfumato.network.network import Network, Node
from sfumato.network.tables import NUMBERS, TEXT, TableRoom, layout_of, plain_type

__all__ = ["tell_curator"]

#: A list that is longer is not written out in a warning.
_MOST_SHOWN = 30
#: From here on a decimal number no longer tells a whole number from the next.
_TOLD_APART = {"FLOAT": 2**24, "DOUBLE": 2**53}
#: How such a number is written as text: in a file of text, or in a folder of which other files hold whole numbers.
_BLURRED = r"-?[0-9]([.][0-9]+)?e[+][0-9]+"
_NO_NUMBER = {
    "": "no number",
    "date": "no day as ISO 8601 writes it (2020-01-31)",
    "time": "no time of day as ISO 8601 writes it (08:30)",
}
_WORDS = ("VARCHAR", TEXT)


def tell_curator(room: TableRoom, network: Network, listed: Collection[str] = ()) -> None:
    """Warn of every column with cells that were replaced; one pass over each table.

    `listed` are nodes of which every cell was met already and is a listed word: they are not asked again.
    """
    for table, every in _cells(room, network).items():
        columns = {name: node for name, node in every.items() if node.name not in listed}
        warn_of([*_sentences(room, network.spec, table, columns), *_of_nobody(room, network.spec, table)])


def _cells(room: TableRoom, network: Network) -> dict[str, dict[str, Node]]:
    """Which node reads each column of each private table."""
    nodes: dict[str, dict[str, Node]] = {}
    for node in (node for group in network.groups for node in group.nodes):
        source = node.source
        if source is not None and not node.public and source.table in room.names and node.domain is not None:
            nodes.setdefault(source.table, {}).setdefault(source.name, node)
    return nodes


def _of_nobody(room: TableRoom, spec: Spec, table: str) -> Iterator[str]:
    """Of a column that says whose a row is: cells that name nobody, or several people at once."""
    layout, shown = layout_of(spec, table), room.names[table]
    names = [column.name for _, column in layout.identities]
    if len(names) != 1:  # without one nobody is named; of several the study says what a row with a gap asserts
        return
    (name,), kind = names, plain_type(room.types(table, names)[names[0]])
    cell, decimal = sql_name(name), room.decimal_names.get(table, {}).get(name)
    counts = {
        "absent; rows that name nobody are left out": f"{cell} IS NULL",
        "blank; all such rows count as those of one individual": f"trim({cell}) = ''" if kind in _WORDS else "FALSE",
        "decimal numbers too large to be told from their neighbours, and several individuals may count as one; read "
        "the column as whole numbers or as text": _blurred(cell, kind, decimal),
    }
    if (table, name) in room.complete and set(list(counts.values())[1:]) == {"FALSE"}:
        return
    numbers = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in counts.values())
    rows, *found = room.run(f"SELECT count(*), {numbers} FROM {shown}")[0]
    for what, count in zip(counts, found, strict=True):
        if count:
            yield f"Column {name!r} of {table}: {_share(count, rows)} of its cells are {what}. {ALONE}"


def _blurred(cell: str, kind: str, decimal: str | None) -> str:
    """SQL that is true of an identifier that was a decimal number and may have been another whole one."""
    if decimal is not None:
        return f"abs(TRY_CAST({cell} AS DOUBLE)) >= {_TOLD_APART[decimal]}"
    return f"contains({cell}, 'e+') AND regexp_full_match({cell}, '{_BLURRED}')" if kind in _WORDS else "FALSE"


def _sentences(room: TableRoom, spec: Spec, table: str, nodes: dict[str, Node]) -> Iterator[str]:
    kinds, shown = room.types(table, list(nodes)), room.names[table]
    nodes = {name: node for name, node in nodes.items() if _is_never(spec, node) or _is_listed(node)}
    if not nodes:  # of the others nothing would be told
        return
    # Who is forgotten left absent cells behind, as was asked for: of these nothing is told, and none is looked at.
    layout = layout_of(spec, table)
    gone = {name: of_forgotten(spec, layout, name) for name in nodes}
    found = _found(room, shown, nodes, kinds, gone)
    for name, node in nodes.items():
        near = _nearly(node, name, kinds[name]) if found[name][2] else "0"
        ((nearly,),) = room.run(f"SELECT {near} FROM {shown} WHERE NOT ({gone[name]})") if near != "0" else ((0,),)
        if told := _told(node, found[name], nearly, _is_never(spec, node)):
            yield f"Column {name!r} of {table}: {told} {ALONE}"


def _found(
    room: TableRoom, shown: str, nodes: Mapping[str, Node], kinds: Mapping[str, str], gone: Mapping[str, str]
) -> dict[str, tuple[int, int, int]]:
    """Of every column its rows, absent cells and cells without a place; all at once where none is forgotten."""
    together = len(set(gone.values())) == 1
    found: dict[str, tuple[int, int, int]] = {}
    for names in [list(nodes)] if together else [[name] for name in nodes]:
        counts = [count for name in names for count in _counts(nodes[name], name, kinds[name])]
        where = "" if gone[names[0]] == "FALSE" else f" WHERE NOT ({gone[names[0]]})"
        rows, *numbers = room.run(f"SELECT count(*), {', '.join(counts)} FROM {shown}{where}")[0]
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        found |= {name: (rows, rows - there, lost) for name, (there, lost) in zip(names, pairs, strict=True)}
    return found


def _is_never(spec: Spec, node: Node) -> bool:
    """Whether the study says that no cell is absent."""
    said = spec.missing_of(node.atom)
    return said is not None and said.rule == "never"


def _is_listed(node: Node) -> bool:
    """Whether a cell can miss its list by capital letters or blanks."""
    return isinstance(node.domain, Categories) and node.domain.scalar == "str" and not node.domain.fold


def _counts(node: Node, column: str, kind: str) -> Iterable[str]:
    """SQL: how many cells are there, and how many of these have no place."""
    if not isinstance(node.domain, Categories | Interval):
        return (f"count({sql_name(column)})", "0")
    if _is_listed(node) and node.domain.unknown is None:  # type: ignore[union-attr]  # NULL has no place either
        return (f"count({sql_name(column)})", f"count({sql_name(column)}) - count({placed(node, column, kind)})")
    lost = _lost(node, node.domain, column, kind)
    return (f"count({sql_name(column)})", "0" if lost == "FALSE" else f"count(*) FILTER (WHERE {lost})")


def _nearly(node: Node, column: str, kind: str) -> str:
    """SQL: how many cells without a place all but have one."""
    if not isinstance(node.domain, Categories) or not _is_listed(node):
        return "0"
    small = {folded(str(value)) for value in node.domain.values}
    lost = _lost(node, node.domain, column, kind)
    near = f"{sql_folded(f'{sql_name(column)}::VARCHAR', small)} IN ({', '.join(map(sql_level, sorted(small)))})"
    return f"count(*) FILTER (WHERE {lost} AND {near})"


def _lost(node: Node, domain: Categories | Interval, column: str, kind: str) -> str:
    """SQL that is true of a cell that is there and has no place; typed numbers need not be placed to know it."""
    raw, typed = sql_name(column), plain_type(kind)
    if isinstance(domain, Interval) and not domain.calendar and typed in NUMBERS:
        return f"isnan({raw})" if typed in ("FLOAT", "DOUBLE") else "FALSE"
    if isinstance(domain, Categories) and domain.unknown is not None:
        node = replace(node, domain=replace(domain, unknown=None, null=None))
    return f"{raw} IS NOT NULL AND {placed(node, column, kind)} IS NULL"


def _told(node: Node, found: tuple[int, int, int], nearly: int, never: bool) -> str:
    rows, absent, unknown = found
    # What stands for a cell that is not in the list is said in the list itself: [a, b | other].
    collected = isinstance(node.domain, Categories) and node.domain.unknown is not None
    undeclared = never and absent + (0 if collected else unknown) > 0
    if not nearly and not undeclared:
        return ""
    unknown = 0 if collected and not nearly else unknown
    near = f" ({_share(nearly, rows)} but for capital letters or blanks)" if nearly else ""
    parts = [f"{_share(absent, rows)} of its cells are absent"] if absent else []
    parts += [f"{_share(unknown, rows)} of its cells are {_wrong(node)}{near}"] if unknown else []
    return f"{' and '.join(parts)}; {_place(node)}.{_fold(node) if nearly else ''}{_way(node) if undeclared else ''}"


def _wrong(node: Node) -> str:
    """What a cell is that is there and has no place."""
    if isinstance(node.domain, Categories):
        return "not in its list"
    return _NO_NUMBER[node.domain.calendar if isinstance(node.domain, Interval) else ""]


def _way(node: Node) -> str:
    shown = show(node.atom)
    return (
        f" The study says that there are none. Say what stands for them: missing({shown}, Value) or missing({shown}, "
        "skip); in Python null= or unknown= in the column's domain, or missing='skip'."
    )


def _fold(node: Node) -> str:
    """The line that reads such cells as the listed words; none where two of the list would be one word."""
    assert isinstance(node.domain, Categories)
    words = [str(value) for value in node.domain.values]
    if two_alike(words):
        return ""
    other = [words.pop()] if node.domain.unknown is not None else []
    listed = ", ".join(map(_atom, words)) if len(words) <= _MOST_SHOWN else "…"
    rest = f" | {_atom(other[0])}" if other else ""
    python = f"{[*words, *other]!r}" if listed != "…" else "[…]"
    unknown = f", unknown={other[0]!r}" if other else ""
    return (
        f" To read these as the listed words write range({show(node.atom)}, fold([{listed}{rest}]))., in Python "
        f"Categories({python}{unknown}, fold=True)."
    )


def _atom(word: str) -> str:
    return show(Compound(word))


def _place(node: Node) -> str:
    domain = node.domain
    if node.skip:
        return "their people or rows are left out"
    if not isinstance(domain, Categories | Interval):
        return "they are in no group"
    if isinstance(domain, Categories) and domain.unknown is not None:
        return f"what is not listed counts as {domain.unknown}, what is absent as {node.missing}"
    if isinstance(domain, Interval) and domain.calendar and isinstance(node.missing, int | float):
        return f"they count as {shown_moment(float(node.missing), domain.calendar)}"
    return f"they count as {node.missing}"


def _share(count: int, rows: int) -> str:
    percent = 100 * count / rows
    return "all" if count == rows else f"{percent:.1f} %" if percent >= 0.1 else "less than 0.1 %"
