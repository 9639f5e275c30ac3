"""Taking part in a study's round, and coordinating it: from folders to a release.

In:   a round's folder; at a centre its own folder and tables.
Out:  the release, at the coordinator and, if it wants one, at every centre; the centre's ledger charged.
Not here: the protocol (centres/), the folders (run/centre_home.py), the numbers (run/over_centres.py).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.centres.card import client_tls, server_tls
from sfumato.centres.network import coordinate, take_part, turn_down
from sfumato.centres.node import Purse
from sfumato.centres.outcome import Aggregate, Outcome
from sfumato.centres.round import Round
from sfumato.centres.statistics import CENTRE
from sfumato.centres.study_round import StudyRound
from sfumato.core import Adjacency, compose
from sfumato.core.certificate import Certificate
from sfumato.core.guarantee import Guarantee
from sfumato.core.places import Place, place_of
from sfumato.errors import InputError, OverspendError, RefusedError, RoundFailedError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.network.columns import check_columns
from sfumato.network.evaluate import Values
from sfumato.network.stores.store import StoredRows
from sfumato.plan.plan import Plan
from sfumato.plan.whole import whole_cost
from sfumato.run.accounts import Grant, first_grant, needed, renamed, sources_of
from sfumato.run.centre_home import Home, RoundFolder
from sfumato.run.charges import check_balance, check_granted, reserve_plan
from sfumato.run.course import Course
from sfumato.run.forget import without_forgotten
from sfumato.run.held_tables import check_sizes, own_tables
from sfumato.run.history import check_order, check_turn, purpose_of
from sfumato.run.joining import taking_part
from sfumato.run.over_centres import Publish, left_complete, publishing
from sfumato.run.row_key import row_key
from sfumato.run.staging import check_target
from sfumato.run.study import Release
from sfumato.run.study_file import needs_of_steps, public_tables
from sfumato.run.unchanged import unchanged

__all__ = ["StudyPurse", "TablePurse", "address_of", "coordinate_study", "join_study"]

#: How long a centre waits for a coordinator that is not there yet.
_CONNECT_SECONDS = 2.0
_PAUSE = 0.1
#: How long those who were not in the last round are waited for, once those who were are here.
_GONE_SECONDS = 1.0
_ATTEMPTS = 3


Taken = Callable[[Callable[[Round], Round], Purse], Awaitable[Outcome]]


def address_of(text: str) -> tuple[str, int]:
    """HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise InputError(f"{text!r} is not an address: write HOST:PORT. Nothing was run.")
    return host.strip("[]"), int(port)


@dataclass(frozen=True)
class StudyPurse:
    """The accounts of a centre's own data, which pay for what the plan draws from it."""

    ledger: Ledger
    plan: Plan
    sources: Mapping[str, tuple[str, ...]]
    grant: Grant
    #: What a first grant is for, where it is more than this plan: all steps of a history.
    needs: Mapping[str, Guarantee] | None = None

    def reserve(self, agreed: Round, key: str, made: list[Any]) -> None:
        reserve_plan(self.plan, self.ledger, self.sources, self.grant, made, key, self.needs)
        check_turn(self.plan, self.ledger, made)  # what it refuses is given back by who asked


@dataclass(frozen=True)
class TablePurse:
    """The accounts of one table, from which a round that was made in Python is summed: whatever its file is called."""

    ledger: Ledger
    dataset: str
    sources: tuple[str, ...]
    grant: Grant

    def reserve(self, agreed: Round, key: str, made: list[Any]) -> None:
        purpose = f"{agreed.subject} (several centres)"
        for events in agreed.costs:
            who = events[0].adjacency
            first_grant(self.ledger, self.dataset, needed(compose(events)), self.sources, self.grant)
            for name, unit in self._paying(who):
                costs = [renamed(event, Adjacency(unit, who.relation)) for event in events]
                made.append(self.ledger.reserve(name, costs, purpose=purpose, key=key, sources=self.sources))

    def _paying(self, who: Adjacency) -> list[tuple[str, str]]:
        """Who pays for a patient: every account of the data. For the centre as a whole: the centre's own."""
        owners = self.ledger.owners(self.sources) or [(self.dataset, who.unit)]
        if who.unit == CENTRE:
            return [(name, CENTRE) for name in dict.fromkeys(name for name, _ in owners)]
        return [(name, unit) for name, unit in owners if unit != CENTRE] or [(owners[0][0], who.unit)]


@dataclass
class SaidOnce:
    """In place of a ledger's book in the rounds after the first one, which paid for all: whether one was answered."""

    path: Path
    answered: bool = False

    def reserve(self, dataset: str, cost: Any, *, purpose: str = "", key: str | None = None) -> str:
        self.answered = True
        return dataset

    def commit(self, reservation: Any) -> None:
        """What was said may have been opened: it stays said."""

    def release(self, reservation: Any) -> None:
        """Nothing that was said can be opened: it may be said again."""
        self.answered = False

    def state(self, identity: str) -> str:
        return "reserved" if self.answered else "released"


@dataclass(frozen=True)
class PaidAlready:
    """The purse of a round after the first."""

    ledger: SaidOnce

    def reserve(self, agreed: Round, key: str, made: list[Any]) -> None:
        made.append(self.ledger.reserve(agreed.subject, None))


def join_study(
    shared: RoundFolder,
    home: Home,
    data: Place,
    *,
    at: str | None = None,
    ledger: Ledger | None = None,
    grant: Grant = False,
    out: Place | None = None,
    verify: Callable[[Certificate], bool] | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Release:
    """One centre's part: plan the study again, add up its own rows, pay, take part. RefusedError: nothing left it.

    Where it does not take part, whatever the reason, the coordinator is told the kind of it.
    """
    data, out = place_of(data), place_of(out)
    if home.name not in shared.round.places:
        known = ", ".join(shared.round.places)
        raise RefusedError(f"{home.name} is no centre of this round, which has {known}. Nothing left the centre.")
    if home.card().identity != shared.round.identity(home.name):
        raise RefusedError(
            f"{home.name} is in this round with another key than that in {home.folder}. Send the coordinator "
            f"{home.card_file} and ask for `sfumato coordinate init` again. Nothing left the centre."
        )
    if out is not None and (release := left_complete(shared.plan(), out)) is not None:
        tell(f"{out}: published as it was opened by an earlier call. Nobody was asked and nothing was spent.")
        return release
    where = at or shared.coordinator.address
    host, port = address_of(where)
    line = _Connection(host, port, home.name, home.key(), client_tls(home.key_file, home.card(), shared.coordinator))
    book = ledger or Ledger(home.ledger_file)
    with ExitStack() as stack:
        try:
            _check_places(home, data, out)
            asyncio.run(_wait_for(host, port, where))
            stack.enter_context(taking_part(book, tell))
            part = _prepared(shared, home, data, book, grant, tell)
            publish = stack.enter_context(publishing(part.course.plan, part.public, out))
        except SfumatoError as error:
            asyncio.run(turn_down(host, port, name=line.name, key=line.key, error=error, tls=line.tls))
            raise
        plan = part.course.plan
        tell(f"{home.name}: this round costs {', '.join(whole_cost(plan, name) for name in plan.datasets)}")
        asyncio.run(_take_all(part, line, where, verify))
        return _published(part.course, publish)


def _check_places(home: Home, data: Path, out: Path | None) -> None:
    """What is mistyped is said before anybody is waited for."""
    if not data.exists():
        raise InputError(
            f"--data {data}: there is no such folder or file. Give the folder in which {home.name} keeps its tables, "
            "or its one table. Nothing was read and nothing was spent."
        )
    if out is not None:
        check_target(out)


@dataclass(frozen=True)
class _Connection:
    """How a centre reaches the coordinator, and as whom."""

    host: str
    port: int
    name: str
    key: Ed25519PrivateKey
    tls: ssl.SSLContext

    async def take(
        self,
        approved: Callable[[Round], Round],
        cells: np.ndarray,
        account: Purse,
        verify: Callable[[Certificate], bool] | None,
    ) -> Outcome:
        facts = {"name": self.name, "key": self.key, "tls": self.tls, "verify": verify}
        return await take_part(self.host, self.port, approved=approved, cells=cells, account=account, **facts)


@dataclass(frozen=True)
class _OwnPart:
    """What a centre brings: its own evaluated rows (private), and who pays for them."""

    course: Course
    values: Values = field(repr=False)
    public: Mapping[str, Any] = field(repr=False)
    purse: StudyPurse


def _prepared(
    shared: RoundFolder, home: Home, data: Path, book: Ledger, grant: Grant, tell: Callable[[str], None]
) -> _OwnPart:
    """Everything a centre can find out by itself; what is refused for want of money is so before rows are evaluated."""
    plan = shared.plan()
    network = plan.network
    assert network is not None
    public = public_tables(network.spec, shared.folder)
    tables = {**own_tables(network.spec, home.name, data), **public}
    with unchanged(tables):
        check_columns(network, tables)
        sources = sources_of(network, tables, book)
        check_order(plan, book, sources, tell)
        try:
            check_balance(plan, book, sources)
        except OverspendError as error:
            _check_taking_part(plan, book, sources, home, error)
            raise
        if grant is False:
            check_granted(plan, book, sources)
        values = _own_values(plan, tables, row_key(book.path))
    needs = needs_of_steps(shared.study, shared.folder, shared.round.sizes, shared.at) if grant is not False else None
    return _OwnPart(Course(plan, shared.round), values, public, StudyPurse(book, plan, sources, grant, needs))


def _check_taking_part(
    plan: Plan, book: Ledger, sources: Mapping[str, tuple[str, ...]], home: Home, error: OverspendError
) -> None:
    """Whether what is missing is held by this very study: another call that takes part, or one that was killed."""
    for dataset in plan.datasets:
        for name, unit in book.owners(sources[dataset]):
            held = [one for one, purpose in book.open_reservations(name, unit) if purpose == purpose_of(plan)]
            if held:
                raise RefusedError(
                    f"{home.name} takes part in this study already: another call of `sfumato centre join` holds its "
                    f"budget ({held[0]}). Wait for that one: it says how it ended. Only if it was killed after its "
                    f"part may have been sent: {error}"
                ) from error


def _published(course: Course, publish: Publish) -> Release:
    first, *later = course.opened
    return publish(first, course.performed, later)


def _own_values(plan: Plan, tables: Mapping[str, Path | StoredRows], key: bytes) -> Values:
    network = plan.network
    assert network is not None
    read = without_forgotten(network.spec, tables) if network.spec.forgotten else tables
    values = network.evaluate(read, dict.fromkeys((one.name for one in network.spec.datasets), key))
    check_sizes(network.spec, {name: table.num_rows for name, table in values.individuals.items()})
    return values


async def _take_all(
    part: _OwnPart, line: _Connection, where: str, verify: Callable[[Certificate], bool] | None
) -> None:
    """Every round of the study, one after the other; the first pays for all of them."""
    course = part.course

    async def taken(approved: Callable[[Round], Round], account: Purse) -> Outcome:
        cells = await asyncio.to_thread(course.cells, part.values)
        return await line.take(approved, cells, account, verify)

    agreed = course.round
    try:
        outcome = await taken(lambda _: agreed, part.purse)
    except OSError as error:
        raise RefusedError(
            f"{where}: whoever answers there is not the coordinator of the cards, or does not know this centre's card "
            f"({type(error).__name__}). Nothing left the centre and nothing was spent."
        ) from error
    _move(course, agreed, outcome)
    while not course.is_over:
        await _one_more(course, taken, part.purse)


def _move(course: Course, agreed: StudyRound, outcome: Outcome) -> None:
    assert outcome.values is not None
    course.moved(Aggregate(agreed, outcome.included, np.array(outcome.values)))


async def _one_more(course: Course, taken: Taken, purse: StudyPurse) -> None:
    """A round after the first: it is answered once, and again only where nobody can have opened it."""
    agreed, account = course.round, PaidAlready(SaidOnce(purse.ledger.path))
    deadline = asyncio.get_running_loop().time() + 2 * agreed.step_seconds
    while True:
        offered: list[Round] = []

        def approve(one: Round, offered: list[Round] = offered) -> Round:
            offered.append(one)
            return agreed

        try:
            _move(course, agreed, await taken(approve, account))
            return
        except (OSError, RefusedError, RoundFailedError) as error:
            # The last round is being closed, the next one is not open yet, or it failed and is begun again.
            refused = bool(offered) and not isinstance(error, RoundFailedError)
            if refused or account.ledger.answered or asyncio.get_running_loop().time() > deadline:
                raise RoundFailedError(
                    f"Round {agreed.stage} of this study's tables and models was not finished: {error} Its cost stays "
                    "charged here, since its first sums were opened. A new study begins with `sfumato coordinate "
                    "init`, at a new cost.",
                    revealed=True,
                ) from error
            await asyncio.sleep(_PAUSE)


async def _wait_for(host: str, port: int, where: str) -> None:
    """A coordinator that is about to start is waited for, a few seconds."""
    deadline = asyncio.get_running_loop().time() + _CONNECT_SECONDS
    while True:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return
        except OSError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise RefusedError(
                    f"Nobody answers at {where}. The coordinator starts with `sfumato run STUDY.pl --centres FOLDER "
                    "--out published`; if it sits elsewhere, say so with --at HOST:PORT. Nothing left the centre and "
                    "nothing was spent."
                ) from error
            await asyncio.sleep(_PAUSE)


def coordinate_study(
    shared: RoundFolder,
    home: Home,
    out: Place | None,
    *,
    listen: str | None = None,
    join_seconds: float = 600.0,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[Plan, Release]:
    """The coordinator's part: wait for the centres, open one sum, write the release."""
    plan, out = shared.plan(), place_of(out)
    network = plan.network
    assert network is not None
    if (release := left_complete(plan, out)) is not None:
        tell(f"{out}: published as it was opened by an earlier call. Nobody was asked and nothing was spent.")
        return plan, release
    host, port = address_of(listen or shared.coordinator.address)
    tls = server_tls(home.key_file, home.card(), shared.cards)
    names = ", ".join(shared.round.places)

    opened: list[int] = []

    async def ready(host: str, port: int) -> None:
        opened.append(port)
        command = f"sfumato centre join {shared.folder} --as NAME --data FOLDER --grant"
        tell(f"Waiting on {host}:{port} for {names}. Each of them: {command}")

    course = Course(plan, shared.round)

    async def conduct() -> None:
        found = await coordinate(
            course.round.fresh(), host, port, join_seconds=join_seconds, tls=tls, ready=ready, tell=tell
        )
        for name, reason in found.absent.items():
            tell(f"{name} is not in the sum: {reason}")
        course.moved(found)
        while not course.is_over:
            course.moved(await _conducted(course, host, opened[0], tls, tell))

    with publishing(plan, public_tables(network.spec, shared.folder), out) as publish:
        asyncio.run(conduct())
        return plan, _published(course, publish)


async def _conducted(course: Course, host: str, port: int, tls: Any, tell: Callable[[str], None]) -> Aggregate:
    """A round after the first; one that failed before anything was opened is begun again."""
    agreed = course.round
    # Who was there a moment ago is waited for, as long as for any answer; who has gone already is not.
    facts = {"late_seconds": _GONE_SECONDS, "awaited": course.opened[-1].included}
    for attempt in range(_ATTEMPTS):
        try:
            found = await coordinate(agreed.fresh(), host, port, join_seconds=agreed.step_seconds, tls=tls, **facts)
        except RoundFailedError as error:
            if error.revealed or attempt == _ATTEMPTS - 1:
                raise RoundFailedError(
                    f"Round {agreed.stage} of this study's tables and models was not finished: {error} Its first sums "
                    "were opened, so every centre that was in them stays charged; nothing was published. A new study "
                    "begins with `sfumato coordinate init`, at a new cost.",
                    revealed=True,
                ) from error
            tell(f"round {agreed.stage} is begun again: {error}")
            continue
        tell(f"round {agreed.stage}: {len(found.included)} centres, {agreed.length} numbers")
        return found
    raise AssertionError("the last attempt returns or raises")
