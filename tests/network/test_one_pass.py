"""Questions that tell rows apart in the same way are answered by one query, however many cells that makes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from sfumato.network.evaluate import evaluate
from sfumato.network.tables import TableRoom
from sfumato.plan.make import network_of

STUDY = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1). missing(t, never).
column(t, a, a(P)). random(a(P)) :- p(P). range(a(P), [{levels}]).
column(t, b, b(P)). random(b(P)) :- p(P). range(b(P), [{levels}]).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 100).
dataset(d, domain(P, p(P))). privacy_requirement(r(pub), d, dp(1)).
histogram(h, [a(P), b(P)], p(P)). publish(counts, h, r(pub)).
mean(m, x(P), p(P), by([a(P), b(P)])). publish(means, m, r(pub)).
"""
LEVELS = 20


def test_a_table_and_means_by_its_cells_take_one_pass(monkeypatch):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(3000),
            "a": random.integers(0, LEVELS, 3000),
            "b": random.integers(0, LEVELS, 3000),
            "x": random.integers(0, 101, 3000),
        }
    )
    queries, run = [], TableRoom.run
    monkeypatch.setattr(TableRoom, "run", lambda room, query: (queries.append(query), run(room, query))[1])
    network = network_of(STUDY.format(levels=", ".join(map(str, range(LEVELS)))))
    values = evaluate(network, {"t": pa.Table.from_pandas(frame, preserve_index=False)})
    assert sum("GROUP BY" in query for query in queries) == 1
    cells = frame.groupby(["a", "b"])["x"]
    counts = cells.size().reindex(pd.MultiIndex.from_product([range(LEVELS)] * 2), fill_value=0)
    truths = [question.truth(values.aggregates[name]) for name, question in _questions(network).items()]
    assert any(np.array_equal(truth, counts.to_numpy()) for truth in truths)
    means = cells.mean().reindex(counts.index).to_numpy()
    known = counts.to_numpy() > 0
    assert any(len(truth) == len(means) and np.allclose(truth[known], means[known]) for truth in truths)


def _questions(network):
    return {node.name: node.question for node in network.aggregates}
