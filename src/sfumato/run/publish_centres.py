"""Sums over several centres: what each design would cost, beside the central plan.

In:   a Plan whose study declares centre(C) and holds(C, Table).
Out:  the same Plan; every aggregate's alternatives also list noisy sharing and secure aggregation, with error, seconds,
bytes and whom one has to trust.
Not here: the designs (centres/design.py), running them (`sfumato centre …`). `run_plan` stays central: whoever runs it
sees the rows of all centres.

A design is asked for the same share of the budget that the central draw has. The error of a publication is taken as
proportional to the variance of its draws: exact for sums and counts, to first order for means and what is computed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from sfumato.centres.design import Design, noisy_sharing, secure_aggregation
from sfumato.centres.round import Requirement
from sfumato.centres.statistics import ClippedSums
from sfumato.core import compose
from sfumato.lang.spec import Spec
from sfumato.plan.draw import Draw, combined_variance
from sfumato.plan.plan import Considered, Plan, Planned

__all__ = ["centres_of", "with_designs"]

Maker = Callable[..., Design]


def centres_of(spec: Spec) -> tuple[str, ...]:
    """The centres that hold rows; all that are declared where nobody says who holds what."""
    holders = {one.centre for one in spec.holds}
    return tuple(centre.name for centre in spec.centres if not holders or centre.name in holders)


def with_designs(plan: Plan) -> Plan:
    """The plan with both designs among the alternatives of its aggregates; itself where there are no two centres."""
    if plan.network is None or len(centres_of(plan.network.spec)) < 2:
        return plan
    count = len(centres_of(plan.network.spec))
    return dataclasses.replace(plan, publications=tuple(_beside(plan, one, count) for one in plan.publications))


def _beside(plan: Plan, planned: Planned, centres: int) -> Planned:
    sums = [_draws(plan, node, planned.observer) for node in planned.cut]
    if not sums or not all(sums):  # values of individuals, tables and models stay where they are
        return planned
    others = [_considered(planned, sums, centres, design) for design in (noisy_sharing, secure_aggregation)]
    return dataclasses.replace(planned, alternatives=(*planned.alternatives, *others))


def _draws(plan: Plan, node: str, observer: str) -> tuple[Draw, ...]:
    """The draws of a sum that this observer sees."""
    mine = [draw for draw in plan.draws if isinstance(draw, Draw) and draw.node == node and draw.group is None]
    return tuple(draw for draw in mine if observer in draw.observers)


def _considered(planned: Planned, sums: Sequence[tuple[Draw, ...]], centres: int, design: Maker) -> Considered:
    found = [_designed(draws, centres, design) for draws in sums]
    name = f"{found[0].name} across {centres} centres"
    refused = next((one.refused for one in found if one.refused is not None), None)
    if refused is not None:
        return Considered(name, None, refused)
    ratio = max(one.deviation**2 / combined_variance(draws) for one, draws in zip(found, sums, strict=True))
    return Considered(
        name,
        planned.error * ratio,
        f"{ratio:.3g} times the error; one has to trust {found[0].trust}",
        planned.cut,
        sum(one.seconds for one in found),
        float(sum(one.bytes for one in found)),
    )


def _designed(draws: tuple[Draw, ...], centres: int, design: Maker) -> Design:
    """The design for numbers of the same sensitivity and the same share of the budget."""
    first = draws[0]
    moved = 2 if first.adjacency.relation == "replace-one" else 1
    statistic = ClippedSums(first.dimension, first.sensitivity / moved, first.kind.norm)
    share = compose([draw.event() for draw in draws])
    return design(statistic, [Requirement(first.adjacency, share)], centres, law=first.noise)
