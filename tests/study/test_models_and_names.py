"""A study's models as files, and columns whose names are no words of Python."""

import numpy as np
import pandas as pd
import pytest

from sfumato import Study
from sfumato.errors import StudyError
from sfumato.learn import load

ODD = ["Größe (cm)", "day's end", "2nd", "a`less", "and", "x > 3", "Straße", "ﬁne"]


@pytest.mark.parametrize("name", [name for name in ODD if "`" not in name])
@pytest.mark.by_day(3)
def test_a_condition_names_any_column(name):
    """Against plain pandas, which has the same rule for odd names."""
    generator = np.random.default_rng(len(name))
    frame = pd.DataFrame(
        {"who": range(500), name: generator.integers(0, 20, 500), "s": generator.choice(["`", "x"], 500)}
    )
    condition = f"`{name}` > 4 and s != '`'"
    asked = (
        Study("odd")
        .table("people", frame, person="who", columns={name: (0, 20), "s": ["`", "x"]}, missing="never")
        .promise("public", epsilon=1e6)
        .count(where=condition, to="public", name="those")
        .derive("twice", f"`{name}` * 2")
        .mean("twice", to="public")
    )
    release = asked.plan(size=500).run(ledger=None)
    true = int(((frame[name] > 4) & (frame["s"] != "`")).sum())
    assert release["those"].to_dict()["value"][0] == pytest.approx(true, abs=0.01)
    assert release["mean twice"].to_dict()["value"][0] == pytest.approx(2 * frame[name].mean(), abs=0.01)
    assert Study.from_text(asked.to_text()).to_text() == asked.to_text()


def test_what_is_wrong_with_a_condition_is_told_in_its_own_names():
    asked = (
        Study("odd")
        .table("people", None, person="who", columns={"Größe (cm)": (100, 220), "sex": ["f", "m"]})
        .promise("public", epsilon=1)
    )
    for condition, told in (
        ("Größe (cm) > 180", "stands between backticks: `Größe \\(cm\\)`"),
        ("`Grösse (cm)` > 180", "did you mean 'Größe \\(cm\\)'"),
        ("`Größe (cm)` + 1", "`Größe \\(cm\\)` \\+ 1"),
    ):
        with pytest.raises(StudyError, match=told):
            asked.count(where=condition, to="public")


@pytest.mark.parametrize("method", ["classifier", "regression", "outliers"])
@pytest.mark.by_day(1)
def test_a_published_model_is_saved_and_read_back(method, tmp_path):
    generator = np.random.default_rng(3)
    frame = pd.DataFrame({"age": generator.integers(18, 90, 3000), "weight": generator.normal(75, 10, 3000).round(1)})
    frame["ill"] = np.where(generator.random(3000) < frame["age"] / 120, "yes", "no")
    study = Study("models").table(
        "people",
        frame,
        person=None,
        columns={"age": (18, 90), "weight": (30, 150), "ill": ["no", "yes"]},
        missing="never",
    )
    study = study.promise("public", epsilon=4, delta=1e-6)
    asked = {
        "classifier": lambda: study.classifier("ill", ["age", "weight"], to="public", name="model"),
        "regression": lambda: study.regression("weight", ["age"], to="public", name="model"),
        "outliers": lambda: study.outliers(["age", "weight"], to="public", name="model"),
    }[method]()
    model = asked.plan(size=3000).run(ledger=None).model("model")
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again == model
    assert (again.predict(frame) == model.predict(frame)).all()
    assert again.guarantee


def test_a_rare_label_is_ordered():
    """One in ten has it: the least hinge loss is one score for all, so that the choice may not fall on it by itself."""
    generator = np.random.default_rng(5)
    age = generator.uniform(18, 90, 20_000)
    ill = generator.random(20_000) < 1 / (1 + np.exp(3.0 - (age - 54) / 20))
    frame = pd.DataFrame({"age": age, "ill": np.where(ill, "yes", "no")})
    study = Study("rare").table(
        "people", frame, person=None, columns={"age": (18, 90), "ill": ["no", "yes"]}, missing="never"
    )
    for epsilon in (0.1, 1, 8):
        plan = (
            study.promise("public", epsilon=epsilon, delta=1e-6)
            .classifier("ill", ["age"], to="public")
            .plan(size=20_000)
        )
        assert plan.errors.to_dict()["strategy"] == ["objective (classifier)"]
    scores = plan.run(ledger=None).model("classifier ill").decision_function(frame)
    place = scores.argsort().argsort()
    assert (place[ill].mean() - place[~ill].mean()) / len(place) > 0.15  # 0 for noise; by the true law 0.25
