"""From requirements to the least noise: placements, strategies, plans. Nothing here sees data.

Each name is imported when it is first used: the plan of a mean needs no solver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.plan.linear import Alternative, Placement, place_noise

__all__ = ["Alternative", "Placement", "place_noise"]

#: Where each name lives.
_HOME = {
    "Alternative": "linear",
    "Placement": "linear",
    "place_noise": "linear",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
