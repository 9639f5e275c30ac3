"""What the page says a publication needs or takes is what the ledger is granted and charged, whatever is promised."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.core import GaussianDP
from sfumato.ledger.balance import amount_text
from sfumato.ledger.ledger import Ledger
from sfumato.studio.desk import Desk

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Promises of several kinds: pure, of households, of series, in μ.
STUDIES = ["university", "households", "smart_meter", "hospitals"]


def desk_of(name, folder):
    shutil.copytree(EXAMPLES / name, folder / name)
    return Desk.open(folder / name / "study.pl")


def published(desk, grant):
    text = desk.text_on_disk()
    asked = desk.ask(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        desk.publish(text, asked["nonce"], "publish", grant)
    return asked["lines"]


def raised(ledger, dataset, unit, granted):
    """Three times the budget, by the command that a person would use."""
    if isinstance(granted, GaussianDP):
        amount = ["--mu", 3 * granted.mu]
    else:
        epsilon, delta = granted.stated
        amount = ["--epsilon", 3 * epsilon, *(["--delta", 3 * delta] if delta else [])]
    words = ["ledger", "raise", dataset, *amount, "--unit", unit, "--ledger", ledger]
    assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.by_day(1)
def test_what_is_told_is_what_is_granted_and_charged(name, tmp_path):
    desk = desk_of(name, tmp_path)
    (first,) = published(desk, True)
    book = Ledger(desk.ledger)
    ((dataset, unit),) = book.datasets()
    balance = book.balance(dataset, unit)
    assert f"needs {amount_text(balance.granted)}." in first
    raised(desk.ledger, dataset, unit, balance.granted)
    (second,) = published(desk, False)
    charged = [record.reservation for record in book.history(dataset) if record.action == "reserve"][-1]
    assert f"takes {amount_text(book.reservation(charged).charged)} of it" in second


def test_a_study_that_is_planned_step_by_step_says_so(tmp_path):
    drafted = desk_of("ward", tmp_path).draft((EXAMPLES / "ward" / "study.pl").read_text())
    assert drafted.plan is None
    assert any(one.severity == "error" and "--at" in one.message for one in drafted.problems)
