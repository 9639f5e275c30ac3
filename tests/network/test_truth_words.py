"""Of a column of truth values the words that people write are read, whatever their capitals and blanks."""

from __future__ import annotations

import pandas as pd
import pytest

from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan

TRUE, FALSE = {"true", "yes", "t", "y", "1"}, {"false", "no", "f", "n", "0"}
STUDY = """
    table(t, 't.csv', p(P) = id, [b: boolean]). rows_per_person(t, 1). missing(t, skip).
    dataset(d, domain(P, p(P))). privacy_requirement(o(public), d, dp(1000000, 0.000001)).
    histogram(h, b(P), p(P)). publish(ph, h, o(public)).
"""


def as_people_write(word: str) -> list[str]:
    return [word, word.upper(), word.capitalize(), f" {word}", f"{word} ", f"\t{word.upper()}\r\n", f"\u00a0{word}"]


@pytest.mark.parametrize("others", [[], ["maybe", "", "yess", "-1"]])
def test_truth_values_are_read_as_written(others):
    words = [spelled for word in sorted(TRUE | FALSE) for spelled in as_people_write(word)] + others
    rows = pd.DataFrame({"id": range(len(words)), "b": words})
    (published,) = run_plan(make_plan(STUDY, sizes={"d": len(words)}), {"t": rows}, None, random_state=1).published
    plain = rows["b"].str.strip().str.lower()
    truth = [plain.isin(FALSE).sum(), plain.isin(TRUE).sum()]
    assert published.values["value"].to_pylist() == pytest.approx(truth, abs=1e-2)
