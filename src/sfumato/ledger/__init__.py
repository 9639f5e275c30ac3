"""The budget ledger: what was granted and spent on which data, and by whom.

Each name is imported when it is first used: checking a study needs no ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.lazy import lazily

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger
    from sfumato.ledger.records import Balance, Reservation

__all__ = ["Balance", "Ledger", "Reservation"]

#: Where each name lives.
_HOME = {"Balance": "records", "Ledger": "ledger", "Reservation": "records"}

__getattr__ = lazily(__name__, _HOME)
