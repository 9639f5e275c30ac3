"""Execution: data sources and the budget ledger. The only room that sees data."""

from sfumato.run.ledger import Ledger
from sfumato.run.ledger_records import Balance, Reservation

__all__ = ["Balance", "Ledger", "Reservation"]
