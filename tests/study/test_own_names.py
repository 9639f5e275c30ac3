"""In Python columns are named as their author does; what was said of booleans and days is kept."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from sfumato import Categories, Dates, Interval, Study, Times
from sfumato.errors import PlanError, StudyError
from sfumato.study.tidy import Tidy

#: Names whose word in the language is another: blanks, signs, capitals, umlauts, a word that means something there.
NAMES = ["Alter (Jahre)", "Länge.Tage", "WARD", "weight", "class", "Übung", "public"]


def _asked(name, domain, **more):
    columns = {name: domain, "other column": (0, 1)}
    return Study("names").table("t", None, person="who", columns=columns, **more).promise("p", epsilon=1, delta=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda name: _asked(name, Interval.private(0.1)).median(name, to="p"),
        lambda name: _asked(name, Interval.private(0.1)).derive("twice", f"`{name}` * 2"),
        lambda name: _asked(name, (0, 9), missing="skip").regression(name, ["other column"], to="p"),
        lambda name: _asked(name, (0, 9), rows_per_person=2).regression("other column", [name], to="p"),
    ],
)
@pytest.mark.by_day(12)
def test_an_error_names_a_column_as_its_author_does(name, wrong):
    with pytest.raises((StudyError, PlanError)) as told:
        wrong(name).plan(size=1000)
    message = str(told.value)
    functors = {column.functor for column in wrong(name)._parts.columns.values() if column.functor != column.name}
    for called in re.findall(r"\.(?:mean|sum|median)\('([^']*)', …\)", message):
        assert called == name  # an advice that can be followed
    assert (name if name.isidentifier() else f"'{name}'") in message
    assert not [word for word in functors if re.search(rf"\b{word}\b", message)], message
    assert not re.search(r"[\x00-\x08]", message)


@pytest.mark.parametrize(("null", "unknown"), list(itertools.product([None, False, True], repeat=2)))
def test_what_stands_for_an_absent_truth_value_is_kept(null, unknown):
    """Both are words of the list as they were said; in a study one stands for both kinds of cells."""
    domain = Categories([False, True], null=null, unknown=unknown)
    if None not in (null, unknown) and null != unknown:
        with pytest.raises(StudyError, match="alike"):
            _asked("b", domain)
        return
    study = _asked("b", domain)
    said = null if null is not None else unknown
    assert f"missing(b(P), {'never' if said is None else str(said).lower()})." in study.to_text()
    assert ("b as" in " ".join(study.unsaid)) == (said is None)


def test_bool_is_a_domain():
    assert _asked("b", bool).to_text() == _asked("b", [False, True]).to_text()
    with pytest.raises(StudyError, match="str or bool, not type"):
        _asked("b", int)


@pytest.mark.parametrize("kind", ["bool", "boolean", "object"])
def test_a_model_predicts_from_columns_of_booleans(kind):
    """The same as from the words, whatever pandas holds them in; absent ones count as the study says."""
    generator = np.random.default_rng(2)
    frame = pd.DataFrame({"smokes": generator.random(2000) < 0.5, "x": generator.random(2000)})
    frame["ill"] = frame["smokes"] ^ (generator.random(2000) < 0.1)
    study = (
        Study("booleans")
        .table("t", frame, person=None, columns={"smokes": bool, "x": (0, 1), "ill": bool}, missing="never")
        .promise("p", epsilon=8, delta=1e-6)
        .classifier("ill", ["smokes", "x"], to="p", name="model")
    )
    model = study.plan(size=2000).run(ledger=None).model("model")
    words = frame.assign(smokes=np.where(frame["smokes"], "true", "false"))
    typed = frame.assign(smokes=frame["smokes"].astype(kind))
    assert (model.predict(typed) == model.predict(words)).all()
    assert np.mean((model.predict(typed) == "true") == frame["ill"]) > 0.8


def test_days_and_times_are_written_as_such():
    columns = {"day": Dates("2021-01-01", "2021-12-31", null="2021-03-04"), "hour": Times(), "n": (0, 9)}
    study = (
        Study("days")
        .table("t", None, person="who", columns=columns)
        .promise("p", epsilon=1)
        .histogram("day", edges=["2021-01-01", "2021-02-01", "2021-12-31"], to="p")
        .histogram("hour", edges=["06:00", "12:00", "18:30"], to="p")
        .count(where="day >= '2021-06-15' and hour < '08:00' and n > 3", to="p")
    )
    text = study.to_text()
    assert "[date(2021, 1, 1), date(2021, 2, 1), date(2021, 12, 31)]" in text
    assert "[time(6, 0, 0), time(12, 0, 0), time(18, 30, 0)]" in text
    assert "day(P) >= date(2021, 6, 15), hour(P) < time(8, 0, 0), n(P) > 3" in text
    assert "missing(day(P), date(2021, 3, 4))." in text
    plan = study.plan(size=500)
    assert Study.from_text(text).plan(size=500).plan.hash == plan.plan.hash


def test_a_word_of_python_is_pointed_out():
    study = _asked("class", (0, 9))
    with pytest.raises(StudyError, match="class is a word of Python; as a name it stands between backticks: `class`"):
        study.count(where="class > 3 and `other column` > 0", to="p")
    with pytest.raises(StudyError, match="between backticks: `other column`"):
        study.count(where="`class` > 3 and other column > 0", to="p")


@pytest.mark.parametrize("digits", range(1, 15))
def test_a_large_count_is_told_in_digits(digits):
    """No power of ten, and at least five digits right."""
    value = float("1234567890123456"[:digits]) + 0.25
    told = str(Tidy({"value": [value, -value]})).splitlines()[1:]
    assert "e" not in told[0]
    assert float(told[0]) == -float(told[1])
    assert float(told[0]) == pytest.approx(value, rel=1e-4, abs=0.5)
