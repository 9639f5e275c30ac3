"""Execution: data sources and the budget ledger. The only room that sees data.

Each name is imported when it is first used: checking a study needs no ledger.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.run.ledger import Ledger
    from sfumato.run.ledger_records import Balance, Reservation

__all__ = ["Balance", "Ledger", "Reservation"]

#: Where each name lives.
_HOME = {
    "Balance": "ledger_records",
    "Ledger": "ledger",
    "Reservation": "ledger_records",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
