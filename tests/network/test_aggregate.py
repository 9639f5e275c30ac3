"""What one individual can change in an aggregate: never more than claimed, and as much as claimed."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE
from sfumato.lang import Compound
from sfumato.network import AggregateNode, Bounds, Contribution, joint
from sfumato.network.condition import Every, Member

CONDITIONAL = Every((Member("t", "id", ()),))


def aggregate(kind, bounds=(), *, everybody=False, rows=1, cuts=(), levels=()):
    names = tuple(f"x{place}(P)" for place in range(len(bounds)))
    condition = Every() if everybody else CONDITIONAL
    return AggregateNode(
        kind, Compound(kind), kind, "people", names, tuple(bounds), condition, rows, everybody, cuts, levels
    )


def row_vectors(node):
    """All corner vectors one counted row can add."""
    corners = [(b.low, b.high, *((0.0,) if 0.0 in b else ())) for b in node.bounds]
    match node.kind:
        case "count":
            return [np.array([1.0])]
        case "sum":
            return [np.array([x]) for (x,) in product(*corners)]
        case "mean":
            return [np.array([x, 1.0]) for (x,) in product(*corners)]
        case "moment2":
            pairs = [(i, j) for i in range(len(node.bounds)) for j in range(i, len(node.bounds))]
            return [np.array([x[i] * x[j] for i, j in pairs]) for x in product(*corners)]
    return list(np.eye(node.size))


def person_vectors(node):
    rows = row_vectors(node)
    if node.everybody:
        return rows
    return [np.zeros(node.size), *(k * row for row in rows for k in range(1, node.rows + 1))]


CASES = [
    aggregate("count"),
    aggregate("count", rows=3),
    aggregate("sum", [Bounds(-2, 5)]),
    aggregate("sum", [Bounds(3, 5)]),
    aggregate("sum", [Bounds(3, 5)], everybody=True),
    aggregate("sum", [Bounds(-7, -3)], rows=4),
    aggregate("mean", [Bounds(0, 110)]),
    aggregate("mean", [Bounds(-1, 0.1)], everybody=True),
    aggregate("mean", [Bounds(-1, 4)], rows=2),
    aggregate("moment2", [Bounds(0, 1), Bounds(-2, 1)]),
    aggregate("moment2", [Bounds(0, 1), Bounds(0, 3)], everybody=True),
    aggregate("moment2", [Bounds(-1, 1)], rows=2),
    aggregate("histogram", [Bounds(0, 110)], everybody=True, cuts=(20.0, 65.0)),
    aggregate("histogram", [Bounds(0, 1)], rows=3, levels=("f", "m")),
]


@pytest.mark.parametrize("node", CASES, ids=lambda n: f"{n.kind}-{n.rows}-{n.everybody}")
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE], ids=str)
def test_no_neighbour_moves_further_than_claimed(node, adjacency):
    people = person_vectors(node)
    moves = [v - w for v in people for w in people] if adjacency is REPLACE_ONE else people
    claim = node.contribution(adjacency)
    l1, l2 = max(np.abs(m).sum() for m in moves), max(np.linalg.norm(m) for m in moves)
    assert l1 <= claim.l1
    assert l2 <= claim.l2 * (1 + 1e-15)
    if node.kind != "moment2":  # for those the claim is a bound, the box or √2, not always attained
        assert claim.l1 <= l1 * (1 + 1e-12)
        assert claim.l2 <= l2 * (1 + 1e-12)


def test_the_printed_formulas():
    assert aggregate("count").contribution(REPLACE_ONE) == Contribution(1.0, 1.0)
    assert aggregate("count", everybody=True).contribution(REPLACE_ONE) == Contribution(1.0, 1.0)
    assert aggregate("sum", [Bounds(0, 110)], everybody=True).contribution(REPLACE_ONE).l2 == 110.0
    hist = aggregate("histogram", [Bounds(0, 1)], everybody=True, levels=("f", "m"))
    assert hist.contribution(REPLACE_ONE).l1 == 2.0
    assert hist.contribution(REPLACE_ONE).l2 == pytest.approx(math.sqrt(2), rel=1e-15)
    assert hist.contribution(REPLACE_ONE).l2 ** 2 >= 2.0
    assert hist.contribution(ADD_REMOVE) == Contribution(1.0, 1.0)
    assert aggregate("mean", [Bounds(0, 3)]).contribution(ADD_REMOVE).l2 == pytest.approx(math.sqrt(10))
    assert aggregate("moment2", [Bounds(-1, 1)]).contribution(REPLACE_ONE).l1 == 1.0


def test_without_bounds_nothing_can_be_promised():
    node = aggregate("sum", [Bounds.unbounded("no range is declared")])
    claim = node.contribution(REPLACE_ONE)
    assert math.isinf(claim.l1)
    assert "range" in claim.reason
    assert node.steps is None
    assert math.isinf(joint([claim, Contribution(1.0, 1.0)]).l2)


def test_the_grid_is_part_of_the_claim():
    """A third is no multiple of the grid: the rounded contribution may exceed it, and the claim knows."""
    node = aggregate("sum", [Bounds(-1 / 3, 1 / 3)])
    (low, high), (step,) = node.units[0], node.steps
    assert high * step >= 1 / 3 >= (high - 1) * step
    assert node.contribution(REPLACE_ONE).l1 >= (high - low) * step
    assert math.log2(step).is_integer()
