"""A release and its folder: what was published, certificates of what was drawn, and both on disk.

In:   published values, the plan, the events that were drawn.
Out:  Release; results/, plan.json, run.json, manifests, certificates; the release read back.
Not here: drawing and charging (run/study.py), checking (evidence/verify.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from sfumato.card import Card, Shown
from sfumato.core import ZCDP, ApproxDP, GaussianDP, Guarantee, Pufferfish, PureDP, compose
from sfumato.core.certificate import Certificate
from sfumato.core.events.event import Event, Repeated
from sfumato.core.places import Place, place_of
from sfumato.errors import InputError
from sfumato.lang.spec import EVERYONE
from sfumato.plan.act import ActKey
from sfumato.plan.plan import Plan, Planned
from sfumato.plan.sentences import LISTED
from sfumato.plan.shared_act import sharing_of
from sfumato.run.manifest import hashes, write_manifest
from sfumato.run.names import file_stems

if TYPE_CHECKING:
    from sfumato.learn.model_document import PublishedModel
    from sfumato.run.publish_base import Performed

__all__ = ["Published", "Release", "certificate_files", "certificates_of", "file_names", "read_release", "write"]

_PROOFS = {"cut_placement", "allocation", "aggregates"}
_STATABLE = (PureDP, ApproxDP, GaussianDP, ZCDP, Pufferfish)


@dataclass(frozen=True)
class Published:
    """One publication towards one observer. `values` has a row per individual, or the numbers of each aggregate.

    `documents` are texts by the ending of their file: the noise law of a table, a model, a channel. `tables` go along
    by name, such as the noisy counts that synthetic rows were made from.
    """

    name: str
    observer: str
    level: str
    values: pa.Table = field(repr=False)
    documents: Mapping[str, str] = field(default_factory=dict, repr=False)
    tables: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)

    @property
    def of_individuals(self) -> bool:
        """Whether it has a row for each individual."""
        return self.level == "individual"


@dataclass(frozen=True)
class Release(Shown):
    """What was published. From here on everything is post-processing."""

    plan_hash: str
    published: tuple[Published, ...]
    certificates: Mapping[str, Certificate]
    folder: Path | None = None

    def _card(self) -> Card:
        rows = [[one.name, one.observer, one.level, one.values.num_rows] for one in self.published]
        facts = {name: str(certificate.guarantee) for name, certificate in self.certificates.items()}
        return Card("What was published", facts, ["publication", "observer", "level", "rows"], rows)

    def __getitem__(self, key: str | tuple[str, str]) -> pa.Table:
        """The values of a publication, or of a (publication, observer)."""
        return self.publication(key).values

    def publication(self, key: str | tuple[str, str]) -> Published:
        name, observer = key if isinstance(key, tuple) else (key, None)
        found = [one for one in self.published if one.name == name and observer in (None, one.observer)]
        if len(found) != 1:
            known = ", ".join(f"({one.name!r}, {one.observer!r})" for one in self.published)
            raise InputError(f"There {'is no' if not found else 'are several'} {name!r} here. Ask for one of {known}.")
        return found[0]

    def model(self, key: str | tuple[str, str]) -> PublishedModel:
        """A published classifier, regression or outlier detector, ready to predict."""
        from sfumato.learn.model_document import model_from_text

        documents = self.publication(key).documents
        if "json" not in documents:
            raise InputError(f"{key!r} is no model. Ask for a classifier, a regression or outliers.")
        return model_from_text(documents["json"])

    @property
    def certificate(self) -> Certificate:
        """Of everything together; a study with several datasets has one each in `certificates`."""
        whole = [certificate for name, certificate in self.certificates.items() if "/" not in name]
        if len(whole) != 1:
            raise InputError(f"There is one certificate per dataset: {', '.join(sorted(self.certificates))}.")
        return whole[0]


@dataclass(frozen=True)
class _Drawn:
    """What lies behind all that some observers see of one dataset."""

    events: tuple[Event | Repeated, ...]
    proofs: tuple[str, ...]
    notes: tuple[str, ...]


def _drawn(
    plan: Plan, performed: Mapping[ActKey, Performed], dataset: str, observers: tuple[str, ...] | None = None
) -> _Drawn:
    acts = plan.acts_of(dataset, observers)
    done = [performed[act.key] for act in acts]
    events = (*plan.draw_events(dataset, observers), *(event for one in done for event in one.events))
    proofs = _PROOFS.union(*(one.proofs for one in done), *(event.proof_ids() for event in events))
    proofs |= _proofs_of_plan(plan, dataset) | ({"portions"} if acts else set())
    notes = [
        "Sensitivities of nodes follow from the study named by the plan; `sfumato verify FOLDER --study STUDY.pl` "
        "derives them again."
    ]
    notes += _who_draws(plan)
    notes += [f"{one.name} for {one.observer}: {LISTED}" for one in _listed(plan, dataset, observers)]
    for act, one in zip(acts, done, strict=True):
        notes += [f"{act.name} for {act.readers}: {note}" for note in one.notes]
    return _Drawn(events, tuple(sorted(proofs)), tuple(notes))


def _who_draws(plan: Plan) -> list[str]:
    shared = sharing_of(plan)
    return [f"Drawn by {shared.centres} centres ({shared.words}): one has to trust {shared.trust}."] if shared else []


def _proofs_of_plan(plan: Plan, dataset: str) -> set[str]:
    """The proofs of what is drawn of a dataset beyond those of the single events."""
    drawn = {draw.node for draw in plan.draws if draw.dataset == dataset}
    proofs = {question.proof for name, question in plan.questions.items() if name in drawn}
    if any(isinstance(one.asked, Pufferfish) for one in plan.promises if one.dataset == dataset):
        proofs.add("pufferfish")
    shared = sharing_of(plan)
    return proofs | ({"centre_sums", *shared.proofs} if shared is not None else set())


def _listed(plan: Plan, dataset: str, observers: tuple[str, ...] | None) -> list[Planned]:
    """The publications of a dataset that show these observers a row for each individual."""
    whose = {promise.requirement: promise.dataset for promise in plan.promises}
    own = [one for one in plan.publications if one.listed and whose.get(one.requirement) == dataset]
    return [one for one in own if observers is None or one.observer in observers]


def certificates_of(
    plan: Plan, performed: Mapping[ActKey, Performed], publishable: bool, without: Set[str] = frozenset()
) -> dict[str, Certificate]:
    """One for everything drawn from a dataset, and one for each promise: of the events that were really drawn.

    Datasets named in `without` are left out.
    """
    found: dict[str, Certificate] = {}
    issue = partial(Certificate.issue, plan=plan.hash, publishable=publishable)

    def issued(subject: str, drawn: _Drawn, told: Guarantee | None) -> Certificate:
        return issue(subject=subject, events=drawn.events, proofs=drawn.proofs, notes=drawn.notes, guarantee=told)

    for dataset in (one for one in plan.datasets if one not in without):
        drawn = _drawn(plan, performed, dataset)
        subject, told = f"{plan.study}: everything drawn from {dataset}", _told(plan, dataset, drawn.events)
        found[dataset] = issued(subject, drawn, told)
    for promise in (one for one in plan.promises if one.dataset not in without):
        drawn = _drawn(plan, performed, promise.dataset, promise.observers)
        if drawn.events:
            who = " and ".join(promise.observers)
            subject = f"{plan.study}: what {who} sees of {promise.dataset}"
            told = promise.asked if isinstance(promise.asked, _STATABLE) else None
            found[f"{promise.dataset}/{who}"] = issued(subject, drawn, told)
    return found


def _told(plan: Plan, dataset: str, events: tuple[Event | Repeated, ...]) -> Guarantee | None:
    """What events stated for one row promise an individual of several rows; None: what they cost, and no more."""
    if not events:
        return None
    cost = compose(events)
    told = plan.for_individuals(dataset, cost)
    return None if told is cost else told


def certificate_files(plan: Plan) -> dict[str, str]:
    """The file of every certificate that a release of this plan has, and what that certificate is about."""
    stems = _certificate_stems(plan)
    found = {_certificate_file(plan, dataset, stems): f"everything drawn from {dataset}" for dataset in plan.datasets}
    for promise in plan.promises:
        who = " and ".join(promise.observers)
        if plan.events(promise.dataset, promise.observers):
            name = _certificate_file(plan, f"{promise.dataset}/{who}", stems)
            found[name] = f"what {who} sees of {promise.dataset}"
    return found


def file_names(plan: Plan) -> tuple[str, ...]:
    """The longest names a release of this plan will use: what a disk must be able to hold."""
    results = [f"results/{stem}.channel.json" for stem in _result_stems(plan).values()]
    return (*results, *(f"certificate.{stem}.json" for stem in _certificate_stems(plan).values()))


def _result_stems(plan: Plan) -> dict[tuple[str, ...], str]:
    return file_stems((planned.name, planned.observer) for planned in plan.publications)


def _certificate_stems(plan: Plan) -> dict[tuple[str, ...], str]:
    promises = [f"{promise.dataset}/{' and '.join(promise.observers)}" for promise in plan.promises]
    return file_stems((name,) for name in (*plan.datasets, *promises))


def write(
    release: Release, plan: Plan, folder: Path, charged: bool, row_key: str, more: Mapping[str, Any] | None = None
) -> Release:
    """All files of a release; the release with certificates that name them. `row_key` is the name of that key, `more`
    what else is to be said about the run, such as who was in a sum over centres."""
    _write_results(release, plan, folder / "results")
    (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    reserved = ["reserved the cost"] if charged else ["no ledger was charged"]
    steps = ["evaluated the network", *reserved, "drew the noise", "wrote results"]
    steps += ["committed the cost before this folder was shown"] if charged else []
    if more is not None:
        steps = ["opened the sum over the centres, whose ledgers were charged", "wrote results"]
    log = {"plan": plan.hash, "study": plan.study, "steps": steps, "row_key": row_key, **(more or {})}
    (folder / "run.json").write_text(json.dumps(log, indent=2) + "\n", encoding="utf-8")
    certificates = _bound(release, plan, folder)
    stems = _certificate_stems(plan)
    for name, certificate in certificates.items():
        certificate.write(folder / _certificate_file(plan, name, stems))
    return replace(release, certificates=certificates)


def _write_results(release: Release, plan: Plan, results: Path) -> None:
    results.mkdir(exist_ok=True)
    index, stems = [], _result_stems(plan)
    for one in release.published:
        stem = stems[one.name, one.observer]
        parquet.write_table(one.values, results / f"{stem}.parquet", write_statistics=False)
        entry = {"publication": one.name, "observer": one.observer, "level": one.level, "file": f"{stem}.parquet"}
        more = {"documents": sorted(one.documents)} if one.documents else {}
        more |= {"tables": sorted(one.tables)} if one.tables else {}
        index.append({**entry, **more})
        for ending, text in one.documents.items():
            (results / f"{stem}.{ending}").write_text(text, encoding="utf-8")
        for name, table in one.tables.items():
            parquet.write_table(table, results / f"{stem}.{name}.parquet", write_statistics=False)
        if not one.of_individuals and not one.documents:
            text = json.dumps(_plain(one.values.to_pylist()), indent=2, ensure_ascii=False, allow_nan=False)
            (results / f"{stem}.json").write_text(text + "\n", encoding="utf-8")
    (results / "index.json").write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _bound(release: Release, plan: Plan, folder: Path) -> dict[str, Certificate]:
    """The certificates with what they are issued for: everything, or what the observers of a promise see."""
    files, stems, results = hashes(folder), _certificate_stems(plan), _result_stems(plan)
    whole = write_manifest(folder, "manifest.json", files)
    found: dict[str, Certificate] = {}
    seen = {f"{p.dataset}/{' and '.join(p.observers)}": {*p.observers, EVERYONE} for p in plan.promises}
    for name, certificate in release.certificates.items():
        named = whole
        if name in seen:
            own = tuple(f"results/{stem}." for (_, observer), stem in results.items() if observer in seen[name])
            visible = [path for path in files if path.startswith(own)]
            named = write_manifest(folder, f"manifest.{stems[name,]}.json", files, visible)
        found[name] = certificate.bound_to(named)
    return found


def _certificate_file(plan: Plan, name: str, stems: Mapping[tuple[str, ...], str]) -> str:
    whole = len(plan.datasets) == 1 and name == plan.datasets[0]
    return "certificate.json" if whole else f"certificate.{stems[name,]}.json"


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """JSON has no infinite numbers: an end of an interval that is nowhere becomes null."""
    return [
        {name: None if isinstance(cell, float) and not math.isfinite(cell) else cell for name, cell in row.items()}
        for row in rows
    ]


def read_release(folder: Place) -> Release:
    """A release as it was written."""
    folder = place_of(folder)
    try:
        index = json.loads((folder / "results" / "index.json").read_text(encoding="utf-8"))
        plan = Plan.read(folder / "plan.json")
        published = tuple(_published(entry, folder / "results") for entry in index)
        found = {path: Certificate.read(path) for path in sorted(folder.glob("certificate*.json"))}
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{folder} does not hold a complete release.") from error
    stems = _certificate_stems(plan)
    names = {_certificate_file(plan, name, stems): name for (name,) in stems}
    certificates = {names.get(path.name, path.stem): certificate for path, certificate in found.items()}
    return Release(plan.hash, published, certificates, folder)


def _published(entry: Mapping[str, Any], results: Path) -> Published:
    values = parquet.read_table(results / entry["file"])
    stem = str(entry["file"]).removesuffix("parquet")
    texts = {ending: (results / f"{stem}{ending}").read_text("utf-8") for ending in entry.get("documents", ())}
    tables = {name: parquet.read_table(results / f"{stem}{name}.parquet") for name in entry.get("tables", ())}
    return Published(entry["publication"], entry["observer"], entry["level"], values, texts, tables)
