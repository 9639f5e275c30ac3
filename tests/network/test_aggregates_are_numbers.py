"""What is computed from an aggregate of random variables is computed from its expectation, or refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sfumato.errors import SchemaError
from sfumato.lang import load
from sfumato.network.network import Network

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), -3, 5). missing(x(P), 0).
dataset(d, domain(P, p(P))). privacy_requirement(o(pub), d, dp(1)).
random(o(P)) :- p(P). depends(o(P), [x(P)], normal(x(P), 1)). range(o(P), -20, 20). sum(s, o(P), p(P)).
random(g). depends(g, [], bernoulli(0.5)).
random(h). depends(h, [g], 1 - g).
random(k). depends(k, [], normal(0, 1)).
random(q(P)) :- p(P). depends(q(P), [g, x(P)], x(P) * g). sum(sg, q(P), p(P)).
random(w(P)) :- p(P). depends(w(P), [h, x(P)], x(P) * h). sum(sh, w(P), p(P)).
random(z). publish(b, z, o(pub)).
"""
TABLE = pa.table({"id": [1, 2], "x": [1.3, 0.7]})


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("depends(z, [s], s * s).", 4.0),
        ("depends(z, [s], normal(s, 1) ** 2).", 5.0),
        ("depends(z, [s, k], s * k * k).", 2.0),
        ("depends(z, [s, sg], s * sg).", 2.0),
        ("random(y). depends(y, [s, k], s + k). depends(z, [y], y * y).", 5.0),
    ],
)
@pytest.mark.by_day(4)
def test_it_is_the_formula_of_the_expectation(formula, expected):
    values = Network.from_spec(load(HEAD + formula)).evaluate({"t": TABLE})
    assert values.shared["z"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "formula",
    [
        "depends(z, [sg, g], sg * g).",
        "depends(z, [sg, h], sg * h).",
        "depends(z, [sg, sh], sg * sh).",
        "random(y). depends(y, [sg], 2 * sg). depends(z, [y, g], y * g).",
        "random(y). depends(y, [sg, k], sg * k). random(v). depends(v, [h], h + 1). depends(z, [y, v], y * v).",
        "random(c(P)) :- p(P). depends(c(P), [g], g). count(n, (p(P), c(P) > 0)). depends(z, [n, sg], sg / (1 + n)).",
    ],
)
def test_what_varies_together_is_refused(formula):
    with pytest.raises(SchemaError, match=r"vary together with (g|h).*aggregate it"):
        Network.from_spec(load(HEAD + formula))
