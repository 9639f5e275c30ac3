"""What rounds reserved and never sent: given back by whoever opens the ledger next, where the process was killed.

In:   a centre's ledger, whose file also says what the centre has said in which round (register.py).
Out:  the reservations that were given back; the key by which a reservation tells whose part of which round it pays.
Not here: how a round ends for a process that lives (node.py), whether one does (run/joining.py).
Proof: docs/proofs/secure_aggregation.md, "Charging"

This is safe beside a process that is still alive, whatever it is about to do. A masked sum leaves only after its step
was taken in the register, which lets one of all who try take it. If the process took it, nothing is given back here.
If it was taken here, together with the word that it is withdrawn, the process is refused when it comes to send: it
could no longer send, so what it reserved pays for nothing. Keys and parcels, which may have left, hold no data.
"""

from __future__ import annotations

from typing import Any

from sfumato.centres.register import Register
from sfumato.errors import LedgerError

__all__ = ["charge_key", "give_back_unsent", "release_once"]


def charge_key(round_hash: str, token: str, name: str) -> str:
    """What a reservation is known by: the round, the one call that may use it, the centre whose part it pays."""
    return f"{round_hash} {token} {name}"


def _part_of(key: str | None) -> tuple[str, str] | None:
    """(round, centre) of such a key; None for keys of other runs, and of older ones that name no centre."""
    words = (key or "").split(" ", 2)
    return (words[0], words[2]) if len(words) == 3 and len(words[0]) == 64 and words[2] else None


def give_back_unsent(ledger: Any) -> list[Any]:
    """Releases every open reservation of a round whose sum never left; those reservations."""
    register, found = Register(ledger.path), []
    for record in ledger.history():
        part = _part_of(record.key) if record.action == "reserve" else None
        if part is None or ledger.state(record.reservation) != "reserved":
            continue
        if register.try_withdraw(*part):
            reservation = ledger.reservation(record.reservation)
            release_once(ledger, reservation)
            found.append(reservation)
    return found


def release_once(book: Any, reservation: Any) -> None:
    """Gives a reservation back; that somebody else did so meanwhile is no error."""
    try:
        book.release(reservation)
    except LedgerError:
        if book.state(reservation.id) != "released":
            raise
