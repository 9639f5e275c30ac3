"""A condition that looks for individuals where a table names something else is refused when the study is planned."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest

from sfumato import load, make_plan
from sfumato.errors import SchemaError

STUDY = """
source(pat, 'p.csv'). column(pat, id, patient(P)). rows_per_person(pat, 1). missing(pat, never).
source(w, 'w.csv'). {rule} column(w, id, patient(P)). column(w, ward, ward(W)). relation(w, {relation}). {facts}
dataset(d, domain(P, patient(P))). privacy_requirement(o(pub), d, dp(1)).
count(c, (patient(P), {goal})). publish(c, c, o(pub)).
"""
ROWS = {
    "pat": pa.table({"id": ["1", "2", "3"]}),
    "w": pa.table({"id": ["1", "2", "3"], "ward": ["a", "a", "b"]}),
}
PUBLIC = ("public(w).", "")
PRIVATE = ("rows_per_person(w, 2). missing(w, never).", "ward(a). ward(b).")


@pytest.mark.parametrize("goal", ["in(P, a)", "in(a, P)", "in(P, _)", "in(_, P)", "\\+ in(P, a)", "\\+ in(a, P)"])
@pytest.mark.parametrize(("relation", "table"), list(product(["in(P, W)", "in(W, P)"], [PUBLIC, PRIVATE])))
def test_what_is_planned_can_be_counted(goal, relation, table):
    rule, facts = table
    text = STUDY.format(rule=rule, facts=facts, relation=relation, goal=goal)
    data = {"w": ROWS["w"]} if table is PUBLIC else {}
    if relation.startswith("in(P") == goal.endswith("P)"):
        with pytest.raises(SchemaError, match=r"which is no individual|none of the things"):
            make_plan(load(text), data)
        return
    network = make_plan(load(text), data, sizes={"d": 3}).network
    (number,) = network.node("c").question.encode(network.evaluate(ROWS).aggregates["c"])
    everybody = "_" in goal
    assert number == (3 if everybody else 1 if "\\+" in goal else 2)
