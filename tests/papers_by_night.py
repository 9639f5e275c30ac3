"""Which of the papers' experiments are run by day."""

from __future__ import annotations

import pytest


def by_night(studies, *by_day):
    """Whole experiments take seconds each: those named here run in `make test`, all others in `make nightly`."""
    return [name if name in by_day else pytest.param(name, marks=pytest.mark.slow) for name in studies]
