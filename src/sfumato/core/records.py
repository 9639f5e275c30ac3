"""Events and guarantees from their plain records: the inverse of `to_dict`.

In:   dictionaries, for instance from a certificate or a ledger.
Out:  Event, Repeated and Guarantee values; CertificateError names what cannot be read.
"""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from sfumato.core import events as folder
from sfumato.core import guarantee as guarantees
from sfumato.core.adjacency import Adjacency
from sfumato.core.compose import ComposedDP, Part, WorstOf
from sfumato.core.events import event as events
from sfumato.errors import CertificateError

__all__ = ["event_from_dict", "guarantee_from_dict"]


def _final_classes(base: type) -> dict[str, type]:
    """Every class below `base` that is not abstract, by name."""
    found: dict[str, type] = {}
    for child in base.__subclasses__():
        found |= _final_classes(child) if inspect.isabstract(child) else {child.__name__: child}
    return found


def _event_classes(kind: str) -> dict[str, type]:
    """Every kind of event; those that nobody has imported yet are looked for in their folder."""
    known = _final_classes(events.Event)
    if kind not in known:
        for module in pkgutil.iter_modules(folder.__path__):
            import_module(f"{folder.__name__}.{module.name}")
        known = _final_classes(events.Event)
    return known


def _adjacency(record: Mapping[str, Any]) -> Adjacency | None:
    stated = record.get("adjacency")
    return Adjacency.from_dict(stated) if stated else None


def event_from_dict(record: Mapping[str, Any]) -> events.Event | events.Repeated:
    """The event a record describes.

    >>> from sfumato.core.adjacency import REPLACE_ONE
    >>> given = events.GaussianEvent(1.0, 2.0, adjacency=REPLACE_ONE)
    >>> event_from_dict(given.to_dict()) == given
    True
    """
    try:
        fields = dict(record)
        kind = fields.pop("kind")
        if kind == "Repeated":
            inner = event_from_dict(fields["event"])
            if isinstance(inner, events.Repeated):
                raise CertificateError("A repeated event repeats itself; write one count.")
            return events.Repeated(inner, fields["count"])
        final = _event_classes(kind)[kind]
        if set(fields) != {item.name for item in dataclasses.fields(final)}:
            raise CertificateError(f"Event {kind} has unknown or missing fields.")
        return final(**{**fields, "adjacency": _adjacency(record)})
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CertificateError(f"An event record cannot be read: {error}.") from error


def guarantee_from_dict(record: Mapping[str, Any]) -> guarantees.Guarantee:
    """The guarantee a record describes.

    >>> guarantee_from_dict(guarantees.ApproxDP(1.0, 1e-6).to_dict())
    ApproxDP(adjacency=None, eps=1.0, delta_=1e-06)
    """
    try:
        fields = dict(record)
        kind, adjacency = fields.pop("kind"), _adjacency(record)
        fields.pop("adjacency", None)
        if kind == "ComposedDP":
            return ComposedDP(tuple(Part(*part) for part in fields["parts"]), adjacency=adjacency)
        if kind == "WorstOf":
            return WorstOf(tuple(guarantee_from_dict(item) for item in fields["guarantees"]), adjacency=adjacency)
        return _final_classes(guarantees.Guarantee)[kind](**fields, adjacency=adjacency)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CertificateError(f"A guarantee record cannot be read: {error}.") from error
