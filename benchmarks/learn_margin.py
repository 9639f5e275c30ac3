"""The margin of the logistic loss by how long the noise is: the development tables its public rule was fixed on.

Run: python benchmarks/learn_margin.py [draws]. δ = 1e-6, replace-one, strength by its rule. ε is whatever makes noise
so many thousandths of a gradient long, so that tables of any size ask the same question. Each line has the error and,
behind the bar, the area under the curve with margins 0, 1 and 2 and with that of the rule. Loans, the shuttle,
satellite images and simulated kinds of connections; Adult, KDD and the small tables of scikit-learn are not here: they
are what the rule is judged by (learn_adult.py, learn_kdd.py, learn_small.py).
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from learn_classes import SHUTTLE_BOX
from learn_common import read
from sklearn.metrics import roc_auc_score

from sfumato.core import REPLACE_ONE, Categories, Interval, Schema
from sfumato.core.gaussian import gaussian_mu
from sfumato.learn import PrivateLogisticRegression
from sfumato.learn.calibration import logistic_margin
from sfumato.learn.losses import LogisticLoss, Loss
from sfumato.learn.training_budget import TrainingBudget

SHARES = (0.001, 0.003, 0.01, 0.03)
MARGINS = (0.0, 1.0, 2.0, None)
MOST = 20_000


class Task(NamedTuple):
    name: str
    schema: Schema
    table: pa.Table
    labels: np.ndarray
    train: int

    def parts(self) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        """Rows to train on and rows to judge by, apart, in one fixed order."""
        order = np.random.default_rng(0).permutation(len(self.labels))
        train, test = order[: self.train], order[self.train : self.train + MOST]
        return self.table.take(train), self.labels[train], self.table.take(test), self.labels[test]


def tasks() -> Iterator[Task]:
    yield from _shuttle()
    yield from _satellite()
    yield from _loans()
    for seed in range(4):
        yield _connections(seed)


def _shuttle() -> Iterator[Task]:
    table = read("shuttle.parquet")
    schema = Schema({f"a{place}": Interval(*ends) for place, ends in enumerate(SHUTTLE_BOX, 1)})
    for kind in (1, 4):
        labels = (table.column("class").to_numpy() == kind).astype(int)
        yield Task(f"shuttle {kind}", schema, table, labels, MOST)


def _satellite() -> Iterator[Task]:
    table = read("satimage.parquet")
    schema = Schema({f"x{place}": Interval(25, 160) for place in range(1, 37)})
    for kind in (1, 2, 3, 5):
        yield Task(f"satimage {kind}", schema, table, (table.column("class").to_numpy() == kind).astype(int), 4435)


def _list(values: Any) -> Categories:
    return Categories([*sorted(map(str, values)), "rest"], unknown="rest", null="rest")


def _loans() -> Iterator[Task]:
    frame = read("lending_club_2007_2014.parquet").to_pandas()
    words = ("term_months", "emp_length", "home_ownership", "verification_status", "purpose", "sub_grade")
    for name in words:
        frame[name] = frame[name].astype(str)
    ends = {"loan_amnt": 35_000, "installment": 1_400, "annual_inc": 300_000, "open_acc": 40, "total_acc": 100}
    known = {name: Interval(0, high) for name, high in ends.items()}
    known |= {name: _list(frame[name].unique()) for name in words}
    without = {name: domain for name, domain in known.items() if name != "sub_grade"}
    untimed = {name: domain for name, domain in known.items() if name != "term_months"}
    after = {**known, "int_rate": Interval(0, 30), "total_pymnt": Interval(0, 60_000)}
    table = pa.Table.from_pandas(frame, preserve_index=False)
    yield Task("loans: grade", Schema(without), table, np.isin(frame["grade"], ["A", "B"]).astype(int), MOST)
    yield Task("loans: bad", Schema(after), table, frame["bad_loan"].to_numpy().astype(int), MOST)
    yield Task("loans: rate", Schema(known), table, (frame["int_rate"] > 14).to_numpy().astype(int), MOST)
    yield Task("loans: term", Schema(untimed), table, (frame["term_months"] == "60").to_numpy().astype(int), MOST)


def _connections(seed: int, kinds: int = 12) -> Task:
    """Simulated kinds with words, small amounts and rates of their own; the label is the kind's, all but 0.3 %."""
    generator, rows = np.random.default_rng(100 + seed), 2 * MOST
    weights = np.sort(generator.dirichlet(np.full(kinds, 0.3)))
    kind = generator.choice(kinds, p=weights / weights.sum(), size=rows)
    truth = generator.integers(0, 2, kinds)
    truth[-2:] = 0, 1  # the most frequent two differ
    columns, domains = {}, {}
    for place, levels in enumerate((3, 12, 8)):
        chances = generator.dirichlet(np.full(levels, 0.15), kinds).cumsum(axis=1)[kind]
        level = (generator.random(rows)[:, None] > chances).sum(axis=1).clip(0, levels - 1)
        columns[f"word{place}"], domains[f"word{place}"] = level.astype(str), _list(range(levels))
    for place in range(14):
        mean = generator.exponential(0.08, kinds) * (generator.random(kinds) < 0.6)
        columns[f"amount{place}"] = generator.exponential(1, rows) * mean[kind]
        ends = (generator.random(rows) < generator.beta(0.1, 0.3, kinds)[kind]).astype(float)
        columns[f"rate{place}"] = np.where(generator.random(rows) < 0.85, ends, generator.random(rows))
        domains |= {f"amount{place}": Interval(0, 1), f"rate{place}": Interval(0, 1)}
    labels = np.where(generator.random(rows) < 0.003, 1 - truth[kind], truth[kind])
    return Task(f"connections {seed}", Schema(domains), pa.table(columns), labels, MOST)


class GivenMargin(PrivateLogisticRegression):
    """Logistic regression with the margin that was asked for; None for the rule."""

    margin: float | None = None

    def _loss_under(self, budget: TrainingBudget) -> Loss:
        return LogisticLoss(logistic_margin(budget) if self.margin is None else self.margin)


def epsilon_for(share: float, rows: int, width: int) -> float:
    """ε at which noise is this share of a gradient long."""
    low, high = 1e-4, 1e3
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        long = 2 * math.sqrt(width) / (gaussian_mu(middle, 1e-6) * rows) > share
        low, high = (middle, high) if long else (low, middle)
    return high


def measure(task: Task, share: float, draws: int) -> np.ndarray:
    """Error and area under the curve, for every margin."""
    train, labels, test, truth = task.parts()
    epsilon, scores = epsilon_for(share, len(labels), task.schema.width), np.zeros((len(MARGINS), 2))
    for place, margin in enumerate(MARGINS):
        for seed in range(draws):
            model = GivenMargin(epsilon, 1e-6, schema=task.schema, random_state=seed)
            model.margin = margin
            found = model.fit(train, labels).decision_function(test)
            scores[place] += np.array([np.mean((found > 0) != truth), roc_auc_score(truth, found)]) / draws
    return scores


def main(draws: int = 3) -> None:
    warnings.simplefilter("ignore")
    print(
        f"margins {', '.join(map(str, MARGINS[:-1]))} and that of the rule; {draws} draws; error | area under the curve"
    )
    ratios = {share: [] for share in SHARES}
    for task in tasks():
        for share in SHARES:
            scores = measure(task, share, draws)
            ratios[share].append(np.log(scores[:, 0] / scores[0, 0]))
            rule = logistic_margin(
                TrainingBudget(
                    epsilon_for(share, task.train, task.schema.width), 1e-6, REPLACE_ONE, task.train, task.schema.width
                )
            )
            errors, areas = (" ".join(f"{score:.4f}" for score in column) for column in scores.T)
            print(f"{task.name:14s} noise {share:<5g} (rule {rule:.1f}) {errors} | {areas}", flush=True)
    for share, found in ratios.items():
        means = " ".join(f"{math.exp(mean):.3f}" for mean in np.mean(found, axis=0))
        print(f"noise {share:<5g} error in units of that without a margin, geometric mean: {means}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
