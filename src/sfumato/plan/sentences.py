"""What a publication is about, in sentences that plan, report, explanation and README share.

In:   a Plan, one of its publications, the network.
Out:  sentences: which mean where people have several rows, what stands for absent cells, whose identifiers are shown.
Not here: errors in words (evidence/figures.py), the rules themselves (network/rows.py).
"""

from __future__ import annotations

from sfumato.network.network import Network
from sfumato.network.rows import absent_of, mean_of
from sfumato.plan.plan import Plan, Planned

__all__ = ["LISTED", "rows_sentences"]

#: Said of every publication with a row for each individual.
LISTED = (
    "Who is listed is shown as it is: each row stands beside its individual's identifier, and no noise hides that "
    "somebody is in the data. What is protected is what the data say about them."
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
