"""Where noise may go: sets of nodes through which everything private must pass before it is observed.

In:   a directed graph as parents by node, the nodes holding private data, the observed nodes.
Out:  cuts, from "noise on the outputs" to "noise on the inputs".
Not here: how much noise a cut needs (plan/sensitivity.py), which one is cheapest (plan/individual.py).
Proof: docs/proofs/cut_placement.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sfumato.lang.deadline import check_time

__all__ = ["depends_on_private", "enumerate_cuts", "is_cut", "topological_order"]

Parents = Mapping[str, tuple[str, ...]]

#: More candidate cuts than this are not looked at, and fewer in large graphs, where one step of the search visits more
#: nodes; inputs and outputs are always among them.
MOST_CUTS = 4000
MOST_VISITS = 20_000_000


def topological_order(parents: Parents) -> tuple[str, ...]:
    """Parents before children, otherwise in the order given."""
    order: dict[str, None] = {}

    def visit(node: str) -> None:
        stack = [(node, iter(parents.get(node, ())))]
        while stack:
            current, rest = stack[-1]
            following = next((parent for parent in rest if parent not in order), None)
            if following is None:
                order.setdefault(current)
                stack.pop()
            else:
                stack.append((following, iter(parents.get(following, ()))))

    for node in parents:
        if node not in order:
            visit(node)
    return tuple(order)


def depends_on_private(parents: Parents, private: Iterable[str]) -> frozenset[str]:
    """The private nodes and everything computed from them."""
    touched = set(private)
    for node in topological_order(parents):
        if any(parent in touched for parent in parents.get(node, ())):
            touched.add(node)
    return frozenset(touched)


def is_cut(cut: Iterable[str], parents: Parents, private: Iterable[str], observed: Iterable[str]) -> bool:
    """Whether every path from a private node to an observed one, ends included, meets the cut.

    >>> graph = {"x": (), "y": ("x",), "z": ("y", "x")}
    >>> is_cut({"y"}, graph, {"x"}, {"z"}), is_cut({"x"}, graph, {"x"}, {"z"})
    (False, True)
    """
    blocked, raw = set(cut), set(private)
    seen: set[str] = set()
    ahead = [node for node in observed if node not in blocked]
    while ahead:
        node = ahead.pop()
        if node in raw:
            return False
        if node not in seen:
            seen.add(node)
            ahead.extend(parent for parent in parents.get(node, ()) if parent not in blocked)
    return True


def enumerate_cuts(
    parents: Parents, private: Iterable[str], observed: Iterable[str], most: int = MOST_CUTS
) -> tuple[frozenset[str], ...]:
    """Cuts found by moving the noise from the outputs towards the inputs, one node at a time, redundant nodes dropped.

    >>> graph = {"x": (), "y": ("x",), "z": ("y", "x")}
    >>> [sorted(cut) for cut in enumerate_cuts(graph, {"x"}, {"z"})]
    [['z'], ['x']]
    """
    raw = frozenset(private)
    touched = depends_on_private(parents, raw)
    order = topological_order(parents)
    first = frozenset(node for node in observed if node in touched)
    found: dict[frozenset[str], None] = {}
    ahead = [first]
    seen = {first}
    most = min(most, 2 + MOST_VISITS // max(1, 2 * len(order) * len(first)))
    while ahead and len(seen) < most:
        check_time(f"looking for places for the noise of {len(first)} observed variables")
        current = ahead.pop(0)
        for direction in (order, order[::-1]):
            found.setdefault(_without_redundant(current, direction, parents, raw, first))
        for node in sorted(current - raw):
            moved = (current - {node}) | touched.intersection(parents.get(node, ()))
            if moved not in seen:
                seen.add(moved)
                ahead.append(moved)
    found.setdefault(_inputs(parents, raw, first))
    return tuple(cut for cut in found if is_cut(cut, parents, raw, first))


def _without_redundant(
    cut: frozenset[str], order: tuple[str, ...], parents: Parents, raw: frozenset[str], observed: frozenset[str]
) -> frozenset[str]:
    kept = set(cut)
    for node in order:
        if node in kept and is_cut(kept - {node}, parents, raw, observed):
            kept.discard(node)
    return frozenset(kept)


def _inputs(parents: Parents, raw: frozenset[str], observed: frozenset[str]) -> frozenset[str]:
    """The private nodes that reach an observed one."""
    reached: set[str] = set()
    ahead = list(observed)
    while ahead:
        node = ahead.pop()
        if node not in reached:
            reached.add(node)
            ahead.extend(parents.get(node, ()))
    return frozenset(reached & raw)
