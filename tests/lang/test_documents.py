"""The documents say what the program does: every word of the language is there, and the examples in them are good."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sfumato import ApproxDP
from sfumato.lang import examine
from sfumato.lang.arithmetic import ARITHMETIC
from sfumato.lang.engine import BUILTINS, LIBRARY
from sfumato.lang.limits import DEEPEST_ANSWER, GENEROUS, Limits
from sfumato.lang.reader import LONGEST_CLAUSE, LONGEST_TEXT, MOST_NESTED, MOST_OPERATORS
from sfumato.lang.vocabulary import DECLARATIONS, DISTRIBUTIONS, FUNCTIONS, METRICS, PUBLICATION_FORMS
from sfumato.lang.weighed import LARGEST_TERM

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
ALOUD = (ROOT / "docs" / "reading_a_study.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```prolog\n(.*?)```", LANGUAGE, re.DOTALL)


@pytest.mark.parametrize(
    "name", sorted({*DECLARATIONS, *METRICS, *FUNCTIONS, *DISTRIBUTIONS, *PUBLICATION_FORMS, *BUILTINS, *LIBRARY})
)
def test_every_word_is_documented(name):
    functor = name.rpartition("/")[0]
    assert re.search(rf"(?<!\w){re.escape(functor)}(?!\w)", LANGUAGE), f"{name} is not in docs/language.md"


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_example_can_be_read(number):
    _, problems = examine(BLOCKS[number])
    # Some examples show a few lines of a study: what they use and do not declare is not their mistake.
    incomplete = {"unknown-predicate", "unused-predicate", "unknown-publication"}
    assert not [one.describe() for one in problems if one.severity == "error" and one.code not in incomplete]


def test_the_first_example_is_a_whole_study():
    assert examine(BLOCKS[0])[1] == ()


def test_the_limits_are_the_programs():
    check = Limits()
    for number in (
        f"{LONGEST_TEXT:,} and {LONGEST_CLAUSE:,} characters",
        f"{MOST_NESTED} and {MOST_OPERATORS} |",
        f"{check.steps:,} steps of logic in all (about 3 s), {check.answers:,} answers of one clause, "
        f"{LARGEST_TERM:,} parts of one term",
        f"{GENEROUS.steps:,} steps (about a minute), {GENEROUS.answers:,} answers",
        f"nested {DEEPEST_ANSWER} deep",
    ):
        assert number in LANGUAGE, number
    assert "+/2" in ARITHMETIC


def test_what_is_read_aloud_is_the_study():
    """Every line quoted for the legal reader stands in the study."""
    study = (ROOT / "examples" / "oncology" / "study.pl").read_text(encoding="utf-8")
    squeezed = re.sub(r"\s+|%.*", "", study)
    for block in re.findall(r"```prolog\n(.*?)```", ALOUD, re.DOTALL):
        for line in block.strip().splitlines():
            assert re.sub(r"\s+", "", line) in squeezed, line


def test_the_numbers_read_aloud_are_right():
    doctor, public = ApproxDP(0.25, 0.03), ApproxDP(0.1, 0.001)
    assert f"{50 + 50 * doctor.advantage():.0f} times out of 100 from the doctors'" in ALOUD
    assert f"{50 + 50 * public.advantage():.0f} times out of 100 from the public" in ALOUD
