"""From requirements to the least noise: placements, strategies, plans. Nothing here sees data."""

from sfumato.plan.linear import Alternative, Placement, place_noise

__all__ = ["Alternative", "Placement", "place_noise"]
