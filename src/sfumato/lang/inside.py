"""Observers within a centre: what they see is published by the centre itself, from its own rows.

In:   a study with inside(Observer); a centre's name.
Out:  the study as that centre runs it at home; which requirements speak of what is published where; problems.
Not here: what is published over all centres (plan/over_centres.py).

The two are separate releases of the same people: each keeps its own promises, and the centre's ledger counts both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from sfumato.errors import InputError
from sfumato.lang.problem import Problem, nearest
from sfumato.lang.spec import EVERYONE, PrivacyRequirement, Spec
from sfumato.lang.term import Position

__all__ = ["at_home", "check_inside", "requirements_here"]


def at_home(spec: Spec, centre: str) -> Spec:
    """The study of one centre: its own tables, and what it publishes to those inside."""
    known = [one.name for one in spec.centres]
    if centre not in known or not spec.inside:
        what = "has nobody inside a centre: write inside(Observer)" if centre in known else f"has no centre {centre}"
        raise InputError(f"{spec.name} {what}. Its centres are {', '.join(known) or 'none'}. Nothing was run.")
    parts = [part for part in spec.parts if part.centre == centre]
    own = {part.table: dataclasses.replace(part.source, table=part.table) for part in parts}
    return dataclasses.replace(
        spec,
        sources=tuple(own.get(source.table, source) for source in spec.sources),
        parts=(),
        centres=(),
        holds=(),
        trusted=(),
        centre_promises=(),
        colluders=0,
        absences=0,
        at_home=centre,
    )


def requirements_here(spec: Spec) -> tuple[PrivacyRequirement, ...]:
    """Those that are kept by the release that is planned: of one centre, or of all."""
    return tuple(one for one in spec.requirements if (one.observer in spec.inside) == (spec.at_home is not None))


def check_inside(spec: Spec) -> Iterator[Problem]:
    """Those inside are observers of the study, there are centres, and no promise spans both kinds of release."""
    if spec.inside:
        yield from _wrong_inside(spec, {requirement.observer for requirement in spec.requirements})


def _wrong_inside(spec: Spec, observers: set[str]) -> Iterator[Problem]:
    for name in (name for name in spec.inside if name not in observers):
        yield _problem(spec, f"no requirement speaks of the observer {name}", nearest(name, observers))
    if len(spec.centres) < 2:
        yield _problem(spec, "there are no two centres to be inside of")
    if EVERYONE in observers:
        yield _problem(spec, "what everyone sees is seen inside too, and one promise cannot span two releases")
    for one in spec.collusions:
        if one.observers & set(spec.inside) and one.observers - set(spec.inside):
            yield _problem(spec, "observers inside and outside may not collude: they see two separate releases")


def _problem(spec: Spec, message: str, close: str | None = None) -> Problem:
    clause = next((one for one in spec.clauses if one.head.functor == "inside"), None)
    place = clause.position if clause is not None else Position("study", 1, 1)
    way_out = "Write inside(Observer) for an observer of a requirement of its own, in a study with centre(Name) lines."
    text = clause.text if clause is not None else ""
    return Problem("error", "inside", message, place, text, nearest=close, way_out=way_out)
