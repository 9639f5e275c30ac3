"""Day and night share the cases of a law: none is lost, none is run twice, and a grid keeps its variety."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from day import leave_to_the_night


class Case:
    def __init__(self, family: str, name: str, *marks):
        self.parent, self.originalname, self.name = SimpleNamespace(nodeid="file"), family, f"{family}[{name}]"
        self.marks = [mark.mark for mark in marks]

    def get_closest_marker(self, name):
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark):
        self.marks.append(mark.mark)


def by_day(cases):
    return [case.name for case in cases if case.get_closest_marker("slow") is None]


def grid(share: int) -> list[Case]:
    names = [f"{first}-{second}" for first, second in itertools.product("abcd", range(12))]
    return [Case("law", name, pytest.mark.by_day(share)) for name in names]


@pytest.mark.parametrize("share", [1, 5, 12, 48, 60])
def test_a_share_runs_by_day_and_the_others_at_night(share):
    cases = grid(share)
    leave_to_the_night(cases)
    assert len(by_day(cases)) == min(share, 48)


def test_the_same_cases_in_whatever_order_they_are_found():
    there, back = grid(12), grid(12)[::-1]
    leave_to_the_night(there)
    leave_to_the_night(back)
    assert set(by_day(there)) == set(by_day(back))
    first, second = (set(place) for place in zip(*(name[4:-1].split("-") for name in by_day(there)), strict=True))
    assert len(first) > 2  # no parameter is always the same, as every fourth case of this grid would have it
    assert len(second) > 2


def test_a_case_that_is_asked_for_by_name_and_what_has_no_share_are_left_alone():
    alone, other = Case("law", "a-1", pytest.mark.by_day(1)), [Case("plain", str(place)) for place in range(3)]
    leave_to_the_night([alone, *other])
    assert len(by_day([alone, *other])) == 4
