"""What a lawyer and a curator read says what is published: models and invented rows by name, and what was charged."""

from __future__ import annotations

import html

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sfumato import Categories, Interval, Ledger, Study
from sfumato.cli.app import app
from sfumato.evidence.facts import gather
from sfumato.evidence.report import lawyer_html, report_html
from sfumato.evidence.report_facts import page_facts


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


ASKED = {
    "classifier": ("back", "a classifier of back from 'Alter?'"),
    "regression": ("paid", "a regression of paid on 'Alter?'"),
    "outliers": (None, "a rule that says from 'Alter?' and paid how unusual"),
    "synthetic": (None, "a table of invented rows with 'Alter?' and paid"),
}


def shop(kind: str) -> Study:
    """What people bought, asked for a model or for rows."""
    target = ASKED[kind][0]
    study = (
        Study("Shop")
        .table(
            "kauf",
            None,
            person="who",
            columns={
                "Alter?": Interval(0, 110),
                "back": Categories(["no", "yes"]),
                "paid": Interval(0, 100),
                "unread": Interval(0, 1),
            },
        )
        .promise("public", epsilon=1, delta=1e-6)
    )
    asked = ["Alter?"] if target else ["Alter?", "paid"]
    ask = getattr(study, kind)
    return ask(target, asked, to="public", name="made") if target else ask(asked, to="public", name="made")


@pytest.mark.parametrize("kind", ASKED)
def test_a_lawyer_reads_that_a_model_or_rows_are_published_and_no_cell(kind):
    plan = shop(kind).plan(size=1000)
    for reader in ("LAWYER", "ANALYST", "public"):
        told = " ".join(plan.explain(reader).split())
        assert f"made is {ASKED[kind][1]}" in told
        assert "is the cell" not in told
        assert "read and not published as it is: " in told
        assert "'Alter?', a column of kauf" in told
    mine = " ".join(plan.explain("SUBJECT").split())
    assert f"public will see made, {ASKED[kind][1]}" in mine
    assert "so that nobody can tell from it with confidence" in mine
    assert ASKED[kind][1][1:] in html.unescape(lawyer_html(plan.plan))
    assert "noise" in told.split("made is ")[1].split("What it is made from")[0]


@pytest.mark.parametrize("kind", ASKED)
def test_only_columns_that_are_read_are_assumed_to_be_complete(kind):
    plan = shop(kind).plan(size=1000)
    (assumed,) = plan.assumptions
    target = ASKED[kind][0]
    read = {"Alter?", target or "paid"}
    for name in ("Alter?", "back", "paid", "unread"):
        assert (f"{name} as " in assumed) == (name in read)


def test_that_invented_values_have_no_interval_is_said_once(tmp_path):
    study = shop("synthetic")
    sentence = "no value in them has an interval"
    assert str(study.plan(size=1000)).count(sentence) == 1
    assert report_html(study.plan(size=1000).plan).count(sentence) == 1
    (tmp_path / "study.pl").write_text(study.to_text(), encoding="utf-8")
    done = CliRunner().invoke(app, ["plan", str(tmp_path / "study.pl"), "--size", "kauf=1000"], env={"COLUMNS": "400"})
    assert done.exit_code == 0, done.output
    assert " ".join(done.output.split()).count(sentence) == 1


@pytest.mark.parametrize("kind", ASKED)
def test_the_report_names_what_is_made_and_its_noise_not_the_cells(kind):
    plan = shop(kind).plan(size=1000).plan
    (zone,) = page_facts(gather(plan), None, graph=plan.network).zones
    (act,) = plan.acts
    assert zone.names["seen"] == ("made",)
    assert zone.names["noise on"] == (f"made ({kind}, {act.strategy}: {act.guarantee.describe()})",)
    assert "alter(P)" in zone.names["sensitive"]
    assert "For made the blue frames are around what is read for it" in report_html(plan)


def test_the_report_names_the_noise_of_bounds_that_are_bought():
    study = (
        Study("Shop")
        .table("kauf", None, person="who", columns={"paid": Interval.private(0.2)}, missing="never")
        .promise("public", epsilon=1)
        .mean("paid", to="public", name="spent")
    )
    plan = study.plan(size=1000).plan
    (zone,) = page_facts(gather(plan), None, graph=plan.network).zones
    assert [one for one in zone.names["noise on"] if one.startswith("spent (bought")]
    page = report_html(plan)
    attacker = page.split("An attacker without bias")[1].split("</table>")[0]
    assert "not computed for bought" in attacker
