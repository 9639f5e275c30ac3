"""All K-way tables of Adult at (1, 1e-6): the error really made beside ResidualPlanner's formula and plain noise.

The formula of Xiao, He, Zhang & Kifer (2023) stands below in its own five lines; ours is drawn and counted. Under
replace-one the reference is √2 times the formula, which no valid mechanism is known to reach: doubling the cost of a
removed row undercounts what a replaced one costs.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator

import numpy as np
from learn_common import read
from sections import Line

from sfumato import ADD_REMOVE, REPLACE_ONE, ApproxDP, make_plan
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.questions.residual import Workload, all_tables
from sfumato.questions.residual_strategy import ResidualStrategy, optimal_strategy

#: Numbers of equal bins over a public range, by hand; the other columns are categories, with one level for absent.
BINS = {
    "age": (17, 91, 74),
    "fnlwgt": (0, 1_500_000, 100),
    "capital_gain": (0, 100_000, 100),
    "capital_loss": (0, 4_500, 100),
    "hours_per_week": (1, 100, 99),
}
EIGHT = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "income")
FOURTEEN = (*BINS, "native_country", *EIGHT)
GUARANTEE = ApproxDP(1.0, 1e-6)


def coded(names: tuple[str, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    table = read("adult.parquet").select(list(names)).to_pandas()
    codes, sizes = [], []
    for name in names:
        if name in BINS:
            low, high, bins = BINS[name]
            code = np.clip((table[name].to_numpy(float) - low) * bins // (high - low), 0, bins - 1)
        else:
            levels = sorted(table[name].dropna().unique())
            bins = len(levels) + int(table[name].isna().any())
            code = table[name].map({level: place for place, level in enumerate(levels)}).astype(float)
            code = code.fillna(bins - 1).to_numpy()
        codes.append(code.astype(np.int64))
        sizes.append(bins)
    return np.array(codes).T, tuple(sizes)


def counted(codes: np.ndarray, workload: Workload) -> dict[tuple[int, ...], np.ndarray]:
    return {
        table: np.bincount(
            np.ravel_multi_index(codes[:, list(table)].T, workload.shape(table)), minlength=workload.cells(table)
        ).reshape(workload.shape(table))
        for table in workload.tables
    }


def formula(sizes: tuple[int, ...], ways: int, mu: float) -> float:
    """RMSE of a cell under add/remove: (Σ √(v_A p_A))²/μ² is the sum of all variances."""
    value: dict[tuple[int, ...], float] = {}
    cells = 0
    for table in itertools.combinations(range(len(sizes)), ways):
        own = math.prod(sizes[c] for c in table)
        cells += own
        for part in itertools.chain.from_iterable(itertools.combinations(table, k) for k in range(ways + 1)):
            share = math.prod((sizes[c] - 1) / sizes[c] if c in part else sizes[c] ** -2.0 for c in table)
            value[part] = value.get(part, 0.0) + own * share
    root = sum(math.sqrt(v * math.prod(1 - 1 / sizes[c] for c in part)) for part, v in value.items())
    return root / mu / math.sqrt(cells)


def drawn_error(strategy: ResidualStrategy, codes: np.ndarray, relation) -> float:
    """Of one draw on the real table, all cells together."""
    counts = counted(codes, strategy.workload)
    noise = Gaussian.for_guarantee(GUARANTEE, strategy.l2, relation, dimension=strategy.dimension)
    found = strategy.decode(noise(strategy.encode(counts)), total=len(codes))
    squared = sum(float(np.sum((found[table] - counts[table]) ** 2)) for table in counts)
    return math.sqrt(squared / strategy.workload.numbers)


def plain_error(workload: Workload, relation) -> float:
    """One table after the other with the same noise, all of it one vector."""
    move = math.sqrt(len(workload.tables) * (2 if relation is REPLACE_ONE else 1))
    return Gaussian.for_guarantee(GUARANTEE, move, relation, dimension=workload.numbers).scale


def lines() -> Iterator[Line]:
    mu = 1 / Gaussian.for_guarantee(GUARANTEE, 1.0, ADD_REMOVE, dimension=1).scale
    for names in (EIGHT, FOURTEEN):
        codes, sizes = coded(names)
        for relation, said, factor in ((ADD_REMOVE, "add/remove", 1.0), (REPLACE_ONE, "replace-one", math.sqrt(2))):
            workload = Workload(sizes, all_tables(len(sizes), 2))
            replaces = relation is REPLACE_ONE
            start = time.perf_counter()
            strategy = optimal_strategy(workload, replaces, everybody=replaces)
            bound = strategy.l2
            seconds = time.perf_counter() - start
            draws = 100 if names is EIGHT else 20  # which tell the error to less than a hundredth
            made = math.sqrt(np.mean([drawn_error(strategy, codes, relation) ** 2 for _ in range(draws)]))
            head = f"all 2-way tables of {len(names)} columns, {said}"
            yield Line(f"{head}: RMSE of a cell, {draws} draws", made, 1.03 * factor * formula(sizes, 2, mu))
            yield Line(f"{head}: the same beside plain Gaussian tables", made / plain_error(workload, relation), 0.75)
            yield Line(f"{head}: planned (l2 = {bound:.3g})", seconds, 5.0, " s")
    for relation, replaces in (("add/remove", False), ("replace-one", True)):
        start = time.perf_counter()
        workload = Workload(sizes, all_tables(len(sizes), 3))
        strategy = optimal_strategy(workload, replaces, everybody=replaces)
        variances = strategy.variances(strategy.l2**2)
        seconds = time.perf_counter() - start
        mean = sum(workload.cells(table) * value for table, value in variances.items()) / workload.numbers
        head = f"all 3-way tables of {len(sizes)} columns, {relation}"
        yield Line(f"{head}: planned with all standard errors", seconds, 60.0, " s")
        reference = formula(sizes, 3, mu) * (math.sqrt(2) if replaces else 1.0)
        yield Line(f"{head}: predicted RMSE", math.sqrt(mean) / mu, 1.03 * reference)
    coarse = tuple(10 if name in BINS else size for name, size in zip(FOURTEEN, sizes, strict=True))
    for levels, ways, most in ((sizes, 2, 5.0), (coarse, 3, 60.0)):
        text = study(levels, ways)
        start = time.perf_counter()
        plan = make_plan(text, sizes={"people": 48_842})
        seconds = time.perf_counter() - start
        numbers = plan.publication("all").seen[0].size
        yield Line(f"a study of all {ways}-way tables of 14 columns, {numbers:,} cells: make_plan", seconds, most, " s")


def study(levels: tuple[int, ...], ways: int) -> str:
    names = [f"c{place}" for place in range(len(levels))]
    listed = ", ".join(f"{name}(P)" for name in names)
    return "\n".join(
        [
            "source(t, 't.parquet'). column(t, id, person(P)). rows_per_person(t, 1). missing(t, never).",
            *(f"column(t, {name}, {name}(P)). random({name}(P)) :- person(P)." for name in names),
            *(f"range({name}(P), [{', '.join(map(str, range(n)))}])." for name, n in zip(names, levels, strict=True)),
            "dataset(people, domain(P, person(P))). privacy_requirement(o(public), people, dp(1, 0.000001)).",
            f"marginals(all, [{listed}], {ways}, person(P)). publish(all, all, o(public)).",
        ]
    )
