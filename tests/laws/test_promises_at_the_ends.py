"""A promise of any size that is planned is published with certificates that hold, and with a report.

Promises are drawn over many decades, to the ends of what a study may ask for. What the verifier could not follow would
be refused before anything is reserved.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.errors import UnprovedError
from sfumato.evidence.verify import verify
from sfumato.ledger.ledger import Ledger
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

HEAD = """
source(t, 't.parquet'). column(t, id, p(P)). rows_per_person(t, 1).
column(t, c, c(P)). random(c(P)) :- p(P). range(c(P), [a, b]). missing(c(P), a).
column(t, x, x(P)). random(x(P)) :- p(P). range(x(P), 0, 10). missing(x(P), 0).
dataset(d, domain(P, p(P))).
"""
SUM = "sum(s, x(P), p(P)). publish(a, s, o(pub))."
EACH = "publish(a, x(P), o(pub)) :- p(P). publish(b, c(P), o(pub)) :- p(P)."
TABLE = pa.table({"id": list(range(20)), "x": [float(i % 10) for i in range(20)], "c": ["a", "b"] * 10})
ENDS = [
    ("dp(0.001, 0.9)", SUM),
    ("dp(0.001, 0.9)", EACH),
    ("dp(1e-9)", SUM),
    ("dp(1e-9)", EACH),
    ("zcdp(1e-12)", SUM),
]


def promise(generator: np.random.Generator) -> str:
    epsilon = 10 ** generator.uniform(-8, 2)
    match generator.integers(4):
        case 0:
            return f"dp({epsilon:.3g})"
        case 1:
            return f"dp({epsilon:.3g}, {min(10 ** generator.uniform(-12, 0), 0.95):.3g})"
        case 2:
            return f"gdp({epsilon:.3g})"
    return f"zcdp({epsilon:.3g})"


def unverified(asked: str, question: str) -> list[str]:
    plan = make_plan(f"{HEAD} privacy_requirement(o(pub), d, {asked}). {question}")
    release = run_plan(plan, {"t": TABLE}, None)
    return [f"{asked} {name}: {verify(one).failures}" for name, one in release.certificates.items() if not verify(one)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(3)
def test_what_is_planned_verifies(seed):
    generator = np.random.default_rng(seed)
    asked = promise(generator)
    # A random answer costs a pure ε, which the other kinds of promise do not allow for.
    assert unverified(asked, SUM if not asked.startswith("dp") or seed % 2 else EACH) == []


@pytest.mark.slow
def test_what_is_planned_verifies_at_length():
    generator = np.random.default_rng(1000)
    for _ in range(200):
        asked = promise(generator)
        assert unverified(asked, SUM) == []
        assert not asked.startswith("dp") or unverified(asked, EACH) == []


@pytest.mark.parametrize(("asked", "question"), ENDS)
@pytest.mark.by_day(1)
def test_the_ends_are_published_by_the_command(tmp_path, asked, question):
    """Check, run, report and verify: what is charged is also shown."""
    parquet.write_table(TABLE, tmp_path / "t.parquet")
    study, out = tmp_path / "s.pl", tmp_path / "out"
    study.write_text(f"{HEAD} privacy_requirement(o(pub), d, {asked}). {question}", encoding="utf-8")
    for arguments in (
        ["check", study],
        ["run", study, "--data", tmp_path, "--out", out, "--ledger", tmp_path / "l.db", "--grant"],
        ["verify", out, "--study", study],
    ):
        done = CliRunner().invoke(app, list(map(str, arguments)))
        assert done.exit_code == 0, (arguments[0], done.output, done.exception)
    assert (out / "report.html").is_file()


def test_a_certificate_that_would_not_verify_is_refused_before_anything_is_reserved(tmp_path):
    """The planted relative: a verifier that follows nothing."""
    plan = make_plan(f"{HEAD} privacy_requirement(o(pub), d, dp(1)). {SUM}")
    ledger = Ledger(tmp_path / "l.db")
    with pytest.raises(UnprovedError, match=r"nothing was spent\."):
        run_plan(plan, {"t": TABLE}, ledger, grant=True, out=tmp_path / "out", holds=lambda certificate: False)
    assert ledger.datasets() == []
    assert not (tmp_path / "out").exists()
