"""report.html: one page a lawyer can read, and the last look at a folder before it is handed on.

In:   a Plan, the folder of its release, optionally a ledger.
Out:  report.html (self-contained, no script), README.txt, a page to sign; what a folder still lacks.
Not here: the facts (evidence/facts.py, evidence/report_facts.py), the words (templates/), the recipients' text
(evidence/recipient.py).

The page shows no result: it may be handed to an observer who must not see another observer's numbers.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sfumato.errors import InputError, SfumatoError
from sfumato.evidence.facts import ReleaseFacts, gather
from sfumato.evidence.files import write_whole
from sfumato.evidence.recipient import readme_text
from sfumato.evidence.rehearsal import Realised, realised_errors
from sfumato.evidence.report_facts import accounts_of, noise_labels, page_facts
from sfumato.evidence.verify import verify
from sfumato.evidence.verify_files import verify_files
from sfumato.network.draw import draw
from sfumato.network.network import Network
from sfumato.network.observations import check_observations
from sfumato.plan.plan import Plan
from sfumato.run.study import read_release
from sfumato.wording import page

__all__ = ["finish_folder", "lawyer_html", "missing_from", "report_html", "write_report"]


def write_report(
    plan: Plan,
    folder: str | Path | None,
    path: str | Path,
    *,
    ledger: str | Path | None = None,
    network: Network | None = None,
    tables: Mapping[str, Any] | None = None,
    realised: Realised | None = None,
) -> Path:
    """Write the page for a plan, and for its release if `folder` holds one.

    A plan read from a file has no network: give it, or the page comes without its picture. `tables` are the public
    tables, needed where an observe or reveal line rests on one.
    """
    text = report_html(plan, folder, ledger=ledger, network=network, tables=tables, realised=realised)
    return write_whole(Path(path), text)


def report_html(
    plan: Plan,
    folder: str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    network: Network | None = None,
    tables: Mapping[str, Any] | None = None,
    realised: Realised | None = None,
) -> str:
    """The page as text. `realised` errors are for a rehearsal with invented people."""
    facts = gather(plan, Path(folder) if folder is not None else None)
    return _report(facts, ledger, network or plan.network, tables, realised or {})


def _report(
    facts: ReleaseFacts,
    ledger: str | Path | None,
    graph: Network | None,
    tables: Mapping[str, Any] | None,
    realised: Realised,
) -> str:
    report = page_facts(
        facts,
        ledger,
        _findings(graph, tables) if graph else (),
        _picture(facts.drawn, graph) if graph is not None else None,
        graph,
    )
    return page("report.html", facts=facts, report=report, realised=realised, version=metadata.version("sfumato"))


def lawyer_html(plan: Plan, folder: str | Path | None = None, *, ledger: str | Path | None = None) -> str:
    """The promise on a page or two, with lines to sign: the same facts and figures as the report."""
    facts = gather(plan, Path(folder) if folder is not None else None)
    return page("lawyer.html", facts=facts, accounts=accounts_of(facts, ledger))


def finish_folder(
    plan: Plan,
    folder: str | Path,
    ledger: str | Path | None = None,
    *,
    network: Network | None = None,
    tables: Mapping[str, Any] | None = None,
    rehearsal: bool = False,
) -> tuple[str, ...]:
    """Add report.html and README.txt to the folder of a release; what it still lacks afterwards, in sentences.

    The release is complete before this begins: whatever fails here costs no budget and can be repeated. `rehearsal`
    says that the people were invented by a dry run, so that realised errors may be told.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place} is not the folder of a release. Nothing was written.")
    lacking: list[str] = []
    known = cache(partial(gather, plan, place))  # one look at the folder for both
    graph = network or plan.network
    for name, write in (
        ("README.txt", lambda: readme_text(known())),
        ("report.html", lambda: _report(known(), ledger, graph, tables, _realised(known(), graph, tables, rehearsal))),
    ):
        try:
            write_whole(place / name, write())
        except (OSError, SfumatoError) as error:
            lacking.append(f"{name} could not be written: {error}")
    return (*lacking, *missing_from(plan, place))


def _realised(
    facts: ReleaseFacts, graph: Network | None, tables: Mapping[str, Any] | None, rehearsal: bool
) -> Realised:
    """Of a dry run with invented people; of anything else they are private."""
    if not rehearsal or graph is None or facts.folder is None or facts.state.word != "dry run":
        return {}
    return realised_errors(facts.plan, read_release(facts.folder), graph, tables or {})


def missing_from(plan: Plan, folder: Path) -> tuple[str, ...]:
    """What keeps a folder from being complete: files that are not there, certificates that do not hold."""
    found = [
        f"{name} is missing" for name in ("run.json", "README.txt", "report.html") if not (folder / name).is_file()
    ]
    found += _other_plan(plan, folder / "plan.json")
    found += _missing_results(plan, folder)
    certificates = sorted(folder.glob("certificate*.json"))
    if not certificates:
        found.append("there is no certificate")
    found += [f"{path.name} does not hold" for path in certificates if not verify(path).ok]
    found += chain(*map(_unmet, certificates))
    return tuple(found)


def _other_plan(plan: Plan, path: Path) -> list[str]:
    """What is wrong with the plan in a file; nothing if it is this plan, letter by letter."""
    try:
        if path.read_text(encoding="utf-8") == plan.to_json():
            return []
        return ["plan.json is another plan"] if Plan.read(path).hash != plan.hash else []
    except (OSError, ValueError, InputError):
        return ["plan.json is missing or was changed"]


def _unmet(certificate: Path) -> list[str]:
    checks = [check for check in verify_files(certificate, complete=True) if not check.ok]
    return [f"{certificate.name}: {check.field}: {check.sentence}" for check in checks]


def _missing_results(plan: Plan, folder: Path) -> list[str]:
    try:
        index = json.loads((folder / "results" / "index.json").read_text(encoding="utf-8"))
        listed = {(entry["publication"], entry["observer"]): entry["file"] for entry in index}
    except (OSError, ValueError, KeyError, TypeError):
        return ["results/index.json is missing or cannot be read"]
    lacking = []
    for planned in plan.publications:
        file = listed.get((planned.name, planned.observer))
        if file is None or not (folder / "results" / file).exists():
            lacking.append(f"the result {planned.name} for {planned.observer} is missing")
    return lacking


def _findings(network: Network, tables: Mapping[str, Any] | None) -> tuple[str, ...]:
    try:
        return tuple(str(finding) for finding in check_observations(network, tables))
    except SfumatoError as error:
        return (f"The observe/reveal lines could not be checked against the requirements: {error}",)


def _picture(plan: Plan, network: Network) -> Markup:
    """The network's SVG made fit for a page: no document type, no metadata, no names of other places."""
    with tempfile.TemporaryDirectory() as folder:
        path = draw(network, Path(folder) / "network.svg", noise_labels(plan))
        text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    # Matplotlib writes empty elements in the XML way; a page wants an end tag.
    text = re.sub(r"<(\w+)((?:\s[^<>]*?)?)\s*/>", r"<\1\2></\1>", text)
    head, rest = text.split(">", 1)
    said = ' role="img" aria-label="The network from sensitive variables to what is observed; in words below"'
    return Markup(re.sub(r'\s(?:width|height)="[^"]*"', "", head) + said + ">" + rest)
