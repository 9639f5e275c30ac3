"""`sfumato plan`, `sfumato run`, `sfumato explain`: a study at the command line.

In:   arguments.
Out:  plans, releases and their explanations, as text and files.
Not here: what they mean (plan/, run/study.py, evidence/explain.py).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.core.certificate import Certificate
from sfumato.errors import DataError, InputError
from sfumato.lang import load
from sfumato.lang.spec import Spec
from sfumato.ledger.ledger import Ledger
from sfumato.plan.plan import Plan
from sfumato.plan.told import told_before
from sfumato.plan.usefulness import verdicts
from sfumato.run.accounts import Grant
from sfumato.run.generate import PEOPLE, generated_tables
from sfumato.run.interruption import told_when_interrupted
from sfumato.run.planning import make_plan
from sfumato.run.study import Release, run_plan

__all__ = ["plan_study", "plan_table", "public_tables", "run_study"]


def public_tables(spec: Spec, folder: Path) -> dict[str, Path]:
    """The files of tables declared public, in `folder`; the others are not opened."""
    found: dict[str, Path] = {}
    for source in spec.sources:
        path = (folder / source.path).resolve()
        if source.table in spec.public_tables:
            if not path.is_relative_to(folder.resolve()) or not path.is_file():
                raise DataError(
                    f"{folder} has no file {source.path} for the public table {source.table}. Give its folder with "
                    "--data. Nothing was planned and nothing was spent."
                )
            found[source.table] = path
    return found


def plan_study(study: Path, data: Path | None, sizes: Mapping[str, float]) -> Plan:
    spec = load(study)
    return make_plan(spec, public_tables(spec, data or study.parent), sizes=sizes)


def read_sizes(given: list[str] | None) -> dict[str, float]:
    """NAME=NUMBER pairs."""
    sizes: dict[str, float] = {}
    for text in given or []:
        name, sign, number = text.partition("=")
        try:
            sizes[name.strip()] = float(number)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise InputError(f"--size {text!r} is not NAME=NUMBER, for example --size patients=1000.")
    return sizes


def run_study(
    study: Path,
    data: Path,
    out: Path,
    ledger: Ledger | Path,
    *,
    grant: Grant = False,
    dry_run: bool = False,
    resume: bool = False,
    sizes: Mapping[str, float] | None = None,
    engine: str = "local",
    tell: Callable[[str], None] = lambda text: None,
    holds: Callable[[Certificate], bool] | None = None,
    stage: Callable[[str], None] = lambda name: None,
) -> tuple[Plan, Release]:
    """Plan and run; a dry run uses invented people and leaves the ledger alone. `holds` is that of run_plan."""
    stage("planning")
    if dry_run:
        spec = load(study)
        public = public_tables(spec, data)
        tables: Mapping[str, Any] = generated_tables(spec, public)
        known = {dataset.name: float(PEOPLE) for dataset in spec.datasets} | dict(sizes or {})
        plan = make_plan(spec, public, sizes=known)
        tell(_summary(plan))
        for name in (name for name in known if name not in (sizes or {})):
            tell(f"planned for {PEOPLE} individuals of {name}, as many as are invented: --size {name}=N plans for N")
        return plan, run_plan(plan, tables, None, out=out, random_state=0, engine=engine, holds=holds, stage=stage)
    plan = plan_study(study, data, sizes or {})
    tell(_summary(plan))
    for sentence in verdicts(plan):  # before anything is spent
        tell(sentence)
    path = ledger.path if isinstance(ledger, Ledger) else Path(ledger)
    words = ["sfumato", "run", study, "--data", data, "--out", out, "--ledger", path.resolve(), "--resume"]
    words += [word for name, number in (sizes or {}).items() for word in ("--size", f"{name}={number:g}")]
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
            again=again,
            holds=holds,
            stage=stage,
        )
    return plan, release


def _summary(plan: Plan) -> str:
    acts = len(plan.draws) + len(plan.acts)
    return f"plan {plan.hash[:12]}: {len(plan.publications)} publication(s), {acts} random act(s)"


def plan_table(plan: Plan) -> Table:
    """The publications of a plan, one a line."""
    table = Table("publication", "observer", "strategy", "95 % within", "standard error", box=None, pad_edge=False)
    for planned in plan.publications:
        told = [one for seen in planned.seen for one in told_before(seen)]
        for place, one in enumerate(told):
            first = place == 0
            table.add_row(
                Text(planned.name if first else ""),
                Text(planned.observer if first else ""),
                Text(planned.strategy if first else ""),
                one.within,
                Text(f"{one.error}  {one.name}{f'. {one.note}' if one.note else ''}"),
            )
    return table


def show_plan(plan: Plan, console: Console) -> None:
    console.print(plan_table(plan))
    for promise in plan.promises:
        console.print(f"promise to {' and '.join(promise.observers)}: {promise.asked}", markup=False)
    for planned in plan.publications:
        for sentence in planned.about:
            console.print(f"{planned.name} for {planned.observer}: {sentence}", markup=False, highlight=False)
    for sentence in verdicts(plan):
        console.print(sentence, style="yellow", markup=False, highlight=False)
    for assumption in plan.assumptions:
        console.print(f"assumed for the predictions: {assumption}", style="dim", markup=False)


def write_new(path: Path, text: str) -> None:
    """The whole file or none of it."""
    draft = path.with_name(f".{path.name}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
