"""Which account pays for which data. A budget belongs to the data, not to a word in a study.

In:   the tables a run reads and the column that says whose row it is; the ledger; what the run costs.
Out:  sources, the accounts they are bound to, and a first grant if a person asked for it.
Not here: what is charged (ledger/ledger.py), which rows are read (network/).

A source is a place (the resolved path of a file), the bytes of a file or its rows (run/fingerprint.py), each together
with the identity column. An account is bound to every source it was charged for. So a new name for the dataset, for the
source or for the unit, a link, a copy, the same rows in another format or order, another working folder or appended
rows find the same account, and so does each part of a table that several centres hold. A table that was both moved and
changed is new to the ledger: it needs a first grant, and that is a person's act. Sources are written down without the
column as well: whoever is in a file is in it by every column, so a second account for the same data needs a person who
says so (`ledger grant … --beside`), and one study cannot have two. Nor does one account pay for two columns of a file:
what a row of the finer one costs is not what a person costs. What has a budget is declared public by no study.
The ledger keeps sources as keyed hashes. There is a list of the ledgers that this user charges, so that a copy in
another folder, with another ledger, finds its account too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sfumato.core import ZCDP, Adjacency, ApproxDP, Event, GaussianDP, Guarantee, Pufferfish, PureDP, Repeated
from sfumato.errors import DataError, InputError, LedgerError, UnknownDatasetError
from sfumato.lang.spec import Dataset, Spec
from sfumato.lang.term import indicator
from sfumato.ledger.balance import amount_text
from sfumato.ledger.commands import grant_command
from sfumato.ledger.elsewhere import check_elsewhere
from sfumato.ledger.grants import window_grant
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import data_of
from sfumato.ledger.windows import check_one_class
from sfumato.network.network import Network
from sfumato.network.stores.addresses import place_of
from sfumato.network.stores.folder import files_in
from sfumato.network.stores.store import StoredRows
from sfumato.network.tables import layout_of
from sfumato.plan.whole import point_of
from sfumato.run.fingerprint import fingerprints
from sfumato.run.manifest import hash_of
from sfumato.run.names import LEDGER_NAME

__all__ = [
    "Grant",
    "default_ledger",
    "files_sources",
    "first_grant",
    "needed",
    "renamed",
    "sources_of",
    "table_sources",
]

#: Whether a first grant may be made: yes, no, or ask with this sentence.
Grant = bool | Callable[[str], bool]
_GRANTABLE = (PureDP, ApproxDP, GaussianDP, ZCDP, Pufferfish)
_FEW_FILES = 4096


def default_ledger(data: str | os.PathLike[str]) -> Path:
    """The ledger beside the data, as an absolute path: for a file in its folder, for a link in that of the real file.

    >>> default_ledger("/data/patients").name
    'sfumato-ledger.db'
    """
    if "://" in str(data):
        raise InputError(
            f"{data} is not on this machine: say with --ledger (from Python: ledger=) where its ledger is. Nothing was "
            "spent."
        )
    place = Path(data).resolve()
    return (place if place.is_dir() else place.parent) / LEDGER_NAME


def sources_of(network: Network, tables: Mapping[str, Any], ledger: Ledger | None = None) -> dict[str, tuple[str, ...]]:
    """For every dataset of the study the sources that say who its individuals are; one table is nobody else's.

    With a `ledger` that knows the bytes of a study's only table, rows are not read for it: they were bound with them.
    """
    spec = network.spec
    alone = ledger if len(tables) == 1 else None
    data = {name: _data(table, alone) for name, table in tables.items()}
    public = {name: own for name, own in data.items() if name in spec.public_tables}
    private = {name: own for name, own in data.items() if name not in public}
    found = {dataset.name: _naming(spec, dataset, private) for dataset in spec.datasets}
    _check_apart(found)
    _check_public(network, data)
    if ledger is not None:
        _check_open(ledger, public)
    return found


def _naming(spec: Spec, dataset: Dataset, data: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The sources that say who the individuals of a dataset are."""
    sources: list[str] = []
    for name, own in data.items():
        column = layout_of(spec, name).identity(indicator(dataset.goal))  # type: ignore[arg-type]
        if column is not None:
            sources += [f"{source}{column.name}" for source in own]
    return tuple(dict.fromkeys(sources))


def _check_apart(found: Mapping[str, tuple[str, ...]]) -> None:
    names = list(found)
    data = {name: set(map(data_of, sources)) for name, sources in found.items()}
    for place, name in enumerate(names):
        for other in names[:place]:
            if data[name] & data[other]:
                raise DataError(
                    f"The datasets {other} and {name} are read from one table: whoever is in one is in the other, by "
                    "whichever column, and neither promise would hold beside the other. Declare one dataset and one "
                    "source for it. Nothing was drawn and nothing was spent."
                )


def _check_public(network: Network, data: Mapping[str, tuple[str, ...]]) -> None:
    """One table cannot be private under one name and public under another."""
    spec = network.spec
    for public in spec.public_tables:
        for private in data.keys() - set(spec.public_tables):
            if set(data.get(public, ())) & set(data[private]):
                raise DataError(
                    f"The sources {private} and {public} are one table, and only {public} is declared public. Use one "
                    f"source for it, and public({public}) only if everybody may see every cell. Nothing was drawn and "
                    "nothing was spent."
                )


def _check_open(ledger: Ledger, public: Mapping[str, tuple[str, ...]]) -> None:
    """What has a budget is private: no study can declare it public."""
    for name, sources in public.items():
        owners = ledger.owners(map(data_of, sources))
        if owners:
            raise LedgerError(
                f"{name} is declared public, and is private in {ledger.path.resolve()}: the account {owners[0][0]!r} "
                f"counts what was published from it. Take out public({name}) and say whose a row is; or, if everybody "
                "may see some of its columns, write those into a table of their own. Nothing was drawn or spent."
            )
        check_elsewhere(ledger, sources)


def table_sources(table: Any, identity: str = "") -> tuple[str, ...]:
    """The sources of one table: its place, its bytes and its rows, each with the identity column ("" for records)."""
    return tuple(f"{source}{identity}" for source in _data(table))


def _places(table: Any) -> tuple[str, ...]:
    if isinstance(table, StoredRows):
        return (f"place\0{table.place}\0", *(one for part in table.parts for one in _data(part)))
    if not isinstance(table, str | os.PathLike):
        return ()
    path = Path(table).resolve()
    if path.is_dir():
        return _of_files(str(path), [str(file) for file in files_in(path)])
    return f"place\0{path}\0", f"bytes\0{hash_of(path)}\0"


def _data(table: Any, ledger: Ledger | None = None) -> tuple[str, ...]:
    """The sources of one table without an identity column; without its rows where the ledger knows its bytes."""
    places = _places(table)
    contents = [] if isinstance(table, StoredRows) else [one for one in places if one.startswith("bytes")]
    if ledger is not None and contents and all(ledger.neighbours([one]) for one in contents):
        return places
    return (*places, *(f"rows\0{one}\0" for one in fingerprints(table)))


def files_sources(source: str, files: Sequence[str]) -> tuple[str, ...]:
    """The sources of a table of many Parquet files: its place, its bytes and its rows; elsewhere, its place alone."""
    here = [place_of(file) for file in files]
    if any("://" in file for file in here):
        return (f"place\0{place_of(source)}\0",)
    return (*_of_files(source, here), *(f"rows\0{one}\0" for one in fingerprints(tuple(here))))


def _of_files(source: str, files: Sequence[str]) -> tuple[str, ...]:
    """Where a table of many files lies, all of its content, and each file while they are few."""
    with ThreadPoolExecutor() as pool:
        contents = list(pool.map(hash_of, map(Path, files)))
    whole = hashlib.sha256("".join(sorted(contents)).encode()).hexdigest()
    single = contents if len(contents) <= _FEW_FILES else []
    return (
        f"place\0{place_of(source)}\0",
        f"bytes\0{whole}\0",
        *(f"bytes\0{content}\0" for content in single),
    )


# ── costs and grants ─────────────────────────────────────────────────────────────────────────────────────────────────


def renamed(cost: Event | Repeated | Guarantee, adjacency: Adjacency) -> Event | Repeated | Guarantee:
    """The same cost with the account's word for the unit."""
    if isinstance(cost, Repeated):
        return Repeated(dataclasses.replace(cost.event, adjacency=adjacency), cost.count)
    return cost.under(adjacency) if isinstance(cost, Guarantee) else dataclasses.replace(cost, adjacency=adjacency)


def _is_kept(promise: Guarantee, cost: Guarantee) -> bool:
    return isinstance(promise, _GRANTABLE) and cost.implies(promise) is True


def _of_dependence(promises: Sequence[Guarantee]) -> list[Pufferfish]:
    return [one for one in promises if isinstance(one, Pufferfish)]


def needed(
    cost: Guarantee, promises: Sequence[Guarantee] = (), together: Sequence[Guarantee] | None = None
) -> Guarantee:
    """What must be granted for a cost: the promise of its kind that it keeps, itself, any promise, or a point of it.

    The point is at the δ of the promises `together`: all of them, unless some are part of others.
    """
    kept = [one.under(cost.adjacency) for one in promises if _is_kept(one, cost)]
    depending = _of_dependence(kept)
    check_one_class(_of_dependence(promises))
    if not depending and _of_dependence(promises):
        return window_grant([one.under(cost.adjacency) for one in promises], [[cost]])
    alike = [one for one in kept if type(one) is type(cost)]
    plain = [cost] if isinstance(cost, _GRANTABLE) else []
    known = [*depending, *alike, *plain, *kept]
    return known[0] if known else _point_of(cost, promises if together is None else together)


def _point_of(cost: Guarantee, asked: Sequence[Guarantee]) -> Guarantee:
    """ε alone, or with a δ: that of the promises together, or else the least usual one that has an ε at all."""
    found = point_of(cost, asked)
    if found is None:
        raise InputError(
            "This release promises next to nothing: its ε is above a million. Ask for a smaller one; of box noise, "
            "widen the box or use GaussianRelease. Nothing was spent."
        )
    return found


def first_grant(
    ledger: Ledger, dataset: str, total: Guarantee, sources: Sequence[str], grant: Grant, why: str = ""
) -> None:
    """Open the account of data that has none, if a person says so; otherwise UnknownDatasetError with the command.

    `why` is a sentence about the amount. Every table is asked about, also beside one whose account is known: none of
    them rides along.
    """
    assert total.adjacency is not None
    check_elsewhere(ledger, [source for source in sources if not ledger.owners([source])])
    paying = ledger.owners(sources) or [(dataset, total.adjacency.unit)]
    _check_neighbours(ledger, paying, total, sources)
    if any(name == paying[0][0] for name, _ in ledger.datasets()):
        return
    question = (
        f"Nothing was ever granted for {dataset!r} (unit: {total.adjacency.unit}) in {ledger.path.resolve()}. This run "
        f"needs {amount_text(total)} under {total.adjacency}.{why and ' '}{why}"
    )
    allowed = grant(f"{question} Grant exactly that?") if callable(grant) else grant
    if not allowed:
        raise UnknownDatasetError(
            f"{question} A first grant is a person's decision. Nothing was run and nothing was spent. "
            f"{_decide(dataset, total, ledger)} to grant exactly what it needs."
        )
    ledger.grant(dataset, total, note="granted with its first release", sources=sources)


def _decide(dataset: str, total: Guarantee, ledger: Ledger) -> str:
    again = "un the same command with --grant (from Python: grant=True)"
    if isinstance(total, Pufferfish) and total.dependence.single:  # its law is known to the study alone
        return f"R{again}"
    return f"Decide with `{grant_command(dataset, total, ledger.path)}`, or r{again}"


def _check_neighbours(
    ledger: Ledger, paying: Sequence[tuple[str, str]], total: Guarantee, sources: Sequence[str]
) -> None:
    """Whoever is in the data is in it by every column: to pay for it by two columns is a decision of its own.

    That one account pays for both is no way out: what one row of a finer column costs is not what a person costs.
    """
    for neighbour in ledger.neighbours(sources):
        if any(ledger.are_beside(own, neighbour) for own in paying):
            continue
        (dataset, unit), (name, _) = paying[0], neighbour
        decide = "give the dataset a name of its own and run again, which tells the command that lets both be spent"
        if isinstance(total, Pufferfish) and total.dependence.single:  # its law is known to the study alone
            decide = "use other data"
        elif dataset != name:
            command = f"{grant_command(dataset, total, ledger.path)} --beside {shlex.quote(name)}"
            decide = f"decide that both may be spent, and by how much: `{command}`"
        raise LedgerError(
            f"This data has an account already, which counts its people by another column ({ledger.balance(*neighbour)}"
            f"). What {dataset!r} (unit: {unit}) would spend comes on top of that for everybody in the data. Nothing "
            f"was run and nothing was spent. Publish by the first column, or {decide}."
        )
