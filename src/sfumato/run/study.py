"""Run a plan over tables: the only step that sees data.

In:   a Plan with its network, tables, a ledger.
Out:  Release: what each observer may see, with certificates; on disk one folder, complete or absent.
Not here: deciding anything (plan/), evaluating the network (network/evaluate.py), what an observer sees (run/view.py),
tables and models (run/publish.py), files and certificates (run/study_files.py).

Order of events: look whether the columns are there and whether the accounts can pay, evaluate, see that no file changed
meanwhile, make a hidden folder and try all that could fail, reserve, draw, write, mark the folder as complete, commit,
show it. What fails between the reservation and the mark keeps the charge and leaves no output; what fails later leaves
the complete folder, which `resume` publishes as it is. Noise is never drawn twice for one charge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.core.certificate import Certificate
from sfumato.core.places import Place, place_of
from sfumato.errors import InputError, PlanError, SfumatoError, UnprovedError
from sfumato.lang.spec import Forgotten
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.records import Reservation
from sfumato.network.columns import check_columns
from sfumato.network.evaluate import ID, Values
from sfumato.network.network import Network
from sfumato.network.rows import PUBLIC_KEY
from sfumato.network.stores.store import StoredRows
from sfumato.network.told_in_public import network_with, with_other_public
from sfumato.plan.act import ActKey
from sfumato.plan.plan import Plan, Planned
from sfumato.plan.request import requests_of
from sfumato.plan.shared_act import sharing_of
from sfumato.run.accounts import Grant, sources_of
from sfumato.run.charges import check_balance, reserve_plan
from sfumato.run.derived import derive_plan
from sfumato.run.engine.engine import Engine
from sfumato.run.held_tables import all_tables, check_sizes
from sfumato.run.history import check_order, check_turn
from sfumato.run.interruption import Payment, noting_interruption, paying
from sfumato.run.own_columns import with_own_names
from sfumato.run.row_key import key_digest
from sfumato.run.row_key import row_key as ledger_key
from sfumato.run.staging import Staging, check_target, finish, is_waiting
from sfumato.run.study_files import Published, Release, file_names, read_release
from sfumato.run.study_files import certificates_of as _certificates
from sfumato.run.study_files import write as _write
from sfumato.run.unchanged import unchanged
from sfumato.run.view import Draws, View, whole_numbers

if TYPE_CHECKING:
    from sfumato.core.guarantee import Guarantee
    from sfumato.run.publish import Columns
    from sfumato.run.publish_base import Performed

__all__ = ["Published", "Release", "assembled", "read_release", "run_plan", "tables_in"]


def tables_in(plan: Plan, folder: Place) -> dict[str, Path | StoredRows]:
    """Every table of the plan's study, from `folder`."""
    return all_tables(_network(plan).spec, place_of(folder))


def run_plan(
    plan: Plan,
    data: Mapping[str, Any] | str | Path,
    ledger: Ledger | str | Path | None,
    *,
    out: Place | None = None,
    resume: bool = False,
    random_state: int | None = None,
    engine: str | Engine = "local",
    row_key: bytes | None = None,
    grant: Grant = False,
    forgotten: Sequence[Forgotten] = (),
    needs: Mapping[str, Guarantee] | None = None,
    again: str = "call run_plan again with resume=True.",
    holds: Callable[[Certificate], bool] | None = None,
    stage: Callable[[str], None] = lambda name: None,
    tell: Callable[[str], None] = lambda text: None,
) -> Release:
    """Draw what the plan says from `data` (a folder, or tables by name) and charge the ledger.

    `random_state` is for dry runs: nothing is charged and the result is not for publication. With `resume` a release of
    the same plan that is already in `out` is returned as it is, and one that was interrupted when it was complete is
    published as it was drawn; without such a one the run is a new one, at a new cost.
    `engine` is "local", "dask" or the address of a scheduler: it evaluates the network; noise is drawn here alone.
    `row_key` decides which rows of a person with many rows are kept; without it the ledger's key does, and without a
    ledger or in a dry run a fixed one (network/rows.py).
    `forgotten` are forget lines beside the study's own (run/forget.py): the curator's list, in no published file.
    `grant` lets data that has no budget yet get exactly what this plan needs, or what `needs` says by dataset (all
    steps of a history): a person's decision. `again` says how to finish if this is interrupted. `holds` is asked about
    the certificates before anything is reserved, as far as they follow from the plan alone. `stage` is told what is
    being done, for who waits; `tell` hears what is lost by going on.
    """
    network, out = _remembering(_network(plan), forgotten), place_of(out)
    dry = random_state is not None
    if not dry:
        _check_one_party(plan)
    if out is not None and (stored := _left_before(plan, out, ledger, resume, dry, again)) is not None:
        return stored
    payer = None if dry else ledger  # a dry run charges nobody
    with noting_interruption():
        tables = _read(plan, data)
        with unchanged(tables):
            plan, network = _with_these(plan, network, tables)
            key = row_key or _ledger_key(payer)
            charged = _book(payer)
            stage("reading the tables")
            check_columns(network, tables)
            sources = sources_of(network, tables, charged)
            _check_accounts(plan, charged, sources, out, tell)
            stage("evaluating the study")
            values = _evaluated(network, tables, engine, key, _is_of_sums(plan, network), stage)
        if not dry:
            sizes = {name: table.num_rows for name, table in values.individuals.items()}
            check_sizes(network.spec, sizes)
            _tell_of_sizes(plan, network, sizes, tell)
        columns = _columns(plan, values)
        _check_certificates(plan, holds)

    def drawn(payment: Payment) -> Release:
        stage("drawing noise")
        if charged is not None:
            reserve_plan(plan, charged, sources, grant, payment.reservations, needs=needs)
            _check_turn(plan, charged, payment.reservations)
        payment.begin()
        return _drawn_release(plan, network, values, columns, out, random_state)

    if out is None:
        with paying(charged, again) as payment:
            release = drawn(payment)
            _commit(charged, payment.reservations)
        return release
    room = _room(plan, values)
    with (
        paying(charged, again) as payment,
        Staging.open(out, plan.hash, again=again, room=room, files=file_names(plan)) as staging,
    ):
        release = drawn(payment)
        stage("writing")
        release = _write(release, plan, staging.folder, bool(payment.reservations), key_digest(key))
        staging.complete(charged, payment.reservations)
        payment.end()
        _commit(charged, payment.reservations)
        staging.publish()
    return release


def _left_before(
    plan: Plan, out: Path, ledger: Ledger | str | Path | None, resume: bool, dry: bool, again: str
) -> Release | None:
    """What an earlier run of this plan left in `out`, where it is asked for; else `out` must be free for a new one."""
    if resume and not dry:
        finish(out, plan.hash, _book(ledger), again)
        if (stored := _stored(plan, out)) is not None:
            return stored
    _check_resumable(plan, out, resume or dry, again)
    check_target(out)
    return None


def _check_accounts(
    plan: Plan,
    ledger: Ledger | None,
    sources: Mapping[str, tuple[str, ...]],
    out: Path | None,
    tell: Callable[[str], None],
) -> None:
    """Whether it is this plan's turn and the accounts can pay; not asked where a result that was paid waits in `out`.

    Of such a result it is said how to publish it (run/staging.py).
    """
    if ledger is not None and not is_waiting(out):
        check_order(plan, ledger, sources, tell)
        check_balance(plan, ledger, sources)


def _check_turn(plan: Plan, ledger: Ledger, reservations: list[Reservation]) -> None:
    """Whether this step's reservations are the first of their kind; if not they are given back, before any noise."""
    try:
        check_turn(plan, ledger, reservations)
    except BaseException:
        while reservations:
            ledger.release(reservations.pop())
        raise


def _check_one_party(plan: Plan) -> None:
    """A plan over centres is not run where all rows are in one place: nobody was trusted with that."""
    if sharing_of(plan) is not None:
        raise PlanError(
            "This plan adds up over several centres, each with its own rows. Let every centre run `sfumato centre init "
            "NAME` and send its card; then `sfumato coordinate init STUDY.pl CARD CARD …` and `sfumato run STUDY.pl "
            "--centres round --out published`. To run it where all rows are, name who may see them in the study: "
            "trusted(Party). Nothing was read and nothing was spent."
        )


def _check_resumable(plan: Plan, out: Path, resumed: bool, again: str) -> None:
    """A folder that holds what is asked for is not in the way: it only has to be asked for."""
    try:
        same = (out / "plan.json").is_file() and Plan.read(out / "plan.json").hash == plan.hash
    except (OSError, SfumatoError):  # what is wrong with the place is said by who looks at it next
        return
    if same and not resumed:
        raise InputError(
            f"{out} holds the release of this plan already. To use it at no further cost, add --resume: {again} To run "
            "anew at a new cost, choose another folder. Nothing was run and nothing was spent."
        )


def _book(ledger: Ledger | str | Path | None) -> Ledger | None:
    return ledger if isinstance(ledger, Ledger) or ledger is None else Ledger(ledger)


def _read(plan: Plan, data: Mapping[str, Any] | str | Path) -> Mapping[str, Any]:
    """Tables that can be read again: their content is what an account is bound to."""
    if isinstance(data, str | Path):
        return tables_in(plan, Path(data))
    return {name: one.read_all() if isinstance(one, pa.RecordBatchReader) else one for name, one in data.items()}


def _tell_of_sizes(plan: Plan, network: Network, sizes: Mapping[str, int], tell: Callable[[str], None]) -> None:
    """That the plan was made for other numbers of individuals, where how many there are is public."""
    planned = plan.extras.get("sizes", {})
    for dataset in network.spec.datasets:
        found, expected = sizes.get(dataset.name, 0), planned.get(dataset.name, 0.0)
        public = dataset.adjacency.relation == "replace-one"
        if public and found and expected and not expected / 2 <= found <= 2 * expected:
            tell(
                f"{dataset.name} has {found:,} individuals, and the plan was made for {expected:,.6g}: what it "
                "foresees, and README.txt repeats, is about those, and intervals of medians and quantiles may be far "
                f"wider than they need be. A plan for what is there: --size {dataset.name}={found} (in Python: "
                f"sizes={{{dataset.name!r}: {found}}})."
            )


def _room(plan: Plan, values: Values) -> int:
    """About how many bytes will be written: two texts of each number that is shown."""
    rows = max((table.num_rows for table in values.individuals.values()), default=0)
    shown = sum(seen.size for planned in plan.publications for seen in planned.seen)
    return (1 << 20) + 64 * int(shown) + 32 * rows * sum(len(planned.seen) + 1 for planned in plan.publications)


def _with_these(plan: Plan, network: Network, tables: Mapping[str, Any]) -> tuple[Plan, Network]:
    """The plan on the public tables that are handed in, which may say more than those it was made with; or an error."""
    others = with_other_public(network, tables)
    if others:
        network = network_with(network, tables)
        plan = replace(plan, network=network)
    _check_derived(plan, network, others)
    return plan, network


def _check_derived(plan: Plan, network: Network, others: Sequence[str]) -> None:
    """A plan that was edited, or made for another study, is not run: all it claims is derived again first.

    Also of one that was planned a moment ago: what it holds can be changed in its place (tests/run/test_once.py).
    `others` are public tables that say something else than when it was made.
    """
    false = [finding for finding in derive_plan(plan, network) if not finding.ok]
    if not false:
        return
    if others:
        raise PlanError(
            f"The public {' and '.join(others)} says something else than when the plan was made, and the plan does not "
            f"follow from that ({false[0].field}: {false[0].sentence}) Make it again with make_plan and this table. No "
            "private table was read; nothing was drawn or spent."
        )
    raise PlanError(
        f"The plan does not follow from its study ({false[0].field}: {false[0].sentence}) Make it again with "
        "make_plan. Nothing was read, drawn or spent."
    )


def _check_certificates(plan: Plan, holds: Callable[[Certificate], bool] | None) -> None:
    """What cannot be verified is not drawn. Of acts that depend on the number of individuals nothing is known yet."""
    if holds is None:
        return
    for name, certificate in _certificates(plan, {}, True, without={act.dataset for act in plan.acts}).items():
        if not holds(certificate):
            raise UnprovedError(
                f"The certificate of {name} would not verify: {certificate.guarantee.describe()} is beyond what the "
                "verifier can compute. Ask for an ordinary ε and δ in privacy_requirement(…). Nothing was drawn and "
                "nothing was spent."
            )


def _remembering(network: Network, forgotten: Sequence[Forgotten]) -> Network:
    """The network whose study also says who else is forgotten."""
    if not forgotten:
        return network
    from sfumato.run.forget import listed

    return replace(network, spec=replace(network.spec, forgotten=listed(network.spec, forgotten)))


def _network(plan: Plan) -> Network:
    if plan.network is None:
        raise InputError(
            "A plan read from a file says what to do, not on what: make it again from its study (make_plan)."
        )
    return plan.network


def _ledger_key(ledger: Ledger | str | Path | None) -> bytes:
    if ledger is None:
        return PUBLIC_KEY
    return ledger_key(ledger.path if isinstance(ledger, Ledger) else ledger)


def _is_of_sums(plan: Plan, network: Network) -> bool:
    """Whether sums are all that is drawn from, and nobody has to be counted: then nobody's values are held."""
    if network.spec.centre_promises or network.spec.correlations:
        return False
    return not plan.acts and not any(request.of_individuals for request in requests_of(network))


def _evaluated(
    network: Network,
    tables: Mapping[str, Any],
    engine: str | Engine,
    row_key: bytes,
    sums_only: bool,
    stage: Callable[[str], None],
) -> Values:
    row_keys = dict.fromkeys((one.name for one in network.spec.datasets), row_key)
    if engine == "local":
        return network.evaluate(_without_forgotten(network, tables), row_keys, sums_only=sums_only)
    from sfumato.run.engine.study import evaluate_on

    return evaluate_on(engine, network, tables, row_keys=row_keys, sums_only=sums_only, tell=stage)


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


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _drawn_release(
    plan: Plan, network: Network, values: Values, columns: Sequence[Columns], out: Path | None, random_state: int | None
) -> Release:
    return assembled(plan, network, values, Draws(random_state), _performed(columns, random_state), out)


def assembled(
    plan: Plan,
    network: Network,
    values: Values,
    drawn: Draws,
    performed: Mapping[ActKey, Performed],
    out: Path | None,
) -> Release:
    """What every observer sees, read off what was drawn."""
    requests = {(request.name, request.observer): request for request in requests_of(network)}

    def seen(planned: Planned) -> Published:
        if (act := plan.act_of(planned)) is not None:
            return performed[act.key].published(planned.name, planned.observer)
        view = View(plan, network, values, drawn, planned.observer)
        return view.published(planned, requests[planned.name, planned.observer])

    published = tuple(_written(seen(planned), network) for planned in plan.publications)
    if network.spec.forgotten:
        from sfumato.run.forget import unlisted

        published = tuple(
            replace(one, values=unlisted(network.spec, one.values)) if ID in one.values.column_names else one
            for one in published
        )
    return Release(plan.hash, published, _certificates(plan, performed, drawn.random_state is None), out)


def _written(one: Published, network: Network) -> Published:
    """What was seen, under the names of the study, as whole numbers where these are asked for."""
    values = with_own_names(one.values, network.spec)
    rounded = any(wish.publication == one.name for wish in network.spec.whole)
    return replace(one, values=whole_numbers(values) if rounded else values)


def _columns(plan: Plan, values: Values) -> tuple[Columns, ...]:
    if not plan.acts:
        return ()
    from sfumato.run.publish import columns_for  # estimators are imported where there is something to fit

    return columns_for(plan, values)


def _performed(columns: Sequence[Columns], random_state: int | None) -> dict[ActKey, Performed]:
    """Every act done once, each with a seed of its own in a dry run."""
    if not columns:
        return {}
    from sfumato.run.publish import perform

    seeds = (None if random_state is None else random_state + 10_000 + place for place in range(len(columns)))
    return {one.act.key: perform(one, seed) for one, seed in zip(columns, seeds, strict=True)}


def _commit(ledger: Ledger | None, reservations: Sequence[Reservation]) -> None:
    for reservation in reservations:
        assert ledger is not None
        ledger.commit(reservation)
