"""Planning whole studies: time of the oncology example, and a Monte-Carlo attack on every example plan.

In:   the studies in examples/.
Out:  seconds beside the bar; for every observer the δ an attacker reaches at the promised ε beside the promised δ.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from sfumato.core import ApproxDP, PureDP
from sfumato.lang import load
from sfumato.plan.make import make_plan
from sfumato.plan.plan import Plan
from sfumato.plan.request import requests_of
from sfumato.run.generate import generated_tables
from sfumato.run.view import Draws, View

EXAMPLES = Path(__file__).parents[1] / "examples"
STUDIES = ("oncology/study.pl", "linear_query/study.pl", "university/study.pl")
TRIALS = 1500


def public_of(path: Path, spec) -> dict[str, Path]:
    return {s.table: path.parent / s.path for s in spec.sources if s.table in spec.public_tables}


def time_oncology() -> tuple[float, float]:
    path = EXAMPLES / STUDIES[0]
    start = time.perf_counter()
    make_plan(path)
    warm = time.perf_counter() - start
    start = time.perf_counter()
    command = [sys.executable, "-c", f"from sfumato.plan.make import make_plan; make_plan({str(path)!r})"]
    subprocess.run(command, check=True)
    return warm, time.perf_counter() - start


def neighbours(spec, public) -> tuple[dict, dict]:
    """Twenty invented people; the first one has every number at the low, or at the high end of its range."""
    tables = generated_tables(spec, public, people=20)
    ends = []
    for end in ("min", "max"):
        moved = dict(tables)
        for name, table in tables.items():
            if isinstance(table, pa.Table) and name not in spec.public_tables:
                moved[name] = _moved(table, end)
        ends.append(moved)
    return ends[0], ends[1]


def _moved(table: pa.Table, end: str) -> pa.Table:
    person = table.column(0)[0].as_py()
    mine = np.array([value == person for value in table.column(0).to_pylist()])
    columns = {}
    for name in table.column_names:
        values = table[name].to_pylist()
        if name != table.column_names[0] and isinstance(values[0], float | int):
            extreme = (min if end == "min" else max)(values)
            values = [extreme if own else value for own, value in zip(mine, values, strict=True)]
        columns[name] = values
    return pa.table(columns)


def views(plan: Plan, values, observer: str, trials: int) -> np.ndarray:
    """Everything the observer sees about the first person and about all, as numbers, many times."""
    network = plan.network
    assert network is not None
    requests = {(r.name, r.observer): r for r in requests_of(network)}
    rows = []
    for _ in range(trials):
        view, seen = View(plan, network, values, Draws(None), observer), []
        for planned in plan.publications:
            if planned.observer != observer:
                continue
            table = view.published(planned, requests[planned.name, observer]).values
            if "value" in table.column_names:
                seen += table["value"].to_pylist()
            else:
                seen += [table[name][0].as_py() for name in table.column_names[1:]]
        rows.append([hash(x) % 7 if isinstance(x, str) else float(x) for x in seen])
    return np.array(rows)


def attacked(plan: Plan, here, there, observer: str, epsilon: float) -> float:
    """δ reached by the best threshold on a linear score, found on one half of the draws, measured on the other."""
    network = plan.network
    assert network is not None
    first, second = (views(plan, network.evaluate(tables), observer, TRIALS) for tables in (here, there))
    half = TRIALS // 2
    spread = np.vstack([first[:half], second[:half]]).std(axis=0) + 1e-12
    direction = (second[:half].mean(axis=0) - first[:half].mean(axis=0)) / spread**2
    scores = [first @ direction, second @ direction]
    best = 0.0
    for a, b in ((0, 1), (1, 0)):
        for sign in (1, -1):
            train = [sign * score[:half] for score in scores]
            cuts = np.quantile(np.concatenate(train), np.linspace(0.02, 0.98, 60))
            gains = [np.mean(train[a] > c) - math.exp(epsilon) * np.mean(train[b] > c) for c in cuts]
            cut = cuts[int(np.argmax(gains))]
            test = [sign * score[half:] for score in scores]
            best = max(best, float(np.mean(test[a] > cut) - math.exp(epsilon) * np.mean(test[b] > cut)))
    return best


def main() -> None:
    console = Console()
    table = Table("what", "measured", "bar", "", title="Planning studies", title_justify="left")
    warm, cold = time_oncology()
    table.add_row("oncology planned, in a running process", f"{warm:.2f} s", "<= 3 s", _mark(warm <= 3))
    table.add_row("oncology planned, Python started", f"{cold:.2f} s", "<= 3 s", _mark(cold <= 3))
    for study in STUDIES:
        spec = load(EXAMPLES / study)
        public = public_of(EXAMPLES / study, spec)
        plan = make_plan(spec, public, sizes={d.name: 20 for d in spec.datasets})
        here, there = neighbours(spec, public)
        for promise in plan.promises:
            asked = promise.asked
            if len(promise.observers) > 1 or not isinstance(asked, ApproxDP | PureDP):
                continue
            delta = asked.delta_ if isinstance(asked, ApproxDP) else 0.0
            reached = attacked(plan, here, there, promise.observers[0], asked.eps)
            slack = 4 * (1 + math.exp(asked.eps)) / (2 * math.sqrt(TRIALS / 2))
            name = f"{study.split('/')[0]}, {promise.observers[0]}: δ at ε = {asked.eps:g}"
            table.add_row(
                name, f"{reached:.3f}", f"<= {delta:g} + {slack:.2f} (4 s.e.)", _mark(reached <= delta + slack)
            )
    console.print(table)


def _mark(fine: bool) -> str:
    return "kept" if fine else "MISSED"


if __name__ == "__main__":
    main()
