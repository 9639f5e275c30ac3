"""What may be written into a ledger: names, grants and costs, checked; and the words of refusals.

In:   what a caller handed to the ledger.
Out:  the same in its plain form, or an error that says what to do.
Not here: what fits (ledger/balance.py), the operations (ledger/ledger.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.core import REPLACE_ONE, Adjacency, Event, Guarantee, NoGuarantee, PureDP, Repeated, WorstOf, compose
from sfumato.core.checks import is_one_line
from sfumato.errors import InputError, LedgerError, PrivacyParameterError
from sfumato.ledger.balance import GRANTABLE, Cost, amount_text
from sfumato.ledger.records import Reservation, Standing, cost_records

__all__ = ["AnyCost", "checked_grant", "checked_items", "checked_name", "checked_words", "resumed", "settled_text"]

AnyCost = Guarantee | float | Event | Repeated | Sequence[Event | Guarantee | Repeated]


def checked_name(text: object, what: str) -> str:
    """A name of one printable line."""
    if not isinstance(text, str) or not is_one_line(text):
        raise InputError(f"A {what} needs a name: one line of printable text without outer blanks. Nothing was spent.")
    return text


def checked_words(text: object, what: str) -> str:
    """Any text."""
    if not isinstance(text, str):
        raise InputError(f"The {what} must be text, not {type(text).__name__}. Nothing was spent.")
    return text


def checked_grant(total: Guarantee | float, adjacency: Adjacency | None) -> Guarantee:
    """A guarantee that can be granted, under the stated adjacency."""
    guarantee = total if isinstance(total, Guarantee) else PureDP(total)
    if not isinstance(guarantee, GRANTABLE):
        raise PrivacyParameterError(
            f"{guarantee.describe()} cannot be granted. Grant one of PureDP, ApproxDP, GaussianDP, ZCDP or RenyiDP."
        )
    if adjacency is not None and guarantee.adjacency not in (None, adjacency):
        raise PrivacyParameterError(
            f"The grant says {guarantee.adjacency} and the argument says {adjacency}. State one. Nothing changed."
        )
    who = adjacency or guarantee.adjacency or REPLACE_ONE
    checked_name(who.unit, "unit")
    return guarantee.under(who)


def checked_items(cost: AnyCost, adjacency: Adjacency | None, accept_no_guarantee: bool) -> tuple[Cost, ...]:
    """A cost as events and guarantees under one adjacency."""
    given = cost if isinstance(cost, Sequence) and not isinstance(cost, str | bytes) else [cost]
    items = tuple(item if isinstance(item, Event | Guarantee | Repeated) else PureDP(item) for item in given)  # type: ignore[arg-type]  # PureDP refuses what is no number
    total = compose(items)
    if adjacency is not None and total.adjacency not in (None, adjacency):
        raise PrivacyParameterError(
            f"The cost says {total.adjacency} and the argument says {adjacency}. State one. Nothing was spent."
        )
    if any(isinstance(item, WorstOf) for item in items):
        raise PrivacyParameterError(
            f"{total.describe()}: incomparable costs cannot be added to what comes later. Reserve one guarantee that "
            "all of them keep, for example an ApproxDP. Nothing was spent."
        )
    if isinstance(total, NoGuarantee):
        _check_no_guarantee(total, items, accept_no_guarantee)
    return items


def _check_no_guarantee(total: NoGuarantee, items: Sequence[Cost], accepted: bool) -> None:
    if not accepted:
        raise PrivacyParameterError(
            f"{total.describe()}: no grant covers this. Nothing was run and nothing was spent. Use a mechanism with a "
            "proof, or pass accept_no_guarantee=True to have it on record."
        )
    if not all(isinstance(item, NoGuarantee) for item in items):
        raise PrivacyParameterError(
            "Costs with and without a guarantee were given together. Reserve them one by one, so that the former "
            "are counted. Nothing was spent."
        )


def resumed(holder: Standing, items: Sequence[Cost]) -> Reservation:
    """The reservation that a key stands for, if it was made for the same cost and is still open."""
    if cost_records(holder.items) != cost_records(items):
        raise LedgerError(
            f"The key {holder.key!r} was used for {amount_text(holder.reservation.cost)}, not for "
            f"{amount_text(compose(items))}. Nothing was run and nothing was spent. Use a new key for a new cost."
        )
    if holder.state == "committed":
        raise LedgerError(
            f"The run with key {holder.key!r} was committed: its noise was drawn. Drawing again is a new cost. Nothing "
            "was run and nothing was spent. Use the earlier result, or a new key."
        )
    return holder.reservation


def settled_text(standing: Standing, action: str) -> str:
    """Why a reservation that was settled cannot be settled again."""
    what = f"Reservation {standing.reservation.id[:8]} of {amount_text(standing.reservation.cost)}"
    match standing.state, action:
        case "committed", "commit":
            return f"{what} is committed already. One reservation pays for one run: reserve again for another."
        case "committed", _:
            return f"{what} is committed: its noise was drawn and its cost cannot be taken back. Nothing changed."
        case "released", "commit":
            return (
                f"{what} was released and no longer counts. If noise was drawn, do not publish it: reserve again "
                "and draw anew."
            )
    return f"{what} is released already. Nothing changed."
