"""Which label a score above 0 speaks for is said where the score is, whatever the labels and their order are.

Compared with shares of the rows themselves, which share no code with the models: where a column is high, the label that
more rows have is the one that its coefficient is said to speak for.
"""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pandas as pd
import pytest

from sfumato import Categories, Study
from sfumato.core.schema import Interval, Schema
from sfumato.evidence.recipient import recipient_text
from sfumato.learn import (
    FairClassifier,
    KernelClassifier,
    PrivateAdditiveClassifier,
    PrivateLogisticRegression,
    PrivateSVC,
    load,
)
from sfumato.learn.stepped import SteppedClassifier

WORDS = ["ja", "nein", "yes", "no", "A", "b", "Z", "ä", "krank", "gesund", "10", "9", "ja: x"]
SCHEMA = Schema({"age": Interval(0, 110), "stay": Interval(0, 60)})


def drawn(seed: int, labels: list) -> tuple[pd.DataFrame, dict[str, int]]:
    """A table of which either column speaks for one of two labels; which one is counted in plain pandas."""
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": generator.uniform(0, 110, 4000), "stay": generator.uniform(0, 60, 4000)})
    signs = generator.choice([-1, 1], 2)
    score = signs[0] * (frame["age"] - 55) / 55 + signs[1] * (frame["stay"] - 30) / 30
    frame["ill"] = np.where(score > 0, labels[0], labels[1])
    return frame, {label: frame["ill"].eq(label) for label in labels}


def rises(frame: pd.DataFrame, column: str, label: object) -> bool:
    high = frame[column] > frame[column].median()
    return (frame["ill"][high] == label).mean() > (frame["ill"][~high] == label).mean()


def two_labels(seed: int) -> list:
    rng = random.Random(seed)
    return rng.sample(WORDS, 2)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_day(4)
def test_listed_coefficients_and_texts_name_the_label(seed, tmp_path):
    labels = two_labels(seed)
    frame, _ = drawn(seed, labels)
    way = ["objective", "svm"][seed % 2]
    study = Study("s").table(
        "t", frame, person=None, missing="never", columns={"age": (0, 110), "stay": (0, 60), "ill": Categories(labels)}
    )
    study = study.promise("p", epsilon=50, delta=1e-4).classifier("ill", ["age", "stay"], to="p", name="c")
    study = study.clauses(f"prefer(c, [{way}]).")
    plan = study.plan(size=len(frame))
    release = plan.run(ledger=None, out=tmp_path / "out")
    told = dict(zip(release["c"]["part"], release["c"]["value"], strict=True))
    (named,) = {part.rsplit(": ", 1)[0] for part in told}
    assert named in labels, told
    for column in ("age", "stay"):
        assert (told[f"{named}: {column}"] > 0) == rises(frame, column, named), (labels, told)
    scores = told[f"{named}: intercept"] + sum(told[f"{named}: {column}"] * frame[column] for column in ("age", "stay"))
    (file,) = (tmp_path / "out/results").glob("c*.json")
    for model in (release.model("c"), load(file)):
        assert ((model.predict(frame) == named) == (scores > 0)).all()
        assert f"speaks for {named}" in repr(model._card())
    (other,) = (label for label in labels if label != named)
    readme = " ".join(recipient_text(plan.plan if hasattr(plan, "plan") else plan, tmp_path / "out").split())
    assert f"above 0 it speaks for {named}, below 0 for {other}" in readme


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.by_day(3)
def test_explanations_of_estimators_name_the_label(seed):
    labels = two_labels(seed + 100)
    frame, _ = drawn(seed, labels)
    X, y = frame[["age", "stay"]], frame["ill"]
    given = {"schema": SCHEMA, "classes": labels, "random_state": seed}
    made = [
        PrivateLogisticRegression(50.0, 1e-4, norm=2.0, **given),
        PrivateSVC(50.0, 1e-4, norm=2.0, **given),
        PrivateSVC(50.0, 1e-4, kernel="rbf", n_components=20, **given),
        PrivateAdditiveClassifier(50.0, 1e-4, SCHEMA, classes=labels, random_state=seed),
        KernelClassifier(50.0, 1e-4, **given),
    ]
    for model in made:
        model.fit(X, y)
        (named,) = re.findall(r"A score above 0 speaks for '(.*)', and", model.explain())
        assert ((model.predict(X) == named) == (model.decision_function(X) > 0)).all()
    for column, coefficient in zip(("age", "stay"), np.ravel(made[0].coef_), strict=True):
        (named,) = re.findall(r"speaks for '(.*)', and", made[0].explain())
        assert (coefficient > 0) == rises(frame, column, named)


def test_the_rule_of_centres_speaks_for_the_same_label():
    for labels in (["nein", "ja"], ["ja", "nein"]):
        frame, _ = drawn(3, labels)
        model = SteppedClassifier(
            50.0, 1e-4, SCHEMA, KernelClassifier(1.0).adjacency, labels, norm=2.5, random_state=0
        ).fit(frame[["age", "stay"]], frame["ill"].to_numpy())
        for column, coefficient in zip(("age", "stay"), np.ravel(model.coef_), strict=True):
            assert (coefficient > 0) == rises(frame, column, "nein")


@pytest.mark.parametrize("labels", [["no", "yes"], ["zahlt", "ausfall"], ["b", "a"]])
def test_a_published_fair_rule_answers_as_the_fair_rule_does(labels, tmp_path):
    """No first and yes second, as they were declared: the constant too, which most people have."""
    generator = np.random.default_rng(1)
    frame = pd.DataFrame({"age": generator.uniform(0, 110, 4000), "sex": generator.choice(["f", "m"], 4000)})
    frame["ill"] = np.where(frame["age"] + 30 * (frame["sex"] == "m") > 20, labels[1], labels[0])  # nearly all: yes
    columns = {"age": (0, 110), "sex": Categories(["f", "m"]), "ill": Categories(labels)}
    study = Study("s").table("t", frame, person=None, missing="never", columns=columns)
    study = study.promise("p", epsilon=20, delta=1e-4).classifier("ill", ["age", "sex"], to="p", name="c")
    study = study.fair("c", between="sex", gap=0.02, on="rows", confidence=0.95)
    plan = study.plan(size=4000)
    release = plan.run(ledger=None, out=tmp_path / "out")
    model = release.model("c")
    constant = 1 - release.model("c").fairness["share"]
    chances = model.chances(frame)
    assert constant > 0.01
    assert chances.min() >= constant - 1e-9  # whoever asks has at least the constant's chance of a yes
    old = frame[frame["age"] > 90]
    assert model.chances(old).mean() > 0.9  # and most have yes
    assert np.mean(model.predict(old) == labels[1]) > 0.8
    readme = " ".join(recipient_text(plan.plan if hasattr(plan, "plan") else plan, tmp_path / "out").split())
    assert f"the others are {labels[1]} whoever asks" in readme
    assert f"share that is {labels[1]} whoever asks" in release["c"]["part"]
    (path,) = (tmp_path / "out/results").glob("c*.json")
    assert json.loads(path.read_text())["fairness"]["labels"] == labels


def test_the_fair_estimator_tells_its_price_in_its_labels():
    frame, _ = drawn(5, ["zahlt", "ausfall"])
    base = PrivateLogisticRegression(20.0, 1e-4, schema=SCHEMA, norm=2.0, classes=["zahlt", "ausfall"], random_state=0)
    fair = FairClassifier(
        base, measure="demographic_parity", gap=0.01, groups=["f", "m"], on="rows", confidence=0.95, labels=None
    )
    who = np.where(frame["age"] > 50, "f", "m")
    fair.fit(frame[["age", "stay"]], frame["ill"], who=who)
    assert f"the others are {['zahlt', 'ausfall'][fair.measured_.constant]} whoever asks" in fair.price_
