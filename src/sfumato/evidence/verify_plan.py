"""A published folder checked against its study: every sensitivity derived again, no optimisation repeated, no data.

In:   a folder written by `sfumato run`, `release` or `coordinate`, optionally the study (and its public tables).
Out:  Checks, as for a certificate.
Not here: certificates alone (evidence/verify.py, which knows nothing but core).

What a certificate cannot say is why a node moves by no more than its stated sensitivity. That follows from the study:
ranges, expressions, contribution bounds, and the fact that the noisy nodes cut every way from private data to what is
seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sfumato.core import NoGuarantee
from sfumato.core.certificate import Certificate
from sfumato.core.digest import plan_record
from sfumato.core.places import Place, place_of
from sfumato.core.threads import calm_threads
from sfumato.errors import SfumatoError
from sfumato.evidence.fairness import fairness_records, fairness_words, verify_fairness
from sfumato.evidence.recipient import recipient_text
from sfumato.evidence.verify import Check, verify
from sfumato.evidence.verify_files import uncovered, verify_files
from sfumato.lang import load
from sfumato.lang.inside import at_home
from sfumato.lang.spec import Spec
from sfumato.network.network import Network
from sfumato.plan.make import network_of
from sfumato.plan.plan import Plan
from sfumato.plan.whole import asked_together, at_promises
from sfumato.run.derived import derive_plan
from sfumato.run.study_files import certificate_files

__all__ = ["verify_folder", "verify_plan"]


@calm_threads()
def verify_folder(
    folder: Place, study: Place | None = None, tables: Mapping[str, Any] | None = None
) -> tuple[Check, ...]:
    """All checks of a published folder: certificates, the files they name, the plan; with the study also its own."""
    folder = place_of(folder)
    checks: list[Check] = []
    plan: Plan | None = None
    if (folder / "plan.json").exists() or (folder / "results").exists() or study is not None:
        try:
            plan = Plan.read(folder / "plan.json")
        except SfumatoError as error:
            return (Check("plan.json", False, str(error)),)
        checks.append(Check("plan.json", True, f"It is the plan {plan.hash[:12]} and was not changed."))
    files = sorted(folder.glob("certificate*.json"))
    if not files:
        checks.append(Check("certificate.json", False, "There is no certificate here."))
    if plan is not None:
        checks.extend(_missing(folder, plan))
    for path in files:
        checks.extend(_certificate(path, plan))
    checks.extend(_publishable(files))
    checks.extend(_fair(folder, files))
    checks.extend(_uncovered(folder, plan))
    if study is not None and plan is not None:
        checks.extend(verify_plan(plan, network_of(_planned_part(plan, study), tables)))
    return tuple(checks)


def _planned_part(plan: Plan, study: Place) -> Spec:
    """Of a study with steps the one that was planned; of one over centres what was planned at home, if that was."""
    spec = load(study, plan.extras.get("step"))
    return at_home(spec, plan.extras["inside"]) if "inside" in plan.extras else spec


def _uncovered(folder: Path, plan: Plan | None) -> Iterator[Check]:
    """Files that no certificate names: README.txt is written again from those that one does, the others are named."""
    rest = uncovered(folder)
    if "README.txt" in rest and plan is not None and _is_written_again(folder, plan):
        rest.remove("README.txt")
        yield Check("README.txt", True, "Written again from the certified files it is the same, word for word.")
    if rest:
        sentence = (
            "No certificate covers these files: anybody could have written or changed them. sfumato report FOLDER "
            "writes README.txt and report.html again."
        )
        yield Check(", ".join(rest), True, sentence, covered=False)


def _is_written_again(folder: Path, plan: Plan) -> bool:
    with suppress(OSError, ValueError, LookupError, TypeError, SfumatoError):
        return (folder / "README.txt").read_text(encoding="utf-8") == recipient_text(plan, folder)
    return False


def _missing(folder: Path, plan: Plan) -> Iterator[Check]:
    """A certificate for every promise of the plan: one that was taken away would be missed by nobody else."""
    for name, subject in certificate_files(plan).items():
        if not (folder / name).is_file():
            yield Check(name, False, f"The certificate of {subject} is missing.")


def _publishable(files: Sequence[Path]) -> Iterator[Check]:
    for path in files:
        try:
            publishable = Certificate.read(path).publishable
        except SfumatoError:
            continue  # said already
        if not publishable:
            yield Check(path.name, False, "A dry run, not for publication: its noise can be repeated.")


def _fair(folder: Path, files: Sequence[Path]) -> Iterator[Check]:
    """The gap of every rule that has to be fair, from its noisy numbers and the noise that a certificate paid for."""
    events: list[Any] = []
    for path in files:
        with suppress(OSError, ValueError, LookupError, TypeError):
            events += json.loads(path.read_text(encoding="utf-8"))["events"]
    for name, record in fairness_records(folder).items():
        checks = verify_fairness(record, events)
        wrong = [check for check in checks if not check.ok]
        if wrong:
            yield from (Check(f"{name}: {check.field}", False, check.sentence) for check in wrong)
        else:
            yield Check(name, True, fairness_words(record))


def _certificate(path: Path, plan: Plan | None) -> Iterator[Check]:
    result = verify(path, plan=None if plan is None else plan_record(plan.to_dict()))
    wrong = [*result.failures, *(check for check in verify_files(path, complete=True) if not check.ok)]
    if wrong:
        yield from (Check(f"{path.name}: {check.field}", False, check.sentence) for check in wrong)
        return
    certificate = Certificate.read(path)
    named = "and every file it names is as it was published" if certificate.files else "naming no files"
    yield Check(path.name, True, f"{_promised(certificate, path.name, plan)}, {named}.")


def _promised(certificate: Certificate, name: str, plan: Plan | None) -> str:
    """What a certificate promises; of everything drawn at the δ of the plan's promises, and that it is no one of them.

    Otherwise it would be told at a δ that nobody was promised.
    """
    whole = {} if plan is None else {f"everything drawn from {dataset}": dataset for dataset in plan.datasets}
    dataset = whole.get(certificate_files(plan).get(name, "")) if plan is not None else None
    if plan is None or dataset is None or isinstance(certificate.guarantee, NoGuarantee):
        return str(certificate.guarantee)
    told = f"{at_promises(certificate.guarantee, plan, dataset)}, under {certificate.adjacency}"
    if len(asked_together(plan, dataset)) < 2:
        return told
    return f"{told}, to all readers together, as if they showed each other what they see"


def verify_plan(plan: Plan, network: Network) -> Iterator[Check]:
    """The plan's promises and sensitivities from the study's own words; see sfumato.run.derived."""
    for finding in derive_plan(plan, network):
        yield Check(*finding)
