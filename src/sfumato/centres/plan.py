"""From wishes to a Round: how much noise, on which grid, modulo what.

In:   centres, a statistic, what is promised to whom, who may collude or stay away.
Out:  Round.
Not here: whether masks are worth their cost (design.py).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Sequence

from sfumato.centres.round import SPREAD, Centre, Coordinator, Requirement
from sfumato.centres.statistic_round import SHARES, StatisticRound
from sfumato.centres.statistics import Statistic
from sfumato.core.guarantee import PureDP
from sfumato.errors import InputError
from sfumato.mechanisms.grid_law import Law

__all__ = ["needed_noise", "plan_round"]


def law_for(requirements: Sequence[Requirement]) -> Law:
    """Laplace where some promise is pure, else Gaussian."""
    pure = any(requirement.guarantee.under(None).implies(PureDP(1e9)) is True for requirement in requirements)
    return "laplace" if pure else "gaussian"


def needed_noise(statistic: Statistic, requirements: Sequence[Requirement], law: Law) -> tuple[float, float]:
    """The least scale that keeps every requirement, and a grid fine enough for all of them."""
    scales, grids = [], []
    for requirement in requirements:
        noise = SHARES[law].for_guarantee(
            requirement.guarantee,
            statistic.sensitivity(requirement.adjacency, law),
            requirement.adjacency,
            dimension=statistic.length,
        )
        scales.append(noise.scale)
        grids.append(noise.grid)
    return max(scales), min(grids)


def plan_round(
    subject: str,
    centres: Iterable[Centre],
    statistic: Statistic,
    requirements: Iterable[Requirement],
    *,
    most_patients: int,
    colluders: int = 0,
    absences: int = 0,
    coordinator: Coordinator = "curious",
    step_seconds: float = 30.0,
    law: Law | None = None,
    plan_hash: str | None = None,
) -> StatisticRound:
    """The round with the least noise and the fewest bytes that keeps every requirement.

    >>> from sfumato.core import Adjacency, ApproxDP, Interval, Schema
    >>> from sfumato.centres.statistics import Means
    >>> patient = Requirement(Adjacency("patient", "add-remove"), ApproxDP(1.0, 1e-6))
    >>> hospitals = [Centre(name, 64 * digit) for name, digit in (("A", "1"), ("B", "2"), ("C", "3"))]
    >>> kalium = Means(Schema({"kalium": Interval(0, 10)}))
    >>> agreed = plan_round("mean kalium", hospitals, kalium, [patient], most_patients=10_000, absences=1)
    >>> agreed.honest, agreed.bits
    (2, 40)
    """
    members, wanted = tuple(centres), tuple(requirements)
    if not wanted:
        raise InputError("Say what is promised to whom: at least one Requirement. Nothing was run.")
    chosen = law or law_for(wanted)
    scale, grid = needed_noise(statistic, wanted, chosen)
    largest = _largest_sum(statistic, scale, grid, len(members), colluders, absences, most_patients)
    bits = next((bits for bits in range(16, 64, 8) if largest < 1 << (bits - 1)), 64)  # Round refuses what is too large
    return StatisticRound(
        subject=subject,
        centres=members,
        statistic=statistic,
        requirements=wanted,
        law=chosen,
        scale=scale,
        grid=grid,
        bits=bits,
        most_patients=most_patients,
        colluders=colluders,
        absences=absences,
        coordinator=coordinator,
        step_seconds=step_seconds,
        plan_hash=plan_hash,
        nonce=secrets.token_hex(16),
    )


def _largest_sum(
    statistic: Statistic, scale: float, grid: float, centres: int, colluders: int, absences: int, patients: int
) -> int:
    honest = max(1, centres - colluders - absences)
    part = statistic.largest_part(grid, patients)
    return centres * part + math.ceil(SPREAD * math.sqrt(centres / honest) * scale / grid)
