"""Run a plan over tables: the only step that sees data.

In:   a Plan with its network, tables, a ledger.
Out:  Release: what each observer may see, with certificates; on disk one folder, complete or absent.
Not here: deciding anything (plan/), evaluating the network (network/evaluate.py), what an observer sees (run/view.py),
tables and models (run/publish.py), files and certificates (run/study_files.py).

Order of events: evaluate, reserve, draw, write a hidden folder, commit, show the folder. Whatever fails after the
reservation keeps the charge and leaves no output.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import DataError, InputError, PlanError
from sfumato.network.evaluate import Values
from sfumato.network.network import Network
from sfumato.plan.derive import derive
from sfumato.plan.plan import Plan
from sfumato.plan.request import requests_of
from sfumato.run.engine import Engine
from sfumato.run.ledger import Ledger
from sfumato.run.ledger_records import Reservation
from sfumato.run.row_key import row_key as dataset_key
from sfumato.run.study_files import Published, Release, read_release
from sfumato.run.study_files import certificates_of as _certificates
from sfumato.run.study_files import write as _write
from sfumato.run.tables import _all_or_nothing, _check_target, _grant_if_new
from sfumato.run.view import Drawn, View

if TYPE_CHECKING:
    from sfumato.run.publish import Columns
    from sfumato.run.publish_base import Performed

__all__ = ["Published", "Release", "read_release", "run_plan", "tables_in"]


def tables_in(plan: Plan, folder: Path) -> dict[str, Path]:
    """The files the study's sources name, inside `folder` and nowhere else."""
    network = _network(plan)
    found: dict[str, Path] = {}
    base = folder.resolve()
    for source in network.spec.sources:
        path = (base / source.path).resolve()
        if not path.is_relative_to(base):
            raise DataError(
                f"source({source.table}, …) points outside {folder}. Nothing was read and nothing was spent."
            )
        if not path.is_file():
            raise DataError(
                f"{folder} has no file {source.path}, which source({source.table}, …) names. Put it there, or give "
                "another folder with --data. Nothing was read and nothing was spent."
            )
        found[source.table] = path
    return found


def run_plan(
    plan: Plan,
    data: Mapping[str, Any] | str | Path,
    ledger: Ledger | str | Path | None,
    *,
    out: Path | None = None,
    resume: bool = False,
    random_state: int | None = None,
    engine: str | Engine = "local",
    row_key: bytes | None = None,
) -> Release:
    """Draw what the plan says from `data` (a folder, or tables by name) and charge the ledger.

    `random_state` is for dry runs: nothing is charged and the result is not for publication. With `resume` a release of
    the same plan that is already in `out` is returned as it is, and an interrupted run takes up its own reservation.
    `engine` is "local", "dask" or the address of a scheduler: it evaluates the network; noise is drawn here alone.
    `row_key` decides which rows of a person with many rows are kept; without it the ledger's key does, and without a
    ledger a fixed one (network/rows.py).
    """
    network = _network(plan)
    if resume and out is not None and (stored := _stored(plan, out)) is not None:
        return stored
    if out is not None:
        _check_target(out)
    tables = tables_in(plan, Path(data)) if isinstance(data, str | Path) else dict(data)
    _check_derived(plan, network)
    values = _evaluated(network, tables, engine, _row_keys(network, ledger, row_key))
    columns = _columns(plan, values)
    if out is not None:
        _remove_leftovers(out)
    if random_state is not None:
        return _finish(plan, network, values, columns, out, random_state)
    book = ledger if isinstance(ledger, Ledger) or ledger is None else Ledger(ledger)
    reservations = _reserve(plan, book, resume) if book is not None else []
    return _finish(plan, network, values, columns, out, None, book, reservations)


def _check_derived(plan: Plan, network: Network) -> None:
    """A plan that was edited, or made for another study, is not run: all it claims is derived again first."""
    false = [finding for finding in derive(plan, network) if not finding.ok]
    if false:
        raise PlanError(
            f"The plan does not follow from its study ({false[0].field}: {false[0].sentence}) Make it again with "
            "make_plan. Nothing was read, drawn or spent."
        )


def _remove_leftovers(out: Path) -> None:
    """Hidden folders of runs that were killed before their cost was committed: nobody has seen them, nobody may."""
    for old in out.resolve().parent.glob(f".{out.name}.*"):
        if old.is_dir() and (old / "plan.json").is_file():
            shutil.rmtree(old, ignore_errors=True)


def _network(plan: Plan) -> Network:
    if plan.network is None:
        raise InputError(
            "A plan read from a file says what to do, not on what: make it again from its study (make_plan)."
        )
    return plan.network


def _row_keys(network: Network, ledger: Ledger | str | Path | None, given: bytes | None) -> dict[str, bytes]:
    datasets = [dataset.name for dataset in network.spec.datasets]
    if given is not None:
        return dict.fromkeys(datasets, given)
    if ledger is None:
        return {}
    path = ledger.path if isinstance(ledger, Ledger) else ledger
    return {name: dataset_key(path, name) for name in datasets}


def _evaluated(
    network: Network, tables: Mapping[str, Any], engine: str | Engine, row_keys: Mapping[str, bytes]
) -> Values:
    if engine == "local":
        return network.evaluate(_without_forgotten(network, tables), row_keys)
    from sfumato.run.engine_study import evaluate_on

    return evaluate_on(engine, network, tables, row_keys=row_keys)


def _without_forgotten(network: Network, tables: Mapping[str, Any]) -> Mapping[str, Any]:
    if not network.spec.forgotten:
        return tables
    from sfumato.run.forget import without_forgotten

    return without_forgotten(network.spec, tables)


def _stored(plan: Plan, out: Path) -> Release | None:
    if not (out / "plan.json").is_file():
        return None
    stored = read_release(out)
    if stored.plan_hash != plan.hash:
        raise InputError(
            f"{out} holds the release of another plan ({stored.plan_hash[:12]}, this one is {plan.hash[:12]}). Choose "
            "a new folder. Nothing was run and nothing was spent."
        )
    if not all(certificate.publishable for certificate in stored.certificates.values()):
        raise InputError(
            f"{out} holds a dry run, which is not for publication. Choose a new folder. Nothing was spent."
        )
    return stored


# ── money ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _reserve(plan: Plan, ledger: Ledger, resume: bool) -> list[Reservation]:
    """The cost of every dataset set aside, all or none."""
    made: list[tuple[Reservation, bool]] = []
    purpose = f"plan {plan.hash[:12]} of {plan.study}"
    try:
        for dataset in plan.datasets:
            _grant_if_new(ledger, dataset, plan.cost(dataset))
            key, fresh = _key(plan, ledger, dataset, resume)
            made.append((ledger.reserve(dataset, plan.events(dataset), purpose=purpose, key=key), fresh))
    except BaseException:
        for reservation, fresh in made:
            if fresh:
                ledger.release(reservation)
        raise
    return [reservation for reservation, _ in made]


def _key(plan: Plan, ledger: Ledger, dataset: str, resume: bool) -> tuple[str, bool]:
    """The name of this run in the ledger: of the interrupted one if it is resumed, otherwise a new one."""
    history = ledger.history(dataset)
    settled = {record.reservation for record in history if record.action in ("commit", "release")}
    mine = [record for record in history if (record.key or "").startswith(plan.hash)]
    interrupted = [record for record in mine if record.action == "reserve" and record.reservation not in settled]
    if resume and interrupted:
        return str(interrupted[-1].key), False
    return f"{plan.hash}:{uuid.uuid4().hex}", True


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _finish(
    plan: Plan,
    network: Network,
    values: Values,
    columns: Sequence[Columns],
    out: Path | None,
    random_state: int | None,
    ledger: Ledger | None = None,
    reservations: Sequence[Reservation] = (),
) -> Release:
    drawn = Drawn(random_state)
    levels = {(request.name, request.observer): request.level for request in requests_of(network)}
    performed = _performed(columns, random_state)
    published = tuple(
        performed[planned.name, planned.observer].published(planned.name, planned.observer)
        if (planned.name, planned.observer) in performed
        else View(plan, network, values, drawn, planned.observer).published(
            planned, levels[planned.name, planned.observer]
        )
        for planned in plan.publications
    )
    certificates = _certificates(plan, performed, random_state is None)
    release = Release(plan.hash, published, certificates, out)
    if out is None:
        _commit(ledger, reservations)
        return release
    with _all_or_nothing(out) as folder:
        _write(release, plan, folder, bool(reservations))
        _commit(ledger, reservations)
    return release


def _columns(plan: Plan, values: Values) -> tuple[Columns, ...]:
    if not plan.acts:
        return ()
    from sfumato.run.publish import columns_for  # estimators are imported where there is something to fit

    return columns_for(plan, values)


def _performed(columns: Sequence[Columns], random_state: int | None) -> dict[tuple[str, str], Performed]:
    """Every act done once, each with a seed of its own in a dry run."""
    if not columns:
        return {}
    from sfumato.run.publish import perform

    seeds = (None if random_state is None else random_state + 10_000 + place for place in range(len(columns)))
    return {(one.act.name, one.act.observer): perform(one, seed) for one, seed in zip(columns, seeds, strict=True)}


def _commit(ledger: Ledger | None, reservations: Sequence[Reservation]) -> None:
    for reservation in reservations:
        assert ledger is not None
        ledger.commit(reservation)
