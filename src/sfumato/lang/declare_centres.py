"""Declarations about institutions: who there are, what they hold, whom one trusts, who may stay away.

In:   clauses that passed the reader.
Out:  the fields of Declared that speak of centres; Wrong where one says something impossible.
Not here: the other declarations (lang/declare.py), promises to whole centres (lang/centre_units.py).
"""

from __future__ import annotations

from collections.abc import Callable

from sfumato.lang.arguments import Wrong, name_of, number_of
from sfumato.lang.declared import Declared
from sfumato.lang.institutions import DeclaredCentre, Holds
from sfumato.lang.reader import Clause
from sfumato.lang.term import Term

__all__ = ["CENTRE_READERS"]


def _centre(declared: Declared, clause: Clause) -> None:
    declared.centres.append(DeclaredCentre(name_of(clause.head.arguments[0], "a centre"), clause.position))


def _holds(declared: Declared, clause: Clause) -> None:
    centre, table = clause.head.arguments
    declared.holds.append(Holds(name_of(centre, "a centre"), name_of(table, "a table"), clause.position))


def _trusted(declared: Declared, clause: Clause) -> None:
    declared.trusted.append(name_of(clause.head.arguments[0], "a party"))


def _persons_per_centre(declared: Declared, clause: Clause) -> None:
    dataset, number = clause.head.arguments
    most = _centres(number, "how many individuals a centre has at most")
    if most < 1:
        raise Wrong("a centre has at least one individual", number)
    if declared.persons_per_centre.setdefault(name_of(dataset, "a dataset"), most) != most:
        raise Wrong(
            "how many individuals a centre has at most is said twice",
            number,
            code="twice",
            way_out="Keep the line with the larger number.",
        )


def _inside(declared: Declared, clause: Clause) -> None:
    declared.inside.append(name_of(clause.head.arguments[0], "an observer"))


def _colluders(declared: Declared, clause: Clause) -> None:
    declared.colluders = _said_once(declared.colluders, clause, "how many centres may collude")


def _absences(declared: Declared, clause: Clause) -> None:
    declared.absences = _said_once(declared.absences, clause, "how many centres may stay away")


def _said_once(before: int, clause: Clause, what: str) -> int:
    """A second line would win or lose by its place."""
    (number,) = clause.head.arguments
    found = _centres(number, what)
    if before not in (0, found):
        raise Wrong(f"{what} is said twice", number, code="twice", way_out="Keep the line with the larger number.")
    return found


def _centres(term: Term, what: str) -> int:
    number = number_of(term, what)
    if number != int(number) or number < 0:
        raise Wrong(f"{what} is a whole number from 0 on", term)
    return int(number)


#: One reader for each declaration.
CENTRE_READERS: dict[str, Callable[[Declared, Clause], None]] = {
    "centre": _centre,
    "holds": _holds,
    "trusted": _trusted,
    "colluders": _colluders,
    "persons_per_centre": _persons_per_centre,
    "inside": _inside,
    "absences": _absences,
}
