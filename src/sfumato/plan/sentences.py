"""What a publication is about, in sentences that plan, report, explanation and README share.

In:   a settled publication, the network.
Out:  the same with its sentences: whose identifiers are shown, what each number is.
Not here: errors in words (evidence/figures.py), what a number is (network/meaning.py).
"""

from __future__ import annotations

import dataclasses

from sfumato.network.meaning import meaning_of
from sfumato.network.network import Network
from sfumato.plan.plan import Planned

__all__ = ["LISTED", "with_meaning"]

#: Said of every publication with a row for each individual.
LISTED = (
    "Who is listed is shown as it is: each row stands beside its individual's identifier, and no noise hides that "
    "somebody is in the data. What is protected is what the data say about them."
)


def with_meaning(planned: Planned, network: Network) -> Planned:
    """The publication with all that must be known to read it; it stays in the plan's file, which has no network."""
    listed = (LISTED,) if planned.listed else ()
    meaning = meaning_of(network, (seen.node for seen in planned.seen))
    return dataclasses.replace(planned, about=(*listed, *meaning))
