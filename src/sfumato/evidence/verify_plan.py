"""A published folder checked against its study: every sensitivity derived again, no optimisation repeated, no data.

In:   a folder written by `sfumato run`, optionally the study (and its public tables).
Out:  Checks, as for a certificate.
Not here: certificates alone (evidence/verify.py, which knows nothing but core).

What a certificate cannot say is why a node moves by no more than its stated sensitivity. That follows from the study:
ranges, expressions, contribution bounds, and the fact that the noisy nodes cut every way from private data to what is
seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.core.certificate import Certificate
from sfumato.core.threads import calm_threads
from sfumato.errors import SfumatoError
from sfumato.evidence.verify import Check, verify
from sfumato.network.network import Network
from sfumato.plan.derive import derive
from sfumato.plan.make import network_of
from sfumato.plan.plan import Plan

__all__ = ["verify_folder", "verify_plan"]


@calm_threads()
def verify_folder(
    folder: Path, study: Path | None = None, tables: Mapping[str, Any] | None = None
) -> tuple[Check, ...]:
    """All checks of a published folder; with the study also those that need it."""
    try:
        plan = Plan.read(folder / "plan.json")
    except SfumatoError as error:
        return (Check("plan.json", False, str(error)),)
    checks = [Check("plan.json", True, f"It is the plan {plan.hash[:12]} and was not changed.")]
    files = sorted(folder.glob("certificate*.json"))
    if not files:
        checks.append(Check("certificate.json", False, "There is no certificate here."))
    for path in files:
        checks.extend(_certificate(path, plan))
    if study is not None:
        checks.extend(verify_plan(plan, network_of(study, tables)))
    return tuple(checks)


def _certificate(path: Path, plan: Plan) -> Iterator[Check]:
    result = verify(path, plan=plan.to_dict())
    if not result.ok:
        yield from (Check(f"{path.name}: {field}", False, sentence) for field, _, sentence in result.failures)
        return
    yield Check(path.name, True, f"{Certificate.read(path).guarantee}.")


def verify_plan(plan: Plan, network: Network) -> Iterator[Check]:
    """The plan's promises and sensitivities from the study's own words; see sfumato.plan.derive."""
    for finding in derive(plan, network):
        yield Check(*finding)
