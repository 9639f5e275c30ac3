"""What is said about ε and δ: true, in every register, from the acts that were drawn."""

from __future__ import annotations

import re
from pathlib import Path

import mpmath
import pytest

from evidence.pages import Page
from plan.studies import HEAD
from sfumato import make_plan, run_plan
from sfumato.core import ApproxDP, GaussianDP, PureDP
from sfumato.evidence.explain import explain
from sfumato.evidence.odds import bound_words, odds_of, odds_sentence
from sfumato.evidence.report import finish_folder
from sfumato.evidence.trace import trace_person
from sfumato.run.generate import generated_tables

ROOT = Path(__file__).parents[2]
MEAN = "mean(m, age(P), patient(P)).\npublish(average, m, openness(public)).\n"
#: δ read as the probability that e^ε is exceeded.
FALSE = re.compile(
    r"except with (a )?(that )?probability|that bound may fail|except with a probability of|outside of δ|"
    r"holds whatever else (that )?somebody knows|with this probability nothing is promised",
    re.IGNORECASE,
)


def told(metric: str, folder: Path, forbidden: str = "") -> tuple[object, dict[str, str]]:
    study = f"{HEAD}privacy_requirement(openness(public), people, {metric}).\n{MEAN}{forbidden}"
    plan = make_plan(study, sizes={"people": 300})
    run_plan(plan, generated_tables(plan.network.spec), None, out=folder, random_state=0)
    finish_folder(plan, folder)
    texts = {reader: explain(plan, reader, folder) for reader in ("analyst", "lawyer", "subject", "public")}
    texts["trace"] = trace_person(plan, "uma")
    texts["README.txt"] = (folder / "README.txt").read_text(encoding="utf-8")
    texts["report.html"] = Page((folder / "report.html").read_text(encoding="utf-8")).text
    return plan, {name: " ".join(text.split()) for name, text in texts.items()}


def test_gaussian_noise_exceeds_the_factor_more_often_than_delta(tmp_path):
    plan, texts = told("dp(1, 0.000001)", tmp_path / "out", "forbid(average, laplace).\n")
    kept = plan.promises[0].kept
    assert isinstance(kept, GaussianDP)
    with mpmath.workdps(60):
        exact = float(mpmath.ncdf(mpmath.mpf(kept.mu) / 2 - 1 / mpmath.mpf(kept.mu)))
    assert 1.9e-5 < exact < 2.1e-5
    for name, text in texts.items():
        assert "2.72" in text, name
        said = re.search(r"at most 1 of ([\d,]+) cases" if name == "subject" else r"at most (\d\.?\d*e-05)", text)
        assert said is not None, name
        chance = 1 / float(said[1].replace(",", "")) if name == "subject" else float(said[1])
        assert exact <= chance <= 1.1 * exact, name
        assert "independent" in text or "family" in text, name
        assert not FALSE.search(text), name


def test_laplace_noise_never_exceeds_it(tmp_path):
    _, texts = told("dp(1)", tmp_path / "out")
    for name, text in texts.items():
        assert re.search(r"at most 2\.72", text), name
        assert "with a probability of at most" not in text, name
        assert not FALSE.search(text), name


def test_a_promise_without_known_acts_names_twice_the_factor():
    odds = odds_of(ApproxDP(1.0, 1e-6))
    assert odds.factor == "5.44"
    assert odds.chance == pytest.approx(2e-6)
    assert "5.44" in odds_sentence(ApproxDP(1.0, 1e-6))
    assert odds_of(PureDP(2.0)).chance == 0.0


def test_chances_are_rounded_up():
    odds = odds_of(ApproxDP(1.0, 1e-6), GaussianDP(0.236667))
    said = re.search(r"at most (\S+),", bound_words(odds))
    assert said is not None
    assert float(said[1]) >= odds.chance


@pytest.mark.parametrize("folder", ["src", "docs"])
def test_no_text_takes_delta_for_that_probability(folder):
    files = [p for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".md", ".html", ".txt", ".pl")]
    assert len(files) > 10
    for path in [*files, ROOT / "README.md"]:
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert not FALSE.search(text), path


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 6.8])
def test_bounds_are_rounded_up_and_the_same_everywhere(epsilon, tmp_path):
    exact = 100 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
    odds = odds_of(PureDP(epsilon))
    assert exact - 1e-9 <= float(odds.shown) < exact + 0.1
    assert mpmath.exp(epsilon) * (1 - 1e-9) <= float(odds.factor) <= mpmath.exp(epsilon) * 1.01
    if epsilon == 1.0:
        for name, text in told("dp(1)", tmp_path / "out")[1].items():
            assert "73.2 %" in text, name
            assert "73.1" not in text, name
