"""The logical Bayesian network of a study: who depends on whom, for everybody at once, without data and without noise.

`Network.from_spec` builds it, `Network.evaluate` computes it over tables, `Network.draw` shows it.
"""

from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import Bounds, as_bounds, hull
from sfumato.network.condition import Condition
from sfumato.network.expression import Call, Constant, Distribution, Expression, Lookup, Power, Reference
from sfumato.network.network import Group, Network, Node, Zones

__all__ = [
    "AggregateNode",
    "Bounds",
    "Call",
    "Condition",
    "Constant",
    "Distribution",
    "Expression",
    "Group",
    "Lookup",
    "Network",
    "Node",
    "Power",
    "Reference",
    "Zones",
    "as_bounds",
    "hull",
]
