"""Whatever things are called: what check passes is run, charged and verified, and a step stays a step.

Names are made of letters that break files, lines, commands and comparisons: of other scripts, decomposed, without a
width, from right to left, control characters, blanks at the ends, very long, differing in case alone.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.errors import LedgerError
from sfumato.evidence.verify_plan import verify_folder
from sfumato.lang.load import examine
from sfumato.lang.term import Compound, Variable, show
from sfumato.ledger.ledger import Ledger
from sfumato.run.planning import make_plan
from sfumato.run.study import run_plan
from sfumato.run.study_file import run_study

PIECES = [
    "a",
    "B",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "\u200b",
    "\u202e",
    "\t",
    "\n",
    " ",
    "'",
    '"',
    "\\",
    "/",
    "..",
    "-",
    "con",
    "{{1}}",
]
PIECES += ["<b>", "💩", "\x00", "\x85", "%s", "x" * 200, "$(ls)", ";", "\ufeff", "_", "1"]
STUDY = """source(t, 't.parquet'). column(t, id, {unit}). rows_per_person(t, 1). column(t, x, x(P)).
random(x(P)) :- {unit}. range(x(P), 0, 1). missing(x(P), 0). dataset({dataset}, domain(P, {unit})).
privacy_requirement(o({one}), {dataset}, dp(1)). privacy_requirement(o({two}), {dataset}, dp(1)).
mean(m, x(P), {unit}). publish({first}, m, o({one})). publish({second}, m, o({two})).
"""
TABLE = {"t": pa.table({"id": ["a", "b"], "x": [0.0, 1.0]})}


def name(draw):
    return "".join(draw.choices(PIECES, k=draw.choice([1, 1, 2, 3])))


def written(draw):
    """A study in which one or two things have such a name."""
    words = {key: key for key in ("unit", "dataset", "one", "two", "first", "second")}
    words |= {key: name(draw) for key in draw.sample(list(words), draw.choice([1, 1, 2]))}
    shown = {key: show(Compound(word)) for key, word in words.items()}
    return STUDY.format(**shown | {"unit": show(Compound(words["unit"], (Variable("P"),)))})


@pytest.mark.parametrize("seed", [*range(25), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(25, 400))])
@pytest.mark.by_day(5)
def test_what_check_passes_is_run(seed, tmp_path):
    text = written(random.Random(seed))
    spec, problems = examine(text)
    if spec is None or any(one.severity == "error" for one in problems):
        return
    run_plan(make_plan(text), TABLE, Ledger(tmp_path / "ledger.db"), out=tmp_path / "out", grant=True)
    assert all(one.ok for one in verify_folder(tmp_path / "out"))


def test_most_names_are_good_ones():
    """The law above says something: of its studies, hardly any is refused but for its letters."""
    passed = sum(
        not any(one.severity == "error" for one in examine(written(random.Random(seed)))[1]) for seed in range(25)
    )
    assert passed >= 8


STEPS = STUDY.format(unit="person(P)", dataset="people", one="a", two="b", first="early", second="late")
STEPS += "step(1, publish(early)). step(2, publish(late)).\n"


@pytest.mark.parametrize("called", ["study.pl", "two\nlines.pl", "a\x85b.pl", ", step 9 ().pl", "plan 0 of x.pl"])
@pytest.mark.by_day(1)
def test_a_step_is_released_once_whatever_the_study_is_called(called, tmp_path):
    (tmp_path / called).write_text(STEPS)
    pa.parquet.write_table(TABLE["t"], tmp_path / "t.parquet")
    for number, (step, kept) in enumerate(((2, True), (1, False), (2, False))):
        out = tmp_path / str(number)
        if kept:
            run_study(tmp_path / called, tmp_path, out, tmp_path / "ledger.db", at=step, grant=True)
            continue
        with pytest.raises(LedgerError, match="Step 2"):
            run_study(tmp_path / called, tmp_path, out, tmp_path / "ledger.db", at=step, grant=True)
