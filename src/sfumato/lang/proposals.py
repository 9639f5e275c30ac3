"""Ranges proposed for a column from its name and its type alone, and columns that could say who a row is about.

In:   names and types of columns. Never a value.
Out:  a proposal to be read and corrected by a person; nothing where a name says nothing.
Not here: the text of a study (lang/starter.py).

A proposal is a public fact about what a word usually means: an age lies between 0 and 120 whatever the table holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["could_be_person", "proposed_range", "words_of"]

#: What the words of a name mean, the longest match first; numbers are usual limits in the usual unit.
_MEANINGS: Sequence[tuple[tuple[str, ...], tuple[int, int]]] = (
    (("hours", "per", "week"), (0, 168)),
    (("heart", "rate"), (0, 300)),
    (("blood", "pressure"), (0, 300)),
    (("day", "of", "week"), (1, 7)),
    (("day", "of", "month"), (1, 31)),
    (("day", "of", "year"), (1, 366)),
    (("age",), (0, 120)),
    (("year",), (1900, 2100)),
    (("month",), (1, 12)),
    (("weekday",), (1, 7)),
    (("hour",), (0, 23)),
    (("minute",), (0, 59)),
    (("percent",), (0, 100)),
    (("percentage",), (0, 100)),
    (("pct",), (0, 100)),
    (("probability",), (0, 1)),
    (("share",), (0, 1)),
    (("fraction",), (0, 1)),
    (("bmi",), (5, 100)),
    (("pulse",), (0, 300)),
    (("systolic",), (0, 300)),
    (("diastolic",), (0, 200)),
    (("latitude",), (-90, 90)),
    (("longitude",), (-180, 180)),
)
_TYPES = {"bool": (0, 1)}
_KEYS = ("id", "identifier", "uid", "uuid", "guid", "key", "nbr", "pseudonym")
#: Keys only beside a word for people: a patient's number, but not the number of drugs.
_NUMBERS = ("number", "nr", "no", "num", "code", "name")
_PEOPLE = ("person", "patient", "subject", "participant", "individual", "customer", "client", "member", "user")
_PEOPLE += ("respondent", "student", "employee", "citizen", "household", "pseudonym", "name", "email")


def words_of(name: str) -> list[str]:
    """The words of a column's name.

    >>> words_of("hoursPerWeek"), words_of("patient_nbr")
    (['hours', 'per', 'week'], ['patient', 'nbr'])
    """
    apart = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W_]+", apart)]


def proposed_range(name: str, kind: str) -> tuple[int, int] | None:
    """Usual limits of what a name means; of truth values 0 and 1.

    >>> proposed_range("hours_per_week", "int8"), proposed_range("x17", "int8"), proposed_range("smokes", "bool")
    ((0, 168), None, (0, 1))
    """
    if kind in _TYPES:
        return _TYPES[kind]
    words = words_of(name)
    for meaning, limits in _MEANINGS:
        if any(tuple(words[place : place + len(meaning)]) == meaning for place in range(len(words))):
            return limits
    return None


def could_be_person(names: Iterable[str]) -> list[str]:
    """Columns that could say who a row is about, by their names: a word for people, or for a key.

    >>> could_be_person(["encounter_id", "patient_nbr", "age", "num_medications"])
    ['encounter_id', 'patient_nbr']
    """
    found = []
    for name in names:
        words = words_of(name)
        last, of_people = words[-1:], bool(set(words) & set(_PEOPLE))
        if set(last) & set(_KEYS) or (of_people and (len(words) == 1 or set(last) & set(_NUMBERS))):
            found.append(name)
    return found
