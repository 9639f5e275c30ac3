"""The walk from the first look to the last fit: what is measured, in which order, with which share.

In:   a Measurer, sizes of the columns, a plan (or none yet), pairs that are wanted in any case.
Out:  the fitted law and the noisy tables; every number private is read through the measurer alone.
Not here: plans and forecasts (release/synthetic/plans.py), noise (release/synthetic/measure.py).
Proof: docs/proofs/synthetic.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.release.synthetic.counts import PairCounts
from sfumato.release.synthetic.junction_tree import CountTable, Fitted, Scope
from sfumato.release.synthetic.measure import Measurer
from sfumato.release.synthetic.plans import FIRST, Forecast, RowRound, best_plan, forecasts
from sfumato.release.synthetic.selection import chosen_pairs, split_by_cells
from sfumato.release.synthetic.start import StartModel, first_shares, merged, noisy_total, start_scopes

__all__ = ["Walk"]

#: Rows of a model that are counted to see which pairs it misses.
_MODEL_ROWS = 200_000


@dataclass(eq=False)
class Walk:
    """One release's measurements and the law fitted to them. `part` is what is left of μ² for it."""

    measurer: Measurer
    sizes: Sequence[int]
    label: int | None
    workload: Sequence[Scope] = ()
    impossible: Mapping[Scope, NDArray[np.bool_]] = field(default_factory=dict)
    part: float = 1.0
    measured: list[CountTable] = field(default_factory=list)
    _potentials: dict[Scope, NDArray[np.float64]] = field(default_factory=dict, init=False, repr=False)

    def fitted(
        self, public_rows: int | None, forecast: Forecast | None, wished: str | None = None
    ) -> tuple[Fitted, Forecast]:
        """Follow the plan that was forecast; without one the wished one, or the best by what the first tables say."""
        self.measurer.stage = "first"
        scopes = start_scopes(len(self.sizes), self.label, self.measurer.exact.tables)
        self._measure_first(self._with_wanted(scopes, forecast), forecast.plan.first if forecast else FIRST)
        total = public_rows if public_rows is not None else noisy_total(self.measured)
        start = self._start(scopes, total)
        if forecast is None:
            shares = [start.share(column) for column in range(len(self.sizes))]
            forecast = best_plan(forecasts(self.sizes, self.label, total, self._deviation, shares), wished)
            if forecast.plan.first > FIRST:
                self._measure_first(self._with_wanted(scopes, forecast), forecast.plan.first - FIRST)
            start = self._start(scopes, total)
        rounds = forecast.plan.rounds
        if not rounds:  # else the slow way there from even shares smooths what is lost in noise, and models gain by it
            self._potentials = start.potentials(scopes)
        model: Fitted | None = None
        for number, one in enumerate(rounds, 1):
            model = self._round(one, start, model, total, number, last=number == len(rounds))
        return model or self._fit(total, 200), forecast

    def _with_wanted(self, scopes: Sequence[Scope], forecast: Forecast | None) -> list[Scope]:
        """The first tables; where no round follows, the pairs that are wanted in any case too."""
        last = forecast is not None and not forecast.plan.rounds
        return list(dict.fromkeys([*scopes, *(self.workload if last else ())]))

    def _start(self, scopes: Sequence[Scope], total: int) -> StartModel:
        return StartModel.of([one for one in self.measured if one.scope in scopes], self.label, float(total))

    def _deviation(self, share: float) -> float:
        return self.measurer.deviation(share * self.part)

    def _round(
        self, one: RowRound, start: StartModel, model: Fitted | None, total: int, number: int, *, last: bool
    ) -> Fitted:
        expected = self._expected(start, model)
        self.measurer.stage = f"scores {number}"
        scores, error = self.measurer.scores(expected, one.scores * self.part)
        held = list(dict.fromkeys(table.scope for table in self.measured))
        forced = [scope for scope in self.workload if scope not in held]
        noise = self._deviation(one.tables / one.choice.most)
        known = [*held, *forced, *self.impossible]
        chosen = chosen_pairs(scores, expected, error, noise, self.sizes, known, one.choice)
        self.measurer.stage = f"tables {number}"
        tables = [*forced, *chosen] or held  # nothing stands out: the tables there are, once more
        self._measure(tables, one.tables)
        return self._fit(total, 400 if last else 100)

    def _fit(self, total: int, steps: int) -> Fitted:
        """Fitted from where the last fit ended."""
        found = Fitted.to(
            self.sizes,
            merged(self.measured),
            float(total),
            steps=steps,
            start=self._potentials,
            impossible=self.impossible,
        )
        self._potentials = found.potentials
        return found

    def _measure_first(self, scopes: Sequence[Scope], share: float) -> None:
        """What a round begins with, and for a little of it the columns alone; all at once."""
        shares = first_shares(self.sizes, self.label, scopes)
        self.measured += self.measurer.tables({scope: one * share * self.part for scope, one in shares.items()})

    def _measure(self, scopes: Sequence[Scope], share: float) -> None:
        self.measured += self.measurer.tables(split_by_cells(scopes, self.sizes, share * self.part))

    def _expected(self, start: StartModel, model: Fitted | None) -> dict[Scope, np.ndarray]:
        scopes = [scope for scope in self.measurer.exact.tables if len(scope) == 2 and self.label not in scope]
        if model is None:
            return {scope: start.expected(scope) for scope in scopes}
        rows = min(4 * round(model.total), _MODEL_ROWS)
        # A stream of its own: what these rows are decides nothing but which tables are asked for.
        generator = np.random.default_rng(len(self.measured))
        counted = PairCounts.empty(self.sizes, scopes)
        counted.add(list(model.rows(rows, generator).T))
        return {scope: counted[scope] * (model.total / rows) for scope in scopes}
