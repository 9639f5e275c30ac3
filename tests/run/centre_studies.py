"""Studies over three centres, their people, and one round of them in memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from run.publish_studies import HEAD, people
from sfumato.centres import aggregate_in_memory, new_centres
from sfumato.plan.plan import Plan
from sfumato.run.over_centres import cells_of, published_over_centres, study_round

NAMES = ("east", "north", "south")
CENTRES = "".join(f"centre({name}). " for name in NAMES) + "\n"
#: Every kind of question whose answer is by sums, with conditions, groups and formulas.
QUESTIONS = """
count(all, patient(P)). count(old, (patient(P), age(P) > 65)). count(bySex, patient(P), by([sex(P)])).
sum(years, age(P), patient(P)). mean(meanAge, age(P), patient(P)). mean(ofIll, age(P), (patient(P), ill(P) = yes)).
mean(ageBySex, age(P), patient(P), by([sex(P)])).
variance(spread, age(P), patient(P)). covariance(together, [age(P), bmi(P)], patient(P)).
correlation(alike, [age(P), bmi(P)], patient(P)).
histogram(ages, age(P), patient(P), [0, 30, 60, 110]). moment2(squares, [age(P), bmi(P)], patient(P)).
marginals(tables, [sex(P), ill(P)], 2, patient(P)). median(middle, age(P), patient(P)).
"""
ASKED = ["all", "old", "bySex", "years", "meanAge", "ofIll", "ageBySex", "spread", "together", "alike", "ages"]
ASKED += ["squares", "tables", "middle"]
QUESTIONS += "".join(f"publish({name}, {name}, openness(public)).\n" for name in ASKED)


def study(body: str = QUESTIONS, metric: str = "dp(8, 0.000001)", head: str = CENTRES) -> str:
    return f"{HEAD}{head}privacy_requirement(openness(public), people, {metric}).\n{body}"


def dealt(size: int = 600, seed: int = 0) -> dict[str, pa.Table]:
    """The people of all centres, each at one of them; the centres differ in size."""
    table = people(seed, size)
    at = np.random.default_rng(seed).choice(len(NAMES), size, p=[0.6, 0.3, 0.1])
    return {name: table.filter(pa.array(at == place)) for place, name in enumerate(NAMES)}


def own_cells(plan: Plan, agreed, tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    return {name: cells_of(plan, plan.network.evaluate({"patients": table}), agreed) for name, table in tables.items()}


def released(plan: Plan, tables: Mapping[str, pa.Table], out=None, leaves=None):
    members, keys = new_centres(tables)
    agreed = study_round(plan, members).fresh()
    found = aggregate_in_memory(agreed, own_cells(plan, agreed, tables), keys, leaves=leaves)
    return published_over_centres(plan, found, {}, out), found
