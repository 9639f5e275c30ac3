"""What a publication is about, in sentences that plan, report, explanation and README share.

In:   a Plan; a settled publication, the network.
Out:  sentences: whose identifiers are shown, what each number is, what somebody learns exactly.
Not here: errors in words (evidence/figures.py), what a number is (network/meaning.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from sfumato.lang.spec import EVERYONE
from sfumato.network.meaning import meaning_of
from sfumato.network.network import Network
from sfumato.plan.plan import Plan, Planned

__all__ = ["LISTED", "NONNEGATIVE", "exact_sentences", "with_meaning"]

#: Said of every publication with a row for each individual.
LISTED = (
    "Who is listed is shown as it is: each row stands beside its individual's identifier, and no noise hides that "
    "somebody is in the data. What is protected is what the data say about them."
)


#: Said of counts that were moved.
NONNEGATIVE = (
    "Every table was moved to the nearest one without negative counts that has the same total, as the study asks "
    "(nonnegative): its numbers are biased, small ones upwards and large ones downwards, and different tables need not "
    "agree any more. standard_error, low and high are those of the unbiased numbers, the ends cut at 0."
)


def exact_sentences(plan: Plan, observers: Collection[str] | None = None) -> tuple[str, ...]:
    """Who learns what without noise, by observe and reveal lines: all of it, or what concerns these observers.

    A promise towards everybody concerns every observer.
    """
    found: dict[str, list[str]] = {}
    for observer, variable in plan.extras.get("exact", ()):
        if observers is None or observer in observers or EVERYONE in observers:
            found.setdefault(observer, []).append(variable)
    return tuple(
        f"{observer} learns {', '.join(variables)} exactly, by an observe or reveal line of the study: no noise hides "
        f"it, and nothing is promised towards {observer} about it, nor about what follows from it."
        for observer, variables in found.items()
    )


def with_meaning(planned: Planned, network: Network) -> Planned:
    """The publication with all that must be known to read it; it stays in the plan's file, which has no network."""
    listed = (LISTED,) if planned.listed else ()
    meaning = meaning_of(network, (seen.node for seen in planned.seen))
    moved = any(one.publication == planned.name for one in network.spec.nonnegative)
    return dataclasses.replace(planned, about=(*listed, *meaning, *((NONNEGATIVE,) if moved else ())))
