"""The ways in which something can be published: what a study calls them, and where those live who carry them out.

In:   nothing.
Out:  Ways; those of one value per individual and of a sum. All others stand with their question or kind.
Not here: the publishers (run/publish_*.py), which import estimators and are named by their module alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.mechanisms.grid_law import GRID_LAWS

__all__ = ["AGGREGATE", "NOISE", "VARIABLE", "Ways"]


@dataclass(frozen=True, slots=True)
class Ways:
    """`words` are what prefer/2 and forbid/2 may name; the publishers in `homes` have these names and this `name`."""

    name: str
    words: Mapping[str, str] = field(hash=False)
    #: Modules, imported when one of the ways is planned or carried out.
    homes: tuple[str, ...] = ()
    #: Whether it is made from sums alone, or can be: it goes over centres as sums do.
    summed: bool = False
    #: Of numbers with an interval: what they are called. All else is "a table", "a channel".
    numbers: str = ""
    #: What it is, where no error of it is foretold that somebody could ask for; empty: it has no interval at all.
    unforetold: str = ""

    @property
    def called(self) -> str:
        return self.numbers or f"a {self.name}"


#: The laws of noise for sums.
NOISE = {name: f"{law.title} noise" for name, law in GRID_LAWS.items()}

VARIABLE = Ways(
    "variable",
    {
        "input": "noise on what is read from tables",
        "output": "noise on what is seen",
        "cut": "noise on the way from one to the other",
        "correlated": "one noise vector of the best covariance for linear answers",
        **NOISE,
    },
    numbers="one value per individual",
)
AGGREGATE = Ways("aggregate", {"central": "noise on the sum", **NOISE}, numbers="a number about many individuals")
