"""The laws of noise a plan may draw from, found by looking: a file in plan/laws/ is all it takes.

In:   a name as plans and studies write it.
Out:  its DrawLaw.
Not here: what a law is (plan/laws/law.py), one draw (plan/draw.py), the noise itself (mechanisms/).
"""

from __future__ import annotations

from sfumato.core.discovery import made_in
from sfumato.errors import InputError
from sfumato.plan.laws.law import DrawLaw

__all__ = ["LAWS", "NoiseName", "draw_law"]

#: The name of one of LAWS.
NoiseName = str

LAWS: dict[str, DrawLaw] = {law.name: law for law in made_in("sfumato.plan.laws", DrawLaw)}


def draw_law(name: str) -> DrawLaw:
    """The law of a name; InputError where there is none, as in a plan that somebody edited.

    >>> draw_law("gaussian").currency, draw_law("laplace").pure
    ('μ²', True)
    """
    if not isinstance(name, str) or name not in LAWS:
        raise InputError(f"A plan draws from {' or '.join(LAWS)} noise. Nothing was drawn and nothing was spent.")
    return LAWS[name]
