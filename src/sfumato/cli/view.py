"""`sfumato view FOLDER --person ID` and `--observer NAME`: what is theirs, into their hands alone.

In:   arguments.
Out:  text on the terminal of whoever asked, or a new file with mode 0600 outside of every release.
Not here: which values they are (run/own.py), what was published from a person (evidence/trace.py).
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.cli.width import text_width
from sfumato.errors import InputError
from sfumato.evidence.trace import study_network, trace_person
from sfumato.lang import load
from sfumato.network.evaluate import ID, Values
from sfumato.network.network import Network
from sfumato.network.rows import PUBLIC_KEY
from sfumato.plan.plan import Plan
from sfumato.run.accounts import default_ledger
from sfumato.run.forget import forgotten_names, listed, read_forgotten, without_forgotten
from sfumato.run.held_tables import all_tables
from sfumato.run.own import Own, observers_own, persons_own
from sfumato.run.row_key import KEY_SUFFIX, row_key

__all__ = ["run_view"]


def run_view(
    folder: Path,
    study: Path,
    data: Path,
    person: str | None,
    observer: str | None,
    out: Path | None,
    forgotten: Path | None = None,
    ledger: Path | None = None,
) -> str:
    """What to print; the values themselves only for a person, and only without a file to write them to."""
    _check_asked(folder, person, observer, out)
    plan = Plan.read(folder / "plan.json")
    spec = study_network(plan, study, _public(study, data)).spec
    # What any step forgets is not handed out, whichever step the folder is of.
    gone = listed(load(study), read_forgotten(forgotten) if forgotten is not None else ())
    if person is not None and person in forgotten_names(gone):
        return f"{person} is forgotten: no row of {person} was opened.\n\n" + trace_person(
            plan, person, folder, spec, text_width()
        )
    tables = all_tables(spec, data)
    network = Network.from_spec(replace(spec, forgotten=gone), tables)
    keys = dict.fromkeys((dataset.name for dataset in spec.datasets), _key(ledger or default_ledger(data)))
    if person is not None:
        own = persons_own(network, tables, person, keys)
        told = "" if out else f"\n{trace_person(plan, person, folder, spec, text_width())}"
        return _handed(_cells_text(own), out, "exact values") + told
    assert observer is not None
    values = network.evaluate(without_forgotten(network.spec, tables) if gone else tables, keys)
    return _handed_to_observer(plan, network, values, folder, observer, out)


def _handed_to_observer(
    plan: Plan, network: Network, values: Values, folder: Path, observer: str, out: Path | None
) -> str:
    found = observers_own(plan, network, values, folder, observer).values()
    named = [name for table in found for name in table.column_names]
    return _handed("".join(map(_table_text, found)), out, _what(network, observer, named))


def _check_asked(folder: Path, person: str | None, observer: str | None, out: Path | None) -> None:
    if (person is None) == (observer is None):
        raise InputError("Say whose view it is: --person ID or --observer NAME. Nothing was opened.")
    if observer is not None and out is None:
        raise InputError("An observer's view has a row for everybody: say where it goes with --out FILE.csv.")
    if out is not None:
        _check_place(out, folder)


def _cells_text(own: Iterable[Own]) -> str:
    rows = [[one.variable, _listed(one.cells), _listed(one.counts_as)] for one in own]
    return _csv([["variable", "cell", "counts_as"], *rows])


def _table_text(table: Any) -> str:
    return _csv([table.column_names, *([_text(cell) for cell in row.values()] for row in table.to_pylist())])


def _what(network: Network, observer: str, columns: list[str]) -> str:
    """Which columns of an observer's file are exact, and which carry the noise of the release."""
    known = {name for group in network.groups for name in group.known_to(observer)}
    exact = [name for name in columns if name in known]
    noisy = [name for name in columns if name not in known and name != ID]
    also = f"; with the noise of the release {', '.join(noisy)}" if noisy else ""
    return f"exact {', '.join(exact)}{also}"


def _public(study: Path, data: Path) -> dict[str, Any]:
    from sfumato.run.study_file import public_tables

    return public_tables(load(study), data)


def _key(ledger: Path) -> bytes:
    """Which rows of a person with many count, as in a run; no key is made by looking."""
    return row_key(ledger) if Path(f"{ledger}{KEY_SUFFIX}").is_file() else PUBLIC_KEY


def _listed(cells: Any) -> str:
    return "; ".join(map(_text, cells)) if isinstance(cells, tuple) else _text(cells)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _check_place(out: Path, folder: Path) -> None:
    """Exact values never lie in a folder that is handed on."""
    place = out.resolve()
    released = [parent for parent in (folder.resolve(), *place.parents) if (parent / "plan.json").is_file()]
    if any(place.is_relative_to(parent) for parent in released):
        raise InputError(f"{out} lies in a release, which is for others. Choose a place of your own. Nothing was read.")
    if place.exists():
        raise InputError(f"{out} is there already. Choose a new name. Nothing was read.")


def _handed(text: str, out: Path | None, what: str) -> str:
    if out is None:
        return text
    handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return f"{out}: {what}. Readable by you alone. Nothing more was published or charged for it.\n"
