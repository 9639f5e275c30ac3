"""From requirements to the least noise: placements, strategies, plans. Nothing here sees data.

Each name is imported when it is first used: the plan of a mean needs no solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.lazy import lazily

if TYPE_CHECKING:
    from sfumato.plan.linear.query import Alternative, Placement, place_noise

__all__ = ["Alternative", "Placement", "place_noise"]

#: Where each name lives.
_HOME = {
    "Alternative": "linear.query",
    "Placement": "linear.query",
    "place_noise": "linear.query",
}

__getattr__ = lazily(__name__, _HOME)
