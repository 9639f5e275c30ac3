"""What `make test` runs of a law that has many cases.

`@pytest.mark.by_day(8)` says: of the cases of this test eight belong to the day, the others to `make nightly`. Which
eight is drawn once and for all by the names of the cases, so that no parameter of a grid is always the same, and
everybody runs the same ones. Who names a file or a test on the command line gets what `make test` has of it, who names
a case gets that case, and `-m ""` gets all.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict

import pytest


def _lot(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def leave_to_the_night(items) -> None:
    """Mark as `slow` what is more than a test's share of the day."""
    families = defaultdict(list)
    for item in items:
        if item.get_closest_marker("by_day"):
            families[item.parent.nodeid, item.originalname].append(item)
    for cases in families.values():
        share = cases[0].get_closest_marker("by_day").args[0]
        for item in sorted(cases, key=lambda item: _lot(item.name))[share:]:
            item.add_marker(pytest.mark.slow)
