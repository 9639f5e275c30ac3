"""Run a plan over tables: the only step that sees data.

In:   a Plan with its network, tables, a ledger.
Out:  Release: what each observer may see, with certificates; on disk one folder, complete or absent.
Not here: deciding anything (plan/), evaluating the network (network/evaluate.py), tables and models (run/publish.py),
files and certificates (run/study_files.py).

Order of events: evaluate, reserve, draw, write a hidden folder, commit, show the folder. Whatever fails after the
reservation keeps the charge and leaves no output.
"""

from __future__ import annotations

import math
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sfumato.errors import DataError, InputError, PlanError
from sfumato.lang.term import show
from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import Bounds
from sfumato.network.evaluate import ID, Values
from sfumato.network.network import Network
from sfumato.network.totals import AggregateValue
from sfumato.plan.derive import derive
from sfumato.plan.discrete import SampleDraw
from sfumato.plan.draw import Draw, combined_variance
from sfumato.plan.individual_part import AnyDraw
from sfumato.plan.linear_individual import LinearDraw
from sfumato.plan.plan import Plan, Planned, Seen
from sfumato.plan.request import requests_of, shared_template, template_of
from sfumato.plan.statistic import Sums, statistic_of
from sfumato.plan.template import Template
from sfumato.run.engine import Engine
from sfumato.run.ledger import Ledger
from sfumato.run.ledger_records import Reservation
from sfumato.run.study_files import Published, Release, read_release
from sfumato.run.study_files import certificates_of as _certificates
from sfumato.run.study_files import write as _write
from sfumato.run.tables import _all_or_nothing, _check_target, _grant_if_new

if TYPE_CHECKING:
    from sfumato.run.publish import Columns
    from sfumato.run.publish_base import Performed

__all__ = ["Published", "Release", "read_release", "run_plan", "tables_in"]

#: Bounds of what is not noisy any more: published sums are read as they are.
_ANYTHING = Bounds.unbounded("a published sum")


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
) -> Release:
    """Draw what the plan says from `data` (a folder, or tables by name) and charge the ledger.

    `random_state` is for dry runs: nothing is charged and the result is not for publication. With `resume` a release of
    the same plan that is already in `out` is returned as it is, and an interrupted run takes up its own reservation.
    `engine` is "local", "dask" or the address of a scheduler: it evaluates the network; noise is drawn here alone.
    """
    network = _network(plan)
    if resume and out is not None and (stored := _stored(plan, out)) is not None:
        return stored
    if out is not None:
        _check_target(out)
    tables = tables_in(plan, Path(data)) if isinstance(data, str | Path) else dict(data)
    _check_derived(plan, network)
    values = _evaluated(network, tables, engine)
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


def _evaluated(network: Network, tables: Mapping[str, Any], engine: str | Engine) -> Values:
    if engine == "local":
        return network.evaluate(_without_forgotten(network, tables))
    from sfumato.run.engine_study import evaluate_on

    return evaluate_on(engine, network, tables)


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
    drawn = _Drawn(random_state)
    levels = {(request.name, request.observer): request.level for request in requests_of(network)}
    performed = _performed(columns, random_state)
    published = tuple(
        performed[planned.name, planned.observer].published(planned.name, planned.observer)
        if (planned.name, planned.observer) in performed
        else _View(plan, network, values, drawn, planned.observer).published(
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


@dataclass
class _Drawn:
    """Every act of the plan, done once: observers who share a draw are shown the same noise."""

    random_state: int | None
    done: dict[AnyDraw, np.ndarray] = field(default_factory=dict)

    def __call__(self, draw: AnyDraw, exact: np.ndarray) -> np.ndarray:
        if draw not in self.done:
            seed = None if self.random_state is None else self.random_state + len(self.done)
            self.done[draw] = draw.mechanism(seed)(exact)
        return self.done[draw]

    def combined(self, draws: Sequence[Draw | LinearDraw], exact: np.ndarray) -> np.ndarray:
        """Versions of one node put together by precision."""
        weights = [1 / draw.variance for draw in draws]
        total = np.zeros(np.shape(exact))
        for weight, draw in zip(weights, draws, strict=True):
            total += weight * self(draw, exact)
        return total / math.fsum(weights)


def _sums(kind: str, value: AggregateValue) -> Sums:
    vector = value.vector
    if kind in ("mean", "sum") and value.exact is not None:
        # Rows that count by a probability add up to a fraction, which a float would round.
        count = value.count if isinstance(value.count, Fraction) else float(value.count)
        return Sums(count, value.exact[0])
    if kind == "count":
        return Sums(float(vector[0]), vector)
    if kind == "moment2":
        size = int((math.isqrt(8 * len(vector) + 1) - 1) // 2)
        matrix = np.zeros((size, size))
        matrix[np.triu_indices(size)] = vector
        return Sums(0.0, matrix + np.triu(matrix, 1).T)
    return Sums(0.0, vector)


@dataclass(frozen=True)
class _View:
    """What one observer sees: the network evaluated with this observer's draws in place of what they cover."""

    plan: Plan
    network: Network
    values: Values
    drawn: _Drawn
    observer: str

    def published(self, planned: Planned, level: str) -> Published:
        table = self._individuals(planned) if level == "individual" else self._aggregates(planned)
        return Published(planned.name, planned.observer, level, table)

    def _draws(self, node: str, group: int | None) -> list[Draw]:
        mine = [d for d in self.plan.draws if d.group == group and self.observer in d.observers]
        return [d for d in mine if isinstance(d, Draw) and d.node == node]

    def _linear_draws(self, group: int) -> list[LinearDraw]:
        mine = [d for d in self.plan.draws if d.group == group and self.observer in d.observers]
        return [d for d in mine if isinstance(d, LinearDraw)]

    def _aggregates(self, planned: Planned) -> pa.Table:
        sums = {node.name: node for node in self.network.aggregates}
        rows: list[tuple[str, str, float, float]] = []
        for seen in planned.seen:
            labels: Sequence[str] = ("",)
            if seen.node in sums:
                value = self._sum(sums[seen.node])
                labels = _labels(sums[seen.node]) if value.size > 1 else labels
            else:
                value = self._shared(seen.node)
            error = math.sqrt(self._error(seen, sums.get(seen.node)) / seen.size)
            rows += [(seen.node, label, float(x), error) for label, x in zip(labels, np.ravel(value), strict=True)]
        names = ("node", "part", "value", "standard_error")
        return pa.table({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})

    def _error(self, seen: Seen, node: AggregateNode | None) -> float:
        """Expected squared error; of a mean with the number of contributions as it is known, exactly or noisily."""
        draws = self._draws(seen.node, None)
        if node is None or node.kind != "mean" or not draws:
            return seen.error
        statistic, pure = statistic_of(node, self.network), draws[0].noise == "laplace"
        sums = _sums(node.kind, self.values.aggregates[node.name])
        if statistic.has_public_count:
            count = sums.count
        else:
            drawn = self.drawn.combined(draws, statistic.encode(sums, pure))
            count = max(1.0, float(drawn[1]) / (statistic.l1_unit if pure else statistic.unit))
        return statistic.error(combined_variance(tuple(draws)), count, pure)

    def _sum(self, node: AggregateNode) -> np.ndarray:
        statistic = statistic_of(node, self.network)
        sums = _sums(node.kind, self.values.aggregates[node.name])
        draws = self._draws(node.name, None)
        if not draws:
            if not statistic.is_public:
                raise InputError(f"{node.name} was planned without noise and is not public. Nothing was published.")
            return statistic.decode(statistic.encode(sums), sums.count)
        pure = draws[0].noise == "laplace"
        noisy = self.drawn.combined(draws, statistic.encode(sums, pure))
        # The number of contributions is used exactly only where everybody knows it.
        return statistic.decode(noisy, sums.count if statistic.has_public_count else None, pure)

    def _shared(self, name: str) -> np.ndarray:
        """Something computed from published aggregates and public facts: post-processing."""
        sums = {node.name: node for node in self.network.aggregates}
        template = shared_template(self.network, [name], dict.fromkeys(sums, _ANYTHING))
        inputs = {
            node: np.ravel(self._sum(sums[node]))[:1] if node in sums else np.ravel(self.values.column(node))[:1]
            for node in template.order
            if node not in template.formulas
        }
        return template.evaluate(inputs)[name]

    def _individuals(self, planned: Planned) -> pa.Table:
        names = list(dict.fromkeys(seen.node for seen in planned.seen))
        dataset = self._dataset(planned)
        table = self.values.individuals[dataset]
        columns: dict[str, np.ndarray] = {}
        for index, rows in self._groups(dataset):
            for name, shown in self._shown(index, rows, names, table).items():
                kind = object if shown.dtype.kind in "OUS" else np.float64
                empty = None if kind is object else np.nan
                columns.setdefault(name, np.full(table.num_rows, empty, dtype=kind))[rows] = shown
        return pa.table({ID: table[ID], **columns}).sort_by(ID)

    def _dataset(self, planned: Planned) -> str:
        """Whose individuals a publication shows; who they are must be public."""
        spec = self.network.spec
        found = next(r.dataset for r in spec.requirements if show(r.name) == planned.requirement)
        if spec.dataset(found).adjacency.relation != "replace-one":
            raise PlanError(f"{planned.name} would show who is in {found}, which is protected. Nothing was published.")
        return found

    def _shown(self, index: int, rows: np.ndarray, names: Sequence[str], table: pa.Table) -> dict[str, np.ndarray]:
        """What the individuals of one group show of the named nodes."""
        answers = [d for d in self.plan.draws if d.group == index and self.observer in d.observers and d.node in names]
        sampled = {d.node: d for d in answers if isinstance(d, SampleDraw)}
        shown = {name: self._answered(draw, rows, table) for name, draw in sampled.items()}
        numbers = [name for name in names if name not in sampled]
        template = template_of(self.network, self.network.groups[index], numbers) if numbers else None
        if template is None or not rows.size:
            return shown
        linear = self._linear_draws(index)
        wanted = linear[0].candidate.inputs if linear else [n for n in template.order if n not in template.formulas]
        inputs = {node: self._column(node, rows, table) for node in wanted}
        found = self._read(linear, inputs) if linear else self._evaluated(template, inputs, index, rows.size)
        return shown | {name: found[name] for name in numbers if name in found}

    def _column(self, node: str, rows: np.ndarray, table: pa.Table) -> np.ndarray:
        return self.values.column(node)[rows] if node in table.column_names else self.values.column(node)

    def _answered(self, draw: SampleDraw, rows: np.ndarray, table: pa.Table) -> np.ndarray:
        """One random answer per individual."""
        values = {name: self._column(name, rows, table) for name in draw.candidate.inputs}
        states = draw.candidate.rows(values, rows.size)
        answers = np.array(draw.candidate.answers, dtype=object)
        return answers[self.drawn(draw, states)] if rows.size else answers[:0]

    def _groups(self, dataset: str) -> list[tuple[int, np.ndarray]]:
        """The places of each public group's individuals in the dataset's table."""
        membership = self.values.membership(dataset)
        own = [index for index, group in enumerate(self.network.groups) if group.dataset == dataset]
        return [(index, np.flatnonzero(membership == index)) for index in own]

    def _read(self, draws: Sequence[LinearDraw], inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Linear answers read off the noisy strategy."""
        candidate = draws[0].candidate
        return candidate.read(self.drawn.combined(draws, candidate.apply(inputs)))

    def _evaluated(self, template: Template, inputs: Mapping[str, Any], group: int, size: int) -> dict[str, np.ndarray]:
        """The template in topological order; a node of the cut is drawn, clipped to its bounds, and only then read."""
        read: dict[str, np.ndarray] = {}
        for name in template.order:
            value = inputs[name] if name not in template.formulas else template.formulas[name].evaluate(read)
            draws = self._draws(name, group)
            if draws:
                exact = np.broadcast_to(np.asarray(value, dtype=np.float64), (size,))
                bounds = template.bounds[name]
                value = np.clip(self.drawn.combined(draws, exact), bounds.low, bounds.high)
            read[name] = np.asarray(value)
        return {name: np.broadcast_to(value, (size,)) for name, value in read.items()}


def _labels(node: AggregateNode) -> Sequence[str]:
    if node.kind == "moment2":
        return [f"{first} * {second}" for first in node.values for second in node.values]
    return node.labels
