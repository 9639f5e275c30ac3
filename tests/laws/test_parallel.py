"""Parallel composition against every pair of neighbours of small tables."""

from __future__ import annotations

import importlib
import itertools
import math
import random

import pytest

from sfumato.core import ADD_REMOVE, REPLACE_ONE, GaussianDP, GaussianEvent, LaplaceEvent, Partition, PureDP, parallel
from sfumato.core.adjacency import Adjacency
from sfumato.core.events.learning import ObjectiveDP
from sfumato.errors import PrivacyParameterError

room = importlib.import_module("sfumato.core.compose")

BY_REGION = Partition("attribute", "region as written in the record")
BY_ROW = Partition("position", "blocks by row number")


class World:
    """Parts 0 … G-1, values 0 … V-1; a person of value v adds the vector `shares[g][v]` to the statistic of part g."""

    def __init__(self, seed: int, norm: int) -> None:
        rng = random.Random(seed)
        self.norm, self.groups, self.values = norm, rng.randint(1, 3), rng.randint(1, 3)
        size = rng.randint(1, 2)
        self.shares = [
            [[rng.choice([-1.0, 0.0, 0.5, 1.0]) for _ in range(size)] for _ in range(self.values)]
            for _ in range(self.groups)
        ]
        for part in self.shares:
            part[0][0] = 1.0  # somebody moves every part
        self.scales = [rng.choice([1.0, 3.0, 10.0]) for _ in range(self.groups)]
        self.people = list(itertools.product(range(self.groups), range(self.values)))

    def distance(self, one: tuple, other: tuple) -> float:
        """ε (L1) or μ (L2) between two tables, computed from the tables themselves."""
        total = 0.0
        for part in range(self.groups):
            sums = []
            for table in (one, other):
                rows = [self.shares[g][v] for g, v in table if g == part]
                sums.append([math.fsum(column) for column in zip(*rows, strict=True)] if rows else None)
            zero = [0.0] * len(self.shares[0][0])
            moved = [a - b for a, b in zip(sums[0] or zero, sums[1] or zero, strict=True)]
            total += self.length(moved) ** self.norm / self.scales[part] ** self.norm
        return total ** (1 / self.norm)

    def length(self, vector: list[float]) -> float:
        return sum(abs(entry) ** self.norm for entry in vector) ** (1 / self.norm)

    def worst(self, relation: str) -> float:
        found = 0.0
        for rest in itertools.combinations_with_replacement(self.people, 1):
            for new in self.people:
                if relation == "add-remove":
                    found = max(found, self.distance(rest, (*rest, new)))
                for old in self.people if relation == "replace-one" else []:
                    found = max(found, self.distance((*rest, old), (*rest, new)))
        return found

    def events(self, adjacency: Adjacency) -> list:
        """The parts' own acts, their sensitivities found by trying all people of the part."""
        kind = LaplaceEvent if self.norm == 1 else GaussianEvent
        made = []
        for part, scale in zip(self.shares, self.scales, strict=True):
            others = [[0.0] * len(part[0])] if adjacency.relation == "add-remove" else part
            moves = [self.length([a - b for a, b in zip(x, y, strict=True)]) for x in part for y in others]
            made.append(kind(max(1e-9, *moves), scale, dimension=len(part[0]), adjacency=adjacency))
        return made


def cost(guarantee, norm: int) -> float:
    return guarantee.epsilon(0.0) if norm == 1 else math.sqrt(max(_square(g) for g in _members(guarantee)))


def _members(guarantee):
    return guarantee.guarantees if isinstance(guarantee, room.WorstOf) else [guarantee]


def _square(guarantee) -> float:
    assert isinstance(guarantee, GaussianDP)
    return guarantee.mu**2


def undercharged(seed: int, norm: int) -> list[str]:
    """Where the charge is below the worst neighbours, or far above them when the inside costs are stated."""
    world, wrong = World(seed, norm), []
    added = world.events(ADD_REMOVE)
    near = world.worst("replace-one")
    if cost(parallel(added, BY_REGION), norm) < world.worst("add-remove") * (1 - 1e-9):
        wrong.append("add-remove")
    if cost(parallel(added, BY_REGION, REPLACE_ONE), norm) < near * (1 - 1e-9):
        wrong.append("replace-one")
    exact = cost(parallel(added, BY_REGION, REPLACE_ONE, inside=world.events(REPLACE_ONE)), norm)
    if not near * (1 - 1e-9) <= exact <= max(near, 1e-9) * (1 + 1e-6):
        wrong.append("stated inside")
    return wrong


@pytest.mark.parametrize("norm", [1, 2])
def test_no_neighbours_are_farther_apart_than_is_charged(norm):
    assert [seed for seed in range(60) if undercharged(seed, norm)] == []


@pytest.mark.parametrize("norm", [1, 2])
def test_charges_that_forget_a_kind_of_neighbour_are_found(norm, monkeypatch):
    monkeypatch.setattr(room, "_inside", lambda costs, inside, adjacency: [])
    assert any("replace-one" in undercharged(seed, norm) for seed in range(60) if World(seed, norm).groups > 1)
    monkeypatch.undo()
    monkeypatch.setattr(room, "_across", lambda costs: [])
    assert any("stated inside" in undercharged(seed, norm) for seed in range(60))


def test_parts_by_position_under_add_remove_are_refused():
    """Ten blocks by row number: removing the first row moves a person out of every block and another in."""
    count = LaplaceEvent(1.0, 1.0, adjacency=ADD_REMOVE)
    rows = [1 if row % 20 == 0 else 0 for row in range(100)]
    blocks = [[sum(table[k : k + 10]) for k in range(0, 100, 10)] for table in (rows, [*rows[1:], 0])]
    assert sum(abs(a - b) for a, b in zip(*blocks, strict=True)) == 9
    for adjacency in (None, REPLACE_ONE, ADD_REMOVE):
        with pytest.raises(PrivacyParameterError, match="Nothing was spent"):
            parallel([count] * 10, BY_ROW, adjacency)
    replaced = LaplaceEvent(1.0, 1.0, adjacency=REPLACE_ONE)
    assert parallel([replaced] * 10, BY_ROW).epsilon(0.0) == pytest.approx(1.0)


def test_what_cannot_be_doubled_or_compared_is_refused():
    trained = [ObjectiveDP(0.2, 0.01, adjacency=ADD_REMOVE)] * 2
    with pytest.raises(PrivacyParameterError, match="inside"):
        parallel(trained, BY_REGION, REPLACE_ONE)
    costs = [PureDP(1.0, adjacency=ADD_REMOVE)] * 2
    with pytest.raises(PrivacyParameterError, match="unit"):
        parallel(costs, BY_REGION, Adjacency("household", "replace-one"))
    with pytest.raises(PrivacyParameterError, match="adjacency"):
        parallel([PureDP(1.0)], BY_ROW)
    with pytest.raises(PrivacyParameterError, match="one cost for each part"):
        parallel(costs, BY_REGION, REPLACE_ONE, inside=[PureDP(1.0, adjacency=REPLACE_ONE)])
