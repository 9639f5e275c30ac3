"""What was spent on which dataset: reserve, run, commit. A crash can only over-count.

In:   grants and costs, as guarantees, events or a plain ε.
Out:  Reservation before the run, Balance and history at any time; OverspendError when a cost does not fit.
Not here: the file and its hash chain (ledger/store.py), what fits (ledger/balance.py), commands
      (cli/ledger.py).

    reserve ──▶ reserved ──commit──▶ committed      both count, for ever
                   └──────release──▶ released       only while no noise was drawn

A reservation counts from the moment it is written, before anything is drawn. If the process dies after that, it goes on
counting: nobody can know whether noise left the machine. Hand results out only after `commit` has returned.
Nothing in the ledger is a private value. Dataset names, purposes and notes are the caller's words: keep it so.
"""

from __future__ import annotations

import os
import secrets
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sfumato.core import REPLACE_ONE, Adjacency, Guarantee, NoGuarantee, compose
from sfumato.core.checks import at_least_zero
from sfumato.errors import LedgerCorruptError, LedgerError, OverspendError, PrivacyParameterError, UnknownDatasetError
from sfumato.ledger.balance import (
    Charge,
    Cost,
    amount_text,
    charge,
    fits,
    left_text,
    missing_text,
    recharged,
    remaining,
    total,
)
from sfumato.ledger.checks import (
    AnyCost,
    checked_grant,
    checked_items,
    checked_name,
    checked_words,
    resumed,
    settled_text,
)
from sfumato.ledger.commands import grant_command, show_command
from sfumato.ledger.elsewhere import alone, committing
from sfumato.ledger.grants import class_way_out, held_by, more_way_out, raised, unknown_text
from sfumato.ledger.records import (
    Account,
    Balance,
    Books,
    LedgerRecord,
    Reservation,
    Standing,
    State,
    charge_record,
    cost_records,
    data_of,
    mark_of,
)
from sfumato.ledger.store import EntryDraft, EntryStore, Head, LedgerEntry
from sfumato.ledger.windows import check_same_class, check_sealed

__all__ = ["Ledger"]


class Ledger:
    """The budget of every dataset, in one SQLite file that several processes and threads may share.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name) / "ledger.db")
    >>> ledger.grant("survey", 1.0)
    >>> with ledger.spending("survey", 0.4, purpose="mean age") as reservation:
    ...     pass  # draw the noise here
    >>> print(ledger.balance("survey"))
    survey: granted 1-DP, spent 0.4-DP, left 0.6-DP, under replacing one record
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        timeout: float = 30.0,
        create: bool = True,
        beside: Sequence[Path] | None = None,
    ) -> None:
        """Open the ledger, or make it. `timeout` is how many seconds to wait for other processes.

        The hash chain is checked from the first entry on; later operations check what was added since. Data that has
        its budget in one of the ledgers `beside` this one gets none here; None are those that this user has charged
        (ledger/elsewhere.py), and `beside=()` is your decision to ask none of them.
        """
        self.path = Path(path).expanduser()
        self.beside = None if beside is None else tuple(beside)
        self._lock = threading.RLock()
        self._books = Books()
        self._head = Head()
        self._store = EntryStore(self.path, timeout=at_least_zero(timeout, "timeout"), create=create)
        self._catch_up()
        self._store.check_guards()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @classmethod
    def opened_beside(cls, path: Path, first: str | None = None) -> Self | None:
        """Another ledger, to be asked; None where it does not begin with the entry of this hash."""
        store = EntryStore(path, timeout=30.0, create=False)
        return cls(path, create=False) if first is None or store.first_hash() == first else None

    @property
    def head(self) -> str:
        """Hash of the newest entry. Kept elsewhere, it proves later that no entry up to here was changed or removed."""
        with self._lock:
            self._catch_up()
            return self._head.hash

    def grant(
        self,
        dataset: str,
        total: Guarantee | float,
        *,
        adjacency: Adjacency | None = None,
        note: str = "",
        sources: Sequence[str] = (),
        beside: str | None = None,
    ) -> None:
        """Set what may be spent on `dataset` in all. A plain number is a pure ε.

        Under replacing one record, unless `total` or `adjacency` says otherwise. Granting again replaces the total;
        a total below what is counted already is refused. The grant's kind is the currency in which every reservation
        is charged: Σε for a pure grant, (Σε, Σδ), Σμ², Σρ, or Σε at a Rényi order. `sources` (run/accounts.py) say
        which data the budget is for: data that has an account keeps it, whatever it is called. `beside` names an
        account of the same data that counts its people by another column: both may then be spent, and for whoever is
        in the data the two promises add up.
        """
        name, guarantee = checked_name(dataset, "dataset"), checked_grant(total, adjacency)
        who = guarantee.adjacency or REPLACE_ONE

        def decide() -> EntryDraft:
            account = self._books.accounts.get((name, who.unit))
            body: dict[str, Any] = {"total": guarantee.to_dict(), "note": checked_words(note, "note")}
            if beside is not None:
                body["beside"] = self._other(name, guarantee, beside)
            if account:
                body["charges"] = self._check_regrant(name, account, guarantee)
            return EntryDraft("grant", name, who.unit, None, body | self._marks(name, who.unit, sources))

        with alone(self, sources, (name, who.unit), spends=False):
            self._append(decide)

    def reserve(
        self,
        dataset: str,
        cost: AnyCost,
        *,
        adjacency: Adjacency | None = None,
        purpose: str = "",
        key: str | None = None,
        promised: Guarantee | None = None,
        sources: Sequence[str] = (),
        accept_no_guarantee: bool = False,
    ) -> Reservation:
        """Set `cost` aside, or raise OverspendError if everything counted together would not keep the grant.

        All of `cost` is composed as one; beside earlier reservations only its amount in the grant's currency counts
        (`Reservation.charged`), so that it may be chosen after seeing what they published. For an (ε, δ) grant
        `promised` may name the point to charge; without it one is chosen by a public rule.
        `sources` bind the data that is read to this account; data of another account is refused here.

        A cost that does not say who is protected is read under the grant's adjacency; one that says otherwise is
        refused. NoGuarantee is refused unless `accept_no_guarantee`; it is then recorded, shown, and part of no sum.

        `key` names the run: asked again with the same key and cost, the open reservation is handed back, so that a
        resumed run pays once. This is only right if nothing left the earlier attempt: publish after commit, and let one
        process at a time use a key. A committed key is refused, because a second draw is a second cost.
        """
        items = checked_items(cost, adjacency, accept_no_guarantee)
        identity = uuid.uuid4().hex
        found: list[Reservation] = []

        def decide() -> EntryDraft | None:
            account, who = self._account_for(dataset, items, adjacency)
            holder = account.with_key(key)
            if holder:
                found.append(resumed(holder, items))
                return None
            body = {
                "cost": cost_records(items),
                "charge": charge_record(self._charged(dataset, items, account, purpose, promised)),
                "adjacency": who.to_dict(),
                "purpose": checked_words(purpose, "purpose"),
                "key": None if key is None else checked_name(key, "key"),
            }
            return EntryDraft("reserve", dataset, who.unit, identity, body | self._marks(dataset, who.unit, sources))

        with self._lock:
            self._catch_up()
            if dataset not in self._names():  # before a first grant is advised, which that data would refuse
                self._check_name(dataset, [name for name, _ in self._books.owners(sources)])
            unit = self._paying_unit(dataset, items, adjacency)
        with alone(self, sources, (dataset, unit), spends=True):
            self._append(decide)
        return found[0] if found else self._standing(identity).reservation

    def check(self, dataset: str, cost: AnyCost, *, purpose: str = "", promised: Guarantee | None = None) -> Charge:
        """What `cost` would be charged as; OverspendError if refused now. Nothing is set aside: `reserve` decides."""
        items = checked_items(cost, None, False)
        with self._lock:
            self._catch_up()
            account, _ = self._account_for(dataset, items, None)
            return self._charged(dataset, items, account, purpose, promised)

    def commit(self, reservation: Reservation) -> None:
        """Record that the noise was drawn: the cost is spent for good. Publish only after this returned."""
        with committing(self, reservation.dataset, reservation.id):
            self._settle(reservation, "commit")

    def release(self, reservation: Reservation) -> None:
        """Give the cost back. Only the caller knows whether noise was drawn: once it was, `commit` instead."""
        self._settle(reservation, "release")

    def reservation(self, identity: str) -> Reservation:
        """The reservation with this id, made by this process or another."""
        with self._lock:
            self._catch_up()
            return self._standing(identity).reservation

    def state(self, identity: str) -> State:
        """Whether a reservation is "reserved", "committed" or "released"."""
        with self._lock:
            self._catch_up()
            return self._standing(identity).state

    @contextmanager
    def spending(self, dataset: str, cost: AnyCost, **options: Any) -> Iterator[Reservation]:
        """Reserve before the block and commit after it; `options` are those of `reserve`.

        If the block raises, the reservation stays counted: noise may have been drawn and seen, and an error must never
        be a way to look for free. Whoever knows that nothing was drawn calls `ledger.release(reservation)` inside.
        """
        reservation = self.reserve(dataset, cost, **options)
        yield reservation
        if self._standing(reservation.id).state != "released":
            self.commit(reservation)

    def balance(self, dataset: str, unit: str = "record") -> Balance:
        """Granted, spent, reserved and left for one dataset and unit."""
        with self._lock:
            self._catch_up()
            return self._account(dataset, unit).balance(dataset, unit)

    def open_reservations(self, dataset: str, unit: str = "record") -> list[tuple[Reservation, str]]:
        """What is reserved and neither committed nor released, with its purpose, oldest first."""
        with self._lock:
            self._catch_up()
            standings = self._account(dataset, unit).standings.values()
            return [(one.reservation, one.purpose) for one in standings if one.state == "reserved"]

    def needed_for(self, reservation: Reservation) -> Guarantee | None:
        """The grant that would hold everything counted and the reservation's cost once more; None if it does now."""
        with self._lock:
            self._catch_up()
            account = self._account(reservation.dataset, reservation.unit)
            charges = [*account.charges(), reservation.charged]
            return None if fits(charges, account.granted) else raised(charges, account.granted)

    def least(self, dataset: str, unit: str, wanted: Guarantee) -> Guarantee:
        """`wanted`, or the least grant of its kind that holds what is counted; the grant there is where none does."""
        with self._lock:
            self._catch_up()
            return self._held(self._account(dataset, unit), wanted)

    def owners(self, sources: Iterable[str]) -> list[tuple[str, str]]:
        """(dataset, unit) of the accounts that any of these sources was charged to or granted for."""
        with self._lock:
            self._catch_up()
            return self._books.owners(sources)

    def neighbours(self, sources: Sequence[str]) -> list[tuple[str, str]]:
        """(dataset, unit) of the accounts of the same data whose people are named by another column."""
        with self._lock:
            self._catch_up()
            return self._books.neighbours(sources)

    def are_beside(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Whether a person decided that these two accounts of the same data, (dataset, unit), may both be spent."""
        with self._lock:
            self._catch_up()
            return self._books.are_beside(one, other)

    def history(self, dataset: str | None = None) -> list[LedgerRecord]:
        """Every entry, oldest first, of one dataset or of all."""
        with self._lock:
            self._catch_up()
            if dataset is not None and dataset not in self._names():
                raise self._unknown(dataset)
            return [record for record in self._books.history if dataset in (None, record.dataset)]

    def datasets(self) -> list[tuple[str, str]]:
        """(dataset, unit) of every grant, in order of their first grant."""
        with self._lock:
            self._catch_up()
            return list(self._books.accounts)

    # Decisions are taken on what has been read, and written only if nobody wrote in between: see ledger/store.py.

    def _append(self, decide: Callable[[], EntryDraft | None]) -> None:
        with self._lock:
            entry = None
            while entry is None:
                self._catch_up()
                draft = decide()
                if draft is None:
                    return
                entry = self._store.append(self._head, draft)
            self._take_up(entry)  # not read back: a lock met now must not make a written entry look like a failure

    def _catch_up(self) -> None:
        self._store.follow(self._head, self._take_up)

    def _take_up(self, entry: LedgerEntry) -> None:
        try:
            self._books.apply(entry)
        except ValueError as error:
            raise LedgerCorruptError(
                f"{self.path}: row {entry.sequence} makes no sense ({error}). Nothing was spent. It was written by a "
                "newer sfumato or by something else: upgrade sfumato, or restore the file from a backup."
            ) from error
        self._head = Head(entry.sequence, entry.hash)

    def _settle(self, reservation: Reservation, action: str) -> None:
        def decide() -> EntryDraft:
            standing = self._standing(reservation.id)
            if standing.state != "reserved":
                raise LedgerError(settled_text(standing, action))
            return EntryDraft(action, reservation.dataset, standing.reservation.unit, reservation.id, {})

        self._append(decide)

    def _standing(self, identity: str) -> Standing:
        with self._lock:
            standing = self._books.standing(identity)
            if standing is None:
                raise LedgerError(
                    f"{self.path.name} holds no reservation {identity[:8]}. Reserve in this ledger first, or open the "
                    "ledger the reservation came from. Nothing changed."
                )
            return standing

    def _account_for(
        self, dataset: str, items: Sequence[Cost], adjacency: Adjacency | None
    ) -> tuple[Account, Adjacency]:
        stated = adjacency or compose(items).adjacency
        account = self._account(dataset, self._paying_unit(dataset, items, adjacency), items)
        granted = account.granted.adjacency or REPLACE_ONE
        if stated is not None and stated != granted:
            raise PrivacyParameterError(
                f"The cost is stated under {stated}, but {dataset} was granted {amount_text(account.granted)} under "
                f"{granted}; the two do not add. Nothing was run and nothing was spent. State the cost under {granted}."
            )
        return account, granted

    def _paying_unit(self, dataset: str, items: Sequence[Cost], adjacency: Adjacency | None) -> str:
        stated = adjacency or compose(items).adjacency
        return stated.unit if stated else self._only_unit(dataset)

    def _account(self, dataset: str, unit: str, items: Sequence[Cost] = ()) -> Account:
        account = self._books.accounts.get((dataset, unit))
        if account is None:
            raise self._unknown(dataset, unit, items)
        return account

    def _only_unit(self, dataset: str) -> str:
        units = [unit for name, unit in self._books.accounts if name == dataset]
        if len(units) > 1:
            raise PrivacyParameterError(
                f"{dataset} has grants for several units ({', '.join(units)}). Say which one pays: "
                f"adjacency=Adjacency({units[0]!r}, …). Nothing was spent."
            )
        return units[0] if units else REPLACE_ONE.unit

    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self._books.accounts))

    def _unknown(self, dataset: str, unit: str = "record", items: Sequence[Cost] = ()) -> UnknownDatasetError:
        return UnknownDatasetError(unknown_text(dataset, unit, list(self._books.accounts), items, self.path))

    def _charged(
        self, dataset: str, items: Sequence[Cost], account: Account, purpose: str, promised: Guarantee | None
    ) -> Charge:
        """The amount to be recorded; OverspendError if it does not fit beside what is counted."""
        granted, counted, cost = account.granted, account.charges(), compose(items)
        if isinstance(cost, NoGuarantee):
            return None
        acts = [*(one.items for one in account.counted()), items]
        check_same_class(
            dataset, granted, promised, lambda asked: class_way_out(dataset, acts, asked, granted, self.path)
        )
        check_sealed(dataset, account.sealed, granted, promised, len(counted))
        charged = charge(items, granted, counted, promised)
        if fits([*counted, charged], granted):
            return charged
        left = remaining(counted, granted)
        requested, left_over = amount_text(cost), left_text(left)
        waiting = len(account.counted("reserved"))
        still = f" {waiting} reservation(s) of unfinished runs are counted." if waiting else ""
        raise OverspendError(
            f"{purpose or 'The run'}: asks for {requested} but {dataset} has {left_over} left in {self.path.name} "
            f"(under {granted.adjacency}).{still} Nothing was run and nothing was spent. "
            f"{more_way_out(dataset, acts, [*counted, charged], granted, self.path, promised)}",
            requested=requested,
            remaining=left_over,
            difference=missing_text(items, charged, left, granted),
        )

    def _check_name(self, dataset: str, names: Sequence[str]) -> None:
        if names and dataset not in names:
            raise LedgerError(
                f"This data has its budget under the name {names[0]!r} in {self.path}: a budget belongs to the data, "
                f"whatever a study calls it. Nothing was run and nothing was spent. Use {names[0]!r}; what is left of "
                f"it tells `{show_command(names[0], self.path)}`."
            )

    def _marks(self, dataset: str, unit: str, sources: Sequence[str]) -> dict[str, Any]:
        """What an entry says about its data; LedgerError if its budget is elsewhere. Nobody can write in between."""
        if not sources:
            return {}
        owners = self._books.owners(sources)
        self._check_name(dataset, [name for name, _ in owners])
        for other in self._books.neighbours(sources):
            if not any(self._books.are_beside(one, other) for one in (*owners, (dataset, unit))):
                raise LedgerError(
                    f"This data has an account by another column (`{show_command(other[0], self.path)}`), and nobody "
                    "decided that both may be spent. Nothing was run and nothing was spent. Publish by the first one."
                )
        fresh = {} if self._books.secret else {"secret": secrets.token_hex(32)}
        secret = self._books.secret or fresh["secret"]
        marks = {mark_of(secret, one) for one in (*sources, *map(data_of, sources))}
        return {**fresh, "marks": sorted(self._books.unbound(marks, (dataset, unit)))}

    def _other(self, dataset: str, total: Guarantee, beside: str) -> str:
        if beside not in self._names():
            raise self._unknown(beside)
        unit = (total.adjacency or REPLACE_ONE).unit
        if all(account == (dataset, unit) for account in self._books.accounts if account[0] == beside):
            raise LedgerError(
                f"{dataset} (unit: {unit}) cannot be granted beside itself: name the other account of the same data "
                f"or leave it out, `{grant_command(dataset, total, self.path)}`. Nothing changed."
            )
        return beside

    def _check_regrant(self, dataset: str, account: Account, granted: Guarantee) -> dict[str, Any]:
        """What is counted, in the currency of the new grant; LedgerError if it does not fit."""
        counted = account.counted()
        if counted and granted.adjacency != account.granted.adjacency:
            again = grant_command(dataset, self._held(account, granted), self.path)
            raise LedgerError(
                f"{dataset} is accounted under {account.granted.adjacency}; what is spent cannot be carried over to "
                f"{granted.adjacency}. Nothing changed. Grant under {account.granted.adjacency}: `{again}`."
            )
        charges = recharged([one.items for one in counted], account.charges(), account.granted, granted)
        if not fits(charges, granted):
            known = None not in charges
            spent = amount_text(total(charges, granted) or granted) if known else "something without an amount in it"
            raise LedgerError(
                f"{dataset} cannot be granted {amount_text(granted)}: {spent} is spent or "
                f"reserved already (under {granted.adjacency}) and does not fit. Nothing changed; the grant stays "
                f"{amount_text(account.granted)}. Grant at least what is counted: "
                f"`{grant_command(dataset, self._held(account, granted), self.path)}`."
            )
        return {one.reservation.id: charge_record(new) for one, new in zip(counted, charges, strict=True)}

    def _held(self, account: Account, wanted: Guarantee) -> Guarantee:
        return held_by([one.items for one in account.counted()], account.charges(), account.granted, wanted)
