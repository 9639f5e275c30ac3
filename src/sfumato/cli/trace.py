"""`sfumato trace RESULT`, `sfumato report FOLDER`: a folder followed back, a page written again.

In:   arguments.
Out:  text.
Not here: what it means (evidence/trace.py, evidence/report.py).
"""

from __future__ import annotations

from pathlib import Path

from sfumato.cli.width import text_width
from sfumato.errors import InputError
from sfumato.evidence.report import finish_folder
from sfumato.evidence.trace import find_result, study_network, trace_person, trace_result, trace_text
from sfumato.lang import load
from sfumato.network.network import Network
from sfumato.plan.plan import Plan
from sfumato.run.study_file import public_tables

__all__ = ["folder_note", "run_report", "run_trace"]


def run_trace(
    result: str,
    folder: Path | None = None,
    study: Path | None = None,
    data: Path | None = None,
    person: str | None = None,
) -> str:
    """What to print."""
    if person is not None:
        place = folder or Path(result)
        if not (place / "plan.json").is_file():
            raise InputError(f"{place} is not the folder of a release: it has no plan.json. Nothing was opened.")
        return trace_person(Plan.read(place / "plan.json"), person, place, load(study) if study else None, text_width())
    if folder is None and (Path(result) / "plan.json").is_file():
        return _everything(Path(result), study, data)
    place, name, observer = find_result(result, folder)
    plan = Plan.read(place / "plan.json")
    network = _network(plan, study, data)
    return "\n".join(trace_text(trace, text_width()) for trace in trace_result(plan, name, observer, network, place))


def _everything(folder: Path, study: Path | None, data: Path | None) -> str:
    plan = Plan.read(folder / "plan.json")
    network = _network(plan, study, data)
    pairs = [(planned.name, planned.observer) for planned in plan.publications]
    return "\n".join(
        trace_text(trace, text_width())
        for name, observer in pairs
        for trace in trace_result(plan, name, observer, network, folder)
    )


def _network(plan: Plan, study: Path | None, data: Path | None) -> Network | None:
    if study is None:
        return None
    return study_network(plan, study, public_tables(load(study), data or study.parent))


def run_report(folder: Path, study: Path | None, data: Path | None, ledger: Path | None) -> tuple[str, bool]:
    """Write report.html and README.txt again; what to print, and whether the folder is complete."""
    plan = Plan.read(folder / "plan.json")
    tables = public_tables(load(study), data or study.parent) if study else {}
    network = study_network(plan, study, tables) if study else None
    missing = finish_folder(plan, folder, ledger, network=network, tables=tables)
    return folder_note(folder, missing), not missing


def folder_note(folder: Path, missing: tuple[str, ...]) -> str:
    """One line that says the folder is complete, or everything that is missing from it."""
    if not missing:
        return f"{folder / 'report.html'}: the folder is complete."
    return "\n".join([f"{folder} is not complete:", *(f"  {one}" for one in missing)])
