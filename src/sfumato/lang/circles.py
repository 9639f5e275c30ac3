"""Circles in who depends on whom.

In:   variables, the parents of each.
Out:  the first circle, or nothing.
Not here: what is said about it (lang/check.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["first_circle"]

_Node = TypeVar("_Node", bound=Hashable)


def first_circle(nodes: Iterable[_Node], parents: Callable[[_Node], Sequence[_Node]]) -> list[_Node]:
    """A way from a node back to itself, both ends included; empty if there is none.

    >>> first_circle("abc", {"a": "b", "b": "c", "c": "b"}.__getitem__)
    ['b', 'c', 'b']
    """
    finished: set[_Node] = set()
    for start in nodes:
        path: dict[_Node, None] = {}
        waiting: list[tuple[_Node, bool]] = [(start, False)]
        while waiting:
            node, leaving = waiting.pop()
            if leaving:
                path.pop(node, None)
                finished.add(node)
            elif node in path:
                names = list(path)
                return [*names[names.index(node) :], node]
            elif node not in finished:
                path[node] = None
                waiting.append((node, True))
                waiting += [(parent, False) for parent in parents(node)]
    return []
