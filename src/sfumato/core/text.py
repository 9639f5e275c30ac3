"""A column of texts of which no list is public.

In:   nothing.
Out:  AnyText, in the place of a domain.
Not here: finding out which texts occur (mechanisms/group_counts.py), domains that are listed (core/domain.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

__all__ = ["AnyText"]


@final
@dataclass(frozen=True, slots=True)
class AnyText:
    """range(city(P), text): whatever stands there. Nothing may depend on it but groups/3, which pays for the names."""
