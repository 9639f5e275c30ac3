"""What a study leaves unsaid about its cells is said aloud: to the author before, to the curator at the run."""

import re
import warnings
from datetime import date

import numpy as np
import pandas as pd
import pytest

from sfumato import Categories, Interval, Study
from sfumato.core.curator import told_to
from sfumato.errors import StudyError

LISTED = ["north", "south"]


def people(seed: int) -> tuple[pd.DataFrame, dict[str, int]]:
    """A table with dirt in two columns, and how much of each kind there is, counted here by hand."""
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(20, 80))
    kinds = generator.choice(["plain", "absent", "other", "capital"], rows, p=generator.dirichlet([2, 1, 1, 1]))
    word = {"plain": "north", "absent": None, "other": "the moon", "capital": " South "}
    empty = generator.random(rows) < 0.2
    frame = pd.DataFrame(
        {
            "who": np.arange(rows),
            "days": np.where(empty, np.nan, generator.integers(1, 15, rows)),
            "place": pd.Series([word[kind] for kind in kinds], dtype="string"),
        }
    )
    counted = {"rows": rows, "empty": int(empty.sum())} | {kind: int((kinds == kind).sum()) for kind in word}
    return frame, counted


def study(frame: pd.DataFrame, **said) -> Study:
    return (
        Study("dirt")
        .table("people", frame, person="who", columns={"days": Interval(1, 14), "place": LISTED}, **said)
        .promise("public", epsilon=1, delta=1e-6)
        .mean("days", to="public")
        .histogram("place", to="public")
    )


def share(count: int, rows: int) -> str:
    percent = 100 * count / rows
    return "all" if count == rows else f"{percent:.1f} %"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.by_day(1)
def test_the_curator_is_told_how_many_cells_were_replaced_and_no_file_is(seed, tmp_path):
    frame, counted = people(seed)
    heard: set[str] = set()
    with told_to(heard):
        study(frame).plan(size=100).run(ledger=None, out=tmp_path / "out")
    days = next((one for one in heard if "'days'" in one), "")
    assert bool(days) == bool(counted["empty"])
    if days:
        assert f"{share(counted['empty'], counted['rows'])} of its cells are absent; they count as 7.5" in days
    lost = counted["other"] + counted["capital"]
    place = next((one for one in heard if "'place'" in one), "")
    assert bool(place) == bool(lost + counted["absent"])
    if lost:
        assert f"{share(lost, counted['rows'])} of its cells are not in its list" in place
    assert ("capital letters" in place) == bool(counted["capital"])
    assert not any("moon" in one or "South" in one for one in heard)
    written = "".join(path.read_text("utf-8", "ignore") for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert not re.search(r"of its cells are|capital letters or blanks", written)


@pytest.mark.parametrize("domain", [Categories([*LISTED, "else"], null="else", unknown="else"), None])
def test_a_list_in_another_case_is_told_whatever_the_study_says(domain):
    frame = pd.DataFrame({"who": range(50), "place": ["NORTH", "South"] * 25})
    asked = Study("s").table(
        "people", frame, person="who", columns={"place": domain or LISTED}, missing=None if domain else "skip"
    )
    heard: set[str] = set()
    with told_to(heard):
        asked.promise("public", epsilon=1).histogram("place", to="public").plan().run(ledger=None)
    assert any("all of its cells are not in its list (all but for capital letters or blanks)" in one for one in heard)


def test_declared_absences_are_no_news():
    frame = pd.DataFrame({"who": range(50), "days": [np.nan, 3.0] * 25, "place": ["north", "moon"] * 25})
    heard: set[str] = set()
    with told_to(heard):
        study(frame, missing="skip").plan().run(ledger=None)
    assert not heard


def test_what_is_unsaid_is_said_by_study_and_plan():
    frame, _ = people(0)
    unsaid = study(frame)
    plan = unsaid.plan(size=100)
    for text in (str(plan), plan.errors.note, unsaid._repr_html_(), plan._repr_html_()):
        assert "days as 7.5" in text
        assert "missing=" in text
    for said in ("never", "skip"):
        assert study(frame, missing=said).unsaid == ()
    assert study(frame, missing="never").to_text() == unsaid.to_text()
    with pytest.raises(StudyError, match="missing='skip' or missing='never'"):
        study(frame, missing="zero")


def test_no_filter_lets_a_cell_decide_whether_a_run_fails(capsys):
    frame = pd.DataFrame({"who": range(40), "days": [np.nan, 3.0] * 20, "place": LISTED * 20})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study(frame).plan().run(ledger=None)
    assert "50.0 % of its cells are absent" in capsys.readouterr().err


def test_clean_cells_give_no_word(capsys):
    frame = pd.DataFrame({"who": range(40), "days": [2.0, 3.0] * 20, "place": LISTED * 20})
    study(frame).plan().run(ledger=None)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("ends", [("2020-01-01", "2020-12-31"), (date(2020, 1, 1), date(2020, 12, 31))])
def test_two_dates_are_a_range_of_days_and_two_words_are_categories(ends):
    days = Study("s").table("people", None, person="who", columns={"day": ends})
    assert "date(2020, 1, 1)" in days.to_text()
    words = Study("s").table("people", None, person="who", columns={"season": ("winter", "summer")})
    assert "[winter, summer]" in words.to_text()


@pytest.mark.parametrize("ask", ["classifier", "synthetic"])
def test_people_who_cannot_be_left_out_are_told_of_in_python_words(ask):
    columns = {"Alter": (0, 110), "zurückGesandt": ["ja", "nein"]}
    asked = (
        Study("shop")
        .table("kauf", None, person="who", columns=columns, missing="skip")
        .promise("public", epsilon=1, delta=1e-6)
    )
    what = ("zurückGesandt", ["Alter"]) if ask == "classifier" else (["zurückGesandt"],)
    with pytest.raises(StudyError) as caught:
        getattr(asked, ask)(*what, to="public").plan(size=100)
    told = str(caught.value)
    assert "people without zurückGesandt are skipped, and what is published here is made from a whole row" in told
    assert "Write null= into the domain of zurückGesandt, or missing='never' into .table(…) if it is certain" in told
    assert "(P)" not in told
    assert "$" not in told
