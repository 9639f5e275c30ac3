"""Files, tables and sentences name what they are about as the table does, not as the study calls it."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from sfumato import Categories, Dates, Study
from sfumato.network.meaning import meaning_of
from sfumato.network.network import Network

#: A name that is no word, one of capitals, one with an umlaut; and two that mean something else in such a file.
NAMES = ["Ward, no.", "Größe", "value", "date"]


def _frame(generator, name):
    return pd.DataFrame({name: generator.choice(["a", "b"], 400), "Blood x": generator.random(400), "y y": 0.5})


def _study(name):
    columns = {name: ["a", "b"], "Blood x": (0, 1), "y y": (0, 1)}
    frame = _frame(np.random.default_rng(1), name)
    return Study("names").table("t", frame, person=None, columns=columns, missing="never").promise("p", epsilon=50)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.by_day(1)
def test_numbers_are_told_apart_by_columns(name, tmp_path):
    study = (
        _study(name)
        .mean("Blood x", by=name, to="p", name="means")
        .histogram([name, "Blood x"], edges={"Blood x": [0, 0.5, 1]}, to="p", name="counts")
        .correlation(["Blood x", "y y"], to="p", name="ties")
    )
    release = study.plan(size=400).run(ledger=None, out=tmp_path / "out")
    taken = name == "value"  # the numbers themselves are called so
    for publication, about in (("means", [name]), ("counts", [name, "Blood x"])):
        (file,) = (tmp_path / "out/results").glob(f"{publication}.*.parquet")
        head = pq.read_table(file).column_names
        assert len(set(head)) == len(head)
        kept = [column for column in head if column not in ("node", "part", "standard_error", "low", "high")]
        assert kept[:-1] == (["value(P)", *about[1:]] if taken else about), head
        cells = [[row[column] for column in kept[:-1]] for row in json.loads(file.with_suffix(".json").read_text())]
        assert cells == [list(row.values())[: len(about)] for row in release[publication].rows()]
        assert list(release[publication].columns[: len(about)]) == kept[:-1]
    (file,) = (tmp_path / "out/results").glob("ties.*.parquet")
    assert pq.read_table(file).select(["first", "second"]).to_pylist() == [{"first": "Blood x", "second": "y y"}]


def test_a_table_and_a_model_have_the_columns_names(tmp_path):
    name = "Ward, no."
    frame = _frame(np.random.default_rng(1), name).assign(who=range(400))
    columns = {name: ["a", "b"], "Blood x": (0, 1), "y y": (0, 1)}
    study = Study("names").table("t", frame, person="who", columns=columns, missing="never").promise("p", epsilon=50)
    study = study.clauses("publish(open, table([wardNo(P), bloodX(P)]), promise(p)).")
    study = study.regression("y y", ["Blood x", name], to="p", name="model")
    release = study.plan(size=400).run(ledger=None, out=tmp_path / "out")
    (noise,) = (tmp_path / "out/results").glob("open.*.noise.json")
    assert set(json.loads(noise.read_text())["columns"]) <= {name, "Blood x"}
    assert release.release["open"].column_names == [name, "Blood x"]
    assert release["model"]["part"] == ["Blood x", f"{name}=a", f"{name}=b", "intercept"]


@pytest.mark.parametrize("target", ["y y", "Ward, no."])
def test_the_listed_coefficients_of_a_model_are_in_the_units_of_the_columns(target):
    """Coefficient times cell, added up from the intercept, is what the model answers."""
    generator = np.random.default_rng(2)
    frame = pd.DataFrame({"age": generator.integers(20, 91, 3000), "stay": generator.gamma(2, 4, 3000).clip(1, 60)})
    frame["y y"], frame["Ward, no."] = 100 + 0.3 * frame["age"], np.where(frame["age"] > 55, "a", "b")
    frame["sex"] = generator.choice(["f", "m"], 3000)
    columns = {"age": (18, 95), "stay": (0, 60), "y y": (0, 200), "Ward, no.": ["b", "a"], "sex": ["f", "m"]}
    study = Study("units").table("t", frame, person=None, columns=columns, missing="never")
    study = study.promise("p", epsilon=20, delta=1e-4)
    asked = study.regression if target == "y y" else study.classifier
    release = asked(target, ["age", "stay", "sex"], to="p", name="model").plan(size=3000).run(ledger=None)
    told = dict(zip(release["model"]["part"], release["model"]["value"], strict=True))
    told = {part.removeprefix("b: "): value for part, value in told.items()}  # of two labels one is spoken for
    by_hand = told["intercept"] + sum(told[name] * frame[name] for name in ("age", "stay"))
    by_hand += frame["sex"].map({"f": told["sex=f"], "m": told["sex=m"]})
    assert np.allclose(by_hand, release.model("model").decision_function(frame))
    if target == "y y":
        assert 0.2 < told["age"] < 0.4


def test_what_is_published_is_said_in_the_tables_own_names():
    columns = {"Ward, no.": Categories(["a", "b"]), "Blood x": (0, 1), "When": Dates("2021-01-01", "2021-12-31")}
    study = (
        Study("words")
        .table("t", None, person="who", columns=columns, missing="skip")
        .promise("p", epsilon=1)
        .mean("Blood x", by="Ward, no.", where="When >= '2021-06-15'", to="p")
        .derive("twice", "`Blood x` * 2")
        .mean("twice", to="p")
    )
    told = " ".join(study.plan(size=500).explain("LAWYER").split())
    assert (
        "the mean of 'Blood x' over individuals, for each value of 'Ward, no.' (a, b) with When >= 2021-06-15" in told
    )
    assert "(P)" not in told.replace("twice(P)", "")  # what is computed has no column, and keeps its word
    assert "twice(P)" in told


def test_and_and_or_are_said_as_they_are_meant():
    """Read by Python, which knows which of the two binds stronger, a sentence has the condition's truth."""
    base = Study("s").table("t", None, person="who", columns=dict.fromkeys("xyz", (0, 1))).promise("p", epsilon=1)
    joints = ("and", "or")
    inner = [f"x > 0 {joint} y > 0" for joint in joints]
    texts = [f"({one}) {joint} {two}" for one, joint, two in product(inner, joints, ("z > 0", "not (x > 0)"))]
    texts += [
        f"({one}) {joint} ({two})" for one, joint, two in product(inner, joints, ("z > 0 or x > 0", "y > 0 and z > 0"))
    ]
    texts += [f"not ({one}) and z > 0" for one in inner]
    for text in texts:
        network = Network.from_spec(base.count(where=text, to="p", name="n").spec)
        (sentence, *_) = meaning_of(network, [node.name for node in network.aggregates])
        said = sentence.split(" with ", 1)[-1].rstrip(".").replace("(P)", "").replace(" = ", " == ")
        for x, y, z in product((0, 1), repeat=3):
            cells = {"x": x, "y": y, "z": z}
            assert eval(said, {}, cells) == eval(text, {}, cells), (text, said)
