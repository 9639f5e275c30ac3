"""What a lawyer and a curator read says what is published: models and invented rows by name, and what was charged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sfumato import Categories, Interval, Ledger, Study


@pytest.mark.parametrize("given", [str, Ledger], ids=["path", "ledger"])
def test_a_report_of_a_python_run_says_what_was_charged(tmp_path, given):
    frame = pd.DataFrame({"who": range(50), "age": np.arange(50)})
    study = (
        Study("Ages")
        .table("people", frame, person="who", columns={"age": Interval(0, 110)}, missing="never")
        .promise("public", epsilon=1)
        .mean("age", to="public")
    )
    study.plan(size=50).run(ledger=given(str(tmp_path / "l.db")), out=tmp_path / "out", grant=True)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Granted, spent and left as the ledger stood" in page
    assert "No ledger was given" not in page
    study.plan(size=50).run(ledger=None, out=tmp_path / "free")
    assert "No ledger was given" in (tmp_path / "free" / "report.html").read_text(encoding="utf-8")
