"""What a publication is about, in sentences that plan, report, explanation and README share.

In:   a Plan, one of its publications, the network.
Out:  sentences: which mean where people have several rows, what stands for absent cells, whose identifiers are shown,
      what somebody learns exactly.
Not here: errors in words (evidence/figures.py), the rules themselves (network/rows.py).
"""

from __future__ import annotations

from collections.abc import Collection

from sfumato.lang.spec import EVERYONE
from sfumato.network.network import Network
from sfumato.network.rows import absent_of, mean_of
from sfumato.plan.plan import Plan, Planned

__all__ = ["LISTED", "exact_sentences", "rows_sentences"]

#: Said of every publication with a row for each individual.
LISTED = (
    "Who is listed is shown as it is: each row stands beside its individual's identifier, and no noise hides that "
    "somebody is in the data. What is protected is what the data say about them."
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


def rows_sentences(plan: Plan, planned: Planned, network: Network | None = None) -> tuple[str, ...]:
    """What the aggregates of a publication are about where people have several rows, and who is listed, each once.

    A plan that was read from a file has no network: without one there is nothing to say about rows.
    """
    listed = (LISTED,) if planned.listed else ()
    known = network or plan.network
    if known is None:
        return listed
    sums = {node.name: node for node in known.aggregates}
    nodes = [sums[seen.node] for seen in planned.seen if seen.node in sums]
    said = [*(mean_of(known, node) for node in nodes), *(absent_of(known, node) for node in nodes)]
    return (*listed, *(sentence for sentence in dict.fromkeys(said) if sentence))
