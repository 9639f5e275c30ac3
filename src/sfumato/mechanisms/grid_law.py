"""The laws of noise that are drawn on a grid, found by looking: a file in mechanisms/laws/ is all it takes.

In:   a law's name.
Out:  its GridLaw.
Not here: what a law is (mechanisms/laws/law.py), drawing (sampling.py).
"""

from __future__ import annotations

from sfumato.core.discovery import made_in
from sfumato.errors import InputError
from sfumato.mechanisms.laws.law import GridLaw

__all__ = ["GRID_LAWS", "Law", "grid_law"]

#: The name of one of GRID_LAWS.
Law = str

GRID_LAWS: dict[str, GridLaw] = {law.name: law for law in made_in("sfumato.mechanisms.laws", GridLaw)}


def grid_law(name: str) -> GridLaw:
    """The law of a name; InputError where there is none.

    >>> grid_law("laplace").deviation(2.0) / 2**0.5, grid_law("gaussian").norm.__name__
    (2.0, 'L2')
    """
    if not isinstance(name, str) or name not in GRID_LAWS:
        raise InputError(f"The law is {' or '.join(GRID_LAWS)}. Nothing was run.")
    return GRID_LAWS[name]
