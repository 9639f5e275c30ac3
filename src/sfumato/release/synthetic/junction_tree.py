"""A table's law as a product over overlapping cliques: fitted to noisy counts, then asked for rows.

In:   sizes of the columns, noisy count tables of small sets of columns with their standard errors.
Out:  JunctionTree: which cliques are needed; Fitted: the law of largest entropy near the counts, rows drawn from it.
Not here: which tables are counted (release/synthetic/selection.py), any private number: all of this is post-processing.
Reference: McKenna, Sheldon & Miklau 2019 (the estimator); Lauritzen & Spiegelhalter 1988 (junction trees).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.release.synthetic.drawn_rows import even_draws, evened, place

__all__ = ["CountTable", "Fitted", "JunctionTree", "Scope", "cells_needed", "cells_of"]

Numbers = NDArray[np.float64]
#: Positions of columns, ascending.
Scope = tuple[int, ...]
_TINY = 1e-300
_FAINT = 1e-100


@dataclass(frozen=True, eq=False)
class CountTable:
    """Noisy counts of the columns `scope`; `deviation` is the standard error of each count."""

    scope: Scope
    counts: Numbers
    deviation: float


def cells_needed(sizes: Sequence[int], scopes: Iterable[Scope]) -> float:
    """How many numbers a junction tree over these scopes holds.

    >>> cells_needed([2, 3, 4], [(0, 1), (1, 2)])
    18.0
    """
    return math.fsum(cells_of(sizes, clique) for clique in _cliques(sizes, scopes))


def cells_of(sizes: Sequence[int], scope: Iterable[int]) -> float:
    """How many cells a table of these columns has."""
    return math.prod(float(sizes[column]) for column in scope)


def _cliques(sizes: Sequence[int], scopes: Iterable[Scope]) -> list[Scope]:
    """Maximal cliques of a triangulated graph: columns are eliminated where this makes the smallest table."""
    near: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        for first, second in itertools.permutations(scope, 2):
            near[first].add(second)
    left, found = set(range(len(sizes))), []
    while left:
        column = min(left, key=lambda one: (cells_of(sizes, near[one] | {one}), one))
        clique = tuple(sorted(near[column] | {column}))
        if not any(set(clique) <= set(other) for other in found):
            found.append(clique)
        for first, second in itertools.permutations(near[column], 2):
            near[first].add(second)
        for other in near[column]:
            near[other].discard(column)
        left.discard(column)
    return found


@dataclass(frozen=True, eq=False)
class JunctionTree:
    """Cliques in an order in which each hangs on an earlier one by the columns they share. Made by `over`."""

    sizes: tuple[int, ...]
    cliques: tuple[Scope, ...]
    parents: tuple[int, ...]  # -1 for the first
    separators: tuple[Scope, ...]
    homes: Mapping[Scope, int]  # the smallest clique that holds a scope
    allowed: tuple[NDArray[np.bool_], ...]  # cells of each clique that some possible row has, whatever was counted

    @classmethod
    def over(
        cls,
        sizes: Sequence[int],
        measured: Sequence[Scope],
        impossible: Mapping[Scope, NDArray[np.bool_]] | None = None,
    ) -> JunctionTree:
        never = impossible or {}
        scopes = list(dict.fromkeys([*measured, *never]))
        cliques = _cliques(sizes, scopes)
        order, parents = _spanning_order(cliques)
        arranged = [cliques[place] for place in order]
        separators = [
            () if parent < 0 else tuple(sorted(set(arranged[parent]) & set(clique)))
            for clique, parent in zip(arranged, parents, strict=True)
        ]
        homes = {}
        for scope in scopes:
            holding = [at for at, clique in enumerate(arranged) if set(scope) <= set(clique)]
            homes[scope] = min(holding, key=lambda at: cells_of(sizes, arranged[at]))
        whole = tuple(int(size) for size in sizes)
        made = cls(whole, tuple(arranged), tuple(parents), tuple(separators), homes, ())
        return dataclasses.replace(made, allowed=made._allowed(never))

    def _allowed(self, never: Mapping[Scope, NDArray[np.bool_]]) -> tuple[NDArray[np.bool_], ...]:
        """What is left of each clique, by one sweep up and one down: a value that one table rules out is out in all.

        Where nothing at all is left the schema contradicts itself, and rules nothing out.
        """
        found = [np.ones(self.shape(clique), dtype=bool) for clique in self.cliques]
        for scope, cells in never.items():
            found[self.homes[scope]] &= ~self.spread(self.homes[scope], scope, cells)
        links = list(zip(range(1, len(found)), self.parents[1:], self.separators[1:], strict=True))
        for at, parent, shared in links[::-1]:
            found[parent] &= self.spread(parent, shared, self._some(at, found[at], shared))
        for at, parent, shared in links:
            found[at] &= self.spread(at, shared, self._some(parent, found[parent], shared))
        return tuple(found) if found[0].any() else tuple(np.ones_like(cells) for cells in found)

    def _some(self, clique: int, cells: NDArray[np.bool_], scope: Scope) -> NDArray[np.bool_]:
        others = tuple(at for at, column in enumerate(self.cliques[clique]) if column not in scope)
        return np.asarray(cells.any(axis=others))

    def shape(self, scope: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in scope)

    def summed(self, clique: int, table: Numbers, scope: Scope) -> Numbers:
        """A clique's table summed down to `scope`."""
        columns = self.cliques[clique]
        lead = next((at for at, column in enumerate(columns) if column in scope), len(columns))
        if lead:  # whole rows added up are several times faster than sums within them
            table = table.reshape(-1, *table.shape[lead:]).sum(axis=0)
        rest = columns[lead:]
        kept = [at for at, column in enumerate(rest) if column in scope]
        return np.einsum(table, range(len(rest)), kept)  # pyright: ignore[reportCallIssue, reportArgumentType]

    def spread(self, clique: int, scope: Scope, table: NDArray[Any]) -> NDArray[Any]:
        """A table over `scope`, shaped so that it multiplies into the clique's."""
        return table.reshape([self.sizes[c] if c in scope else 1 for c in self.cliques[clique]])

    def marginals(self, potentials: Mapping[Scope, Numbers], total: float) -> list[Numbers]:
        """Expected counts of every clique under the law ∝ exp(Σ potentials), by one sweep up and one down."""
        tables = [np.zeros(self.shape(clique)) for clique in self.cliques]
        for scope, potential in potentials.items():
            home = self.homes[scope]
            tables[home] += self.spread(home, scope, potential)
        for table, cells in zip(tables, self.allowed, strict=True):
            table[~cells] = -np.inf  # before the largest is taken: beside it all others may be too faint
            np.exp(table - table.max(), out=table)
        for at in range(len(tables) - 1, 0, -1):
            message = self.summed(at, tables[at], self.separators[at])
            message = np.maximum(message / message.max(), _FAINT)
            above = tables[self.parents[at]]
            above *= self.spread(self.parents[at], self.separators[at], message)
            above /= max(above.max(), _TINY)  # some entry stays 1, so that no table can underflow as a whole
        tables[0] *= total / tables[0].sum()
        for at in range(1, len(tables)):
            wanted = self.summed(self.parents[at], tables[self.parents[at]], self.separators[at])
            own = self.summed(at, tables[at], self.separators[at])
            lost = (wanted > 0) & (own <= _TINY)
            if lost.any():  # too faint to be told from nothing: what is possible there is alike, or rows had no level
                cells = self.spread(at, self.separators[at], lost) & self.allowed[at]
                tables[at][cells] = 1.0
                own = self.summed(at, tables[at], self.separators[at])
            factor = np.where(own > 0, wanted / np.maximum(own, _TINY), 0.0)
            tables[at] *= self.spread(at, self.separators[at], factor)
        return tables


def _spanning_order(cliques: Sequence[Scope]) -> tuple[list[int], list[int]]:
    """Prim's tree by the number of shared columns; parents as places in the order."""
    order, parents = [0], [-1]
    best = {at: (len(set(cliques[0]) & set(cliques[at])), 0) for at in range(1, len(cliques))}
    while best:
        chosen = max(best, key=lambda at: (best[at][0], -at))
        parents.append(best.pop(chosen)[1])
        order.append(chosen)
        for at, (shared, _) in best.items():
            closer = len(set(cliques[chosen]) & set(cliques[at]))
            if closer > shared:
                best[at] = (closer, len(order) - 1)
    return order, parents


@dataclass(eq=False)
class Fitted:
    """The law of largest entropy whose counts lie near the measured ones, in units of their standard errors."""

    tree: JunctionTree
    total: float
    potentials: dict[Scope, Numbers]
    tables: list[Numbers] = field(repr=False)
    loss: float

    @classmethod
    def to(
        cls,
        sizes: Sequence[int],
        measured: Sequence[CountTable],
        total: float,
        *,
        steps: int = 200,
        start: Mapping[Scope, Numbers] | None = None,
        impossible: Mapping[Scope, NDArray[np.bool_]] | None = None,
    ) -> Fitted:
        """Warm multiplicative steps, then mirror descent with momentum that restarts where the loss would rise."""
        scopes = list(dict.fromkeys(table.scope for table in measured))
        never = impossible or {}
        measured = [
            CountTable(one.scope, np.where(never[one.scope], 0.0, one.counts), one.deviation)
            if one.scope in never
            else one
            for one in measured
        ]
        tree = JunctionTree.over(sizes, scopes, impossible)
        potentials = {scope: np.array((start or {}).get(scope, np.zeros(tree.shape(scope)))) for scope in scopes}
        _warm(tree, measured, total, potentials, 20 if start else 40)
        return _descended(tree, measured, total, potentials, steps)

    def counts(self, scope: Scope) -> Numbers | None:
        """Expected counts of `scope`, where one clique holds it."""
        for at, clique in enumerate(self.tree.cliques):
            if set(scope) <= set(clique):
                return self.tree.summed(at, self.tables[at], scope)
        return None

    def rows(self, number: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """`number` rows of level codes, column by column, evenly spread within each value of what is known already."""
        codes = np.zeros((number, len(self.tree.sizes)), np.int32)
        for at, clique in enumerate(self.tree.cliques):
            known = self.tree.separators[at]
            for column in (one for one in clique if one not in known):
                scope = tuple(sorted((*known, column)))
                table = np.moveaxis(self.tree.summed(at, self.tables[at], scope), scope.index(column), -1)
                weights = table.reshape(-1, self.tree.sizes[column])
                group = place(codes, known, self.tree.sizes)
                drawn = even_draws(group, weights, generator)
                codes[:, column] = evened(drawn, group, weights, generator)
                known = scope
        return codes


def _warm(
    tree: JunctionTree, measured: Sequence[CountTable], total: float, potentials: dict[Scope, Numbers], steps: int
) -> None:
    """A start for the descent: potentials move by the relative difference, damped where noise outweighs the count."""
    for _ in range(steps):
        tables = tree.marginals(potentials, total)
        for one in measured:
            home = tree.homes[one.scope]
            model = tree.summed(home, tables[home], one.scope)
            size = np.maximum(model, one.counts) + 2 * one.deviation
            potentials[one.scope] = potentials[one.scope] + 0.08 * np.clip((one.counts - model) / size, -2, 2)


def _descended(
    tree: JunctionTree, measured: Sequence[CountTable], total: float, potentials: dict[Scope, Numbers], steps: int
) -> Fitted:
    """Longer steps while the loss falls; by how much longer is halved with each that failed, as momentum ends there."""
    step, growth = _first_step(tree, measured, total), 0.3
    tables = tree.marginals(potentials, total)
    loss, slopes = _loss(tree, measured, tables)
    behind, run, history = potentials, 0, [loss]
    for number in range(steps):
        ahead = {scope: here - step * slopes[scope] for scope, here in potentials.items()}
        run += 1
        momentum = (run - 1) / (run + 2)
        tried = {scope: here + momentum * (here - behind[scope]) for scope, here in ahead.items()}
        tried_tables = tree.marginals(tried, total)
        tried_loss, tried_slopes = _loss(tree, measured, tried_tables)
        if math.isfinite(tried_loss) and tried_loss <= loss * (1 + 1e-7):
            behind, potentials, tables, loss, slopes = ahead, tried, tried_tables, tried_loss, tried_slopes
            step *= 1 + growth
        else:
            step *= 0.5 if run == 1 else 0.7
            growth = max(0.003, growth / 2)
            behind, run = potentials, 0
        history.append(loss)
        if number >= 40 and number % 20 == 0 and history[-21] - loss < 2e-3 * loss:
            break
    return Fitted(tree, total, potentials, tables, loss)


def _first_step(tree: JunctionTree, measured: Sequence[CountTable], total: float) -> float:
    steepness: dict[int, float] = {}
    for one in measured:
        home = tree.homes[one.scope]
        cells = cells_of(tree.sizes, tree.cliques[home])
        steepness[home] = steepness.get(home, 0.0) + cells / one.counts.size / one.deviation**2
    return 2 / (max(steepness.values()) * max(total, 1.0))


def _loss(
    tree: JunctionTree, measured: Sequence[CountTable], tables: Sequence[Numbers]
) -> tuple[float, dict[Scope, Numbers]]:
    loss, slopes = 0.0, {}
    for one in measured:
        home = tree.homes[one.scope]
        away = tree.summed(home, tables[home], one.scope) - one.counts
        loss += 0.5 * float(np.vdot(away, away)) / one.deviation**2
        slopes[one.scope] = slopes.get(one.scope, 0.0) + away / one.deviation**2
    return loss, slopes
