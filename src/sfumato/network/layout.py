"""A layered layout of our own: sensitive left, observed right, edges that do not run through boxes.

In:   nodes with their zone, edges.
Out:  Layout: a place for every node, a route for every edge, where each zone begins and ends.
Not here: colours and ink (network/draw.py).

The usual four steps of layered drawing (Sugiyama et al. 1981): layers by longest path inside each zone, a dummy vertex
where an edge crosses a layer, a few sweeps of barycentres against crossings, coordinates.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["DrawingLayout", "lay_out"]

_SWEEPS = 12
Edge = tuple[str, str]
#: A dummy vertex is the edge and the layer it passes.
_Vertex = str | tuple[Edge, int]


@dataclass(frozen=True, slots=True)
class DrawingLayout:
    """Columns count layers from the left, rows from the top; `bands` gives each zone's first and last column."""

    places: Mapping[str, tuple[int, float]]
    routes: Mapping[Edge, tuple[tuple[int, float], ...]]
    bands: Mapping[str, tuple[int, int]]
    columns: int
    rows: int


def _spots(layers: Sequence[Sequence[_Vertex]], rows: int) -> dict[_Vertex, tuple[int, float]]:
    """Column and row of every vertex, each layer in the middle."""
    return {
        vertex: (at, place + (rows - len(part)) / 2)
        for at, part in enumerate(layers)
        for place, vertex in enumerate(part)
    }


def lay_out(zones: Mapping[str, str], edges: Sequence[Edge], order: str = "SZO") -> DrawingLayout:
    """Places for the nodes of `zones` (name -> letter of `order`).

    >>> drawn = lay_out({"age": "S", "risk": "Z", "mean": "O"}, [("age", "risk"), ("risk", "mean")])
    >>> [drawn.places[name][0] for name in ("age", "risk", "mean")]
    [0, 1, 2]
    """
    layer, bands = _layers(zones, edges, order)
    count = 1 + max(layer.values(), default=0)
    layers: list[list[_Vertex]] = [[name for name in zones if layer[name] == at] for at in range(count)]
    links: list[tuple[_Vertex, _Vertex]] = []
    chains: dict[Edge, list[_Vertex]] = {}
    for edge in edges:
        start, end = layer[edge[0]], layer[edge[1]]
        chain: list[_Vertex] = [edge[0], *((edge, at) for at in range(start + 1, end)), edge[1]]
        for dummy in chain[1:-1]:
            layers[dummy[1]].append(dummy)  # type: ignore[index]  # a dummy is (edge, layer)
        chains[edge] = chain
        links += list(itertools.pairwise(chain))
    _untangle(layers, links)
    rows = max(map(len, layers), default=0)
    spots = _spots(layers, rows)
    places = {name: spots[name] for name in zones}
    routes = {edge: tuple(spots[vertex] for vertex in chain) for edge, chain in chains.items()}
    return DrawingLayout(places, routes, bands, len(layers), rows)


def _depths(members: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """How many edges inside a zone lead to each of its nodes at most."""
    depth = dict.fromkeys(members, 0)
    inner = [(start, end) for start, end in edges if start in depth and end in depth]
    for _ in members:  # at most as many rounds as there are nodes; fewer when nothing moves any more
        moved = False
        for start, end in inner:
            if depth[end] < depth[start] + 1:
                depth[end], moved = depth[start] + 1, True
        if not moved:
            break
    return depth


def _layers(
    zones: Mapping[str, str], edges: Sequence[Edge], order: str
) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Longest path inside each zone; a zone begins where the one before it ends."""
    layer: dict[str, int] = {}
    bands: dict[str, tuple[int, int]] = {}
    first = 0
    for letter in order:
        members = [name for name, zone in zones.items() if zone == letter]
        if not members:
            continue
        depth = _depths(members, edges)
        last = first + max(depth.values())
        layer.update({name: first + at for name, at in depth.items()})
        bands[letter] = (first, last)
        first = last + 1
    return layer, bands


def _sort_beside(layer: list[_Vertex], beside: list[_Vertex], near: Mapping[_Vertex, list[_Vertex]]) -> None:
    """By the mean height of the neighbours in the layer beside it; who has none stays about where it is."""
    height = {vertex: (place + 0.5) / len(beside) for place, vertex in enumerate(beside)}
    own = {vertex: (place + 0.5) / len(layer) for place, vertex in enumerate(layer)}
    layer.sort(key=lambda vertex: _mean([height[x] for x in near.get(vertex, ()) if x in height], own[vertex]))


def _untangle(layers: list[list[_Vertex]], links: Sequence[tuple[_Vertex, _Vertex]]) -> None:
    """Sort each layer by the mean place of its neighbours, to and fro; keep the order with the fewest crossings."""
    left: dict[_Vertex, list[_Vertex]] = {}
    right: dict[_Vertex, list[_Vertex]] = {}
    for start, end in links:
        right.setdefault(start, []).append(end)
        left.setdefault(end, []).append(start)
    best, fewest = [list(part) for part in layers], _crossings(layers, right)
    for sweep in range(_SWEEPS):
        if sweep % 2 == 0:
            for at in range(1, len(layers)):
                _sort_beside(layers[at], layers[at - 1], left)
        else:
            for at in range(len(layers) - 2, -1, -1):
                _sort_beside(layers[at], layers[at + 1], right)
        now = _crossings(layers, right)
        if now < fewest:
            best, fewest = [list(part) for part in layers], now
    layers[:] = best


def _mean(heights: Sequence[float], otherwise: float) -> float:
    return sum(heights) / len(heights) if heights else otherwise


def _crossings(layers: Sequence[Sequence[_Vertex]], right: Mapping[_Vertex, Sequence[_Vertex]]) -> int:
    total = 0
    for here, there in itertools.pairwise(layers):
        place = {vertex: at for at, vertex in enumerate(there)}
        pairs = [(at, place[end]) for at, start in enumerate(here) for end in right.get(start, ()) if end in place]
        total += sum(a < c and b > d for a, b in pairs for c, d in pairs)
    return total
