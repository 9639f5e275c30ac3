"""The network of a study: who depends on whom, for everybody at once.

In:   a Spec (Network.from_spec).
Out:  Network, a frozen graph of templates: one set of nodes per distinct public structure, whatever the number of
people.
Not here: how it is built (network/build.py), evaluated (network/evaluate.py), drawn (network/draw.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.core.domain import Categories, Interval
from sfumato.core.tables import nearest
from sfumato.core.text import AnyText
from sfumato.errors import InputError
from sfumato.lang.derivations import Publication
from sfumato.lang.spec import EVERYONE, Column, Spec
from sfumato.lang.term import Position, Term
from sfumato.network.aggregate import AggregateNode
from sfumato.network.bounds import Bounds
from sfumato.network.expression import Expression, Level

if TYPE_CHECKING:
    from sfumato.network.evaluate import Values
    from sfumato.network.inference import Inference

__all__ = ["Group", "Network", "Node", "NodeLevel", "Zones", "first_of_each", "is_read", "layers_of"]

NodeLevel = Literal["individual", "global"]
_ANYWHERE = Bounds.unbounded("nothing is known of its values")


@dataclass(frozen=True, slots=True)
class Node:
    """A random variable of one individual (a template) or of nobody in particular.

    `law` is the CPF as the study writes it. `expression` is the number that forward inference gives: the expectation
    under the network, given the individual's cells. It refers to other nodes by name and is None where the value is
    read from a column or is not given at all. `drawn` is what one draw of a random variable is computed from: its law,
    clipped to a declared range it could leave; None where nothing is random. `bounds` hold the expectation, `support`
    every value that can be drawn. `levels` and `probabilities` belong to unobserved categorical variables. `domain` is
    None when nothing bounds the expectation; `bounds.reason` then says why. With `skip` people without the cell are
    left out of what sums it up.
    """

    name: str
    atom: Term
    level: NodeLevel
    source: Column | None
    law: Expression | None
    expression: Expression | None
    parents: tuple[str, ...]
    domain: Interval | Categories | AnyText | None
    bounds: Bounds
    public: bool = False
    missing: Level | None = None
    levels: tuple[Level, ...] = ()
    probabilities: tuple[Expression, ...] = ()
    rows: int = 1
    row_table: str | None = None
    skip: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)
    drawn: Expression | None = None
    support: Bounds = _ANYWHERE

    @property
    def is_random(self) -> bool:
        """Its value is drawn, or computed from what is drawn."""
        return self.drawn is not None

    @property
    def reads_data(self) -> bool:
        """Its value is a cell of a private table."""
        return self.source is not None and not self.public

    @property
    def has_value(self) -> bool:
        """Whether it has a value itself, and not the chances of its levels alone."""
        return self.expression is not None or not self.probabilities

    @property
    def of_individual(self) -> bool:
        """Whether every individual has a value of its own."""
        return self.level == "individual"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The nodes its forward-inferred value is computed from; none if it is read from a column."""
        if self.source is not None:
            return ()
        needed = frozenset().union(*(part.references() for part in (self.expression, *self.probabilities) if part))
        return tuple(sorted(needed)) if self.expression or self.probabilities else self.parents


@dataclass(frozen=True, slots=True)
class Group:
    """All individuals of a dataset with the same public structure, by one representative.

    `structure` lists the public facts that make them alike, the individual written as the dataset's variable. `key`
    is how the structure is recognised in the public tables; None stands for individuals these tables do not mention.
    People the study itself names in facts form one group without a representative.
    """

    dataset: str | None
    structure: tuple[Term, ...]
    representative: Term | None
    nodes: tuple[Node, ...]
    key: str | None = None
    #: (observer, cell) of observe and reveal lines that hold for everybody of this structure, but for one's own.
    known: tuple[tuple[str, str], ...] = ()

    #: What belongs to each of these individuals by personal_rv.
    personal: tuple[str, ...] = ()

    def known_to(self, observer: str) -> frozenset[str]:
        """The cells that an observer knows exactly of every individual here."""
        return frozenset(cell for other, cell in self.known if other in (observer, EVERYONE))

    def node(self, name: str) -> Node | None:
        """The node of that name, if this structure has it."""
        return next((node for node in self.nodes if node.name == name), None)

    def skipped(self, name: str) -> frozenset[str]:
        """The cells behind a node of this structure without which an individual is left out."""
        nodes = {node.name: node for node in self.nodes}
        met: set[str] = set()
        waiting = [name]
        while waiting:
            one = waiting.pop()
            if one in nodes and one not in met:
                met.add(one)
                waiting += nodes[one].inputs
        return frozenset(one for one in met if nodes[one].skip)

    def inference(self, shared: Iterable[Node] = ()) -> Inference:
        """Expectations of whatever is written in this structure's variables and the shared ones."""
        from sfumato.network.inference import Inference

        nodes = {node.name: node for node in (*shared, *self.nodes)}
        return Inference(
            {name: node.drawn for name, node in nodes.items() if node.drawn is not None},
            {name: node.levels for name, node in nodes.items() if node.drawn is not None and node.levels},
            {name: node.domain or node.bounds for name, node in nodes.items()},
        )


@dataclass(frozen=True, slots=True)
class Zones:
    """What one observer's requirement is about (thesis Fig. 4.5, 4.6).

    `sensitive` (S): nodes that hold raw data, or have neither parents nor a law. `observed` (O): what the observer
    sees. `intermediate` (Z): what lies between. A raw cell that is itself observed is in S and in O.
    `public` are known inputs; they need no protection.
    """

    requirement: Term
    observer: str
    dataset: str
    sensitive: frozenset[str]
    intermediate: frozenset[str]
    observed: frozenset[str]
    public: frozenset[str] = frozenset()

    def zone(self, name: str) -> str | None:
        """ "O", "Z" or "S"; the observed zone first."""
        for letter, members in (("O", self.observed), ("Z", self.intermediate), ("S", self.sensitive)):
            if name in members:
                return letter
        return None


@dataclass(frozen=True)
class Network:
    """The graph of a study. `Network.from_spec(spec, tables)`; private tables are not opened to build it."""

    spec: Spec = field(repr=False)
    groups: tuple[Group, ...]
    shared: tuple[Node, ...]
    aggregates: tuple[AggregateNode, ...]
    zones: tuple[Zones, ...]
    publications: tuple[Publication, ...] = ()
    personal: tuple[tuple[Term, str], ...] = ()
    instances: tuple[tuple[str, str], ...] = ()  # (dataset or part, cell) of instance_rv
    exact: tuple[tuple[str, str], ...] = ()  # (observer, variable) of observe and reveal lines, but for one's own
    #: The study as it was read, and a digest of each public table that this was built from (network/told_in_public.py).
    given: Spec | None = field(default=None, repr=False, compare=False)
    public: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_spec(cls, spec: Spec, tables: Mapping[str, Any] | None = None) -> Network:
        """Ground one representative per public structure. Of `tables` only those declared public are read."""
        from sfumato.network.build import build

        return build(spec, tables or {})

    @property
    def digest(self) -> str:
        """The digest of the study's text."""
        return self.spec.digest

    @cached_property
    def nodes(self) -> tuple[Node | AggregateNode, ...]:
        """Every node name once, parents before children; the first group that has a node stands for the others."""
        found: dict[str, Node | AggregateNode] = {}
        for node in self._all():
            found.setdefault(node.name, node)
        return _ordered(found)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(parent, child) pairs."""
        known = {node.name for node in self.nodes}
        return tuple((parent, node.name) for node in self.nodes for parent in node.parents if parent in known)

    def node(self, name: str) -> Node | AggregateNode:
        """The node of that name."""
        for node in self._all():
            if node.name == name:
                return node
        raise InputError(f"The network has no node {name!r}{nearest(name, [n.name for n in self.nodes])}.")

    def variants(self, name: str) -> tuple[Node, ...]:
        """The node of that name in every group that has it, or the shared one."""
        found = (group.node(name) for group in self.groups)
        return tuple(node for node in (*found, *(n for n in self.shared if n.name == name)) if node is not None)

    def zone(self, requirement: Term) -> Zones:
        """The zones of a requirement."""
        for zones in self.zones:
            if zones.requirement == requirement:
                return zones
        raise InputError(f"The study has no requirement named {requirement}.")

    def evaluate(
        self, tables: Mapping[str, Any], row_keys: Mapping[str, bytes] | None = None, *, sums_only: bool = False
    ) -> Values:
        """Every variable's forward-inferred value. What comes back is private: only mechanisms may publish from it.

        `row_keys` (dataset -> key) decide which rows of people with many rows are kept (network/rows.py). With
        `sums_only` nobody's values are held, only the sums over them.
        """
        from sfumato.network.evaluate import evaluate

        return evaluate(self, tables, row_keys, sums_only=sums_only)

    def draw(self, path: str | Path) -> Path:
        """Write the graph with its zones as SVG, PNG or PDF."""
        from sfumato.network.draw import draw

        return draw(self, Path(path))

    def _all(self) -> Iterator[Node | AggregateNode]:
        for group in self.groups:
            yield from group.nodes
        yield from self.shared
        yield from self.aggregates


def is_read(node: Node | AggregateNode) -> bool:
    """Whether its value is a cell of some table."""
    return isinstance(node, Node) and node.source is not None


def first_of_each(groups: Iterable[Group]) -> dict[str, Node]:
    """Every node of these groups by its name; the first group that has it stands for the others."""
    found: dict[str, Node] = {}
    for group in groups:
        for node in group.nodes:
            found.setdefault(node.name, node)
    return found


def layers_of(nodes: Sequence[Node]) -> list[list[Node]]:
    """Computed nodes by depth: each layer reads only what stands before it."""
    depth: dict[str, int] = {}
    layers: list[list[Node]] = []
    for node in nodes:
        if node.source is not None:
            continue
        level = max((depth[name] + 1 for name in node.inputs if name in depth), default=0)
        depth[node.name] = level
        while len(layers) <= level:
            layers.append([])
        layers[level].append(node)
    return layers


def _ordered(found: dict[str, Node | AggregateNode]) -> tuple[Node | AggregateNode, ...]:
    done: dict[str, Node | AggregateNode] = {}
    waiting = list(reversed(found.values()))
    while waiting:
        node = waiting.pop()
        missing = [found[name] for name in node.parents if name in found and name not in done]
        if node.name in done:
            continue
        if missing:
            waiting += [node, *reversed(missing)]
        else:
            done[node.name] = node
    return tuple(done.values())
