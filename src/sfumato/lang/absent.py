"""What stands for an absent cell, held against the variable's range.

In:   declarations.
Out:  problems.
Not here: reading missing/2 (lang/declare.py), what an absent cell does (network/cells.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sfumato.core import Categories, Interval
from sfumato.core.text import AnyText
from sfumato.lang.problem import Problem
from sfumato.lang.term import indicator, show
from sfumato.lang.vocabulary import STATIC

if TYPE_CHECKING:
    from sfumato.lang.declared import Declared

__all__ = ["unknown_missing"]


def _lies_in(domain: Any, value: Any) -> bool:
    if isinstance(domain, Interval):
        return isinstance(value, (int, float)) and domain.low <= value <= domain.high
    if isinstance(domain, Categories):
        return value in domain.values
    return isinstance(domain, AnyText) and isinstance(value, str)


def unknown_missing(declared: Declared) -> Iterable[Problem]:
    """What stands for an absent cell must lie in the variable's range."""
    domains = {indicator(one.atom_pattern): one.domain for one in declared.ranges}
    for one in declared.missing:
        if one.rule != "value":
            continue
        inside = _lies_in(domains.get(indicator(one.atom_pattern)), one.value)
        if not inside and one.position is not None:
            yield Problem(
                "error",
                "declaration",
                f"what stands for an absent {show(one.atom_pattern)} must lie in its declared range",
                one.position,
                expected=STATIC["missing/2"],
                way_out="Declare the range, or choose a value inside it.",
            )
