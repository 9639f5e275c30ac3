"""From requirements to the least noise: placements, strategies, plans. Nothing here sees data.

Each name is imported when it is first used: the plan of a mean needs no solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.lazy import lazily

if TYPE_CHECKING:
    from sfumato.plan.linear.budgets import BudgetedPlacement, place_noise_by_coordinate
    from sfumato.plan.linear.query import Alternative, Placement, place_noise

__all__ = ["Alternative", "BudgetedPlacement", "Placement", "place_noise", "place_noise_by_coordinate"]

#: Where each name lives.
_HOME = {
    "Alternative": "linear.query",
    "BudgetedPlacement": "linear.budgets",
    "Placement": "linear.query",
    "place_noise": "linear.query",
    "place_noise_by_coordinate": "linear.budgets",
}

__getattr__ = lazily(__name__, _HOME)
