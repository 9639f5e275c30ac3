"""Laws that every mechanism obeys. Mechanisms are discovered, not listed: a forgotten row is a failure."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import sfumato.mechanisms
from laws.rows import ROWS
from sfumato.core import REPLACE_ONE, ApproxDP, Event, PureDP, event_from_dict
from sfumato.errors import InputError, SfumatoError
from sfumato.evidence import Certificate, verify
from sfumato.evidence.audit import audit
from sfumato.mechanisms import Box, Mechanism
from sfumato.mechanisms.selection import Selection

#: Where mechanisms live; the recipe for one adds its own folder.
HOUSES = [Path(sfumato.mechanisms.__file__).parents[1]]
PROOFS = Path(__file__).parents[2] / "docs" / "proofs"


def every_mechanism() -> list[type[Mechanism]]:
    for module in pkgutil.walk_packages(sfumato.mechanisms.__path__, "sfumato.mechanisms."):
        importlib.import_module(module.name)

    def final(base: type) -> list[type]:
        below = [leaf for child in base.__subclasses__() for leaf in final(child)]
        return below if inspect.isabstract(base) else [*below, base]

    # What a recipe's test has added to the house for a moment does not live in it.
    own = [kind for kind in final(Mechanism) if any(Path(inspect.getfile(kind)).is_relative_to(one) for one in HOUSES)]
    return sorted(own, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", every_mechanism(), ids=lambda kind: kind.__name__)
def test_a_mechanism_is_four_things(kind):
    """The class with a docstring that runs, its Event, its proof note, its row here."""
    assert ">>>" in (inspect.getdoc(kind) or "")
    assert kind in ROWS, f"{kind.__name__} has no row in tests/laws/rows.py"
    assert isinstance(ROWS[kind].mechanism.event(), Event)
    note = PROOFS / f"{kind.proof}.md"
    assert note.exists(), f"{kind.__name__} has no proof note {note.name}"
    text = note.read_text()
    for heading in ("## Claim", "## Adjacency", "## Proof", "## What the code assumes", "## Test that would fail"):
        assert heading in text, f"{note.name} lacks {heading!r}"


def test_rows_name_only_mechanisms():
    assert set(ROWS) == set(every_mechanism())


def test_no_mechanism_is_subclassed():
    """A class is abstract or final."""
    for kind in every_mechanism():
        assert not kind.__subclasses__()


@pytest.fixture(params=ROWS.values(), ids=[kind.__name__ for kind in ROWS])
def row(request):
    return request.param


@pytest.mark.by_day(7)
def test_no_attacker_beats_the_claim(row):
    """An audit with 10⁵ draws on the worst neighbours finds a loss below the claimed one, and above half of it."""
    result = audit(row.mechanism, row.neighbours, trials=100_000, confidence=0.9999, delta=row.audit_delta)
    assert not result.refuted
    assert result.tightness >= 0.5


@pytest.mark.by_day(5)
def test_an_attacker_beats_a_broken_twin(row):
    """The same noise scaled by 2/3 under the same claim is found out."""
    result = audit(row.scaled(2 / 3), row.neighbours, trials=100_000, confidence=0.999, claim=row.mechanism.guarantee())
    assert result.refuted


@pytest.mark.parametrize("factor", [2 / 3, 1.0, 3 / 2])
@pytest.mark.by_day(20)
def test_error_is_what_it_says(row, factor):
    """The measured error agrees with `error()`, and would not at the wrong scale."""
    mechanism = row.scaled(factor) if factor != 1 else row.mechanism
    size = 60_000 if factor == 1 else 10_000  # a wrong scale shows sooner
    draws = row.error_draws(mechanism, size).reshape(size, -1).mean(axis=1)
    claimed = row.mechanism.error()
    if isinstance(mechanism, Selection):
        claimed = math.sqrt(claimed)
    distance = abs(draws.mean() - claimed) / (draws.std() / math.sqrt(len(draws)))
    assert distance < 5 if factor == 1 else distance > 5


def test_the_guarantee_asked_for_is_kept(row):
    kind = type(row.mechanism)
    for eps in (0.01, 0.3, 1.0, 5.0):
        for wanted in (PureDP(eps), ApproxDP(eps, 1e-3)):
            try:
                made = kind.for_guarantee(wanted, 1.0, REPLACE_ONE)
            except InputError:
                assert kind.__name__ in ("Box", "Gaussian", "GaussianShares", "GroupCounts")
                assert isinstance(wanted, PureDP)
                continue
            assert made.guarantee().implies(wanted) is True


def test_calibration_is_not_wasteful(row):
    """Rounding to the grid costs less than 0.1 % of the budget (1 % where the profile itself is numeric)."""
    wanted = ApproxDP(0.5, 1e-3)
    made = type(row.mechanism).for_guarantee(wanted, 1.0, REPLACE_ONE)
    assert made.guarantee().epsilon(1e-3) >= 0.5 * (0.99 if type(row.mechanism) is Box else 0.999)


def test_event_survives_writing(row):
    event = row.mechanism.event()
    assert event_from_dict(event.to_dict()) == event


def test_certificate_verifies(row):
    certificate = Certificate.issue(
        subject="a law test", events=[row.mechanism.event()] * 3, proofs=[row.mechanism.proof]
    )
    assert verify(certificate).ok


def test_a_seed_repeats_and_marks(row):
    event = row.mechanism.event()
    assert row.mechanism.publishable
    seeded = dataclasses.replace(row.mechanism, random_state=11)
    assert not seeded.publishable
    assert seeded.event() == event
    value = row.neighbours[0]
    assert np.array_equal(seeded.sample(value, 50), seeded.sample(value, 50))
    assert not np.array_equal(row.mechanism.sample(value, 50), row.mechanism.sample(value, 50))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, -1.0, None, "one", True])
def test_bad_parameters_are_refused(row, bad):
    for name in ("scale", "half_width", "sensitivity", "keep", "move"):
        if hasattr(row.mechanism, name):
            with pytest.raises(SfumatoError):
                dataclasses.replace(row.mechanism, **{name: bad})
    with pytest.raises(SfumatoError):
        type(row.mechanism).for_guarantee(PureDP(1.0), bad, REPLACE_ONE)


def test_nobody_protected_is_refused(row):
    with pytest.raises(InputError, match="who is protected"):
        dataclasses.replace(row.mechanism, adjacency=None)


@pytest.mark.parametrize("bad", [[], [math.nan, 0.0], [math.inf, 1.0], "text", None, [[1.0], [1.0, 2.0]]])
def test_bad_values_are_refused(row, bad):
    with pytest.raises(InputError, match=r"[Nn]othing was"):
        row.mechanism(bad)
