"""Study in Python: what it writes, what it plans and publishes, where it says that something is wrong."""

from __future__ import annotations

import inspect
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import Adjacency, ApproxDP, Categories, Dates, Interval, Ledger, Study, load, make_plan, verify
from sfumato.errors import (
    DataError,
    InputError,
    OverspendError,
    PlanError,
    SfumatoError,
    StudyError,
    UnknownDatasetError,
)
from sfumato.study.forms import FORMS

COLUMNS = {
    "days": Interval(1, 14),
    "age": Categories(["young", "middle", "old"]),
    "readmitted": Categories(["no", "yes"]),
}


def stays(rows: int = 3000, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient_nbr": generator.integers(0, rows // 2, rows),
            "days": generator.integers(1, 15, rows),
            "age": generator.choice(["young", "middle", "old"], rows),
            "readmitted": generator.choice(["no", "yes"], rows),
        }
    )


def base(data: object = "stays.parquet", **more: object) -> Study:
    return (
        Study("Stays in hospital")
        .table("stays", data, person="patient_nbr", **{"rows_per_person": 3, "columns": COLUMNS, **more})
        .promise("public", epsilon=1, delta=1e-6)
        .promise("researcher", epsilon=4, delta=1e-6)
    )


def asked(data: object = "stays.parquet") -> Study:
    return (
        base(data)
        .mean("days", by="age", to="public")
        .histogram(["age", "readmitted"], to="public")
        .mean("days", where="readmitted == 'yes'", to="researcher")
    )


def test_from_a_table_to_published_numbers(tmp_path):
    (tmp_path / "data").mkdir()
    stays().to_parquet(tmp_path / "data" / "stays.parquet")
    plan = asked().plan(size=1500)
    assert {"publication", "reader", "half_width"} <= set(plan.errors.columns)
    release = plan.run(tmp_path / "data", ledger=tmp_path / "ledger.db", grant=True)
    table = release["mean days by age"].to_pandas()
    assert list(table.columns) == ["age", "value", "standard_error", "low", "high"]
    assert list(table["age"]) == ["young", "middle", "old"]
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()
    both = release["histogram age and readmitted"].to_polars()
    assert both.columns[:2] == ["age", "readmitted"]
    assert both.height == 6
    assert all(verify(certificate).ok for certificate in release.certificates.values())


def test_the_promised_example(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    stays(1200).to_parquet(tmp_path / "data" / "stays.parquet")
    monkeypatch.chdir(tmp_path)
    study = (
        Study("Stays in hospital")
        .table("stays", "stays.parquet", person="patient_nbr", rows_per_person=3,
               columns={"days": Interval(1, 14), "age": Categories(["young", "middle", "old"]),
                        "readmitted": Categories(["no", "yes"])})
        .promise("public", epsilon=1, delta=1e-6)
        .promise("researcher", epsilon=4, delta=1e-6)
        .mean("days", by="age", to="public")
        .histogram(["age", "readmitted"], to="public")
        .quantiles("days", [0.5, 0.9], to="public")
        .synthetic(["age", "days", "readmitted"], label="readmitted", to="researcher")
    )  # fmt: skip
    plan = study.plan(size=70_000)
    assert len(plan.compare(epsilon=[0.5, 1, 2])) == 12
    Ledger("ledger.db").grant("stays", ApproxDP(6, 1e-5, adjacency=Adjacency("person", "replace-one")))
    release = plan.run("data/", ledger="ledger.db")
    assert len(release["mean days by age"].to_pandas()) == 3
    assert Study.from_text(study.to_text()).to_text() == study.to_text()


def test_the_published_numbers_are_those_of_the_table(tmp_path):
    """At a large ε the answers are those of pandas: groups, categories and conditions are the ones that were named."""
    frame = stays().drop_duplicates("patient_nbr")
    study = (
        Study("close")
        .table("stays", frame, person="patient_nbr", columns=COLUMNS)
        .promise("public", epsilon=200, delta=1e-6)
        .mean("days", by=["age", "readmitted"], to="public")
        .histogram(["age", "readmitted"], to="public")
        .histogram("days", edges=[1, 5, 10, 14], to="public")
        .count(where="not (days > 7 or age == 'old')", to="public", name="short")
        .derive("weeks", "days / 7")
        .sum("weeks", to="public")
    )
    release = study.plan().run(ledger=tmp_path / "ledger.db", grant=True)
    means = frame.groupby(["age", "readmitted"])["days"].mean()
    for row in release["mean days by age and readmitted"].rows():
        assert row["value"] == pytest.approx(means[row["age"], row["readmitted"]], abs=0.2)
    counts = frame.groupby(["age", "readmitted"]).size()
    for row in release["histogram age and readmitted"].rows():
        assert row["value"] == pytest.approx(counts[row["age"], row["readmitted"]], abs=4)
    binned = pd.cut(frame["days"], [1, 5, 10, 15], right=False).value_counts(sort=False)
    assert release["histogram days"]["value"] == pytest.approx(list(binned), abs=4)
    assert release["histogram days"]["days"] == ["[1, 5)", "[5, 10)", "[10, 14]"]
    assert release["short"]["value"][0] == pytest.approx(len(frame.query("days <= 7 and age != 'old'")), abs=4)
    assert release["sum weeks"]["value"][0] == pytest.approx(frame["days"].sum() / 7, abs=4)


def test_the_text_is_the_same_study():
    study = asked()
    again = Study.from_text(study.to_text())
    assert again.to_text() == study.to_text()
    assert again.title == study.title
    assert again.plan(size=1500).plan.hash == study.plan(size=1500).plan.hash
    by_hand = make_plan(load(study.to_text()), sizes={"stays": 1500})
    assert by_hand.publications == study.plan(size=1500).plan.publications


def test_a_study_read_from_text_can_be_asked_more():
    more = Study.from_text(asked().to_text()).count(by="age", to="public").derive("weeks", "days / 7")
    names = {one.name for one in more.mean("weeks", to="researcher").plan().plan.publications}
    assert {"count by age", "mean weeks", "mean days by age"} <= names


def test_a_study_never_changes():
    first = base()
    text = first.to_text()
    first.mean("days", to="public")
    assert first.to_text() == text
    with pytest.raises(AttributeError):
        first.title = "another"  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "duckdb", "dict", "reader"])
@pytest.mark.by_day(2)
def test_any_kind_of_frame_stands_for_a_file(kind, tmp_path):
    frame, connection = stays(400), duckdb.connect()
    made = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pa.Table.from_pandas(frame),
        "duckdb": lambda: connection.from_arrow(pa.Table.from_pandas(frame)),
        "dict": lambda: {name: frame[name].tolist() for name in frame},
        "reader": lambda: pa.Table.from_pandas(frame).to_reader(),
    }[kind]()
    study = base(made).mean("days", to="public").count(to="researcher")
    release = study.plan(size=200).run(ledger=tmp_path / "ledger.db", grant=True)
    assert 1 <= release["mean days"]["value"][0] <= 14
    with pytest.raises(StudyError, match=r"no column 'patientnbr'; did you mean 'patient_nbr'"):
        Study("x").table("stays", made, person="patientnbr", columns=COLUMNS)


def test_every_question_that_exists_can_be_asked_planned_and_run(tmp_path):
    """Discovery: a form that is written here and does not work in the language fails."""
    columns = {"nothing": (), "number": "days", "any": "readmitted", "numbers": ["days", "drugs"]}
    options = {"features": ["drugs"], "uses": ["identity"], "numbers": [0.25, 0.5]}
    frame = stays(600).assign(drugs=lambda t: t["days"] * 3.0, sex="f", city="Ulm").drop_duplicates("patient_nbr")
    for place, form in enumerate(FORMS.values()):
        study = (
            Study("all")
            .table(
                "stays",
                frame,
                person="patient_nbr",
                columns={**COLUMNS, "drugs": (0, 80), "sex": ["f", "m"], "city": str},
            )
            .promise("public", epsilon=2, delta=1e-6)
        )
        subject = ["city"] if form.method == "groups" else columns.get(form.subject, ["age", "readmitted"])
        own = {one.name: options[one.name] for one in form.options if one.required}
        question = getattr(study, form.method)(*([subject] if subject else []), to="public", **own)
        plan = question.plan(size=300)
        assert len(plan.errors) >= 1
        release = plan.run(ledger=Ledger(tmp_path / f"{place}.db", beside=()), grant=True)
        ((name, reader),) = list(release)
        assert reader == "public"
        assert len(release[name]) >= 1
        assert name.startswith(form.method)
        if form.grouped:
            groups = getattr(study, form.method)(*([subject] if subject else []), to="public", by="sex", **own)
            assert len(groups.plan(size=300).dry_run()[f"{name} by sex"]) >= 2


def test_rows_have_the_columns_of_the_caller(tmp_path):
    frame = stays(800).drop_duplicates("patient_nbr")
    study = (
        Study("m").table("stays", frame, person="patient_nbr", columns=COLUMNS).promise("public", epsilon=5, delta=1e-6)
    )
    study = study.synthetic(["age", "days", "readmitted"], label="readmitted", to="public")
    made = (
        study.plan(size=400)
        .run(ledger=tmp_path / "ledger.db", grant=True)["synthetic age, days and readmitted"]
        .to_pandas()
    )
    assert list(made.columns) == ["age", "days", "readmitted"]
    assert set(made["age"]) <= {"young", "middle", "old"}
    with pytest.raises(StudyError, match="must be one of the columns"):
        base().synthetic(["age", "days"], label="readmitted", to="public")


def test_a_model_predicts_from_the_columns_of_the_caller(tmp_path):
    frame = stays(800).drop_duplicates("patient_nbr").assign(drugs=lambda t: 5.0 * t["days"])
    study = Study("m").table("stays", frame, person="patient_nbr", columns={**COLUMNS, "drugs": Interval(0, 80)})
    study = study.promise("public", epsilon=20, delta=1e-6).regression("drugs", ["days"], to="public")
    model = study.plan().run(ledger=tmp_path / "ledger.db", grant=True).model("regression drugs")
    assert model.target == "drugs"
    low, high = model.predict({"days": [2.0, 12.0]})
    assert (low, high) == (pytest.approx(10, abs=6), pytest.approx(60, abs=6))


def test_methods_have_their_own_help_and_signature():
    signature = inspect.signature(Study.mean)
    assert list(signature.parameters)[:2] == ["self", "column"]
    assert signature.parameters["to"].default is inspect.Parameter.empty
    for form in FORMS.values():
        assert getattr(Study, form.method).__doc__ == form.help
    with pytest.raises(StudyError, match=r"did you mean .mean.. There are .*count.*, mean"):
        base().ask("meen", "days", to="public")


def wrong() -> list[tuple[str, object]]:
    return [
        ("'dayz' is not a column of this study; did you mean 'days'", lambda: base().mean("dayz", to="public")),
        ("no promise towards 'publik'; did you mean 'public'", lambda: base().mean("days", to="publik")),
        ("age has categories and no numbers", lambda: base().mean("age", to="public")),
        ("needs categories", lambda: base().mean("days", by="days", to="public")),
        ("no category 'yung'", lambda: base().count(where="age == 'yung'", to="public")),
        ("'kalim' is not a column", lambda: base().count(where="kalim > 3", to="public")),
        ("is no expression", lambda: base().count(where="days >", to="public")),
        ("is neither a number nor a formula", lambda: base().count(where="__import__('os') > 1", to="public")),
        ("is no comparison", lambda: base().count(where="days", to="public")),
        ("at least two rising numbers", lambda: base().histogram("days", edges=[5, 1], to="public")),
        ("there is no column of numbers", lambda: base().histogram("age", edges=[5, 1], to="public")),
        ("another question is called", lambda: asked().mean("days", to="public", name="mean days by age")),
        ("there is a promise towards 'public' already", lambda: base().promise("public", epsilon=1)),
        ("exactly one of epsilon, mu and rho", lambda: base().promise("third")),
        ("is no number", lambda: base().promise("third", epsilon=float("nan"))),
        ("say first whose rows", lambda: Study("x").promise("public", epsilon=1)),
        ("low must be below high", lambda: Study("x").table("t", "t.csv", person="id", columns={"a": (3, 1)})),
        ("rows_per_person must be", lambda: base(rows_per_person=0)),
        ("no column is declared", lambda: base(columns={})),
        ("a column is named twice", lambda: base().histogram(["age", "age"], to="public")),
        ("give both ends", lambda: base().derive("weeks", "days / 7", low=0)),
        ("reads no column", lambda: base().derive("weeks", "1 + 1")),
        ("it takes two readers", lambda: base().together("public")),
        ("by= is no part", lambda: base().ask("regression", "days", by="age", features=["age"], to="public")),
        ("features", lambda: base().ask("regression", "days", to="public")),
        ("nothing refers to the promise towards 'researcher'", lambda: base().mean("days", to="public").plan()),
        ("a int is no table", lambda: base(3)),
        ("null= into the domain of days", lambda: base(missing="skip").synthetic(["days", "age"], to="public").plan()),
    ]  # fmt: skip


PROLOG = re.compile(r"\w\(P\)|\$|:-|\w/\d|\btext:\d")


@pytest.mark.parametrize(("words", "call"), wrong(), ids=[words for words, _ in wrong()])
def test_what_is_wrong_is_told_at_the_callers_line_without_the_language(words, call):
    with pytest.raises(StudyError) as caught:
        call()
    message = str(caught.value)
    assert words in message
    assert message.startswith("test_builder.py, line ")
    assert "Nothing was planned and nothing was spent." in message
    assert not PROLOG.search(message), message


def test_the_line_is_the_callers_own():
    with pytest.raises(StudyError) as caught:
        (
            base()
            .mean("days", to="public")
            .sum("daze", to="public")
        )  # fmt: skip
    line = inspect.currentframe().f_lineno - 2
    assert f"line {line}, .sum('daze')" in str(caught.value)


def test_what_the_planner_refuses_is_told_at_the_callers_line():
    study = base().rows(["days", "age"], to="public").mean("days", to="researcher")
    with pytest.raises((PlanError, StudyError)) as caught:
        study.plan()
    assert "test_builder.py, line" in str(caught.value)
    assert not PROLOG.search(str(caught.value)), str(caught.value)


def test_a_first_run_needs_a_decision_and_a_second_one_more_budget(tmp_path):
    study = base(stays(400)).mean("days", to="public").count(to="researcher")
    plan = study.plan(size=200)
    with pytest.raises(UnknownDatasetError, match="grant"):
        plan.run(ledger=tmp_path / "ledger.db", grant=False)
    plan.run(ledger=tmp_path / "ledger.db", grant=True)
    assert Ledger(tmp_path / "ledger.db").datasets()
    with pytest.raises(OverspendError):
        plan.run(ledger=tmp_path / "ledger.db")


def test_compare_replans_for_each_reader(tmp_path):
    plan = asked().plan(size=1500)
    table = plan.compare(epsilon=[0.5, 1, 2], reader="public").to_pandas()
    widths = table.query("publication == 'mean days by age'").sort_values("epsilon")["half_width"]
    assert list(widths) == sorted(widths, reverse=True)
    same = plan.errors.to_pandas().query("publication == 'mean days by age'")["half_width"].max()
    assert table.query("epsilon == 1 and publication == 'mean days by age'")["half_width"].iloc[0] == same
    with pytest.raises(InputError, match="no promise towards 'nobody'"):
        plan.compare(epsilon=[1], reader="nobody")


def test_the_error_one_can_live_with():
    study = base().mean("days", by="age", within=0.2, to="public").count(within=1000, weight=2, to="researcher")
    plan = study.plan(size=1500)
    found = {row["publication"]: row for row in plan.aims.rows()}
    assert not found["mean days by age"]["met"]
    assert found["count"]["met"]
    again = study.plan(size=1500).compare(epsilon=[found["mean days by age"]["least_epsilon"]], reader="public")
    assert again["half_width"][0] <= 0.2001
    assert "wider than the ±0.2 one can live with" in str(plan)
    assert "wider than the ±0.2 one can live with" in plan._repr_html_()
    assert "within('mean days by age', 0.2)." in study.to_text()
    with pytest.raises(StudyError, match="has no interval"):
        base().outliers(["days"], within=1, to="public").count(to="researcher").plan()


def test_several_readers_get_versions_of_one_publication(tmp_path):
    study = base(stays(400)).mean("days", to=["public", "researcher"])
    release = study.plan(size=200).run(ledger=tmp_path / "ledger.db", grant=True)
    with pytest.raises(InputError, match="has a version for each reader"):
        release["mean days"]
    assert len(release["mean days", "researcher"]) == 1
    with pytest.raises(InputError, match="was not published"):
        release["mean daze"]


def test_names_of_columns_may_be_anything(tmp_path):
    frame = pd.DataFrame(
        {"Who?": range(50), "Länge in m": np.linspace(0, 1, 50), "sum": [1.0] * 50, "2nd": ["a b"] * 50}
    )
    columns = {"Länge in m": (0, 1), "sum": (0, 2), "2nd": ["a b", "it's"]}
    study = (
        Study("odd 'names'")
        .table("my table", frame, person="Who?", columns=columns)
        .promise("tout le monde", epsilon=5)
    )
    study = study.mean("Länge in m", by="2nd", to="tout le monde").sum("sum", to="tout le monde")
    release = study.plan().run(ledger=tmp_path / "ledger.db", grant=True, out=tmp_path / "out")
    assert release["mean Länge in m by 2nd"]["2nd"] == ["a b", "it's"]
    assert Study.from_text(study.to_text()).plan().plan.hash == study.plan().plan.hash
    assert (tmp_path / "out" / "report.html").is_file()


def test_absent_cells(tmp_path):
    frame = pd.DataFrame({"id": range(200), "x": [1.0, None] * 100, "c": ["a", None] * 100})
    promised = {"x": Interval(0, 1, null=0), "c": Categories(["a", "other"], null="other", unknown="other")}
    study = Study("absent").table("t", frame, person="id", columns=promised).promise("public", epsilon=100)
    release = (
        study.mean("x", to="public")
        .histogram("c", to="public")
        .plan()
        .run(ledger=Ledger(tmp_path / "a.db", beside=()), grant=True)
    )
    assert release["mean x"]["value"][0] == pytest.approx(0.5, abs=0.05)
    assert release["histogram c"]["value"] == pytest.approx([100, 100], abs=3)
    skipping = Study("skip").table("t", frame, person="id", columns={"x": (0, 1)}, missing="skip")
    skipped = skipping.promise("public", epsilon=100).mean("x", to="public").plan()
    assert skipped.run(ledger=Ledger(tmp_path / "b.db", beside=()), grant=True)["mean x"]["value"][0] == pytest.approx(
        1, abs=0.05
    )


def test_a_dry_run_and_words():
    plan = asked().plan(size=1500)
    assert len(plan.dry_run()["mean days by age"]) == 3
    assert "odds" in plan.explain("SUBJECT") or "guess" in plan.explain("SUBJECT")
    assert "mean days by age" in str(plan)


def test_nothing_said_is_said():
    with pytest.raises(SfumatoError, match="says nothing yet"):
        Study("empty").plan()
    with pytest.raises(StudyError, match="error"):
        Study.from_text("mean(m, x(P), y(P)).")


def test_medians_and_quantiles_are_those_of_the_table(tmp_path):
    frame = stays().drop_duplicates("patient_nbr")
    study = (
        Study("Stays in hospital")
        .table("stays", frame, person="patient_nbr", columns=COLUMNS)
        .promise("public", epsilon=1_000_000)
        .quantiles("days", numbers=[0.251, 0.901], to="public")
    )
    release = study.plan(size=len(frame)).run(ledger=tmp_path / "ledger.db", grant=True)
    ((name, _),) = list(release)
    exact = frame["days"].quantile([0.251, 0.901], interpolation="higher")
    assert release[name].to_pandas()["value"].tolist() == pytest.approx(exact.tolist(), abs=1.01)


def test_groups_and_tables_of_codes_can_be_read_drawn_and_shown(tmp_path):
    """What is found in the data has as many rows as it has; codes, words and classes stand in one table."""
    frame = pd.DataFrame(
        {
            "id": np.arange(4000),
            "city": np.random.default_rng(0).choice(["rome", "oslo", "bern"], 4000),
            "code": np.random.default_rng(1).integers(1, 4, 4000),
            "sex": np.random.default_rng(2).choice(["f", "m"], 4000),
            "icu": np.random.default_rng(3).random(4000) < 0.1,
        }
    )
    columns = {"city": str, "code": [1, 2, 3], "sex": ["f", "m"], "icu": [False, True]}
    study = Study("x").table("t", frame, person="id", columns=columns).promise("public", epsilon=8, delta=1e-6)
    asked = (
        study.groups("city", to="public").marginals(["code", "sex", "icu"], to="public").count(by="icu", to="public")
    )
    release = asked.plan(size=4000).run(ledger=tmp_path / "ledger.db", grant=True)
    found = release["groups city"].to_pandas().set_index("city")["value"]
    assert found.to_dict() == pytest.approx(frame["city"].value_counts().to_dict(), abs=40)
    pairs = release["marginals code, sex and icu"].to_pandas()
    both = pairs[pairs["icu"].isna()].set_index(["code", "sex"])["value"]
    truth = frame.groupby(["code", "sex"]).size()
    assert [both[key] for key in truth.index] == pytest.approx(truth.tolist(), abs=40)
    counts = release["count by icu"].to_pandas().set_index("icu")["value"]
    assert counts["true"] == pytest.approx(frame["icu"].sum(), abs=40)
    assert release.plot() is not None
    assert "city" in release._repr_html_() or "groups" in release._repr_html_()
    with pytest.raises(UnknownDatasetError, match="has its budget in"):
        asked.plan(size=4000).run(ledger=tmp_path / "fresh.db", grant=True)


def test_a_table_of_a_database_is_read_by_its_name(tmp_path):
    with duckdb.connect(str(tmp_path / "hospital.duckdb")) as connection:
        connection.execute("CREATE TABLE stays AS SELECT range AS id, range % 10 AS days FROM range(500)")
    study = (
        Study("Stays")
        .table("stays", tmp_path / "hospital.duckdb", person="id", columns={"days": (0, 9)}, missing="never")
        .promise("public", epsilon=1000)
        .mean("days", to="public")
    )
    assert "source(stays, 'hospital.duckdb', stays)." in study.to_text()
    for given in (None, tmp_path, tmp_path / "hospital.duckdb"):
        assert study.plan(size=500).run(given, ledger=None)["mean days"].to_dict()["value"][0] == pytest.approx(
            4.5, abs=0.1
        )
    again = Study.from_text(study.to_text()).plan(size=500).run(tmp_path, ledger=None)
    assert again["mean days"].to_dict()["value"][0] == pytest.approx(4.5, abs=0.1)


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.duckdb", "nowhere.parquet"])
def test_a_file_that_is_not_there_is_named(name, tmp_path):
    study = Study("T").table("t", tmp_path / name, person=None, columns={"x": (0, 1)}, missing="never")
    plan = study.promise("public", epsilon=1).mean("x", to="public").plan(size=9)
    with pytest.raises(DataError, match=f"has no file {name}.*Nothing was read and nothing was spent"):
        plan.run(ledger=None)


def test_groups_may_be_classes_of_numbers_and_days():
    """by={column: cut points} is what the language writes as by([column: cuts]), for every question that has groups."""
    generator = np.random.default_rng(4)
    frame = pd.DataFrame({"age": generator.integers(0, 100, 4000), "cost": generator.uniform(0, 50, 4000)})
    frame["sex"] = generator.choice(["f", "m"], 4000)
    frame["day"] = np.datetime64("2022-01-01") + generator.integers(0, 90, 4000).astype("timedelta64[D]")
    columns = {"age": (0, 110), "cost": (0, 50), "sex": ["f", "m"], "day": Dates("2022-01-01", "2022-03-31")}
    study = Study("classes").table("t", frame, person=None, columns=columns, missing="never")
    study = study.promise("public", epsilon=5000, delta=1e-3)
    release = (
        study.mean("cost", by={"age": [18, 65], "sex": None}, to="public", name="by age")
        .mean("cost", by={"day": ["2022-02-01", "2022-03-01"]}, to="public", name="by month")
        .count(by={"age": [65]}, to="public", name="old")
        .median("cost", by={"age": [65]}, to="public", name="medians")
        .histogram("sex", by={"age": [18, 65]}, to="public", name="table")
        .plan(size=4000)
        .run(ledger=None)
    )
    classes = np.digitize(frame["age"], [18, 65])
    exact = frame.groupby([classes, "sex"])["cost"].mean()
    assert np.allclose(release["by age"]["value"], exact, atol=0.2)
    assert np.allclose(release["by month"]["value"], frame.groupby(frame["day"].dt.month)["cost"].mean(), atol=0.2)
    assert np.allclose(release["old"]["value"], [(frame["age"] < 65).sum(), (frame["age"] >= 65).sum()], atol=2)
    assert np.allclose(release["medians"]["value"], frame.groupby(frame["age"] >= 65)["cost"].median(), atol=0.3)
    assert np.allclose(release["table"]["value"], frame.groupby([classes, "sex"]).size(), atol=2)
    assert len(set(release["by month"]["day"])) == 3


def test_a_column_of_yes_and_no_is_a_condition():
    columns = {"urgent": bool, "not urgent": Categories([False, True], null=False)}
    study = Study("urgent").table("t", None, person=None, columns=columns, missing="never").promise("p", epsilon=1)
    bare = study.count(where="urgent and not `not urgent`", to="p", name="n")
    said = study.count(where="urgent == True and not (`not urgent` == True)", to="p", name="n")
    assert bare.to_text() == said.to_text()


@pytest.mark.parametrize(
    ("where", "way"),
    [
        ("town == 'Bern'", r"Categories\(\['…', 'other'\]"),
        ("days is None", "null="),
        ("days.isna()", "null="),
        ("days and sex == 'f'", "days > 7"),
        ("sex", "sex == 'm'"),
    ],
)
def test_a_condition_that_is_none_says_what_to_write(where, way):
    columns = {"town": str, "days": (1, 14), "sex": ["f", "m"]}
    study = Study("wrong").table("t", None, person=None, columns=columns, missing="skip").promise("p", epsilon=1)
    with pytest.raises(StudyError, match=way):
        study.count(where=where, to="p")


@pytest.mark.parametrize(
    ("by", "way"),
    [
        ("days", r"by=\{'days': \[18, 65\]\}"),
        ("day", r"by=\{'day': \['2020-02-01'"),
        ("town", r"\.groups\('town'"),
        ({"sex": [1]}, r"by=\{'sex': None\}"),
        ({"days": []}, "at least one"),
    ],
)
def test_groups_that_nobody_knows_say_how_to_make_them_known(by, way):
    columns = {"town": str, "days": (1, 14), "sex": ["f", "m"], "day": Dates("2020-01-01", "2020-12-31")}
    study = Study("wrong").table("t", None, person=None, columns=columns, missing="skip").promise("p", epsilon=1)
    with pytest.raises(StudyError, match=way):
        study.mean("days", by=by, to="p")


def test_edges_of_a_domain_are_not_dropped_in_silence():
    with pytest.raises(StudyError, match=r"\.histogram\('days', edges="):
        Study("edges").table("t", None, person=None, columns={"days": Interval(1, 14, edges=[1, 7, 14])})
