"""A study in a file: planned, rehearsed with invented people, or run.

In:   the study's path, the folder of its tables, a ledger.
Out:  Plan and Release.
Not here: how they are shown (cli/study.py, studio/), what running means (run/study.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato.core import Guarantee
from sfumato.core.certificate import Certificate
from sfumato.core.places import Place, place_of
from sfumato.errors import InputError
from sfumato.lang import load
from sfumato.lang.inside import at_home
from sfumato.lang.spec import Spec
from sfumato.ledger.ledger import Ledger
from sfumato.network.stores.store import StoredRows, located, read_stored
from sfumato.plan.plan import Plan
from sfumato.plan.usefulness import verdicts
from sfumato.run.accounts import Grant
from sfumato.run.forget import listed, read_forgotten
from sfumato.run.generate import PEOPLE, generated_tables
from sfumato.run.interruption import told_when_interrupted
from sfumato.run.planning import make_plan
from sfumato.run.study import Release, run_plan

__all__ = ["needs_of_steps", "plan_study", "public_tables", "run_study"]


def public_tables(spec: Spec, folder: Path) -> dict[str, Path | StoredRows]:
    """The tables declared public, in `folder` or where it says; the others are not opened."""
    public = [source for source in spec.sources if source.table in spec.public_tables]
    return read_stored({source.table: located(source, folder) for source in public})


def _loaded(study: Path, at: int | None, inside: str | None) -> Spec:
    spec = load(study, at)
    return spec if inside is None else at_home(spec, inside)


def plan_study(
    study: Place, data: Place | None, sizes: Mapping[str, float], at: int | None = None, inside: str | None = None
) -> Plan:
    """The plan of a study file, of one of its steps where it has any, or of what one centre publishes at home."""
    study, data = place_of(study), place_of(data)
    spec = _loaded(study, at, inside)
    return make_plan(spec, public_tables(spec, data or study.parent), sizes=sizes)


def run_study(
    study: Place,
    data: Place,
    out: Place,
    ledger: Ledger | Place,
    *,
    grant: Grant = False,
    dry_run: bool = False,
    resume: bool = False,
    sizes: Mapping[str, float] | None = None,
    at: int | None = None,
    inside: str | None = None,
    forgotten: Place | None = None,
    engine: str = "local",
    tell: Callable[[str], None] = lambda text: None,
    holds: Callable[[Certificate], bool] | None = None,
    stage: Callable[[str], None] = lambda name: None,
    approved: str | None = None,
) -> tuple[Plan, Release]:
    """Plan and run; a dry run uses invented people and leaves the ledger alone. `holds` is that of run_plan.

    `approved` is the text whose plan a person was shown: another one is not run.

    `at` is the step of a study with steps, `inside` the centre that publishes to those within, `forgotten` the list of
    who is forgotten, by the curator (run/forget.py).
    """
    stage("planning")
    study, data, out, forgotten = place_of(study), place_of(data), place_of(out), place_of(forgotten)
    ledger, sizes = ledger if isinstance(ledger, Ledger) else place_of(ledger), sizes or {}
    others = read_forgotten(forgotten) if forgotten is not None else ()
    if dry_run:
        spec = _loaded(study, at, inside)
        listed(spec, others)  # a rehearsal finds what the run would refuse
        plan, tables = _rehearsed(spec, data, sizes, tell)
        return plan, run_plan(plan, tables, None, out=out, random_state=0, engine=engine, holds=holds, stage=stage)
    plan = plan_study(study, data, sizes, at, inside)
    assert plan.network is not None  # it was planned just now
    _check_approved(study, plan.network.spec, approved)
    tell(_summary(plan))
    for sentence in (*(f"assumed: {one}" for one in plan.assumptions), *verdicts(plan)):  # before anything is spent
        tell(sentence)
    path = ledger.path if isinstance(ledger, Ledger) else ledger
    words: list[Any] = ["sfumato", "run", study, "--data", data, "--out", out, "--ledger", path.resolve(), "--resume"]
    words += _options(sizes, {"--at": at, "--forgotten": forgotten, "--inside": inside})
    again = f"`{shlex.join(map(str, words))}`."
    with told_when_interrupted():
        release = run_plan(
            plan,
            data,
            ledger,
            out=out,
            resume=resume,
            engine=engine,
            grant=grant,
            needs=needs_of_steps(study, data, sizes, at) if grant is not False else None,
            forgotten=others,
            again=again,
            holds=holds,
            stage=stage,
            tell=tell,
        )
    return plan, release


def _check_approved(study: Path, spec: Spec, approved: str | None) -> None:
    if approved is not None and spec.text.splitlines() != approved.splitlines():
        raise InputError(
            f"{study.name} was changed after its plan was approved. Look at it again. Nothing was read and nothing was "
            "spent."
        )


def _options(sizes: Mapping[str, float], others: Mapping[str, Any]) -> list[Any]:
    words: list[Any] = [word for name, number in sizes.items() for word in ("--size", f"{name}={number:g}")]
    return words + [word for option, given in others.items() if given is not None for word in (option, given)]


def _rehearsed(
    spec: Spec, data: Path, sizes: Mapping[str, float], tell: Callable[[str], None]
) -> tuple[Plan, Mapping[str, Any]]:
    """The plan for invented people, and their tables."""
    public = public_tables(spec, data)
    tables = generated_tables(spec, public)
    known = {dataset.name: float(PEOPLE) for dataset in spec.datasets} | dict(sizes)
    plan = make_plan(spec, public, sizes=known)
    tell(_summary(plan))
    for name in (name for name in known if name not in sizes):
        tell(f"planned for {PEOPLE} individuals of {name}, as many as are invented: --size {name}=N plans for N")
    return plan, tables


def needs_of_steps(study: Path, data: Path, sizes: Mapping[str, float], at: int | None) -> dict[str, Guarantee] | None:
    """What a first grant must hold for all steps of a study, this one included."""
    if at is None:
        return None
    from sfumato.run.history import publishing_steps
    from sfumato.run.steps import history_needs

    return history_needs([plan_study(study, data, sizes, step) for step in publishing_steps(load(study))])


def _summary(plan: Plan) -> str:
    acts = len(plan.draws) + len(plan.acts)
    return f"plan {plan.hash[:12]}: {len(plan.publications)} publication(s), {acts} random act(s)"
