"""What a ledger hands out, and how its entries are read.

In:   entries of the ledger's file, in order.
Out:  Reservation, Balance and LedgerRecord for callers; Account, the standing of one dataset and unit, for the ledger.
Not here: the file (ledger/store.py), what fits (ledger/balance.py), the operations (ledger/ledger.py).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from sfumato.card import Card, Shown
from sfumato.core import Adjacency, ApproxDP, Guarantee, NoGuarantee, compose, event_from_dict, guarantee_from_dict
from sfumato.errors import CertificateError, InputError
from sfumato.ledger.balance import Charge, Cost, amount_text, charge, left_text, remaining, total
from sfumato.ledger.store import LedgerEntry
from sfumato.ledger.windows import rests_on_a_known_law

__all__ = [
    "Account",
    "Action",
    "Balance",
    "Books",
    "LedgerRecord",
    "Reservation",
    "Standing",
    "State",
    "charge_record",
    "cost_records",
    "mark_of",
]

Action = Literal["grant", "reserve", "commit", "release"]
State = Literal["reserved", "committed", "released"]

_STATE_AFTER: dict[str, State] = {"commit": "committed", "release": "released"}


@dataclass(frozen=True)
class Reservation:
    """A cost set aside before the run. `cost` states its adjacency; it counts until it is released.

    `charged` is its amount in the currency of the grant, fixed when it was made: what the sums are made of.
    """

    id: str
    dataset: str
    unit: str
    cost: Guarantee
    created: datetime
    charged: Charge = None

    def __str__(self) -> str:
        return f"{self.dataset}: {self.cost} (reservation {self.id[:8]})"


@dataclass(frozen=True)
class LedgerRecord:
    """One line of history. `amount` is the grant's total, or the cost of the reservation the line is about."""

    sequence: int
    created: datetime
    action: Action
    dataset: str
    unit: str
    amount: Guarantee
    reservation: str | None
    text: str
    key: str | None
    hash: str

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "created": self.created.isoformat(), "amount": self.amount.to_dict()}


@dataclass(frozen=True)
class Balance(Shown):
    """Where a dataset stands. `spent` is committed, `reserved` may still be; both count. None means nothing.

    Both are sums in the currency of the grant; the promise for the whole history is the grant. `remaining` can be
    reserved as it stands. `delta_left` is set for (ε, δ) grants: the δ that is not charged.
    `without_guarantee` counts releases that promised nothing: no number covers them.
    """

    dataset: str
    unit: str
    granted: Guarantee
    spent: Guarantee | None
    reserved: Guarantee | None
    remaining: Guarantee | None
    delta_left: float | None = None
    without_guarantee: int = 0

    @property
    def adjacency(self) -> Adjacency:
        assert self.granted.adjacency is not None  # a grant is always stored with one
        return self.granted.adjacency

    def _card(self) -> Card:
        facts = {
            "granted": amount_text(self.granted),
            "spent": amount_text(self.spent) if self.spent else "nothing",
            "reserved": amount_text(self.reserved) if self.reserved else "nothing",
            "left": left_text(self.remaining),
        }
        lost = self.without_guarantee
        notes = [f"{lost} released with NO PRIVACY GUARANTEE"] if lost else []
        return Card(self.dataset, facts, notes=notes, kind=f"under {self.adjacency}")

    def __str__(self) -> str:
        parts = [f"granted {amount_text(self.granted)}"]
        parts += [f"spent {amount_text(self.spent) if self.spent else 'nothing'}"]
        parts += [f"reserved {amount_text(self.reserved)}"] if self.reserved else []
        parts += [f"left {left_text(self.remaining)}"]
        parts += [f"{self.without_guarantee} released with NO PRIVACY GUARANTEE"] if self.without_guarantee else []
        return f"{self.dataset}: {', '.join(parts)}, under {self.adjacency}"


@dataclass
class Standing:
    """One reservation as the newest entry left it."""

    reservation: Reservation
    items: tuple[Cost, ...]
    key: str | None
    purpose: str
    charged: Charge
    state: State = "reserved"
    #: Made under a grant that rests on a known law: nothing adds to it, whatever is granted later.
    alone: bool = False

    @property
    def promises_nothing(self) -> bool:
        return isinstance(self.reservation.cost, NoGuarantee)


@dataclass
class Account:
    """Everything recorded for one dataset and unit."""

    granted: Guarantee
    standings: dict[str, Standing] = field(default_factory=dict)
    #: Accounts of the same data under other units, beside which a person decided to open this one.
    beside: set[str] = field(default_factory=set)

    def counted(self, *states: State) -> list[Standing]:
        """The reservations in these states, except those that promise nothing: no sum contains them."""
        chosen = states or ("reserved", "committed")
        return [one for one in self.standings.values() if one.state in chosen and not one.promises_nothing]

    @property
    def sealed(self) -> bool:
        return any(one.alone for one in self.counted())

    def charges(self, *states: State) -> list[Charge]:
        return [one.charged for one in self.counted(*states)]

    def with_key(self, key: str | None) -> Standing | None:
        """The reservation that holds `key` now; a released one has given it back."""
        holders = (one for one in self.standings.values() if one.key == key and one.state != "released")
        return next(holders, None) if key is not None else None

    def balance(self, dataset: str, unit: str) -> Balance:
        """Where it stands, under the names it has in the books."""
        granted, counted = self.granted, self.charges()
        return Balance(
            dataset,
            unit,
            granted,
            _together(self.charges("committed"), granted),
            _together(self.charges("reserved"), granted),
            remaining(counted, granted),
            _delta_left(counted, granted),
            sum(one.promises_nothing and one.state != "released" for one in self.standings.values()),
        )


def _together(charges: Sequence[Charge], granted: Guarantee) -> Guarantee | None:
    sum_of_all = total(charges, granted)
    return None if sum_of_all is None else sum_of_all.under(granted.adjacency)


def _delta_left(charges: Sequence[Charge], granted: Guarantee) -> float | None:
    if not isinstance(granted, ApproxDP):
        return None
    left = remaining(charges, granted)
    return 0.0 if left is None else left.stated[1]


def cost_records(items: Iterable[Cost]) -> list[dict[str, Any]]:
    """Costs as a ledger writes them."""
    return [item.to_dict() for item in items]


def mark_of(secret: str, source: str) -> str:
    """How a source is written down: nobody without the ledger can compare it with a file."""
    return hmac.new(bytes.fromhex(secret), source.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def data_of(source: str) -> str:
    """The data behind a source, whichever column says whose a row is: its place or its content alone.

    >>> data_of("place\\0/data/people.parquet\\0id").split("\\0")
    ['place', '/data/people.parquet']
    """
    return source.rpartition("\0")[0]


def charge_record(charged: Charge) -> dict[str, Any] | None:
    """A charge as a ledger writes it."""
    return None if charged is None else charged.to_dict()


def _charge(record: Mapping[str, Any] | None) -> Charge:
    return None if record is None else guarantee_from_dict(record)


def _cost(record: Mapping[str, Any]) -> Cost:
    kind = str(record["kind"])
    return event_from_dict(record) if kind == "Repeated" or kind.endswith("Event") else guarantee_from_dict(record)


class Books:
    """All accounts and the history, built entry by entry."""

    def __init__(self) -> None:
        self.accounts: dict[tuple[str, str], Account] = {}
        self.history: list[LedgerRecord] = []
        #: What tells sources apart in this ledger; made with the first source.
        self.secret: str | None = None
        self._bound: dict[str, list[tuple[str, str]]] = {}

    def apply(self, entry: LedgerEntry) -> None:
        """Take up one entry; ValueError says why it makes no sense."""
        try:
            match entry.action:
                case "grant":
                    self._grant(entry)
                case "reserve":
                    self._reserve(entry)
                case _:
                    self._settle(entry)
            self._bind(entry)
        except (KeyError, TypeError, AttributeError, InputError, CertificateError) as error:
            raise ValueError(f"{entry.action} cannot be read: {type(error).__name__}") from error

    def owners(self, sources: Iterable[str]) -> list[tuple[str, str]]:
        """(dataset, unit) of every account that any of these sources is bound to."""
        if self.secret is None:
            return []
        marks = [mark_of(self.secret, source) for source in sources]
        return list(dict.fromkeys(owner for mark in marks for owner in self._bound.get(mark, ())))

    def neighbours(self, sources: Iterable[str]) -> list[tuple[str, str]]:
        """(dataset, unit) of every account of the same data that counts its people by another column.

        Each source is asked about by itself: that an account has one table by this column excuses no other table.
        """
        found = (owner for one in sources for owner in self.owners([data_of(one)]) if owner not in self.owners([one]))
        return list(dict.fromkeys(found))

    def are_beside(self, one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Whether one of two accounts was opened beside the other."""
        first, second = self.accounts.get(one), self.accounts.get(other)
        return (first is not None and other[0] in first.beside) or (second is not None and one[0] in second.beside)

    def unbound(self, marks: Iterable[str], owner: tuple[str, str]) -> list[str]:
        """Those of the marks that do not name this account yet: a table of many files is written down once."""
        return [mark for mark in marks if owner not in self._bound.get(mark, ())]

    def _bind(self, entry: LedgerEntry) -> None:
        self.secret = self.secret or entry.body.get("secret")
        for mark in entry.body.get("marks", ()):
            owners = self._bound.setdefault(str(mark), [])
            if (entry.dataset, entry.unit) not in owners:
                owners.append((entry.dataset, entry.unit))

    def standing(self, identity: str) -> Standing | None:
        found = (account.standings.get(identity) for account in self.accounts.values())
        return next((one for one in found if one is not None), None)

    def _grant(self, entry: LedgerEntry) -> None:
        total = guarantee_from_dict(entry.body["total"])
        if total.adjacency is None or total.adjacency.unit != entry.unit:
            raise ValueError("the grant does not say who is protected")
        account = self.accounts.setdefault((entry.dataset, entry.unit), Account(total))
        account.granted = total
        account.beside |= {str(entry.body["beside"])} if "beside" in entry.body else set()
        for identity, record in entry.body.get("charges", {}).items():  # another currency: everything was weighed anew
            standing = account.standings[identity]
            standing.charged = _charge(record)
            standing.reservation = replace(standing.reservation, charged=standing.charged)
        self._remember(entry, total, entry.body["note"], None)

    def _reserve(self, entry: LedgerEntry) -> None:
        items = tuple(_cost(record) for record in entry.body["cost"])
        adjacency = Adjacency.from_dict(entry.body["adjacency"])
        cost = compose(items).under(adjacency)
        key, purpose, identity = entry.body["key"], entry.body["purpose"], str(entry.reservation)
        account = self.accounts[entry.dataset, entry.unit]
        if identity in account.standings:
            raise ValueError("a reservation was made twice")
        if "charge" in entry.body:
            charged = _charge(entry.body["charge"])
        else:  # written before charges were: weighed by the rule of today
            charged = None if isinstance(cost, NoGuarantee) else charge(items, account.granted, account.charges())
        created = datetime.fromisoformat(entry.created)
        reservation = Reservation(identity, entry.dataset, entry.unit, cost, created, charged)
        account.standings[identity] = Standing(
            reservation, items, key, purpose, charged, alone=rests_on_a_known_law(account.granted)
        )
        self._remember(entry, cost, purpose, key)

    def _settle(self, entry: LedgerEntry) -> None:
        standing = self.accounts[entry.dataset, entry.unit].standings[str(entry.reservation)]
        if standing.state != "reserved":
            raise ValueError("a reservation was settled twice")
        standing.state = _STATE_AFTER[entry.action]
        self._remember(entry, standing.reservation.cost, standing.purpose, standing.key)

    def _remember(self, entry: LedgerEntry, amount: Guarantee, text: str, key: str | None) -> None:
        created = datetime.fromisoformat(entry.created)
        record = LedgerRecord(
            entry.sequence,
            created,
            entry.action,  # type: ignore[arg-type]  # the table checks it
            entry.dataset,
            entry.unit,
            amount,
            entry.reservation,
            text,
            key,
            entry.hash,
        )
        self.history.append(record)
