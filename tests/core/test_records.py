"""Broken records and extreme numbers end in errors of the one tree."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import REPLACE_ONE, GaussianDP, PureDP, RandomizedResponseEvent, compose, event_from_dict
from sfumato.core.compose import add_exactly
from sfumato.core.records import guarantee_from_dict
from sfumato.errors import CertificateError, PrivacyParameterError

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
kinds = st.sampled_from(["GaussianEvent", "PureDP", "ComposedDP", "WorstOf", "Repeated", "BoxEvent", "ApproxDP", "x"])


@given(plain, kinds)
def test_any_record_is_read_or_refused(record, kind):
    given_record = {**record, "kind": kind} if isinstance(record, dict) else record
    for read in (event_from_dict, guarantee_from_dict):
        with contextlib.suppress(CertificateError):
            read(given_record)


@pytest.mark.parametrize(
    "parts", [[["x", [], {}, -1]], [["two-point", -1.0, 0.0, 1]], [["gaussian", math.nan, 0, 1]], 3]
)
def test_parts_are_checked(parts):
    with pytest.raises(CertificateError):
        guarantee_from_dict({"kind": "ComposedDP", "parts": parts, "adjacency": None})


def test_extremes():
    with pytest.raises(PrivacyParameterError):
        PureDP(10**400)
    with pytest.raises(PrivacyParameterError):
        RandomizedResponseEvent(2, 10**400, 1, adjacency=REPLACE_ONE)
    near = RandomizedResponseEvent(2, 10**12 + 1, 10**12, adjacency=REPLACE_ONE)
    assert near.eps >= math.log1p(1e-12)
    assert near.eps <= math.log1p(1e-12) * (1 + 1e-9)


def test_decimal_sums():
    assert add_exactly([0.01, 0.69]) == 0.7
    assert add_exactly([1e-6]) == 1e-6
    assert add_exactly([0.1], [10**6]) == 100_000.0


def test_underflow_proves_nothing():
    """δ(1000) of Gaussian noise is not representable, and not zero."""
    assert GaussianDP(0.1).implies(PureDP(1000.0)) is False
    assert compose([PureDP(1.0), GaussianDP(0.1)]).implies(PureDP(1000.0)) is not True


def test_an_event_of_a_file_that_nobody_imported_is_read(tmp_path):
    """A ledger may hold what another process drew: a new kind is one file in its folder, and no list names it."""
    (tmp_path / "quiet.py").write_text(
        "from dataclasses import dataclass\nfrom typing import final\n"
        "from sfumato.core.events.event import Event, GaussianEvent\n"
        "@final\n@dataclass(frozen=True, kw_only=True)\nclass QuietEvent(Event):\n"
        "    scale: float\n"
        "    def _check(self):\n        pass\n"
        "    def guarantee(self):\n"
        "        return GaussianEvent(1.0, self.scale, adjacency=self.adjacency).guarantee()\n"
        "    def proof_id(self):\n        return 'gaussian'\n"
    )
    program = (
        "from sfumato.core import REPLACE_ONE, event_from_dict, events\n"
        f"events.__path__.append({str(tmp_path)!r})\n"
        "record = {'kind': 'QuietEvent', 'scale': 2.0, 'adjacency': REPLACE_ONE.to_dict()}\n"
        "print(event_from_dict(record).guarantee().mu)\n"
    )  # in a process of its own: a class that was made stays
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("0.5"), done.stderr
