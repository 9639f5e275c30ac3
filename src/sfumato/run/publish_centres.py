"""Sums over several centres: what each way takes in seconds and bytes, beside its error.

In:   a Plan whose study declares centre(C).
Out:  the same Plan; the ways among its alternatives have their prices.
Not here: which way is taken (plan/over_centres.py), the prices (centres/design.py), running it (run/over_centres.py).
"""

from __future__ import annotations

import dataclasses

from sfumato.centres.design import way_costs
from sfumato.plan.draw import Draw
from sfumato.plan.plan import Considered, Plan
from sfumato.plan.sharing import Masks, NoiseAtEach, NoiseAtEveryone, centres_of

__all__ = ["with_prices"]


def with_prices(plan: Plan) -> Plan:
    """The plan with the seconds and bytes of each way; itself where there are no two centres.

    How many rounds tables and models take follows from what they see: beside them nothing is said.
    """
    if plan.network is None or plan.acts or len(centres_of(plan.network.spec)) < 2:
        return plan
    spec = plan.network.spec
    count = len(centres_of(spec))
    sums = [draw for draw in plan.draws if isinstance(draw, Draw) and draw.group is None]
    numbers = sum(draw.dimension for draw in sums)
    drawn = sum(draw.dimension * plan.extras["sizes"][draw.dataset] for draw in sums) / max(numbers, 1) / count
    each, masks = NoiseAtEach(count), Masks(count, spec.colluders, spec.absences)
    prices = {
        each.words: way_costs(count, numbers, False),
        masks.words: way_costs(count, numbers, True),
        NoiseAtEveryone(count).words: way_costs(count, numbers, False, draws=drawn),
    }

    def priced(one: Considered) -> Considered:
        if one.strategy not in prices:
            return one
        seconds, sent = prices[one.strategy]
        return dataclasses.replace(one, seconds=seconds, bytes_sent=float(sent))

    return dataclasses.replace(
        plan,
        publications=tuple(
            dataclasses.replace(planned, alternatives=tuple(map(priced, planned.alternatives)))
            for planned in plan.publications
        ),
    )
