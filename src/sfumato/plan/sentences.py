"""What a publication is about, in sentences that plan, report, explanation and README share.

In:   a Plan, one of its publications, the network.
Out:  sentences: which mean where people have several rows, and what stands for absent cells.
Not here: errors in words (evidence/figures.py), the rules themselves (network/rows.py).
"""

from __future__ import annotations

from sfumato.network.network import Network
from sfumato.network.rows import absent_of, mean_of
from sfumato.plan.plan import Plan, Planned

__all__ = ["rows_sentences"]


def rows_sentences(plan: Plan, planned: Planned, network: Network | None = None) -> tuple[str, ...]:
    """What the aggregates of a publication are about where people have several rows, each sentence once.

    A plan that was read from a file has no network: without one there is nothing to say.
    """
    known = network or plan.network
    if known is None:
        return ()
    sums = {node.name: node for node in known.aggregates}
    nodes = [sums[seen.node] for seen in planned.seen if seen.node in sums]
    said = [*(mean_of(known, node) for node in nodes), *(absent_of(known, node) for node in nodes)]
    return tuple(sentence for sentence in dict.fromkeys(said) if sentence)
