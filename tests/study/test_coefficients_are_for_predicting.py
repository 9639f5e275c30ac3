"""Wherever coefficients are shown it is said that they are shrunk and carry no interval; of statistics it is not."""

import numpy as np
import pandas as pd
import pytest

from sfumato import Study


@pytest.mark.parametrize("kind", ["regression", "classifier"])
def test_every_text_about_coefficients_says_what_they_are_not_for(kind, tmp_path):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"age": generator.uniform(0, 100, 2000)})
    frame["pressure"], frame["ill"] = 80 + frame["age"] / 2, np.where(frame["age"] > 50, "yes", "no")
    columns = {"age": (0, 100), "pressure": (50, 200), "ill": ["no", "yes"]}
    study = Study("s").table("t", frame, person=None, missing="never", columns=columns)
    study = study.promise("p", epsilon=1, delta=1e-6)
    models = {"regression": study.regression, "classifier": study.classifier}
    asked = models[kind]({"regression": "pressure", "classifier": "ill"}[kind], ["age"], to="p", name="m")
    plan = asked.mean("age", to="p", name="average").plan(size=2000)
    release = plan.run(ledger=None, out=tmp_path / "out")
    assert set(release["m"].columns) == {"part", "value"}  # with errors of their own the sentence would be wrong
    readme = (tmp_path / "out" / "README.txt").read_text(encoding="utf-8")
    texts = [plan.explain(), readme, str(release["m"]), release["m"]._repr_html_()]
    for told in (" ".join(text.split()) for text in texts):
        assert told.count("for predicting and not for reading off an effect") == told.count("for predicting")
        assert "for predicting and not for reading off an effect" in told
        assert "towards 0" in told
        assert "interval" in told
    assert {"standard_error", "low", "high"} <= set(release["average"].columns)
    assert "predicting" not in str(release["average"]) + release["average"]._repr_html_()
